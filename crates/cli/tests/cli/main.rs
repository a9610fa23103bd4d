//! The command line seen from outside: one file per verb, and `usage` and `databases` for what all have in common.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed step is a failed test"
)]

/// Makes tests of these functions, on each store that processes can share. A function that is not named is dead
/// code.
macro_rules! on_each_store {
    ($($name:ident,)+) => {
        mod sqlite {$(
            #[test]
            fn $name() {
                super::$name(&crate::support::Sandbox::with_tasks());
            }
        )+}

        #[cfg(feature = "postgres")]
        mod postgres {$(
            #[test]
            fn $name() {
                if let Some(sandbox) = crate::support::Sandbox::on_postgres(stringify!($name)) {
                    super::$name(&sandbox);
                }
            }
        )+}
    };
}
pub(crate) use on_each_store;

mod cancel;
mod completions;
mod counts;
mod databases;
mod examples;
mod explain;
mod frozen;
mod history;
mod logs;
mod modules;
mod node;
mod nodes;
mod pause;
mod pipeline;
mod prune;
mod ps;
mod reconcile;
mod report;
mod run;
mod status;
mod stop;
mod support;
mod tasks;
mod usage;
mod wait;

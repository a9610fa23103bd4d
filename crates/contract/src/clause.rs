//! What is made of the list of clauses: the table, and the tests.

use std::fmt;

use crate::breach::Breach;
use crate::fixture::{Data, Fixture};
use crate::report::{self, Verdict};

/// One promise of a store.
#[derive(Clone, Copy)]
pub struct Clause {
    /// Group and case, as the test is called.
    pub name: &'static str,
    /// What must hold.
    pub rule: &'static str,
    /// What it is good for.
    pub why: &'static str,
    pub(crate) case: fn(&dyn Data) -> Result<(), Breach>,
}

impl fmt::Debug for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.rule)
    }
}

impl Clause {
    /// Does it hold, on fresh data of this fixture?
    #[must_use]
    pub fn check(&self, fixture: &dyn Fixture) -> Verdict {
        report::judge(self.case, fixture)
    }
}

#[doc(hidden)]
#[macro_export]
macro_rules! __clause_tests {
    ([$fixture:expr] $($group:ident { $($case:ident: $rule:literal, $why:literal;)+ })+) => {
        $(
            mod $group {
                #[allow(unused_imports)]
                use super::*;
                $(
                    #[test]
                    fn $case() {
                        let name = concat!(stringify!($group), "::", stringify!($case));
                        $crate::assert_clause(name, &$fixture);
                    }
                )+
            }
        )+
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __clause_table {
    ([] $($group:ident { $($case:ident: $rule:literal, $why:literal;)+ })+) => {
        /// Every clause, in groups.
        pub static CLAUSES: &[Clause] = &[
            $($(
                Clause {
                    name: concat!(stringify!($group), "::", stringify!($case)),
                    rule: $rule,
                    why: $why,
                    case: $crate::cases::$group::$case,
                },
            )+)+
        ];
    };
}

crate::__each_clause!(__clause_table);

/// One `#[test]` for each clause, in a module for each group, on data of this [`Fixture`](crate::Fixture).
///
/// Put it in a module of its own: `mod on_disk { use super::*; contract_tests!(OnDisk); }`.
#[macro_export]
macro_rules! contract_tests {
    ($fixture:expr) => {
        $crate::__each_clause!(__clause_tests $fixture);
    };
}

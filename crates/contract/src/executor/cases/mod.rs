//! The cases, a file for each group. One that is not in the list of `clauses` is dead code, which the compiler
//! reports.

pub(super) mod input;
pub(super) mod kill;
pub(super) mod launch;
pub(super) mod pause;
pub(super) mod result;
pub(super) mod shutdown;
pub(super) mod stop;
pub(super) mod target;
pub(super) mod telling;

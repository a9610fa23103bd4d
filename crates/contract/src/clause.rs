//! One promise, the case that looks whether it is kept, and what is made of a list of them.

use std::fmt;

/// One promise of a store or of an executor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Clause {
    /// Group and case, as the test is called.
    pub name: &'static str,
    /// What must hold.
    pub rule: &'static str,
    /// What it is good for.
    pub why: &'static str,
}

impl fmt::Debug for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.rule)
    }
}

/// A clause with the function that looks.
pub(crate) struct Case<F> {
    pub(crate) clause: Clause,
    pub(crate) look: F,
}

/// Makes a `#[test]` of each clause, which is judged by `$assert(name, fixture)`.
#[doc(hidden)]
#[macro_export]
macro_rules! __clause_tests {
    (
        [$assert:path, $fixture:expr]
        $($group:ident { $($case:ident: $rule:literal, $why:literal;)+ })+
    ) => {
        #[cfg(test)]
        fn __assert_clause(name: &str) {
            $assert(name, &$fixture);
        }
        $(
            mod $group {
                $(
                    #[test]
                    fn $case() {
                        super::__assert_clause(concat!(
                            stringify!($group), "::", stringify!($case)
                        ));
                    }
                )+
            }
        )+
    };
}

/// Makes the table of clauses, and that of the cases (functions of type `$look`, in a module for each group).
macro_rules! __clause_table {
    ([$look:ty] $($group:ident { $($case:ident: $rule:literal, $why:literal;)+ })+) => {
        /// Every clause, in groups.
        pub static CLAUSES: &[Clause] = &[
            $($(
                Clause {
                    name: concat!(stringify!($group), "::", stringify!($case)),
                    rule: $rule,
                    why: $why,
                },
            )+)+
        ];

        pub(crate) static CASES: &[Case<$look>] = &[
            $($(
                Case {
                    clause: Clause {
                        name: concat!(stringify!($group), "::", stringify!($case)),
                        rule: $rule,
                        why: $why,
                    },
                    look: cases::$group::$case,
                },
            )+)+
        ];
    };
}
pub(crate) use __clause_table;

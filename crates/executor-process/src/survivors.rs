//! What is left of a child, by what can be done about it.

use rustix::io::Errno;
use rustix::process::{Pid, RawPid, test_kill_process};

use crate::life::Left;
use crate::orphans::Escaped;

/// Living processes of a child whose leader has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Survivors {
    /// Is there one that we may signal?
    some_within_reach: bool,
    /// Those that we may not signal: they run as another user.
    pub(crate) out_of_reach: Vec<RawPid>,
    /// Those that may be of this or of another attempt.
    pub(crate) unknown: Vec<RawPid>,
}

impl Survivors {
    /// Sorts the group's living members and what has left the group, which is looked for only when it counts: as long
    /// as one of the group is yet to be ended, nothing is decided.
    pub(crate) fn sort(
        members: Vec<RawPid>,
        may_signal: impl Fn(RawPid) -> bool,
        escaped: impl FnOnce() -> Escaped,
    ) -> Self {
        if members.iter().any(|pid| may_signal(*pid)) {
            return Self { some_within_reach: true, ..Self::default() };
        }
        let escaped = escaped();
        let mut out_of_reach = members;
        out_of_reach.extend(escaped.out_of_reach);
        let some_within_reach = !escaped.found.is_empty();
        Self { some_within_reach, out_of_reach, unknown: escaped.unknown }
    }

    /// What this means for the child's life.
    pub(crate) const fn left(&self) -> Left {
        match (self.some_within_reach, self.out_of_reach.is_empty()) {
            (true, _) => Left::Some,
            (false, false) => Left::OutOfReach,
            (false, true) => Left::Nothing,
        }
    }
}

/// May we signal this process? One that is gone needs no permission.
pub(crate) fn may_signal(process: RawPid) -> bool {
    Pid::from_raw(process).is_none_or(|pid| test_kill_process(pid) != Err(Errno::PERM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{PidfdFlags, getpid, pidfd_open};

    /// Only even ones may be signalled.
    fn sort(members: &[RawPid], escaped: Escaped) -> Survivors {
        Survivors::sort(members.to_vec(), |pid| pid % 2 == 0, || escaped)
    }

    #[test]
    fn what_nobody_may_end_is_told_when_nothing_else_is_left() {
        let mine = || vec![pidfd_open(getpid(), PidfdFlags::empty()).unwrap()];
        let escaped = |found, out_of_reach: &[RawPid], unknown: &[RawPid]| Escaped {
            found,
            out_of_reach: out_of_reach.to_vec(),
            unknown: unknown.to_vec(),
        };
        for (members, escaped, left, out_of_reach, unknown) in [
            (&[] as &[_], escaped(vec![], &[], &[]), Left::Nothing, &[] as &[_], &[] as &[_]),
            (&[], escaped(vec![], &[], &[4]), Left::Nothing, &[], &[4]),
            (&[], escaped(vec![], &[5], &[4]), Left::OutOfReach, &[5], &[4]),
            (&[1, 3], escaped(vec![], &[], &[4]), Left::OutOfReach, &[1, 3], &[4]),
            (&[1], escaped(vec![], &[5], &[]), Left::OutOfReach, &[1, 5], &[]),
            (&[1], escaped(mine(), &[5], &[4]), Left::Some, &[1, 5], &[4]),
            (&[1, 2], escaped(vec![], &[5], &[4]), Left::Some, &[], &[]),
            (&[2], escaped(mine(), &[], &[]), Left::Some, &[], &[]),
        ] {
            let survivors = sort(members, escaped);
            assert_eq!(survivors.left(), left, "{members:?}");
            assert_eq!(survivors.out_of_reach, out_of_reach, "{members:?}");
            assert_eq!(survivors.unknown, unknown, "{members:?}");
        }
    }

    #[test]
    fn this_process_may_signal_itself_and_nobody_is_in_the_way_of_what_is_gone() {
        assert!(may_signal(getpid().as_raw_nonzero().get()));
        assert!(may_signal(RawPid::MAX));
    }
}

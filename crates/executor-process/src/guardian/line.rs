//! How the launchers reach the guardian of the moment.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use super::{Guardian, GuardianNumber};
use crate::group::Group;
use crate::mailbox::lock;

/// Leads to the guardian of the moment.
///
/// A launch is announced by the pipe that its child will hold, and its group is told of by the thread that
/// started it: so whatever the child does with its environment, and whenever the supervisor dies, the
/// guardian knows what to look for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line(Arc<Mutex<End>>);

#[derive(Debug, Default)]
struct End {
    guardian: Option<Arc<Guardian>>,
    /// The pipes of the launches that are under way.
    under_way: HashSet<u64>,
}

impl Line {
    /// Leads to this guardian from now on, or to none.
    pub(crate) fn lead_to(&self, guardian: Option<&Arc<Guardian>>) {
        let mut end = lock(&self.0);
        if let Some(guardian) = guardian {
            end.under_way.iter().for_each(|pipe| guardian.launching(*pipe));
        }
        end.guardian = guardian.cloned();
    }

    /// Announces a launch whose child will hold the pipe with this inode; waits a moment for a guardian that is
    /// late. It has failed when the answer is dropped.
    pub(crate) fn announce(&self, pipe: u64) -> Announced<'_> {
        let guardian = {
            let mut end = lock(&self.0);
            end.under_way.insert(pipe);
            end.guardian.clone()
        };
        if let Some(guardian) = guardian {
            guardian.announce(pipe);
        }
        Announced { line: self, pipe: Some(pipe) }
    }

    /// The launch is no longer under way.
    fn over(&self, pipe: u64) -> Option<Arc<Guardian>> {
        let mut end = lock(&self.0);
        end.under_way.remove(&pipe);
        end.guardian.clone()
    }
}

/// A launch that the guardian knows to be under way.
pub(crate) struct Announced<'a> {
    line: &'a Line,
    pipe: Option<u64>,
}

impl Announced<'_> {
    /// It has succeeded: tells the guardian of the group. Which one that was is the answer.
    pub(crate) fn started(mut self, group: &Group) -> Option<GuardianNumber> {
        let pipe = self.pipe.take()?;
        let guardian = self.line.over(pipe)?;
        guardian.register(group, pipe);
        Some(guardian.number())
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe
            && let Some(guardian) = self.line.over(pipe)
        {
            guardian.not_launched(pipe);
        }
    }
}

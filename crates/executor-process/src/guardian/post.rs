//! The guardian's post: who stands there, and who comes when one has ended.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::{Guardian, GuardianNumber, GuardianSpec, Line};
use crate::group::Group;
use crate::source::{Source, Watch};

/// Guardians are not started more often than this.
const PAUSE: Duration = Duration::from_secs(1);

/// Holds the guardian of the moment.
pub(crate) struct Post {
    spec: GuardianSpec,
    line: Line,
    guardian: Option<Arc<Guardian>>,
    /// When the latest replacement was started.
    replaced: Option<Instant>,
}

impl Post {
    /// With a guardian that is ready.
    ///
    /// # Errors
    /// Its end cannot be waited for.
    pub(crate) fn new(
        spec: GuardianSpec,
        line: Line,
        guardian: Guardian,
        watch: &Watch,
    ) -> rustix::io::Result<Self> {
        let guardian = Arc::new(guardian);
        watch.readable(Source::Guardian, guardian.pidfd())?;
        line.lead_to(Some(&guardian));
        Ok(Self { spec, line, guardian: Some(guardian), replaced: None })
    }

    /// What marks the processes that it guards.
    pub(crate) fn token(&self) -> &str {
        &self.spec.token
    }

    /// The guardian's number as a process.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.guardian.as_ref().map(|guardian| guardian.pid())
    }

    /// Tells it of a group and its pipe, unless it is the one that knows of it.
    pub(crate) fn register(&self, group: &Group, pipe: u64, known_to: Option<GuardianNumber>) {
        if let Some(guardian) = &self.guardian
            && known_to != Some(guardian.number())
        {
            guardian.register(group, pipe);
        }
    }

    /// Tells it that a group is empty.
    pub(crate) fn unregister(&self, leader: Pid) {
        if let Some(guardian) = &self.guardian {
            guardian.unregister(leader);
        }
    }

    /// Sends what it has yet to be told and its socket takes.
    pub(crate) fn flush(&self) {
        if let Some(guardian) = &self.guardian {
            guardian.flush();
        }
    }

    /// It has ended: lets go of it.
    pub(crate) fn leave(&mut self, watch: &Watch) {
        if let Some(guardian) = self.guardian.take() {
            self.line.lead_to(None);
            watch.forget(guardian.pidfd());
            guardian.discard();
        }
    }

    /// Starts another one where there is none, and tells it of all groups and their pipes; the answer is when to try
    /// again.
    pub(crate) fn fill<'a>(
        &mut self,
        groups: impl Iterator<Item = (&'a Group, u64)>,
        watch: &Arc<Watch>,
    ) -> Option<Instant> {
        if self.guardian.is_some() {
            return None;
        }
        let now = Instant::now();
        if let Some(next) = self.replaced.map(|at| at + PAUSE).filter(|next| *next > now) {
            return Some(next);
        }
        self.replaced = Some(now);
        let Ok(guardian) = Guardian::start(&self.spec, Some(watch)) else {
            return Some(now + PAUSE);
        };
        let guardian = Arc::new(guardian);
        self.line.lead_to(Some(&guardian));
        groups.for_each(|(group, pipe)| guardian.register(group, pipe));
        let _ = watch.readable(Source::Guardian, guardian.pidfd());
        self.guardian = Some(guardian);
        None
    }

    /// There is nothing left to guard.
    pub(crate) fn dismiss(self) {
        self.line.lead_to(None);
        if let Some(guardian) = self.guardian {
            guardian.discard();
        }
    }
}

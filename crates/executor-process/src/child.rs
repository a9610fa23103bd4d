//! What the reactor keeps of each child, and where else its processes may be.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chongming_core::{AttemptSink, Report};
use rustix::process::{Pid, RawPid};

use crate::environment::attempt_mark;
use crate::exit::Exit;
use crate::group::Group;
use crate::guardian::GuardianNumber;
use crate::life::Life;
use crate::mailbox::ChildId;
use crate::orphans::{Escaped, Orphanage, Whose};
use crate::output::{Output, Stream};
use crate::protocol::{Channel, Down, Pending};
use crate::source::{Source, Watch};
use crate::survivors::{Survivors, may_signal};

/// A child that was just started.
pub(crate) struct NewChild {
    pub(crate) id: ChildId,
    pub(crate) group: Group,
    /// The inode of the pipe by which the guardian knows its processes.
    pub(crate) pipe: u64,
    /// A moment before it was started, as time since boot.
    pub(crate) since: Duration,
    pub(crate) grace: Duration,
    /// When it was started, if it is to serve a task.
    pub(crate) server_since: Option<Instant>,
    pub(crate) output: Output,
    pub(crate) channel: Channel,
    pub(crate) sink: Arc<dyn AttemptSink>,
    /// The guardian that knows of it.
    pub(crate) known_to: Option<GuardianNumber>,
    /// Is its end waited for?
    pub(crate) is_watched: bool,
}

impl NewChild {
    /// Makes the reactor wait for it; `true` when the reactor has to look at it before anything happens.
    pub(crate) fn watch(&mut self, watch: &Watch) -> bool {
        let id = self.id;
        for stream in [Stream::Out, Stream::Err] {
            if let Some(fd) = self.output.descriptor(stream) {
                let _ = watch.readable(Source::Stream(id, stream), fd);
            }
        }
        if let Some(up) = self.channel.up() {
            let _ = watch.readable(Source::Up(id), up);
        }
        if self.channel.flush() == Pending::More
            && let Some(down) = self.channel.down()
        {
            watch.writable(Source::Down(id), down);
        }
        self.is_watched = watch.readable(Source::Leader(id), self.group.pidfd()).is_ok();
        // One that serves has a time limit.
        !self.is_watched || self.server_since.is_some()
    }
}

/// A child that runs, or of which something is left.
pub(crate) struct Child {
    pub(crate) group: Group,
    pub(crate) pipe: u64,
    since: Duration,
    pub(crate) life: Life,
    /// Was it reported as launched?
    pub(crate) launched: bool,
    pub(crate) exit: Option<Exit>,
    pub(crate) output: Output,
    pub(crate) channel: Channel,
    /// The latest request to stop, for the task protocol.
    pub(crate) stop: Option<Down>,
    pub(crate) tick_at: Option<Instant>,
    /// What was left of it when it was last looked.
    pub(crate) survivors: Survivors,
    /// Nothing once the end was told: of a child that cannot be ended, that is before it is gone.
    pub(crate) sink: Option<Arc<dyn AttemptSink>>,
}

impl Child {
    /// Nothing has happened to it yet.
    pub(crate) fn new(new: NewChild) -> Self {
        let NewChild { group, pipe, since, grace, server_since, output, channel, sink, .. } = new;
        Self {
            group,
            pipe,
            since,
            life: server_since.map_or_else(|| Life::new(grace), |at| Life::of_server(grace, at)),
            launched: server_since.is_none(),
            exit: None,
            output,
            channel,
            stop: None,
            tick_at: None,
            survivors: Survivors::default(),
            sink: Some(sink),
        }
    }

    /// Tells what happened, unless its end was told.
    pub(crate) fn report(&self, what: Report) {
        if let Some(sink) = &self.sink {
            report(&**sink, what);
        }
    }

    /// Tells it something by the task protocol.
    pub(crate) fn tell(&mut self, id: ChildId, message: &Down, watch: &Watch) {
        if self.channel.tell(message) == Pending::More
            && let Some(down) = self.channel.down()
        {
            watch.writable(Source::Down(id), down);
        }
    }

    /// The inodes of the pipes that only its processes hold.
    fn pipes(&self) -> HashSet<u64> {
        let streams = [Stream::Out, Stream::Err].map(|stream| self.output.descriptor(stream));
        let all = streams.into_iter().chain([self.channel.up(), self.channel.down()]).flatten();
        all.filter_map(|fd| rustix::fs::fstat(fd).ok()).map(|stat| stat.st_ino).collect()
    }
}

/// A sink that panics must not take the other children along.
pub(crate) fn report(sink: &dyn AttemptSink, report: Report) {
    let _ = catch_unwind(AssertUnwindSafe(|| sink.report(report)));
}

/// What is needed to find processes that left their group.
pub(crate) struct Search<'a> {
    pub(crate) orphanage: Option<&'a mut Orphanage>,
    pub(crate) token: &'a str,
    pub(crate) guardian: Option<Pid>,
    pub(crate) leaders: &'a HashSet<RawPid>,
    pub(crate) is_alone: bool,
}

impl Search<'_> {
    /// What is left of a child whose leader has ended.
    pub(crate) fn survivors(&mut self, id: ChildId, child: &Child) -> Survivors {
        Survivors::sort(child.group.living(), may_signal, || self.escaped(id, child))
    }

    /// Those of one child.
    pub(crate) fn escaped(&mut self, id: ChildId, child: &Child) -> Escaped {
        let Some(orphanage) = &mut self.orphanage else { return Escaped::default() };
        orphanage.escaped(&Whose {
            id,
            leader: child.group.leader(),
            leader_lives: child.exit.is_none(),
            since: child.since,
            guardian: self.guardian,
            token: self.token,
            mark: &|| attempt_mark(self.token, id),
            pipes: &|| child.pipes(),
            leaders: self.leaders,
            is_alone: self.is_alone,
        })
    }
}

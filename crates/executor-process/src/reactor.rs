//! One thread that waits for all children: their ends, their output, their timers, and their signals.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::mem::{self, MaybeUninit};
use std::sync::Arc;
use std::time::Instant;

use chongming_core::{Report, Signal};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::process::RawPid;
use rustix::time::Timespec;

use crate::Echo;
use crate::child::{Child, NewChild, Search, report};
use crate::exit::Exit;
use crate::guardian::Post;
use crate::life::{Act, Event};
use crate::mailbox::{ChildId, Letter, Mail, Mailbox};
use crate::orphans::{self, Orphanage};
use crate::output::{State, Stream};
use crate::procfs::Stat;
use crate::protocol::{Down, Heard, Pending};
use crate::remark;
use crate::source::{Source, Watch};
use crate::survivors::{Survivors, may_signal};
use crate::sys;

const READ_BYTES: usize = 64 * 1024;

/// The reactor.
pub(crate) struct Reactor {
    watch: Arc<Watch>,
    mailbox: Arc<Mailbox>,
    children: HashMap<ChildId, Child>,
    leaders: HashSet<RawPid>,
    timers: BinaryHeap<Reverse<(Instant, ChildId)>>,
    post: Post,
    echo: Option<Echo>,
    orphanage: Option<Orphanage>,
    buffer: Box<[u8]>,
    closing: bool,
}

impl Reactor {
    /// Without children yet.
    pub(crate) fn new(
        watch: Arc<Watch>,
        mailbox: Arc<Mailbox>,
        post: Post,
        echo: Option<Echo>,
        orphanage: Option<Orphanage>,
    ) -> rustix::io::Result<Self> {
        watch.readable(Source::Mailbox, mailbox.descriptor())?;
        Ok(Self {
            watch,
            mailbox,
            children: HashMap::new(),
            leaders: HashSet::new(),
            timers: BinaryHeap::new(),
            post,
            echo,
            orphanage,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            closing: false,
        })
    }

    /// Runs until it is closed and no child is left but those that cannot be ended.
    pub(crate) fn run(mut self) {
        sys::block_sigpipe();
        let mut space = [MaybeUninit::<epoll::Event>::uninit(); 128];
        while !(self.closing && self.children.values().all(|child| child.sink.is_none())) {
            let timeout = self.time_to_next_timer();
            let events: Vec<Source> = match epoll::wait(&*self.watch, &mut space, timeout.as_ref())
            {
                Ok((events, _)) => {
                    events.iter().filter_map(|event| Source::from_data(event.data)).collect()
                }
                Err(Errno::INTR) => Vec::new(),
                // Nothing we could do: the descriptors are ours and valid.
                Err(_) => Vec::new(),
            };
            // A new child first, since an event may be about it; then output: an end that comes with it must
            // find it read.
            let Mail { started, letters } = self.mailbox.take();
            for (child, kept) in started {
                self.started(child, kept);
            }
            for source in &events {
                match source {
                    Source::Stream(id, stream) => self.read(*id, *stream),
                    Source::Up(id) => self.listen(*id),
                    Source::Mailbox
                    | Source::Guardian
                    | Source::Outbox
                    | Source::Leader(_)
                    | Source::Down(_) => {}
                }
            }
            for source in &events {
                match source {
                    Source::Guardian => {
                        self.post.leave(&self.watch);
                        self.fill_post();
                    }
                    Source::Outbox => self.post.flush(),
                    Source::Leader(id) => self.look_at_leader(*id),
                    Source::Down(id) => self.flush(*id),
                    Source::Mailbox | Source::Stream(..) | Source::Up(_) => {}
                }
            }
            self.open(letters);
            self.fire_timers();
        }
        self.post.dismiss();
    }

    fn open(&mut self, letters: Vec<Letter>) {
        for letter in letters {
            match letter {
                Letter::Signal(id, signal) => self.signal(id, signal),
                Letter::Close => {
                    self.closing = true;
                    let ids: Vec<ChildId> = self.children.keys().copied().collect();
                    for id in ids {
                        self.signal(id, Signal::Kill);
                    }
                }
            }
        }
    }

    fn started(&mut self, new: NewChild, kept: Vec<Signal>) {
        let (id, is_watched) = (new.id, new.is_watched);
        self.post.register(&new.group, new.pipe, new.known_to);
        let child = Child::new(new);
        self.leaders.insert(child.group.leader().as_raw_nonzero().get());
        self.children.insert(id, child);
        self.happened(id, Event::Started);
        for signal in kept {
            self.signal(id, signal);
        }
        if !is_watched || self.closing {
            // Out of kernel memory, or too late: it must not go on unseen.
            self.signal(id, Signal::Kill);
        }
    }

    fn signal(&mut self, id: ChildId, signal: Signal) {
        // An end that came first counts as its own, and so does a failure.
        if let Signal::Stop { reason, grace } = &signal {
            self.listen(id);
            if let Some(child) = self.children.get_mut(&id) {
                child.stop = Some(Down::Stop { reason: Arc::clone(reason), grace: *grace });
            }
        }
        self.look_at_leader(id);
        self.happened(
            id,
            match signal {
                Signal::Stop { .. } => Event::Stop,
                Signal::Kill => Event::Kill,
                Signal::Pause { epoch } => Event::Pause { epoch },
                Signal::Resume => Event::Resume,
            },
        );
    }

    fn look_at_leader(&mut self, id: ChildId) {
        let Some(child) = self.children.get_mut(&id) else { return };
        if child.exit.is_some() {
            return;
        }
        let Some(exit) = child.group.peek_exit() else { return };
        child.exit = Some(exit);
        self.watch.forget(child.group.pidfd());
        child.group.leader_ended();
        self.happened(id, Event::LeaderEnded);
    }

    /// Feeds an event to a child's machine, and carries out what it answers.
    fn happened(&mut self, id: ChildId, event: Event) {
        let now = Instant::now();
        let mut events = VecDeque::from([event]);
        let mut acts = Vec::new();
        let mut search = Search {
            orphanage: self.orphanage.as_mut(),
            token: self.post.token(),
            guardian: self.post.pid(),
            leaders: &self.leaders,
            is_alone: self.children.len() == 1 && self.mailbox.is_settled(),
        };
        while let Some(event) = events.pop_front() {
            let Some(child) = self.children.get_mut(&id) else { return };
            child.life.on(event, now, &mut acts);
            for act in acts.drain(..) {
                match act {
                    Act::Signal(signal) => {
                        // Found before the signal, which may take the tie to them.
                        let escaped = search.escaped(id, child).found;
                        let _ = child.group.signal(signal);
                        orphans::signal(&escaped, signal);
                    }
                    Act::TellStop => {
                        if let Some(stop) = child.stop.clone() {
                            child.tell(id, &stop, &self.watch);
                        }
                    }
                    Act::TellPause { epoch } => {
                        child.tell(id, &Down::Pause { epoch }, &self.watch);
                    }
                    Act::TellResume => child.tell(id, &Down::Resume, &self.watch),
                    Act::LookWhetherStopped => {
                        events.push_back(Event::Stopped(child.group.is_leader_stopped()));
                    }
                    Act::LookWhatIsLeft => {
                        child.survivors = search.survivors(id, child);
                        events.push_back(Event::Left(child.survivors.left()));
                    }
                    Act::TellIfOutOfReach => {
                        let leader = child.group.leader().as_raw_nonzero().get();
                        let lives = Stat::of(leader).is_some_and(|stat| !stat.is_zombie());
                        if lives
                            && !may_signal(leader)
                            && let Some(sink) = child.sink.take()
                        {
                            report(&*sink, remark::unkillable(leader));
                        }
                    }
                    Act::WakeAt(at) => {
                        child.tick_at = Some(at);
                        self.timers.push(Reverse((at, id)));
                    }
                    Act::Paused { epoch } => child.report(Report::Paused { epoch }),
                    Act::End => {
                        if let Some(child) = self.children.remove(&id) {
                            self.end(child);
                        }
                        return;
                    }
                }
            }
        }
    }

    fn end(&mut self, mut child: Child) {
        for stream in [Stream::Out, Stream::Err] {
            if let Some(fd) = child.output.descriptor(stream) {
                self.watch.forget(fd);
            }
        }
        for fd in [child.channel.up(), child.channel.down()].into_iter().flatten() {
            self.watch.forget(fd);
        }
        child.output.drain(&mut self.buffer, self.echo.as_ref());
        let told = child.life.told_to_end();
        for heard in child.channel.drain(&mut self.buffer, told) {
            self.heard(&mut child, &heard);
        }
        let Survivors { unknown, out_of_reach, .. } = &child.survivors;
        let left = [remark::unknown(unknown), remark::out_of_reach(out_of_reach)];
        for remark in left.iter().flatten() {
            child.output.keep(format!("[warn] {remark}\n").as_bytes(), self.echo.as_ref());
        }
        child.group.reap();
        self.leaders.remove(&child.group.leader().as_raw_nonzero().get());
        if let Some(orphanage) = &mut self.orphanage {
            orphanage.reap(self.post.pid(), |pid| self.leaders.contains(&pid));
        }
        self.post.unregister(child.group.leader());
        let exit = child.exit.unwrap_or(Exit::Unknown);
        // Everything of the child is let go before its end is told.
        let Child { sink, output, group, channel, .. } = child;
        let end = channel.into_session().end(exit, told, &output.error_tail());
        let [unknown, out_of_reach] = &left;
        let end = remark::with(end, output.log_problem());
        let end = remark::with(end, unknown.as_deref());
        let end = remark::with_survivors(end, out_of_reach.as_deref());
        drop((output, group));
        if let Some(sink) = sink {
            report(&*sink, end);
        }
    }

    fn read(&mut self, id: ChildId, stream: Stream) {
        let Some(child) = self.children.get_mut(&id) else { return };
        let (state, some) = child.output.read(stream, &mut self.buffer, self.echo.as_ref());
        if state == State::Ended {
            // A child that is just being started may share the pipe for a moment, so that closing it does
            // not end the watch.
            if let Some(fd) = child.output.descriptor(stream) {
                self.watch.forget(fd);
            }
            child.output.close(stream);
        }
        // After hello only a checkpoint counts.
        let counts = some && !child.channel.session().takes_part();
        if counts && child.launched && child.output.is_activity(Instant::now()) {
            child.report(Report::Activity);
        }
    }

    /// Reads what a child says by the task protocol.
    fn listen(&mut self, id: ChildId) {
        // Taken out for the moment, so that both it and the reactor can be used.
        let Some(mut child) = self.children.remove(&id) else { return };
        let said = child.channel.read(&mut self.buffer, child.life.told_to_end());
        if said.is_none() {
            if let Some(up) = child.channel.up() {
                self.watch.forget(up);
            }
            child.channel.close_up();
        }
        let said = said.unwrap_or_default();
        for heard in &said {
            self.heard(&mut child, heard);
        }
        self.children.insert(id, child);
        for heard in said {
            match heard {
                Heard::Hello { stop, pause } => self.happened(id, Event::Hello { stop, pause }),
                Heard::Foreign => self.happened(id, Event::Foreign),
                Heard::Paused { epoch } => self.happened(id, Event::SaidPaused { epoch }),
                Heard::Activity | Heard::Progress(_) | Heard::Log(_) => {}
            }
        }
    }

    /// What needs no decision.
    fn heard(&self, child: &mut Child, heard: &Heard) {
        match heard {
            Heard::Log(line) => child.output.keep(line.as_bytes(), self.echo.as_ref()),
            // Only a program that serves a task has not been reported yet.
            Heard::Hello { .. } if !mem::replace(&mut child.launched, true) => {
                child.report(Report::Launched);
            }
            _ if !child.launched => {}
            Heard::Activity => {
                if child.output.is_activity(Instant::now()) {
                    child.report(Report::Activity);
                }
            }
            Heard::Progress(progress) => child.report(Report::Progress(progress.clone())),
            Heard::Hello { .. } | Heard::Paused { .. } | Heard::Foreign => {}
        }
    }

    fn flush(&mut self, id: ChildId) {
        let Some(child) = self.children.get_mut(&id) else { return };
        if child.channel.flush() == Pending::Nothing
            && let Some(down) = child.channel.down()
        {
            self.watch.forget(down);
        }
    }

    fn fire_timers(&mut self) {
        while let Some(Reverse((at, id))) = self.timers.peek().copied() {
            if at > Instant::now() {
                break;
            }
            self.timers.pop();
            if id == GUARDIAN_TIMER {
                self.fill_post();
                continue;
            }
            let Some(child) = self.children.get_mut(&id) else { continue };
            if child.tick_at == Some(at) {
                child.tick_at = None;
                // Its end, if it came, is told first.
                self.look_at_leader(id);
                self.happened(id, Event::Tick);
            }
        }
    }

    fn time_to_next_timer(&self) -> Option<Timespec> {
        let Reverse((at, _)) = self.timers.peek()?;
        Timespec::try_from(at.saturating_duration_since(Instant::now())).ok()
    }

    /// Has the guardian's post filled, now or when that may be tried again.
    fn fill_post(&mut self) {
        if self.closing {
            return;
        }
        let groups = self.children.values().map(|child| (&child.group, child.pipe));
        let again = self.post.fill(groups, &self.watch);
        self.timers.extend(again.map(|at| Reverse((at, GUARDIAN_TIMER))));
    }
}

/// Stands for the guardian among the timers; no child has it.
const GUARDIAN_TIMER: ChildId = 0;

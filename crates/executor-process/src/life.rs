//! The life of one child as a pure state machine: events and the time in, acts out.
//!
//! It makes no system call; the reactor carries out what it answers.

use std::time::{Duration, Instant};

use rustix::process::Signal as Posix;

#[cfg(test)]
mod tests;

/// Longest time that what is left of a group gets when its leader has ended.
const LEFT_OVER_GRACE: Duration = Duration::from_secs(1);
/// First and longest time between two looks at a group that should become empty.
const EMPTY_LOOK: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(50));
/// First time between two looks at a leader that should stop; it doubles with each.
const STOPPED_LOOK: Duration = Duration::from_millis(1);
/// When that time would grow beyond this, the group is continued for a moment and suspended again. A leader
/// that waits for the first step of a child of its own (`vfork`) cannot stop before that child, if the signal
/// met both in that moment, is continued.
const STOP_AGAIN: Duration = Duration::from_millis(16);
/// Longest time that a program which is to serve a task may take to say so.
pub(crate) const HELLO_LIMIT: Duration = Duration::from_secs(30);

/// What happens to a child. The reactor looks whether the leader has ended before it passes on a request,
/// and tells that first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It runs.
    Started,
    /// It shall end.
    Stop,
    /// It shall end at once.
    Kill,
    /// It shall be suspended.
    Pause {
        /// The number of the pause.
        epoch: u64,
    },
    /// It shall go on.
    Resume,
    /// By the task protocol: it does these by itself from now on.
    Hello {
        /// A stop.
        stop: bool,
        /// A pause.
        pause: bool,
    },
    /// By the task protocol: it speaks another version, and so is of no use.
    Foreign,
    /// By the task protocol: it has suspended itself.
    SaidPaused {
        /// For this pause; `None` = for the latest.
        epoch: Option<u64>,
    },
    /// The leader has ended.
    LeaderEnded,
    /// Answer to [`Act::LookWhetherStopped`].
    Stopped(bool),
    /// Answer to [`Act::LookWhatIsLeft`].
    Left(Left),
    /// The time asked for by [`Act::WakeAt`] has come.
    Tick,
}

/// What is left of a child whose leader has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing.
    Nothing,
    /// Something that we may signal.
    Some,
    /// Only what we may not signal.
    OutOfReach,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Signal the whole group.
    Signal(Posix),
    /// By the task protocol: tell it to end.
    TellStop,
    /// By the task protocol: tell it to suspend itself.
    TellPause {
        /// The number of the pause.
        epoch: u64,
    },
    /// By the task protocol: tell it to go on.
    TellResume,
    /// See whether the leader is stopped.
    LookWhetherStopped,
    /// See what is left.
    LookWhatIsLeft,
    /// It should be gone by now: see whether the leader is one that we may not signal, and tell that.
    TellIfOutOfReach,
    /// Tick at this time; replaces an earlier one.
    WakeAt(Instant),
    /// The pause with this number is reached.
    Paused {
        /// The number.
        epoch: u64,
    },
    /// Nothing is left that can be ended: report the end.
    End,
}

/// One child's state.
#[derive(Debug)]
pub(crate) struct Life {
    left_over_grace: Duration,
    phase: Phase,
    told_to_end: bool,
    killing: bool,
    /// When it is killed unless it has said hello by then.
    hello_by: Option<Instant>,
    /// When it is killed for being of no use.
    foreign_until: Option<Instant>,
    handles_stop: bool,
    handles_pause: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Suspended, but the leader has not stopped yet.
    Stopping {
        epoch: u64,
        wait: Duration,
    },
    /// Continued for a moment, to be suspended again.
    Loosened {
        epoch: u64,
    },
    Stopped,
    /// By the task protocol: asked to suspend itself.
    Asked {
        epoch: u64,
    },
    /// By the task protocol: it has.
    Obeying,
    LeftOvers {
        told: bool,
        /// So long it may take to end by itself. What we may not signal has that time even where the rest is killed:
        /// it may be about to end, or to become one that we may.
        until: Instant,
        wait: Duration,
    },
    Ended,
}

impl Life {
    /// A child that was just started; `grace` is its command's.
    pub(crate) fn new(grace: Duration) -> Self {
        Self {
            left_over_grace: grace.min(LEFT_OVER_GRACE),
            phase: Phase::Running,
            told_to_end: false,
            killing: false,
            hello_by: None,
            foreign_until: None,
            handles_stop: false,
            handles_pause: false,
        }
    }

    /// The same for a program that is to serve a task: it must say so in time, and then stops and pauses by
    /// itself.
    pub(crate) fn of_server(grace: Duration, now: Instant) -> Self {
        Self {
            hello_by: Some(now + HELLO_LIMIT),
            handles_stop: true,
            handles_pause: true,
            ..Self::new(grace)
        }
    }

    /// Was it told to end while its leader lived?
    pub(crate) const fn told_to_end(&self) -> bool {
        self.told_to_end
    }

    /// One step. What is to be done is added to `acts`, in order.
    pub(crate) fn on(&mut self, event: Event, now: Instant, acts: &mut Vec<Act>) {
        match self.phase {
            Phase::Running
            | Phase::Stopping { .. }
            | Phase::Loosened { .. }
            | Phase::Stopped
            | Phase::Asked { .. }
            | Phase::Obeying => self.alive(event, now, acts),
            Phase::LeftOvers { told, until, wait } => {
                self.left_overs(event, now, (told, until, wait), acts);
            }
            Phase::Ended => {}
        }
    }

    fn alive(&mut self, event: Event, now: Instant, acts: &mut Vec<Act>) {
        match event {
            Event::Started => acts.extend(self.hello_by.map(Act::WakeAt)),
            Event::Stop => {
                self.told_to_end = true;
                self.phase = Phase::Running;
                let how = if self.handles_stop { Act::TellStop } else { Act::Signal(Posix::TERM) };
                // A suspended command does what it has to only when it is continued.
                acts.extend([how, Act::Signal(Posix::CONT)]);
            }
            Event::Kill => {
                self.told_to_end = true;
                self.phase = Phase::Running;
                self.kill(now, acts);
            }
            Event::Pause { .. } if self.told_to_end || self.foreign_until.is_some() => {}
            Event::Pause { epoch } if self.handles_pause && !self.is_suspended_by_signal() => {
                self.phase = Phase::Asked { epoch };
                acts.push(Act::TellPause { epoch });
            }
            Event::Pause { epoch } => self.suspend(epoch, acts),
            Event::Resume if self.told_to_end => {}
            Event::Resume => {
                let asked = matches!(self.phase, Phase::Asked { .. } | Phase::Obeying);
                self.phase = Phase::Running;
                acts.push(if asked { Act::TellResume } else { Act::Signal(Posix::CONT) });
            }
            Event::Foreign => {
                let kill_at = now + self.left_over_grace;
                self.foreign_until = Some(kill_at);
                self.phase = Phase::Running;
                acts.extend([
                    Act::Signal(Posix::TERM),
                    Act::Signal(Posix::CONT),
                    Act::WakeAt(kill_at),
                ]);
            }
            Event::Hello { stop, pause } => {
                self.hello_by = None;
                self.handles_stop = stop;
                self.handles_pause = pause;
            }
            Event::SaidPaused { epoch: said } => {
                let Phase::Asked { epoch } = self.phase else { return };
                if said.is_none_or(|said| said == epoch) {
                    self.phase = Phase::Obeying;
                    acts.push(Act::Paused { epoch });
                }
            }
            Event::LeaderEnded => {
                let until = now + self.left_over_grace;
                self.phase = Phase::LeftOvers { told: false, until, wait: EMPTY_LOOK.0 };
                acts.push(Act::LookWhatIsLeft);
            }
            Event::Stopped(reached) => {
                let Phase::Stopping { epoch, wait } = self.phase else { return };
                if reached {
                    self.phase = Phase::Stopped;
                    acts.push(Act::Paused { epoch });
                } else if wait < STOP_AGAIN {
                    self.phase = Phase::Stopping { epoch, wait: wait * 2 };
                    acts.push(Act::WakeAt(now + wait));
                } else {
                    self.phase = Phase::Loosened { epoch };
                    acts.extend([Act::Signal(Posix::CONT), Act::WakeAt(now + STOPPED_LOOK)]);
                }
            }
            Event::Tick => match self.phase {
                Phase::Stopping { .. } => acts.push(Act::LookWhetherStopped),
                Phase::Loosened { epoch } => self.suspend(epoch, acts),
                Phase::Running | Phase::Stopped | Phase::Asked { .. } | Phase::Obeying => {
                    if self.killing {
                        acts.push(Act::TellIfOutOfReach);
                    } else if [self.hello_by, self.foreign_until]
                        .iter()
                        .flatten()
                        .any(|at| now >= *at)
                    {
                        self.kill(now, acts);
                    }
                }
                Phase::LeftOvers { .. } | Phase::Ended => {}
            },
            // The leader's end is still to come.
            Event::Left(_) => {}
        }
    }

    const fn is_suspended_by_signal(&self) -> bool {
        match self.phase {
            Phase::Stopping { .. } | Phase::Loosened { .. } | Phase::Stopped => true,
            Phase::Running
            | Phase::Asked { .. }
            | Phase::Obeying
            | Phase::LeftOvers { .. }
            | Phase::Ended => false,
        }
    }

    fn suspend(&mut self, epoch: u64, acts: &mut Vec<Act>) {
        self.phase = Phase::Stopping { epoch, wait: STOPPED_LOOK };
        acts.extend([Act::Signal(Posix::STOP), Act::LookWhetherStopped]);
    }

    fn left_overs(
        &mut self,
        event: Event,
        now: Instant,
        (told, until, wait): (bool, Instant, Duration),
        acts: &mut Vec<Act>,
    ) {
        match event {
            Event::Left(Left::Nothing) => self.end(acts),
            Event::Left(Left::OutOfReach) if now >= until => self.end(acts),
            Event::Left(Left::Some | Left::OutOfReach) => {
                self.killing |= now >= until;
                if self.killing {
                    acts.push(Act::Signal(Posix::KILL));
                } else if !told {
                    acts.extend([Act::Signal(Posix::TERM), Act::Signal(Posix::CONT)]);
                }
                let next = (wait * 2).min(EMPTY_LOOK.1);
                self.phase = Phase::LeftOvers { told: true, until, wait: next };
                let look_at = now + wait;
                acts.push(Act::WakeAt(if now >= until { look_at } else { look_at.min(until) }));
            }
            Event::Kill => {
                self.killing = true;
                acts.push(Act::LookWhatIsLeft);
            }
            Event::Tick => acts.push(Act::LookWhatIsLeft),
            // The leader's end decided already; the rest is being told to end.
            Event::Started
            | Event::Stop
            | Event::Pause { .. }
            | Event::Resume
            | Event::Hello { .. }
            | Event::Foreign
            | Event::SaidPaused { .. }
            | Event::LeaderEnded
            | Event::Stopped(_) => {}
        }
    }

    fn kill(&mut self, now: Instant, acts: &mut Vec<Act>) {
        self.killing = true;
        acts.extend([Act::Signal(Posix::KILL), Act::WakeAt(now + LEFT_OVER_GRACE)]);
    }

    fn end(&mut self, acts: &mut Vec<Act>) {
        self.phase = Phase::Ended;
        acts.push(Act::End);
    }
}

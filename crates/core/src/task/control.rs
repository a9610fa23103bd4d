//! The token through which a body learns that it is to pause or stop (spec 5 and 6).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::executor::Signal;
use crate::task::error::TaskError;
use crate::text::Text;

/// What the supervisor asks of one attempt, and what the body has seen of it.
#[derive(Default)]
pub struct Control {
    /// Anything asked? Lets a checkpoint in a hot loop cost one load.
    asked: AtomicBool,
    state: Mutex<Requests>,
    changed: Condvar,
}

#[derive(Default)]
struct Requests {
    stop: Option<Text>,
    stop_seen: bool,
    pause: Option<u64>,
    wakers: Vec<Waker>,
}

impl Control {
    /// Takes a signal in.
    pub fn signal(&self, signal: Signal) {
        let mut state = self.state();
        match signal {
            Signal::Stop { reason, .. } => state.stop = Some(reason),
            Signal::Kill => {
                state.stop.get_or_insert_with(|| "killed".into());
            }
            Signal::Pause { epoch } => state.pause = Some(epoch),
            Signal::Resume => state.pause = None,
        }
        self.asked.store(state.stop.is_some() || state.pause.is_some(), Ordering::Release);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Was a stop asked for? The body counts as having seen it then.
    pub fn is_stop_requested(&self) -> bool {
        self.asked.load(Ordering::Acquire) && {
            let mut state = self.state();
            state.stop_seen |= state.stop.is_some();
            state.stop_seen
        }
    }

    /// Is a pause asked for?
    pub fn is_pause_requested(&self) -> bool {
        self.asked.load(Ordering::Acquire) && self.state().pause.is_some()
    }

    /// Has the body learned of a stop, by a checkpoint or by asking?
    pub(crate) fn stop_was_seen(&self) -> bool {
        self.state().stop_seen
    }

    /// Returns at once when nothing is asked, waits out a pause, and is an interruption on a stop.
    /// `paused` is told each pause that is reached, by its epoch.
    pub(crate) fn checkpoint(&self, paused: impl Fn(u64)) -> Result<(), TaskError> {
        if !self.asked.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut told = None;
        let mut state = self.state();
        loop {
            match state.step(&mut told) {
                Step::GoOn => return Ok(()),
                Step::Stop(error) => return Err(error),
                Step::Tell(epoch) => {
                    drop(state);
                    paused(epoch);
                    state = self.state();
                }
                Step::Wait => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// The same for an async body: pending while paused.
    pub(crate) fn poll_checkpoint(
        &self,
        context: &mut Context<'_>,
        told: &mut Option<u64>,
        paused: impl Fn(u64),
    ) -> Poll<Result<(), TaskError>> {
        let mut state = self.state();
        loop {
            match state.step(told) {
                Step::GoOn => return Poll::Ready(Ok(())),
                Step::Stop(error) => return Poll::Ready(Err(error)),
                Step::Tell(epoch) => {
                    drop(state);
                    paused(epoch);
                    state = self.state();
                }
                Step::Wait => {
                    if !state.wakers.iter().any(|waker| waker.will_wake(context.waker())) {
                        state.wakers.push(context.waker().clone());
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Waits until a stop or pause is asked for, or the time is over.
    pub(crate) fn wait_asked(&self, limit: Duration) {
        let until = Instant::now().checked_add(limit);
        let mut state = self.state();
        while state.stop.is_none() && state.pause.is_none() {
            state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return,
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn state(&self) -> MutexGuard<'_, Requests> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Step {
    GoOn,
    Stop(TaskError),
    Tell(u64),
    Wait,
}

impl Requests {
    fn step(&mut self, told: &mut Option<u64>) -> Step {
        if let Some(reason) = &self.stop {
            self.stop_seen = true;
            return Step::Stop(TaskError::interrupted(reason));
        }
        match self.pause {
            None => Step::GoOn,
            Some(epoch) if *told == Some(epoch) => Step::Wait,
            Some(epoch) => {
                *told = Some(epoch);
                Step::Tell(epoch)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn stop(reason: &str) -> Signal {
        Signal::Stop { reason: reason.into(), grace: Duration::ZERO }
    }

    #[test]
    fn a_stop_interrupts_and_is_seen() {
        let control = Control::default();
        assert!(control.checkpoint(|_| ()).is_ok());
        control.signal(stop("enough"));
        assert!(!control.stop_was_seen());
        let error = control.checkpoint(|_| ()).unwrap_err();
        assert!(error.is_interruption() && control.stop_was_seen());
        assert_eq!(error.to_string(), "interrupted: enough");
    }

    #[test]
    fn pause_resume_pause_is_told_each_time() {
        let control = Control::default();
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            control.signal(Signal::Pause { epoch: 1 });
            let body = scope.spawn(|| {
                while control.checkpoint(|epoch| tell.send(epoch).unwrap()).is_ok() {
                    std::thread::yield_now();
                }
            });
            assert_eq!(told.recv(), Ok(1));
            // Resumed and paused again before the body's thread looks: the second pause counts too.
            control.signal(Signal::Resume);
            control.signal(Signal::Pause { epoch: 2 });
            assert_eq!(told.recv(), Ok(2));
            control.signal(stop("done"));
            body.join().unwrap();
        });
    }
}

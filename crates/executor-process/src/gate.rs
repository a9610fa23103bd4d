//! The gate between those who signal an attempt and its child, which is yet to be started.

use std::mem;
use std::sync::Mutex;

use chongming_core::Signal;

use crate::child::NewChild;
use crate::mailbox::{ChildId, Letter, Mailbox, lock};
use crate::source::Watch;

/// Holds back signals until the child can take them.
pub(crate) struct Gate(Mutex<GateState>);

enum GateState {
    /// Not started yet; these came meanwhile.
    Early(Vec<Signal>),
    /// The reactor has it.
    Started,
    /// It never started.
    Over,
}

impl Gate {
    /// Closed.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(GateState::Early(Vec::new())))
    }

    /// Passes a signal on, or keeps it. Never blocks for long.
    pub(crate) fn signal(&self, id: ChildId, signal: Signal, mailbox: &Mailbox) {
        match &mut *lock(&self.0) {
            GateState::Early(kept) => kept.push(signal),
            GateState::Started => mailbox.send(Letter::Signal(id, signal)),
            GateState::Over => {}
        }
    }

    /// Was it told to end already? Then it never starts.
    pub(crate) fn is_over_before_start(&self) -> bool {
        let mut state = lock(&self.0);
        let told = matches!(&*state, GateState::Early(kept)
            if kept.iter().any(|s| matches!(s, Signal::Stop { .. } | Signal::Kill)));
        if told {
            *state = GateState::Over;
        }
        told
    }

    /// There is nothing to pass signals on to.
    pub(crate) fn never_started(&self) {
        *lock(&self.0) = GateState::Over;
    }

    /// Hands the child over, with what was kept. The lock keeps later signals behind it.
    pub(crate) fn started(&self, child: NewChild, watch: &Watch, mailbox: &Mailbox) {
        let mut state = lock(&self.0);
        if let GateState::Early(kept) = mem::replace(&mut *state, GateState::Started) {
            mailbox.hand_over(child, kept, |child| child.watch(watch));
        }
    }
}

//! What the node thread is to see to: bells, receipts to write, and its end.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::id::CommandId;
use crate::scheduler::Reply;

#[derive(Default)]
pub(super) struct Inbox {
    mail: Mutex<Mail>,
    arrived: Condvar,
}

#[derive(Default)]
struct Mail {
    rung: bool,
    over: bool,
    answers: Vec<(CommandId, Reply)>,
}

/// What woke the node thread.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) answers: Vec<(CommandId, Reply)>,
    pub(super) over: bool,
}

impl Inbox {
    /// Commands may have come in.
    pub(super) fn ring(&self) {
        self.mail().rung = true;
        self.arrived.notify_one();
    }

    /// What became of a command.
    pub(super) fn answer(&self, id: CommandId, reply: Reply) {
        self.mail().answers.push((id, reply));
        self.arrived.notify_one();
    }

    /// The node thread is to end.
    pub(super) fn end(&self) {
        self.mail().over = true;
        self.arrived.notify_one();
    }

    /// Waits for mail, at most this long.
    pub(super) fn wait(&self, limit: Duration) -> Delivery {
        let mail = self.mail();
        let is_empty = |mail: &mut Mail| !mail.rung && !mail.over && mail.answers.is_empty();
        let waited = self.arrived.wait_timeout_while(mail, limit, is_empty);
        let mut mail = waited.unwrap_or_else(PoisonError::into_inner).0;
        mail.rung = false;
        Delivery { answers: std::mem::take(&mut mail.answers), over: mail.over }
    }

    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

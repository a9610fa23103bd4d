//! Supervisors: started, watched, frozen, killed.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::Monkey;
use crate::body::KINDS;
use crate::history::{Freeze, Micros, Span, Supervisor};
use crate::marks::now;

/// A supervisor that was started and not seen to end.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) record: Supervisor,
    seen_alive: Micros,
    frozen: Option<Frozen>,
    pub(super) is_node: bool,
}

struct Frozen {
    from: Micros,
    stopped: Micros,
    thaw_at: Instant,
    /// It holds the lock with which the file of the store is written.
    holds_lock: bool,
}

impl Monkey {
    pub(super) fn look_at_supervisors(&mut self) -> Result<(), String> {
        for mut running in std::mem::take(&mut self.running) {
            let at = now();
            match running.child.try_wait() {
                Ok(Some(status)) => {
                    running.record.claims_success =
                        status.code() == Some(0) && running.record.task.is_some();
                    let seen = running.seen_alive;
                    self.gone(running, seen);
                }
                Ok(None) => {
                    running.seen_alive = at;
                    self.running.push(running);
                }
                Err(error) => return Err(format!("a supervisor: {error}")),
            }
        }
        Ok(())
    }

    fn gone(&mut self, mut running: Running, at: Micros) {
        if let Some(Frozen { from, stopped, holds_lock, .. }) = running.frozen {
            if holds_lock {
                self.history.locked.push(Span { from, to: now() });
            }
            running.record.frozen.push(Freeze { from, stopped, waking: at, to: now() });
        }
        running.record.life.to = at;
        self.history.supervisors.push(running.record);
    }

    /// Ends it at once.
    pub(super) fn end(&mut self, mut running: Running) {
        let at = now();
        running.record.was_killed = true;
        let _ = running.child.kill();
        let _ = running.child.wait();
        self.gone(running, at);
    }

    /// Starts one more.
    pub(super) fn supervise(&mut self) -> Result<(), String> {
        self.numbers += 1;
        let number = self.numbers;
        let adopt = if self.random.within(0, 2) == 0 { self.adoptable.pop() } else { None };
        let adopt = adopt.and_then(|id| Some((self.name_of(&id)?, id)));
        let ms = self.random.within(0, 2000).to_string();
        let argument = format!("ms={ms}");
        let from = now();
        let (child, task, is_node) = if let Some((name, id)) = adopt {
            self.note("adopt", &format!("{id} by {number}"));
            let words = ["run", name, "--id", &id, "--arg", &argument];
            (self.programs.supervise(number, &words)?, Some(id.clone()), false)
        } else {
            match self.random.weighted(&[6, 2, 2]) {
                0 => {
                    let name = self.random.pick(KINDS).copied().unwrap_or("quick");
                    let id = format!("r{number}");
                    self.names.insert(id.clone(), name);
                    self.note("run", &format!("{id} {name}"));
                    let words = ["run", name, "--id", &id, "--arg", &argument];
                    (self.programs.supervise(number, &words)?, Some(id), false)
                }
                1 => {
                    let id = format!("p{number}");
                    self.note("pipeline", &id);
                    let words = ["pipeline", "chain", "--id", &id];
                    (self.programs.supervise(number, &words)?, None, false)
                }
                _ => {
                    self.note("node", &number.to_string());
                    let seed = self.random.next();
                    (self.programs.node(number, seed)?, None, true)
                }
            }
        };
        let record = Supervisor {
            number,
            pid: child.id(),
            task,
            life: Span { from, to: Micros::MAX },
            was_killed: false,
            claims_success: false,
            frozen: Vec::new(),
        };
        self.running.push(Running { child, record, seen_alive: from, frozen: None, is_node });
        Ok(())
    }

    /// The definition of a task that a command line could take over.
    fn name_of(&self, id: &str) -> Option<&'static str> {
        match id.split_once(':') {
            Some((_, "a")) => Some("quick"),
            Some((_, "b")) => Some("slow"),
            Some((_, "c")) => Some("flaky"),
            Some((_, "d")) => Some("family"),
            Some(_) => None,
            None => self.names.get(id).copied(),
        }
    }

    fn victim(&mut self) -> Option<usize> {
        let count = self.running.len() as u64;
        (count > 0).then(|| self.random.within(0, count) as usize)
    }

    pub(super) fn kill(&mut self) {
        if let Some(i) = self.victim() {
            let running = self.running.swap_remove(i);
            self.note("kill", &running.record.number.to_string());
            self.end(running);
        }
    }

    pub(super) fn terminate(&mut self) {
        if let Some(running) = self.victim().and_then(|i| self.running.get(i)) {
            let number = running.record.number.to_string();
            if !running.is_node && running.frozen.is_none() {
                signal(&running.child, Signal::TERM);
                self.note("terminate", &number);
            }
        }
    }

    pub(super) fn freeze(&mut self) {
        let lease = self.programs.lease.as_millis() as u64;
        let long = self.random.within(0, 3) > 0;
        let ms = if long {
            self.random.within(lease * 5 / 4, lease * 9 / 4)
        } else {
            self.random.within(1, lease)
        };
        let Some(i) = self.victim() else { return };
        let Some(running) = self.running.get_mut(i).filter(|r| r.frozen.is_none()) else {
            return;
        };
        let from = now();
        signal(&running.child, Signal::STOP);
        await_stop(&running.child);
        let thaw_at = Instant::now() + Duration::from_millis(ms);
        let (stopped, pid) = (now(), running.child.id());
        let holds_lock = self.programs.database.is_locked_by(pid);
        running.frozen = Some(Frozen { from, stopped, thaw_at, holds_lock });
        let detail = format!("{} for {ms} ms", running.record.number);
        self.note("freeze", &detail);
    }

    /// Thaws those whose time has come.
    pub(super) fn thaw_what_is_due(&mut self) {
        for i in 0..self.running.len() {
            let frozen = self.running.get(i).and_then(|running| running.frozen.as_ref());
            if frozen.is_some_and(|frozen| frozen.thaw_at <= Instant::now()) {
                self.thaw(i);
            }
        }
    }

    pub(super) fn thaw(&mut self, i: usize) {
        let Some(running) = self.running.get_mut(i) else { return };
        let Some(Frozen { from, stopped, holds_lock, .. }) = running.frozen.take() else {
            return;
        };
        if holds_lock {
            self.history.locked.push(Span { from, to: now() });
        }
        let waking = now();
        signal(&running.child, Signal::CONT);
        running.record.frozen.push(Freeze { from, stopped, waking, to: now() });
        let number = running.record.number.to_string();
        self.note("thaw", &number);
    }
}

/// Waits until it has stopped, or ended.
fn await_stop(child: &Child) {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else { return };
    let events = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), events) {}
}

pub(super) fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        // It is our child and not waited for, so its number is still its own.
        let _ = kill_process(pid, signal);
    }
}

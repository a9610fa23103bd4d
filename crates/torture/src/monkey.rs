//! The monkey: keeps supervisors running, and does to them what machines, people and accidents do. It
//! remembers who lived when, and when nobody could write.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use chongming_test_postgres::{Server, Stop};
use rustix::process::{Pid, Signal, kill_process};

use crate::body::KINDS;
use crate::disk::SmallDisk;
use crate::history::{Answer, History, Micros, Moment, Span, Supervisor};
use crate::marks::now;
use crate::programs::Programs;
use crate::random::Random;

/// Commands under way at once.
const MOST_COMMANDS: usize = 6;
/// Between two outages: what an outage excuses should be the exception.
const MENDED_FOR: Micros = 20_000_000;
/// How long an act may take that ends by itself.
const PATIENCE: Duration = Duration::from_secs(120);
/// Tasks at work, to pick from: the latest that began.
const LATELY: usize = 10;

/// What can be taken from all supervisors at once.
pub(crate) enum Outage {
    Disk(SmallDisk),
    Server(Server),
    /// Nothing that we may break.
    Nothing,
}

/// A supervisor that was started and not seen to end.
struct Running {
    child: Child,
    record: Supervisor,
    seen_alive: Micros,
    frozen_at: Option<Micros>,
    thaw_at: Option<Instant>,
    is_node: bool,
}

/// A command under way.
struct Asked {
    child: Child,
    name: String,
    /// What it asked for, if it changes a task.
    reason: Option<String>,
    reconciles: bool,
}

pub(crate) struct Monkey {
    programs: Programs,
    random: Random,
    outage: Outage,
    /// Since when the store is out of order, and until when it stays so.
    broken: Option<(Micros, Instant)>,
    running: Vec<Running>,
    asked: Vec<Asked>,
    /// The definition of each task that a command line ran.
    names: BTreeMap<String, &'static str>,
    /// What reconcile found to be taken over.
    adoptable: Vec<String>,
    /// Tasks whose bodies began and did not say that they ended, the latest ones.
    at_work: VecDeque<String>,
    began: usize,
    numbers: u32,
    acts: BTreeMap<&'static str, u32>,
    log: File,
    /// What it knows, for the referee.
    pub(crate) history: History,
}

impl Monkey {
    pub(crate) fn new(programs: Programs, seed: u64, outage: Outage) -> Result<Self, String> {
        let log = File::create(programs.folder.join("monkey.log")).map_err(|e| e.to_string())?;
        let lease = Micros::try_from(programs.lease.as_micros()).unwrap_or(Micros::MAX);
        Ok(Self {
            programs,
            random: Random::new(seed),
            outage,
            broken: None,
            running: Vec::new(),
            asked: Vec::new(),
            names: BTreeMap::new(),
            adoptable: Vec::new(),
            at_work: VecDeque::new(),
            began: 0,
            numbers: 0,
            acts: BTreeMap::new(),
            log,
            history: History { lease, ..History::default() },
        })
    }

    /// Acts for this long, with so many supervisors at once.
    pub(crate) fn act(&mut self, duration: Duration, supervisors: usize) -> Result<(), String> {
        let until = Instant::now() + duration;
        while Instant::now() < until {
            self.look()?;
            while self.running.len() < supervisors {
                self.supervise()?;
            }
            self.mischief()?;
            self.pause();
        }
        Ok(())
    }

    /// Lets everything come to its end: no more mischief.
    pub(crate) fn finish(&mut self) -> Result<(), String> {
        self.mend()?;
        for i in 0..self.running.len() {
            self.thaw(i);
        }
        let stop = self.programs.folder.join(crate::node::STOP);
        File::create(stop).map_err(|error| error.to_string())?;
        let (gentle, last) = (Instant::now() + Duration::from_secs(3), Instant::now() + PATIENCE);
        let mut is_told = false;
        while !(self.running.is_empty() && self.asked.is_empty()) {
            self.look()?;
            if Instant::now() > gentle && !is_told {
                // Paused tasks, for example, do not end by themselves.
                is_told = true;
                self.running
                    .iter()
                    .filter(|r| !r.is_node)
                    .for_each(|r| signal(&r.child, Signal::TERM));
            }
            if Instant::now() > last {
                let stuck = self.running.iter().map(|r| format!("supervisor {}", r.record.number));
                let stuck: Vec<_> =
                    stuck.chain(self.asked.iter().map(|a| format!("command {}", a.name))).collect();
                self.history.stuck.extend(stuck);
                for running in std::mem::take(&mut self.running) {
                    self.gone(running, now(), false, true);
                }
                for mut asked in std::mem::take(&mut self.asked) {
                    let _ = asked.child.kill();
                    let _ = asked.child.wait();
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// What it did, how often.
    pub(crate) fn acts(&self) -> String {
        let acts: Vec<_> = self.acts.iter().map(|(act, times)| format!("{act} {times}")).collect();
        acts.join(", ")
    }

    fn note(&mut self, act: &'static str, detail: &str) {
        *self.acts.entry(act).or_default() += 1;
        let elapsed = now();
        // The log is for people; without it the run is as good.
        let _ = writeln!(self.log, "{elapsed} {act} {detail}");
    }

    fn pause(&mut self) {
        let planned = Duration::from_millis(self.random.within(10, 150));
        let (from, started) = (now(), Instant::now());
        thread::sleep(planned);
        if started.elapsed() > planned + self.programs.lease / 4 {
            // Nobody can be held to a lease on a machine that stands still.
            self.note("stall", "");
            self.history.outages.push(Span { from, to: now() });
        }
    }

    /// Sees who has ended, what commands said, which tasks began, and what is due.
    fn look(&mut self) -> Result<(), String> {
        for mut running in std::mem::take(&mut self.running) {
            let at = now();
            match running.child.try_wait() {
                Ok(Some(status)) => {
                    let claims = status.code() == Some(0) && running.record.task.is_some();
                    let seen = running.seen_alive;
                    self.gone(running, seen, claims, false);
                }
                Ok(None) => {
                    running.seen_alive = at;
                    self.running.push(running);
                }
                Err(error) => return Err(format!("a supervisor: {error}")),
            }
        }
        for mut asked in std::mem::take(&mut self.asked) {
            match asked.child.try_wait() {
                Ok(Some(_)) => self.told(&asked),
                Ok(None) => self.asked.push(asked),
                Err(error) => return Err(format!("a command: {error}")),
            }
        }
        let marks = crate::marks::read(&self.programs.folder)?;
        for mark in marks.iter().skip(self.began) {
            self.at_work.retain(|task| *task != mark.task);
            if matches!(mark.what, Moment::Begin | Moment::BeginBeside) {
                self.at_work.push_back(mark.task.clone());
            }
            if self.at_work.len() > LATELY {
                self.at_work.pop_front();
            }
        }
        self.began = marks.len();
        for i in 0..self.running.len() {
            let thaw_at = self.running.get(i).and_then(|running| running.thaw_at);
            if thaw_at.is_some_and(|at| at <= Instant::now()) {
                self.thaw(i);
            }
        }
        if self.broken.is_some_and(|(_, until)| until <= Instant::now()) {
            self.mend()?;
        }
        Ok(())
    }

    fn told(&mut self, asked: &Asked) {
        let said = self.programs.output_of(&asked.name);
        let Ok(serde_json::Value::Array(items)) = serde_json::from_str(&said) else { return };
        for item in items {
            let text = |key: &str| item.get(key).and_then(|value| value.as_str()).unwrap_or("");
            if let Some(reason) = &asked.reason {
                let accepted = item.get("accepted").and_then(serde_json::Value::as_bool);
                // It came to its end otherwise, after it had been asked: that is an effect, too.
                let accepted = accepted != Some(false) || text("result").contains("already ended");
                self.history.answers.push(Answer { reason: reason.clone(), accepted });
            }
            if asked.reconciles && text("outcome") == "adoptable" {
                let id = text("task_id").to_owned();
                if !self.adoptable.contains(&id) {
                    self.adoptable.push(id);
                }
            }
        }
    }

    fn gone(&mut self, mut running: Running, at: Micros, claims_success: bool, kill: bool) {
        if kill {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
        if let Some(from) = running.frozen_at {
            running.record.frozen.push(Span { from, to: now() });
        }
        running.record.life.to = at;
        running.record.claims_success = claims_success;
        self.history.supervisors.push(running.record);
    }

    /// Starts one more.
    fn supervise(&mut self) -> Result<(), String> {
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
            life: Span { from: now(), to: Micros::MAX },
            claims_success: false,
            frozen: Vec::new(),
        };
        let (frozen_at, thaw_at) = (None, None);
        self.running.push(Running { child, record, seen_alive: from, frozen_at, thaw_at, is_node });
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

    fn mischief(&mut self) -> Result<(), String> {
        match self.random.weighted(&[8, 3, 3, 1, 12, 4, 1]) {
            0 => {}
            1 => self.kill(),
            2 => self.freeze(),
            3 => self.terminate(),
            4 => self.control()?,
            5 => self.reconcile()?,
            _ => self.break_store()?,
        }
        Ok(())
    }

    fn victim(&mut self) -> Option<usize> {
        let count = self.running.len() as u64;
        (count > 0).then(|| self.random.within(0, count) as usize)
    }

    fn kill(&mut self) {
        if let Some(i) = self.victim() {
            let running = self.running.swap_remove(i);
            self.note("kill", &running.record.number.to_string());
            self.gone(running, now(), false, true);
        }
    }

    fn terminate(&mut self) {
        if let Some(running) = self.victim().and_then(|i| self.running.get(i)) {
            let number = running.record.number.to_string();
            if !running.is_node && running.frozen_at.is_none() {
                signal(&running.child, Signal::TERM);
                self.note("terminate", &number);
            }
        }
    }

    fn freeze(&mut self) {
        let lease = self.programs.lease.as_millis() as u64;
        let long = self.random.within(0, 3) > 0;
        let ms = if long {
            self.random.within(lease * 5 / 4, lease * 9 / 4)
        } else {
            self.random.within(1, lease)
        };
        let Some(i) = self.victim() else { return };
        let Some(running) = self.running.get_mut(i).filter(|r| r.frozen_at.is_none()) else {
            return;
        };
        running.frozen_at = Some(now());
        running.thaw_at = Some(Instant::now() + Duration::from_millis(ms));
        signal(&running.child, Signal::STOP);
        let detail = format!("{} for {ms} ms", running.record.number);
        self.note("freeze", &detail);
    }

    fn thaw(&mut self, i: usize) {
        let Some(running) = self.running.get_mut(i) else { return };
        running.thaw_at = None;
        let Some(from) = running.frozen_at.take() else { return };
        signal(&running.child, Signal::CONT);
        running.record.frozen.push(Span { from, to: now() });
        let number = running.record.number.to_string();
        self.note("thaw", &number);
    }

    fn control(&mut self) -> Result<(), String> {
        let verb = ["stop", "pause", "pause", "pause", "resume", "resume", "cancel"];
        let verb = self.random.pick(&verb).copied().unwrap_or("pause");
        let at_work = self.at_work.make_contiguous();
        let Some(id) = self.random.pick(at_work).cloned() else { return Ok(()) };
        let waits = self.random.within(0, 2) == 0;
        if self.asked.len() >= MOST_COMMANDS {
            return Ok(());
        }
        self.numbers += 1;
        let name = format!("c{}", self.numbers);
        let mut words = vec![verb, &id, "--reason", &name];
        if waits {
            words.extend(["--wait", "3s"]);
        }
        let child = self.programs.ask(&name, &words)?;
        self.note(verb, &format!("{id} as {name}"));
        self.asked.push(Asked { child, reason: Some(name.clone()), name, reconciles: false });
        Ok(())
    }

    fn reconcile(&mut self) -> Result<(), String> {
        let places = self.random.within(1, 4);
        for _ in 0..places {
            if self.asked.len() < MOST_COMMANDS {
                self.numbers += 1;
                let name = format!("c{}", self.numbers);
                let child = self.programs.ask(&name, &["reconcile", "--reason", "the monkey"])?;
                self.note("reconcile", &name);
                self.asked.push(Asked { child, name, reason: None, reconciles: true });
            }
        }
        Ok(())
    }

    fn break_store(&mut self) -> Result<(), String> {
        let ms = self.random.within(50, 3500);
        let from = now();
        let is_too_soon = self.history.outages.last().is_some_and(|o| from < o.to + MENDED_FOR);
        if self.broken.is_some() || is_too_soon {
            return Ok(());
        }
        match &mut self.outage {
            Outage::Disk(disk) => {
                disk.fill()?;
                self.note("fill", &format!("for {ms} ms"));
            }
            Outage::Server(server) => {
                server.stop(Stop::Immediate);
                self.note("crash", &format!("for {ms} ms"));
            }
            Outage::Nothing => return Ok(()),
        }
        self.broken = Some((from, Instant::now() + Duration::from_millis(ms)));
        Ok(())
    }

    fn mend(&mut self) -> Result<(), String> {
        let Some((from, _)) = self.broken.take() else { return Ok(()) };
        match &mut self.outage {
            Outage::Disk(disk) => disk.empty()?,
            Outage::Server(server) => server.start()?,
            Outage::Nothing => {}
        }
        self.history.outages.push(Span { from, to: now() });
        self.note("mend", "");
        Ok(())
    }
}

impl Drop for Monkey {
    /// Nobody is left behind, whatever went wrong.
    fn drop(&mut self) {
        let supervisors = self.running.iter_mut().map(|running| &mut running.child);
        for child in supervisors.chain(self.asked.iter_mut().map(|asked| &mut asked.child)) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        // It is our child and not waited for, so its number is still its own.
        let _ = kill_process(pid, signal);
    }
}

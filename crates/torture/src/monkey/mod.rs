//! The monkey: keeps supervisors running, and does to them what machines, people and accidents do. It
//! remembers who lived when, and when nobody could write.

mod outage;
mod requests;
mod supervisors;

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::history::{History, Micros, Span};
use crate::marks::now;
use crate::programs::Programs;
use crate::random::Random;

pub(crate) use outage::Outage;
use requests::Asked;
use supervisors::{Running, signal};

/// How long an act may take that ends by itself.
const PATIENCE: Duration = Duration::from_secs(120);
/// Tasks at work, to pick from: the latest that began.
const LATELY: usize = 10;

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
                    self.end(running);
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
        // The log is for people; without it the run is as good.
        let _ = writeln!(self.log, "{} {act} {detail}", now());
    }

    fn pause(&mut self) {
        let planned = Duration::from_millis(self.random.within(10, 150));
        let (from, started) = (now(), Instant::now());
        thread::sleep(planned);
        if started.elapsed() > planned + self.programs.lease / 4 {
            // Nobody can be held to a lease on a machine that stands still.
            self.note("stall", "");
            self.history.stalls.push(Span { from, to: now() });
        }
    }

    /// Sees who has ended, what commands said, which tasks began, and what is due.
    fn look(&mut self) -> Result<(), String> {
        self.look_at_supervisors()?;
        self.look_at_requests()?;
        let marks = crate::marks::read(&self.programs.folder)?;
        for mark in marks.iter().skip(self.began) {
            self.at_work.retain(|task| *task != mark.task);
            if mark.is_begin() {
                self.at_work.push_back(mark.task.clone());
            }
            if self.at_work.len() > LATELY {
                self.at_work.pop_front();
            }
        }
        self.began = marks.len();
        self.thaw_what_is_due();
        if self.broken.is_some_and(|(_, until)| until <= Instant::now()) {
            self.mend()?;
        }
        Ok(())
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

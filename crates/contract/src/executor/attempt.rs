//! One launched attempt in the hands of a case: what happens to it, in one queue.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use chongming_core::{AttemptEnd, AttemptSink, Carrier, Report, Signal};

use super::bodies::WORD;
use crate::breach::{Breach, Outcome};

/// What can happen to an attempt.
#[derive(Debug)]
pub(super) enum Event {
    /// Its executor reported this.
    Report(Report),
    /// Nobody holds its sink any more: nothing can be reported.
    Released,
    /// A body came.
    Came(Line),
    /// A body made a step.
    Step,
}

/// The line to a body; a body that waits there goes on when it is dropped.
#[derive(Debug)]
pub(super) struct Line(TcpStream);

impl Drop for Line {
    fn drop(&mut self) {
        // One that has gone does not mind.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

impl From<io::Error> for Breach {
    fn from(error: io::Error) -> Self {
        Self::of("the case itself", "a socket or file of this machine", error)
    }
}

/// Takes the reports of an attempt.
pub(super) struct Sink(pub(super) Sender<Event>);

impl AttemptSink for Sink {
    fn report(&self, report: Report) {
        // A case that has ended hears no more.
        let _ = self.0.send(Event::Report(report));
    }

    fn may_begin(&self) -> bool {
        true
    }
}

/// The sink of an attempt that may not begin.
pub(super) struct Forbidden(pub(super) Arc<dyn AttemptSink>);

impl AttemptSink for Forbidden {
    fn report(&self, report: Report) {
        self.0.report(report);
    }

    fn may_begin(&self) -> bool {
        false
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let _ = self.0.send(Event::Released);
    }
}

/// Where a body comes to; closed with its case.
pub(super) struct Door {
    pub(super) port: u16,
    is_closed: Arc<AtomicBool>,
}

impl Door {
    /// Opens one; what comes is sent there.
    pub(super) fn open(events: &Sender<Event>) -> Outcome<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let is_closed = Arc::new(AtomicBool::new(false));
        let (closed, events) = (Arc::clone(&is_closed), events.clone());
        thread::Builder::new().name("contract-door".into()).spawn(move || {
            for stream in listener.incoming() {
                if closed.load(Ordering::Acquire) {
                    return;
                }
                if let Ok(stream) = stream {
                    let _ = attend(stream, &events);
                }
            }
        })?;
        Ok(Self { port, is_closed })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.is_closed.store(true, Ordering::Release);
        // Wakes the thread that waits there.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

/// Tells what a body that came says, from a thread of its own.
fn attend(mut stream: TcpStream, events: &Sender<Event>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (line, events) = (Line(stream.try_clone()?), events.clone());
    thread::Builder::new().name("contract-guest".into()).spawn(move || {
        let mut word = [0_u8; WORD.len()];
        if stream.read_exact(&mut word).is_err() {
            return;
        }
        let _ = events.send(Event::Came(line));
        // It waits for this, so nothing that it does is heard of earlier.
        let _ = stream.write_all(WORD);
        while stream.read_exact(&mut word).is_ok() {
            let _ = events.send(Event::Step);
        }
    })?;
    Ok(())
}

/// An attempt that was launched.
pub(super) struct Attempt {
    carrier: Option<Arc<dyn Carrier>>,
    events: Receiver<Event>,
    body: Option<Line>,
    patience: Duration,
    is_over: bool,
    _door: Option<Door>,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        // A breach may leave it running.
        if !self.is_over {
            self.signal(Signal::Kill);
        }
    }
}

impl Attempt {
    pub(super) fn new(
        carrier: Arc<dyn Carrier>,
        events: Receiver<Event>,
        door: Option<Door>,
        patience: Duration,
    ) -> Self {
        Self { carrier: Some(carrier), events, body: None, patience, is_over: false, _door: door }
    }

    /// Passes a signal to its carrier.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(carrier) = &self.carrier {
            carrier.signal(signal);
        }
    }

    /// A stop for this reason.
    pub(super) fn stop(&self, reason: &str) {
        self.signal(Signal::Stop { reason: reason.into(), grace: Duration::from_secs(3600) });
    }

    /// When what must happen counts as not happening.
    fn limit(&self) -> Instant {
        Instant::now() + self.patience
    }

    /// The next that happens before this time.
    fn next(&mut self, awaited: &str, limit: Instant) -> Outcome<Event> {
        let left = limit.saturating_duration_since(Instant::now());
        let event = self.events.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected => {
                Breach::of("an attempt", awaited, "nothing of the kind in time")
            }
        })?;
        self.is_over |= matches!(event, Event::Report(Report::Ended(_)));
        Ok(event)
    }

    /// Goes on until something is found in what happens. An end that comes first is a breach.
    pub(super) fn until<T>(
        &mut self,
        awaited: &str,
        mut find: impl FnMut(&Event) -> Option<T>,
    ) -> Outcome<T> {
        let limit = self.limit();
        loop {
            let event = self.next(awaited, limit)?;
            if let Some(found) = find(&event) {
                return Ok(found);
            }
            match event {
                Event::Came(line) => self.body = Some(line),
                Event::Report(report @ (Report::Ended(_) | Report::LaunchFailed(_))) => {
                    return Err(Breach::of("an attempt", awaited, format_args!("{report:?}")));
                }
                Event::Released => return Err(Breach::of("an attempt", awaited, "no end at all")),
                Event::Report(_) | Event::Step => {}
            }
        }
    }

    /// Waits until its body has come.
    pub(super) fn body_comes(&mut self) -> Outcome {
        let limit = self.limit();
        while self.body.is_none() {
            match self.next("its body runs", limit)? {
                Event::Came(line) => self.body = Some(line),
                Event::Report(report @ (Report::Ended(_) | Report::LaunchFailed(_))) => {
                    let seen = format_args!("{report:?}");
                    return Err(Breach::of("an attempt", "its body runs", seen));
                }
                Event::Report(_) | Event::Step | Event::Released => {}
            }
        }
        Ok(())
    }

    /// Lets its body go on, by one step. One that has gone does not mind.
    pub(super) fn let_go(&mut self) {
        if let Some(body) = &mut self.body {
            let _ = body.0.write_all(WORD);
        }
    }

    /// Closes the line to its body, which ends a deaf one.
    pub(super) fn hang_up(&mut self) {
        self.body = None;
    }

    /// Lets its body go step by step until it has reached this pause.
    pub(super) fn steps_until_paused(&mut self, epoch: u64) -> Outcome {
        let limit = self.limit();
        while Instant::now() < limit {
            self.let_go();
            let paused = |event: &Event| match event {
                Event::Step => Some(false),
                Event::Report(_) | Event::Released | Event::Came(_) => {
                    event.is_paused(epoch).then_some(true)
                }
            };
            if self.until("it reaches the pause", paused)? {
                return Ok(());
            }
        }
        Err(Breach::of("an attempt", "it reaches the pause", "it goes on and on"))
    }

    /// Waits until it has reached this pause.
    pub(super) fn until_paused(&mut self, epoch: u64) -> Outcome {
        self.until("it reaches the pause", |event| event.is_paused(epoch).then_some(()))
    }

    /// Waits until its body makes a step.
    pub(super) fn until_step(&mut self) -> Outcome {
        let step = |event: &Event| matches!(event, Event::Step).then_some(());
        self.until("its body goes on", step)
    }

    /// Lets its body go step by step to its end.
    pub(super) fn steps_to_end(&mut self) -> Outcome<AttemptEnd> {
        let limit = self.limit();
        while Instant::now() < limit {
            self.let_go();
            if let Some(end) = self.end_or_step()? {
                return Ok(end);
            }
        }
        Err(Breach::of("an attempt", "it ends", "it goes on and on"))
    }

    /// Does its body make no step for this long?
    pub(super) fn stands_still(&mut self, moment: Duration) -> Outcome {
        let limit = Instant::now() + moment;
        loop {
            match self.next("it stands still", limit) {
                Ok(Event::Step) => {
                    return Err(Breach::of("a paused body", "it stands still", "a step"));
                }
                Ok(Event::Came(line)) => self.body = Some(line),
                Ok(Event::Report(_) | Event::Released) => {}
                Err(_) => return Ok(()),
            }
        }
    }

    /// An end that has been reported already.
    pub(super) fn already(&mut self) -> Option<Event> {
        self.events.try_iter().find(|event| {
            matches!(event, Event::Report(Report::Ended(_) | Report::LaunchFailed(_)))
        })
    }

    /// How it ended.
    pub(super) fn end(&mut self) -> Outcome<AttemptEnd> {
        loop {
            if let Some(end) = self.end_or_step()? {
                return Ok(end);
            }
        }
    }

    /// How it ended, or nothing when its body makes a step first.
    fn end_or_step(&mut self) -> Outcome<Option<AttemptEnd>> {
        let limit = self.limit();
        loop {
            match self.next("its end is reported", limit)? {
                Event::Report(Report::Ended(end)) => return Ok(Some(end)),
                Event::Report(Report::LaunchFailed(failure)) => {
                    return Err(Breach::of("an attempt", "it runs", failure));
                }
                Event::Released => {
                    return Err(Breach::of("an attempt", "its end is reported", "none, for ever"));
                }
                Event::Step => return Ok(None),
                Event::Came(line) => self.body = Some(line),
                Event::Report(_) => {}
            }
        }
    }

    /// Lets its carrier go, and returns all that is reported until nothing more can be.
    pub(super) fn reports(&mut self) -> Outcome<Vec<Report>> {
        Ok(self.rest()?.into_iter().filter_map(Event::report).collect())
    }

    /// Lets its carrier go, and returns all that happens until nothing more can be reported.
    pub(super) fn rest(&mut self) -> Outcome<Vec<Event>> {
        self.carrier = None;
        let mut events = Vec::new();
        let limit = self.limit();
        loop {
            match self.next("its sink is let go", limit)? {
                Event::Released => return Ok(events),
                event => events.push(event),
            }
        }
    }
}

impl Event {
    fn is_paused(&self, wanted: u64) -> bool {
        matches!(self, Self::Report(Report::Paused { epoch }) if *epoch == wanted)
    }

    fn report(self) -> Option<Report> {
        match self {
            Self::Report(report) => Some(report),
            Self::Released | Self::Came(_) | Self::Step => None,
        }
    }
}

//! What is taken from all supervisors at once.

use std::time::{Duration, Instant};

use chongming_test_postgres::{Server, Stop};

use super::Monkey;
use crate::disk::SmallDisk;
use crate::history::{Micros, Span};
use crate::marks::now;

/// Between two outages: what an outage excuses should be the exception.
const MENDED_FOR: Micros = 20_000_000;

/// What can be taken from all supervisors at once.
pub(crate) enum Outage {
    Disk(SmallDisk),
    Server(Server),
    /// Nothing that we may break.
    Nothing,
}

impl Monkey {
    pub(super) fn break_store(&mut self) -> Result<(), String> {
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

    pub(super) fn mend(&mut self) -> Result<(), String> {
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

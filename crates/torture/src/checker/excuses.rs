//! What the monkey's acts explain, each only for whom it struck and while it did.

use crate::history::{History, Mark, Micros, Row, Span, Supervisor, Task};

/// Between a decision and its row, or its effect, on a busy machine.
pub(super) const SLACK: Micros = 100_000;
/// How soon a holder that is awake, and has a store, has renewed its lease.
const WAKING: Micros = 500_000;
/// A lease is renewed this often within its time.
const BEATS: Micros = 8;
/// The pause between two tries grows as long as the outage, up to this.
const LONGEST_PAUSE: Micros = 1_000_000;
/// How long a program may take from its start to its first body.
const STARTING: Micros = 5_000_000;
/// Between two looks at who is alive.
const LOOKING: Micros = 300_000;

impl Span {
    const fn has(self, at: Micros) -> bool {
        self.from - SLACK <= at && at <= self.to + WAKING
    }

    /// An outage, with the time that a holder may need to find out that it is over.
    fn until_noticed(self) -> Self {
        Self { to: self.to + (self.to - self.from).min(LONGEST_PAUSE), ..self }
    }
}

impl History {
    /// The supervisor that held the task last.
    pub(super) fn holder(&self, task: &Task) -> Option<&Supervisor> {
        let node = self.nodes.get(task.supervisor.as_ref()?)?;
        let of_pid = self.supervisors.iter().filter(|s| s.pid == node.pid);
        of_pid.filter(|s| s.life.from <= node.started + SLACK).max_by_key(|s| s.life.from)
    }

    pub(super) fn supervisor_of(&self, mark: &Mark) -> Option<&Supervisor> {
        self.supervisors.iter().find(|s| s.number == mark.supervisor)
    }

    /// When this supervisor could not reach its store: it was frozen, or the machine stood still, or the store was
    /// out of order. Two of these without the time to renew the lease between them are one.
    fn cut_off(&self, supervisor: &Supervisor, more: Option<Span>) -> Vec<Span> {
        let outages = self.outages().map(Span::until_noticed);
        let mut spans: Vec<Span> =
            self.standstills(supervisor).chain(outages).chain(more).collect();
        spans.sort_by_key(|span| span.from);
        let mut joined: Vec<Span> = Vec::new();
        for span in spans {
            match joined.last_mut() {
                Some(last) if span.from <= last.to.saturating_add(WAKING) => {
                    last.to = last.to.max(span.to);
                }
                _ => joined.push(span),
            }
        }
        joined
    }

    /// Can a lease that was renewed in time have run out by then, and not have been renewed yet?
    fn can_lapse(&self, cut_off: Span, at: Micros) -> bool {
        let left = self.lease - self.lease / BEATS - SLACK;
        cut_off.from + left <= at + SLACK && at <= cut_off.to.saturating_add(WAKING)
    }

    /// Had this supervisor's lease possibly run out at this time? One that ends by itself gives it up.
    pub(super) fn may_have_lapsed(&self, supervisor: &Supervisor, at: Micros) -> bool {
        let gave_up = !supervisor.was_killed && supervisor.life.to - SLACK <= at;
        let dead =
            supervisor.was_killed.then_some(Span { from: supervisor.life.to, to: Micros::MAX });
        gave_up || self.cut_off(supervisor, dead).iter().any(|span| self.can_lapse(*span, at))
    }

    /// Did it stand still at this time, or a moment ago? Then what should have obeyed it had no time to.
    pub(super) fn has_just_woken(&self, supervisor: &Supervisor, at: Micros) -> bool {
        self.standstills(supervisor).any(|span| span.has(at))
    }

    /// When it was frozen, or the machine stood still.
    fn standstills(&self, supervisor: &Supervisor) -> impl Iterator<Item = Span> {
        let frozen = supervisor.frozen.iter().map(|f| Span { from: f.from, to: f.to });
        frozen.chain(self.stalls.iter().copied())
    }

    /// When the store could not be written.
    fn outages(&self) -> impl Iterator<Item = Span> {
        self.outages.iter().chain(&self.locked).copied()
    }

    /// An outage in which this time lies, until it may have been noticed that it was over.
    fn outage_at(&self, at: Micros) -> Option<Span> {
        self.outages().map(Span::until_noticed).find(|outage| outage.has(at))
    }

    /// Did it end while the store could not be written? It is seen a moment later.
    pub(super) fn ended_in_outage(&self, supervisor: &Supervisor) -> bool {
        let end = supervisor.life.to;
        self.outages().any(|o| o.from - LOOKING <= end && end <= o.to + SLACK)
    }

    /// Could the store not be written when this body began, and nobody write its start later: because the
    /// supervisor ended, or had lost the task to another, before it could reach the store again; or because it
    /// [had just come](Self::had_just_come)?
    pub(super) fn is_unwritten(&self, mark: &Mark, task: Option<&Task>) -> bool {
        let (Some(supervisor), Some(_)) = (self.supervisor_of(mark), self.outage_at(mark.began))
        else {
            return false;
        };
        let rows = task.map_or(&[][..], |task| &task.rows);
        let is_anothers = self.is_anothers(mark, task);
        let is_taking = |row: &Row| match row.trigger.as_str() {
            "recovery:lease_expired" => true,
            "recovery:adopted" => is_anothers,
            // Directly, as if it had not begun.
            "user:stop" | "user:cancel" => super::table::is_terminal(&row.to),
            _ => false,
        };
        let cut_off = self.cut_off(supervisor, None);
        let is_cut_short = cut_off.iter().filter(|span| span.has(mark.began)).any(|span| {
            let was_taken = rows.iter().any(|row| is_taking(row) && span.has(row.at));
            span.has(supervisor.life.to) || was_taken
        });
        is_cut_short || self.had_just_come(mark, task)
    }

    /// Does another supervisor hold the task in the end?
    fn is_anothers(&self, mark: &Mark, task: Option<&Task>) -> bool {
        let holder = task.and_then(|task| self.holder(task));
        holder.is_some_and(|holder| holder.number != mark.supervisor)
    }

    /// Did it begin while the store could not be reached, and had its supervisor just come? Then it may have begun
    /// under an id that, as it turned out, was another's.
    pub(super) fn had_just_come(&self, mark: &Mark, task: Option<&Task>) -> bool {
        let is_new = |s: &Supervisor| mark.began - s.life.from <= STARTING;
        self.is_anothers(mark, task)
            && mark.attempt == 1
            && self.outage_at(mark.began).is_some()
            && self.supervisor_of(mark).is_some_and(is_new)
    }

    /// Did it begin while the store could not be reached, and had the task ended since its supervisor had last
    /// reached it? Then it could not know.
    pub(super) fn could_not_know(&self, mark: &Mark, end: Micros) -> bool {
        let Some(supervisor) = self.supervisor_of(mark) else { return false };
        let cut_off = self.cut_off(supervisor, None);
        self.outage_at(mark.began).is_some()
            && cut_off.iter().any(|span| span.has(mark.began) && span.has(end))
    }

    /// Was its process frozen exactly between the question whether it may begin, which was asked before the task
    /// ended, and its first step? Apart from that freeze, next to no time passed.
    pub(super) fn stood_still_at_its_first_step(&self, mark: &Mark, end: Micros) -> bool {
        let Some(checked) = mark.checked.filter(|checked| *checked <= end) else { return false };
        let supervisor = self.supervisor_of(mark);
        supervisor.into_iter().flat_map(|s| &s.frozen).any(|freeze| {
            let is_between = checked <= freeze.stopped && freeze.waking <= mark.began;
            let awake = (freeze.from - checked).max(0) + (mark.began - freeze.to).max(0);
            is_between && awake <= SLACK
        })
    }

    /// The one exception: the earlier attempt's holder was cut off from the store, and its lease ran out, while
    /// another supervisor took the task over.
    pub(super) fn may_overlap(&self, one: &Mark, other: &Mark, task: Option<&Task>) -> bool {
        if one.supervisor == other.supervisor {
            return false;
        }
        let is_first = (one.attempt, one.began) <= (other.attempt, other.began);
        let (first, second) = if is_first { (one, other) } else { (other, one) };
        let Some(holder) = self.supervisor_of(first) else { return false };
        let cut_off = self.cut_off(holder, None);
        let rows = task.map_or(&[][..], |task| &task.rows);
        let was_taken = rows.iter().filter(|row| row.trigger == "recovery:adopted").any(|row| {
            let is_between = first.began <= row.at + SLACK && row.at <= second.began + SLACK;
            is_between && cut_off.iter().any(|span| self.can_lapse(*span, row.at))
        });
        was_taken || self.is_unwritten(first, task) || self.is_unwritten(second, task)
    }
}

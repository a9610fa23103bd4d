//! The contract itself is tested by stores that break one clause each: the case of that clause must notice.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use chongming_contract::{CLAUSES, Data, Fixture, run};
use chongming_core::store::*;
use chongming_core::{
    CommandId, InMemoryStore, IncarnationId, TaskId, TaskSnapshot, Timestamp, Transition, Value,
};

macro_rules! saboteurs {
    ($($fault:ident, $test:ident => $($clause:literal),+;)+) => {
        /// What a store does wrong.
        #[derive(Clone, Copy, Debug, PartialEq)]
        enum Fault { Nothing, $($fault,)+ }

        $(
            #[test]
            fn $test() {
                let broken = run(&Sabotaged(Fault::$fault)).broken();
                for clause in [$($clause),+] {
                    assert!(broken.contains(&clause), "{:?}: only {broken:?}", Fault::$fault);
                }
            }
        )+

        const CAUGHT: &[&str] = &[$($($clause,)+)+];
    };
}

saboteurs! {
    CreateDropsTrail, create_drops_trail => "create::brings_its_trail";
    CreateReplaces, create_replaces =>
        "create::taken_id_is_refused", "create::taken_in_the_same_batch";
    CreateKeepsHeartbeat, create_keeps_heartbeat => "create::leaves_side_channel";
    SaveDropsTrail, save_drops_trail => "save::moves_the_task";
    SaveIgnoresVersion, save_ignores_version =>
        "save::other_version_is_a_conflict", "concurrency::one_saver_wins";
    SaveWantsNextVersion, save_wants_next_version => "save::any_larger_version_will_do";
    SaveWritesProgress, save_writes_progress => "save::leaves_side_channel";
    SaveCreates, save_creates => "save::unknown_is_not_found";
    SaveKeepsLabel, save_keeps_label => "save::clears_fields";
    TouchForgetsHeartbeat, touch_forgets_heartbeat => "touch::changes_nothing_else";
    TouchMergesProgress, touch_merges_progress => "touch::replaces_progress_whole";
    TouchMovesVersion, touch_moves_version => "touch::changes_nothing_else";
    BatchStopsAtRefusal, batch_stops_at_refusal => "batch::one_result_each";
    NanBecomesNull, nan_becomes_null => "batch::what_json_cannot_say_stops_all";
    HistoryDescends, history_descends => "trail::ascends_whatever_came_first";
    HistoryIncludesAfter, history_includes_after => "trail::is_read_in_parts";
    HistoryIgnoresLimit, history_ignores_limit => "trail::is_read_in_parts";
    OldestFirst, oldest_first => "query::newest_created_first";
    AlwaysAnotherPage, always_another_page => "query::last_page_says_so";
    CursorsIgnored, cursors_ignored => "query::bad_requests_are_invalid";
    StatusesIgnored, statuses_ignored => "query::by_status";
    BucketsIgnored, buckets_ignored => "query::by_bucket";
    OneTagIsEnough, one_tag_is_enough => "query::by_tag";
    TextIgnored, text_ignored => "query::by_text";
    UnchangedIncludesTheTime, unchanged_includes_the_time => "query::by_time_without_change";
    LeaseInverted, lease_inverted => "query::by_lease";
    CountIgnoresFilter, count_ignores_filter => "query::counts_by_bucket_and_status";
    ClaimIgnoresLimit, claim_ignores_limit => "command::oldest_first";
    ClaimNeverEnds, claim_never_ends => "command::claim_is_leased";
    ClaimIsNotLeased, claim_is_not_leased => "command::claim_is_leased";
    EveryReceiptIsFirst, every_receipt_is_first => "command::receipt_ends_it";
    ReleaseCompletes, release_completes => "command::release_gives_it_back";
    BeatNeverLapsed, beat_never_lapsed => "node::beat_renews";
    RetireDoesNothing, retire_does_nothing => "node::retire_ends_the_lease";
    AlwaysAlive, always_alive => "node::expires_at_its_end";
    GuardIgnored, guard_ignored => "node::guard_holds_while_the_lease_lasts";
    GuardAsksTheNewHolder, guard_asks_the_new_holder => "node::guard_asks_the_stored_holder";
    PinAnswersWhatWasAsked, pin_answers_what_was_asked =>
        "facts::first_writer_wins", "concurrency::one_pin_wins";
    ReadingPins, reading_pins => "facts::reading_records_nothing";
    PruneIgnoresLimit, prune_ignores_limit => "prune::stops_at_its_limit";
    PruneIncludesTheTime, prune_includes_the_time => "prune::only_before_the_time";
    DryRunPrunes, dry_run_prunes => "prune::dry_run_only_counts";
    FloatsAreNarrow, floats_are_narrow => "serialization::floats";
    TimesAreSeconds, times_are_seconds => "serialization::times";
    NulIsLost, nul_is_lost => "serialization::strings";
    CloseDoesNothing, close_does_nothing => "close::later_calls_are_refused";
}

#[test]
fn an_honest_store_passes() {
    let report = run(&Sabotaged(Fault::Nothing));
    assert!(report.passed(), "{report}");
}

#[test]
fn names_are_distinct_and_every_group_has_a_saboteur() {
    let group = |name: &'static str| name.split_once("::").unwrap().0;
    let names: HashSet<_> = CLAUSES.iter().map(|clause| clause.name).collect();
    assert_eq!(names.len(), CLAUSES.len());
    let groups: HashSet<_> = CLAUSES.iter().map(|clause| group(clause.name)).collect();
    assert_eq!(CAUGHT.iter().map(|name| group(name)).collect::<HashSet<_>>(), groups);
}

#[test]
fn a_breach_says_what_was_expected_and_why() {
    let text = run(&Sabotaged(Fault::GuardIgnored)).to_string();
    for part in
        ["node::guard_holds_while_the_lease_lasts: A guarded", "because:", "expected:", "seen:"]
    {
        assert!(text.contains(part), "{text}");
    }
}

struct Sabotaged(Fault);

struct Place(Arc<Saboteur>);

struct Saboteur {
    store: InMemoryStore,
    fault: Fault,
}

impl Fixture for Sabotaged {
    fn fresh(&self) -> Box<dyn Data> {
        Box::new(Place(Arc::new(Saboteur { store: InMemoryStore::new(), fault: self.0 })))
    }
}

impl Data for Place {
    fn connect(&self) -> Arc<dyn TaskStore> {
        self.0.clone()
    }

    fn outlives_close(&self) -> bool {
        false
    }
}

type Refusable = Result<(), EntryError>;

impl Saboteur {
    /// One entry, sabotaged; `None` = nothing to sabotage.
    fn one(&self, entry: &Entry) -> Option<Refusable> {
        let write = |entry: Entry| self.store.write(&[entry]).unwrap().remove(0);
        let stored = self.store.get(entry.task_id()).unwrap();
        match (self.fault, entry.clone(), stored) {
            (Fault::CreateDropsTrail, Entry::Create { snapshot, .. }, _) => {
                Some(write(Entry::Create { snapshot, transitions: vec![] }))
            }
            (Fault::CreateReplaces, Entry::Create { snapshot, transitions }, Some(old)) => {
                let next =
                    Arc::unwrap_or_clone(snapshot).restored(old.status(), old.status_version() + 1);
                Some(write(save(next, old.status_version(), transitions)))
            }
            (Fault::CreateKeepsHeartbeat, Entry::Create { snapshot, .. }, None) => {
                let heartbeat_at = snapshot.last_heartbeat_at;
                let done = write(entry.clone());
                heartbeat_at.map(|_| touch(&snapshot, None, heartbeat_at)).map(write).or(Some(done))
            }
            (Fault::SaveDropsTrail, Entry::Save { snapshot, expect_version, .. }, _) => {
                Some(write(save(snapshot, expect_version, vec![])))
            }
            (Fault::SaveIgnoresVersion, Entry::Save { snapshot, transitions, .. }, Some(old)) => {
                Some(write(save(snapshot, old.status_version(), transitions)))
            }
            (Fault::SaveWantsNextVersion, Entry::Save { snapshot, expect_version, .. }, _)
                if snapshot.status_version() > expect_version + 1 =>
            {
                Some(Err(EntryError::NotNewer))
            }
            (Fault::SaveWritesProgress, Entry::Save { snapshot, .. }, _) => {
                let done = write(entry.clone());
                let progress = snapshot.progress.clone();
                done.is_ok().then(|| write(touch(&snapshot, progress, None)))
            }
            (Fault::SaveCreates, Entry::Save { snapshot, transitions, .. }, None) => {
                Some(write(Entry::Create { snapshot, transitions }))
            }
            (
                Fault::SaveKeepsLabel,
                Entry::Save { snapshot, expect_version, transitions, .. },
                Some(old),
            ) => {
                let mut next = Arc::unwrap_or_clone(snapshot);
                next.label = next.label.or(old.label);
                Some(write(save(next, expect_version, transitions)))
            }
            (Fault::TouchForgetsHeartbeat, Entry::Touch(touch), _) => {
                Some(write(Entry::Touch(Touch { heartbeat_at: None, ..touch })))
            }
            (Fault::TouchMergesProgress, Entry::Touch(mut touch), Some(old)) => {
                if let (Some(new), Some(old)) = (&mut touch.progress, old.progress) {
                    new.total = new.total.or(old.total);
                }
                Some(write(Entry::Touch(touch)))
            }
            (Fault::TouchMovesVersion, Entry::Touch(_), Some(old)) => {
                let done = write(entry.clone());
                let version = old.status_version();
                let next = old.clone().restored(old.status(), version + 1);
                write(save(next, version, vec![])).unwrap();
                Some(done)
            }
            (Fault::GuardIgnored, Entry::Save { snapshot, expect_version, transitions, .. }, _) => {
                Some(write(save(snapshot, expect_version, transitions)))
            }
            (
                Fault::GuardAsksTheNewHolder,
                Entry::Save { snapshot, expect_version, transitions, if_expired: Some(now) },
                Some(old),
            ) => {
                let held = |row: NodeRow| {
                    Some(&row.node.incarnation) == snapshot.supervisor.as_ref() && row.alive
                };
                let lives = self.store.nodes(now).unwrap().into_iter().any(held);
                let until = old.lease_until.unwrap_or(Timestamp::from_micros(0));
                Some(if lives {
                    Err(EntryError::LeaseHeld { until })
                } else {
                    write(save(snapshot, expect_version, transitions))
                })
            }
            (
                Fault::FloatsAreNarrow | Fault::TimesAreSeconds | Fault::NulIsLost,
                Entry::Create { snapshot, transitions },
                _,
            ) => {
                let mut snapshot = Arc::unwrap_or_clone(snapshot);
                snapshot.value = snapshot.value.map(|value| Box::new(self.worn(*value)));
                if self.fault == Fault::TimesAreSeconds {
                    let micros = snapshot.created_at.as_micros();
                    snapshot.created_at = Timestamp::from_micros(micros / 1_000_000 * 1_000_000);
                }
                Some(write(Entry::Create { snapshot: snapshot.into(), transitions }))
            }
            _ => None,
        }
    }

    fn worn(&self, value: Value) -> Value {
        match (self.fault, value) {
            (Fault::FloatsAreNarrow, Value::Float(x)) => Value::Float(f64::from(x as f32)),
            (Fault::NulIsLost, Value::String(text)) => Value::String(text.replace('\0', "")),
            (_, value) => value,
        }
    }

    fn filter(&self, filter: &TaskFilter) -> TaskFilter {
        let mut filter = filter.clone();
        match self.fault {
            Fault::StatusesIgnored => filter.statuses = None,
            Fault::BucketsIgnored => filter.buckets = None,
            Fault::OneTagIsEnough => filter.tags.truncate(1),
            Fault::TextIgnored => filter.text = None,
            Fault::UnchangedIncludesTheTime => {
                let later = |time: Timestamp| time.after(Duration::from_micros(1));
                filter.unchanged_since = filter.unchanged_since.map(later);
            }
            Fault::LeaseInverted => {
                filter.lease_expired = filter.lease_expired.map(|(expired, now)| (!expired, now));
            }
            _ => {}
        }
        filter
    }
}

fn save(
    snapshot: impl Into<Arc<TaskSnapshot>>,
    expect_version: u64,
    transitions: Vec<Transition>,
) -> Entry {
    Entry::Save { snapshot: snapshot.into(), expect_version, transitions, if_expired: None }
}

fn touch(
    task: &TaskSnapshot,
    progress: Option<Box<chongming_core::Progress>>,
    heartbeat_at: Option<Timestamp>,
) -> Entry {
    Entry::Touch(Touch { task_id: task.id.clone(), progress, heartbeat_at })
}

impl TaskStore for Saboteur {
    fn write(&self, entries: &[Entry]) -> Result<Vec<Refusable>, StoreError> {
        match self.fault {
            Fault::Nothing => return self.store.write(entries),
            Fault::NanBecomesNull => {
                let sound = entries.iter().filter(|entry| entry.check().is_ok()).cloned();
                return self.store.write(&sound.collect::<Vec<_>>());
            }
            _ => {}
        }
        if let Some(Err(error)) = entries.iter().map(Entry::check).find(Result::is_err) {
            return Err(StoreError::new(StoreErrorKind::Invalid, "write", error.to_string()));
        }
        self.store.write(&[])?; // is it closed?
        let mut results = Vec::new();
        for entry in entries {
            let stopped = results.last().is_some_and(Refusable::is_err);
            results.push(if self.fault == Fault::BatchStopsAtRefusal && stopped {
                Err(EntryError::NotFound)
            } else {
                match self.one(entry) {
                    Some(done) => done,
                    None => self.store.write(std::slice::from_ref(entry))?.remove(0),
                }
            });
        }
        Ok(results)
    }

    fn get(&self, id: &TaskId) -> Result<Option<TaskSnapshot>, StoreError> {
        self.store.get(id)
    }

    fn query(&self, query: &TaskQuery) -> Result<TaskPage, StoreError> {
        let mut query = TaskQuery { filter: self.filter(&query.filter), ..query.clone() };
        if self.fault == Fault::CursorsIgnored
            && query.after.as_ref().is_some_and(|cursor| cursor.0.parse::<u64>().is_err())
        {
            query.after = None;
        }
        let mut page = self.store.query(&query)?;
        match self.fault {
            Fault::OldestFirst => page.tasks.reverse(),
            // Only where it ends nowhere else: otherwise the cases would never end.
            Fault::AlwaysAnotherPage if query.limit > 3 => {
                page.next = Some(Cursor("1".into()));
            }
            _ => {}
        }
        Ok(page)
    }

    fn count(&self, filter: &TaskFilter) -> Result<Vec<Count>, StoreError> {
        match self.fault {
            Fault::CountIgnoresFilter => self.store.count(&TaskFilter::default()),
            _ => self.store.count(&self.filter(filter)),
        }
    }

    fn history(
        &self,
        id: &TaskId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Transition>, StoreError> {
        match self.fault {
            Fault::HistoryIncludesAfter => self.store.history(id, after.saturating_sub(1), limit),
            Fault::HistoryIgnoresLimit => self.store.history(id, after, usize::MAX),
            Fault::HistoryDescends => {
                let mut rows = self.store.history(id, after, limit)?;
                rows.reverse();
                Ok(rows)
            }
            _ => self.store.history(id, after, limit),
        }
    }

    fn submit_command(&self, command: &NewCommand) -> Result<(), StoreError> {
        self.store.submit_command(command)
    }

    fn claim_commands(
        &self,
        holder: &IncarnationId,
        limit: usize,
        lease: Duration,
        now: Now,
    ) -> Result<Vec<Command>, StoreError> {
        match self.fault {
            Fault::ClaimIgnoresLimit => self.store.claim_commands(holder, usize::MAX, lease, now),
            Fault::ClaimNeverEnds => self.store.claim_commands(holder, limit, Duration::MAX, now),
            Fault::ClaimIsNotLeased => {
                self.store.claim_commands(holder, limit, Duration::ZERO, now)
            }
            _ => self.store.claim_commands(holder, limit, lease, now),
        }
    }

    fn complete_command(
        &self,
        id: &CommandId,
        receipt: &Receipt,
        now: Now,
    ) -> Result<bool, StoreError> {
        let first = self.store.complete_command(id, receipt, now)?;
        Ok(first || self.fault == Fault::EveryReceiptIsFirst)
    }

    fn release_command(&self, id: &CommandId) -> Result<bool, StoreError> {
        match self.fault {
            Fault::ReleaseCompletes => {
                let receipt = Receipt::new(ReceiptKind::Refused, "released");
                self.store.complete_command(id, &receipt, Now::Store)
            }
            _ => self.store.release_command(id),
        }
    }

    fn commands(&self, task: &TaskId) -> Result<Vec<Command>, StoreError> {
        self.store.commands(task)
    }

    fn beat(&self, node: &Node, ttl: Duration, now: Now) -> Result<Beat, StoreError> {
        let beat = self.store.beat(node, ttl, now)?;
        let had_lapsed = beat.had_lapsed && self.fault != Fault::BeatNeverLapsed;
        Ok(Beat { had_lapsed, ..beat })
    }

    fn retire(&self, incarnation: &IncarnationId, now: Now) -> Result<(), StoreError> {
        match self.fault {
            Fault::RetireDoesNothing => self.store.nodes(now).map(drop),
            _ => self.store.retire(incarnation, now),
        }
    }

    fn nodes(&self, now: Now) -> Result<Vec<NodeRow>, StoreError> {
        let mut rows = self.store.nodes(now)?;
        if self.fault == Fault::AlwaysAlive {
            rows.iter_mut().for_each(|row| row.alive = true);
        }
        Ok(rows)
    }

    fn pin(&self, fact: &str, value: &str) -> Result<String, StoreError> {
        let stands = self.store.pin(fact, value)?;
        Ok(if self.fault == Fault::PinAnswersWhatWasAsked { value.to_owned() } else { stands })
    }

    fn pinned(&self, fact: &str) -> Result<Option<String>, StoreError> {
        if self.fault == Fault::ReadingPins {
            self.store.pin(fact, "read")?;
        }
        self.store.pinned(fact)
    }

    fn prune(&self, request: &PruneRequest, now: Now) -> Result<Pruned, StoreError> {
        let mut request = *request;
        match self.fault {
            Fault::PruneIgnoresLimit => request.limit = usize::MAX,
            Fault::PruneIncludesTheTime => {
                request.before = request.before.after(Duration::from_micros(1));
            }
            Fault::DryRunPrunes => request.dry_run = false,
            _ => {}
        }
        self.store.prune(&request, now)
    }

    fn close(&self) -> Result<(), StoreError> {
        match self.fault {
            Fault::CloseDoesNothing => Ok(()),
            _ => self.store.close(),
        }
    }
}

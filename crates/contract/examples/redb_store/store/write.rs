//! Batches: one transaction, one answer for each entry.

use chongming_core::store::{Entry, EntryError, Now, Touch};
use chongming_core::{Status, TaskSnapshot, Timestamp, Transition};
use redb::{ReadableTable, Table, WriteTransaction};

use super::error::{Result, unreadable};
use super::records::{NodeRecord, TaskRecord, TouchRecord, TransitionRecord, decode, encode};
use super::tables::{NODES, TASK_IDS, TASKS, TOUCHED, TRAIL, UNFINISHED, next};

type Refusable = std::result::Result<(), EntryError>;

// guide: write
/// Each entry is judged first and written then, so one that is refused has touched nothing. `clock` is what
/// the store's clock says inside of the transaction.
pub(super) fn write(
    transaction: &WriteTransaction,
    entries: &[Entry],
    clock: Timestamp,
) -> Result<Vec<Refusable>> {
    let mut writer = Writer {
        transaction,
        tasks: transaction.open_table(TASKS)?,
        ids: transaction.open_table(TASK_IDS)?,
        unfinished: transaction.open_table(UNFINISHED)?,
        trail: transaction.open_table(TRAIL)?,
        clock,
    };
    entries
        .iter()
        .map(|entry| match entry {
            Entry::Create { snapshot, transitions } => writer.create(snapshot, transitions),
            Entry::Save { snapshot, expect_version, transitions, if_expired } => {
                writer.save(snapshot, *expect_version, transitions, *if_expired)
            }
            Entry::Touch(touch) => writer.touch(touch),
        })
        .collect()
}
// guide: end

struct Writer<'a> {
    transaction: &'a WriteTransaction,
    tasks: Table<'a, u64, &'static [u8]>,
    ids: Table<'a, &'static str, u64>,
    unfinished: Table<'a, u64, ()>,
    trail: Table<'a, (u64, u64), &'static [u8]>,
    clock: Timestamp,
}

impl Writer<'_> {
    fn create(&mut self, task: &TaskSnapshot, trail: &[Transition]) -> Result<Refusable> {
        if self.number(task.id.as_str())?.is_some() {
            return Ok(Err(EntryError::Exists));
        }
        let number = next(self.transaction, "tasks")?;
        self.ids.insert(task.id.as_str(), number)?;
        self.put(number, &TaskRecord::of(task)?, task.status(), trail)?;
        Ok(Ok(()))
    }

    // guide: save
    fn save(
        &mut self,
        task: &TaskSnapshot,
        expected: u64,
        trail: &[Transition],
        if_expired: Option<Now>,
    ) -> Result<Refusable> {
        let Some(number) = self.number(task.id.as_str())? else {
            return Ok(Err(EntryError::NotFound));
        };
        let stored = self.stored(number)?;
        if stored.version != expected {
            return Ok(Err(EntryError::Conflict { stored: stored.version }));
        }
        if task.status_version() <= stored.version {
            return Ok(Err(EntryError::NotNewer));
        }
        if let Some(until) = self.lease(&stored, if_expired)? {
            return Ok(Err(EntryError::LeaseHeld { until }));
        }
        let mut record = TaskRecord::of(task)?;
        // What the submission fixed stays.
        record.name = stored.name;
        record.bucket = stored.bucket;
        record.bucket_key = stored.bucket_key;
        record.created_at = stored.created_at;
        self.put(number, &record, task.status(), trail)?;
        Ok(Ok(()))
    }

    /// Until when the stored holder's lease lasts, if there is a guard that asks and the lease does last.
    fn lease(&self, stored: &TaskRecord, guard: Option<Now>) -> Result<Option<Timestamp>> {
        let (Some(now), Some(holder)) = (guard, &stored.supervisor) else { return Ok(None) };
        let nodes = self.transaction.open_table(NODES)?;
        let Some(row) = nodes.get(holder.as_str())? else { return Ok(None) };
        let until = Timestamp::from_micros(decode::<NodeRecord>(row.value())?.lease_until);
        let now = match now {
            Now::Store => self.clock,
            Now::At(time) => time,
        };
        Ok((until > now).then_some(until))
    }
    // guide: end

    fn touch(&mut self, touch: &Touch) -> Result<Refusable> {
        let Some(number) = self.number(touch.task_id.as_str())? else {
            return Ok(Err(EntryError::NotFound));
        };
        let mut touched = self.transaction.open_table(TOUCHED)?;
        let mut record = match touched.get(number)? {
            Some(row) => decode(row.value())?,
            None => TouchRecord::default(),
        };
        record.take(touch.progress.as_deref(), touch.heartbeat_at);
        touched.insert(number, encode(&record)?.as_slice())?;
        Ok(Ok(()))
    }

    fn number(&self, id: &str) -> Result<Option<u64>> {
        Ok(self.ids.get(id)?.map(|number| number.value()))
    }

    fn stored(&self, number: u64) -> Result<TaskRecord> {
        let row = self.tasks.get(number)?;
        decode(row.ok_or_else(|| unreadable(format!("task {number} is gone")))?.value())
    }

    /// The state, its place in the index, and its rows.
    fn put(
        &mut self,
        number: u64,
        record: &TaskRecord,
        status: Status,
        trail: &[Transition],
    ) -> Result<()> {
        self.tasks.insert(number, encode(record)?.as_slice())?;
        match status.is_terminal() {
            true => drop(self.unfinished.remove(number)?),
            false => drop(self.unfinished.insert(number, ())?),
        }
        for row in trail {
            let key = (number, row.version);
            // A row that is there stays: `insert` would replace it.
            let is_new = self.trail.get(key)?.is_none();
            if is_new {
                self.trail.insert(key, encode(&TransitionRecord::of(row))?.as_slice())?;
            }
        }
        Ok(())
    }
}

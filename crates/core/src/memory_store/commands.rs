//! Command rows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use crate::id::{CommandId, IncarnationId, TaskId};
use crate::store::{Command, NewCommand, Receipt};
use crate::time::Timestamp;

/// Rows by the sequence in which they were handed in.
#[derive(Default)]
pub(super) struct Commands {
    rows: BTreeMap<u64, Command>,
    by_id: HashMap<CommandId, u64>,
    /// Without receipt, by holder: a poll looks at nothing else.
    open: HashMap<IncarnationId, BTreeSet<u64>>,
    last: u64,
}

impl Commands {
    pub(super) fn submit(&mut self, request: &NewCommand) {
        if self.by_id.contains_key(&request.id) {
            return;
        }
        self.last += 1;
        self.by_id.insert(request.id.clone(), self.last);
        self.open.entry(request.holder.clone()).or_default().insert(self.last);
        let request = request.clone();
        let row = Command { request, claimed_until: None, receipt: None, completed_at: None };
        self.rows.insert(self.last, row);
    }

    pub(super) fn claim(
        &mut self,
        holder: &IncarnationId,
        limit: usize,
        lease: Duration,
        now: Timestamp,
    ) -> Vec<Command> {
        let mut claimed = Vec::new();
        for seq in self.open.get(holder).into_iter().flatten() {
            if claimed.len() == limit {
                break;
            }
            if let Some(row) = self.rows.get_mut(seq)
                && row.claimed_until.is_none_or(|until| until <= now)
            {
                row.claimed_until = Some(now.after(lease));
                claimed.push(row.clone());
            }
        }
        claimed
    }

    /// The row, as long as it has no receipt.
    fn open_row(&mut self, id: &CommandId) -> Option<(u64, &mut Command)> {
        let seq = *self.by_id.get(id)?;
        self.rows.get_mut(&seq).filter(|row| row.receipt.is_none()).map(|row| (seq, row))
    }

    pub(super) fn complete(&mut self, id: &CommandId, receipt: &Receipt, now: Timestamp) -> bool {
        let Some((seq, row)) = self.open_row(id) else { return false };
        row.receipt = Some(receipt.clone());
        row.completed_at = Some(now);
        let holder = row.request.holder.clone();
        self.forget_open(&holder, seq);
        true
    }

    fn forget_open(&mut self, holder: &IncarnationId, seq: u64) {
        if let Some(open) = self.open.get_mut(holder) {
            open.remove(&seq);
            if open.is_empty() {
                self.open.remove(holder);
            }
        }
    }

    pub(super) fn release(&mut self, id: &CommandId) -> bool {
        match self.open_row(id) {
            Some((_, row)) => {
                row.claimed_until = None;
                true
            }
            None => false,
        }
    }

    pub(super) fn of_task(&self, task: &TaskId) -> Vec<Command> {
        self.rows.values().filter(|row| row.request.task_id == *task).cloned().collect()
    }

    pub(super) fn remove_of(&mut self, tasks: &HashSet<TaskId>) {
        let of_tasks = self.rows.iter().filter(|(_, row)| tasks.contains(&row.request.task_id));
        let seqs: Vec<u64> = of_tasks.map(|(seq, _)| *seq).collect();
        for seq in seqs {
            if let Some(row) = self.rows.remove(&seq) {
                self.by_id.remove(&row.request.id);
                self.forget_open(&row.request.holder, seq);
            }
        }
    }
}

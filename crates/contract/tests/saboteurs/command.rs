use std::time::Duration;

use chongming_core::store::*;

use crate::store::{Store, clock_at};

saboteurs! {
    reads_back / forgets_the_reason: submit = |store, command| {
        store.memory.submit_command(&NewCommand { reason: None, ..command.clone() })
    };
    same_id_changes_nothing / keeps_every_request: commands = |store, task| {
        Ok(handed_in(store).into_iter().filter(|new| new.request.task_id == *task).collect())
    };
    only_its_holder_claims / gives_to_anybody: claim = |store, _, limit, lease, now| {
        let mut claimed = Vec::new();
        for new in handed_in(store) {
            let holder = new.request.holder;
            claimed.extend(store.memory.claim_commands(&holder, limit, lease, now)?);
        }
        Ok(claimed)
    };
    oldest_first / newest_first: claim = |store, holder, limit, lease, now| {
        let mut claimed = store.memory.claim_commands(holder, limit, lease, now)?;
        claimed.reverse();
        Ok(claimed)
    };
    oldest_first / ignores_the_limit: claim = |store, holder, _, lease, now| {
        store.memory.claim_commands(holder, usize::MAX, lease, now)
    };
    claim_is_leased / claims_for_ever: claim = |store, holder, limit, _, now| {
        store.memory.claim_commands(holder, limit, Duration::MAX, now)
    };
    claim_is_leased / only_looks: claim = |store, holder, limit, _, now| {
        store.memory.claim_commands(holder, limit, Duration::ZERO, now)
    };
    receipt_ends_it / calls_every_receipt_the_first: complete = |store, id, receipt, now| {
        store.memory.complete_command(id, receipt, now).map(|_| true)
    };
    every_receipt_reads_back / applies_everything: complete = |store, id, receipt, now| {
        let applied = Receipt { kind: ReceiptKind::Applied, ..receipt.clone() };
        store.memory.complete_command(id, &applied, now)
    };
    release_gives_it_back / completes: release = |store, id| {
        let receipt = Receipt::new(ReceiptKind::Refused, "released");
        store.memory.complete_command(id, &receipt, Now::Store)
    };
    unknown_is_false / releases_the_unknown: release = |_, _| Ok(true);
    unknown_is_false / completes_the_unknown: complete = |_, _, _, _| Ok(true);
    belongs_to_one_task / mixes_tasks: commands = |store, _| Ok(handed_in(store));
    store_clock_decides / claims_by_a_clock_that_stands: claim =
        |store, holder, limit, lease, now| {
            store.memory.claim_commands(holder, limit, lease, clock_at(0, now))
        };
    store_clock_decides / completes_by_a_clock_that_stands: complete = |store, id, receipt, now| {
        store.memory.complete_command(id, receipt, clock_at(0, now))
    };
}

/// All commands as they were handed in.
fn handed_in(store: &Store) -> Vec<Command> {
    let requests = store.notes.requests.lock().unwrap().clone();
    requests
        .into_iter()
        .map(|request| Command { request, claimed_until: None, receipt: None, completed_at: None })
        .collect()
}

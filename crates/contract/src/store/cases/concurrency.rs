//! Several connections at once: the counts at the end are exact.

use std::sync::{Arc, Barrier};
use std::thread;

use chongming_core::store::{EntryError, Receipt, ReceiptKind, TaskStore};
use chongming_core::{Status, Trigger};

use crate::breach::{Breach, Outcome, present, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    MINUTE, accepted, at, command, connections, create, held, incarnation, node, now, progress,
    save, save_if_expired, save_with, step, stored, task, touch, versions,
};

const CONNECTIONS: usize = 8;

/// Runs `work` on as many connections at once, each with its number; their results.
fn at_once<T: Send>(
    data: &dyn Data,
    work: impl Fn(usize, &dyn TaskStore) -> Outcome<T> + Sync,
) -> Outcome<Vec<T>> {
    let (stores, barrier) = (connections(data, CONNECTIONS), Barrier::new(CONNECTIONS));
    let run = |(i, store): (usize, Arc<dyn TaskStore>)| {
        barrier.wait();
        work(i, &*store)
    };
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> =
            stores.into_iter().enumerate().map(|each| scope.spawn(move || run(each))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, Outcome<T>>| {
            let panicked = |_| Err(Breach::of("a connection", "it works", "its thread panicked"));
            thread.join().unwrap_or_else(panicked)
        };
        threads.into_iter().map(join).collect()
    })
}

pub(crate) fn one_connection_sees_another(data: &dyn Data) -> Outcome {
    let (one, other) = (data.connect(), data.connect());
    let task = task("a")?;
    accepted(&*one, &[create(&task, &[])])?;
    same("the task", stored(&*other, &task)?, task.clone())?;
    let next = task.clone().restored(Status::Queued, 1);
    accepted(&*other, &[save(&next, 0)])?;
    same("the task", stored(&*one, &task)?, next.clone())?;
    let late = task.restored(Status::Stopped, 1);
    same(
        "a late save",
        one.write(&[save(&late, 0)])?,
        vec![Err(EntryError::Conflict { stored: 1 })],
    )
}

pub(crate) fn one_creator_wins(data: &dyn Data) -> Outcome {
    let results = at_once(data, |i, store| {
        let mut task = task("a")?;
        task.priority = i as i32;
        Ok(store.write(&[create(&task, &[])])?)
    })?;
    let winners = results.iter().filter(|result| **result == vec![Ok(())]).count();
    let losers = results.iter().filter(|result| **result == vec![Err(EntryError::Exists)]).count();
    same("winners and losers", (winners, losers), (1, CONNECTIONS - 1))
}

pub(crate) fn one_saver_wins(data: &dyn Data) -> Outcome {
    const ROUNDS: u64 = 20;
    let task = task("a")?;
    accepted(&*data.connect(), &[create(&task, &[])])?;
    for version in 1..=ROUNDS {
        let results = at_once(data, |i, store| {
            let mut next = task.clone().restored(Status::Running, version);
            next.priority = i as i32;
            let row = step(&task, version, Trigger::Adopted);
            Ok(store.write(&[save_with(&next, version - 1, &[row])])?)
        })?;
        let winners: Vec<usize> = results
            .iter()
            .enumerate()
            .filter(|(_, result)| **result == vec![Ok(())])
            .map(|(i, _)| i)
            .collect();
        let conflict = vec![Err(EntryError::Conflict { stored: version })];
        let losers = results.iter().filter(|result| **result == conflict).count();
        same("winners and losers", (winners.len(), losers), (1, CONNECTIONS - 1))?;
        let winner = present("a winner", winners.first())?;
        let seen = stored(&*data.connect(), &task)?;
        same("whose row is stored", seen.priority, *winner as i32)?;
    }
    let expected = (1..=ROUNDS).collect();
    same("versions of the trail", versions(&*data.connect(), &task)?, expected)
}

pub(crate) fn no_increment_is_lost(data: &dyn Data) -> Outcome {
    const EACH: u64 = 25;
    let task = task("counter")?;
    accepted(&*data.connect(), &[create(&task, &[])])?;
    at_once(data, |_, store| {
        let mut done = 0;
        while done < EACH {
            let seen = stored(store, &task)?;
            let version = seen.status_version();
            let mut next = seen.restored(Status::Running, version + 1);
            next.attempt += 1;
            match store.write(&[save(&next, version)])?.pop() {
                Some(Ok(())) => done += 1,
                Some(Err(EntryError::Conflict { .. })) => {}
                other => same("a save in a race", other, Some(Ok(())))?,
            }
        }
        Ok(())
    })?;
    let total = CONNECTIONS as u64 * EACH;
    let seen = stored(&*data.connect(), &task)?;
    same("increments", (u64::from(seen.attempt), seen.status_version()), (total, total))
}

pub(crate) fn every_batch_lands(data: &dyn Data) -> Outcome {
    at_once(data, |i, store| {
        for round in 0..10 {
            let tasks =
                (0..20).map(|n| task(&format!("{i}-{round}-{n}"))).collect::<Outcome<Vec<_>>>()?;
            let batch: Vec<_> = tasks.iter().map(|task| create(task, &[])).collect();
            accepted(store, &batch)?;
        }
        Ok(())
    })?;
    let counts = data.connect().count(&Default::default())?;
    let total: u64 = counts.iter().map(|count| count.tasks).sum();
    same("tasks in the store", total, CONNECTIONS as u64 * 200)
}

pub(crate) fn one_adopter_wins(data: &dyn Data) -> Outcome {
    let store = data.connect();
    store.beat(&node("dead", "owner-1", at(0))?, MINUTE, now(0))?;
    let orphan = held("a", Status::Queued, "dead")?;
    accepted(&*store, &[create(&orphan, &[])])?;
    let results = at_once(data, |i, store| {
        let mut next = orphan.clone().restored(Status::Queued, 2);
        next.supervisor = Some(incarnation(&format!("life-{i}"))?);
        Ok(store.write(&[save_if_expired(&next, 1, now(100))])?)
    })?;
    let conflict = vec![Err(EntryError::Conflict { stored: 2 })];
    let winners: Vec<usize> = (0..)
        .zip(&results)
        .filter(|(_, result)| **result == vec![Ok(())])
        .map(|(i, _)| i)
        .collect();
    let losers = results.iter().filter(|result| **result == conflict).count();
    same("winners and losers", (winners.len(), losers), (1, CONNECTIONS - 1))?;
    let winner = present("a winner", winners.first())?;
    let holder = stored(&*store, &orphan)?.supervisor.map(|id| id.to_string());
    same("who holds the task", holder, Some(format!("life-{winner}")))
}

pub(crate) fn touches_and_saves_both_land(data: &dyn Data) -> Outcome {
    const EACH: u32 = 25;
    let name = |i: usize| format!("task-{}", i / 2);
    for i in (0..CONNECTIONS).step_by(2) {
        accepted(&*data.connect(), &[create(&task(&name(i))?, &[])])?;
    }
    // Each task has one who saves it and one who touches it.
    at_once(data, |i, store| {
        let task = task(&name(i))?;
        for step in 1..=EACH {
            let version = u64::from(step);
            accepted(
                store,
                &[match i % 2 {
                    0 => save(&task.clone().restored(Status::Running, version), version - 1),
                    _ => touch(&task, Some(progress(step.into())), Some(at(step.into()))),
                }],
            )?;
        }
        Ok(())
    })?;
    let store = data.connect();
    for i in (0..CONNECTIONS).step_by(2) {
        let seen = stored(&*store, &task(&name(i))?)?;
        same("the last save", (seen.status(), seen.status_version()), (Status::Running, 25))?;
        same("the last progress", seen.progress, Some(Box::new(progress(EACH.into()))))?;
        same("the last heartbeat", seen.last_heartbeat_at, Some(at(EACH.into())))?;
    }
    Ok(())
}

pub(crate) fn trail_is_never_behind(data: &dyn Data) -> Outcome {
    const LAST: u64 = 50;
    let task = task("a")?;
    accepted(&*data.connect(), &[create(&task, &[])])?;
    at_once(data, |i, store| {
        if i == 0 {
            return (1..=LAST).try_for_each(|version| {
                let next = task.clone().restored(Status::Running, version);
                let row = step(&task, version, Trigger::Adopted);
                accepted(store, &[save_with(&next, version - 1, &[row])])
            });
        }
        // The state is read first: whatever its version, its row must be there.
        for _ in 0..100 {
            let version = stored(store, &task)?.status_version();
            let rows = versions(store, &task)?.len() as u64;
            same("rows up to the version that was read", rows.max(version), rows)?;
        }
        Ok(())
    })?;
    let rows = versions(&*data.connect(), &task)?;
    same("versions of the trail in the end", rows, (1..=LAST).collect())
}

pub(crate) fn no_command_goes_twice(data: &dyn Data) -> Outcome {
    const COMMANDS: usize = 100;
    let store = data.connect();
    for i in 0..COMMANDS {
        store.submit_command(&command(&format!("command-{i:03}"), "task", "life-1")?)?;
    }
    let claimed = at_once(data, |_, store| {
        let holder = incarnation("life-1")?;
        let mut mine = Vec::new();
        loop {
            let claimed = store.claim_commands(&holder, 3, MINUTE, now(0))?;
            if claimed.is_empty() {
                return Ok(mine);
            }
            for command in claimed {
                let receipt = Receipt::new(ReceiptKind::Applied, "done");
                let first = store.complete_command(&command.request.id, &receipt, now(1))?;
                same("is the claimer's receipt the first", first, true)?;
                mine.push(command.request.id.to_string());
            }
        }
    })?;
    let mut all: Vec<String> = claimed.into_iter().flatten().collect();
    all.sort();
    let expected = (0..COMMANDS).map(|i| format!("command-{i:03}")).collect();
    same("commands claimed", all, expected)
}

pub(crate) fn vanished_claimer_is_replaced(data: &dyn Data) -> Outcome {
    const COMMANDS: usize = 20;
    let holder = incarnation("life-1")?;
    let store = data.connect();
    for i in 0..COMMANDS {
        store.submit_command(&command(&format!("command-{i:03}"), "task", "life-1")?)?;
    }
    let claimer = data.connect();
    let claimed = claimer.claim_commands(&holder, COMMANDS, MINUTE, now(0))?;
    same("commands claimed by who vanishes", claimed.len(), COMMANDS)?;
    drop(claimer);
    let early = store.claim_commands(&holder, COMMANDS, MINUTE, now(59))?;
    same("commands claimed while its claims last", early.len(), 0)?;
    let claimed = at_once(data, |_, store| {
        let claimed = store.claim_commands(&holder, COMMANDS, MINUTE, now(60))?;
        Ok(claimed.into_iter().map(|command| command.request.id.to_string()).collect::<Vec<_>>())
    })?;
    let mut all: Vec<String> = claimed.into_iter().flatten().collect();
    all.sort();
    let expected = (0..COMMANDS).map(|i| format!("command-{i:03}")).collect();
    same("commands claimed at once after that", all, expected)
}

pub(crate) fn one_pin_wins(data: &dyn Data) -> Outcome {
    let answers = at_once(data, |i, store| Ok(store.pin("num_buckets", &i.to_string())?))?;
    let stands = present("the fact", data.connect().pinned("num_buckets")?)?;
    same("what everybody was told", answers, vec![stands; CONNECTIONS])
}

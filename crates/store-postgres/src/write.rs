//! Batches: split so that each part is one statement, and each entry gets its answer.

use std::collections::HashMap;

use chongming_core::store::{Entry, EntryError};

use crate::batch::{Batch, Missed};
use crate::connection::Link;
use crate::error::Result;
use crate::guard;
use crate::row::{get, integer, unsigned};
use crate::statement::Trust;

pub(crate) type Refusable = std::result::Result<(), EntryError>;

/// Writes the entries, in one transaction.
pub(crate) fn write(link: &mut Link, entries: &[Entry], trust: Trust) -> Result<Vec<Refusable>> {
    let mut answers = vec![Ok(()); entries.len()];
    match rounds(entries).as_slice() {
        [] => {}
        [round] if !round.iter().any(|(_, entry)| guard::is_guarded(entry)) => {
            write_round(link, round, trust, &mut answers)?;
        }
        rounds => link.transaction(|link| {
            for round in rounds {
                let round = guard::pass(link, round, &mut answers)?;
                write_round(link, &round, trust, &mut answers)?;
            }
            Ok(())
        })?,
    }
    Ok(answers)
}

/// An entry with its place in the batch that the caller gave.
pub(crate) type Placed<'a> = (usize, &'a Entry);

/// Entries of one task go to rounds after each other, in their order.
fn rounds(entries: &[Entry]) -> Vec<Vec<Placed<'_>>> {
    let mut seen: HashMap<&str, usize> = HashMap::with_capacity(entries.len());
    let mut rounds: Vec<Vec<Placed<'_>>> = Vec::new();
    for placed in entries.iter().enumerate() {
        let next = seen.entry(placed.1.task_id().as_str()).or_default();
        match rounds.get_mut(*next) {
            Some(round) => round.push(placed),
            None => rounds.push(vec![placed]),
        }
        *next += 1;
    }
    rounds
}

/// Writes entries of different tasks, and finds out why those that were refused were refused.
fn write_round(
    link: &mut Link,
    round: &[Placed<'_>],
    trust: Trust,
    answers: &mut [Refusable],
) -> Result<()> {
    let mut pending = round.to_vec();
    while !pending.is_empty() {
        let mut batch = Batch::default();
        // By kind, in the order in which the batch numbers them.
        let (mut creates, mut saves, mut touches) = (Vec::new(), Vec::new(), Vec::new());
        for &(place, entry) in &pending {
            match entry {
                Entry::Create { snapshot, transitions } => {
                    batch.create(snapshot, transitions)?;
                    creates.push(place);
                }
                Entry::Save { snapshot, expect_version, transitions, if_expired: _ } => {
                    batch.save(snapshot, *expect_version, transitions)?;
                    saves.push((place, entry));
                }
                Entry::Touch(touch) => {
                    batch.touch(touch);
                    touches.push(place);
                }
            }
        }
        let missed = batch.execute(link, trust)?;
        if missed == Missed::default() {
            return Ok(());
        }
        refuse(&missed.creates, &creates, EntryError::Exists, answers);
        refuse(&missed.touches, &touches, EntryError::NotFound, answers);
        let missed = missed.saves.iter().filter_map(|place| saves.get(*place).copied());
        pending = unexplained(link, missed.collect(), answers)?;
    }
    Ok(())
}

fn refuse(missed: &[usize], places: &[usize], why: EntryError, answers: &mut [Refusable]) {
    for place in missed.iter().filter_map(|missed| places.get(*missed)) {
        if let Some(answer) = answers.get_mut(*place) {
            *answer = Err(why.clone());
        }
    }
}

/// Tells saves that were refused why; returns those for which there is no reason any more, because the task
/// was deleted and made anew meanwhile.
fn unexplained<'a>(
    link: &mut Link,
    missed: Vec<Placed<'a>>,
    answers: &mut [Refusable],
) -> Result<Vec<Placed<'a>>> {
    if missed.is_empty() {
        return Ok(missed);
    }
    let ids: Vec<&str> = missed.iter().map(|(_, entry)| entry.task_id().as_str()).collect();
    let rows = link.query("SELECT id, status_version FROM ~tasks WHERE id = ANY($1)", &[&ids])?;
    let mut stored: HashMap<&str, u64> = HashMap::new();
    for row in &rows {
        stored.insert(get(row, 0)?, unsigned(row, 1)?);
    }
    let mut rest = Vec::new();
    for (place, entry) in missed {
        match refusal(entry, stored.get(entry.task_id().as_str()).copied()) {
            Some(why) => refuse(&[0], &[place], why, answers),
            None => {
                check_version(entry)?;
                rest.push((place, entry));
            }
        }
    }
    Ok(rest)
}

/// Can a column hold the version?
fn check_version(entry: &Entry) -> Result<()> {
    match entry {
        Entry::Save { snapshot, .. } => integer(snapshot.status_version()).map(drop),
        Entry::Create { .. } | Entry::Touch(_) => Ok(()),
    }
}

/// Why a save does not fit what is stored, leases aside.
pub(crate) fn refusal(entry: &Entry, stored: Option<u64>) -> Option<EntryError> {
    match (entry, stored) {
        (Entry::Create { .. } | Entry::Touch(_), _) => None,
        (Entry::Save { .. }, None) => Some(EntryError::NotFound),
        (Entry::Save { expect_version, .. }, Some(stored)) if stored != *expect_version => {
            Some(EntryError::Conflict { stored })
        }
        (Entry::Save { snapshot, .. }, Some(stored)) => {
            (snapshot.status_version() <= stored).then_some(EntryError::NotNewer)
        }
    }
}

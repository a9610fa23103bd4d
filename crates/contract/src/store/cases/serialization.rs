//! What is stored comes back to the last bit.

use std::collections::BTreeMap;

use chongming_core::store::{Command, NewCommand, Node, Receipt, ReceiptKind, TaskStore};
use chongming_core::{
    CommandId, Failure, FailureKind, IncarnationId, MAX_DEPTH, Progress, Status, TaskId,
    TaskSnapshot, Timestamp, Trigger, Value,
};

use crate::breach::{Outcome, present, same};
use crate::store::fixture::Data;
use crate::store::sample::{
    MINUTE, accepted, at, command, create, node, now, save, save_with, step, stored, task, task_in,
    touch,
};

/// Does the task come back as it is?
fn survives(store: &dyn TaskStore, what: &str, task: TaskSnapshot) -> Outcome {
    accepted(store, &[create(&task, &[])])?;
    same(what, stored(store, &task)?, task)
}

/// Do the values come back, from a create and from a save?
fn values_survive(data: &dyn Data, values: Vec<Value>) -> Outcome {
    let store = data.connect();
    for (i, value) in values.into_iter().enumerate() {
        let mut task = task(&format!("task-{i}"))?;
        task.value = Some(Box::new(value));
        survives(&*store, "a created value", task.clone())?;
        let wrapped =
            BTreeMap::from([("v".to_owned(), task.value.take().map_or(Value::Null, |v| *v))]);
        let mut next = task.restored(Status::Succeeded, 1);
        next.value = Some(Box::new(Value::Map(wrapped)));
        accepted(&*store, &[save(&next, 0)])?;
        same("a saved value", stored(&*store, &next)?, next)?;
    }
    Ok(())
}

pub(crate) fn integers(data: &dyn Data) -> Outcome {
    let whole = [0, 1, -1, i64::MIN, i64::MAX, 9_007_199_254_740_993, -9_007_199_254_740_993];
    let mut values: Vec<Value> = whole.into_iter().map(Value::from).collect();
    values.extend([u64::MAX, i64::MAX as u64 + 1].map(Value::from));
    values_survive(data, values)
}

pub(crate) fn floats(data: &dyn Data) -> Outcome {
    let floats = [
        0.1,
        1.0,
        -2.0,
        1.0 / 3.0,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::MIN,
        f64::EPSILON,
        1e16,
        123_456_789.123_456_79,
        2.225_073_858_507_201e-308,
    ];
    values_survive(data, floats.into_iter().map(Value::from).collect())?;
    let store = data.connect();
    let mut task = task("zero")?;
    task.value = Some(Box::new(Value::Float(-0.0)));
    accepted(&*store, &[create(&task, &[])])?;
    // Equal to zero by comparison, so the sign is looked at.
    match stored(&*store, &task)?.value.as_deref() {
        Some(Value::Float(zero)) => same("the sign of -0.0", zero.is_sign_negative(), true),
        other => same("-0.0", other, Some(&Value::Float(-0.0))),
    }
}

pub(crate) fn strings(data: &dyn Data) -> Outcome {
    let control: String = (0..=0x20).filter_map(char::from_u32).collect();
    let texts = [
        "",
        "\0",
        "a\0b\0",
        "🎉 漢字 ü\u{301}",
        "\"quoted\\\"",
        "\u{FFFD}\u{FFFE}\u{10FFFF}",
        "'; --",
        "\u{2028}\u{7f}",
        &control,
        "null",
        "1e999",
        &"x".repeat(100_000),
    ];
    let mut values: Vec<Value> = texts.into_iter().map(Value::from).collect();
    let keys = texts.map(|text| (text.to_owned(), Value::Null));
    values.push(Value::Map(BTreeMap::from(keys)));
    values_survive(data, values)
}

pub(crate) fn shapes(data: &dyn Data) -> Outcome {
    let one = BTreeMap::from([("a".to_owned(), Value::List(vec![Value::Map(BTreeMap::new())]))]);
    values_survive(
        data,
        vec![
            Value::Null,
            Value::Bool(true),
            Value::Bool(false),
            Value::List(vec![]),
            Value::List(vec![Value::Null, Value::List(vec![]), 1.into(), 1.0.into(), "1".into()]),
            Value::Map(BTreeMap::new()),
            Value::Map(one),
        ],
    )?;
    let store = data.connect();
    let none = task("none")?;
    survives(&*store, "no value, which is not null", none)
}

pub(crate) fn deepest_nesting(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let lists = (1..MAX_DEPTH).fold(Value::List(vec![]), |inner, _| Value::List(vec![inner]));
    let maps = (1..MAX_DEPTH).fold(Value::Map(BTreeMap::new()), |inner, _| {
        Value::Map(BTreeMap::from([("k".to_owned(), inner)]))
    });
    for (id, value) in [("lists", lists), ("maps", maps)] {
        let mut task = task(id)?;
        task.value = Some(Box::new(value));
        survives(&*store, "a value nested as deep as allowed", task)?;
    }
    Ok(())
}

pub(crate) fn longest_ids(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let texts = ["x".repeat(255), "界".repeat(85), "🎉 id '\" %_\\".to_owned(), " ".to_owned()];
    for text in &texts {
        let mut task = task(text)?;
        task.name = text.as_str().into();
        task.supervisor = Some(IncarnationId::new(text)?);
        survives(&*store, "a task with a long or odd id", task.clone())?;
        let trail = [step(&task, 1, Trigger::Adopted)];
        let next = task.clone().restored(Status::Queued, 1);
        accepted(&*store, &[save_with(&next, 0, &trail)])?;
        same("its trail", store.history(&task.id, 0, 9)?, trail.to_vec())?;
    }
    // Ids are compared letter for letter.
    for text in ["X".repeat(255), "x".repeat(254), "  ".to_owned()] {
        same("a task of another id", store.get(&TaskId::new(text)?)?, None)?;
    }
    Ok(())
}

pub(crate) fn texts(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (i, text) in ["", "🎉 漢字", "line\nbreak\ttab", "\u{1b}[31m", "'; DROP TABLE tasks; --"]
        .into_iter()
        .enumerate()
    {
        let mut task = task(&format!("task-{i}"))?;
        task.name = format!("n{text}").into();
        task.owner = text.into();
        task.label = Some(text.into());
        task.bucket_key = Some(text.into());
        task.failure = Some(Box::new(Failure::new(FailureKind::Crashed, text)));
        task.tags = [text.into(), format!("{text},\"{text}\"").into()].into();
        survives(&*store, "a task with odd texts", task.clone())?;
        let (unit, message) = (Some(text.into()), Some(text.into()));
        let progress = Progress { done: 1.5, total: None, unit, message };
        accepted(&*store, &[touch(&task, Some(progress.clone()), None)])?;
        same("progress", stored(&*store, &task)?.progress, Some(Box::new(progress)))?;
        let mut row = step(&task, 1, Trigger::Adopted);
        row.reason = Some(text.into());
        let next = task.clone().restored(Status::Queued, 1);
        accepted(&*store, &[save_with(&next, 0, std::slice::from_ref(&row))])?;
        same("a reason", store.history(&task.id, 0, 9)?, vec![row])?;
    }
    Ok(())
}

pub(crate) fn times(data: &dyn Data) -> Outcome {
    let store = data.connect();
    // From year 1 to year 9999, to the microsecond.
    for micros in
        [0, 1, -1, 1_798_761_600_123_456, -62_135_596_799_999_999, 253_402_300_799_999_999]
    {
        let time = Timestamp::from_micros(micros);
        let mut task = task(&format!("task{micros}"))?;
        (task.created_at, task.updated_at) = (time, time);
        (task.queued_at, task.started_at) = (Some(time), Some(time));
        (task.attempt_started_at, task.ended_at) = (Some(time), Some(time));
        survives(&*store, "times", task.clone())?;
        accepted(&*store, &[touch(&task, None, Some(time))])?;
        same("a heartbeat", stored(&*store, &task)?.last_heartbeat_at, Some(time))?;
        let mut row = step(&task, 1, Trigger::Adopted);
        row.at = time;
        let next = task.clone().restored(Status::Queued, 1);
        accepted(&*store, &[save_with(&next, 0, std::slice::from_ref(&row))])?;
        same("the time of an audit row", store.history(&task.id, 0, 9)?, vec![row])?;
    }
    Ok(())
}

pub(crate) fn numbers(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (i, priority) in [i32::MIN, -1, 0, i32::MAX].into_iter().enumerate() {
        let mut task = task(&format!("task-{i}"))?;
        task.priority = priority;
        (task.attempt, task.max_attempts) = (u32::MAX, u32::MAX);
        task.bucket = Some(u32::MAX);
        survives(&*store, "numbers at their limits", task)?;
    }
    let task = task("progress")?;
    accepted(&*store, &[create(&task, &[])])?;
    for done in [0.0, 0.1, 1e300, 5e-324, -1.5, 9_007_199_254_740_993.0] {
        let progress = Progress { done, total: Some(done), unit: None, message: None };
        accepted(&*store, &[touch(&task, Some(progress.clone()), None)])?;
        same("progress", stored(&*store, &task)?.progress, Some(Box::new(progress)))?;
    }
    Ok(())
}

pub(crate) fn every_word(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for status in Status::ALL {
        let task = task_in(status.as_str(), status, 1)?;
        survives(&*store, "a task in each state", task)?;
    }
    for kind in FailureKind::ALL {
        for failure in [Failure::new(kind, "m"), Failure::new(kind, "m").permanent()] {
            let mut task = task(&format!("{kind}-{}", failure.retryable))?;
            task.failure = Some(Box::new(failure));
            let known = store.get(&task.id)?.is_some(); // some kinds are never retryable
            if !known {
                survives(&*store, "a failure of each kind", task)?;
            }
        }
    }
    let task = task("triggers")?;
    let mut rows = Vec::new();
    for (version, trigger) in (1..).zip(Trigger::ALL) {
        let mut row = step(&task, version, *trigger);
        let i = version as usize;
        row.from = present("a state", Status::ALL.get(i % 15).copied())?;
        row.to = present("a state", Status::ALL.get((i + 1) % 15).copied())?;
        row.reason = (version % 2 == 0).then(|| "why".into());
        row.at = at(0);
        rows.push(row);
    }
    accepted(&*store, &[create(&task, &rows)])?;
    same("an audit row of each trigger", store.history(&task.id, 0, usize::MAX)?, rows)
}

/// Texts that a store may be tempted to change.
const ODD: [&str; 6] =
    ["", " ", "🎉 漢字 ü\u{301}", "line\nbreak\ttab\u{1b}[31m", "'; DROP TABLE x; --", "\u{FFFD}"];

pub(crate) fn command_texts(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let longest = "界".repeat(85);
    let (task, holder) = (TaskId::new(&longest)?, IncarnationId::new(&longest)?);
    let mut expected = Vec::new();
    for (i, text) in ODD.into_iter().enumerate() {
        let id = CommandId::new(format!("{i:03}{}", "c".repeat(252)))?;
        let request = NewCommand {
            id: id.clone(),
            task_id: task.clone(),
            holder: holder.clone(),
            reason: Some(text.into()),
            issuer: text.into(),
            issued_at: Timestamp::from_micros(-1 - i as i64),
            ..command("c", "t", "h")?
        };
        store.submit_command(&request)?;
        let receipt = Receipt::new(ReceiptKind::Applied, text);
        store.complete_command(&id, &receipt, now(1))?;
        let (receipt, completed_at) = (Some(receipt), Some(at(1)));
        expected.push(Command { request, claimed_until: None, receipt, completed_at });
    }
    same("commands with odd texts", store.commands(&task)?, expected)
}

pub(crate) fn node_texts(data: &dyn Data) -> Outcome {
    let store = data.connect();
    let mut expected = Vec::new();
    for (i, text) in ODD.into_iter().enumerate() {
        let declared = Node {
            incarnation: IncarnationId::new(format!("{i:03}{}", "n".repeat(252)))?,
            host: text.into(),
            artifacts: Some(text.into()),
            started_at: Timestamp::from_micros(-1 - i as i64),
            ..node("n", text, at(0))?
        };
        store.beat(&declared, MINUTE, now(0))?;
        expected.push(declared);
    }
    let seen: Vec<Node> = store.nodes(now(0))?.into_iter().map(|row| row.node).collect();
    same("nodes with odd texts", seen, expected)
}

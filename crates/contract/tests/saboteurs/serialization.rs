use chongming_core::store::*;
use chongming_core::{FailureKind, TaskId, TaskSnapshot, Timestamp, Value};

saboteurs! {
    integers / takes_integers_for_floats: write = |store, entries| {
        store.with_states(entries, |task| change(task, |value| match value {
            Value::Int(number) => Value::Int(number as f64 as i64),
            other => other,
        }))
    };
    floats / keeps_half_a_float: write = |store, entries| {
        store.with_states(entries, |task| change(task, |value| match value {
            Value::Float(number) => Value::Float(f64::from(number as f32)),
            other => other,
        }))
    };
    strings / loses_nul: write = |store, entries| {
        store.with_states(entries, |task| change(task, |value| match value {
            Value::String(text) => Value::String(text.replace('\0', "")),
            other => other,
        }))
    };
    shapes / takes_nothing_for_null: write = |store, entries| {
        store.with_states(entries, |task| change(task, |value| match value {
            Value::List(items) if items.is_empty() => Value::Null,
            other => other,
        }))
    };
    shapes / takes_null_for_no_value: write = |store, entries| {
        store.with_states(entries, |task| {
            task.value = task.value.take().filter(|value| **value != Value::Null);
        })
    };
    deepest_nesting / cuts_what_is_deep: write = |store, entries| {
        store.with_states(entries, |task| change(task, |value| match depth(&value) {
            0..100 => value,
            _ => Value::Null,
        }))
    };
    longest_ids / knows_no_capitals: get = |store, id| {
        store.memory.get(&TaskId::new(id.as_str().to_lowercase()).unwrap())
    };
    texts / takes_no_text_for_none: write = |store, entries| {
        store.with_states(entries, |task| {
            task.label = task.label.take().filter(|label| !label.is_empty());
        })
    };
    times / keeps_seconds: write = |store, entries| {
        store.with_states(entries, |task| {
            let seconds = task.created_at.as_micros() / 1_000_000;
            task.created_at = Timestamp::from_micros(seconds * 1_000_000);
        })
    };
    numbers / keeps_small_priorities: write = |store, entries| {
        store.with_states(entries, |task| task.priority = i32::from(task.priority as i16))
    };
    every_word / knows_no_panic: write = |store, entries| {
        store.with_states(entries, |task| {
            if let Some(failure) = &mut task.failure && failure.kind == FailureKind::Panic {
                failure.kind = FailureKind::Exception;
            }
        })
    };
    command_texts / takes_no_reason_for_none: submit = |store, command| {
        let mut command = command.clone();
        command.reason = command.reason.filter(|reason| !reason.is_empty());
        store.memory.submit_command(&command)
    };
    node_texts / trims_owners: beat = |store, node, ttl, now| {
        let owner = node.owner.trim().into();
        store.memory.beat(&Node { owner, ..node.clone() }, ttl, now)
    };
}

fn change(task: &mut TaskSnapshot, change: impl Fn(Value) -> Value) {
    task.value = task.value.take().map(|value| Box::new(change(*value)));
}

fn depth(value: &Value) -> usize {
    match value {
        Value::List(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Map(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

use chongming_core::store::*;

use crate::store::broken;
use crate::trail::leaves_rows_of_the_refused;

saboteurs! {
    one_result_each / stops_at_the_first_refusal: write = |store, entries| {
        let mut answers = Vec::new();
        for entry in entries {
            let stopped = answers.last().is_some_and(Result::is_err);
            answers.push(match stopped {
                true => Err(EntryError::NotFound),
                false => store.put(entry.clone()),
            });
        }
        Ok(answers)
    };
    follows_one_task / writes_backwards: write = |store, entries| {
        let backwards: Vec<Entry> = entries.iter().rev().cloned().collect();
        let mut answers = store.memory.write(&backwards)?;
        answers.reverse();
        Ok(answers)
    };
    refused_entry_leaves_nothing / appends_before_it_looks: write = leaves_rows_of_the_refused;
    may_be_empty / wants_entries: write = |store, entries| match entries {
        [] => Err(broken("nothing to write")),
        entries => store.memory.write(entries),
    };
    may_be_large / writes_the_first_thousand: write = |store, entries| {
        let mut answers = store.memory.write(entries.get(..1000).unwrap_or(entries))?;
        answers.resize(entries.len(), Ok(()));
        Ok(answers)
    };
    what_json_cannot_say_stops_all / makes_it_null: write = |store, entries| {
        let sound = entries.iter().filter(|entry| entry.check().is_ok()).cloned();
        let mut answers = store.memory.write(&sound.collect::<Vec<_>>())?;
        answers.resize(entries.len(), Ok(()));
        Ok(answers)
    };
}

use chongming_core::store::TaskStore;

saboteurs! {
    first_writer_wins / answers_what_was_asked: pin = |store, fact, value| {
        store.memory.pin(fact, value).map(|_| value.to_owned())
    };
    reading_records_nothing / pins_when_read: pinned = |store, fact| {
        store.memory.pin(fact, "read")?;
        store.memory.pinned(fact)
    };
    are_apart / knows_no_capitals: pin = |store, fact, value| {
        store.memory.pin(&fact.to_lowercase(), value)
    };
    keep_their_text / trims: pin = |store, fact, value| {
        store.memory.pin(fact, value.trim())
    };
}

//! Store-wide facts.

use chongming_core::store::FACT_NUM_BUCKETS;

use crate::breach::{Outcome, same};
use crate::store::fixture::Data;

pub(crate) fn first_writer_wins(data: &dyn Data) -> Outcome {
    let (one, other) = (data.connect(), data.connect());
    same("the first pin", one.pin(FACT_NUM_BUCKETS, "64")?, "64".to_owned())?;
    same("a second pin", other.pin(FACT_NUM_BUCKETS, "128")?, "64".to_owned())?;
    same("the fact", other.pinned(FACT_NUM_BUCKETS)?, Some("64".to_owned()))
}

pub(crate) fn reading_records_nothing(data: &dyn Data) -> Outcome {
    let store = data.connect();
    same("a fact that nobody pinned", store.pinned("colour")?, None)?;
    same("a pin after reading", store.pin("colour", "")?, String::new())?;
    same("the fact", store.pinned("colour")?, Some(String::new()))
}

pub(crate) fn are_apart(data: &dyn Data) -> Outcome {
    let store = data.connect();
    store.pin("a", "1")?;
    store.pin("A", "2")?;
    same("one fact", store.pinned("a")?, Some("1".to_owned()))?;
    same("another", store.pinned("A")?, Some("2".to_owned()))
}

pub(crate) fn keep_their_text(data: &dyn Data) -> Outcome {
    let store = data.connect();
    for (fact, value) in [
        ("empty", String::new()),
        ("spaces ", " a  b ".to_owned()),
        ("漢字 🎉", "line\nbreak \"quoted\" \\ '; --".to_owned()),
        ("long", "界".repeat(2000)),
    ] {
        same("what a pin answers", store.pin(fact, &value)?, value.clone())?;
        same("the fact", store.pinned(fact)?, Some(value))?;
    }
    Ok(())
}

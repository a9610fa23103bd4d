//! How the values of options are read; what is wrong is told together with the option's name.

use std::fmt::Display;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use chongming_core::{InvalidText, MAX_NUM_BUCKETS, Status, TaskId, check_name, check_text};
use clap::builder::{
    BoolishValueParser, OsStringValueParser, PossibleValuesParser, TypedValueParser, ValueParser,
};

use crate::duration;

/// A shorter lease cannot be renewed in time.
const SHORTEST_LEASE: Duration = Duration::from_millis(100);

/// A task's id.
pub(crate) fn task_id(text: &str) -> Result<TaskId, InvalidText> {
    TaskId::new(text)
}

/// The name of a task, pipeline or owner.
pub(crate) fn name(text: &str) -> Result<String, InvalidText> {
    check_name("the name", text).map(|()| text.to_owned())
}

/// A label, tag or bucket key: whatever a store can keep.
pub(crate) fn text(text: &str) -> Result<String, InvalidText> {
    check_text("the text", text).map(|()| text.to_owned())
}

/// What a person or program says: whatever is not UTF-8 in it is replaced.
pub(crate) fn lossy() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|text| text.to_string_lossy().into_owned())
}

/// A number that JSON can express.
pub(crate) fn number(text: &str) -> Result<f64, &'static str> {
    let number = text.parse::<f64>().map_err(|_| "write a number, such as 3 or 0.5")?;
    number.is_finite().then_some(number).ok_or("write a finite number")
}

/// A duration above zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(duration) if duration.is_zero() => Err("it must be longer than zero".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// A lease that can be renewed in time.
pub(crate) fn lease_ttl(text: &str) -> Result<Duration, String> {
    match duration::parse(text) {
        Ok(duration) if duration < SHORTEST_LEASE => Err("it must be at least 100ms".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

/// A whole number in this range.
pub(crate) fn integer<T>(range: RangeInclusive<T>) -> impl TypedValueParser<Value = T>
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| match text.parse::<T>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("write a whole number from {} to {}", range.start(), range.end())),
    }
}

/// The number of something that begins at 1.
pub(crate) fn ordinal() -> impl TypedValueParser<Value = NonZeroU32> {
    integer(NonZeroU32::MIN..=NonZeroU32::MAX)
}

/// A number of buckets.
pub(crate) fn num_buckets() -> impl TypedValueParser<Value = NonZeroU32> {
    integer(1..=MAX_NUM_BUCKETS).try_map(NonZeroU32::try_from)
}

/// One of the fifteen states.
pub(crate) fn status() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(Status::ALL.map(Status::as_str))
        .try_map(|word| word.parse::<Status>())
}

/// How often a switch is given; a variable of the environment says it with a number, or as one of
/// [`switch`]'s words.
pub(crate) fn repeated() -> ValueParser {
    ValueParser::new(|text: &str| match text.parse::<u8>() {
        Ok(times) => Ok(times),
        Err(_) => is_on(text)
            .map(u8::from)
            .map_err(|words| format!("write a whole number from 0 to {}, {words}", u8::MAX)),
    })
}

/// A switch that a variable of the environment can turn on: `1`, `true`, `yes`, `on`, or off by
/// their opposites or an empty text.
pub(crate) fn switch() -> ValueParser {
    ValueParser::new(|text: &str| is_on(text).map_err(|words| format!("write 1 or 0, {words}")))
}

fn is_on(text: &str) -> Result<bool, &'static str> {
    match text {
        "" => Ok(false),
        _ => BoolishValueParser::new()
            .parse_ref(&clap::Command::new(""), None, text.as_ref())
            .map_err(|_| "true or false, yes or no, on or off"),
    }
}

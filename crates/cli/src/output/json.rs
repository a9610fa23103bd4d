//! JSON for scripts: one object on one line, or one array with an element on each line.

use serde::Serialize;

use super::console::Console;
use crate::error::CliError;

/// Writes one object (or any one value) and a line end.
pub(crate) fn write_value(console: &mut Console, value: &impl Serialize) -> Result<(), CliError> {
    let mut text = encode(value)?;
    text.push(b'\n');
    console.write(&text)
}

/// An array that is written element by element, so that a long list needs no memory.
#[derive(Debug, Default)]
pub(crate) struct JsonArray {
    elements: usize,
}

impl JsonArray {
    /// Writes the next element.
    pub(crate) fn element(
        &mut self,
        console: &mut Console,
        value: &impl Serialize,
    ) -> Result<(), CliError> {
        let mut text = if self.elements == 0 { b"[\n".to_vec() } else { b",\n".to_vec() };
        text.append(&mut encode(value)?);
        self.elements += 1;
        console.write(&text)
    }

    /// Ends the array.
    pub(crate) fn end(self, console: &mut Console) -> Result<(), CliError> {
        console.write(if self.elements == 0 { b"[]\n" } else { b"\n]\n" })
    }
}

/// Writes an array that is already at hand.
pub(crate) fn write_array<T: Serialize>(
    console: &mut Console,
    values: impl IntoIterator<Item = T>,
) -> Result<(), CliError> {
    let mut array = JsonArray::default();
    for value in values {
        array.element(console, &value)?;
    }
    array.end(console)
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, CliError> {
    serde_json::to_vec(value)
        .map_err(|error| CliError::internal(format!("a value cannot be written as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::console::tests::{captured, console};

    #[test]
    fn an_array_has_an_element_on_each_line_and_is_valid() {
        for values in [vec![], vec![1], vec![1, 2, 3]] {
            let (mut console, sink) = console();
            write_array(&mut console, &values).unwrap();
            console.finish().unwrap();
            let text = captured(&sink);
            assert_eq!(serde_json::from_str::<Vec<i32>>(&text).unwrap(), values);
            assert!(text.ends_with('\n'));
        }
    }

    #[test]
    fn a_value_is_one_line() {
        let (mut console, sink) = console();
        write_value(&mut console, &serde_json::json!({"a": "x\ny"})).unwrap();
        console.finish().unwrap();
        assert_eq!(captured(&sink), "{\"a\":\"x\\ny\"}\n");
    }
}

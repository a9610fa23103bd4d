//! JSON text as it comes from outside, before any reader has rounded it (spec 4).

/// The first integer of a JSON text that fits neither `i64` nor `u64`. A reader of JSON would round it to a
/// float without a word; who takes JSON from outside asks first, and refuses it.
#[must_use]
pub fn integer_beyond_64_bits(json: &str) -> Option<&str> {
    let mut rest = json;
    loop {
        let start = rest.find(|c: char| matches!(c, '"' | '-' | '0'..='9'))?;
        rest = rest.get(start..)?;
        if let Some(text) = rest.strip_prefix('"') {
            rest = after_string(text)?;
            continue;
        }
        let is_part = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(end)?;
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return Some(number);
        }
        rest = after;
    }
}

/// What comes after the end of a string.
fn after_string(text: &str) -> Option<&str> {
    let mut escaped = false;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        is_end
    })?;
    text.get(end + 1..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_64_bits_are_found_outside_of_strings() {
        for (json, found) in [
            ("[1, -9223372036854775808, 18446744073709551615]", None),
            (r#"{"a": 18446744073709551616}"#, Some("18446744073709551616")),
            ("-9223372036854775809", Some("-9223372036854775809")),
            (r#"["18446744073709551616\" 99999999999999999999", 1e30, 1.5e300]"#, None),
            (r#"["\\", 99999999999999999999]"#, Some("99999999999999999999")),
            ("99999999999999999999.0", None),
            (r#""open"#, None),
            ("", None),
        ] {
            assert_eq!(integer_beyond_64_bits(json), found, "{json}");
        }
    }
}

//! The candidate that a mistyped word was probably meant to be.

/// The candidate nearest to `wanted`, if one is near enough to be worth a question: at most one
/// slip per three letters. Case does not count.
pub(crate) fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let length = wanted.chars().count();
    let limit = (length / 3).max(1);
    candidates
        .into_iter()
        // The distance is quadratic in the lengths; a candidate of quite another length is not near.
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= limit)
        .map(|candidate| (strsim::osa_distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= limit && *distance < candidate.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_slips_are_found_and_other_words_are_not() {
        let keys = ["retry", "timeout", "tags", "command", "x"];
        for (wanted, found) in [
            ("retrys", Some("retry")),
            ("Retry", Some("retry")),
            ("tiemout", Some("timeout")),
            ("comand", Some("command")),
            ("tag", Some("tags")),
            ("priority", None),
            ("y", None),
            ("", None),
        ] {
            assert_eq!(nearest(wanted, keys), found, "{wanted}");
        }
    }
}

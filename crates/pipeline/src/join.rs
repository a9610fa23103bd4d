//! The words of a pipeline: when a node may start, and what a failed one means for the others.

use std::fmt;
use std::str::FromStr;

/// When a node may start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Join {
    /// When all upstream nodes succeeded.
    #[default]
    AllSucceeded,
    /// When all upstream nodes ended, however. Such a node exists to run whatever happens: a fail-fast
    /// leaves it alone.
    AllSettled,
    /// When the first upstream node succeeded.
    AnySucceeded,
}

impl Join {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::AllSucceeded, Self::AllSettled, Self::AnySucceeded];

    /// The word that manifests and JSON use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllSucceeded => "all_succeeded",
            Self::AllSettled => "all_settled",
            Self::AnySucceeded => "any_succeeded",
        }
    }
}

impl fmt::Display for Join {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidJoin {
    /// `quorum`, which is refused.
    Quorum,
    /// Any other.
    Unknown(String),
}

impl fmt::Display for InvalidJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quorum => f.write_str(
                "a join by `quorum` is refused: a node that starts while others still run cannot \
                 say which results it saw; take all_settled and look at the results",
            ),
            Self::Unknown(word) => {
                let [a, b, c] = Join::ALL;
                write!(f, "{word:?} is no join; it must be one of {a}, {b}, {c}")
            }
        }
    }
}

impl std::error::Error for InvalidJoin {}

impl FromStr for Join {
    type Err = InvalidJoin;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        if word == "quorum" {
            return Err(InvalidJoin::Quorum);
        }
        let found = Self::ALL.into_iter().find(|join| join.as_str() == word);
        found.ok_or_else(|| InvalidJoin::Unknown(word.chars().take(60).collect()))
    }
}

/// What a failed node means for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Aggregation {
    /// The first node that failed, was stopped or is lost cancels every unfinished node, except those that
    /// [join by all_settled](Join::AllSettled). A cancelled or skipped node does not.
    #[default]
    FailFast,
    /// Each node runs that its own join allows.
    AllSettled,
}

impl Aggregation {
    /// The word that manifests use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailFast => "fail_fast",
            Self::AllSettled => "all_settled",
        }
    }
}

impl fmt::Display for Aggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A word that is no aggregation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAggregation(String);

impl fmt::Display for UnknownAggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no aggregation; it must be fail_fast or all_settled", self.0)
    }
}

impl std::error::Error for UnknownAggregation {}

impl FromStr for Aggregation {
    type Err = UnknownAggregation;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = [Self::FailFast, Self::AllSettled].into_iter().find(|a| a.as_str() == word);
        found.ok_or_else(|| UnknownAggregation(word.chars().take(60).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back_and_quorum_is_refused_with_the_reason() {
        for join in Join::ALL {
            assert_eq!(join.as_str().parse(), Ok(join));
        }
        for aggregation in [Aggregation::FailFast, Aggregation::AllSettled] {
            assert_eq!(aggregation.as_str().parse(), Ok(aggregation));
        }
        let refused = "quorum".parse::<Join>().unwrap_err().to_string();
        assert!(refused.contains("quorum") && refused.contains("all_settled"), "{refused}");
        assert!("All_settled".parse::<Join>().unwrap_err().to_string().contains("All_settled"));
        assert!("fast".parse::<Aggregation>().unwrap_err().to_string().contains("fast"));
    }
}

//! Buckets: the stable hash, sets of buckets, and which of them a node owns (spec 3).

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use crate::blake2b::digest_u64;

/// Number of buckets of a store that says nothing else.
pub const DEFAULT_NUM_BUCKETS: NonZeroU32 = NonZeroU32::new(64).unwrap();

/// The bucket of a business key: the same in every process, on every machine, in every version.
///
/// ```
/// # use chongming_core::{bucket_of, DEFAULT_NUM_BUCKETS};
/// assert_eq!(bucket_of("tenant-A", DEFAULT_NUM_BUCKETS), 7);
/// assert_eq!(bucket_of("tenant-B", DEFAULT_NUM_BUCKETS), 28);
/// ```
#[must_use]
pub fn bucket_of(key: &str, num_buckets: NonZeroU32) -> u32 {
    // The remainder is below a u32, so the cast is exact.
    (digest_u64(key.as_bytes()) % u64::from(num_buckets.get())) as u32
}

/// The `i`-th of `n` contiguous shares of all buckets; empty where `i >= n`.
///
/// ```
/// # use chongming_core::{buckets_for_node, DEFAULT_NUM_BUCKETS};
/// assert_eq!(buckets_for_node(1, 4, DEFAULT_NUM_BUCKETS).to_string(), "16-31");
/// ```
#[must_use]
pub fn buckets_for_node(i: u32, n: u32, num_buckets: NonZeroU32) -> BucketSet {
    if i >= n {
        return BucketSet::default();
    }
    let cut = |k: u32| (u64::from(num_buckets.get()) * u64::from(k) / u64::from(n)) as u32;
    (cut(i)..cut(i + 1)).collect()
}

/// A set of bucket numbers: sorted, without repetition. Written `0-15,20`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct BucketSet(Vec<u32>);

impl BucketSet {
    /// Is it a member?
    #[must_use]
    pub fn contains(&self, bucket: u32) -> bool {
        self.0.binary_search(&bucket).is_ok()
    }

    /// The members, ascending.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// How many members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Has it no member?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<u32> for BucketSet {
    fn from_iter<I: IntoIterator<Item = u32>>(buckets: I) -> Self {
        let mut members: Vec<u32> = buckets.into_iter().collect();
        members.sort_unstable();
        members.dedup();
        Self(members)
    }
}

impl fmt::Display for BucketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a + 1 == *b);
        for (i, run) in runs.enumerate() {
            f.write_str(if i == 0 { "" } else { "," })?;
            match run {
                [one] => write!(f, "{one}")?,
                [first, .., last] => write!(f, "{first}-{last}")?,
                [] => {}
            }
        }
        Ok(())
    }
}

/// A text that is no set of buckets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidBucketSet(String);

impl fmt::Display for InvalidBucketSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no set of buckets; write numbers and ranges such as 0-15,20", self.0)
    }
}

impl std::error::Error for InvalidBucketSet {}

impl FromStr for BucketSet {
    type Err = InvalidBucketSet;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid = || InvalidBucketSet(text.chars().take(60).collect());
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| part.parse::<u32>().ok()).flatten().filter(|n| *n < MAX_NUM_BUCKETS)
        };
        let mut members = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (number(first.trim()), number(last.trim())) {
                (Some(first), Some(last)) if first <= last => members.extend(first..=last),
                _ => return Err(invalid()),
            }
        }
        Ok(members.into_iter().collect())
    }
}

/// Upper limit of a store's bucket count; also keeps a hostile range from filling the memory.
pub const MAX_NUM_BUCKETS: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_they_are_read() {
        for (text, shown) in [("0-15,20", "0-15,20"), ("3,1,2,2", "1-3"), ("5-5", "5"), ("7", "7")]
        {
            assert_eq!(text.parse::<BucketSet>().unwrap().to_string(), shown);
        }
        for bad in ["", "-1", "5-3", "a", "1,,2", "0-", "1-2-3", "+1", "0-4294967295"] {
            assert!(bad.parse::<BucketSet>().is_err(), "{bad}");
        }
    }

    #[test]
    fn shares_are_contiguous_and_complete() {
        for n in [1, 2, 3, 7, 64, 100] {
            let all: Vec<u32> = (0..n)
                .flat_map(|i| buckets_for_node(i, n, DEFAULT_NUM_BUCKETS).as_slice().to_vec())
                .collect();
            assert_eq!(all, (0..64).collect::<Vec<_>>(), "{n}");
        }
        assert!(buckets_for_node(4, 4, DEFAULT_NUM_BUCKETS).is_empty());
    }
}

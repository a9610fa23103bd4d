//! Which buckets a node owns, and what it may submit (spec 3).

use std::fmt;
use std::num::NonZeroU32;

use crate::bucket::{BucketSet, MAX_NUM_BUCKETS, bucket_of};

/// The bucket count of the store together with this node's share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    num_buckets: NonZeroU32,
    owned: Option<BucketSet>,
}

/// A share or a submission that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnershipError {
    /// More buckets than the product handles.
    TooManyBuckets(u32),
    /// A bucket number at or above the store's count.
    OutOfRange {
        /// The number.
        bucket: u32,
        /// The store's count.
        num_buckets: u32,
    },
    /// A declared share without any bucket.
    EmptyShare,
    /// A submission for a bucket of another node.
    Foreign {
        /// The bucket.
        bucket: u32,
        /// Its key.
        key: String,
        /// What this node owns.
        owned: BucketSet,
    },
    /// A submission without a key on a node that owns only a share.
    NoKey(BucketSet),
}

impl fmt::Display for OwnershipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyBuckets(n) => {
                write!(f, "{n} buckets are too many; at most {MAX_NUM_BUCKETS} are possible")
            }
            Self::OutOfRange { bucket, num_buckets } => write!(
                f,
                "bucket {bucket} does not exist: the store has {num_buckets} buckets, numbered 0 to {}",
                num_buckets - 1
            ),
            Self::EmptyShare => {
                write!(
                    f,
                    "the set of owned buckets is empty; name some, or leave it out to own all"
                )
            }
            Self::Foreign { bucket, key, owned } => write!(
                f,
                "bucket key {key:?} is in bucket {bucket}, which this node does not own (it owns {owned}); \
                 submit it on the node that owns bucket {bucket}"
            ),
            Self::NoKey(owned) => write!(
                f,
                "this node owns only buckets {owned}, so each of its tasks needs a bucket key in one of them"
            ),
        }
    }
}

impl std::error::Error for OwnershipError {}

impl Ownership {
    /// A node's share of `num_buckets`; `None` owns everything without declaring it.
    ///
    /// # Errors
    /// A bucket out of range, an empty share, or too many buckets.
    pub fn new(num_buckets: NonZeroU32, owned: Option<BucketSet>) -> Result<Self, OwnershipError> {
        if num_buckets.get() > MAX_NUM_BUCKETS {
            return Err(OwnershipError::TooManyBuckets(num_buckets.get()));
        }
        if let Some(set) = &owned {
            match set.as_slice().last() {
                None => return Err(OwnershipError::EmptyShare),
                Some(&bucket) if bucket >= num_buckets.get() => {
                    let num_buckets = num_buckets.get();
                    return Err(OwnershipError::OutOfRange { bucket, num_buckets });
                }
                Some(_) => {}
            }
        }
        Ok(Self { num_buckets, owned })
    }

    /// The store's bucket count.
    #[must_use]
    pub const fn num_buckets(&self) -> NonZeroU32 {
        self.num_buckets
    }

    /// The declared share; `None` = unrestricted.
    #[must_use]
    pub const fn declared(&self) -> Option<&BucketSet> {
        self.owned.as_ref()
    }

    /// Unrestricted, or a share that is everything: not a partition.
    #[must_use]
    pub fn owns_all_buckets(&self) -> bool {
        self.owned.as_ref().is_none_or(|set| set.len() == self.num_buckets.get() as usize)
    }

    /// Does this node own the bucket?
    #[must_use]
    pub fn owns_bucket(&self, bucket: u32) -> bool {
        bucket < self.num_buckets.get()
            && self.owned.as_ref().is_none_or(|set| set.contains(bucket))
    }

    /// The bucket of a submission with this key.
    ///
    /// # Errors
    /// The bucket is another node's, or there is no key where a share is declared.
    pub fn place(&self, key: Option<&str>) -> Result<Option<u32>, OwnershipError> {
        let bucket = key.map(|key| bucket_of(key, self.num_buckets));
        let Some(owned) = self.owned.as_ref().filter(|_| !self.owns_all_buckets()) else {
            return Ok(bucket);
        };
        match (key, bucket) {
            (Some(key), Some(bucket)) if !owned.contains(bucket) => {
                let (key, owned) = (key.to_owned(), owned.clone());
                Err(OwnershipError::Foreign { bucket, key, owned })
            }
            (None, _) | (_, None) => Err(OwnershipError::NoKey(owned.clone())),
            (Some(_), Some(_)) => Ok(bucket),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::DEFAULT_NUM_BUCKETS;

    fn owning(set: &str) -> Result<Ownership, OwnershipError> {
        Ownership::new(DEFAULT_NUM_BUCKETS, Some(set.parse().unwrap()))
    }

    #[test]
    fn a_share_is_checked_at_once() {
        assert_eq!(
            owning("0-64").unwrap_err().to_string(),
            "bucket 64 does not exist: the store has 64 buckets, numbered 0 to 63"
        );
        assert!(Ownership::new(DEFAULT_NUM_BUCKETS, Some(BucketSet::default())).is_err());
        assert!(owning("0-63").unwrap().owns_all_buckets());
    }

    #[test]
    fn submissions_outside_the_share_are_refused() {
        let node = owning("0-15").unwrap();
        assert_eq!(node.place(Some("tenant-A")), Ok(Some(7)));
        assert!(matches!(
            node.place(Some("tenant-B")),
            Err(OwnershipError::Foreign { bucket: 28, .. })
        ));
        assert!(matches!(node.place(None), Err(OwnershipError::NoKey(_))));
        assert_eq!(owning("0-63").unwrap().place(None), Ok(None));
        assert!(node.owns_bucket(15) && !node.owns_bucket(16) && !node.owns_all_buckets());
    }
}

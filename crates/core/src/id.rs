//! Identifiers: of a task, of a controller's incarnation, of a command.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::text::{InvalidText, Text, check_name};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $field:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Text);

        impl $name {
            #[doc = concat!("Checks and wraps a ", $field, ": 1 to 255 bytes, no control characters.")]
            ///
            /// # Errors
            /// [`InvalidText`] says what is wrong with which text.
            pub fn new(text: impl AsRef<str>) -> Result<Self, InvalidText> {
                check_name($field, text.as_ref())?;
                Ok(Self(text.as_ref().into()))
            }

            /// A fresh one: sorts by creation time, unique across processes and machines.
            #[must_use]
            pub fn generate() -> Self {
                Self(Ids::new().next())
            }

            /// The text itself.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    };
}

text_id! {
    /// Names one task in its store, for ever.
    TaskId, "task id"
}
text_id! {
    /// Names one life of one controller (spec 12): a restart is another incarnation.
    IncarnationId, "incarnation id"
}
text_id! {
    /// Names one command row of the control channel (spec 11).
    CommandId, "command id"
}

/// Makes ids: 12 hexadecimal digits of milliseconds, 4 that count, so that those of one maker sort as they were
/// made, and 16 of randomness.
#[derive(Debug)]
pub(crate) struct Ids {
    seed: u64,
    count: AtomicU64,
}

impl Ids {
    /// Seeded at random. The process takes part, since a fork inherits what its randomness comes from; what
    /// was made before a fork is not for both sides of it.
    pub(crate) fn new() -> Self {
        Self { seed: RandomState::new().hash_one(std::process::id()), count: AtomicU64::new(0) }
    }

    /// The next one.
    pub(crate) fn task(&self) -> TaskId {
        TaskId(self.next())
    }

    fn next(&self) -> Text {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis());
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let random = scatter(self.seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let number = (millis << 80) | (u128::from(count & 0xffff) << 64) | u128::from(random);
        let mut digits = [b'0'; 32];
        for (i, digit) in digits.iter_mut().rev().enumerate() {
            let value = (number >> (4 * i)) as u8 & 0xf;
            *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
        }
        std::str::from_utf8(&digits).unwrap_or_default().into()
    }
}

/// One to one, and without any pattern to see (splitmix64).
const fn scatter(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Hashes ids for maps that every task passes through several times, at a fraction of the standard hasher's
/// price. Seeded at random: whoever chooses ids cannot tell which ones collide.
#[derive(Clone, Copy)]
pub(crate) struct IdHashes([u64; 2]);

impl Default for IdHashes {
    fn default() -> Self {
        static SEEDS: OnceLock<[u64; 2]> = OnceLock::new();
        Self(*SEEDS.get_or_init(|| {
            let random = RandomState::new();
            [random.hash_one(0), random.hash_one(1) | 1]
        }))
    }
}

impl BuildHasher for IdHashes {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        let Self([state, factor]) = *self;
        IdHasher { state, factor }
    }
}

/// Folds eight bytes at a time into its state, by the two halves of a product.
pub(crate) struct IdHasher {
    state: u64,
    factor: u64,
}

impl IdHasher {
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(word);
    }
}

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.fold(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            self.fold(u64::from_le_bytes(word));
        }
    }

    fn finish(&self) -> u64 {
        let product = u128::from(self.state) * u128::from(self.factor);
        product as u64 ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn generated_ids_are_valid_and_distinct() {
        let ids = Ids::new();
        let single = (0..10_000).map(|_| TaskId::generate());
        let ids: HashSet<TaskId> = single.chain((0..10_000).map(|_| ids.task())).collect();
        assert_eq!(ids.len(), 20_000);
        assert!(ids.iter().all(|id| TaskId::new(id.as_str()).is_ok() && id.as_str().len() == 32));
    }

    #[test]
    fn similar_ids_have_hashes_that_spread() {
        let hashes = IdHashes::default();
        let long = (0..4096).map(|i| format!("{i:032}"));
        let short = (0..4096).map(|i| format!("job-{i}"));
        let grown = (1..=255).map(|length| "x".repeat(length));
        let all: Vec<TaskId> =
            long.chain(short).chain(grown).map(|id| TaskId::new(id).unwrap()).collect();
        let hashed: HashSet<u64> = all.iter().map(|id| hashes.hash_one(id)).collect();
        assert_eq!(hashed.len(), all.len());
        // A map takes the lowest bits for the place and the highest for a mark: eight to a place, on average.
        for shift in [0, 54] {
            let mut places = [0_u32; 1024];
            hashed.iter().for_each(|hash| places[(hash >> shift) as usize & 1023] += 1);
            assert!(places.into_iter().all(|ids| ids < 40), "{places:?}");
        }
        let again = TaskId::new(all[0].as_str()).unwrap();
        assert_eq!(hashes.hash_one(&again), IdHashes::default().hash_one(&all[0]));
    }
}

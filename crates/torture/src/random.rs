//! Choices from a seed: the same seed makes the same choices.

/// A small generator (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` up to, not including, `high`.
    pub(crate) const fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }

    /// One of them; none of none.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = self.next() as usize;
        from.get(index.checked_rem(from.len())?)
    }

    /// A choice by weight: the index.
    pub(crate) fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.within(0, weights.iter().sum::<u64>().max(1));
        for (i, weight) in weights.iter().enumerate() {
            match left.checked_sub(*weight) {
                Some(rest) => left = rest,
                None => return i,
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices_and_weights_count() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            (0..50).map(|_| random.weighted(&[5, 0, 1])).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(1).contains(&0) && draw(1).contains(&2) && !draw(1).contains(&1));
    }
}

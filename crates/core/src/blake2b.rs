//! BLAKE2b with a digest of 8 bytes, no key, no salt (RFC 7693): what buckets are made of (spec 3).
//!
//! Written here because core has no dependency; tested against the `blake2` crate.
#![expect(clippy::indexing_slicing, reason = "every index is a constant of the algorithm")]

const IV: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

const BLOCK: usize = 128;

/// BLAKE2b of `message` with `digest_len` (1 to 64) bytes of output, as eight little-endian words.
fn words(message: &[u8], digest_len: u8) -> [u64; 8] {
    let mut h = IV;
    h[0] ^= 0x0101_0000 ^ u64::from(digest_len);
    let whole = message.len().saturating_sub(1) / BLOCK * BLOCK;
    let (full, last) = message.split_at(whole);
    let mut done = 0u128;
    for block in full.chunks_exact(BLOCK) {
        done += BLOCK as u128;
        compress(&mut h, block, done, false);
    }
    let mut padded = [0; BLOCK];
    padded[..last.len()].copy_from_slice(last);
    compress(&mut h, &padded, done + last.len() as u128, true);
    h
}

fn compress(h: &mut [u64; 8], block: &[u8], counter: u128, last: bool) {
    let mut m = [0u64; 16];
    for (word, bytes) in m.iter_mut().zip(block.as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    let mut v = [0u64; 16];
    v[..8].copy_from_slice(h);
    v[8..].copy_from_slice(&IV);
    v[12] ^= counter as u64;
    v[13] ^= (counter >> 64) as u64;
    if last {
        v[14] = !v[14];
    }
    for round in 0..12 {
        let s = &SIGMA[round % 10];
        let mut mix = |a: usize, b: usize, c: usize, d: usize, i: usize| {
            v[a] = v[a].wrapping_add(v[b]).wrapping_add(m[s[i]]);
            v[d] = (v[d] ^ v[a]).rotate_right(32);
            v[c] = v[c].wrapping_add(v[d]);
            v[b] = (v[b] ^ v[c]).rotate_right(24);
            v[a] = v[a].wrapping_add(v[b]).wrapping_add(m[s[i + 1]]);
            v[d] = (v[d] ^ v[a]).rotate_right(16);
            v[c] = v[c].wrapping_add(v[d]);
            v[b] = (v[b] ^ v[c]).rotate_right(63);
        };
        mix(0, 4, 8, 12, 0);
        mix(1, 5, 9, 13, 2);
        mix(2, 6, 10, 14, 4);
        mix(3, 7, 11, 15, 6);
        mix(0, 5, 10, 15, 8);
        mix(1, 6, 11, 12, 10);
        mix(2, 7, 8, 13, 12);
        mix(3, 4, 9, 14, 14);
    }
    for (i, word) in h.iter_mut().enumerate() {
        *word ^= v[i] ^ v[i + 8];
    }
}

/// The 8-byte digest of `message`, read as a big-endian number.
#[must_use]
pub(crate) fn digest_u64(message: &[u8]) -> u64 {
    words(message, 8)[0].swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use blake2::digest::consts::U8;
    use blake2::{Blake2b, Blake2b512, Digest};
    use proptest::prelude::*;

    fn bytes(words: [u64; 8]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn rfc_7693_appendix_a() {
        let expected = "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1\
                        7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923";
        let hex: String = bytes(words(b"abc", 64)).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(hex, expected);
    }

    proptest! {
        #[test]
        fn agrees_with_the_blake2_crate(message in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert_eq!(bytes(words(&message, 64)), Blake2b512::digest(&message).to_vec());
            let short: [u8; 8] = Blake2b::<U8>::digest(&message).into();
            prop_assert_eq!(digest_u64(&message), u64::from_be_bytes(short));
        }
    }

    #[test]
    fn block_boundaries_agree_too() {
        for len in [0, 1, 127, 128, 129, 255, 256, 257, 1024] {
            let message = vec![7; len];
            assert_eq!(bytes(words(&message, 64)), Blake2b512::digest(&message).to_vec(), "{len}");
        }
    }
}

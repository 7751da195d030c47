//! Owns: scrypt (RFC 7914) with the parameters that `derivePassword` has, and HMAC-SHA-256.

use sha2::{Digest, Sha256};

/// Cost: the number of blocks in memory, each of 1 KiB.
const BLOCKS: usize = 32_768;
/// Words of a block.
const WORDS: usize = 256;
/// Number of parallel runs.
const PARALLEL: usize = 2;

type Block = [u32; WORDS];

/// HMAC-SHA-256.
pub(super) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut padded = [0; 64];
    if key.len() > 64 {
        padded[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        padded[..key.len()].copy_from_slice(key);
    }
    let mut inner = Sha256::new();
    inner.update(padded.map(|byte| byte ^ 0x36));
    for part in parts {
        inner.update(part);
    }
    let mut outer = Sha256::new();
    outer.update(padded.map(|byte| byte ^ 0x5c));
    outer.update(inner.finalize());
    outer.finalize().into()
}

/// PBKDF2 of one round.
fn stretched(password: &[u8], salt: &[u8], length: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut number = 1_u32;
    while out.len() < length {
        out.extend_from_slice(&hmac(password, &[salt, &number.to_be_bytes()]));
        number += 1;
    }
    out.truncate(length);
    out
}

/// A key of 64 bytes.
pub(super) fn key(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let mut bytes = stretched(password, salt, PARALLEL * WORDS * 4);
    for part in bytes.chunks_exact_mut(WORDS * 4) {
        let mut block = [0; WORDS];
        for (word, bytes) in block.iter_mut().zip(part.chunks_exact(4)) {
            *word = bytes
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        mix(&mut block);
        for (word, bytes) in block.iter().zip(part.chunks_exact_mut(4)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
    stretched(password, &bytes, 64)
}

fn mix(block: &mut Block) {
    let mut held = Vec::with_capacity(BLOCKS);
    for _ in 0..BLOCKS {
        held.push(*block);
        shuffle(block);
    }
    for _ in 0..BLOCKS {
        let at = block[WORDS - 16] as usize % BLOCKS;
        for (word, other) in block.iter_mut().zip(&held[at]) {
            *word ^= other;
        }
        shuffle(block);
    }
}

/// `scryptBlockMix`.
fn shuffle(block: &mut Block) {
    let mut last = [0_u32; 16];
    last.copy_from_slice(&block[WORDS - 16..]);
    let mut out = [0; WORDS];
    for at in 0..WORDS / 16 {
        for (word, other) in last.iter_mut().zip(&block[at * 16..]) {
            *word ^= other;
        }
        salsa(&mut last);
        let to = at / 2 * 16 + at % 2 * WORDS / 2;
        out[to..to + 16].copy_from_slice(&last);
    }
    *block = out;
}

/// Salsa20 of 8 rounds.
fn salsa(words: &mut [u32; 16]) {
    const ROUNDS: [[usize; 4]; 8] = [
        [0, 4, 8, 12],
        [5, 9, 13, 1],
        [10, 14, 2, 6],
        [15, 3, 7, 11],
        [0, 1, 2, 3],
        [5, 6, 7, 4],
        [10, 11, 8, 9],
        [15, 12, 13, 14],
    ];
    let before = *words;
    for _ in 0..4 {
        for [a, b, c, d] in ROUNDS {
            words[b] ^= words[a].wrapping_add(words[d]).rotate_left(7);
            words[c] ^= words[b].wrapping_add(words[a]).rotate_left(9);
            words[d] ^= words[c].wrapping_add(words[b]).rotate_left(13);
            words[a] ^= words[d].wrapping_add(words[c]).rotate_left(18);
        }
    }
    for (word, old) in words.iter_mut().zip(before) {
        *word = word.wrapping_add(old);
    }
}

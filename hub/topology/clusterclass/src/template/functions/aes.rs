//! Owns: AES-256 in CBC, backwards, which is all that `decryptAES` needs.
//! Never: keeps a secret from anybody who can measure time; a class has its password beside the encrypted text.

/// Bytes of a block.
pub(super) const BLOCK: usize = 16;
const ROUNDS: usize = 14;

fn double(byte: u8) -> u8 {
    byte << 1 ^ if byte & 0x80 != 0 { 0x1b } else { 0 }
}

fn product(mut one: u8, mut two: u8) -> u8 {
    let mut out = 0;
    while two != 0 {
        if two & 1 != 0 {
            out ^= one;
        }
        one = double(one);
        two >>= 1;
    }
    out
}

/// The substitution and its inverse.
fn boxes() -> ([u8; 256], [u8; 256]) {
    let (mut forth, mut back) = ([0; 256], [0; 256]);
    for value in 0..=255_u8 {
        let inverse = (1..=255_u8)
            .find(|other| product(value, *other) == 1)
            .unwrap_or(0);
        let mixed = (0..5).fold(0, |mixed, turn| mixed ^ inverse.rotate_left(turn)) ^ 0x63;
        forth[usize::from(value)] = mixed;
        back[usize::from(mixed)] = value;
    }
    (forth, back)
}

fn expanded(key: &[u8; 32], forth: &[u8; 256]) -> Vec<[u8; 4]> {
    let mut words: Vec<[u8; 4]> = key
        .chunks_exact(4)
        .map(|word| [word[0], word[1], word[2], word[3]])
        .collect();
    let mut constant = 1;
    for at in 8..4 * (ROUNDS + 1) {
        let mut word = words[at - 1];
        if at % 8 == 0 {
            word.rotate_left(1);
        }
        if at % 4 == 0 {
            word = word.map(|byte| forth[usize::from(byte)]);
        }
        if at % 8 == 0 {
            word[0] ^= constant;
            constant = double(constant);
        }
        for (byte, old) in word.iter_mut().zip(words[at - 8]) {
            *byte ^= old;
        }
        words.push(word);
    }
    words
}

fn add_key(state: &mut [u8; BLOCK], words: &[[u8; 4]], round: usize) {
    for (byte, key) in state
        .iter_mut()
        .zip(words[round * 4..round * 4 + 4].iter().flatten())
    {
        *byte ^= key;
    }
}

fn decrypt_block(state: &mut [u8; BLOCK], words: &[[u8; 4]], back: &[u8; 256]) {
    add_key(state, words, ROUNDS);
    for round in (0..ROUNDS).rev() {
        let old = *state;
        for column in 0..4 {
            for row in 0..4 {
                state[(column + row) % 4 * 4 + row] = back[usize::from(old[column * 4 + row])];
            }
        }
        add_key(state, words, round);
        if round == 0 {
            break;
        }
        for column in state.chunks_exact_mut(4) {
            let old = [column[0], column[1], column[2], column[3]];
            for (row, byte) in column.iter_mut().enumerate() {
                let factors = [14, 11, 13, 9];
                *byte = (0..4).fold(0, |sum, at| sum ^ product(old[(row + at) % 4], factors[at]));
            }
        }
    }
}

/// Decrypts whole blocks.
pub(super) fn decrypt(key: &[u8; 32], start: &[u8], text: &[u8]) -> Vec<u8> {
    let (forth, back) = boxes();
    let words = expanded(key, &forth);
    let mut before = start;
    let mut out = Vec::with_capacity(text.len());
    for block in text.chunks_exact(BLOCK) {
        let mut state = [0; BLOCK];
        state.copy_from_slice(block);
        decrypt_block(&mut state, &words, &back);
        out.extend(state.iter().zip(before).map(|(byte, other)| byte ^ other));
        before = block;
    }
    out
}

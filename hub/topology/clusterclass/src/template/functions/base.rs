//! Owns: base 64 and base 32 with padding, and where Go says that a text is none.

const ALPHABET64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const ALPHABET32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Base 64.
pub(super) fn encode64(bytes: &[u8]) -> Vec<u8> {
    encode(bytes, ALPHABET64, 3, 6)
}

/// Base 32.
pub(super) fn encode32(bytes: &[u8]) -> Vec<u8> {
    encode(bytes, ALPHABET32, 5, 5)
}

fn encode(bytes: &[u8], alphabet: &[u8], group: usize, bits: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(group) * group * 8 / bits);
    for chunk in bytes.chunks(group) {
        let mut word = 0_u64;
        for at in 0..group {
            word = word << 8 | u64::from(chunk.get(at).copied().unwrap_or(0));
        }
        let digits = group * 8 / bits;
        let used = (chunk.len() * 8).div_ceil(bits);
        for at in 0..digits {
            let digit = (word >> (bits * (digits - 1 - at))) as usize & (alphabet.len() - 1);
            out.push(if at < used { alphabet[digit] } else { b'=' });
        }
    }
    out
}

fn digit(byte: u8, alphabet: &[u8]) -> Option<u64> {
    alphabet
        .iter()
        .position(|known| *known == byte)
        .map(|at| at as u64)
}

fn is_newline(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// The bytes, or the offset at which the text is no base 64.
pub(super) fn decode64(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let mut word = 0;
        let mut count = 0;
        let mut padded = false;
        while count < 4 && !padded {
            let Some(byte) = text.get(at).copied() else {
                return if count == 0 { Ok(out) } else { Err(at - count) };
            };
            at += 1;
            if let Some(value) = digit(byte, ALPHABET64) {
                word = word << 6 | value;
                count += 1;
            } else if byte == b'=' {
                at = padding64(text, at, count)?;
                padded = true;
            } else if !is_newline(byte) {
                return Err(at - 1);
            }
        }
        word <<= 6 * (4 - count);
        let bytes = [(word >> 16) as u8, (word >> 8) as u8, word as u8];
        out.extend_from_slice(&bytes[..count.saturating_sub(1)]);
    }
    Ok(out)
}

/// Behind the padding, after its first sign; nothing else may follow.
fn padding64(text: &[u8], mut at: usize, count: usize) -> Result<usize, usize> {
    if count < 2 {
        return Err(at - 1);
    }
    let skip = |mut at: usize| {
        while text.get(at).copied().is_some_and(is_newline) {
            at += 1;
        }
        at
    };
    if count == 2 {
        at = skip(at);
        match text.get(at) {
            None => return Err(text.len()),
            Some(b'=') => at += 1,
            Some(_) => return Err(at - 1),
        }
    }
    at = skip(at);
    if at < text.len() { Err(at) } else { Ok(at) }
}

/// The bytes, or the offset at which the text is no base 32.
pub(super) fn decode32(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> = text.iter().copied().filter(|byte| !is_newline(*byte)).collect();
    let mut out = Vec::new();
    let mut at = 0;
    let mut ended = false;
    while at < text.len() && !ended {
        let mut word = 0_u64;
        let mut count = 0;
        while count < 8 {
            let Some(byte) = text.get(at).copied() else {
                return Err(at - count);
            };
            at += 1;
            let left = text.len() - at;
            if byte == b'=' && count >= 2 && left < 8 {
                padding32(&text, at, count)?;
                ended = true;
                break;
            }
            word = word << 5 | digit(byte, ALPHABET32).ok_or(at - 1)?;
            count += 1;
        }
        word <<= 5 * (8 - count);
        let bytes = word.to_be_bytes();
        out.extend_from_slice(&bytes[3..3 + count * 5 / 8]);
    }
    Ok(out)
}

fn padding32(text: &[u8], at: usize, count: usize) -> Result<(), usize> {
    let left = text.len() - at;
    if left + count < 7 {
        return Err(text.len());
    }
    for more in 0..7 - count {
        if text.get(at + more).is_some_and(|byte| *byte != b'=') {
            return Err(at + more - 1);
        }
    }
    if matches!(count, 1 | 3 | 6) {
        return Err(at - 1);
    }
    Ok(())
}

//! Bytes of fixed size: cut from a hash, read from digits. It hashes nothing.

use data_encoding::HEXLOWER;

/// The first 16 bytes of a blake3 hash: enough against accident and for a chain.
pub fn first_16(hash: &[u8; 32]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes
}

/// Reads bytes written as lower-case hexadecimal digits, two a byte; nothing for any other text.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    // The decoder asks for a buffer of exactly the text's bytes, and panics with another.
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    HEXLOWER.decode_mut(text.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_digits_that_are_printed_are_read() {
        assert_eq!(from_hex("00ff"), Some([0, 0xff]));
        for text in [
            "", "00f", "00ff0", "00ff00", "00FF", "00fg", "00:ff", "0x00", "é€",
        ] {
            assert_eq!(from_hex::<2>(text), None, "{text}");
        }
    }
}

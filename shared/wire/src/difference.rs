//! The difference between two versions of the same encoded object, and the way back.
//!
//! It is a zstd frame whose dictionary is the older version, so the common parts cost next to nothing, wherever they
//! are. Pure: bytes in, bytes out. The base, its keeper, and the hash that identifies it belong to the code that stores
//! or sends a difference; a difference over another base gives an error or other bytes, and only a hash of the whole
//! tells.

use std::cell::RefCell;
use std::io;

use thiserror::Error;
use zstd::bulk::{Compressor, Decompressor};

/// Larger wholes have no difference and are not restored, in bytes: no event is larger.
pub const WHOLE_MAX: usize = 1 << 20;

/// zstd's fastest regular level: between two versions of an object it finds as much as the slow ones.
const LEVEL: i32 = 1;

/// Bytes from which no object can be made.
#[derive(Debug, Error)]
#[error("a difference of {length} bytes does not lead from its base to an object: {cause}")]
pub struct BrokenDifference {
    length: usize,
    cause: io::Error,
}

thread_local! {
    // A context is a few hundred kilobytes and made for being used again.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// The difference from `base` to `whole`, if it takes at most half of the whole's bytes; `None`: keep the whole.
#[must_use]
pub fn difference(base: &[u8], whole: &[u8]) -> Option<Vec<u8>> {
    if base.is_empty() || base.len() > WHOLE_MAX || whole.len() > WHOLE_MAX {
        return None;
    }
    let made = COMPRESSOR.with_borrow_mut(|slot| {
        let compressor = match slot {
            Some(compressor) => compressor,
            None => slot.insert(Compressor::new(LEVEL)?),
        };
        compressor.set_dictionary(LEVEL, base)?;
        compressor.compress(whole)
    });
    // A failure of zstd, say for lack of memory, is no reason not to keep the whole.
    made.ok().filter(|made| made.len() <= whole.len() / 2)
}

/// The object that `difference` leads to from `base`: of at most [`WHOLE_MAX`] bytes, however many the difference claims.
///
/// # Errors
///
/// [`BrokenDifference`] for bytes that no difference over any base could be, and for some over another base.
pub fn restore(base: &[u8], difference: &[u8]) -> Result<Vec<u8>, BrokenDifference> {
    let restored = DECOMPRESSOR.with_borrow_mut(|slot| {
        let decompressor = match slot {
            Some(decompressor) => decompressor,
            None => slot.insert(Decompressor::new()?),
        };
        decompressor.set_dictionary(base)?;
        decompressor.decompress(difference, WHOLE_MAX)
    });
    restored.map_err(|cause| BrokenDifference {
        length: difference.len(),
        cause,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An object of many entries, as an encoded slice is one: entry `changed` has another number.
    fn object(entries: u32, changed: u32) -> Vec<u8> {
        let numbers = (0..entries).map(|entry| if entry == changed { u32::MAX } else { entry });
        numbers
            .flat_map(|number| format!("10.0.{}.{} pod-{number:x}", number % 256, number / 256).into_bytes())
            .collect()
    }

    #[test]
    fn one_changed_entry_of_a_hundred_costs_less_than_a_hundred_bytes() {
        let (base, whole) = (object(100, u32::MAX - 1), object(100, 50));
        let made = difference(&base, &whole).expect("much is shared");
        assert!(made.len() < 100, "{} bytes of {}", made.len(), whole.len());
        assert_eq!(restore(&base, &made).expect("the same base"), whole);
    }

    #[test]
    fn what_shares_little_is_kept_whole() {
        assert_eq!(difference(b"", b"something"), None);
        assert_eq!(difference(b"one thing", b"another matter"), None);
        assert_eq!(difference(&[7; 100], &vec![7; WHOLE_MAX + 1]), None);
    }

    #[test]
    fn no_difference_grows_beyond_the_bound() {
        let bomb = zstd::bulk::compress(&vec![0; WHOLE_MAX + 1], 1).expect("zeros compress");
        assert!(bomb.len() < 1_000);
        let refused = restore(b"a base", &bomb).expect_err("more than the bound");
        assert!(
            refused.to_string().contains("does not lead from its base"),
            "{refused}"
        );
    }

    proptest! {
        #[test]
        fn the_way_back_is_exact(base: Vec<u8>, at in any::<prop::sample::Index>(), put: Vec<u8>) {
            let mut whole = base.clone();
            let at = at.index(base.len() + 1);
            whole.splice(at..at, put);
            if let Some(made) = difference(&base, &whole) {
                prop_assert_eq!(restore(&base, &made).expect("the same base"), whole);
            }
        }

        #[test]
        fn any_bytes_are_an_error_or_an_object(base: Vec<u8>, bytes: Vec<u8>) {
            if let Ok(restored) = restore(&base, &bytes) {
                prop_assert!(restored.len() <= WHOLE_MAX);
            }
        }
    }
}

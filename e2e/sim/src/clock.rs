//! A simulated cluster's input from outside: the time and seeded randomness. Never reads the machine's clock unless it
//! was given the wall clock, never anything else's randomness.

use std::sync::atomic::{AtomicI64, Ordering};

/// Tells a simulated cluster the time, in milliseconds since the epoch.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now_ms(&self) -> i64;
}

/// The machine's clock, for the demo.
#[derive(Debug, Default)]
pub struct WallClock;

impl Clock for WallClock {
    fn now_ms(&self) -> i64 {
        jiff::Timestamp::now().as_millisecond()
    }
}

/// A clock that moves only when a test moves it.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `now_ms`.
    pub fn new(now_ms: i64) -> Self {
        Self(AtomicI64::new(now_ms))
    }

    /// Moves the clock forward (or, for a skewed cluster, back).
    pub fn advance(&self, by_ms: i64) {
        self.0.fetch_add(by_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The time as `metav1.Time` writes it: whole seconds, so that equal timestamps happen as they do for real.
pub(crate) fn timestamp(now_ms: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(now_ms).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A splitmix64 generator: the same seed gives the same ids and the same faults on every machine and version.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

/// The letters that the API server's name generator uses.
const NAME_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// Number of characters after a generateName.
const NAME_SUFFIX_LENGTH: usize = 5;

impl Seeded {
    /// A generator that this seed decides.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The uid of a new object.
    pub fn uid(&mut self) -> String {
        let (a, b) = (self.number(), self.number());
        let (high, middle, low) = (a >> 32, (a >> 16) & 0xffff, a & 0xfff);
        format!(
            "{high:08x}-{middle:04x}-4{low:03x}-{:04x}-{:012x}",
            (b >> 48) & 0x3fff | 0x8000,
            b & 0xffff_ffff_ffff
        )
    }

    /// The end of a generated name.
    pub fn name_suffix(&mut self) -> String {
        let letters = NAME_LETTERS.len() as u64;
        (0..NAME_SUFFIX_LENGTH)
            .map(|_| NAME_LETTERS[(self.number() % letters) as usize] as char)
            .collect()
    }
}

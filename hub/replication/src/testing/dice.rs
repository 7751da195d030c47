//! Random numbers that a seed decides (splitmix64).

/// A generator of random numbers.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// The one of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from one bound to another, both included.
    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.roll() % (to - from + 1)
    }

    /// True so many times in a thousand.
    pub fn in_thousand(&mut self, times: u64) -> bool {
        self.roll() % 1_000 < times
    }
}

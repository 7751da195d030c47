//! Owns: numbers drawn from a seed, in the forms that scripts and turns ask for.
//! Never: says what they decide.

use sim::Seeded;

/// Numbers drawn from a seed.
#[derive(Debug, Clone)]
pub(super) struct Draw(Seeded);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(Seeded::new(seed))
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0.number() % bound.max(1)
    }

    pub(super) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    pub(super) fn small(&mut self, bound: u8) -> u8 {
        u8::try_from(self.below(u64::from(bound))).unwrap_or_default()
    }

    /// True so often in a hundred.
    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn number(&mut self) -> u64 {
        self.0.number()
    }
}

//! Owns: which seeds a run plays: those that broke a law once, then a range, whose first one may come from a text.
//! Never: plays them.

use std::fmt;

/// The seeds that are kept, with the reason of each.
const KEPT: &str = include_str!("../../fixtures/seeds.txt");

/// The simulation of a kept seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simulation {
    /// A small world of the swarm.
    Small,
    /// A large world of the swarm.
    Large,
    /// The simulated network.
    Network,
}

/// The seeds of one run, in the order in which they are played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeds {
    kept: Vec<u64>,
    first: u64,
    count: u64,
}

impl Seeds {
    /// `count` seeds from `first` on.
    pub fn range(first: u64, count: u64) -> Self {
        Self {
            kept: Vec::new(),
            first,
            count,
        }
    }

    /// All kept seeds of a simulation, then `count` seeds whose first is derived from `text`.
    pub fn fresh(simulation: Simulation, text: &str, count: u64) -> Self {
        let kept = kept().filter(|(of, _)| *of == simulation).map(|(_, seed)| seed);
        Self {
            kept: kept.collect(),
            ..Self::range(first_of(text), count)
        }
    }

    /// The seed that is played as number `index`, counted from 0, if there are so many.
    pub fn get(&self, index: u64) -> Option<u64> {
        let kept = self.kept.len() as u64;
        let offset = index.checked_sub(kept);
        match offset {
            None => self.kept.get(usize::try_from(index).ok()?).copied(),
            Some(offset) => (offset < self.count).then(|| self.first.wrapping_add(offset)),
        }
    }

    /// The number of seeds.
    pub fn count(&self) -> u64 {
        self.count + self.kept.len() as u64
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.kept.is_empty() {
            write!(f, "{} kept seeds and ", self.kept.len())?;
        }
        write!(f, "{} seeds from {} on", self.count, self.first)
    }
}

/// The first seed that a text stands for: 48 bits of its BLAKE3 hash, so that the seed stays readable.
fn first_of(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    let bytes = hash.as_bytes().iter().take(6);
    bytes.fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

fn kept() -> impl Iterator<Item = (Simulation, u64)> {
    let lines = KEPT
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| parsed(line).unwrap_or_else(|| panic!("e2e/fixtures/seeds.txt: cannot read: {line}")))
}

fn parsed(line: &str) -> Option<(Simulation, u64)> {
    let (simulation, rest) = line.split_once(' ')?;
    let (seed, why) = rest.split_once(' ')?;
    let simulation = match simulation {
        "small" => Simulation::Small,
        "large" => Simulation::Large,
        "netsim" => Simulation::Network,
        _ => return None,
    };
    (!why.is_empty()).then_some((simulation, seed.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_simulation_keeps_seeds_and_says_why() {
        for simulation in [Simulation::Small, Simulation::Large, Simulation::Network] {
            assert!(
                kept().any(|(of, _)| of == simulation),
                "none of {simulation:?} is kept"
            );
        }
        assert_eq!(parsed("small 7"), None);
        assert_eq!(parsed("tiny 7 why"), None);
        assert_eq!(parsed("large 7 why"), Some((Simulation::Large, 7)));
    }

    #[test]
    fn a_text_stands_for_the_same_seeds_wherever_it_is_read() {
        assert_eq!(first_of(""), 0xaf13_49b9_f5f9);
        assert_ne!(first_of("dc629462"), first_of("dc629463"));
    }

    #[test]
    fn kept_seeds_come_first_and_every_seed_comes_once() {
        let seeds = Seeds {
            kept: vec![9, 4],
            ..Seeds::range(100, 3)
        };
        let played: Vec<u64> = (0..).map_while(|index| seeds.get(index)).collect();
        assert_eq!(played, [9, 4, 100, 101, 102]);
        assert_eq!(seeds.count(), 5);
        assert_eq!(seeds.to_string(), "2 kept seeds and 3 seeds from 100 on");
        assert_eq!(Seeds::range(1, 2).to_string(), "2 seeds from 1 on");
    }
}

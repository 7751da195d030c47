//! Owns: cases that are drawn from a seed: templates of nested calls, rows of tokens, texts of YAML, regular expressions.
//! Never: renders one.

mod actions;
mod expressions;
mod texts;
mod tokens;
mod words;

use rand::{RngExt, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::Value;

pub(super) use self::words::WORDS;

/// One case.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Case {
    /// The template.
    pub(super) template: String,
    /// The variables, an object.
    pub(super) variables: Value,
}

/// The cases of a seed: the same for the same seed and count.
pub(super) fn cases(seed: u64, count: usize) -> Vec<Case> {
    let mut draw = Draw(StdRng::seed_from_u64(seed));
    let mut cases = vec![actions::password(&mut draw)];
    cases.resize_with(count.max(1), || match draw.below(20) {
        0..10 => actions::case(&mut draw),
        10..13 => tokens::case(&mut draw),
        13..17 => texts::case(&mut draw),
        _ => expressions::case(&mut draw),
    });
    cases
}

/// The random generator.
struct Draw(StdRng);

impl Draw {
    /// A number below this one, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    /// True that many times of a hundred.
    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of them; there is at least one.
    fn one<'w, W: AsRef<str>>(&mut self, words: &'w [W]) -> &'w str {
        words.choose(&mut self.0).map(W::as_ref).unwrap_or_default()
    }

    /// Several of them, one after the other.
    fn row(&mut self, words: &[String], count: usize) -> String {
        (0..count).map(|_| self.one(words)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_cases_twice_and_another_one_others() {
        assert_eq!(cases(7, 50), cases(7, 50));
        assert_eq!(cases(7, 50)[..20], cases(7, 20));
        assert_ne!(cases(7, 50), cases(8, 50));
    }
}

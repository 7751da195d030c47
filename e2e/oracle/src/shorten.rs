//! Owns: the search for a short list that breaks what a long one breaks: parts of it are left out as long as it does.
//! Never: knows what is in the list.

use std::time::{Duration, Instant};

/// Longest time of a search.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Most lists that are tried.
    pub tries: usize,
    /// The time after which no further list is tried.
    pub time: Duration,
}

/// A shorter list, if there is one. `breaks` says how many items of a list it took to break it, or nothing if it did
/// not break.
pub fn shorten<T: Clone>(
    mut best: Vec<T>,
    effort: Effort,
    mut breaks: impl FnMut(&[T]) -> Option<usize>,
) -> Vec<T> {
    let began = Instant::now();
    let mut tries = 0;
    let mut size = best.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < best.len() {
            if tries >= effort.tries || began.elapsed() >= effort.time {
                return best;
            }
            tries += 1;
            let mut shorter = best.clone();
            shorter.drain(at..(at + size).min(best.len()));
            match breaks(&shorter) {
                Some(needed) => {
                    shorter.truncate(needed);
                    best = shorter;
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    best
}

/// The kind of a failure: the law that it names, without the time at which it broke.
pub fn kind_of(failure: &str) -> String {
    let law = match failure.split_once(" ms: ") {
        Some((at, law)) if at.starts_with("at ") => law,
        _ => failure,
    };
    let named = law.split(':').next().unwrap_or_default();
    named.chars().filter(|one| !one.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORT: Effort = Effort {
        tries: 1_000,
        time: Duration::MAX,
    };

    #[test]
    fn only_what_it_takes_is_left() {
        let mut tried = 0;
        let breaks = |items: &[u8]| {
            tried += 1;
            let last = items.iter().position(|item| *item == 70)?;
            items[..last].contains(&7).then_some(last + 1)
        };
        assert_eq!(shorten((0..100).collect(), EFFORT, breaks), [7, 70]);
        assert!(tried > 2, "{tried}");
    }

    #[test]
    fn a_failure_is_of_the_same_kind_at_another_time_and_elsewhere() {
        let broke = "at 81250 ms: what stood stays: east, the import";
        assert_eq!(kind_of(broke), kind_of("what stood stays: west, the import"));
        assert_ne!(kind_of(broke), kind_of("no write when nothing changed: west"));
        let late =
            |count: u8| format!("not right 120 s after everything was mended, with {count} sessions: a; b");
        assert_eq!(kind_of(&late(0)), kind_of(&late(2)));
    }

    #[test]
    fn a_search_ends_in_time() {
        let long: Vec<u8> = (0..100).collect();
        let none = Effort {
            time: Duration::ZERO,
            ..EFFORT
        };
        assert_eq!(shorten(long.clone(), none, |_| Some(0)), long);
        let mut tried = 0;
        let few = Effort { tries: 3, ..EFFORT };
        let breaks = |_: &[u8]| {
            tried += 1;
            None
        };
        assert_eq!(shorten(long.clone(), few, breaks), long);
        assert_eq!(tried, 3);
    }
}

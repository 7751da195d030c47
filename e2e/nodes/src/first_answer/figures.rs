//! Owns: times between readiness and answers, and what is said of many. Pure.
//! Never: measures one.

use crate::lines::Moment;

/// Microseconds; below zero where an answer was there before the event that its pod is ready.
pub(super) type Micros = i64;

/// From one time to another.
pub(super) fn signed(from: Moment, to: Moment) -> Micros {
    let micros = |time: Moment| Micros::try_from(time.as_micros()).unwrap_or(Micros::MAX);
    micros(to) - micros(from)
}

/// Count, median, p99 and ends, as people read them.
pub(super) fn shown(figures: &[Micros]) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    let millis = |percent| match percentile(&sorted, percent) {
        Some(micros) => format!("{:.1} ms", micros as f64 / 1e3),
        None => "nothing".to_owned(),
    };
    format!(
        "{} pods, p50 {}, p99 {}, from {} to {}",
        sorted.len(),
        millis(50),
        millis(99),
        millis(0),
        millis(100)
    )
}

/// The smallest figure that so many percent are not above.
fn percentile(sorted: &[Micros], percent: usize) -> Option<Micros> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_percentile_is_one_of_the_figures() {
        let sorted: Vec<Micros> = (1..=200).collect();
        let found = [0, 50, 99, 100].map(|percent| percentile(&sorted, percent));
        assert_eq!(found, [Some(1), Some(100), Some(198), Some(200)]);
        assert_eq!(percentile(&[7], 99), Some(7));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn figures_are_shown_in_milliseconds_and_may_be_below_zero() {
        let said = shown(&[12_340, -1_500, 30_000]);
        assert_eq!(said, "3 pods, p50 12.3 ms, p99 30.0 ms, from -1.5 ms to 30.0 ms");
        let (early, late) = (Duration::from_millis(5), Duration::from_millis(7));
        assert_eq!((signed(early, late), signed(late, early)), (2_000, -2_000));
    }
}

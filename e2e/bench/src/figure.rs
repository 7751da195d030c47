//! Owns: one measured value: how often it was taken, between what it lay, and what it is to be.
//! Never: hides a run: the table has minimum, median and maximum, the JSON file each value.

use serde::Serialize;

/// One measured value, taken once or in several runs.
#[derive(Debug, Serialize)]
pub(super) struct Figure {
    pub(super) name: String,
    /// One for each run, in their order.
    values: Vec<f64>,
    unit: &'static str,
    aim: Option<Aim>,
}

/// The aim of a figure. With several runs the median is judged.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) enum Aim {
    /// Not less.
    AtLeast(f64),
    /// Less.
    Below(f64),
}

impl Aim {
    fn met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(aim) => value >= aim,
            Self::Below(aim) => value < aim,
        }
    }
}

impl Figure {
    /// A value of one run.
    pub(super) fn new(name: impl Into<String>, value: f64, unit: &'static str, aim: Option<Aim>) -> Self {
        Self {
            name: name.into(),
            values: vec![value],
            unit,
            aim,
        }
    }

    /// Takes the values of another run's figure of this name. Where one run could not be judged the median is not.
    pub(super) fn take_run(&mut self, other: Self) {
        self.values.extend(other.values);
        self.aim = self.aim.filter(|_| other.aim.is_some());
    }

    /// The line of the table: one value, or minimum, median and maximum of several.
    pub(super) fn line(&self) -> String {
        let [least, median, most] = self.spread();
        let value = match self.values.len() {
            1 => number(median),
            _ => format!("{} – {} – {}", number(least), number(median), number(most)),
        };
        let verdict = match self.aim {
            None => String::new(),
            Some(aim) => {
                let (word, bound) = match aim {
                    Aim::AtLeast(bound) => ("at least", bound),
                    Aim::Below(bound) => ("below", bound),
                };
                let met = if aim.met(median) { "met" } else { "MISSED" };
                format!("aim {word} {}: {met}", number(bound))
            }
        };
        let line = format!("  {:<46} {value:>24} {:<12} {verdict}", self.name, self.unit);
        line.trim_end().to_owned()
    }

    /// Minimum, median and maximum. Of an even number of runs the median is the upper one.
    fn spread(&self) -> [f64; 3] {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
        [at(0), at(sorted.len() / 2), at(sorted.len().saturating_sub(1))]
    }
}

/// Three digits or more, thousands set apart.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        let left = whole.len() - index;
        if index > 0 && left.is_multiple_of(3) && !grouped.ends_with('-') {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let cases = [
            (0.0, "0"),
            (0.123, "0.12"),
            (12.34, "12.3"),
            (123.4, "123"),
            (1_234_567.0, "1,234,567"),
            (-1_234.0, "-1,234"),
            (-123_456.0, "-123,456"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_missed_aim_is_said_loudly() {
        let rate = Figure::new("rate", 5.0, "facts/s", Some(Aim::AtLeast(10.0)));
        let latency = Figure::new("latency", 5.0, "ms", Some(Aim::Below(10.0)));
        assert!(rate.line().ends_with("MISSED"));
        assert!(latency.line().ends_with(": met"));
    }

    #[test]
    fn of_several_runs_the_median_is_judged_and_all_are_shown() {
        let mut figure = Figure::new("p99", 30.0, "ms", Some(Aim::Below(20.0)));
        for value in [5.0, 12.0] {
            figure.take_run(Figure::new("p99", value, "ms", Some(Aim::Below(20.0))));
        }
        assert!(figure.line().contains("5.00 – 12.0 – 30.0"), "{}", figure.line());
        assert!(figure.line().ends_with(": met"));
    }

    #[test]
    fn a_run_that_cannot_be_judged_takes_the_aim_away() {
        let judged = || Figure::new("ratio", 1.0, "", Some(Aim::Below(2.0)));
        let unjudged = || Figure::new("ratio", 1.0, "", None);
        for (mut first, second) in [(judged(), unjudged()), (unjudged(), judged())] {
            first.take_run(second);
            assert!(!first.line().contains("aim"), "{}", first.line());
        }
    }
}

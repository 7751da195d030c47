//! Owns: Tributary's wave beside the relay's: the latencies of both, what arrived, and the ratio, which has an aim only
//! where it says something.
//! Never: measures, or leaves the ratio out because it says nothing.

use super::{
    super::{figure::Aim, report::Section},
    way::Wave,
};

/// Times the floor that Tributary may take.
const RATIO_AIMS: [(&str, f64, f64); 2] = [("p50", 0.5, 1.5), ("p99", 0.99, 2.0)];
/// At least this share of the changes must have arrived on a side for it to count as one that sustains the rate: others
/// were replaced before they were carried, and are in no latency.
const SUSTAINED: f64 = 0.99;
/// A relay whose median is slower does not sustain the rate: the bare writes take a few milliseconds, so that a second
/// is a queue of hundreds of them. It grows with the length of the run, and a ratio of two queues says how long was
/// measured, not what was added.
const RELAY_P50_SECONDS_MAX: f64 = 1.0;

/// Ours beside the floor.
pub(super) fn compare(section: &mut Section, bare: &Wave, ours: &Wave) {
    let relay_fails = why_the_relay_fails(bare);
    for (who, wave) in [("relay", bare), ("Tributary", ours)] {
        let millis = |quantile| wave.latency.value_at_quantile(quantile) as f64 / 1e3;
        for (name, quantile, _) in RATIO_AIMS {
            section.figure(format!("{who}: due to decoded {name}"), millis(quantile), "ms");
        }
        section.figure(format!("{who}: max"), wave.latency.max() as f64 / 1e3, "ms");
        section.figure(format!("{who}: asked for"), f64::from(wave.asked_for), "updates");
        section.figure(format!("{who}: arrived"), wave.latency.len() as f64, "updates");
    }
    section.figure("relay: share that arrived", share(bare), "of 1");
    let arrived = "Tributary: share that arrived";
    match relay_fails {
        // What the relay sustains Tributary has to: a ratio without an aim is no excuse there.
        None => section.aimed(arrived, share(ours), "of 1", Aim::AtLeast(SUSTAINED)),
        Some(_) => section.figure(arrived, share(ours), "of 1"),
    }
    let why_not = relay_fails.or_else(|| why_it_lost("Tributary", ours));
    for (name, quantile, aim) in RATIO_AIMS {
        let of = |wave: &Wave| wave.latency.value_at_quantile(quantile) as f64;
        let (title, ratio) = (
            format!("ratio {name}, Tributary to relay"),
            of(ours) / of(bare).max(1.0),
        );
        match why_not {
            None => section.aimed(title, ratio, "", Aim::Below(aim)),
            Some(_) => section.figure(title, ratio, ""),
        }
    }
    if let Some(why) = why_not {
        section.note(format!("the ratios are not judged in a run in which {why}"));
    }
}

/// The share of the changes that arrived.
fn share(wave: &Wave) -> f64 {
    wave.latency.len() as f64 / f64::from(wave.asked_for)
}

fn why_the_relay_fails(bare: &Wave) -> Option<String> {
    let seconds = bare.latency.value_at_quantile(0.5) as f64 / 1e6;
    if seconds > RELAY_P50_SECONDS_MAX {
        let slow = format!("the relay does not sustain the rate: its p50 exceeds {RELAY_P50_SECONDS_MAX} s");
        return Some(slow);
    }
    why_it_lost("the relay", bare)
}

fn why_it_lost(who: &str, wave: &Wave) -> Option<String> {
    let lost = share(wave) < SUSTAINED;
    lost.then(|| {
        format!("{who} does not sustain the rate: less than {SUSTAINED} of its changes arrived, others replaced them")
    })
}

#[cfg(test)]
mod tests {
    use super::{super::super::report::latencies, *};

    /// A wave in which so many of 1,000 changes arrived, each after so long.
    fn wave(arrived: u64, millis: u64) -> Wave {
        let mut latency = latencies().expect("valid");
        latency.record_n(millis * 1_000, arrived).expect("in range");
        Wave {
            asked_for: 1_000,
            latency,
        }
    }

    fn compared(bare: &Wave, ours: &Wave) -> (Vec<String>, Vec<String>) {
        let mut section = Section::begin("compared");
        compare(&mut section, bare, ours);
        let lines = section.figures.iter().map(|figure| figure.line()).collect();
        (lines, section.notes)
    }

    fn line<'a>(lines: &'a [String], name: &str) -> &'a str {
        let found = lines.iter().find(|line| line.trim_start().starts_with(name));
        found.expect("it is printed")
    }

    #[test]
    fn where_both_sustain_the_rate_the_ratio_is_judged() {
        let (lines, notes) = compared(&wave(1_000, 10), &wave(995, 12));
        assert!(line(&lines, "ratio p50").ends_with("aim below 1.50: met"));
        assert!(line(&lines, "ratio p99").ends_with("aim below 2.00: met"));
        assert!(line(&lines, "Tributary: share that arrived").ends_with(": met"));
        assert!(notes.is_empty(), "{notes:?}");
        let (lines, _) = compared(&wave(1_000, 10), &wave(1_000, 25));
        assert!(line(&lines, "ratio p50").ends_with("MISSED"));
    }

    #[test]
    fn asked_for_and_arrived_are_printed_for_both() {
        let (lines, _) = compared(&wave(1_000, 10), &wave(700, 12));
        for (name, value) in [
            ("relay: asked for", "1,000 updates"),
            ("relay: arrived", "1,000 updates"),
            ("Tributary: asked for", "1,000 updates"),
            ("Tributary: arrived", "700 updates"),
        ] {
            assert!(line(&lines, name).contains(value), "{lines:?}");
        }
    }

    #[test]
    fn where_both_collapse_nothing_is_met() {
        let (lines, notes) = compared(&wave(1_000, 1_600), &wave(1_000, 1_700));
        for name in ["ratio p50", "ratio p99"] {
            let line = line(&lines, name);
            assert!(line.contains("1.06"), "{line}");
            assert!(!line.contains("aim"), "{line}");
        }
        assert!(notes[0].contains("the relay does not sustain the rate: its p50 exceeds 1 s"));
        let (lines, notes) = compared(&wave(900, 500), &wave(900, 500));
        assert!(!line(&lines, "ratio p50").contains("aim"));
        assert!(notes[0].contains("the relay does not sustain"), "{notes:?}");
    }

    #[test]
    fn what_the_relay_sustains_and_tributary_does_not_is_missed() {
        let (lines, notes) = compared(&wave(1_000, 10), &wave(900, 12));
        assert!(!line(&lines, "ratio p50").contains("aim"));
        assert!(line(&lines, "Tributary: share that arrived").ends_with("MISSED"));
        assert!(notes[0].contains("Tributary does not sustain"), "{notes:?}");
    }
}

//! Owns: when a certificate is renewed: at two thirds of its life, a little earlier or later by chance, and again with
//! growing pauses until it is.
//! Never: reads a clock, makes randomness or touches a file. Pure: time and chance are arguments.

use shared::model::UnixMillis;

/// From when until when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// The first moment.
    pub not_before: UnixMillis,
    /// The last moment.
    pub not_after: UnixMillis,
}

/// The next step for a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing for so many milliseconds.
    Wait(u64),
    /// Renew it now.
    Renew,
    /// It has ended: nothing can be asked for over its sessions any more.
    Ended,
}

/// By how much earlier or later it may be, as a part of the life: members that joined together do not come together.
const JITTER_PART: u64 = 20;
/// The first pause after a try that failed, as a part of the life, and the longest.
const PAUSE_PART: u64 = 300;
const PAUSE_LONGEST_PART: u64 = 24;
/// Bounds of both, in milliseconds.
const PAUSE_MIN_MILLIS: u64 = 1_000;
const PAUSE_MAX_MILLIS: u64 = 3_600_000;
/// Failures after which pauses do not grow any more, which only bounds the arithmetic.
const DOUBLINGS_MAX: u32 = 16;

/// Memory between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    seed: u64,
    failed: u32,
    not_until: UnixMillis,
}

impl Schedule {
    /// For a certificate that is in force from now on. `seed`: any uniformly distributed number.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            failed: 0,
            not_until: UnixMillis(0),
        }
    }

    /// Decides the next step at this time.
    pub fn judge(&self, life: Life, now: UnixMillis) -> Verdict {
        if now >= life.not_after {
            return Verdict::Ended;
        }
        let due = self.due(life).max(self.not_until);
        match due.0.saturating_sub(now.0) {
            0 => Verdict::Renew,
            // Not beyond the end, at which the message changes.
            wait => Verdict::Wait(wait.min(life.not_after.0 - now.0)),
        }
    }

    /// Time at which it is due.
    fn due(&self, life: Life) -> UnixMillis {
        let span = span(life);
        let jitter = span / JITTER_PART;
        let earliest = life
            .not_before
            .0
            .saturating_add(span / 3 * 2)
            .saturating_sub(jitter);
        UnixMillis(earliest.saturating_add(self.seed % (2 * jitter + 1)))
    }

    /// A try at this time failed.
    pub fn failed(&mut self, life: Life, now: UnixMillis) {
        let span = span(life);
        let part = |of: u64| (span / of).clamp(PAUSE_MIN_MILLIS, PAUSE_MAX_MILLIS);
        let longest = part(PAUSE_LONGEST_PART);
        let pause = part(PAUSE_PART)
            .saturating_mul(1 << self.failed.min(DOUBLINGS_MAX))
            .min(longest);
        self.failed = self.failed.saturating_add(1);
        // Between three quarters and five quarters of it.
        let pause = pause / 4 * 3 + self.seed.rotate_left(self.failed) % (pause / 2 + 1);
        self.not_until = UnixMillis(now.0.saturating_add(pause));
    }
}

fn span(life: Life) -> u64 {
    life.not_after.0.saturating_sub(life.not_before.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR: u64 = 365 * 86_400_000;

    fn life(span: u64) -> Life {
        Life {
            not_before: UnixMillis(1_000_000),
            not_after: UnixMillis(1_000_000 + span),
        }
    }

    fn at(span: u64, share: f64) -> UnixMillis {
        UnixMillis(1_000_000 + (span as f64 * share) as u64)
    }

    /// Whatever chance says, and however long the life is.
    #[test]
    fn it_is_due_at_two_thirds_of_its_life_more_or_less() {
        for span in [30_000, 86_400_000, YEAR] {
            for seed in [0, 1, 77_777, u64::MAX / 2, u64::MAX] {
                let schedule = Schedule::new(seed);
                let judge = |share| schedule.judge(life(span), at(span, share));
                assert!(matches!(judge(0.0), Verdict::Wait(_)), "{span} {seed}");
                assert!(matches!(judge(0.61), Verdict::Wait(_)), "{span} {seed}");
                assert_eq!(judge(0.72), Verdict::Renew, "{span} {seed}");
            }
        }
        let due = |seed| Schedule::new(seed).due(life(YEAR));
        assert_ne!(due(3), due(4_000_000_000), "members are spread");
    }

    #[test]
    fn waiting_ends_when_it_is_due() {
        let schedule = Schedule::new(5);
        let Verdict::Wait(wait) = schedule.judge(life(YEAR), UnixMillis(1_000_000)) else {
            panic!("at once");
        };
        let then = UnixMillis(1_000_000 + wait);
        assert_eq!(schedule.judge(life(YEAR), then), Verdict::Renew);
        let before = UnixMillis(then.0 - 1);
        assert_eq!(schedule.judge(life(YEAR), before), Verdict::Wait(1));
    }

    /// From two thirds to the end a hub that is away for long is asked many times, and never all the time.
    #[test]
    fn tries_that_fail_come_again_with_growing_pauses() {
        for (span, seed) in [(30_000, 9), (86_400_000, 0), (YEAR, u64::MAX)] {
            let mut schedule = Schedule::new(seed);
            let (mut now, mut tries) = (at(span, 0.72), 0);
            loop {
                match schedule.judge(life(span), now) {
                    Verdict::Renew => {
                        tries += 1;
                        schedule.failed(life(span), now);
                    }
                    Verdict::Wait(wait) => {
                        assert!(wait >= PAUSE_MIN_MILLIS / 4, "{wait}");
                        assert!(wait <= PAUSE_MAX_MILLIS * 5 / 4, "{wait}");
                        now.0 += wait;
                    }
                    Verdict::Ended => break,
                }
            }
            assert!((5..=4_000).contains(&tries), "{span}: {tries}");
            assert_eq!(now, life(span).not_after, "it is told of its end at once");
        }
    }

    #[test]
    fn what_has_ended_is_not_renewed() {
        let schedule = Schedule::new(1);
        assert_eq!(schedule.judge(life(9_000), UnixMillis(1_009_000)), Verdict::Ended);
        let backwards = Life {
            not_before: UnixMillis(9),
            not_after: UnixMillis(3),
        };
        assert_eq!(schedule.judge(backwards, UnixMillis(4)), Verdict::Ended);
    }
}

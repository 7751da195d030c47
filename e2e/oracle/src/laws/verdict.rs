//! Owns: the verdict over a run of many seeds: what did not happen in it, or was guarded by nothing, fails it.
//! Never: plays or prints.

/// The result of a run of many seeds.
#[derive(Debug, Clone, Copy)]
pub struct ManySeeds<'a> {
    /// Seeds that were asked for.
    pub count: u64,
    /// So many are enough for everything to happen, and for every law to guard something.
    pub enough: u64,
    /// Seeds that broke a law.
    pub broken: usize,
    /// Expected things that never happened.
    pub missing: &'a [&'static str],
    /// Laws that guarded nothing.
    pub idle: &'a [&'static str],
}

/// The verdict on such a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every law held, and guarded something.
    Passed,
    /// Every law held, but some guarded nothing, which so few seeds cannot help; in words.
    TooFew(String),
    /// Every law held, but the run proves less than it says; in words.
    Vacuous(String),
    /// A law was broken.
    Broken,
}

impl ManySeeds<'_> {
    /// The verdict. What never happened in too few seeds is not told of: most things do not happen in a few.
    pub fn verdict(&self) -> Verdict {
        if self.broken > 0 {
            return Verdict::Broken;
        }
        let whole = self.count >= self.enough;
        let few = if whole {
            ""
        } else {
            " (so few seeds may be too few for that)"
        };
        let mut doubts = Vec::new();
        if whole && !self.missing.is_empty() {
            doubts.push(format!("these never happened: {}", self.missing.join(", ")));
        }
        if !self.idle.is_empty() {
            doubts.push(format!("these guarded nothing{few}: {}", self.idle.join(", ")));
        }
        if doubts.is_empty() {
            Verdict::Passed
        } else if whole {
            Verdict::Vacuous(doubts.join("; "))
        } else {
            Verdict::TooFew(doubts.join("; "))
        }
    }
}

impl Verdict {
    /// Returns true if the run is a success.
    pub fn passed(&self) -> bool {
        matches!(self, Self::Passed | Self::TooFew(_))
    }

    /// Untested parts although every law held, in words.
    pub fn doubt(&self) -> Option<&str> {
        match self {
            Self::TooFew(what) | Self::Vacuous(what) => Some(what),
            Self::Passed | Self::Broken => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: ManySeeds<'_> = ManySeeds {
        count: 20,
        enough: 20,
        broken: 0,
        missing: &[],
        idle: &[],
    };

    #[test]
    fn a_whole_run_fails_for_what_never_happened_and_for_laws_that_guarded_nothing() {
        assert_eq!(WHOLE.verdict(), Verdict::Passed);
        let idle = ManySeeds {
            idle: &["bounded requests", "what stood stays"],
            ..WHOLE
        };
        let verdict = idle.verdict();
        assert!(!verdict.passed(), "{verdict:?}");
        assert_eq!(
            verdict.doubt(),
            Some("these guarded nothing: bounded requests, what stood stays")
        );
        let missing = ManySeeds {
            missing: &["drift"],
            ..WHOLE
        };
        let verdict = missing.verdict();
        assert!(!verdict.passed(), "{verdict:?}");
        assert_eq!(verdict.doubt(), Some("these never happened: drift"));
        let both = ManySeeds {
            missing: missing.missing,
            ..idle
        };
        let verdict = both.verdict();
        assert!(!verdict.passed(), "{verdict:?}");
        let doubt = verdict.doubt().expect("said");
        assert!(
            doubt.contains("drift") && doubt.contains("bounded requests"),
            "{doubt}"
        );
    }

    #[test]
    fn fewer_seeds_pass_with_a_doubt() {
        let few = ManySeeds {
            count: 19,
            missing: &["drift"],
            idle: &["what stood stays"],
            ..WHOLE
        };
        let verdict = few.verdict();
        assert!(verdict.passed(), "{verdict:?}");
        let doubt = verdict.doubt().expect("said");
        assert!(
            doubt.contains("what stood stays") && doubt.contains("too few"),
            "{doubt}"
        );
        assert_eq!(ManySeeds { idle: &[], ..few }.verdict(), Verdict::Passed);
    }

    #[test]
    fn a_broken_law_fails_however_many_seeds_there_were() {
        for count in [1, 20] {
            let broken = ManySeeds {
                count,
                broken: 1,
                idle: &["what stood stays"],
                ..WHOLE
            };
            assert_eq!(broken.verdict(), Verdict::Broken);
            assert!(!broken.verdict().passed());
        }
    }
}

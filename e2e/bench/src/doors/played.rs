//! Owns: how much of an attack was played, and whether the hub met it.
//! Never: judges what the hub did.

use std::fmt;

/// An attacker's deeds.
#[derive(Debug, Clone)]
pub(super) struct Played {
    /// Number of attempts …
    pub(super) amount: u64,
    /// … of what.
    pub(super) what: &'static str,
    /// Number of times that the hub showed that it had seen it: without that nothing was played.
    pub(super) met: u64,
    /// Number held by the hub at the end, and the bound, if there is one.
    pub(super) held: Option<(u64, u64)>,
    /// The rest in words.
    pub(super) words: String,
}

impl Played {
    /// Why this was no attack, if it was none.
    pub(super) fn too_little(&self, least: u64) -> Option<String> {
        let Self { amount, what, .. } = self;
        if *amount < least {
            return Some(format!(
                "{amount} {what} were played, and fewer than {least} prove nothing"
            ));
        }
        (self.met == 0).then(|| format!("the hub met none of the {amount} {what}"))
    }

    /// The excess that the hub held beyond its bound, if any.
    pub(super) fn too_many(&self) -> Option<String> {
        let (held, most) = self.held.filter(|(held, most)| held > most)?;
        let what = self.what;
        Some(format!("the hub held {held} {what}, and {most} are allowed"))
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            amount, what, words, ..
        } = self;
        write!(f, "{amount} {what}: {words}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_is_no_attack_and_too_much_is_no_bound() {
        let played = |amount, met| Played {
            amount,
            what: "sockets",
            met,
            held: None,
            words: String::new(),
        };
        let held = |held| Played {
            held: Some((held, 8)),
            ..played(10, 1)
        };
        assert_eq!(played(10, 1).too_little(10), None);
        let few = played(9, 1).too_little(10).expect("too few");
        assert!(few.contains("9 sockets") && few.contains("10"), "{few}");
        let alone = played(10, 0).too_little(10).expect("nobody saw it");
        assert!(alone.contains("met none"), "{alone}");
        assert_eq!(held(8).too_many(), None);
        let many = held(9).too_many().expect("one too many");
        assert!(many.contains("held 9 sockets, and 8"), "{many}");
    }
}

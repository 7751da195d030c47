//! Owns: zones: what may be one, and which words of a Corefile mean the same one.
//! Never: looks at a word's position in a Corefile.

use std::fmt;

use shared::model::name::{DNS_SUBDOMAIN_BYTES_MAX, is_dns_label};

use super::refusal::Refusal;

/// The zone of a clusterset, such as `clusterset.local`: a DNS name in lower case, without a dot at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(String);

impl Zone {
    /// Checks and takes a zone.
    pub fn new(name: &str) -> Result<Self, Refusal> {
        let is_name = name.len() <= DNS_SUBDOMAIN_BYTES_MAX && name.split('.').all(is_dns_label);
        if is_name && !is_reverse(name) {
            return Ok(Self(name.to_owned()));
        }
        Err(Refusal::NoZone {
            name: name.escape_debug().to_string(),
        })
    }

    /// The zone as it is written into a Corefile.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if a word of a Corefile means this zone.
    pub(super) fn is(&self, word: &str) -> bool {
        normal(word) == self.0
    }

    /// True if this zone is the one that `word` names, or lies in it.
    pub(super) fn lies_in(&self, word: &str) -> bool {
        lies_in(&self.0, &normal(word))
    }

    /// True if the zone that `word` names lies in this one, or is it.
    pub(super) fn holds(&self, word: &str) -> bool {
        lies_in(&normal(word), &self.0)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// True for zones of addresses: `in-addr.arpa`, `10.in-addr.arpa`, `ip6.arpa`, or a network that CoreDNS makes one of.
pub(super) fn is_reverse(word: &str) -> bool {
    word.contains('/') || lies_in(&normal(word), "arpa")
}

/// CoreDNS compares zones without case, and knows the dot at the end.
fn normal(word: &str) -> String {
    let name = word.strip_suffix('.').unwrap_or(word);
    name.to_ascii_lowercase()
}

fn lies_in(name: &str, zone: &str) -> bool {
    match name.strip_suffix(zone) {
        Some(before) => before.is_empty() || zone.is_empty() || before.ends_with('.'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_a_dns_name_that_is_none_of_addresses() {
        let longest = ["a"; 127].join(".");
        for name in ["clusterset.local", "set", "a-1.b", &longest] {
            assert_eq!(Zone::new(name).expect(name).as_str(), name);
        }
        let too_long = ["ab"; 85].join(".");
        let label = "a".repeat(64);
        for name in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "Set.local",
            "a b",
            "a_b",
            "-a",
            "*.a",
            "{$ZONE}",
            "a\n",
            "10.in-addr.arpa",
            "arpa",
            &too_long,
            &label,
        ] {
            let refusal = Zone::new(name).expect_err(name).to_string();
            assert!(refusal.contains("--zone") && !refusal.contains('\n'), "{refusal}");
        }
    }

    #[test]
    fn words_are_compared_as_coredns_does() {
        let zone = Zone::new("set.local").expect("valid");
        for (word, same, lies_in, holds) in [
            ("set.local", true, true, true),
            ("Set.Local.", true, true, true),
            ("local", false, true, false),
            (".", false, true, false),
            ("", false, true, false),
            ("svc.set.local", false, false, true),
            ("reset.local", false, false, false),
            ("et.local", false, false, false),
            ("cluster.local", false, false, false),
        ] {
            assert_eq!(zone.is(word), same, "{word}");
            assert_eq!(zone.lies_in(word), lies_in, "{word}");
            assert_eq!(zone.holds(word), holds, "{word}");
        }
    }

    #[test]
    fn reverse_zones_are_known() {
        for word in [
            "in-addr.arpa",
            "IP6.ARPA.",
            "10.in-addr.arpa",
            "10.96.0.0/12",
            "fd00::/64",
        ] {
            assert!(is_reverse(word), "{word}");
        }
        for word in ["cluster.local", "arpa.local", "notarpa"] {
            assert!(!is_reverse(word), "{word}");
        }
    }
}

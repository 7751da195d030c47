//! Owns: which server block CoreDNS asks for a zone: the one whose name is the longest that the zone lies in.
//! Never: looks into the blocks.

use super::{blocks::Block, refusal::Refusal, zone::Zone};

/// The port of a server block that names none, without a transport of its own.
const DNS_PORT: &str = "53";

/// One name of a server block: `.:53`, `dns://cluster.local`, `tls://.:853`.
#[derive(Debug, PartialEq, Eq)]
struct Name<'a> {
    transport: &'a str,
    port: &'a str,
    zone: &'a str,
}

impl<'a> Name<'a> {
    fn read(name: &'a str) -> Self {
        let (transport, rest) = name.split_once("://").unwrap_or(("dns", name));
        let (zone, port) = match rest.rsplit_once(':') {
            Some((zone, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (zone, port),
            _ if transport == "dns" => (rest, DNS_PORT),
            _ => (rest, ""),
        };
        Self {
            transport,
            port,
            zone,
        }
    }

    /// Number of zone labels that it covers.
    fn length(&self) -> usize {
        self.zone.trim_end_matches('.').len()
    }

    fn listens_like(&self, other: &Self) -> bool {
        self.transport == other.transport && self.port == other.port
    }
}

/// Refuses a Corefile in which another block than this one is asked for the zone, or for a part of it.
pub(super) fn check(blocks: &[Block<'_>], block: usize, zone: &Zone) -> Result<(), Refusal> {
    let Some(own) = blocks.get(block) else {
        return Ok(());
    };
    // A snippet's name is no name of a server.
    for one in blocks.iter().filter(|one| !one.is_snippet()) {
        if let Some(name) = one.names.iter().find(|name| name.contains(['{', '$', '%', '"'])) {
            return Err(Refusal::UnreadName {
                line: one.line,
                name: name.escape_debug().to_string(),
            });
        }
    }
    let names = own.names.iter().map(|name| Name::read(name));
    let asked: Vec<Name<'_>> = names.filter(|name| zone.lies_in(name.zone)).collect();
    if asked.is_empty() {
        return Err(Refusal::NotAsked {
            line: own.line,
            zone: zone.as_str().to_owned(),
            names: own.names.join(", "),
        });
    }
    let others = blocks
        .iter()
        .enumerate()
        .filter(|(number, other)| *number != block && !other.is_snippet());
    for (_, other) in others {
        if let Some(name) = other
            .names
            .iter()
            .find(|name| takes(&Name::read(name), &asked, zone))
        {
            return Err(Refusal::AnsweredElsewhere {
                line: other.line,
                name: (*name).to_owned(),
                zone: zone.as_str().to_owned(),
            });
        }
    }
    Ok(())
}

/// True if another block's name takes queries away from those that are asked.
fn takes(other: &Name<'_>, asked: &[Name<'_>], zone: &Zone) -> bool {
    let nearer = |own: &Name<'_>| zone.lies_in(other.zone) && other.length() > own.length();
    let mut rivals = asked.iter().filter(|own| other.listens_like(own));
    rivals.any(|own| zone.holds(other.zone) || nearer(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_coredns_does() {
        let name = |transport, port, zone| Name {
            transport,
            port,
            zone,
        };
        for (text, read) in [
            (".:53", name("dns", "53", ".")),
            (".", name("dns", "53", ".")),
            (":1053", name("dns", "1053", "")),
            ("dns://a.b:5", name("dns", "5", "a.b")),
            ("tls://.", name("tls", "", ".")),
            ("fd00::/64", name("dns", "53", "fd00::/64")),
        ] {
            assert_eq!(Name::read(text), read);
        }
    }
}

//! The disagreements of exports of one service, and their wording. Sets are compared, never orders; messages name no
//! revision and no time, so that equal facts give equal text.

use std::{collections::BTreeSet, fmt::Write as _};

use model::{
    ClusterId, Conflict, ConflictReason, Export, IpFamily, Metadata, Protocol, ServiceImport, ServicePort,
    ServiceType, SessionAffinity, visible,
};

use super::{ports, precedence::Candidate, rules::InForce};

/// Most losers that a message names; the others are counted.
pub(super) const NAMED_LOSERS_MAX: usize = 5;
/// Longest value in a message, in characters. All nine messages together stay below the 32,768 characters
/// of a condition's message.
const VALUE_CHARACTERS_MAX: usize = 300;

/// Every disagreement with the oldest export, in the fixed order of reasons.
pub(super) fn conflicts(
    candidates: &[Candidate<'_>],
    import: Option<&ServiceImport>,
    rules: InForce,
) -> Vec<Conflict> {
    let (Some((oldest, others)), Some(import)) = (candidates.split_first(), import) else {
        return Vec::new();
    };
    let of_reason = |reason: ConflictReason| {
        let losers: Vec<&Candidate<'_>> = others
            .iter()
            .filter(|other| !agree(reason, oldest.export, other.export, rules))
            .collect();
        (!losers.is_empty()).then(|| Conflict {
            reason,
            message: message(reason, oldest, &losers, candidates.len(), import, rules).into(),
        })
    };
    ConflictReason::ALL.into_iter().filter_map(of_reason).collect()
}

/// Returns true if two exports agree on one property.
pub(super) fn agree(reason: ConflictReason, one: &Export, other: &Export, rules: InForce) -> bool {
    let (a, b) = (&one.policies, &other.policies);
    match reason {
        ConflictReason::Port => same_set(&one.ports, &other.ports),
        ConflictReason::Type => one.service_type == other.service_type,
        ConflictReason::SessionAffinity => a.session_affinity == b.session_affinity,
        ConflictReason::SessionAffinityConfig => {
            a.session_affinity_timeout_seconds == b.session_affinity_timeout_seconds
        }
        ConflictReason::Labels => one.labels == other.labels,
        ConflictReason::Annotations => one.annotations == other.annotations,
        ConflictReason::InternalTrafficPolicy => {
            internal_traffic_policy(one) == internal_traffic_policy(other)
        }
        ConflictReason::TrafficDistribution => {
            traffic_distribution(one, rules) == traffic_distribution(other, rules)
        }
        ConflictReason::IpFamily => same_set(&one.ip_families, &other.ip_families),
    }
}

fn same_set<T: Ord>(one: &[T], other: &[T]) -> bool {
    one == other || one.iter().collect::<BTreeSet<_>>() == other.iter().collect::<BTreeSet<_>>()
}

/// Absent is what the API server takes it for.
fn internal_traffic_policy(export: &Export) -> &str {
    let stated = export.policies.internal_traffic_policy.as_deref();
    stated.unwrap_or("Cluster")
}

/// Kubernetes calls PreferClose the deprecated name of PreferSameZone, since 1.34.
fn traffic_distribution(export: &Export, rules: InForce) -> Option<&str> {
    match export.policies.traffic_distribution.as_deref() {
        Some("PreferClose") if rules.knows_aliases() => Some("PreferSameZone"),
        stated => stated,
    }
}

/// The property in words, as messages name it.
fn property_in_words(reason: ConflictReason) -> &'static str {
    match reason {
        ConflictReason::Port => "ports",
        ConflictReason::Type => "type",
        ConflictReason::SessionAffinity => "session affinity",
        ConflictReason::SessionAffinityConfig => "session affinity configuration",
        ConflictReason::Labels => "exported labels",
        ConflictReason::Annotations => "exported annotations",
        ConflictReason::InternalTrafficPolicy => "internal traffic policy",
        ConflictReason::TrafficDistribution => "traffic distribution",
        ConflictReason::IpFamily => "IP families",
    }
}

/// The value of a property as a person would write it.
pub(super) fn value(reason: ConflictReason, export: &Export) -> String {
    let policies = &export.policies;
    match reason {
        ConflictReason::Port => ports_in_words(&export.ports),
        ConflictReason::Type => match export.service_type {
            ServiceType::ClusterSetIp => "ClusterSetIP".to_owned(),
            ServiceType::Headless => "Headless".to_owned(),
        },
        ConflictReason::SessionAffinity => match policies.session_affinity {
            SessionAffinity::None => "None".to_owned(),
            SessionAffinity::ClientIp => "ClientIP".to_owned(),
        },
        ConflictReason::SessionAffinityConfig => match policies.session_affinity_timeout_seconds {
            Some(seconds) => format!("clientIP.timeoutSeconds={seconds}"),
            None => "unset".to_owned(),
        },
        ConflictReason::Labels => metadata_in_words(&export.labels),
        ConflictReason::Annotations => metadata_in_words(&export.annotations),
        ConflictReason::InternalTrafficPolicy => internal_traffic_policy(export).to_owned(),
        ConflictReason::TrafficDistribution => policies
            .traffic_distribution
            .as_deref()
            .unwrap_or("unset")
            .to_owned(),
        ConflictReason::IpFamily => families_in_words(&export.ip_families),
    }
}

/// Ports as people write them: `http 80/TCP (h2c)`, the unnamed one without a name.
pub(super) fn ports_in_words(ports: &[ServicePort]) -> String {
    let port_in_words = |port: &ServicePort| {
        let protocol = match port.protocol {
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
            Protocol::Sctp => "SCTP",
        };
        let mut words = format!("{} {}/{protocol}", port.name, port.port);
        if let Some(app_protocol) = &port.app_protocol {
            let _ = write!(words, " ({app_protocol})");
        }
        words.trim_start().to_owned()
    };
    or_none(ports.iter().map(port_in_words).collect())
}

fn families_in_words(families: &[IpFamily]) -> String {
    let in_words = |family: &IpFamily| match family {
        IpFamily::V4 => "IPv4".to_owned(),
        IpFamily::V6 => "IPv6".to_owned(),
    };
    or_none(families.iter().map(in_words).collect())
}

fn metadata_in_words(metadata: &Metadata) -> String {
    or_none(
        metadata
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect(),
    )
}

fn or_none(words: Vec<String>) -> String {
    if words.is_empty() {
        "none".to_owned()
    } else {
        words.join(", ")
    }
}

/// The KEP's own sentence, then who disagrees and what they wanted.
fn message(
    reason: ConflictReason,
    oldest: &Candidate<'_>,
    losers: &[&Candidate<'_>],
    exporters: usize,
    import: &ServiceImport,
    rules: InForce,
) -> String {
    let mut text = format!(
        "Conflicting {}. Using \"{}\" from {} service export in \"{}\"",
        property_in_words(reason),
        shortened(&value(reason, oldest.export), rules),
        if oldest.held { "incumbent" } else { "oldest" },
        oldest.cluster,
    );
    if reason == ConflictReason::Port {
        text.push_str(&added_ports(oldest.export, import, rules));
    }
    let _ = write!(text, ". {}/{exporters} clusters disagree. ", losers.len());
    let named = losers.iter().take(NAMED_LOSERS_MAX);
    let values = named.map(|loser| said(loser.cluster, &value(reason, loser.export), rules));
    text.push_str(&values.collect::<Vec<_>>().join(", "));
    if let Some(more @ 1..) = losers.len().checked_sub(NAMED_LOSERS_MAX) {
        let _ = write!(text, ", and {more} more");
    }
    text.push('.');
    if reason == ConflictReason::Port && rules.ports_by_number() {
        text.push_str(&without_traffic(losers, import, rules));
    }
    text
}

/// The clusters without traffic for some of their ports: no import has the number of such a port.
fn without_traffic(losers: &[&Candidate<'_>], import: &ServiceImport, rules: InForce) -> String {
    let unserved = losers.iter().filter_map(|loser| {
        let ports = ports::unserved(&import.ports, &loser.export.ports);
        (!ports.is_empty()).then(|| {
            let ports = ports_in_words(&ports);
            format!("\"{}\" for \"{}\"", loser.cluster, shortened(&ports, rules))
        })
    });
    let mut unserved: Vec<String> = unserved.collect();
    let more = unserved.len().saturating_sub(NAMED_LOSERS_MAX);
    unserved.truncate(NAMED_LOSERS_MAX);
    match (unserved.is_empty(), more) {
        (true, _) => String::new(),
        (false, 0) => format!(" No traffic reaches {}.", unserved.join(", ")),
        (false, more) => format!(" No traffic reaches {}, and {more} more.", unserved.join(", ")),
    }
}

fn said(cluster: &ClusterId, value: &str, rules: InForce) -> String {
    format!("\"{cluster}\" has \"{}\"", shortened(value, rules))
}

/// The ports that younger exports add to the oldest one's.
fn added_ports(oldest: &Export, import: &ServiceImport, rules: InForce) -> String {
    let added = import.ports.iter().filter(|port| !oldest.ports.contains(port));
    let added: Vec<ServicePort> = added.cloned().collect();
    if added.is_empty() {
        String::new()
    } else {
        format!(
            " and \"{}\" from younger ones",
            shortened(&ports_in_words(&added), rules)
        )
    }
}

/// Returns a value as a message shows it: a long one is cut where the reader can see it.
fn shortened(value: &str, rules: InForce) -> String {
    let characters = value.chars().count();
    // Escapes are longer than what they stand for: the bound is on what is shown.
    let shown = if rules.shows_only_visible() {
        visible(value)
    } else {
        value.to_owned()
    };
    if shown.chars().nth(VALUE_CHARACTERS_MAX).is_none() {
        return shown;
    }
    let start: String = shown.chars().take(VALUE_CHARACTERS_MAX).collect();
    format!("{start}… ({characters} characters)")
}

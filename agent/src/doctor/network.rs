//! Owns: what is wrong between clusters' networks: an endpoint of each source that does not answer, and addresses that
//! two clusters have. Pure.
//! Never: dials.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use shared::{doctor::report::Check, model::policy::AddressRange};

/// Addresses that are named in a fault.
const NAMED_MAX: usize = 3;

/// An endpoint that was imported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Imported {
    /// The cluster that it runs in.
    pub source: String,
    /// Its address.
    pub address: IpAddr,
    /// A TCP port of it, if it has one and is ready.
    pub port: Option<u16>,
}

/// This cluster's own network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnNetwork {
    /// The ranges of its nodes' pods.
    pub pods: Vec<AddressRange>,
    /// Addresses of its nodes, Services and endpoints, with what each is.
    pub addresses: BTreeMap<IpAddr, String>,
}

/// The outcome of dialling one endpoint of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialled {
    /// The endpoint dialled.
    pub endpoint: Imported,
    /// The outcome.
    pub outcome: Result<(), String>,
}

/// One endpoint of each source but `own`: the first that has a port to dial.
pub fn one_of_each<'a>(imported: &'a [Imported], own: &str) -> Vec<&'a Imported> {
    let mut chosen: BTreeMap<&str, &Imported> = BTreeMap::new();
    for endpoint in imported {
        if endpoint.port.is_some() && endpoint.source != own {
            chosen.entry(&endpoint.source).or_insert(endpoint);
        }
    }
    chosen.into_values().collect()
}

/// Checks the outcomes of dialling; absent if dialling would prove nothing.
pub fn dialled(dialled: Option<&[Dialled]>) -> Vec<Check> {
    let name = "source-endpoint";
    let dialled = match dialled {
        Some([]) => return vec![Check::skipped(name, "no endpoint of another cluster to dial")],
        Some(dialled) => dialled,
        None => {
            let why =
                "dialled in a pod of the cluster, and not from here; --dial-endpoints does it all the same";
            return vec![Check::skipped(name, why)];
        }
    };
    let check = |Dialled { endpoint, outcome }: &Dialled| {
        let Imported {
            source,
            address,
            port,
        } = endpoint;
        let at = std::net::SocketAddr::new(*address, port.unwrap_or_default());
        match outcome {
            Ok(()) => Check::fine(name, format!("{source}: {at} answers")),
            Err(why) => Check::fault(
                name,
                format!("{source}: {at} does not answer: {why}"),
                format!(
                    "route between the pods of this cluster and those of {source}, both ways, and let the port through \
                     (firewalls, NetworkPolicies there); Tributary carries no traffic"
                ),
            ),
        }
    };
    dialled.iter().map(check).collect()
}

/// Checks that no address ranges overlap.
pub fn ranges(network: &OwnNetwork, imported: &[Imported], own: &str) -> Vec<Check> {
    let name = "ranges";
    let mut here: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut sources: BTreeMap<IpAddr, BTreeSet<&str>> = BTreeMap::new();
    for endpoint in imported {
        let address = endpoint.address;
        // An own export may be reported by two clusters as well.
        sources.entry(address).or_default().insert(&endpoint.source);
        if endpoint.source == own {
            continue;
        }
        let range = network.pods.iter().find(|range| range.contains(address));
        let what = match (network.addresses.get(&address), range) {
            (Some(what), _) => format!("{address} is {what} here"),
            (None, Some(range)) => format!("{address} is of this cluster's pods ({range})"),
            (None, None) => continue,
        };
        here.entry(&endpoint.source).or_default().insert(what);
    }
    let fix = "give the clusters pod and Service ranges that do not overlap (or join them by a network that translates \
               addresses); a policy with addresses keeps such endpoints out until then";
    let mut checks: Vec<Check> = here
        .iter()
        .map(|(source, whats)| {
            let named: Vec<&str> = whats.iter().take(NAMED_MAX).map(String::as_str).collect();
            let what = format!(
                "endpoints of {source} overlap with this cluster: {}",
                named.join("; ")
            );
            Check::fault(name, what, fix)
        })
        .collect();
    let twice = sources.iter().find(|(_, sources)| sources.len() > 1);
    if let Some((address, sources)) = twice {
        let sources: Vec<&str> = sources.iter().copied().collect();
        let what = format!("{address} is an endpoint of {}", sources.join(" and of "));
        checks.push(Check::fault(name, what, fix));
    }
    if checks.is_empty() {
        let foreign = |sources: &&BTreeSet<&str>| sources.iter().any(|source| *source != own);
        let seen = sources.values().filter(foreign).count();
        checks.push(Check::fine(
            name,
            format!("{seen} addresses of other clusters, none of them of this one"),
        ));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(source: &str, address: &str, port: Option<u16>) -> Imported {
        Imported {
            source: source.to_owned(),
            address: address.parse().expect("an address"),
            port,
        }
    }

    fn network() -> OwnNetwork {
        let own = "10.96.0.10".parse().expect("an address");
        OwnNetwork {
            pods: vec!["10.1.0.0/16".parse().expect("a range")],
            addresses: BTreeMap::from([(own, "the Service kube-system/kube-dns".to_owned())]),
        }
    }

    fn said(checks: &[Check]) -> String {
        checks
            .iter()
            .filter(|check| check.is_fault())
            .map(|check| check.verdict.words().0)
            .collect()
    }

    #[test]
    fn one_endpoint_of_each_other_source_is_dialled() {
        let imported = [
            endpoint("east", "10.1.0.1", Some(80)),
            endpoint("west", "10.2.0.1", None),
            endpoint("west", "10.2.0.2", Some(80)),
            endpoint("west", "10.2.0.3", Some(80)),
        ];
        assert_eq!(one_of_each(&imported, "east"), [&imported[2]]);
    }

    #[test]
    fn an_endpoint_that_does_not_answer_is_a_fault() {
        let dial = |outcome| Dialled {
            endpoint: endpoint("west", "10.2.0.2", Some(80)),
            outcome,
        };
        assert_eq!(dialled(None)[0].verdict.word(), "skipped");
        assert_eq!(dialled(Some(&[]))[0].verdict.word(), "skipped");
        assert_eq!(dialled(Some(&[dial(Ok(()))]))[0].verdict.word(), "ok");
        let checks = dialled(Some(&[dial(Ok(())), dial(Err("no answer".into()))]));
        assert_eq!(said(&checks), "west: 10.2.0.2:80 does not answer: no answer");
    }

    #[test]
    fn ranges_that_overlap_are_named_with_their_source() {
        let pods = ranges(&network(), &[endpoint("west", "10.1.7.7", None)], "east");
        assert!(
            said(&pods).contains("west overlap with this cluster: 10.1.7.7 is of"),
            "{pods:?}"
        );
        let service = ranges(&network(), &[endpoint("west", "10.96.0.10", None)], "east");
        assert!(
            said(&service).contains("is the Service kube-system/kube-dns here"),
            "{service:?}"
        );
        let two = [
            endpoint("west", "10.2.0.1", None),
            endpoint("north", "10.2.0.1", None),
        ];
        let twice = ranges(&network(), &two, "east");
        assert_eq!(said(&twice), "10.2.0.1 is an endpoint of north and of west");
    }

    #[test]
    fn what_the_cluster_itself_exports_does_not_overlap() {
        let imported = [
            endpoint("east", "10.1.7.7", None),
            endpoint("west", "10.2.0.1", None),
        ];
        let checks = ranges(&network(), &imported, "east");
        assert_eq!(said(&checks), "");
        assert!(
            checks[0].verdict.words().0.starts_with("1 addresses"),
            "{checks:?}"
        );
    }

    /// Slices that people made count as this cluster's own nowhere else.
    #[test]
    fn an_address_that_this_cluster_and_another_one_export_is_a_fault_in_both() {
        let imported = [
            endpoint("east", "10.9.0.1", None),
            endpoint("west", "10.9.0.1", None),
        ];
        for own in ["east", "west"] {
            let checks = ranges(&network(), &imported, own);
            assert_eq!(checks.len(), 1, "{own}");
            assert!(checks[0].is_fault(), "{own}");
        }
        assert!(
            !ranges(&network(), &imported[..1], "east")[0].is_fault(),
            "its own"
        );
    }
}

//! Questions to a cluster and their answers, as plain values. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
};

use agent::probe::{DIALS_MAX, NAMES_MAX, Report, Request};
use shared::model::ServiceKey;

/// Longest time for one connection.
pub(super) const CONNECTION_WAIT_MILLIS: u64 = 3_000;
/// Ready endpoints of one source and family that are dialled.
const ENDPOINTS_MAX: usize = 2;
/// TCP ports of one address that are dialled.
const PORTS_MAX: usize = 3;

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) const ALL: [Self; 2] = [Self::V4, Self::V6];

    pub(super) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// As Kubernetes calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// A service that is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) service: ServiceKey,
    /// The clusters that export it, or are said to.
    pub(super) exports: Vec<Exported>,
}

/// An export, as the hub has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Exported {
    pub(super) cluster: String,
    /// False: `--to` names the cluster, and it does not export the service.
    pub(super) is_exported: bool,
    /// The reason why the hub refuses it; empty: it does not.
    pub(super) denial: String,
    /// Number of its endpoints at the hub.
    pub(super) endpoints: u32,
}

impl Exported {
    /// True if its endpoints should answer.
    pub(super) fn should_answer(&self) -> bool {
        self.is_exported && self.denial.is_empty() && self.endpoints > 0
    }
}

/// A cluster from which connections are opened, with the context of its kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct From {
    pub(super) cluster: String,
    /// Empty: nobody knows it.
    pub(super) context: String,
    /// The objects of each service, or the reason why nobody could look.
    pub(super) found: Result<BTreeMap<ServiceKey, Found>, Unseen>,
    /// The results of the pods, by the services that they looked at.
    pub(super) ran: BTreeMap<ServiceKey, Result<Outcome, Unseen>>,
}

/// The reason why something could not be looked at, and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unseen {
    pub(super) why: String,
    pub(super) next: String,
}

/// The objects of a service in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// The namespace is missing, so that nothing is imported into it.
    NoNamespace,
    /// The namespace is there, and the ServiceImport is not.
    NoImport,
    Import(Import),
}

/// An import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) headless: bool,
    /// The clusterset IPs.
    pub(super) ips: Vec<IpAddr>,
    /// The TCP ports of the service.
    pub(super) ports: Vec<u16>,
    /// The endpoints of each source cluster.
    pub(super) endpoints: BTreeMap<String, Vec<Endpoint>>,
}

/// An endpoint of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) address: IpAddr,
    /// Its TCP ports.
    pub(super) ports: Vec<u16>,
    pub(super) ready: bool,
}

/// The reports of the pods in one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) names: BTreeMap<String, Result<Vec<IpAddr>, String>>,
    pub(super) dials: BTreeMap<SocketAddr, Result<u64, String>>,
    /// Families of the pods' own addresses.
    pub(super) families: BTreeSet<Family>,
}

impl Outcome {
    /// Adds a report, which has the order of its request.
    pub(super) fn add(&mut self, request: &Request, report: Report) {
        self.names.extend(request.names.iter().cloned().zip(report.names));
        self.dials.extend(request.dials.iter().copied().zip(report.dials));
    }
}

/// The name of a service in the clusterset.
pub(super) fn name_of(service: &ServiceKey) -> String {
    format!("{}.{}.svc.clusterset.local", service.name, service.namespace)
}

impl Import {
    /// The addresses that reach the service by its clusterset IPs.
    pub(super) fn fronts(&self) -> impl Iterator<Item = SocketAddr> {
        let ports = self.ports.iter().take(PORTS_MAX);
        let at = self
            .ips
            .iter()
            .flat_map(move |ip| ports.clone().map(move |port| SocketAddr::new(*ip, *port)));
        at.collect::<Vec<_>>().into_iter()
    }

    /// The ready endpoints of a source in a family that are dialled.
    pub(super) fn behind(&self, source: &str, family: Family) -> Vec<SocketAddr> {
        let all = self.endpoints.get(source).into_iter().flatten();
        let ready = all.filter(|endpoint| endpoint.ready && Family::of(endpoint.address) == family);
        let dialled = ready.take(ENDPOINTS_MAX).flat_map(|endpoint| {
            let ports = endpoint.ports.iter().take(PORTS_MAX);
            ports.map(|port| SocketAddr::new(endpoint.address, *port))
        });
        dialled.collect()
    }

    /// The families of a source's ready endpoints.
    pub(super) fn families(&self, source: &str) -> BTreeSet<Family> {
        let all = self.endpoints.get(source).into_iter().flatten();
        let ready = all.filter(|endpoint| endpoint.ready);
        ready.map(|endpoint| Family::of(endpoint.address)).collect()
    }
}

/// The work of the pods for these imports, each of which takes at most what a report has room for. `sources` are dialled
/// only.
pub(super) fn requests(imports: &[(&ServiceKey, &Import)], sources: &BTreeSet<&str>) -> Vec<Request> {
    let names: Vec<String> = imports
        .iter()
        .map(|(service, _)| name_of(service) + ".")
        .collect();
    let mut dials = BTreeSet::new();
    for (_, import) in imports {
        dials.extend(import.fronts());
        for source in sources {
            dials.extend(
                Family::ALL
                    .iter()
                    .flat_map(|family| import.behind(source, *family)),
            );
        }
    }
    let dials: Vec<SocketAddr> = dials.into_iter().collect();
    let count = names
        .len()
        .div_ceil(NAMES_MAX)
        .max(dials.len().div_ceil(DIALS_MAX));
    let mut names = names.chunks(NAMES_MAX);
    let mut dials = dials.chunks(DIALS_MAX);
    (0..count)
        .map(|_| Request {
            names: names.next().unwrap_or_default().to_vec(),
            dials: dials.next().unwrap_or_default().to_vec(),
            wait_millis: CONNECTION_WAIT_MILLIS,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ServiceKey {
        ServiceKey::new("shop", name).expect("a service")
    }

    #[test]
    fn a_pod_is_given_what_its_report_has_room_for() {
        let ready = |last: u8| Endpoint {
            address: [10, 0, 0, last].into(),
            ports: vec![80],
            ready: last != 3,
        };
        let import = Import {
            ips: vec![[10, 96, 0, 1].into()],
            ports: vec![80, 81, 82, 83],
            endpoints: BTreeMap::from([
                ("east".to_owned(), (1..9).map(ready).collect()),
                ("west".to_owned(), vec![ready(9)]),
            ]),
            ..Import::default()
        };
        let keys: Vec<ServiceKey> = (0..=NAMES_MAX).map(|number| key(&format!("s{number}"))).collect();
        let imports: Vec<_> = keys.iter().map(|key| (key, &import)).collect();
        let asked = requests(&imports, &BTreeSet::from(["east"]));
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0].names.len(), NAMES_MAX);
        assert_eq!(asked[1].names, ["s6.shop.svc.clusterset.local."]);
        let dialled: Vec<String> = asked[0].dials.iter().map(ToString::to_string).collect();
        assert_eq!(
            dialled,
            [
                "10.0.0.1:80",
                "10.0.0.2:80",
                "10.96.0.1:80",
                "10.96.0.1:81",
                "10.96.0.1:82"
            ],
            "two ready endpoints of east, three ports of the IP"
        );
        assert!(requests(&[], &BTreeSet::new()).is_empty());
    }

    #[test]
    fn a_report_has_the_order_of_its_request() {
        let request = Request {
            names: vec!["a".to_owned(), "b".to_owned()],
            dials: vec!["10.0.0.1:80".parse().expect("an address")],
            wait_millis: 1,
        };
        let report = Report {
            names: vec![Ok(Vec::new()), Err("no".to_owned())],
            dials: vec![Ok(7)],
        };
        let mut outcome = Outcome::default();
        outcome.add(&request, report);
        assert_eq!(outcome.names["b"], Err("no".to_owned()));
        assert_eq!(outcome.dials[&request.dials[0]], Ok(7));
    }
}

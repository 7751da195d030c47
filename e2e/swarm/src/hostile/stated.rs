//! Owns: what the hostile member states: exports that are older than all others, copies of others' exports, slices with
//! addresses that are not its own, and floods.
//! Never: knows what becomes of it.

use std::net::IpAddr;

use model::{
    ClusterProperty, EncodedFact, Endpoint, EndpointPort, EndpointSlice, Export, Fact, FactKey, IpFamily,
    ListingGroup, Metadata, PropertyValue, Protocol, ServiceKey, ServicePolicies, ServicePort, ServiceType,
    SessionAffinity, SliceKey, UnixMillis,
};

use super::{Hostile, NAME};

/// Range of its own addresses.
pub(crate) const OWN_RANGE: &str = "172.30.0.0/16";
/// One of them.
const OWN: &str = "172.30.0.7";
/// One of another cluster's.
const FOREIGN: &str = "172.16.0.1";
/// Addresses that lead elsewhere in every network: two of clouds' metadata services, and two that no fact may have.
pub(crate) const SPECIAL: [&str; 4] = ["168.63.129.16", "100.100.100.200", "169.254.169.254", "127.0.0.1"];
/// Before every world begins, in milliseconds since the epoch.
const LONG_AGO_MILLIS: u64 = 1_600_000_000_000;
/// By how much it changes a lie, in milliseconds.
const SHIFT_MILLIS: u64 = 1_000;
/// Different keys of a flood.
const FLOOD_KEYS: u8 = 4;

impl Hostile {
    /// States to have exported a service before everybody else: headless or under another port. Now and then under an
    /// age that it stated otherwise before.
    pub(crate) fn claim(&mut self, service: &ServiceKey, shape: u8) {
        let changed = shape % 4 == 3;
        self.made_up += u64::from(!changed);
        let uid = format!("{NAME}-{}", self.made_up);
        let age = LONG_AGO_MILLIS + if changed { SHIFT_MILLIS } else { 0 };
        self.state_export(export(service, uid, age, shape.is_multiple_of(2)));
        self.state_slice(service, 0, &[OWN]);
    }

    /// States a fact as its own that another member reported, to the byte.
    pub(crate) fn copy(&mut self, key: FactKey, fact: EncodedFact) {
        self.outbox.set(key, Some(fact));
    }

    /// Exports a service, if it does not yet, and has slices with addresses of all kinds beside its own.
    pub(crate) fn addresses(&mut self, service: &ServiceKey) {
        if !self
            .outbox
            .keys(ListingGroup::Exports)
            .contains(&FactKey::Export(service.clone()))
        {
            self.claim(service, 0);
        }
        self.state_slice(service, 0, &[OWN, FOREIGN, SPECIAL[0]]);
        self.state_slice(service, 1, &[SPECIAL[1]]);
        self.state_slice(service, 2, &[OWN, SPECIAL[2]]);
        self.state_slice(service, 3, &[SPECIAL[3]]);
    }

    /// Exports from a namespace of Kubernetes itself.
    pub(crate) fn reserved(&mut self) {
        let service = ServiceKey::new("kube-system", "dns").expect("labels");
        self.claim(&service, 0);
    }

    /// Takes everything back.
    pub(crate) fn take_back(&mut self) {
        for key in self.outbox.keys(ListingGroup::Exports) {
            self.outbox.set(key, None);
        }
    }

    /// One change of a flood, by its number: a value, another one, and now and then what only a hub may say.
    pub(super) fn state_flood(&mut self, number: u8) {
        let name: Box<str> = format!("flood-{}", number % FLOOD_KEYS).into();
        let fact = if number % 5 == 4 {
            Fact::MemberLost
        } else {
            let value = PropertyValue::Text(format!("{number}").into());
            Fact::ClusterPropertyUpserted(
                ClusterProperty {
                    name: name.clone(),
                    value,
                }
                .into(),
            )
        };
        let key = FactKey::ClusterProperty(name);
        self.outbox.set(key, Some(wire::encode_fact(&fact)));
    }

    fn state_export(&mut self, export: Export) {
        let key = FactKey::Export(export.service.clone());
        self.outbox
            .set(key, Some(wire::encode_fact(&Fact::ExportUpserted(export.into()))));
    }

    fn state_slice(&mut self, service: &ServiceKey, number: u8, addresses: &[&str]) {
        let slice = slice(service, number, addresses);
        let key = FactKey::EndpointSlice(slice.key.clone());
        self.outbox.set(
            key,
            Some(wire::encode_fact(&Fact::EndpointSliceUpserted(slice.into()))),
        );
    }
}

fn export(service: &ServiceKey, uid: String, created_at: u64, headless: bool) -> Export {
    let port = if headless { 80 } else { 6_666 };
    Export {
        service: service.clone(),
        created_at: UnixMillis(created_at),
        uid: uid.into(),
        generation: 1,
        service_type: if headless {
            ServiceType::Headless
        } else {
            ServiceType::ClusterSetIp
        },
        ports: vec![ServicePort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port,
            app_protocol: None,
        }],
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: Some("Cluster".into()),
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::default(),
        annotations: Metadata::default(),
    }
}

fn slice(service: &ServiceKey, number: u8, addresses: &[&str]) -> EndpointSlice {
    let endpoint = |address: &&str| Endpoint {
        addresses: vec![address.parse::<IpAddr>().expect("an address")],
        ready: Some(true),
        serving: Some(true),
        terminating: Some(false),
        hostname: None,
        zone: None,
    };
    EndpointSlice {
        key: SliceKey {
            service: service.clone(),
            name: format!("{}-{NAME}-{number}", service.name).into(),
        },
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(80),
            app_protocol: None,
        }],
        endpoints: addresses.iter().map(endpoint).collect(),
    }
}

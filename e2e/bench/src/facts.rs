//! Owns: facts as members send them, encoded once and numbered cheaply: the number is an address of the slice,
//! and comes back in what the hub pushes.
//! Never: sends anything.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::Context;
use bytes::Bytes;
use proto::v1;
use shared::{
    model::{
        Endpoint, EndpointPort, EndpointSlice, Export, Fact, IpFamily, Metadata, Protocol, ServiceKey,
        ServicePolicies, ServicePort, ServiceType, SessionAffinity, SliceKey, UnixMillis,
    },
    wire,
};

/// Octets of three digits, from 100 to 255: all addresses made of them have texts of one length.
const OCTETS: u32 = 156;
/// The first of them.
const FIRST_OCTET: u8 = 100;
/// Numbers that fit into three such octets, behind a first one of 10.
pub(super) const NUMBERS_MAX: u32 = OCTETS * OCTETS * OCTETS;
/// Creation time of the first export; later ones are younger by a second each.
const FIRST_CREATED_SECONDS: u64 = 1_700_000_000;

/// An encoded slice in which one address can be changed in place.
#[derive(Debug, Clone)]
pub(super) struct SliceTemplate {
    bytes: Vec<u8>,
    /// Positions of the last three octets of the first address, in text.
    at: usize,
}

impl SliceTemplate {
    /// A slice of a Deployment's Service with so many endpoints: address, conditions and zone.
    pub(super) fn new(service: &ServiceKey, name: &str, endpoints: usize) -> Self {
        Self::of(service, name, endpoints, false)
    }

    /// With `hostnames`, a slice of a StatefulSet's Service: the largest endpoints there usually are.
    fn of(service: &ServiceKey, name: &str, endpoints: usize, hostnames: bool) -> Self {
        let encode = |number| {
            let fact = Fact::EndpointSliceUpserted(slice(service, name, endpoints, number, hostnames).into());
            wire::encode_fact(&fact).bytes
        };
        let (zeros, ones) = (encode(0), encode(NUMBERS_MAX - 1));
        let differing = zeros.iter().zip(ones.iter()).position(|(zero, one)| zero != one);
        Self {
            bytes: zeros.to_vec(),
            at: differing.unwrap_or_default(),
        }
    }

    /// The fact with this number in it.
    pub(super) fn numbered(&self, number: u32) -> Bytes {
        let mut bytes = self.bytes.clone();
        let [_, octets @ ..] = address_of(number).octets();
        for (index, octet) in octets.into_iter().enumerate() {
            // Three digits and a dot each.
            let at = self.at + 4 * index;
            bytes[at..at + 3]
                .copy_from_slice(&[octet / 100, octet / 10 % 10, octet % 10].map(|digit| b'0' + digit));
        }
        bytes.into()
    }

    /// Bytes of the fact.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Bytes of the fact of a slice with so many endpoints.
pub(super) fn slice_bytes(endpoints: usize) -> anyhow::Result<usize> {
    Ok(SliceTemplate::new(&service("team-0000", 0)?, "cart-00000-00000", endpoints).len())
}

/// The endpoints and the name's length that make a slice as large as required. Slices whose names have the same length
/// have the same size.
#[derive(Debug, Clone)]
pub(super) struct Size {
    endpoints: usize,
    padding: String,
}

impl Size {
    /// The size of a fact of so many bytes. A length that needs one byte more can skip a size.
    pub(super) fn of(service: &ServiceKey, name: &str, bytes: usize) -> anyhow::Result<Self> {
        let size = |name: &str, endpoints| SliceTemplate::of(service, name, endpoints, true).bytes.len();
        let endpoints = (1..).take_while(|&count| size(name, count) <= bytes).last();
        let endpoints = endpoints.with_context(|| format!("a slice does not fit into {bytes} bytes"))?;
        let padded = |padding: &usize| size(&format!("{name}{}", "x".repeat(*padding)), endpoints) <= bytes;
        let padding = (0..).take_while(padded).last().unwrap_or_default();
        Ok(Self {
            endpoints,
            padding: "x".repeat(padding),
        })
    }

    /// A slice of this size.
    pub(super) fn slice(&self, service: &ServiceKey, name: &str) -> SliceTemplate {
        SliceTemplate::of(service, &format!("{name}{}", self.padding), self.endpoints, true)
    }
}

/// The number in a slice that came back.
pub(super) fn number_of(slice: &v1::ImportedSlice) -> Option<u32> {
    let address = slice.endpoints.first()?.addresses.first()?;
    let [10, octets @ ..] = address.parse::<Ipv4Addr>().ok()?.octets() else {
        return None;
    };
    octets.into_iter().try_fold(0, |number, octet| {
        Some(number * OCTETS + u32::from(octet.checked_sub(FIRST_OCTET)?))
    })
}

/// The address that stands for a number.
fn address_of(number: u32) -> Ipv4Addr {
    let octet = |place: u32| FIRST_OCTET + (number / place % OCTETS) as u8;
    Ipv4Addr::new(10, octet(OCTETS * OCTETS), octet(OCTETS), octet(1))
}

fn slice(service: &ServiceKey, name: &str, endpoints: usize, number: u32, hostnames: bool) -> EndpointSlice {
    let address = |index: usize| match index {
        0 => address_of(number),
        _ => Ipv4Addr::new(172, 16 + (index >> 16) as u8, (index >> 8) as u8, index as u8),
    };
    let endpoint = |index: usize| Endpoint {
        addresses: vec![IpAddr::V4(address(index))],
        ready: Some(true),
        serving: Some(true),
        terminating: Some(false),
        hostname: hostnames.then(|| format!("{}-7d9f8b6c5d-{index:05}", service.name).into()),
        zone: Some("eu-central-1a".into()),
    };
    EndpointSlice {
        key: SliceKey {
            service: service.clone(),
            name: name.into(),
        },
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: (0..endpoints).map(endpoint).collect(),
    }
}

/// An export of `service`, the `index`th of the clusterset. One that conflicts wants another session affinity.
pub(super) fn export(service: &ServiceKey, index: usize, conflicts: bool) -> Bytes {
    let fact = Fact::ExportUpserted(
        Export {
            service: service.clone(),
            created_at: UnixMillis((FIRST_CREATED_SECONDS + index as u64) * 1_000),
            uid: format!("00000000-0000-4000-8000-{index:012}").into(),
            generation: 1,
            service_type: ServiceType::ClusterSetIp,
            ports: vec![ServicePort {
                name: "http".into(),
                protocol: Protocol::Tcp,
                port: 80,
                app_protocol: None,
            }],
            policies: ServicePolicies {
                session_affinity: if conflicts {
                    SessionAffinity::ClientIp
                } else {
                    SessionAffinity::None
                },
                session_affinity_timeout_seconds: conflicts.then_some(10_800),
                internal_traffic_policy: Some("Cluster".into()),
                traffic_distribution: None,
            },
            ip_families: vec![IpFamily::V4],
            labels: Metadata::new(),
            annotations: Metadata::new(),
        }
        .into(),
    );
    wire::encode_fact(&fact).bytes
}

/// A service of the shape.
pub(super) fn service(namespace: &str, index: usize) -> anyhow::Result<ServiceKey> {
    Ok(ServiceKey::new(namespace, &format!("cart-{index:05}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ServiceKey {
        service("shop", 1).expect("valid")
    }

    #[test]
    fn a_numbered_fact_is_valid_and_carries_its_number() {
        let template = SliceTemplate::new(&key(), "cart-1", 3);
        for number in [0, 1, 256, 70_000, NUMBERS_MAX - 1] {
            let fact = wire::decode_member_fact(template.numbered(number)).expect("a hub takes it");
            let Fact::EndpointSliceUpserted(slice) = fact.fact else {
                panic!("no slice")
            };
            assert_eq!(
                slice.endpoints.to_vec()[0].addresses,
                [IpAddr::V4(address_of(number))]
            );
            let endpoint = v1::Endpoint {
                addresses: vec![address_of(number).to_string()],
                ..Default::default()
            };
            let back = v1::ImportedSlice {
                endpoints: vec![endpoint],
                ..Default::default()
            };
            assert_eq!(number_of(&back), Some(number));
        }
    }

    #[test]
    fn a_fact_has_the_size_that_was_asked_for() {
        for bytes in [400, 6_000] {
            let size = Size::of(&key(), "cart-1", bytes).expect("it fits");
            let template = size.slice(&key(), "cart-2");
            assert!(
                (bytes - 2..=bytes).contains(&template.len()),
                "{} for {bytes}",
                template.len()
            );
            wire::decode_member_fact(template.numbered(7)).expect("a hub takes it");
        }
        Size::of(&key(), "cart-1", 10).expect_err("nothing fits");
    }

    #[test]
    fn exports_are_valid() {
        for conflicts in [false, true] {
            wire::decode_member_fact(export(&key(), 5, conflicts)).expect("a hub takes it");
        }
    }
}

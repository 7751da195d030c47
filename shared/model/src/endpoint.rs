//! EndpointSlices: as a cluster reports them, and as importing clusters hold them.
//! Endpoints are held as bytes and shared, so that holding a slice twice costs them once.

use std::{net::IpAddr, sync::Arc};

use super::{ClusterId, Endpoints, IpFamily, Protocol, Revision, ServiceKey};

/// Most endpoints in one EndpointSlice (the API server's bound).
pub const SLICE_ENDPOINTS_MAX: usize = 1_000;
/// Most addresses of one endpoint (the API server's bound).
pub const ENDPOINT_ADDRESSES_MAX: usize = 100;
/// Most ports of one EndpointSlice that is taken.
pub const SLICE_PORTS_MAX: usize = super::protocol::SERVICE_PORTS_MAX;
/// Longest zone, in bytes (a label value).
pub const ZONE_BYTES_MAX: usize = 63;

/// The key of an EndpointSlice within its cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceKey {
    /// The Service it belongs to.
    pub service: ServiceKey,
    /// The EndpointSlice's name, a DNS subdomain. Copies share it.
    pub name: Arc<str>,
}

/// A port of an EndpointSlice: `port` is the target port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointPort {
    /// The Service port's name; empty for the unnamed one.
    pub name: Box<str>,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The target port; absent: every port.
    pub port: Option<u16>,
    /// The application protocol, if stated.
    pub app_protocol: Option<Box<str>>,
}

/// One endpoint. Conditions are kept as they were: absent is not the same text as true.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// 1 to 100, all of the slice's family.
    pub addresses: Vec<IpAddr>,
    /// Absent counts as true.
    pub ready: Option<bool>,
    /// Absent counts as true.
    pub serving: Option<bool>,
    /// Absent counts as false.
    pub terminating: Option<bool>,
    /// A DNS label.
    pub hostname: Option<Box<str>>,
    /// The source cluster's zone.
    pub zone: Option<Box<str>>,
}

impl Endpoint {
    /// Returns true if it takes new connections, by Kubernetes' rule for an absent condition.
    pub fn is_ready(&self) -> bool {
        self.ready.unwrap_or(true)
    }
}

/// One EndpointSlice of an exported Service, as its own cluster reports it. It has no node names and no
/// target references: those mean nothing in another cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSlice {
    /// The slice that it belongs to.
    pub key: SliceKey,
    /// Immutable in Kubernetes.
    pub address_type: IpFamily,
    /// Names unique.
    pub ports: Vec<EndpointPort>,
    /// At most [`SLICE_ENDPOINTS_MAX`].
    pub endpoints: Endpoints,
}

/// The key of an imported slice: one source slice of one source cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImportedSliceKey {
    /// The service.
    pub service: ServiceKey,
    /// The cluster whose endpoints it holds.
    pub source_cluster: ClusterId,
    /// The EndpointSlice's own name there. Copies share it.
    pub source_slice: Arc<str>,
}

/// A slice as importing clusters hold it: ports narrowed to those its cluster is eligible for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedSlice {
    /// The slice that it comes from.
    pub key: ImportedSliceKey,
    /// The family of its addresses.
    pub address_type: IpFamily,
    /// Only ports that are eligible in the import.
    pub ports: Vec<EndpointPort>,
    /// The source's endpoints, whole.
    pub endpoints: Endpoints,
    /// Revision of the import whose ports these were narrowed by: the slice waits for that import.
    pub import_revision: Revision,
}

impl ImportedSlice {
    /// Equality of content: the import's revision is none.
    pub fn same_content(&self, other: &Self) -> bool {
        self.key == other.key
            && self.address_type == other.address_type
            && self.ports == other.ports
            && self.endpoints == other.endpoints
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(address: [u8; 4]) -> Endpoint {
        Endpoint {
            addresses: vec![address.into()],
            ready: None,
            serving: None,
            terminating: None,
            hostname: None,
            zone: None,
        }
    }

    fn slice() -> ImportedSlice {
        ImportedSlice {
            key: ImportedSliceKey {
                service: ServiceKey::new("shop", "cart").expect("valid"),
                source_cluster: ClusterId::new("east").expect("valid"),
                source_slice: "a".into(),
            },
            address_type: IpFamily::V4,
            ports: Vec::new(),
            endpoints: [endpoint([10, 0, 0, 1])].into(),
            import_revision: Revision(1),
        }
    }

    #[test]
    fn an_endpoint_that_does_not_say_is_ready() {
        let says = |ready| Endpoint {
            ready,
            ..endpoint([10, 0, 0, 1])
        };
        assert!(says(None).is_ready() && says(Some(true)).is_ready());
        assert!(!says(Some(false)).is_ready());
    }

    #[test]
    fn content_is_everything_but_the_revision_of_the_import() {
        let same = ImportedSlice {
            endpoints: [endpoint([10, 0, 0, 1])].into(),
            import_revision: Revision(2),
            ..slice()
        };
        assert!(slice().same_content(&same));
        let shared = slice();
        assert!(
            shared.same_content(&shared.clone()),
            "without looking at the endpoints"
        );
        let port = EndpointPort {
            name: "http".into(),
            protocol: super::super::Protocol::Tcp,
            port: Some(80),
            app_protocol: None,
        };
        let changes: [fn(&mut ImportedSlice, EndpointPort); 4] = [
            |slice, _| slice.key.source_slice = "b".into(),
            |slice, _| slice.address_type = IpFamily::V6,
            |slice, port| slice.ports = vec![port],
            |slice, _| slice.endpoints = [endpoint([10, 0, 0, 2])].into(),
        ];
        for (number, change) in changes.iter().enumerate() {
            let mut other = slice();
            change(&mut other, port.clone());
            assert!(!slice().same_content(&other), "change {number}");
        }
    }
}

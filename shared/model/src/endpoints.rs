//! Owns: the endpoints of a slice in the bytes in which they travel, read one by one when somebody looks: as values they
//! took three times the room, and a hub looks at few of them twice.
//! Never: holds bytes that were not scanned or written here, so that reading them cannot fail.
//!
//! The bytes are those of the field `endpoints` of `EndpointSlice` and `ImportedSlice` in proto/tributary/v1, which are
//! the same, in the one form in which an encoder writes them: fields in their order, each number as short as it can be,
//! nothing unknown. So the same endpoints have the same bytes.

mod read;
mod write;

use std::{fmt, net::IpAddr};

use bytes::Bytes;

use super::Endpoint;

/// The tag of the field `endpoints`: number 4, with a length.
const ENDPOINT: u8 = 0x22;
/// Tags of the fields of an endpoint, in their order.
const ADDRESS: u8 = 0x0a;
const READY: u8 = 0x10;
const SERVING: u8 = 0x18;
const TERMINATING: u8 = 0x20;
const HOSTNAME: u8 = 0x2a;
const ZONE: u8 = 0x32;

/// A slice's endpoints, in their order. A copy shares the bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    bytes: Bytes,
    count: u32,
}

/// One of them, where it is.
#[derive(Clone, Copy)]
pub struct EndpointView<'a> {
    /// Its fields, without their tag and length.
    fields: &'a [u8],
}

impl Endpoints {
    /// Takes endpoints in the form that [`Endpoints`] writes, or none: other bytes are read in another way.
    /// [`super::validate`] judges the endpoints' content.
    pub fn scan(bytes: Bytes) -> Option<Self> {
        let count = read::scan(&bytes)?;
        Some(Self { bytes, count })
    }

    /// As they travel.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Number of endpoints.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Each where it is.
    pub fn iter(&self) -> impl Iterator<Item = EndpointView<'_>> {
        read::Fields(&self.bytes).map(|(_, fields)| EndpointView { fields })
    }

    /// Each as a value.
    pub fn values(&self) -> impl Iterator<Item = Endpoint> {
        self.iter().map(EndpointView::value)
    }

    /// All as values.
    pub fn to_vec(&self) -> Vec<Endpoint> {
        self.values().collect()
    }

    /// The endpoints for which this holds: the very bytes, if all are.
    pub fn only(&self, mut holds: impl FnMut(EndpointView<'_>) -> bool) -> Self {
        let (mut kept, mut count) = (Vec::new(), 0);
        for one in self.iter().filter(|one| holds(*one)) {
            write::field(&mut kept, ENDPOINT, one.fields);
            count += 1;
        }
        if count == self.count {
            return self.clone();
        }
        Self {
            bytes: kept.into(),
            count,
        }
    }
}

impl<'a> EndpointView<'a> {
    /// Its addresses, in their order.
    pub fn addresses(self) -> impl Iterator<Item = IpAddr> + 'a {
        let fields = read::Fields(self.fields).take_while(|(tag, _)| *tag == ADDRESS);
        fields.filter_map(|(_, text)| read::address(text))
    }

    /// Readiness; absent counts as ready.
    pub fn ready(self) -> Option<bool> {
        self.flag(READY)
    }

    /// Serving; absent counts as serving.
    pub fn serving(self) -> Option<bool> {
        self.flag(SERVING)
    }

    /// Termination; absent counts as not terminating.
    pub fn terminating(self) -> Option<bool> {
        self.flag(TERMINATING)
    }

    /// A DNS label.
    pub fn hostname(self) -> Option<&'a str> {
        self.text(HOSTNAME)
    }

    /// The source cluster's zone.
    pub fn zone(self) -> Option<&'a str> {
        self.text(ZONE)
    }

    /// Returns true if it takes new connections, by Kubernetes' rule for an absent condition.
    pub fn is_ready(self) -> bool {
        self.ready().unwrap_or(true)
    }

    /// As a value.
    pub fn value(self) -> Endpoint {
        Endpoint {
            addresses: self.addresses().collect(),
            ready: self.ready(),
            serving: self.serving(),
            terminating: self.terminating(),
            hostname: self.hostname().map(Box::from),
            zone: self.zone().map(Box::from),
        }
    }

    fn field(self, wanted: u8) -> Option<&'a [u8]> {
        let found = read::Fields(self.fields).find(|(tag, _)| *tag == wanted);
        found.map(|(_, value)| value)
    }

    fn flag(self, tag: u8) -> Option<bool> {
        self.field(tag).map(|value| value == [1])
    }

    fn text(self, tag: u8) -> Option<&'a str> {
        std::str::from_utf8(self.field(tag)?).ok()
    }
}

impl FromIterator<Endpoint> for Endpoints {
    fn from_iter<I: IntoIterator<Item = Endpoint>>(endpoints: I) -> Self {
        let (mut bytes, mut count) = (Vec::new(), 0);
        for endpoint in endpoints {
            write::endpoint(&mut bytes, &endpoint);
            count += 1;
        }
        bytes.shrink_to_fit();
        Self {
            bytes: bytes.into(),
            count,
        }
    }
}

impl From<Vec<Endpoint>> for Endpoints {
    fn from(endpoints: Vec<Endpoint>) -> Self {
        endpoints.into_iter().collect()
    }
}

impl<const N: usize> From<[Endpoint; N]> for Endpoints {
    fn from(endpoints: [Endpoint; N]) -> Self {
        endpoints.into_iter().collect()
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values()).finish()
    }
}

impl fmt::Debug for EndpointView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

#[cfg(test)]
mod tests;

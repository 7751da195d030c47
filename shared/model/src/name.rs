//! Names that identify a clusterset, a cluster and a service.
//! A value of these types is valid by construction; it never holds a name the API server would refuse.

use std::{fmt, ops::Deref, sync::Arc};

/// Longest RFC 1123 DNS label, in bytes.
pub const DNS_LABEL_BYTES_MAX: usize = 63;
/// Longest RFC 1123 DNS subdomain, in bytes (names of Kubernetes objects).
pub const DNS_SUBDOMAIN_BYTES_MAX: usize = 253;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value:?} is not {rule}")]
pub struct InvalidName {
    /// The kind of name, for example "cluster id".
    pub what: &'static str,
    /// The name as it was given, cut to 80 characters.
    pub value: String,
    /// The rule it breaks.
    pub rule: &'static str,
}

/// True for an RFC 1123 DNS label: 1 to 63 of `a-z0-9-`, alphanumeric at both ends.
pub fn is_dns_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    match (bytes.first(), bytes.last()) {
        (Some(&first), Some(&last)) => {
            bytes.len() <= DNS_LABEL_BYTES_MAX
                && alphanumeric(first)
                && alphanumeric(last)
                && bytes.iter().all(|&b| alphanumeric(b) || b == b'-')
        }
        _ => false,
    }
}

/// True for an RFC 1123 DNS subdomain: labels joined by dots, 253 bytes at most.
/// Labels inside a subdomain may be longer than 63 bytes, as in the API server's own check.
pub fn is_dns_subdomain(value: &str) -> bool {
    let label = |part: &str| {
        let bytes = part.as_bytes();
        let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        match (bytes.first(), bytes.last()) {
            (Some(&first), Some(&last)) => {
                alphanumeric(first)
                    && alphanumeric(last)
                    && bytes.iter().all(|&b| alphanumeric(b) || b == b'-')
            }
            _ => false,
        }
    };
    value.len() <= DNS_SUBDOMAIN_BYTES_MAX && value.split('.').all(label)
}

fn label(what: &'static str, value: &str) -> Result<Box<str>, InvalidName> {
    if is_dns_label(value) {
        return Ok(value.into());
    }
    Err(InvalidName {
        what,
        value: value.chars().take(80).collect(),
        rule: "an RFC 1123 DNS label (1 to 63 of a-z, 0-9 and '-', alphanumeric at both ends)",
    })
}

/// The id of a cluster within its clusterset: one RFC 1123 DNS label (KEP-2149, `cluster.clusterset.k8s.io`,
/// narrowed to a label because it becomes a label value and one part of a DNS name).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterId(Arc<str>);

impl ClusterId {
    /// Checks and takes a cluster id.
    pub fn new(value: &str) -> Result<Self, InvalidName> {
        label("cluster id", value).map(|id| Self(id.into()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A clusterset: the unit of everything. Nothing crosses between two of them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Clusterset {
    trust_domain: Box<str>,
    name: Box<str>,
}

impl Clusterset {
    /// Checks and takes a trust domain (a DNS subdomain) and a name (a DNS label).
    pub fn new(trust_domain: &str, name: &str) -> Result<Self, InvalidName> {
        if !is_dns_subdomain(trust_domain) {
            return Err(InvalidName {
                what: "trust domain",
                value: trust_domain.chars().take(80).collect(),
                rule: "an RFC 1123 DNS subdomain (253 bytes at most, labels of a-z, 0-9 and '-' joined by dots)",
            });
        }
        Ok(Self {
            trust_domain: trust_domain.into(),
            name: label("clusterset", name)?,
        })
    }

    /// The SPIFFE trust domain that the certificates of this clusterset share.
    pub fn trust_domain(&self) -> &str {
        &self.trust_domain
    }

    /// The clusterset's name within its trust domain.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Namespace and name of a Service, and so of its ServiceExport and ServiceImport: the same everywhere
/// (KEP-1645, namespace sameness). A copy shares both: a hub has each in a dozen places.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceKey(Arc<ServiceName>);

/// The parts of a [`ServiceKey`].
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceName {
    /// The namespace, an RFC 1123 label.
    pub namespace: Box<str>,
    /// The Service's name, at most 63 bytes.
    pub name: Box<str>,
}

impl Deref for ServiceKey {
    type Target = ServiceName;

    fn deref(&self) -> &ServiceName {
        &self.0
    }
}

impl ServiceKey {
    /// Checks and takes namespace and name.
    pub fn new(namespace: &str, name: &str) -> Result<Self, InvalidName> {
        Ok(Self(Arc::new(ServiceName {
            namespace: label("namespace", namespace)?,
            name: label("service name", name)?,
        })))
    }

    /// Returns the key of an object as it is called, though no Service can have that name. An agent works with it; no fact
    /// has it, and nothing is exported or imported under it.
    pub fn as_called(namespace: &str, name: &str) -> Self {
        Self(Arc::new(ServiceName {
            namespace: namespace.into(),
            name: name.into(),
        }))
    }

    /// A bound that sorts before all services of a namespace, and is none.
    pub fn before_all_of(namespace: &str) -> Self {
        Self::as_called(namespace, "")
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Clusterset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.trust_domain, self.name)
    }
}

impl fmt::Debug for Clusterset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_checked_as_the_api_server_checks_them() {
        for good in ["a", "0", "a-b", "x1", &"a".repeat(63)] {
            assert!(ClusterId::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "ü", &"a".repeat(64)] {
            assert!(ClusterId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_trust_domain_may_have_dots_and_a_clusterset_may_not() {
        assert!(Clusterset::new("example.org", "default").is_ok());
        assert!(Clusterset::new("example..org", "default").is_err());
        assert!(Clusterset::new("example.org", "de.fault").is_err());
    }
}

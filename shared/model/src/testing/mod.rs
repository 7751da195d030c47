//! Generators of model values for property tests: every value that they give keeps the rules of
//! `model::validate`, and every kind and option comes up. `advice`: the commands that messages print.
//! For tests only.

pub mod advice;
pub mod desired;
pub mod service;

use proptest::{collection::btree_set, prelude::*};

use crate::{ChainHash, ClusterId, Cursor, Epoch, Revision, ServiceKey, UnixMillis};

/// An RFC 1123 DNS label.
pub fn dns_label() -> impl Strategy<Value = Box<str>> {
    "[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?".prop_map(Box::from)
}

/// A DNS subdomain of up to three labels.
pub fn dns_subdomain() -> impl Strategy<Value = Box<str>> {
    "[a-z0-9]{1,5}(\\.[a-z0-9]{1,5}){0,2}".prop_map(Box::from)
}

/// A uid, fingerprint or version.
pub fn identity() -> impl Strategy<Value = Box<str>> {
    "[!-~]{1,40}".prop_map(Box::from)
}

/// A cluster id.
pub fn cluster_id() -> impl Strategy<Value = ClusterId> {
    dns_label().prop_map(|label| ClusterId::new(&label).expect("a DNS label is a cluster id"))
}

/// A service's namespace and name.
pub fn service_key() -> impl Strategy<Value = ServiceKey> {
    (dns_label(), dns_label()).prop_map(|(namespace, name)| {
        ServiceKey::new(&namespace, &name).expect("two DNS labels are a service key")
    })
}

/// A set of namespaces.
pub fn namespaces() -> impl Strategy<Value = std::collections::BTreeSet<Box<str>>> {
    btree_set(dns_label(), 0..5)
}

/// An epoch.
pub fn epoch() -> impl Strategy<Value = Epoch> {
    any::<(u64, u64)>().prop_map(|(created_at, random)| Epoch {
        created_at: UnixMillis(created_at),
        random,
    })
}

/// A cursor.
pub fn cursor() -> impl Strategy<Value = Cursor> {
    (epoch(), any::<u64>(), any::<[u8; 16]>()).prop_map(|(epoch, revision, hash)| Cursor {
        epoch,
        revision: Revision(revision),
        hash: ChainHash(hash),
    })
}

//! Digests over sets of facts: how hub and agent find out cheaply that nothing changed.
//! Pure arithmetic on bytes; it never encodes a fact.

use super::{FactHash, FactKey};

/// Digest of a member's current facts of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactsDigest(pub [u8; 16]);

/// The first 16 bytes of a blake3 hash: enough against accident and for a chain.
pub fn first_16(hash: &[u8; 32]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes
}

/// Digest over (key, hash of the fact as sent), which must come in key order.
/// Keys are written with lengths, so that no two sequences of keys give the same bytes.
pub fn facts_digest<'a>(facts: impl Iterator<Item = (&'a FactKey, FactHash)>) -> FactsDigest {
    let mut hasher = blake3::Hasher::new();
    for (key, hash) in facts {
        let (kind, parts): (u8, [&str; 3]) = match key {
            FactKey::Export(service) => (1, [&service.namespace, &service.name, ""]),
            FactKey::EndpointSlice(slice) => {
                (2, [&slice.service.namespace, &slice.service.name, &slice.name])
            }
            FactKey::ClusterProperty(name) => (3, [name, "", ""]),
            FactKey::Health => (4, ["", "", ""]),
        };
        hasher.update(&[kind]);
        for part in parts {
            hasher.update(&(part.len() as u32).to_be_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.update(&hash.0);
    }
    FactsDigest(first_16(hasher.finalize().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServiceKey;

    #[test]
    fn the_digest_depends_on_keys_and_hashes() {
        let key = FactKey::Export(ServiceKey::new("shop", "cart").unwrap());
        let one = facts_digest([(&key, FactHash([1; 16]))].into_iter());
        let other = facts_digest([(&key, FactHash([2; 16]))].into_iter());
        let health = facts_digest([(&FactKey::Health, FactHash([1; 16]))].into_iter());
        let none = facts_digest(std::iter::empty());
        assert!(one != other && one != health && one != none);
    }
}

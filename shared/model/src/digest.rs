//! Digests over sets of facts: how hub and agent find out cheaply that nothing changed.
//! Pure arithmetic on bytes; it never encodes a fact.

use super::{FactHash, FactKey, bytes::first_16};

/// Digest of a member's current facts of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactsDigest(pub [u8; 16]);

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

/// First 16 bytes of the blake3 hash of a derived object's content, revisions and times left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ContentDigest(pub [u8; 16]);

/// Hashes content part by part. Texts and byte strings are written with lengths, numbers in eight bytes, so
/// that no two sequences of parts of one shape give the same bytes. Frozen: digests stand in snapshots.
#[derive(Debug, Default)]
pub struct ContentHasher(blake3::Hasher);

impl ContentHasher {
    /// Adds a number: a length, a tag, a value.
    pub fn number(&mut self, number: u64) {
        self.0.update(&number.to_be_bytes());
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.update(bytes);
    }

    /// Adds a text.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// The digest of everything added.
    pub fn finish(self) -> ContentDigest {
        ContentDigest(first_16(self.0.finalize().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServiceKey;

    #[test]
    fn the_digest_depends_on_keys_and_hashes() {
        let key = FactKey::Export(ServiceKey::new("shop", "cart").unwrap());
        let one = facts_digest([(&key, FactHash([1; 16]))].into_iter());
        let other = facts_digest([(&key, FactHash([2; 16]))].into_iter());
        let health = facts_digest([(&FactKey::Health, FactHash([1; 16]))].into_iter());
        let none = facts_digest(std::iter::empty());
        assert!(one != other && one != health && one != none);
    }

    #[test]
    fn where_a_part_ends_is_part_of_a_content_digest() {
        let digest = |parts: &[&str]| {
            let mut hasher = ContentHasher::default();
            parts.iter().for_each(|part| hasher.text(part));
            hasher.finish()
        };
        assert_eq!(digest(&["ab", "c"]), digest(&["ab", "c"]));
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
    }
}

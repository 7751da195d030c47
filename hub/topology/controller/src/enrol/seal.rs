//! Owns: the proof that the hub enrolled a Cluster as the member that it names. Names and annotations are anybody's who may
//! write Clusters, and a Cluster that is deleted takes its member with it: whose id is not its uid, which no client can choose,
//! must show that.
//! Never: leaves the hub its key.

use shared::model::ClusterId;

/// The purpose of the key, so that it is no key for anything else.
const PURPOSE: &str = "tributary enrolment of clusters, 1";

/// Makes and knows seals. It is the same in every process that signs for members with the same key.
#[derive(Clone)]
pub struct Seals {
    key: [u8; blake3::KEY_LEN],
}

impl std::fmt::Debug for Seals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("seals")
    }
}

impl Seals {
    /// A seal by a secret of the hub's.
    pub fn of(secret: &[u8]) -> Self {
        Self {
            key: blake3::derive_key(PURPOSE, secret),
        }
    }

    fn over(&self, uid: &str, id: &ClusterId) -> blake3::Hash {
        // No uid has a line break.
        blake3::keyed_hash(&self.key, format!("{uid}\n{id}").as_bytes())
    }

    /// The seal of the Cluster with this uid as the member of this id.
    pub fn seal(&self, uid: &str, id: &ClusterId) -> String {
        self.over(uid, id).to_hex().to_string()
    }

    /// Returns true if this Cluster is proven to be that member: by its uid, or by a seal of ours.
    pub fn proves(&self, uid: &str, id: &ClusterId, seal: Option<&str>) -> bool {
        if !uid.is_empty() && id.as_str() == uid {
            return true;
        }
        let given = seal.and_then(|seal| blake3::Hash::from_hex(seal).ok());
        // Hashes are compared in a time that says nothing of where they differ.
        given.is_some_and(|given| given == self.over(uid, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_of_one_cluster_one_member_and_one_hub() {
        let (seals, others) = (Seals::of(b"key"), Seals::of(b"other"));
        let id = |text: &str| ClusterId::new(text).unwrap();
        let seal = seals.seal("u-1", &id("east"));
        let proves = |seals: &Seals, uid, member, seal| seals.proves(uid, &id(member), seal);
        assert!(proves(&seals, "u-1", "east", Some(&seal)));
        assert!(!proves(&seals, "u-2", "east", Some(&seal)));
        assert!(!proves(&seals, "u-1", "west", Some(&seal)));
        assert!(!proves(&others, "u-1", "east", Some(&seal)));
        assert!(!proves(&seals, "u-1", "east", None));
        for forged in ["", "00", "zz", &seal[2..]] {
            assert!(!proves(&seals, "u-1", "east", Some(forged)), "{forged}");
        }
        assert!(proves(&seals, "u-1", "u-1", None));
        assert_eq!(format!("{seals:?}"), "seals");
    }
}

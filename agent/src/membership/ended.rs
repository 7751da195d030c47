//! Owns: whether the hub's word that a membership has ended is about this cluster. Pure.
//! Never: acts on it: the link tells the Lease, from which the rest follows.

use shared::model::{ClusterId, Epoch, KeyFingerprint, sync::MembershipEnded};

/// Returns true if the word ends the membership of this cluster, which came with this key and has known this epoch. A hub that was
/// never known, or whose log is older than the one that admitted this cluster, ends nothing: a hub that starts empty or
/// with an old copy of its data must not have clusters taken apart.
pub fn is_about(
    word: &MembershipEnded,
    cluster: &ClusterId,
    key: KeyFingerprint,
    known: Option<Epoch>,
) -> bool {
    word.cluster == *cluster && word.key == key && known.is_some_and(|known| word.epoch >= known)
}

#[cfg(test)]
mod tests {
    use shared::model::UnixMillis;

    use super::*;

    fn epoch(millis: u64) -> Epoch {
        Epoch {
            created_at: UnixMillis(millis),
            random: 7,
        }
    }

    #[test]
    fn only_a_word_about_this_cluster_and_key_from_no_older_log_counts() {
        let id = |name| ClusterId::new(name).expect("an id");
        let (east, key, known) = (id("east"), KeyFingerprint([1; 32]), Some(epoch(5)));
        let word = MembershipEnded {
            cluster: id("east"),
            key,
            epoch: epoch(5),
        };
        assert!(is_about(&word, &east, key, known));
        let later = MembershipEnded {
            epoch: epoch(6),
            ..word.clone()
        };
        assert!(
            is_about(&later, &east, key, known),
            "an epoch that began after it"
        );
        for (other, why) in [
            (
                MembershipEnded {
                    cluster: id("west"),
                    ..word.clone()
                },
                "another cluster",
            ),
            (
                MembershipEnded {
                    key: KeyFingerprint([2; 32]),
                    ..word.clone()
                },
                "another key",
            ),
            (
                MembershipEnded {
                    epoch: epoch(4),
                    ..word.clone()
                },
                "an older log",
            ),
        ] {
            assert!(!is_about(&other, &east, key, known), "{why}");
        }
        assert!(!is_about(&word, &east, key, None), "no hub was ever known");
    }
}

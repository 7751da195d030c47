//! Owns: what follows from all that was recorded: the objects of each Cluster as they were last written, what is being
//! rolled out since when, and what the API server refused.
//! Never: asks a server: a ledger that was replayed is the one that recorded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::model::UnixMillis;

use super::{
    event::{ClusterName, Event, Intent, ObjectName, Recorded},
    said::Said,
};

/// Most templates that may take each other's place at one place of a Cluster within [`ROTATION_MILLIS`]: each replaces
/// machines.
pub const ROTATIONS_PER_PLACE_AND_HOUR: usize = 5;
/// Time for which a rotation counts, in milliseconds.
pub const ROTATION_MILLIS: u64 = 60 * 60 * 1_000;

/// All Clusters that something was recorded of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ledger {
    holder: Option<String>,
    clusters: BTreeMap<ClusterName, Kept>,
}

/// The state of a Cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kept {
    /// Its state beside its objects.
    pub about: About,
    /// Its objects as the API server took them last from us.
    pub objects: BTreeMap<ObjectName, Value>,
}

/// The state of a Cluster beside its objects.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct About {
    /// Its identity.
    pub uid: String,
    /// Since when its machines are being replaced.
    pub rolling_since: Option<u64>,
    /// The event that its rollout waits for.
    pub held: Option<String>,
    /// The API server's last refusal, and its reason.
    pub refused: Option<String>,
    /// The generation that it had when all was done.
    pub settled: Option<i64>,
    /// Its values about its machines then.
    pub said: Said,
    /// The ones of these that are defaults of its class, and not its owner's.
    pub defaulted: Said,
    /// Templates that took another's place lately, by place: when, and which.
    pub rotated: BTreeMap<String, Vec<(u64, String)>>,
    /// The intended write, of unknown outcome.
    pub pending: Option<(ObjectName, Option<Value>)>,
}

impl Kept {
    /// Takes in the identity of the Cluster. The records of another Cluster of its name are dropped; records from
    /// before the first write, such as the begin of a rollout, have no identity and stay.
    fn identify(&mut self, uid: String) {
        if self.about.uid != uid {
            if !self.about.uid.is_empty() {
                *self = Self::default();
            }
            self.about.uid = uid;
        }
    }
}

impl About {
    /// Counts a rotation; one that is tried again counts once.
    fn rotates(&mut self, place: String, name: &str, at: UnixMillis) {
        let since = at.0.saturating_sub(ROTATION_MILLIS);
        for rotated in self.rotated.values_mut() {
            rotated.retain(|(at, _)| *at > since);
        }
        let rotated = self.rotated.entry(place).or_default();
        if rotated.iter().all(|(_, known)| known != name) {
            rotated.push((at.0, name.to_owned()));
        }
        self.rotated.retain(|_, rotated| !rotated.is_empty());
    }
}

/// A row of a snapshot.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "row", rename_all = "kebab-case")]
enum Row {
    Named {
        holder: String,
    },
    Cluster {
        cluster: ClusterName,
        about: About,
    },
    Object {
        cluster: ClusterName,
        object: ObjectName,
        content: Value,
    },
}

impl Ledger {
    /// A Cluster, if something was recorded of it.
    pub fn get(&self, cluster: &ClusterName) -> Option<&Kept> {
        self.clusters.get(cluster)
    }

    /// The name of the log's owner, once it has one.
    pub fn holder(&self) -> Option<&str> {
        self.holder.as_deref()
    }

    /// All Clusters.
    pub fn clusters(&self) -> impl Iterator<Item = (&ClusterName, &Kept)> {
        self.clusters.iter()
    }

    /// Takes in what was recorded.
    pub fn fold(&mut self, recorded: Recorded) {
        let at = recorded.at();
        match recorded.event {
            Event::Intended {
                cluster,
                uid,
                object,
                place,
                action,
                content,
                ..
            } => {
                let kept = self.clusters.entry(cluster).or_default();
                kept.identify(uid);
                if action == Intent::Rotate {
                    kept.about.rotates(place, &object.name, at);
                }
                kept.about.pending = Some((object, content));
                kept.about.settled = None;
            }
            Event::Applied { cluster, object } => self.applied(&cluster, &object),
            Event::Refused { cluster, object, why } => {
                if let Some(kept) = self.clusters.get_mut(&cluster) {
                    kept.about.pending = None;
                    kept.about.refused = Some(format!("{object}: {why}"));
                }
            }
            Event::Lost { cluster, object } => {
                if let Some(kept) = self.clusters.get_mut(&cluster) {
                    kept.objects.remove(&object);
                }
            }
            Event::RolloutBegan { cluster } => self.began(cluster, at),
            Event::RolloutHeld { cluster, why } => {
                self.clusters.entry(cluster).or_default().about.held = Some(why);
            }
            Event::Settled {
                cluster,
                generation,
                said,
            } => {
                let about = &mut self.clusters.entry(cluster).or_default().about;
                about.settled = Some(generation);
                about.said = said;
                let About { said, defaulted, .. } = about;
                defaulted.retain(|place, word| said.get(place) == Some(word));
                about.rolling_since = None;
                about.held = None;
                about.refused = None;
            }
            Event::Named { holder } => self.holder = Some(holder),
            Event::Forgotten { cluster } => {
                self.clusters.remove(&cluster);
            }
            Event::Defaulted {
                cluster, uid, said, ..
            } => {
                let kept = self.clusters.entry(cluster).or_default();
                kept.identify(uid);
                // These words are its class's, not those of its owner.
                kept.about.said.extend(said.clone());
                kept.about.defaulted.extend(said);
            }
            // It holds for the process that recorded it: the next one looks itself.
            Event::FellBack { .. } => {}
        }
    }

    fn applied(&mut self, cluster: &ClusterName, object: &ObjectName) {
        let Some(kept) = self.clusters.get_mut(cluster) else {
            return;
        };
        if let Some((_, content)) = kept.about.pending.take_if(|(pending, _)| pending == object) {
            match content {
                Some(content) => kept.objects.insert(object.clone(), content),
                None => kept.objects.remove(object),
            };
        }
        kept.about.refused = None;
    }

    fn began(&mut self, cluster: ClusterName, at: UnixMillis) {
        let about = &mut self.clusters.entry(cluster).or_default().about;
        about.rolling_since = about.rolling_since.or(Some(at.0));
        about.held = None;
    }

    /// The rows of a snapshot of it.
    pub fn rows(&self) -> Vec<Vec<u8>> {
        let named = self.holder.iter().map(|holder| Row::Named {
            holder: holder.clone(),
        });
        let mut rows: Vec<Row> = named.collect();
        for (cluster, kept) in &self.clusters {
            rows.push(Row::Cluster {
                cluster: cluster.clone(),
                about: kept.about.clone(),
            });
            rows.extend(kept.objects.iter().map(|(object, content)| Row::Object {
                cluster: cluster.clone(),
                object: object.clone(),
                content: content.clone(),
            }));
        }
        // A value without maps of other keys than texts can be written.
        rows.iter()
            .filter_map(|row| serde_json::to_vec(row).ok())
            .collect()
    }

    /// Takes in a row of a snapshot.
    ///
    /// # Errors
    ///
    /// It is none of this build's.
    pub fn restore(&mut self, row: &[u8]) -> Result<(), String> {
        match serde_json::from_slice(row).map_err(|error| error.to_string())? {
            Row::Named { holder } => self.holder = Some(holder),
            Row::Cluster { cluster, about } => self.clusters.entry(cluster).or_default().about = about,
            Row::Object {
                cluster,
                object,
                content,
            } => {
                self.clusters
                    .entry(cluster)
                    .or_default()
                    .objects
                    .insert(object, content);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cluster() -> ClusterName {
        ClusterName {
            namespace: "ns".to_owned(),
            name: "c".to_owned(),
        }
    }

    fn object(name: &str) -> ObjectName {
        ObjectName {
            group: "g".to_owned(),
            kind: "K".to_owned(),
            name: name.to_owned(),
        }
    }

    fn intended(uid: &str, name: &str, content: Option<Value>) -> Event {
        Event::Intended {
            cluster: cluster(),
            uid: uid.to_owned(),
            object: object(name),
            place: String::new(),
            action: Intent::Create,
            before: None,
            reasons: Vec::new(),
            content,
        }
    }

    fn folded(events: Vec<Event>) -> Ledger {
        let mut ledger = Ledger::default();
        for (at, event) in events.into_iter().enumerate() {
            ledger.fold(Recorded::new(event, UnixMillis(at as u64 + 1)));
        }
        ledger
    }

    fn applied(name: &str) -> Event {
        Event::Applied {
            cluster: cluster(),
            object: object(name),
        }
    }

    #[test]
    fn an_object_is_what_the_server_took_last() {
        let refused = Event::Refused {
            cluster: cluster(),
            object: object("b"),
            why: "no".to_owned(),
        };
        let ledger = folded(vec![
            intended("u", "a", Some(json!(1))),
            applied("a"),
            intended("u", "a", Some(json!(2))),
            applied("a"),
            intended("u", "b", Some(json!(3))),
            refused,
        ]);
        let kept = ledger.get(&cluster()).unwrap();
        assert_eq!(kept.objects, BTreeMap::from([(object("a"), json!(2))]));
        assert_eq!(kept.about.refused.as_deref(), Some("K b: no"));
        let ledger = folded(vec![
            intended("u", "a", Some(json!(1))),
            applied("a"),
            intended("u", "a", None),
            applied("a"),
        ]);
        assert_eq!(ledger.get(&cluster()).unwrap().objects, BTreeMap::new());
    }

    #[test]
    fn a_cluster_of_the_same_name_is_another_one() {
        let ledger = folded(vec![
            intended("u", "a", Some(json!(1))),
            applied("a"),
            intended("v", "b", Some(json!(2))),
        ]);
        let kept = ledger.get(&cluster()).unwrap();
        assert_eq!((kept.about.uid.as_str(), kept.objects.len()), ("v", 0));
        let gone = Event::Forgotten { cluster: cluster() };
        assert_eq!(folded(vec![intended("u", "a", None), gone]), Ledger::default());
    }

    #[test]
    fn a_rollout_is_as_old_as_its_first_word() {
        let began = || Event::RolloutBegan { cluster: cluster() };
        let ledger = folded(vec![began(), began()]);
        assert_eq!(ledger.get(&cluster()).unwrap().about.rolling_since, Some(1));
        let settled = Event::Settled {
            cluster: cluster(),
            generation: 3,
            said: Said::from([("version".to_owned(), "v".to_owned())]),
        };
        let about = &folded(vec![began(), settled])
            .get(&cluster())
            .unwrap()
            .about
            .clone();
        assert_eq!((about.rolling_since, about.settled), (None, Some(3)));
        assert_eq!(about.said.len(), 1);
    }

    #[test]
    fn the_first_write_of_a_cluster_keeps_the_begin_of_its_rollout() {
        let began = || Event::RolloutBegan { cluster: cluster() };
        let defaulted = |uid: &str| Event::Defaulted {
            cluster: cluster(),
            uid: uid.to_owned(),
            defaults: Vec::new(),
            said: Said::new(),
        };
        let since = |events| {
            let ledger = folded(events);
            let about = &ledger.get(&cluster()).unwrap().about;
            (about.uid.clone(), about.rolling_since)
        };
        let first = ("u".to_owned(), Some(1));
        assert_eq!(since(vec![began(), intended("u", "a", None)]), first);
        assert_eq!(since(vec![began(), defaulted("u")]), first);
        let another = ("v".to_owned(), None);
        let of_u = || vec![began(), intended("u", "a", None)];
        assert_eq!(since([of_u(), vec![intended("v", "a", None)]].concat()), another);
        assert_eq!(since([of_u(), vec![defaulted("v")]].concat()), another);
    }

    #[test]
    fn rotations_of_a_place_count_for_an_hour_and_one_that_is_tried_again_once() {
        let mut ledger = Ledger::default();
        let mut rotates = |name: &str, at: u64| {
            let mut event = intended("u", name, Some(json!(1)));
            if let Event::Intended { place, action, .. } = &mut event {
                (*place, *action) = ("p".to_owned(), Intent::Rotate);
            }
            ledger.fold(Recorded::new(event, UnixMillis(at)));
            ledger.get(&cluster()).unwrap().about.rotated["p"].len()
        };
        assert_eq!([rotates("a", 1), rotates("a", 2), rotates("b", 3)], [1, 1, 2]);
        assert_eq!(
            rotates("c", ROTATION_MILLIS + 2),
            2,
            "the first one is an hour old"
        );
    }

    #[test]
    fn a_snapshot_is_the_ledger() {
        let held = Event::RolloutHeld {
            cluster: cluster(),
            why: "w".to_owned(),
        };
        let fell_back = Event::FellBack { why: "x".to_owned() };
        let ledger = folded(vec![
            intended("u", "a", Some(json!({"x": 1}))),
            applied("a"),
            intended("u", "b", Some(json!({"y": 1}))),
            held,
            fell_back,
            Event::Named {
                holder: "h".to_owned(),
            },
        ]);
        assert_eq!(ledger.holder(), Some("h"));
        let mut restored = Ledger::default();
        for row in ledger.rows() {
            restored.restore(&row).unwrap();
        }
        assert_eq!(restored, ledger);
        assert!(restored.restore(b"{}").is_err());
    }
}

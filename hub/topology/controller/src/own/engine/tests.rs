//! Clusters of a class on a simulated API server: made, edited, rolled out in waves, and whatever process ends when.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};
use shared::model::{Clusterset, Epoch, UnixMillis};

use super::{
    super::{
        rules::{event::ObjectName, rival::UpstreamLease},
        server::Failed,
    },
    simulated::{End, Key, Simulated},
    *,
};
use crate::desired::compare::MANAGER;
use event_log::{MemoryDisk, MemoryLog};

mod pools;
mod replaces;
mod writers;

const ESTATE: &str = include_str!("estate.yaml");
const NS: &str = "ns";
const WAVES: Waves = Waves {
    at_once: 2,
    patience_millis: 1_000_000,
};
/// Looks until nothing is left to do, at most.
const LOOKS_MAX: usize = 60;

/// A server, a log, and the present keeper of topologies.
struct Play {
    server: Simulated,
    disk: MemoryDisk,
    engine: Engine<Simulated>,
    now: u64,
}

impl Play {
    fn start(clusters: &[&str]) -> Self {
        let server = Simulated::default();
        for document in serde_norway::Deserializer::from_str(ESTATE) {
            server.put(&Value::deserialize(document).expect("an object"));
        }
        for name in clusters {
            server.put(&cluster(name));
        }
        let disk = MemoryDisk::default();
        server.world().disk = disk.clone();
        let engine = engine(&server, &disk);
        Self {
            server,
            disk,
            engine,
            now: 1_800_000_000_000,
        }
    }

    /// Another process continues.
    fn restart(&mut self, end: Option<End>) {
        self.server.begin(end);
        self.engine = engine(&self.server, &self.disk);
    }

    async fn look(&mut self) -> Count {
        self.now += 10_000;
        match self.engine.look(UnixMillis(self.now)).await {
            Ok(Looked::Done(count)) => count,
            Ok(Looked::FellBack(why)) => panic!("{why}"),
            Err(_) if self.server.has_ended() => Count::default(),
            Err(error) => panic!("{error}"),
        }
    }

    /// Until nothing is left to do; the laws hold at each step.
    async fn settle(&mut self) -> Count {
        let mut last = Count::default();
        for _ in 0..LOOKS_MAX {
            let count = self.look().await;
            let provided = self.server.provide();
            let ended = self.server.has_ended();
            if ended {
                self.restart(None);
            }
            self.laws();
            if !ended && !provided && count.working == 0 && count == last {
                return count;
            }
            last = count;
        }
        panic!("it never comes to an end: {:?}", self.shown());
    }

    fn shown(&self) -> Vec<Key> {
        self.server.world().objects.keys().cloned().collect()
    }

    /// No second object for one role, none of ours that was not recorded before it was written, and no template in the place
    /// of another one whose change the server did not confirm.
    fn laws(&self) {
        let world = self.server.world();
        assert_eq!(world.unconfirmed, [], "replaced without a confirmed change");
        let ledger = self.engine.journal().ledger();
        let recorded: BTreeSet<&ObjectName> = ledger
            .clusters()
            .flat_map(|(_, kept)| {
                kept.objects
                    .keys()
                    .chain(kept.about.pending.iter().map(|(name, _)| name))
            })
            .collect();
        for object in world.objects.values() {
            let ours = object.pointer("/metadata/managedFields/0/manager") == Some(&json!(MANAGER));
            let name = ObjectName::of(object);
            assert!(
                !ours || recorded.contains(&name),
                "{name} was written and not recorded"
            );
        }
        let mut roles = BTreeSet::new();
        for ((_, kind, name), object) in &world.objects {
            let labels = &object["metadata"]["labels"];
            let of = |label: &str| labels[label].as_str().map(str::to_owned);
            let owned = of("topology.cluster.x-k8s.io/owned").is_some();
            if owned && !kind.ends_with("Template") && kind != "Cluster" {
                let role = (
                    kind.clone(),
                    of("cluster.x-k8s.io/cluster-name"),
                    object["spec"]["selector"].to_string(),
                );
                assert!(roles.insert(role), "a second {kind}: {name}");
            }
        }
    }

    /// Number of Clusters with machines of two kinds at once.
    fn in_flight(&self) -> usize {
        let world = self.server.world();
        let moving = world.objects.values().filter(|object| {
            let status = &object["status"];
            !status["done"].is_null() && status["seen"] != status["done"]
        });
        let clusters: BTreeSet<String> = moving
            .map(|object| object["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"].to_string())
            .collect();
        clusters.len()
    }

    /// All that is there, without what a server says by itself.
    fn tree(&self) -> BTreeMap<Key, Value> {
        let world = self.server.world();
        let objects = world
            .objects
            .iter()
            .filter(|((_, kind, _), _)| kind != "MachineSet");
        objects
            .map(|(key, object)| {
                let about = &object["metadata"];
                let said = json!({
                    "labels": about["labels"], "annotations": about["annotations"], "spec": object["spec"],
                });
                (key.clone(), said)
            })
            .collect()
    }

    fn condition(&self, name: &str) -> (String, String) {
        let world = self.server.world();
        let cluster = &world.objects[&(NS.to_owned(), "Cluster".to_owned(), name.to_owned())];
        let condition = &cluster["status"]["conditions"][0];
        let of = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        (of("reason"), of("message"))
    }

    /// Templates of machines that a Cluster has.
    fn hosts(&self, cluster: &str) -> Vec<String> {
        let world = self.server.world();
        let all = world.objects.keys();
        let prefix = format!("{cluster}-");
        all.filter(|(_, kind, name)| kind == "HostTemplate" && name.starts_with(&prefix))
            .map(|(.., name)| name.clone())
            .collect()
    }

    fn edit_host(&self, size: i64) {
        self.server.edit(NS, "HostTemplate", "host", |host| {
            host["spec"]["template"]["spec"]["size"] = json!(size);
        });
    }
}

fn engine(server: &Simulated, disk: &MemoryDisk) -> Engine<Simulated> {
    engine_with(server, log(disk))
}

fn log(disk: &MemoryDisk) -> MemoryLog {
    let clusterset = Clusterset::new("example.org", "default").expect("a name");
    let epoch = Epoch::default().next(UnixMillis(1), 1);
    MemoryLog::open(disk, &clusterset, epoch).expect("a log")
}

fn engine_with(server: &Simulated, log: MemoryLog) -> Engine<Simulated> {
    let journal = Journal::open(Box::new(log)).expect("a journal");
    Engine::new(server.clone(), journal, WAVES)
}

fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": NS, "uid": format!("uid-of-{name}")},
        "spec": {"topology": {
            "classRef": {"name": "standard"},
            "version": "v1.31.0",
            "controlPlane": {"replicas": 1},
            "workers": {"machineDeployments": [{"class": "linux", "name": "md-0", "replicas": 2}]},
        }},
    })
}

fn ready() -> (String, String) {
    ("ReconcileSucceeded".to_owned(), String::new())
}

#[tokio::test]
async fn clusters_are_made_and_nothing_is_written_then() {
    let mut play = Play::start(&["a", "b"]);
    let count = play.settle().await;
    assert_eq!((count.settled, count.failing), (2, 0));
    assert_eq!(play.condition("a"), ready());
    // Two Clusters, each with infrastructure, a plane, its template, a deployment, its health check and two templates.
    assert_eq!(play.server.world().made.len(), 5 + 2 + 2 * 7 + 2);
    let told = std::mem::take(&mut play.server.world().told);
    let made = told.iter().filter(|told| told.reason == "TopologyCreate");
    assert_eq!(made.count(), 2 * 7, "each object that was made is said");
    play.restart(None);
    let before = play.tree();
    assert_eq!(play.look().await.writes, 0, "another process has nothing to do");
    assert_eq!(play.server.world().writes, 0);
    assert_eq!(play.tree(), before);
    assert!(play.server.world().told.is_empty());
}

#[tokio::test]
async fn once_the_hub_ends_no_further_cluster_is_begun() {
    let mut play = Play::start(&["a", "b"]);
    let ending = CancellationToken::new();
    play.engine = engine(&play.server, &play.disk).ending_with(ending.clone());
    ending.cancel();
    assert_eq!(play.look().await, Count::default());
    assert_eq!(play.server.world().writes, 0);
    play.restart(None);
    assert_eq!(play.settle().await.settled, 2);
}

#[tokio::test]
async fn the_log_alone_makes_the_same_tree() {
    let mut play = Play::start(&["a"]);
    play.settle().await;
    play.edit_host(2);
    play.settle().await;
    let empty = Simulated::default();
    empty.put(&cluster("a"));
    for (name, kept) in play.engine.journal().ledger().clusters() {
        for content in kept.objects.values() {
            empty
                .apply(&name.namespace, content, false)
                .await
                .expect("it is taken");
        }
    }
    let made = Play {
        server: empty,
        ..Play::start(&[])
    };
    let mut there = play.tree();
    there.retain(|(_, _, name), _| name.starts_with('a'));
    assert_eq!(made.tree(), there);
}

#[tokio::test]
async fn a_process_that_ends_at_any_write_leaves_nothing_twice_and_nothing_behind() {
    let story = async |play: &mut Play| {
        play.settle().await;
        play.edit_host(2);
        play.settle().await;
        play.server.edit(NS, "Cluster", "a", |cluster| {
            cluster["spec"]["topology"]["workers"]["machineDeployments"] = json!([
                {"class": "linux", "name": "md-1", "replicas": 1},
            ]);
        });
        play.settle().await;
    };
    let mut whole = Play::start(&["a"]);
    story(&mut whole).await;
    let (tree, writes) = (whole.tree(), whole.server.world().writes);
    assert!(writes > 15, "{writes} writes");
    for at in 0..writes {
        for carried_out in [false, true] {
            let mut play = Play::start(&["a"]);
            let end = End {
                writes: at,
                carried_out,
            };
            play.restart(Some(end));
            story(&mut play).await;
            assert_eq!(play.tree(), tree, "{end:?}");
        }
    }
}

#[tokio::test]
async fn an_edit_of_a_class_goes_in_waves() {
    let mut play = Play::start(&["a", "b", "c", "d", "e"]);
    play.settle().await;
    play.edit_host(2);
    let mut most = 0;
    let mut held = 0;
    for _ in 0..LOOKS_MAX {
        let count = play.look().await;
        held = held.max(count.held);
        play.server.provide();
        most = most.max(play.in_flight());
        if count.settled == 5 {
            break;
        }
    }
    assert_eq!(
        (most, held),
        (WAVES.at_once, 3),
        "two at once, and three that wait"
    );
    play.settle().await;
    for cluster in ["a", "b", "c", "d", "e"] {
        assert_eq!(play.condition(cluster), ready(), "{cluster}");
        assert_eq!(play.hosts(cluster).len(), 2, "what is not used is swept up");
    }
}

#[tokio::test]
async fn a_cluster_that_fails_holds_the_others_but_what_a_person_says_goes_on() {
    let mut play = Play::start(&["a", "b", "c", "d"]);
    play.settle().await;
    play.server.world().refused = Some(("MachineDeployment".to_owned(), "a".to_owned()));
    play.edit_host(2);
    for _ in 0..20 {
        play.look().await;
        play.server.provide();
    }
    let (reason, message) = play.condition("a");
    assert_eq!(reason, "ReconcileFailed");
    assert!(message.contains("no more of these"), "{message}");
    assert_eq!(play.condition("b"), ready(), "it had begun");
    let (reason, message) = play.condition("c");
    assert_eq!(reason, "RolloutHeld");
    assert!(message.contains("Cluster ns/a of its class fails"), "{message}");
    play.server.edit(NS, "Cluster", "d", |cluster| {
        cluster["spec"]["topology"]["version"] = json!("v1.32.0");
    });
    for _ in 0..20 {
        play.look().await;
        play.server.provide();
    }
    assert_eq!(play.condition("d"), ready(), "its own edit does not wait");
    assert_eq!(play.condition("c").0, "RolloutHeld");
    play.server.world().refused = None;
    play.now += RETRY_MILLIS_MAX;
    assert_eq!(play.settle().await.settled, 4);
    assert_eq!(play.condition("c"), ready());
}

#[tokio::test]
async fn templates_come_back_under_other_names_and_only_content_rotates_them() {
    let mut play = Play::start(&["a"]);
    play.settle().await;
    let first = play.hosts("a");
    play.server.world().told.clear();
    play.edit_host(2);
    play.settle().await;
    let told = std::mem::take(&mut play.server.world().told);
    let of = |reason: &str| told.iter().filter(|told| told.reason == reason).count();
    assert_eq!(
        (of("TopologyCreate"), of("TopologyDelete")),
        (2, 2),
        "two take the place of two"
    );
    assert!(told.iter().any(|told| told.note.contains("in the place of")));
    let second = play.hosts("a");
    play.edit_host(1);
    play.settle().await;
    let third = play.hosts("a");
    for names in [&first, &second, &third] {
        assert_eq!(names.len(), 2, "one of the plane, one of its workers");
    }
    assert!(first != second && second != third && first != third);
    play.server.edit(NS, "HostTemplate", "host", |host| {
        host["metadata"]["labels"] = json!({"of": "template"});
    });
    play.settle().await;
    assert_eq!(play.hosts("a"), third, "a label is changed where it is");
}

#[tokio::test]
async fn a_server_that_keeps_another_text_than_it_was_told_rotates_nothing() {
    let mut play = Play::start(&["a"]);
    play.server.world().trims = true;
    play.server.edit(NS, "HostTemplate", "host", |host| {
        host["spec"]["template"]["spec"]["image"] = json!(" standard ");
    });
    play.settle().await;
    let (hosts, events) = (play.hosts("a"), play.engine.journal().ledger().clone());
    for _ in 0..5 {
        let count = play.look().await;
        assert_eq!((count.settled, count.writes), (1, 0));
    }
    assert_eq!(play.hosts("a"), hosts);
    assert_eq!(
        *play.engine.journal().ledger(),
        events,
        "nothing more is recorded"
    );
}

#[tokio::test]
async fn what_others_changed_is_put_right_and_what_they_made_is_left_alone() {
    let mut play = Play::start(&["a"]);
    play.settle().await;
    let name = |play: &Play, kind: &str| -> String {
        let world = play.server.world();
        let mut all = world
            .objects
            .keys()
            .filter(|(_, of, name)| of == kind && name.starts_with('a'));
        all.next().expect("one").2.clone()
    };
    let deployment = name(&play, "MachineDeployment");
    play.server.edit(NS, "MachineDeployment", &deployment, |one| {
        one["spec"]["replicas"] = json!(9)
    });
    play.settle().await;
    let key = (NS.to_owned(), "MachineDeployment".to_owned(), deployment);
    assert_eq!(play.server.world().objects[&key]["spec"]["replicas"], 2);

    let cloud = name(&play, "Cloud");
    let mut foreign = Play::start(&["a"]);
    foreign.server.put(&json!({
        "apiVersion": "p.x/v1beta2", "kind": "Cloud", "metadata": {"name": cloud, "namespace": NS}, "spec": {},
    }));
    let count = foreign.look().await;
    assert_eq!((count.failing, count.writes), (1, 0));
    let (reason, message) = foreign.condition("a");
    assert_eq!(reason, "ReconcileFailed");
    assert!(message.contains("does not belong to the Cluster"), "{message}");
}

#[tokio::test]
async fn beside_another_controller_nothing_is_written() {
    let mut play = Play::start(&["a"]);
    play.server.world().signs.leases = vec![UpstreamLease {
        namespace: "capi-system".to_owned(),
        held: true,
        renewed: play.now,
        lasts: 15_000,
    }];
    for _ in 0..2 {
        play.now += 1_000;
        let looked = play.engine.look(UnixMillis(play.now)).await.expect("a look");
        assert!(matches!(looked, Looked::FellBack(why) if why.contains("Lease capi-system/")));
        play.server.world().signs.leases.clear();
    }
    assert_eq!(play.server.world().writes, 0, "it stays so until the next start");
    play.restart(None);
    assert_eq!(play.settle().await.settled, 1);
}

#[tokio::test]
async fn clusters_that_rest_are_left_alone() {
    let mut play = Play::start(&["a", "b", "c", "d"]);
    let edit = |name: &str, edit: fn(&mut Value)| play.server.edit(NS, "Cluster", name, edit);
    edit("a", |one| one["spec"]["paused"] = json!(true));
    edit("b", |one| {
        one["metadata"]["annotations"] = json!({"topology.tributary.dev/mode": "observe"})
    });
    edit("c", |one| {
        one["metadata"]["managedFields"] = json!([{"manager": "capi-topology"}])
    });
    edit("d", |one| {
        one["metadata"]["deletionTimestamp"] = json!("2026-11-27T00:00:00Z")
    });
    let count = play.look().await;
    assert_eq!((count.resting, count.writes), (4, 0));
    let reasons = ["a", "b", "c", "d"].map(|name| play.condition(name).0);
    assert_eq!(reasons, ["Paused", "", "", "Deleting"]);
}

#[tokio::test]
async fn a_cluster_that_is_wrong_says_so_and_the_others_go_on() {
    let mut play = Play::start(&["a", "b"]);
    play.server.edit(NS, "Cluster", "a", |one| {
        one["spec"]["topology"]["classRef"]["name"] = json!("none")
    });
    let count = play.settle().await;
    assert_eq!((count.settled, count.failing), (1, 1));
    let (reason, message) = play.condition("a");
    assert_eq!(reason, "ReconcileFailed");
    assert!(message.contains("class-exists"), "{message}");
}

#[tokio::test]
async fn clusters_that_are_gone_are_forgotten_and_another_of_the_name_begins_anew() {
    let mut play = Play::start(&["a"]);
    play.settle().await;
    play.server
        .world()
        .objects
        .retain(|(_, _, name), _| !name.starts_with('a'));
    play.look().await;
    assert_eq!(play.engine.journal().ledger().clusters().count(), 0);
    let mut again = cluster("a");
    again["metadata"]["uid"] = json!("uid-of-another");
    play.server.put(&again);
    assert_eq!(play.settle().await.settled, 1);
}

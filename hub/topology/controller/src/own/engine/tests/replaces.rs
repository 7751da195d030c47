//! Tests that only a change confirmed by the server replaces machines.

use super::*;
use crate::own::rules::ledger::{ROTATION_MILLIS, ROTATIONS_PER_PLACE_AND_HOUR};

fn faults() -> [Failed; 4] {
    let refused = |why: &str| Failed::Refused(why.to_owned());
    [
        refused("hosttemplates is forbidden: no right to patch (HTTP 403)"),
        refused("spec.template.spec.size: must be at most 4 (HTTP 422)"),
        refused("failed calling webhook: connection refused (HTTP 500)"),
        Failed::Unknown("the API server does not answer within 20 s".to_owned()),
    ]
}

#[tokio::test]
async fn a_dry_run_that_fails_leaves_the_cluster_as_it_is_and_says_why() {
    for fault in faults() {
        let mut play = Play::start(&["a"]);
        play.settle().await;
        let before = play.tree();
        play.server.world().dry = Some(fault.clone());
        play.edit_host(2);
        let edited = play.tree();
        for _ in 0..10 {
            let count = play.look().await;
            assert_eq!((count.failing, count.writes), (1, 0), "{fault:?}");
            let (reason, message) = play.condition("a");
            assert_eq!(reason, "ReconcileFailed", "{fault:?}");
            assert!(message.contains(&fault.clone().why()), "{message}");
        }
        assert_eq!(play.tree(), edited, "{fault:?}");
        play.edit_host(1);
        assert_eq!(play.tree(), before);
        play.edit_host(2);
        play.server.world().dry = None;
        play.now += RETRY_MILLIS_MAX;
        assert_eq!(play.settle().await.settled, 1);
        assert_eq!(
            play.server.world().rotations,
            2,
            "of the plane and of its workers"
        );
    }
}

#[tokio::test]
async fn a_restart_while_dry_runs_fail_rotates_nothing() {
    let mut play = Play::start(&["a"]);
    play.server.world().trims = true;
    play.server.edit(NS, "HostTemplate", "host", |host| {
        host["spec"]["template"]["spec"]["image"] = json!(" standard ");
    });
    play.settle().await;
    let before = play.hosts("a");
    for fault in faults() {
        play.restart(None);
        play.server.world().dry = Some(fault);
        for _ in 0..10 {
            assert_eq!(play.look().await.writes, 0);
        }
        assert_eq!(play.hosts("a"), before);
    }
}

#[tokio::test]
async fn a_template_that_may_not_change_is_rotated_once_for_a_content() {
    let mut play = Play::start(&["a"]);
    play.server.world().immutable = true;
    play.settle().await;
    play.edit_host(2);
    assert_eq!(play.settle().await.settled, 1, "an edit is carried out");
    assert_eq!(play.server.world().rotations, 2);
    // From now on the server keeps a text different from the one written, also of existing objects.
    let hosts = play.hosts("a");
    for host in &hosts {
        play.server.edit(NS, "HostTemplate", host, |host| {
            host["spec"]["template"]["spec"]["size"] = json!(3);
        });
    }
    for _ in 0..10 {
        let count = play.look().await;
        assert_eq!((count.failing, count.writes), (1, 0));
    }
    let (reason, message) = play.condition("a");
    assert_eq!(reason, "ReconcileFailed");
    assert!(
        message.contains("was made with exactly this content"),
        "{message}"
    );
    assert_eq!(play.hosts("a"), hosts);
    play.edit_host(4);
    play.now += RETRY_MILLIS_MAX;
    assert_eq!(
        play.settle().await.settled,
        1,
        "another content is another matter"
    );
    assert_eq!(play.server.world().rotations, 4);
}

#[tokio::test]
async fn templates_of_one_place_are_rotated_so_often_within_an_hour_and_no_more() {
    let mut play = Play::start(&["a"]);
    play.settle().await;
    let began = play.now;
    for size in 0..ROTATIONS_PER_PLACE_AND_HOUR as i64 {
        play.edit_host(size + 2);
        assert_eq!(play.settle().await.settled, 1);
    }
    assert!(
        play.now - began < ROTATION_MILLIS,
        "it took {} ms",
        play.now - began
    );
    let rotations = play.server.world().rotations;
    assert_eq!(rotations, 2 * ROTATIONS_PER_PLACE_AND_HOUR);
    play.restart(None);
    play.edit_host(100);
    for _ in 0..5 {
        assert_eq!(play.look().await.writes, 0);
    }
    let (reason, message) = play.condition("a");
    assert_eq!(reason, "ReconcileFailed");
    assert!(message.contains("within an hour, the most that may"), "{message}");
    play.now = began + 2 * ROTATION_MILLIS;
    assert_eq!(play.settle().await.settled, 1);
    assert_eq!(play.server.world().rotations, rotations + 2);
}

#[tokio::test]
async fn a_bootstrap_template_of_another_kind_counts_as_a_rotation() {
    let mut play = Play::start(&["a"]);
    put_kind(&play, "StartTemplate", "boot");
    assert_eq!(play.settle().await.settled, 1);
    let flip = |play: &Play, at: usize| {
        let kind = ["StartTemplate", "BootTemplate"][at % 2];
        play.server.edit(NS, "ClusterClass", "standard", |class| {
            let worker = &mut class["spec"]["workers"]["machineDeployments"][0];
            worker["bootstrap"]["templateRef"]["kind"] = json!(kind);
        });
    };
    for at in 0..ROTATIONS_PER_PLACE_AND_HOUR {
        flip(&play, at);
        assert_eq!(play.settle().await.settled, 1, "{at}");
    }
    flip(&play, ROTATIONS_PER_PLACE_AND_HOUR);
    for _ in 0..5 {
        assert_eq!(play.look().await.writes, 0);
    }
    let (reason, message) = play.condition("a");
    assert_eq!(reason, "ReconcileFailed");
    assert!(message.contains("within an hour, the most that may"), "{message}");
}

/// A class beside the one of the estate, with other templates.
fn put_kind(play: &Play, kind: &str, name: &str) {
    play.server.put(&json!({
        "apiVersion": "p.x/v1beta2", "kind": kind, "metadata": {"name": name, "namespace": NS},
        "spec": {"template": {"spec": {}}},
    }));
}

/// An edit of the `spec` of a class.
type Edit = fn(&mut Value);

#[tokio::test]
async fn group_and_kind_of_infrastructure_and_control_plane_and_machines_stay() {
    let edits: [(&str, &str, Edit); 4] = [
        ("SkyTemplate", "spec.infrastructureRef", |spec| {
            spec["infrastructure"]["templateRef"] =
                json!({"apiVersion": "p.x/v1beta2", "kind": "SkyTemplate", "name": "other"});
        }),
        ("BridgeTemplate", "spec.controlPlaneRef", |spec| {
            spec["controlPlane"]["templateRef"] =
                json!({"apiVersion": "p.x/v1beta2", "kind": "BridgeTemplate", "name": "other"});
        }),
        ("MetalTemplate", "spec.topology.controlPlane", |spec| {
            spec["controlPlane"]["machineInfrastructure"]["templateRef"] =
                json!({"apiVersion": "p.x/v1beta2", "kind": "MetalTemplate", "name": "other"});
        }),
        (
            "MetalTemplate",
            "spec.topology.workers.machineDeployments[0]",
            |spec| {
                spec["workers"]["machineDeployments"][0]["infrastructure"]["templateRef"] =
                    json!({"apiVersion": "p.x/v1beta2", "kind": "MetalTemplate", "name": "other"});
            },
        ),
    ];
    for (kind, field, edit) in edits {
        let mut play = Play::start(&["a"]);
        play.settle().await;
        put_kind(&play, kind, "other");
        play.server
            .edit(NS, "ClusterClass", "standard", |class| edit(&mut class["spec"]));
        let before = play.tree();
        for _ in 0..5 {
            let count = play.look().await;
            assert_eq!((count.failing, count.writes), (1, 0), "{kind}");
        }
        let (reason, message) = play.condition("a");
        assert_eq!(reason, "ReconcileFailed", "{kind}");
        assert!(
            message.contains("kind-kept") && message.contains(field),
            "{message}"
        );
        assert_eq!(play.tree(), before, "{kind}");
    }
}

#[tokio::test]
async fn a_class_that_cannot_be_read_stops_its_own_clusters_and_no_others() {
    let mut play = Play::start(&["a"]);
    let mut class = play.server.world().objects
        [&(NS.to_owned(), "ClusterClass".to_owned(), "standard".to_owned())]
        .clone();
    class["metadata"] = json!({"name": "tenant", "namespace": NS});
    class["spec"]["infrastructure"]["templateRef"] =
        json!({"apiVersion": "aws.x/v1", "kind": "AwsTemplate", "name": "t"});
    play.server.put(&class);
    let mut of_tenant = cluster("t");
    of_tenant["spec"]["topology"]["classRef"]["name"] = json!("tenant");
    play.server.put(&of_tenant);
    let kind = ("aws.x/v1".to_owned(), "AwsTemplate".to_owned());
    play.server
        .world()
        .unread
        .insert(kind, "the cluster serves no AwsTemplate".to_owned());
    let count = play.settle().await;
    assert_eq!((count.settled, count.failing), (1, 1));
    assert_eq!(play.condition("a"), ready());
    let (reason, message) = play.condition("t");
    assert_eq!(reason, "ClusterClassNotReconciled");
    assert!(message.contains("the cluster serves no AwsTemplate"), "{message}");
    // The infrastructure of a Cluster that is there cannot be read any more: it is not made a second time.
    let before = play.tree();
    let kind = ("p.x/v1beta2".to_owned(), "Cloud".to_owned());
    play.server
        .world()
        .unread
        .insert(kind, "forbidden (HTTP 403)".to_owned());
    assert_eq!(play.look().await.writes, 0);
    let (reason, message) = play.condition("a");
    assert_eq!(reason, "ReconcileFailed");
    assert!(message.contains("forbidden (HTTP 403)"), "{message}");
    assert_eq!(play.tree(), before);
}

/// Has the class take the size of hosts from a variable with this default.
pub(super) fn set_default(play: &Play, size: i64) {
    play.server.edit(NS, "ClusterClass", "standard", |class| {
        class["spec"]["variables"] =
            json!([{"name": "size", "schema": {"openAPIV3Schema": {"type": "integer", "default": size}}}]);
        class["spec"]["patches"] = json!([{"name": "size", "definitions": [{
            "selector": {
                "apiVersion": "p.x/v1beta2", "kind": "HostTemplate",
                "matchResources": {"controlPlane": true, "machineDeploymentClass": {"names": ["linux"]}},
            },
            "jsonPatches": [{"op": "replace", "path": "/spec/template/spec/size", "valueFrom": {"variable": "size"}}],
        }]}]);
    });
}

fn size_of(play: &Play, name: &str) -> Value {
    let world = play.server.world();
    let cluster = &world.objects[&(NS.to_owned(), "Cluster".to_owned(), name.to_owned())];
    cluster["spec"]["topology"]["variables"].clone()
}

#[tokio::test]
async fn a_default_is_written_into_the_cluster_and_another_one_replaces_nothing() {
    let mut play = Play::start(&["a"]);
    set_default(&play, 1);
    assert_eq!(play.settle().await.settled, 1);
    assert_eq!(size_of(&play, "a"), json!([{"name": "size", "value": 1}]));
    let hosts = play.hosts("a");
    set_default(&play, 2);
    play.server.put(&cluster("b"));
    assert_eq!(play.settle().await.settled, 2);
    assert_eq!(
        size_of(&play, "a"),
        json!([{"name": "size", "value": 1}]),
        "it stays"
    );
    assert_eq!(play.hosts("a"), hosts);
    assert_eq!(play.server.world().rotations, 0);
    assert_eq!(size_of(&play, "b"), json!([{"name": "size", "value": 2}]));
    play.restart(None);
    assert_eq!(play.look().await.writes, 0);
}

/// A Cluster `a` whose rollout fails, and `c` that waits for it.
pub(super) async fn held() -> Play {
    let mut play = Play::start(&["a", "b", "c"]);
    play.settle().await;
    play.server.world().refused = Some(("MachineDeployment".to_owned(), "a".to_owned()));
    play.edit_host(2);
    for _ in 0..20 {
        play.look().await;
        play.server.provide();
    }
    assert_eq!(play.condition("c").0, "RolloutHeld");
    play
}

#[tokio::test]
async fn a_held_cluster_leaves_its_wave_by_a_word_about_its_machines_alone() {
    let mut play = held().await;
    let hosts = play.hosts("c");
    let edits: [fn(&mut Value); 3] = [
        |topology| topology["workers"]["machineDeployments"][0]["replicas"] = json!(3),
        |topology| topology["controlPlane"]["metadata"] = json!({"labels": {"a": "b"}}),
        |topology| {
            let added = json!({"class": "linux", "name": "md-1", "replicas": 1});
            topology["workers"]["machineDeployments"]
                .as_array_mut()
                .expect("a list")
                .push(added);
        },
    ];
    for edit in edits {
        play.server.edit(NS, "Cluster", "c", |cluster| {
            edit(&mut cluster["spec"]["topology"])
        });
        for _ in 0..5 {
            play.look().await;
            play.server.provide();
        }
        assert_eq!(play.condition("c").0, "RolloutHeld");
        assert_eq!(play.hosts("c"), hosts);
    }
    // A default that its class gives it is not its owner's word.
    set_default(&play, 2);
    for _ in 0..5 {
        play.look().await;
        play.server.provide();
    }
    assert_eq!(size_of(&play, "c"), json!([{"name": "size", "value": 2}]));
    assert_eq!(play.condition("c").0, "RolloutHeld");
    play.server.edit(NS, "Cluster", "c", |cluster| {
        cluster["spec"]["topology"]["variables"][0]["value"] = json!(3);
    });
    for _ in 0..20 {
        play.look().await;
        play.server.provide();
    }
    assert_eq!(play.condition("c"), ready());
    assert_ne!(play.hosts("c"), hosts);
}

/// The next number of a sequence that looks like chance (xorshift).
fn next(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % below
}

#[tokio::test]
async fn whatever_happens_nothing_is_rotated_without_a_change_that_the_server_confirmed() {
    for seed in 1..=30_u64 {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut play = Play::start(&["a", "b"]);
        play.settle().await;
        for _ in 0..60 {
            match next(&mut random, 9) {
                0 => play.edit_host(next(&mut random, 3) as i64),
                1 => {
                    let image = [" standard", "standard ", "other"][next(&mut random, 3) as usize];
                    play.server.edit(NS, "HostTemplate", "host", |host| {
                        host["spec"]["template"]["spec"]["image"] = json!(image);
                    });
                }
                2 => {
                    let fault = faults().get(next(&mut random, 5) as usize).cloned();
                    play.server.world().dry = fault;
                }
                3 => play.server.world().immutable = next(&mut random, 2) == 0,
                4 => play.server.world().trims = next(&mut random, 2) == 0,
                5 => play.restart(None),
                6 => play.now += next(&mut random, RETRY_MILLIS_MAX),
                7 => {
                    play.server.provide();
                }
                _ => {
                    play.look().await;
                }
            }
            play.laws();
        }
    }
}

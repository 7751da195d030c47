//! Machine pools: made, changed where they are, rolled out in waves, and deleted with what they refer to.

use super::*;

/// A class of Clusters with a pool each.
fn with_pools(clusters: &[&str]) -> Play {
    let play = Play::start(clusters);
    play.server.edit(NS, "ClusterClass", "standard", |class| {
        let of = |kind: &str, name: &str| json!({"templateRef": {"apiVersion": "p.x/v1beta2", "kind": kind, "name": name}});
        class["spec"]["workers"]["machinePools"] = json!([{
            "class": "spot", "bootstrap": of("BootTemplate", "boot"), "infrastructure": of("ScaleSetTemplate", "set"),
        }]);
    });
    play.server.put(&json!({
        "apiVersion": "p.x/v1beta2", "kind": "ScaleSetTemplate", "metadata": {"name": "set", "namespace": NS},
        "spec": {"template": {"spec": {"size": 1}}},
    }));
    for cluster in clusters {
        play.server.edit(NS, "Cluster", cluster, |cluster| {
            cluster["spec"]["topology"]["workers"]["machinePools"] =
                json!([{"class": "spot", "name": "mp-0", "replicas": 3}]);
        });
    }
    play
}

fn edit_set(play: &Play, size: i64) {
    play.server.edit(NS, "ScaleSetTemplate", "set", |set| {
        set["spec"]["template"]["spec"]["size"] = json!(size);
    });
}

/// Names and contents of the objects of a kind that a Cluster has.
fn objects(play: &Play, kind: &str, cluster: &str) -> Vec<(String, Value)> {
    let world = play.server.world();
    let prefix = format!("{cluster}-");
    let of_cluster = world.objects.iter().filter(|((_, of, name), object)| {
        of == kind && name.starts_with(&prefix) && !object["metadata"]["labels"].is_null()
    });
    of_cluster
        .map(|((.., name), object)| (name.clone(), object["spec"].clone()))
        .collect()
}

#[tokio::test]
async fn a_pool_is_made_with_what_it_refers_to_and_changed_where_it_is() {
    let mut play = with_pools(&["a"]);
    assert_eq!(play.settle().await.settled, 1);
    assert_eq!(play.condition("a"), ready());
    let pools = objects(&play, "MachinePool", "a");
    let sets = objects(&play, "ScaleSet", "a");
    assert_eq!(
        (pools.len(), sets.len(), objects(&play, "Boot", "a").len()),
        (1, 1, 1)
    );
    assert_eq!(sets[0].1["size"], 1);
    assert_eq!(
        pools[0].1["template"]["spec"]["infrastructureRef"]["name"],
        sets[0].0
    );
    let rotations = play.server.world().rotations;
    edit_set(&play, 2);
    play.settle().await;
    let after = objects(&play, "ScaleSet", "a");
    assert_eq!(
        (after[0].0.as_str(), &after[0].1["size"]),
        (sets[0].0.as_str(), &json!(2))
    );
    assert_eq!(objects(&play, "MachinePool", "a"), pools);
    assert_eq!(
        play.server.world().rotations,
        rotations,
        "no template gives its place"
    );
    play.restart(None);
    assert_eq!(play.look().await.writes, 0);
}

#[tokio::test]
async fn pools_are_replaced_in_waves_and_a_failing_one_holds_the_others() {
    let mut play = with_pools(&["a", "b", "c", "d"]);
    play.settle().await;
    play.server.world().refused = Some(("ScaleSet".to_owned(), "a".to_owned()));
    edit_set(&play, 2);
    for _ in 0..20 {
        play.look().await;
        play.server.provide();
        assert!(play.in_flight() <= WAVES.at_once);
    }
    assert_eq!(play.condition("a").0, "ReconcileFailed");
    assert_eq!(play.condition("b"), ready(), "it had begun");
    assert_eq!(play.condition("d").0, "RolloutHeld");
    assert_eq!(objects(&play, "ScaleSet", "d")[0].1["size"], 1);
    play.server.world().refused = None;
    play.now += RETRY_MILLIS_MAX;
    assert_eq!(play.settle().await.settled, 4);
    assert_eq!(objects(&play, "ScaleSet", "d")[0].1["size"], 2);
}

#[tokio::test]
async fn an_upgrade_reaches_a_pool_after_the_plane_and_says_so() {
    let mut play = with_pools(&["a"]);
    play.settle().await;
    play.server.edit(NS, "Cluster", "a", |cluster| {
        cluster["spec"]["topology"]["version"] = json!("v1.32.0");
    });
    play.look().await;
    let version = |play: &Play| {
        let pool = objects(play, "MachinePool", "a").remove(0).1;
        pool["template"]["spec"]["version"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(version(&play), "v1.31.0");
    let (reason, message) = play.condition("a");
    assert_eq!(reason, "ClusterUpgrading");
    assert!(
        message.contains("MachinePool mp-0 pending upgrade to version v1.32.0"),
        "{message}"
    );
    play.settle().await;
    assert_eq!(
        (version(&play).as_str(), play.condition("a")),
        ("v1.32.0", ready())
    );
}

#[tokio::test]
async fn a_pool_that_the_topology_drops_goes_with_its_objects_alone() {
    let mut play = with_pools(&["a"]);
    play.settle().await;
    play.server.edit(NS, "Cluster", "a", |cluster| {
        cluster["spec"]["topology"]["workers"]["machinePools"] = json!([]);
    });
    play.settle().await;
    for kind in ["MachinePool", "ScaleSet", "Boot"] {
        assert_eq!(objects(&play, kind, "a"), [], "{kind}");
    }
    assert_eq!(objects(&play, "MachineDeployment", "a").len(), 1);
    assert_eq!(play.condition("a"), ready());
}

#[tokio::test]
async fn a_process_that_ends_at_any_write_makes_no_pool_twice() {
    let story = async |play: &mut Play| {
        play.settle().await;
        edit_set(play, 2);
        play.settle().await;
    };
    let mut whole = with_pools(&["a"]);
    story(&mut whole).await;
    let (tree, writes) = (whole.tree(), whole.server.world().writes);
    for at in 0..writes {
        for carried_out in [false, true] {
            let mut play = with_pools(&["a"]);
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
async fn pools_that_cannot_be_read_stop_the_clusters_that_use_them() {
    let mut play = with_pools(&["a"]);
    play.settle().await;
    let pools = ("cluster.x-k8s.io/v1beta2".to_owned(), "MachinePool".to_owned());
    play.server.world().unread.insert(pools, "forbidden".to_owned());
    edit_set(&play, 2);
    let before = play.tree();
    let count = play.look().await;
    assert_eq!((count.failing, count.writes), (1, 0));
    assert_eq!(play.tree(), before, "no second pool is made");
    let (reason, message) = play.condition("a");
    assert!(
        reason == "ReconcileFailed" && message.contains("forbidden"),
        "{reason}: {message}"
    );
}

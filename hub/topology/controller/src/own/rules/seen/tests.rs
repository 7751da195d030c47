//! Tests of reading Clusters' objects.

use serde_json::json;

use super::*;

fn deployment(status: Value) -> Value {
    json!({"spec": {"replicas": 2}, "metadata": {"generation": 3}, "status": status})
}

#[test]
fn machines_are_on_their_way_until_all_are_there_and_no_more() {
    for (status, moving) in [
        (json!({}), false),
        (json!({"observedGeneration": 2}), true),
        (json!({"upToDateReplicas": 1, "readyReplicas": 2}), true),
        (json!({"updatedReplicas": 1, "readyReplicas": 2}), true),
        (json!({"upToDateReplicas": 2}), true),
        (
            json!({"upToDateReplicas": 2, "readyReplicas": 2, "replicas": 3}),
            true,
        ),
        (
            json!({"upToDateReplicas": 2, "readyReplicas": 2, "replicas": 2, "observedGeneration": 3}),
            false,
        ),
    ] {
        assert_eq!(moves(&deployment(status.clone())), moving, "{status}");
    }
    assert!(
        !moves(&json!({"status": {"upToDateReplicas": 0}})),
        "who does not say how many has none"
    );
}

#[test]
fn templates_of_the_cluster_that_nothing_refers_to_are_orphans() {
    let template = |name: &str, owner: &str| {
        json!({
            "apiVersion": "p.x/v1beta2", "kind": "HostTemplate",
            "metadata": {
                "name": name, "namespace": "ns",
                "labels": {"cluster.x-k8s.io/cluster-name": "c", "topology.cluster.x-k8s.io/owned": ""},
                "ownerReferences": [{"kind": "Cluster", "uid": owner}],
            },
        })
    };
    let set = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet",
        "metadata": {"name": "s", "namespace": "ns", "labels": {"cluster.x-k8s.io/cluster-name": "c"}},
        "spec": {"infrastructureRef": {"kind": "HostTemplate", "name": "used"}},
    });
    let all = [
        template("used", "u"),
        template("wanted", "u"),
        template("left", "u"),
        template("foreign", "v"),
        set,
    ];
    let cluster = ClusterName {
        namespace: "ns".to_owned(),
        name: "c".to_owned(),
    };
    let wanted = BTreeSet::from([ObjectName::of(&all[1])]);
    let found = orphans(&Objects::of(&all), &cluster, "u", &wanted);
    assert_eq!(found, [&all[2]]);
}

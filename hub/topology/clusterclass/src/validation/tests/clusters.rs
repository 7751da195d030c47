//! The rules of Clusters, and of what they become.

use serde_json::{Value, json};

use super::{AT_CLUSTERS, OF_CLUSTER, WORKER, class, cluster, of_cluster, one, taint, told, with, without};

#[test]
fn cluster_by_itself() {
    for (parent, name, good, bad, rule, field) in [
        (
            "/metadata",
            "name",
            json!("a-1.b"),
            json!("A"),
            "cluster-name",
            "metadata.name",
        ),
        (
            "/spec",
            "clusterNetwork",
            json!({"pods": {"cidrBlocks": ["10.0.0.0/8", "fd00::/8"]}}),
            json!({"pods": {"cidrBlocks": ["10.0.0.0"]}}),
            "network-blocks",
            "spec.clusterNetwork.pods.cidrBlocks[0]",
        ),
        (
            "/metadata/annotations",
            "topology.cluster.x-k8s.io/upgrade-concurrency",
            json!("2"),
            json!("0"),
            "upgrade-concurrency",
            "metadata.annotations[topology.cluster.x-k8s.io/upgrade-concurrency]",
        ),
        (
            "/spec/topology",
            "version",
            json!("1.30.2"),
            json!("v1.30"),
            "topology-version",
            "spec.topology.version",
        ),
        (
            "/spec/topology/classRef",
            "name",
            json!("mixed"),
            json!(""),
            "topology-class",
            "spec.topology.classRef.name",
        ),
        (
            "/spec/topology/classRef",
            "name",
            json!("mixed"),
            json!("other"),
            "class-exists",
            "spec.topology.classRef.name",
        ),
    ] {
        assert_eq!(of_cluster(parent, name, good), []);
        assert_eq!(of_cluster(parent, name, bad), one(rule, field));
    }
    let nothing = with(cluster(), "", "spec", json!({}));
    assert_eq!(told(&[&nothing], None), one("topology-or-references", "spec"));
}

#[test]
fn worker_name_and_class() {
    let worker = |class: &str, name: &str| json!({"class": class, "name": name});
    let at = "/spec/topology/workers/machineDeployments";
    assert_eq!(of_cluster(at, "1", worker("linux", "small")), []);
    for bad in ["", "big", "-a", "x".repeat(64).as_str()] {
        let field = "spec.topology.workers.machineDeployments[1].name";
        assert_eq!(
            of_cluster(at, "1", worker("linux", bad)),
            one("worker-name", field)
        );
    }
    let field = "spec.topology.workers.machineDeployments[1].class";
    assert_eq!(
        of_cluster(at, "1", worker("x", "small")),
        one("worker-class-exists", field)
    );
}

#[test]
fn names_and_classes_of_pools() {
    let reference = |kind: &str| json!({"templateRef": {"apiVersion": "i/v1", "kind": kind, "name": "t"}});
    let name = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
    let pool = json!({
        "class": "spot",
        "bootstrap": reference("BTemplate"),
        "infrastructure": reference("PTemplate"),
        "metadata": {"annotations": {name: "3"}},
        "naming": {"template": "{{ .cluster.name }}-{{ .machinePool.topologyName }}"},
    });
    let class = with(class(), "/spec/workers", "machinePools", json!([pool]));
    let of = |pools: Value| {
        let cluster = with(cluster(), "/spec/topology/workers", "machinePools", pools);
        told(&[&class, &cluster], None)
    };
    // Replicas beside an autoscaler are refused of machine deployments alone, as upstream does.
    let good = json!({"class": "spot", "name": "big", "replicas": 2});
    assert_eq!(
        of(json!([good])),
        [],
        "a machine deployment of this name is none of theirs"
    );
    let at = |field: &str| format!("spec.topology.workers.machinePools[0].{field}");
    assert_eq!(
        of(json!([{"class": "linux", "name": "p"}])),
        one("worker-class-exists", &at("class"))
    );
    assert_eq!(of(json!([{"class": "spot"}])), one("worker-name", &at("name")));
    let second = "spec.topology.workers.machinePools[1].name";
    assert_eq!(of(json!([good, good])), one("worker-name", second));
    let taint = json!({"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule", "propagation": "Always"});
    assert_eq!(
        of(json!([{"class": "spot", "name": "p", "taints": [taint]}])),
        one("taints", &at("taints[0].key"))
    );
    let undefined = json!({"overrides": [{"name": "nothing", "value": 1}]});
    let told = of(json!([{"class": "spot", "name": "p", "variables": undefined}]));
    assert_eq!(
        told.iter().map(|one| one.0).collect::<Vec<_>>(),
        ["variable-defined"]
    );
}

#[test]
fn autoscaler_replicas() {
    let name = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size";
    let scaled = with(
        cluster(),
        OF_CLUSTER,
        "metadata",
        json!({"annotations": {name: "3"}}),
    );
    assert_eq!(told(&[&class(), &scaled], None), []);
    let both = with(scaled, OF_CLUSTER, "replicas", json!(3));
    let field = format!("{AT_CLUSTERS}.replicas");
    assert_eq!(told(&[&class(), &both], None), one("autoscaler-replicas", &field));
    let of_class = with(class(), WORKER, "metadata", json!({"annotations": {name: "3"}}));
    let said = with(cluster(), OF_CLUSTER, "replicas", json!(3));
    assert_eq!(
        told(&[&of_class, &said], None),
        one("autoscaler-replicas", &field)
    );
}

#[test]
fn topology_rollout() {
    let rolling =
        |surge: i64| json!({"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": 0}}});
    assert_eq!(of_cluster(OF_CLUSTER, "rollout", rolling(1)), []);
    let field = format!("{AT_CLUSTERS}.rollout.strategy");
    assert_eq!(
        of_cluster(OF_CLUSTER, "rollout", rolling(0)),
        one("rollout-strategy", &field)
    );
}

#[test]
fn topology_taints() {
    const KEY: &str = "node-role.kubernetes.io/control-plane";
    let plane = |taints: Value| {
        told(
            &[
                &class(),
                &with(cluster(), "/spec/topology/controlPlane", "taints", taints),
            ],
            None,
        )
    };
    assert_eq!(plane(json!([taint(KEY)])), []);
    let field = "spec.topology.controlPlane.taints[0].key";
    assert_eq!(
        plane(json!([taint("node.kubernetes.io/a")])),
        one("taints", field)
    );
    assert_eq!(of_cluster(OF_CLUSTER, "taints", json!([taint("a")])), []);
    let field = format!("{AT_CLUSTERS}.taints[0].key");
    assert_eq!(
        of_cluster(OF_CLUSTER, "taints", json!([taint(KEY)])),
        one("taints", &field)
    );
}

#[test]
fn health_check_override() {
    const RULE: &str = "health-check-override";
    let at = format!("{AT_CLUSTERS}.healthCheck");
    let defined = json!({"enabled": true, "checks": {"nodeStartupTimeoutSeconds": 60}});
    assert_eq!(of_cluster(OF_CLUSTER, "healthCheck", defined), []);
    assert_eq!(
        of_cluster(OF_CLUSTER, "healthCheck", json!({"enabled": true})),
        one(RULE, &at)
    );
    let short = json!({"checks": {"nodeStartupTimeoutSeconds": 1}});
    let field = format!("{at}.checks.nodeStartupTimeoutSeconds");
    assert_eq!(of_cluster(OF_CLUSTER, "healthCheck", short), one(RULE, &field));
    let plane = |check: Value| with(cluster(), "/spec/topology/controlPlane", "healthCheck", check);
    assert_eq!(told(&[&class(), &plane(json!({"enabled": true}))], None), []);
    let watched = without(class(), "/spec/controlPlane", "healthCheck");
    let bare = without(watched, "/spec/controlPlane", "machineInfrastructure");
    let field = "spec.topology.controlPlane.healthCheck";
    let checked = plane(json!({"checks": {"nodeStartupTimeoutSeconds": 60}}));
    assert_eq!(told(&[&bare, &checked], None), one(RULE, field));
    assert_eq!(told(&[&bare, &plane(json!({"enabled": false}))], None), []);
}

#[test]
fn variable_values() {
    let at = "/spec/topology/variables";
    assert_eq!(of_cluster(at, "1", json!({"name": "size", "value": 2})), []);
    let told_of = of_cluster(at, "1", json!({"name": "size", "value": "2"}));
    assert_eq!(told_of, one("variable-value", "spec.topology.variables[1].value"));
    let overrides = json!({"overrides": [{"name": "region", "value": "0123456789"}]});
    let told_of = of_cluster("/spec/topology/controlPlane", "variables", overrides.clone());
    let field = "spec.topology.controlPlane.variables.overrides[0].value";
    assert_eq!(told_of, one("variable-value", field));
    let field = format!("{AT_CLUSTERS}.variables.overrides[0].value");
    assert_eq!(
        of_cluster(OF_CLUSTER, "variables", overrides),
        one("variable-value", &field)
    );
    let bare = without(class(), "/spec/variables/1/schema/openAPIV3Schema", "default");
    let told_of = told(&[&bare, &cluster()], None);
    assert_eq!(told_of, one("variable-required", "spec.topology.variables"));
}

/// Findings about the change of a cluster.
fn became(old: &Value, new: &Value) -> Vec<(&'static str, String)> {
    told(&[&class(), new], Some(&[&class(), old]))
}

#[test]
fn variable_change() {
    let rule = json!([{"rule": "self == oldSelf || self.size() > oldSelf.size()", "message": "only grows"}]);
    let at = "/spec/variables/0/schema/openAPIV3Schema";
    let grows = with(class(), at, "x-kubernetes-validations", rule);
    let said = |region: &str, parent: &str, field: &str| {
        let said = json!([{"name": "region", "value": region}]);
        let said = if field == "overrides" {
            said
        } else {
            json!({"overrides": said})
        };
        with(cluster(), parent, field, said)
    };
    let became_so = |old: &Value, new: &Value| told(&[&grows, new], Some(&[&grows, old]));
    for (parent, field) in [
        ("/spec/topology/controlPlane", "variables"),
        (OF_CLUSTER, "variables"),
    ] {
        let (short, long) = (said("a", parent, field), said("ab", parent, field));
        assert_eq!(became_so(&short, &long), []);
        assert_eq!(became_so(&cluster(), &short), []);
        let told = became_so(&long, &short);
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, "variable-change");
        assert!(told[0].1.ends_with("variables.overrides[0].value"), "{told:?}");
    }
    let whole = |region: &str| {
        let value = json!({"name": "region", "value": region});
        with(cluster(), "/spec/topology/variables", "0", value)
    };
    assert_eq!(became_so(&whole("a"), &whole("ab")), []);
    let field = "spec.topology.variables[0].value";
    assert_eq!(
        became_so(&whole("ab"), &whole("a")),
        one("variable-change", field)
    );
}

#[test]
fn references_and_topology_kept() {
    let referring = with(cluster(), "/spec", "infrastructureRef", json!({"name": "a"}));
    assert_eq!(became(&cluster(), &referring), []);
    assert_eq!(
        became(&referring, &cluster()),
        one("references-kept", "spec.infrastructureRef")
    );
    let plain = without(referring.clone(), "/spec", "topology");
    assert_eq!(became(&referring, &plain), one("topology-kept", "spec.topology"));
    assert_eq!(became(&plain, &referring), one("topology-kept", "spec.topology"));
    let name = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check";
    let allowed = with(referring, "/metadata/annotations", name, json!(""));
    assert_eq!(became(&plain, &allowed), []);
}

#[test]
fn version_change() {
    let at = |version: &str| with(cluster(), "/spec/topology", "version", json!(version));
    for good in ["v1.30.1", "v1.30.2", "v1.31.0", "v1.30.1+b"] {
        assert_eq!(became(&cluster(), &at(good)), [], "{good}");
    }
    for bad in ["v1.30.0", "v1.29.9", "v1.32.0", "v2.0.0", "v1.30.1-rc.1"] {
        assert_eq!(
            became(&cluster(), &at(bad)),
            one("version-change", "spec.topology.version"),
            "{bad}"
        );
    }
    let name = "unsafe.topology.cluster.x-k8s.io/disable-update-version-check";
    let allowed = with(at("v1.29.0"), "/metadata/annotations", name, json!(""));
    assert_eq!(became(&cluster(), &allowed), []);
    let versions = json!(["v1.30.1", "v1.31.0", "v1.32.0"]);
    let listing = with(class(), "/spec", "kubernetesVersions", versions);
    assert_eq!(
        told(&[&listing, &at("v1.32.0")], Some(&[&listing, &cluster()])),
        []
    );
}

#[test]
fn class_change() {
    let other = with(class(), "/metadata", "name", json!("other"));
    let moved = with(cluster(), "/spec/topology/classRef", "name", json!("other"));
    let changed = |other: &Value| told(&[&class(), other, &moved], Some(&[&class(), &cluster()]));
    assert_eq!(changed(&other), []);
    let foreign = with(
        other,
        "/spec/infrastructure/templateRef",
        "kind",
        json!("XTemplate"),
    );
    assert_eq!(
        changed(&foreign),
        one("class-change", "spec.topology.classRef.name")
    );
}

#[test]
fn one_bad_object_does_not_hide_the_others() {
    let circle = with(
        class(),
        "/spec/variables/0/schema/openAPIV3Schema",
        "$ref",
        json!("#"),
    );
    let wrong = with(cluster(), "/spec/topology", "version", json!("x"));
    assert_eq!(
        told(&[&circle, &wrong], None),
        [
            (
                "left-out",
                "spec.variables[0].schema.openAPIV3Schema.$ref".to_owned()
            ),
            ("topology-version", "spec.topology.version".to_owned())
        ]
    );
}

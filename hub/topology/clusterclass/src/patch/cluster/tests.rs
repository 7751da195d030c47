//! Tests of a Cluster's values for patches, in both spellings.

use super::*;
use crate::model::Estate;

fn a_class() -> Class {
    let document = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": "k"},
        "spec": {
            "controlPlane": {
                "templateRef": {"apiVersion": "cp.x/v1", "kind": "PlaneTemplate", "name": "plane"},
                "metadata": {"labels": {"from": "class", "kept": "class"}},
            },
            "workers": {"machineDeployments": [
                {"class": "linux", "metadata": {"annotations": {"from": "class"}}},
                {"class": "windows"},
            ]},
            "variables": [{"name": "image"}, {"name": "nodes"}],
        },
    });
    estate(&document).classes.into_values().next().expect("a class")
}

fn estate(document: &Value) -> Estate {
    let mut estate = Estate::default();
    estate.add_objects([("f.yaml", document)]);
    estate
}

fn read(document: &Value, class: &Class) -> Result<Cluster, String> {
    let cluster = estate(document).clusters.into_values().next().expect("a cluster");
    super::read(&cluster, class)
}

fn document() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {
            "name": "c",
            "namespace": "ns",
            "uid": "u",
            "labels": {"l": "1"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        },
        "spec": {
            "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/8"]}, "serviceDomain": "d"},
            "topology": {
                "classRef": {"name": "k"},
                "version": "v1.30.0",
                "controlPlane": {
                    "replicas": 3,
                    "metadata": {"labels": {"from": "topology"}},
                    "variables": {"overrides": [{"name": "image", "value": "plane"}]},
                },
                "workers": {"machineDeployments": [{
                    "class": "linux",
                    "name": "md-0",
                    "metadata": {"annotations": {"topology.cluster.x-k8s.io/defer-upgrade": ""}},
                    "variables": {"overrides": [{"name": "image", "value": "worker"}]},
                }]},
                "variables": [{"name": "image", "value": "all"}, {"name": "builtin", "value": 1}],
            },
        },
    })
}

#[test]
fn builtins_follow_from_the_cluster() {
    let cluster = read(&document(), &a_class()).expect("a cluster");
    assert_eq!(
        Value::Object(cluster.global),
        json!({
            "image": "all",
            "builtin": {"cluster": {
                "name": "c",
                "namespace": "ns",
                "uid": "u",
                "metadata": {"labels": {"l": "1"}},
                "network": {"pods": ["10.0.0.0/8"], "serviceDomain": "d"},
                "topology": {
                    "class": "k",
                    "classNamespace": "ns",
                    "classRef": {"name": "k", "namespace": "ns"},
                    "version": "v1.30.0",
                },
            }},
        })
    );
    assert_eq!(
        Value::Object(cluster.control_plane),
        json!({
            "image": "plane",
            "builtin": {"controlPlane": {
                "version": "v1.30.0",
                "replicas": 3,
                "metadata": {
                    "labels": {
                        "from": "topology",
                        "kept": "class",
                        "cluster.x-k8s.io/cluster-name": "c",
                        "topology.cluster.x-k8s.io/owned": "",
                    },
                    "annotations": {
                        "cluster.x-k8s.io/cloned-from-name": "plane",
                        "cluster.x-k8s.io/cloned-from-groupkind": "PlaneTemplate.cp.x",
                    },
                },
            }},
        })
    );
    let [(workers, variables)] = cluster.workers.as_slice() else {
        panic!("one machine deployment")
    };
    assert_eq!((workers.class.as_str(), workers.name.as_str()), ("linux", "md-0"));
    assert_eq!(
        Value::Object(variables.clone()),
        json!({
            "image": "worker",
            "builtin": {"machineDeployment": {
                "class": "linux",
                "topologyName": "md-0",
                "version": "v1.30.0",
                "metadata": {
                    "labels": {
                        "cluster.x-k8s.io/cluster-name": "c",
                        "topology.cluster.x-k8s.io/owned": "",
                        "topology.cluster.x-k8s.io/deployment-name": "md-0",
                    },
                    "annotations": {"from": "class"},
                },
            }},
        })
    );
}

#[test]
fn the_older_spelling_says_the_same() {
    let mut old = document();
    let topology = old["spec"]["topology"].as_object_mut().expect("an object");
    topology.remove("classRef");
    topology.insert("class".to_owned(), json!("k"));
    old["apiVersion"] = json!("cluster.x-k8s.io/v1beta1");
    assert_eq!(read(&old, &a_class()), read(&document(), &a_class()));
    old["spec"]["topology"]["classNamespace"] = json!("other");
    let cluster = read(&old, &a_class()).expect("a cluster");
    assert_eq!(
        cluster.global[BUILTIN]["cluster"]["topology"]["classRef"]["namespace"],
        json!("other")
    );
}

#[test]
fn without_a_namespace_it_is_the_default_one() {
    let mut document = document();
    document["metadata"]["namespace"] = Value::Null;
    let cluster = read(&document, &a_class()).expect("a cluster");
    let about = &cluster.global[BUILTIN]["cluster"];
    assert_eq!(
        (&about["namespace"], &about["topology"]["classRef"]["namespace"]),
        (&json!("default"), &json!("default"))
    );
}

#[test]
fn what_does_not_fit_the_class_is_told_with_its_field() {
    let changed = |place: &str, value: Value| {
        let mut document = document();
        *document.pointer_mut(place).expect("a place") = value;
        read(&document, &a_class()).expect_err("it does not fit")
    };
    for (place, value, why) in [
        ("/spec/topology", Value::Null, "no spec.topology"),
        ("/spec/topology/classRef/name", json!("other"), "class is other"),
        (
            "/spec/topology/variables/0/name",
            json!("imagee"),
            "spec.topology.variables[0]: the class defines no variable imagee",
        ),
        (
            "/spec/topology/variables/1/name",
            json!("image"),
            "variable image is there twice",
        ),
        (
            "/spec/topology/controlPlane/variables/overrides/0/name",
            json!("x"),
            "spec.topology.controlPlane.variables.overrides[0]",
        ),
        (
            "/spec/topology/workers/machineDeployments/0/class",
            json!("mac"),
            "machineDeployments[0].class: the class has no",
        ),
        (
            "/spec/topology/workers/machineDeployments/0/name",
            json!(""),
            "machineDeployments[0].name is missing",
        ),
        (
            "/spec/topology/workers",
            json!({"machinePools": [{}]}),
            "machinePools[0].class is missing",
        ),
    ] {
        let said = changed(place, value);
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_person_may_say_more() {
    let class = a_class();
    let given = json!({
        "image": "mine",
        "builtin": {
            "cluster": {"uid": "v"},
            "controlPlane": {"name": "c-x"},
            "machineDeployment": {"class": "other", "name": "md-x"},
        },
    });
    let given = given.as_object().expect("an object");
    let mut cluster = read(&document(), &class).expect("a cluster");
    cluster.give(given, &class).expect("variables of the class");
    assert_eq!(cluster.global["image"], json!("mine"));
    let builtin = &cluster.global[BUILTIN];
    assert_eq!(
        (&builtin["cluster"]["uid"], &builtin["cluster"]["name"]),
        (&json!("v"), &json!("c"))
    );
    assert_eq!(builtin.get("controlPlane"), None);
    assert_eq!(
        cluster.control_plane["image"],
        json!("plane"),
        "an override stays above it"
    );
    assert_eq!(
        cluster.control_plane[BUILTIN]["controlPlane"]["name"],
        json!("c-x")
    );
    let deployment = &cluster.workers[0].1[BUILTIN]["machineDeployment"];
    assert_eq!(
        (&deployment["class"], &deployment["name"]),
        (&json!("linux"), &json!("md-x"))
    );

    let mut alone = of_class(&class);
    alone.give(given, &class).expect("variables of the class");
    assert_eq!(
        alone.control_plane[BUILTIN]["controlPlane"],
        json!({"name": "c-x"})
    );
    let deployment = &alone.workers[1].1[BUILTIN]["machineDeployment"];
    assert_eq!(
        deployment,
        &json!({"class": "windows", "topologyName": "windows", "name": "md-x"})
    );
    let unknown = serde_json::Map::from_iter([("x".to_owned(), json!(1))]);
    assert!(alone.give(&unknown, &class).is_err());
}

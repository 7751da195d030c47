//! Owns: what people change of classes, templates and Clusters, an edit each.

use futures::{FutureExt, future::BoxFuture};
use hub::topology::patch::owned::{DEFER_UPGRADE, HOLD_UPGRADES};
use rand::{RngExt, rngs::StdRng};
use serde_json::{Value, json};

use super::world::{CLASS, ManagementCluster, OTHER_CLASS};

/// An edit.
pub(super) struct Edit {
    /// Its name.
    pub(super) name: &'static str,
    /// Makes it; it can be made again.
    pub(super) make:
        for<'w> fn(&'w ManagementCluster, &'w str, &'w mut StdRng) -> BoxFuture<'w, anyhow::Result<()>>,
}

/// Every edit.
pub(super) const EDITS: &[Edit] = &[
    Edit {
        name: "a variable",
        make: |world, namespace, draw| {
            let image = draw.random::<u32>().to_string();
            world
                .topology(namespace, move |topology| {
                    topology["variables"][0]["value"] = json!(image)
                })
                .boxed()
        },
    },
    Edit {
        name: "a variable that a condition asks for",
        make: |world, namespace, _| {
            let flip = |topology: &mut Value| {
                let value = &mut topology["variables"][2]["value"];
                *value = json!(*value != json!(true));
            };
            world.topology(namespace, flip).boxed()
        },
    },
    Edit {
        name: "an override of a machine deployment",
        make: |world, namespace, draw| {
            let image = draw.random::<u32>().to_string();
            let edit = move |topology: &mut Value| {
                let worker = &mut topology["workers"]["machineDeployments"][0];
                worker["variables"] = json!({"overrides": [{"name": "image", "value": image}]});
            };
            world.topology(namespace, edit).boxed()
        },
    },
    Edit {
        name: "the content of a template",
        make: |world, namespace, draw| {
            let size = draw.random::<u16>();
            let edit = move |one: &mut Value| one["spec"]["template"]["spec"]["size"] = json!(size);
            world.edit(namespace, ("HostTemplate", "host"), edit).boxed()
        },
    },
    Edit {
        name: "a label of a template",
        make: |world, namespace, draw| {
            let label = draw.random::<u32>().to_string();
            let edit = move |one: &mut Value| one["metadata"]["labels"]["of"] = json!(label);
            world.edit(namespace, ("HostTemplate", "host"), edit).boxed()
        },
    },
    Edit {
        name: "a field of the control plane's template",
        make: |world, namespace, draw| {
            let flags = json!({draw.random_range(0..4_u8).to_string(): draw.random::<u32>().to_string()});
            let edit = move |one: &mut Value| one["spec"]["template"]["spec"]["flags"] = flags.clone();
            world.edit(namespace, ("PlaneTemplate", "plane"), edit).boxed()
        },
    },
    Edit {
        name: "a field of the infrastructure's template",
        make: |world, namespace, draw| {
            let region = draw.random::<u32>().to_string();
            let edit = move |one: &mut Value| one["spec"]["template"]["spec"]["region"] = json!(region);
            world.edit(namespace, ("CloudTemplate", "cloud"), edit).boxed()
        },
    },
    Edit {
        name: "labels of the class and the topology",
        make: |world, namespace, draw| {
            let label = draw.random::<u32>().to_string();
            async move {
                let edit = |topology: &mut Value| {
                    topology["controlPlane"]["metadata"] = json!({"labels": {"tier": label}});
                    topology["workers"]["machineDeployments"][0]["metadata"] =
                        json!({"annotations": {"note": label}});
                };
                world.topology(namespace, edit).await
            }
            .boxed()
        },
    },
    Edit {
        name: "replicas",
        make: |world, namespace, draw| {
            let replicas = draw.random_range(1..9_u8);
            world
                .topology(namespace, move |topology| {
                    topology["controlPlane"]["replicas"] = json!(replicas)
                })
                .boxed()
        },
    },
    Edit {
        name: "a health check that comes and goes",
        make: |world, namespace, _| {
            let flip = |topology: &mut Value| {
                let check = &mut topology["controlPlane"]["healthCheck"];
                *check = match check {
                    Value::Null => json!({"enabled": false}),
                    _ => json!(null),
                };
                let worker = &mut topology["workers"]["machineDeployments"][0]["healthCheck"];
                *worker = match worker {
                    Value::Null => json!({"enabled": true, "checks": {"nodeStartupTimeoutSeconds": 120}}),
                    _ => json!(null),
                };
            };
            world.topology(namespace, flip).boxed()
        },
    },
    Edit {
        name: "time limits, the order of deletion and the rollout",
        make: |world, namespace, draw| {
            let seconds = draw.random_range(1..30_000_u16);
            let edit = move |topology: &mut Value| {
                topology["controlPlane"]["deletion"] = json!({"nodeDeletionTimeoutSeconds": seconds});
                let worker = &mut topology["workers"]["machineDeployments"][0];
                worker["deletion"] = json!({"nodeDrainTimeoutSeconds": seconds, "order": "Newest"});
                worker["rollout"] =
                    json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": seconds}}});
                worker["failureDomain"] = json!(format!("fd-{seconds}"));
            };
            world.topology(namespace, edit).boxed()
        },
    },
    Edit {
        name: "a machine deployment comes or goes",
        make: |world, namespace, _| {
            let edit = |topology: &mut Value| {
                let workers = topology["workers"]["machineDeployments"].as_array_mut();
                let workers = workers.expect("machine deployments");
                match workers.iter().position(|one| one["name"] == "md-2") {
                    Some(at) => drop(workers.remove(at)),
                    None => workers.push(json!({"class": "linux", "name": "md-2", "replicas": 0})),
                }
            };
            world.topology(namespace, edit).boxed()
        },
    },
    Edit {
        name: "a machine pool comes or goes",
        make: |world, namespace, _| {
            let edit = |topology: &mut Value| {
                let pools = &mut topology["workers"]["machinePools"];
                let mut all = pools.as_array().cloned().unwrap_or_default();
                match all.iter().position(|one| one["name"] == "mp-1") {
                    Some(at) => drop(all.remove(at)),
                    None => all.push(json!({"class": "spot", "name": "mp-1", "replicas": 0})),
                }
                *pools = json!(all);
            };
            world.topology(namespace, edit).boxed()
        },
    },
    Edit {
        name: "an override, labels, time limits and failure domains of a machine pool",
        make: |world, namespace, draw| {
            let seconds = draw.random_range(1..30_000_u16);
            let edit = move |topology: &mut Value| {
                let pool = &mut topology["workers"]["machinePools"][0];
                let image = json!({"name": "image", "value": seconds.to_string()});
                pool["variables"] = json!({"overrides": [image]});
                pool["metadata"] = json!({"labels": {"tier": seconds.to_string()}});
                pool["deletion"] = json!({"nodeDeletionTimeoutSeconds": seconds});
                pool["failureDomains"] = json!([format!("fd-{seconds}"), "fd-0"]);
                pool["minReadySeconds"] = json!(seconds);
            };
            world.topology(namespace, edit).boxed()
        },
    },
    Edit {
        name: "a patch of the class",
        make: |world, namespace, draw| {
            let size = draw.random::<u16>();
            async move {
                for class in [CLASS, OTHER_CLASS] {
                    let edit = |one: &mut Value| {
                        one["spec"]["patches"][1]["definitions"][0]["jsonPatches"][0]["value"] = json!(size);
                    };
                    world.edit(namespace, ("ClusterClass", class), edit).await?;
                }
                Ok(())
            }
            .boxed()
        },
    },
    Edit {
        name: "a later version",
        make: |world, namespace, _| {
            let edit = |topology: &mut Value| {
                let version = topology["version"].as_str().unwrap_or_default().to_owned();
                let minor = version
                    .split('.')
                    .nth(1)
                    .and_then(|minor| minor.parse::<u32>().ok());
                topology["version"] = json!(format!("v1.{}.0", minor.unwrap_or(0) + 1));
            };
            world.topology(namespace, edit).boxed()
        },
    },
    Edit {
        name: "a hold of upgrades that comes and goes",
        make: |world, namespace, draw| {
            let hold = [HOLD_UPGRADES, DEFER_UPGRADE][draw.random_range(0..2_usize)];
            let flip = move |topology: &mut Value| {
                let worker = &mut topology["workers"]["machineDeployments"][0];
                let annotations = &mut worker["metadata"]["annotations"];
                let is_held = [HOLD_UPGRADES, DEFER_UPGRADE]
                    .iter()
                    .any(|one| !annotations[one].is_null());
                *annotations = if is_held { json!({}) } else { json!({hold: ""}) };
            };
            world.topology(namespace, flip).boxed()
        },
    },
    Edit {
        name: "another class",
        make: |world, namespace, _| {
            let flip = |topology: &mut Value| {
                let other = if topology["classRef"]["name"] == OTHER_CLASS {
                    CLASS
                } else {
                    OTHER_CLASS
                };
                topology["classRef"] = json!({"name": other});
            };
            world.topology(namespace, flip).boxed()
        },
    },
];

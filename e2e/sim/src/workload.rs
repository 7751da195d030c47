//! The API server's own additions to a Deployment: the defaults of its spec and of the pods it would have. Nothing here
//! runs a pod: no status is ever written.

use serde_json::{Value, json};

use super::service::set_default;

/// The defaults that managers come to own when they create a Deployment.
pub(crate) fn default(deployment: &mut Value) {
    if !deployment["spec"].is_object() {
        deployment["spec"] = json!({});
    }
    let spec = &mut deployment["spec"];
    for (name, value) in [
        ("replicas", json!(1)),
        ("revisionHistoryLimit", json!(10)),
        ("progressDeadlineSeconds", json!(600)),
    ] {
        set_default(spec, name, value);
    }
    set_default(&mut spec["strategy"], "type", json!("RollingUpdate"));
    if spec["strategy"]["type"] == json!("RollingUpdate") {
        for name in ["maxSurge", "maxUnavailable"] {
            set_default(&mut spec["strategy"]["rollingUpdate"], name, json!("25%"));
        }
    }
    pod(&mut spec["template"]["spec"]);
    if deployment["status"].is_null() {
        deployment["status"] = json!({});
    }
}

fn pod(pod: &mut Value) {
    for (name, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
    ] {
        set_default(pod, name, value);
    }
    for list in ["initContainers", "containers"] {
        let Some(containers) = pod.get_mut(list).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers.iter_mut().filter(|container| container.is_object()) {
            let latest = is_latest(container["image"].as_str().unwrap_or_default());
            for (name, value) in [
                ("terminationMessagePath", json!("/dev/termination-log")),
                ("terminationMessagePolicy", json!("File")),
                (
                    "imagePullPolicy",
                    json!(if latest { "Always" } else { "IfNotPresent" }),
                ),
                ("resources", json!({})),
            ] {
                set_default(container, name, value);
            }
            for port in container
                .get_mut("ports")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
            {
                set_default(port, "protocol", json!("TCP"));
            }
        }
    }
}

/// Returns true if an image may change under its name.
fn is_latest(image: &str) -> bool {
    let last = image.rsplit('/').next().unwrap_or_default();
    !last.contains('@') && last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

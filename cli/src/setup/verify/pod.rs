//! The pod that looks from inside a cluster: what it may, what it left, and when it is left over. Pure.

use agent::probe::{Report, Request};
use anyhow::{Context, bail, ensure};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ContainerState, ContainerStateTerminated, Pod},
};
use serde_json::{Value, json};

use super::super::cluster::FIELD_MANAGER;

/// Marks the pods; its value is the run that made them.
pub(super) const LABEL_RUN: &str = "tributary.dev/verify";
/// The container.
const CONTAINER: &str = "probe";
/// A pod lives this much longer than it is waited for.
const LIFE_MARGIN_SECONDS: u64 = 15;
/// A run reads a pod that ended within this time; after it the pod is left over.
const READ_WITHIN_SECONDS: i64 = 60;

/// The settings that the pods of a cluster take from its agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Template {
    pub(super) image: String,
    /// `imagePullPolicy`, `imagePullSecrets`, `nodeSelector` and `tolerations` of the agent, where it has them.
    policy: Value,
    secrets: Value,
    selector: Value,
    tolerations: Value,
}

impl Template {
    /// As the agent's Deployment says; `None` if it has no container.
    pub(super) fn of(agent: &Deployment) -> Option<Self> {
        let spec = agent.spec.as_ref()?.template.spec.as_ref()?;
        let container = spec.containers.first()?;
        Some(Self {
            image: container.image.clone()?,
            policy: json!(container.image_pull_policy),
            secrets: json!(spec.image_pull_secrets),
            selector: json!(spec.node_selector),
            tolerations: json!(spec.tolerations),
        })
    }

    /// An image that the user named, which the agent's secrets are not for.
    pub(super) fn with_image(mut self, image: &str) -> Self {
        self.image = image.to_owned();
        self.policy = Value::Null;
        self
    }

    /// True if the image needs a Secret of the agent's namespace.
    pub(super) fn needs_secret(&self) -> bool {
        self.secrets.as_array().is_some_and(|secrets| !secrets.is_empty())
    }
}

/// A pod.
pub(super) fn pod(
    template: &Template,
    (name, run): (&str, &str),
    in_agents_namespace: bool,
    request: &Request,
    wait_seconds: u64,
) -> anyhow::Result<Pod> {
    let mut object = json!({
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/name": "tributary-verify",
                "app.kubernetes.io/managed-by": FIELD_MANAGER,
                LABEL_RUN: run,
            },
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": wait_seconds.saturating_add(LIFE_MARGIN_SECONDS),
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "nodeSelector": template.selector,
            "tolerations": template.tolerations,
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": CONTAINER,
                "image": template.image,
                "imagePullPolicy": template.policy,
                "command": ["/usr/local/bin/tributary-agent"],
                "args": ["probe", "--request", serde_json::to_string(request)?],
                // If the program does not know the command, the end of its log says so.
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "resources": {
                    "requests": {"cpu": "10m", "memory": "16Mi"},
                    "limits": {"cpu": "100m", "memory": "64Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": {"drop": ["ALL"]},
                },
            }],
        },
    });
    if in_agents_namespace {
        object["spec"]["imagePullSecrets"] = template.secrets.clone();
    }
    serde_json::from_value(object).context("cannot make a pod")
}

/// The report of a pod that ended; `None`: it has not.
///
/// # Errors
///
/// It ended without one.
pub(super) fn report(pod: &Pod) -> anyhow::Result<Option<Report>> {
    let status = pod.status.clone().unwrap_or_default();
    let Some(ended) = ended(pod) else {
        if status.phase.as_deref() == Some("Failed") {
            let why = status.message.or(status.reason);
            bail!(
                "the pod failed: {}",
                why.unwrap_or_else(|| "no reason is given".to_owned())
            );
        }
        return Ok(None);
    };
    let message = ended.message.clone().unwrap_or_default();
    let message = message.trim();
    ensure!(
        !message.contains("unrecognized subcommand"),
        "the image has an older agent, which has no probe"
    );
    let report = serde_json::from_str(message);
    let told = || match (message, &ended.reason) {
        ("", Some(reason)) => reason.clone(),
        (message, _) => message.to_owned(),
    };
    report
        .map(Some)
        .with_context(|| format!("the pod ended with code {}: {}", ended.exit_code, told()))
}

/// The end of its container.
fn ended(pod: &Pod) -> Option<&ContainerStateTerminated> {
    let containers = pod.status.as_ref()?.container_statuses.as_ref()?;
    let own = containers.iter().find(|container| container.name == CONTAINER)?;
    match own.state.as_ref()? {
        ContainerState {
            terminated: Some(ended),
            ..
        } => Some(ended),
        _ => None,
    }
}

/// True if a pod of another run is left over. `now` is the creation time of a pod that was just made there, in seconds:
/// the clocks of this machine and the cluster may differ.
pub(super) fn is_left_over(pod: &Pod, now: i64) -> bool {
    let made = pod
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|at| at.0.as_second());
    let life = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    let outlived = made
        .zip(life)
        .is_some_and(|(made, life)| made.saturating_add(life).saturating_add(READ_WITHIN_SECONDS) < now);
    let finished = ended(pod).and_then(|ended| ended.finished_at.as_ref());
    let unread = finished.is_some_and(|at| at.0.as_second().saturating_add(READ_WITHIN_SECONDS) < now);
    outlived || unread
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(state: &Value) -> Pod {
        let mut pod = pod(&Template::default(), ("p", "r"), false, &Request::default(), 60).expect("a pod");
        pod.status = serde_json::from_value(json!({
            "containerStatuses": [{
                "name": CONTAINER, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state,
            }],
        }))
        .expect("a status");
        pod
    }

    #[test]
    fn a_pod_takes_image_and_place_from_the_agent() {
        let agent: Deployment = serde_json::from_value(json!({
            "spec": {"selector": {}, "template": {"spec": {
                "imagePullSecrets": [{"name": "pull"}],
                "nodeSelector": {"disk": "ssd"},
                "containers": [{"name": "agent", "image": "r/tributary:1", "imagePullPolicy": "IfNotPresent"}],
            }}},
        }))
        .expect("a Deployment");
        let template = Template::of(&agent).expect("a template");
        assert!(template.needs_secret());
        let made = |own| {
            let pod = pod(&template, ("p", "r"), own, &Request::default(), 60).expect("a pod");
            serde_json::to_value(pod.spec.expect("a spec")).expect("JSON")
        };
        let spec = made(true);
        assert_eq!(spec["containers"][0]["image"], "r/tributary:1");
        assert_eq!(spec["imagePullSecrets"], json!([{"name": "pull"}]));
        assert_eq!(spec["nodeSelector"], json!({"disk": "ssd"}));
        assert_eq!(spec["activeDeadlineSeconds"], 75);
        assert_eq!(
            made(false)["imagePullSecrets"],
            Value::Null,
            "the Secret is not there"
        );
        let other = template.with_image("mirror/tributary:1");
        assert_eq!(
            (other.image.as_str(), &other.policy),
            ("mirror/tributary:1", &Value::Null)
        );
    }

    #[test]
    fn the_report_is_the_termination_message() {
        assert_eq!(report(&made(&json!({"running": {}}))).expect("it runs"), None);
        let ended = |message: &str, code: i32| {
            report(&made(
                &json!({"terminated": {"exitCode": code, "message": message, "reason": "Error"}}),
            ))
        };
        let found = ended(r#"{"names":[],"dials":[{"Ok":7}]}"#, 0).expect("a report");
        assert_eq!(found.expect("it ended").dials, [Ok(7)]);
        let told = |message: &str| format!("{:#}", ended(message, 2).expect_err("no report"));
        assert!(told("error: unrecognized subcommand 'probe'").contains("an older agent"));
        assert!(told("").starts_with("the pod ended with code 2: Error"));
        let mut evicted = made(&json!({"waiting": {}}));
        let status = evicted.status.as_mut().expect("a status");
        status.phase = Some("Failed".to_owned());
        status.message = Some("out of memory on the node".to_owned());
        let why = report(&evicted).expect_err("it failed").to_string();
        assert_eq!(why, "the pod failed: out of memory on the node");
    }

    #[test]
    fn only_a_pod_that_nobody_waits_for_is_left_over() {
        let at = |seconds: i64| json!(jiff::Timestamp::from_second(seconds).expect("a time").to_string());
        let mut pod = made(&json!({"running": {}}));
        assert!(!is_left_over(&pod, i64::MAX), "nobody knows its age");
        pod.metadata.creation_timestamp = serde_json::from_value(at(1_000)).expect("a time");
        assert!(!is_left_over(&pod, 1_075 + READ_WITHIN_SECONDS));
        assert!(is_left_over(&pod, 1_076 + READ_WITHIN_SECONDS));
        let ended = json!({"terminated": {"exitCode": 0, "finishedAt": at(1_000)}});
        let mut pod = made(&ended);
        pod.metadata.creation_timestamp = serde_json::from_value(at(999)).expect("a time");
        assert!(!is_left_over(&pod, 1_000 + READ_WITHIN_SECONDS));
        assert!(is_left_over(&pod, 1_001 + READ_WITHIN_SECONDS));
    }
}

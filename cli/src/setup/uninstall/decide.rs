//! Decides if `uninstall` may continue, from what was seen. Pure.

use k8s_openapi::api::apps::v1::StatefulSet;
use proto::v1::MemberState;
use serde_json::Value;
use shared::model::advice;

use super::super::{
    home::Remembered,
    init::HUB,
    leave::is_over,
    values::{HUB_TLS, Release},
};

/// The status of a release whose uninstallation was interrupted.
const UNINSTALLING: &str = "uninstalling";

/// The cluster and this machine, before the first change.
pub(super) struct Seen<'a> {
    pub(super) clusterset: &'a str,
    pub(super) context: &'a str,
    pub(super) namespace: &'a str,
    /// UID of kube-system.
    pub(super) fingerprint: String,
    pub(super) release: Option<Release>,
    pub(super) set: StatefulSetSeen,
    /// Name of the Secret with the hub's certificate.
    pub(super) secret: String,
    pub(super) authority: Authority,
    /// The volume of the event log is there.
    pub(super) volume: bool,
    pub(super) remembered: Remembered,
}

/// The StatefulSet of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatefulSetSeen {
    /// It is not there.
    Missing,
    /// It has no ready pod.
    Unready,
    /// It has a ready pod.
    Ready,
}

impl StatefulSetSeen {
    /// Reads it.
    pub(super) fn of(set: Option<&StatefulSet>) -> Self {
        let Some(set) = set else {
            return Self::Missing;
        };
        let ready = set.status.as_ref().and_then(|status| status.ready_replicas);
        if ready.unwrap_or_default() > 0 {
            Self::Ready
        } else {
            Self::Unready
        }
    }
}

/// The authority of the hub's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Authority {
    /// The Secret is not there.
    Missing,
    /// It is the one on this machine.
    Ours,
    /// It is another one.
    Other,
}

/// Compares the authorities of the hub (PEM) with the one of this machine.
pub(super) fn authority(hub: &str, here: &str) -> Authority {
    let here = here.trim();
    if !here.is_empty() && hub.contains(here) {
        return Authority::Ours;
    }
    Authority::Other
}

/// Name of the Secret with the hub's certificate.
pub(super) fn secret_name(release: Option<&Release>) -> &str {
    let given = release.and_then(|release| release.values["tls"]["secretName"].as_str());
    given.unwrap_or(HUB_TLS)
}

/// Decides if the hub may go; true if it must first say that no member is left.
///
/// # Errors
///
/// It may not: why, and what to do. Nothing is to be changed.
pub(super) fn decide(seen: &Seen<'_>) -> Result<bool, String> {
    let Seen {
        clusterset,
        context,
        namespace,
        secret,
        ..
    } = seen;
    let hub = seen.remembered.hub.as_ref();
    let elsewhere = hub.and_then(|hub| hub.is_elsewhere(clusterset, &seen.fingerprint, namespace));
    elsewhere.map_or(Ok(()), Err)?;
    if seen.authority == Authority::Other {
        return Err(format!(
            "the hub in context {context} is of another authority than clusterset {clusterset} of this machine. Check \
             --context and --clusterset"
        ));
    }
    let Some(release) = &seen.release else {
        return without_release(seen).map(|()| false);
    };
    if !is_empty(&release.values["furtherClustersets"]) {
        return Err(
            "this hub serves further clustersets (value furtherClustersets), whose event logs are on the same volume. Move \
             them to another hub first"
                .to_owned(),
        );
    }
    if seen.authority == Authority::Missing {
        return Err(format!(
            "the Secret {namespace}/{secret} is missing, so this command cannot tell whether the hub in context \
            {context} is that of clusterset {clusterset}. Check --context; `{}` makes the Secret again",
            advice::init()
        ));
    }
    let Some(hub) = hub else {
        return Err(format!(
            "this machine does not know where the hub of clusterset {clusterset} is, so the command cannot ask it \
            for its members. Run `{}` first, or copy the directory from the machine where it ran",
            advice::init()
        ));
    };
    // A hub that never answered anybody has no members, and perhaps never will answer.
    let may_have_members =
        hub.served || seen.set == StatefulSetSeen::Ready || !seen.remembered.members.is_empty();
    Ok(release.status != UNINSTALLING && !hub.hubs.is_empty() && may_have_members)
}

/// Decides if what is left without a release may go.
fn without_release(seen: &Seen<'_>) -> Result<(), String> {
    let (context, namespace) = (seen.context, seen.namespace);
    if seen.set != StatefulSetSeen::Missing {
        return Err(format!(
            "{HUB} in {namespace} was not installed by Helm. Remove it where it was installed"
        ));
    }
    let Some(hub) = &seen.remembered.hub else {
        return Ok(());
    };
    // A place that is known is this one. An interrupted run may have removed all but that knowledge.
    if hub.cluster.is_none() && seen.authority == Authority::Missing && !seen.volume {
        return Err(format!(
            "context {context} has no hub in namespace {namespace}. Check --context and --namespace"
        ));
    }
    Ok(())
}

/// True for a value that was not given, or a list without elements.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        _ => false,
    }
}

/// Those whose membership goes on.
pub(super) fn members(all: &[MemberState]) -> Vec<String> {
    let members = all.iter().filter(|member| !is_over(member));
    members.map(|member| member.cluster.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proto::v1::SourceState;
    use serde_json::json;

    use super::{super::super::home::HubPlace, *};

    fn release(status: &str, values: Value) -> Option<Release> {
        Some(Release {
            version: "0.1.0".to_owned(),
            status: status.to_owned(),
            values,
        })
    }

    fn remembered(hub: Value) -> Remembered {
        Remembered {
            hub: serde_json::from_value::<Option<HubPlace>>(hub).expect("a hub"),
            members: BTreeMap::new(),
        }
    }

    /// A hub that serves, in the cluster that is remembered.
    fn seen() -> Seen<'static> {
        Seen {
            clusterset: "default",
            context: "ctx",
            namespace: "ns",
            fingerprint: "uid".to_owned(),
            release: release("deployed", json!({"clusterset": "default"})),
            set: StatefulSetSeen::Ready,
            secret: HUB_TLS.to_owned(),
            authority: Authority::Ours,
            volume: true,
            remembered: remembered(json!({
                "hubs": ["https://hub:8443"], "joins": [], "operator": "admin",
                "cluster": "uid", "namespace": "ns", "served": true,
            })),
        }
    }

    /// The memory that an older or interrupted client left.
    fn never_served() -> Remembered {
        remembered(json!({"hubs": ["https://hub:8443"], "joins": [], "operator": "admin"}))
    }

    fn unready() -> Seen<'static> {
        Seen {
            set: StatefulSetSeen::Unready,
            ..seen()
        }
    }

    fn bare() -> Seen<'static> {
        Seen {
            release: None,
            set: StatefulSetSeen::Missing,
            ..seen()
        }
    }

    #[test]
    fn a_hub_that_may_have_members_is_asked() {
        assert_eq!(decide(&seen()), Ok(true));
        assert_eq!(decide(&unready()), Ok(true));
        let with = |remembered: Remembered, set| Seen {
            set,
            remembered,
            ..seen()
        };
        assert_eq!(decide(&with(never_served(), StatefulSetSeen::Ready)), Ok(true));
        let mut joined = never_served();
        let place = json!({"context": "east", "kubeconfig": null, "namespace": "ns"});
        let place = serde_json::from_value(place).expect("a member");
        joined.members.insert("east".to_owned(), place);
        assert_eq!(decide(&with(joined, StatefulSetSeen::Unready)), Ok(true));
        assert_eq!(decide(&with(never_served(), StatefulSetSeen::Unready)), Ok(false));
        let without_address =
            remembered(json!({"hubs": [], "joins": [], "operator": "admin", "cluster": "uid"}));
        assert_eq!(decide(&with(without_address, StatefulSetSeen::Ready)), Ok(false));
    }

    #[test]
    fn an_interrupted_run_continues() {
        let uninstalling = Seen {
            release: release(UNINSTALLING, json!({})),
            ..unready()
        };
        assert_eq!(decide(&uninstalling), Ok(false));
        assert_eq!(decide(&bare()), Ok(false));
        let forgotten = Seen {
            remembered: Remembered::default(),
            ..bare()
        };
        assert_eq!(decide(&forgotten), Ok(false));
        let all_gone = || Seen {
            authority: Authority::Missing,
            volume: false,
            ..bare()
        };
        assert_eq!(decide(&all_gone()), Ok(false));
        let and_forgotten = Seen {
            remembered: Remembered::default(),
            ..all_gone()
        };
        assert_eq!(decide(&and_forgotten), Ok(false));
    }

    #[test]
    fn another_hub_and_one_that_cannot_be_checked_are_refused() {
        let refused = |seen: Seen<'_>, why: &str| {
            let said = decide(&seen).expect_err(why);
            assert!(said.contains(why), "{said}");
        };
        let not_of_helm = Seen {
            release: None,
            ..unready()
        };
        refused(not_of_helm, "was not installed by Helm");
        let nothing_here = Seen {
            authority: Authority::Missing,
            volume: false,
            remembered: never_served(),
            ..bare()
        };
        refused(nothing_here, "context ctx has no hub in namespace ns");
        let shared = Seen {
            release: release("deployed", json!({"furtherClustersets": [{"name": "b"}]})),
            ..seen()
        };
        refused(shared, "serves further clustersets");
        let own_secret = Seen {
            authority: Authority::Missing,
            secret: "mine".to_owned(),
            ..seen()
        };
        refused(own_secret, "the Secret ns/mine is missing");
        let unknown = Seen {
            remembered: Remembered::default(),
            ..seen()
        };
        refused(unknown, "does not know where the hub");
        for base in [seen(), bare()] {
            let other = Seen {
                authority: Authority::Other,
                ..base
            };
            refused(other, "is of another authority");
        }
        for base in [seen(), bare()] {
            let elsewhere = Seen {
                fingerprint: "of another".to_owned(),
                ..base
            };
            refused(elsewhere, "is in another cluster");
        }
    }

    #[test]
    fn values_status_and_members_are_read() {
        assert_eq!(secret_name(None), HUB_TLS);
        assert_eq!(secret_name(release("deployed", Value::Null).as_ref()), HUB_TLS);
        let own = release("deployed", json!({"tls": {"secretName": "mine"}}));
        assert_eq!(secret_name(own.as_ref()), "mine");
        assert!(is_empty(&Value::Null) && is_empty(&json!([])) && !is_empty(&json!([{"name": "b"}])));
        assert_eq!(authority("a\nb\n", "b\n"), Authority::Ours);
        assert_eq!(authority("a\n", "b\n"), Authority::Other);
        assert_eq!(authority("a\n", "\n"), Authority::Other);
        let set = |ready: Value| serde_json::from_value::<StatefulSet>(ready).expect("a set");
        let ready = set(json!({"status": {"replicas": 1, "readyReplicas": 1}}));
        assert_eq!(StatefulSetSeen::of(Some(&ready)), StatefulSetSeen::Ready);
        let unready = set(json!({"status": {"replicas": 1}}));
        assert_eq!(StatefulSetSeen::of(Some(&unready)), StatefulSetSeen::Unready);
        assert_eq!(
            StatefulSetSeen::of(Some(&set(json!({})))),
            StatefulSetSeen::Unready
        );
        assert_eq!(StatefulSetSeen::of(None), StatefulSetSeen::Missing);
        let member = |cluster: &str, state: SourceState| MemberState {
            cluster: cluster.to_owned(),
            state: state.into(),
            ..MemberState::default()
        };
        let all = [
            member("a", SourceState::SourceLive),
            member("b", SourceState::SourceLeft),
            member("c", SourceState::SourceLost),
            member("d", SourceState::SourceEvicted),
            member("e", SourceState::SourceForgotten),
        ];
        assert_eq!(members(&all), ["a", "c"]);
    }
}

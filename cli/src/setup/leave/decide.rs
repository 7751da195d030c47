//! Decides what `leave` does, from what was seen. Pure.

use std::path::{Path, PathBuf};

use proto::v1::{MemberState, SourceState};
use serde_json::Value;
use shared::model::{ClusterId, advice};

use super::super::{
    args::ClusterArgs,
    values::{AGENT_TLS, Release},
};

/// The variable of `--context`.
pub(super) const CONTEXT_VARIABLE: &str = "TRIBUTARY_KUBE_CONTEXT";

/// The flags that name a cluster.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Given<'a> {
    pub(super) context: Option<&'a str>,
    /// The value of [`CONTEXT_VARIABLE`].
    pub(super) variable: Option<&'a str>,
    pub(super) kubeconfig: Option<&'a Path>,
    pub(super) namespace: Option<&'a str>,
}

/// Chooses the cluster.
///
/// # Errors
///
/// No context is known, or a variable of the shell names another than the one that the cluster joined with.
pub(super) fn chosen(
    id: &str,
    given: &Given<'_>,
    remembered: Option<ClusterArgs>,
) -> Result<ClusterArgs, String> {
    let joined = remembered.as_ref().map(|place| place.context.as_str());
    let Some(context) = given.context.or(joined) else {
        return Err(format!(
            "{id} did not join from this machine: name its cluster with --context"
        ));
    };
    if let Some(joined) = joined.filter(|joined| *joined != context && given.variable == Some(context)) {
        return Err(format!(
            "nothing was changed: {CONTEXT_VARIABLE} is {context}, and {id} joined with the context {joined}. Unset the \
             variable; --context names another context"
        ));
    }
    let of_context = remembered.as_ref().filter(|place| place.context == context);
    let kubeconfig = of_context.and_then(|place| place.kubeconfig.clone());
    let namespace = remembered.as_ref().map(|place| place.namespace.as_str());
    Ok(ClusterArgs {
        context: context.to_owned(),
        kubeconfig: given.kubeconfig.map(PathBuf::from).or(kubeconfig),
        namespace: given
            .namespace
            .or(namespace)
            .unwrap_or("tributary-system")
            .to_owned(),
    })
}

/// The state before the first change.
pub(super) struct Seen<'a> {
    pub(super) id: &'a ClusterId,
    pub(super) context: &'a str,
    pub(super) namespace: &'a str,
    /// UID of kube-system.
    pub(super) fingerprint: String,
    /// The id that the cluster states of itself.
    pub(super) stated: Option<String>,
    /// The agent's certificate and key are in their Secret.
    pub(super) certificate: bool,
    /// The members, those that ended included; `None`: the user wants to leave without the hub.
    pub(super) members: Option<Vec<MemberState>>,
}

/// The hub's part in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// The hub is told.
    Hub,
    /// The hub has no such member, or its membership is over.
    Over,
    /// The hub is not told: the user wants it so.
    WithoutHub,
}

impl Telling {
    /// The step in words.
    pub(super) fn text(self, id: &str) -> String {
        match self {
            Self::Hub => "the hub knows, and what the agent wrote is gone".to_owned(),
            Self::Over => format!("the hub has no member {id}, and what the agent wrote is gone"),
            Self::WithoutHub => "what the agent wrote is gone; the hub was not told".to_owned(),
        }
    }
}

/// Decides if the cluster may leave, and if the hub has to be told.
///
/// # Errors
///
/// It is another cluster, or the hub cannot be told: the reason, and the next step. Nothing is to be changed.
pub(super) fn decide(seen: &Seen<'_>) -> Result<Telling, String> {
    let (id, context) = (seen.id, seen.context);
    let is_other = |other: &str| {
        format!("the cluster of context {context} is the member {other}, not {id}. Check --context")
    };
    if let Some(other) = seen.stated.as_deref().filter(|stated| *stated != id.as_str()) {
        return Err(is_other(other));
    }
    let Some(members) = &seen.members else {
        return Ok(Telling::WithoutHub);
    };
    let mut current = members.iter().filter(|member| !is_over(member));
    let member = current.clone().find(|member| member.cluster == id.as_str());
    if let Some(other) =
        current.find(|member| member.cluster_fingerprint == seen.fingerprint && member.cluster != id.as_str())
    {
        return Err(is_other(&other.cluster));
    }
    let Some(member) = member else {
        return Ok(Telling::Over);
    };
    if member.cluster_fingerprint != seen.fingerprint {
        return Err(format!(
            "the cluster of context {context} is not the member {id}. Check --context"
        ));
    }
    if !seen.certificate {
        return Err(format!(
            "the Secret {}/{AGENT_TLS} has no certificate, so the hub cannot be told that {id} leaves. Check --namespace, \
             or run `{}` and then the same command with --without-hub",
            seen.namespace,
            advice::member_evict(id)
        ));
    }
    Ok(Telling::Hub)
}

/// True if a membership is over.
pub(in crate::setup) fn is_over(member: &MemberState) -> bool {
    matches!(
        member.state(),
        SourceState::SourceLeft | SourceState::SourceEvicted | SourceState::SourceForgotten
    )
}

/// True if the definitions stay when their release goes.
pub(super) fn keeps_definitions(release: &Release) -> bool {
    release.values["keep"] != Value::Bool(false)
}

/// The result in words.
pub(super) fn result(id: &ClusterId, clusterset: &str, telling: Telling) -> String {
    let definitions = "Deleting the definitions would delete all ServiceExports, so they stay.";
    match telling {
        Telling::Hub | Telling::Over => {
            format!("{id} is no member of the clusterset {clusterset} any more. {definitions}")
        }
        Telling::WithoutHub => format!(
            "Nothing of Tributary runs in {id} any more. {definitions}\nThe hub was not told: unless it is gone for good, \
             run `{}`",
            advice::member_evict(id)
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::*;

    fn member(cluster: &str, fingerprint: &str, state: SourceState) -> MemberState {
        MemberState {
            cluster: cluster.to_owned(),
            cluster_fingerprint: fingerprint.to_owned(),
            state: state.into(),
            ..MemberState::default()
        }
    }

    static EAST: LazyLock<ClusterId> = LazyLock::new(|| ClusterId::new("east").expect("an id"));
    static ESAT: LazyLock<ClusterId> = LazyLock::new(|| ClusterId::new("esat").expect("an id"));

    fn seen(members: Option<Vec<MemberState>>) -> Seen<'static> {
        Seen {
            id: &EAST,
            context: "ctx",
            namespace: "ns",
            fingerprint: "e".to_owned(),
            stated: Some("east".to_owned()),
            certificate: true,
            members,
        }
    }

    /// The states of a cluster and the hub, and what becomes of each.
    #[test]
    fn only_the_member_itself_leaves_and_the_hub_is_told_unless_the_user_says_otherwise() {
        use SourceState::{SourceEvicted, SourceForgotten, SourceLeft, SourceLive, SourceLost};
        let live = || vec![member("east", "e", SourceLive), member("west", "w", SourceLive)];
        assert_eq!(decide(&seen(Some(live()))), Ok(Telling::Hub));
        let lost = vec![member("east", "e", SourceLost)];
        assert_eq!(decide(&seen(Some(lost))), Ok(Telling::Hub));
        assert_eq!(decide(&seen(Some(Vec::new()))), Ok(Telling::Over));
        assert_eq!(decide(&seen(None)), Ok(Telling::WithoutHub));
        // A run that was interrupted after the Secret went.
        for state in [SourceLeft, SourceEvicted, SourceForgotten] {
            let again = Seen {
                certificate: false,
                stated: None,
                ..seen(Some(vec![member("east", "e", state)]))
            };
            assert_eq!(decide(&again), Ok(Telling::Over), "{state:?}");
        }
        let without = Seen {
            certificate: false,
            stated: None,
            ..seen(None)
        };
        assert_eq!(decide(&without), Ok(Telling::WithoutHub));
    }

    #[test]
    fn another_cluster_and_a_missing_certificate_are_refused() {
        use SourceState::SourceLive;
        let live = || {
            Some(vec![
                member("east", "e", SourceLive),
                member("west", "w", SourceLive),
            ])
        };
        let refused = |seen: Seen<'_>| decide(&seen).expect_err("refused");
        // A cluster that is no member, such as the hub's.
        let hub = Seen {
            fingerprint: "h".to_owned(),
            stated: None,
            certificate: false,
            ..seen(live())
        };
        assert!(refused(hub).contains("context ctx is not the member east"));
        let west = Seen {
            fingerprint: "w".to_owned(),
            stated: None,
            ..seen(live())
        };
        assert!(refused(west).contains("is the member west, not east"));
        // Without a member of the id, too: the id may be mistyped.
        let mistyped = Seen {
            id: &ESAT,
            stated: None,
            ..seen(live())
        };
        assert!(refused(mistyped).contains("is the member east, not esat"));
        for members in [live(), None] {
            let states_another = Seen {
                stated: Some("west".to_owned()),
                ..seen(members)
            };
            assert!(refused(states_another).contains("is the member west, not east"));
        }
        let bare = Seen {
            certificate: false,
            ..seen(live())
        };
        let said = refused(bare);
        assert!(
            said.contains("Secret ns/tributary-agent-tls") && said.contains("--without-hub"),
            "{said}"
        );
    }

    #[test]
    fn flags_win_over_what_is_remembered_and_a_variable_does_not() {
        let joined = || {
            Some(ClusterArgs {
                context: "east".to_owned(),
                kubeconfig: Some("of-east".into()),
                namespace: "theirs".to_owned(),
            })
        };
        let none = Given::default();
        let at = |given: &Given<'_>, remembered| {
            let place = chosen("east", given, remembered).expect("a cluster");
            let kubeconfig = place.kubeconfig.map(|path| path.display().to_string());
            (place.context, kubeconfig, place.namespace)
        };
        let place = |context: &str, kubeconfig: Option<&str>, namespace: &str| {
            let kubeconfig = kubeconfig.map(str::to_owned);
            (context.to_owned(), kubeconfig, namespace.to_owned())
        };
        assert_eq!(at(&none, joined()), place("east", Some("of-east"), "theirs"));
        let named = Given {
            context: Some("other"),
            ..none
        };
        assert_eq!(at(&named, joined()), place("other", None, "theirs"));
        assert_eq!(at(&named, None), place("other", None, "tributary-system"));
        let same = Given {
            context: Some("east"),
            variable: Some("east"),
            kubeconfig: Some(Path::new("mine")),
            namespace: Some("ns"),
        };
        assert_eq!(at(&same, joined()), place("east", Some("mine"), "ns"));
        // A flag that differs from the variable.
        let flag = Given {
            context: Some("other"),
            variable: Some("hub"),
            ..none
        };
        assert_eq!(at(&flag, joined()), place("other", None, "theirs"));
        let variable = Given {
            context: Some("hub"),
            variable: Some("hub"),
            ..none
        };
        assert_eq!(at(&variable, None), place("hub", None, "tributary-system"));
        let said = chosen("east", &variable, joined()).expect_err("refused");
        assert!(
            said.starts_with("nothing was changed: TRIBUTARY_KUBE_CONTEXT is hub"),
            "{said}"
        );
        chosen("east", &none, None).expect_err("no context is known");
    }

    #[test]
    fn the_release_of_definitions_goes_only_if_they_stay() {
        let release = |values: Value| Release {
            version: "0.1.0".to_owned(),
            status: "deployed".to_owned(),
            values,
        };
        assert!(keeps_definitions(&release(Value::Null)));
        assert!(keeps_definitions(&release(json!({"serviceExports": true}))));
        assert!(keeps_definitions(&release(json!({"keep": true}))));
        assert!(!keeps_definitions(&release(json!({"keep": false}))));
    }

    #[test]
    fn a_hub_that_was_not_told_is_named() {
        assert!(result(&EAST, "default", Telling::Hub).starts_with("east is no member"));
        let said = result(&EAST, "default", Telling::WithoutHub);
        assert!(
            said.contains("The hub was not told") && said.contains("member evict east"),
            "{said}"
        );
    }
}

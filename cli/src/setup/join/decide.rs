//! The steps of `join`, from what was seen. Pure.

use shared::model::{ClusterId, TokenHash, TokenScope, advice};

use super::super::{plan::Planned, values::AGENT_TLS};

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Remembers on this machine which cluster the member is: `leave` needs it.
    Remember,
    /// The namespace.
    Namespace,
    /// The definitions.
    Definitions,
    /// A token, and the Secret with the join string.
    Token,
    /// The agent, by Helm.
    Agent,
    /// CoreDNS.
    Dns,
}

/// A member, as the hub knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) id: String,
    /// UID of its kube-system.
    pub(super) fingerprint: String,
    pub(super) standing: Standing,
}

/// The state of a membership.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is a member, heard from or not.
    Member,
    /// It left, or is forgotten: its id is free.
    Ended,
    /// It was evicted: its id needs an operator's word.
    Evicted,
}

/// A token, as the hub knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) id: String,
    pub(super) cluster_ids: String,
    pub(super) operator: String,
    /// It is revoked or expired.
    pub(super) over: bool,
    pub(super) uses: usize,
    /// Clusters that joined with it.
    pub(super) used_by: Vec<String>,
}

/// The certificate in the agent's Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Certificate {
    /// The cluster that it names.
    pub(super) cluster: String,
    /// It is of the clusterset of this machine.
    pub(super) of_clusterset: bool,
    /// It has expired.
    pub(super) over: bool,
}

/// The join string in the cluster's Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Invitation {
    pub(super) token: TokenHash,
    /// It leads to the hub's addresses as they are now.
    pub(super) leads_to_hub: bool,
}

/// The state of the cluster, the hub and this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// UID of kube-system.
    pub(super) fingerprint: String,
    /// The id that the cluster states of itself.
    pub(super) stated: Option<String>,
    pub(super) members: Vec<Member>,
    pub(super) tokens: Vec<Token>,
    pub(super) remembered: bool,
    pub(super) namespace: bool,
    /// The reason to install definitions.
    pub(super) definitions: Option<String>,
    pub(super) invitation: Option<Invitation>,
    pub(super) certificate: Option<Certificate>,
    /// The reason to call Helm for the agent.
    pub(super) release: Option<String>,
    /// CoreDNS is to be changed.
    pub(super) dns: bool,
}

/// The steps in their order.
///
/// # Errors
///
/// The cluster cannot join under this id: why, and what to do. Nothing is to be changed.
pub(super) fn plan(seen: &Seen, id: &str) -> Result<Vec<Planned<Step>>, String> {
    refused(seen, id).map_or(Ok(()), Err)?;
    Ok(vec![
        Planned::if_missing(Step::Remember, !seen.remembered),
        Planned::if_missing(Step::Namespace, !seen.namespace),
        Planned::because(Step::Definitions, seen.definitions.clone()),
        Planned::because(Step::Token, token_needed(seen, id)),
        Planned::because(Step::Agent, seen.release.clone()),
        Planned::if_missing(Step::Dns, seen.dns),
    ])
}

fn refused(seen: &Seen, id: &str) -> Option<String> {
    let live = |member: &&Member| member.standing == Standing::Member;
    let here = |member: &&Member| member.fingerprint == seen.fingerprint;
    let held = seen.certificate.as_ref().map(|held| held.cluster.as_str());
    if let Some(other) = held.filter(|other| *other != id) {
        return Some(format!(
            "the agent in this cluster has the certificate of {other}, not of {id}. Is --context right? For another id run \
             `{}` first",
            advice::leave(other)
        ));
    }
    if let Some(other) = seen
        .members
        .iter()
        .filter(live)
        .find(|member| here(member) && member.id != id)
    {
        return Some(format!(
            "this cluster is the member {} already. Is --context right? For another id run `{}` first",
            other.id,
            advice::leave(&other.id)
        ));
    }
    let known = seen.members.iter().find(|member| member.id == id);
    match known.map(|member| (member.standing, here(&member))) {
        Some((Standing::Member, false)) => {
            return Some(format!(
                "the id {id} is taken: another cluster is that member. Choose another id, or check --context"
            ));
        }
        Some((Standing::Evicted, _)) => {
            return Some(format!(
                "{id} was evicted: an operator must admit it again (tributary member rekey); or choose another id"
            ));
        }
        _ => {}
    }
    if let Some(why) = certificate_refused(seen, id, known) {
        return Some(why);
    }
    let stated = seen.stated.as_deref().filter(|stated| *stated != id)?;
    Some(format!(
        "this cluster has the id {stated} already (ClusterProperty cluster.clusterset.k8s.io): join it as {stated}, \
        or delete that object if it is left from an earlier membership"
    ))
}

/// The reason why the agent's certificate is useless: as long as it exists the agent reads no join string.
fn certificate_refused(seen: &Seen, id: &str, known: Option<&Member>) -> Option<String> {
    let held = seen.certificate.as_ref()?;
    let standing = known.map(|member| member.standing);
    let why = if !held.of_clusterset {
        format!("the agent's certificate in Secret {AGENT_TLS} is of another clusterset")
    } else if standing == Some(Standing::Ended) {
        format!("{id} is no member any more, and its old key is still in Secret {AGENT_TLS}")
    } else if held.over {
        format!("the agent's certificate in Secret {AGENT_TLS} has expired")
    } else {
        return None;
    };
    let leave = advice::leave_without_hub(id);
    // The hub refuses another key for an id as long as it has the member.
    let forget = ClusterId::new(id)
        .ok()
        .filter(|_| standing == Some(Standing::Member))
        .map(|id| format!("`{}` and ", advice::member_forget(&id)));
    Some(format!(
        "{why}. Run {}`{leave}`, then join again",
        forget.unwrap_or_default()
    ))
}

/// The reason to make a token; `None`: the agent has a certificate, or a token that will do.
fn token_needed(seen: &Seen, id: &str) -> Option<String> {
    if seen.certificate.is_some() {
        return None;
    }
    let Some(invitation) = &seen.invitation else {
        return Some("there is no join string".to_owned());
    };
    if !invitation.leads_to_hub {
        return Some("the hub's address has changed since the join string was made".to_owned());
    }
    let hash = &invitation.token;
    let Some(token) = seen.tokens.iter().find(|token| token.id == hash.id()) else {
        return Some("the hub does not know the token of the join string any more".to_owned());
    };
    let covers = |id: &ClusterId| {
        let scope = token.cluster_ids.parse::<TokenScope>();
        scope.is_ok_and(|scope| scope.covers(id))
    };
    if !ClusterId::new(id).is_ok_and(|id| covers(&id)) {
        return Some(format!("the join string is for {}", token.cluster_ids));
    }
    // The cluster that used it may ask again with the same key.
    if token.used_by.iter().any(|cluster| cluster == id) {
        return None;
    }
    if token.over {
        return Some("the token of the join string has expired or was revoked".to_owned());
    }
    (token.used_by.len() >= token.uses)
        .then(|| "another cluster used the token of the join string".to_owned())
}

/// Tokens that an interrupted run made for this id and nobody can have: they are to be revoked.
pub(super) fn left_behind<'a>(seen: &'a Seen, id: &str, operator: &str) -> Vec<&'a str> {
    let kept = seen
        .invitation
        .as_ref()
        .filter(|invitation| invitation.leads_to_hub)
        .map(|invitation| invitation.token.id());
    let is_left = |token: &&Token| {
        token.cluster_ids == id
            && token.operator == operator
            && !token.over
            && token.used_by.is_empty()
            && Some(&token.id) != kept.as_ref()
    };
    seen.tokens
        .iter()
        .filter(is_left)
        .map(|token| token.id.as_str())
        .collect()
}

#[cfg(test)]
mod tests;

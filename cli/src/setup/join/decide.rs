//! The steps of `join`, from what was seen. Pure.

use shared::model::{TokenHash, advice};

use super::super::plan::Planned;

/// A step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Which cluster the member is, on this machine: `leave` needs it.
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

/// Whether a membership goes on.
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

/// What is in the cluster, at the hub and on this machine.
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
    /// The token in the cluster's Secret.
    pub(super) token: Option<TokenHash>,
    /// The cluster whose certificate the agent has.
    pub(super) certificate: Option<String>,
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
    if let Some(other) = seen.certificate.as_deref().filter(|other| *other != id) {
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
                "{id} was evicted, and needs an operator's word to return (tributary member rekey); or choose another id"
            ));
        }
        _ => {}
    }
    let stated = seen.stated.as_deref().filter(|stated| *stated != id)?;
    Some(format!(
        "this cluster states the id {stated} of itself (ClusterProperty cluster.clusterset.k8s.io): join it as {stated}, or \
         delete that object if it is left from before"
    ))
}

/// The reason to make a token; `None`: the agent has a certificate, or a token that will do.
fn token_needed(seen: &Seen, id: &str) -> Option<String> {
    if seen.certificate.is_some() {
        return None;
    }
    let Some(hash) = &seen.token else {
        return Some("there is no join string".to_owned());
    };
    let Some(token) = seen.tokens.iter().find(|token| token.id == hash.id()) else {
        return Some("the hub does not know the token of the join string any more".to_owned());
    };
    // Who used it may ask again with the same key.
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
    let kept = seen.token.as_ref().map(TokenHash::id);
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
mod tests {
    use super::*;

    const HASH: TokenHash = TokenHash([7; 32]);

    fn token(used_by: &[&str]) -> Token {
        Token {
            id: HASH.id(),
            cluster_ids: "east".to_owned(),
            operator: "admin".to_owned(),
            over: false,
            uses: 1,
            used_by: used_by.iter().map(ToString::to_string).collect(),
        }
    }

    fn nothing() -> Seen {
        Seen {
            fingerprint: "uid".to_owned(),
            stated: None,
            members: Vec::new(),
            tokens: Vec::new(),
            remembered: false,
            namespace: false,
            definitions: Some("definitions are missing".to_owned()),
            token: None,
            certificate: None,
            release: Some("it is not installed".to_owned()),
            dns: true,
        }
    }

    fn carried_out(seen: &mut Seen, step: Step) {
        match step {
            Step::Remember => seen.remembered = true,
            Step::Namespace => seen.namespace = true,
            Step::Definitions => seen.definitions = None,
            Step::Token => (seen.token, seen.tokens) = (Some(HASH), vec![token(&[])]),
            Step::Agent => seen.release = None,
            Step::Dns => seen.dns = false,
        }
    }

    fn todo(seen: &Seen) -> Vec<Step> {
        let steps = plan(seen, "east").expect("a plan").into_iter();
        steps
            .filter(|step| step.todo.is_some())
            .map(|step| step.step)
            .collect()
    }

    /// Killed after any number of steps, the next run has exactly those to do that are left.
    #[test]
    fn each_half_done_state_continues() {
        let whole = todo(&nothing());
        assert_eq!(whole.len(), 6);
        for stop in 0..=whole.len() {
            let mut seen = nothing();
            for step in &whole[..stop] {
                carried_out(&mut seen, *step);
            }
            assert_eq!(todo(&seen), whole[stop..], "after {stop} steps");
            // The agent may join between two runs.
            if stop >= 5 {
                seen.certificate = Some("east".to_owned());
                seen.stated = Some("east".to_owned());
                seen.members = vec![Member {
                    id: "east".to_owned(),
                    fingerprint: "uid".to_owned(),
                    standing: Standing::Member,
                }];
                assert_eq!(todo(&seen), whole[stop..]);
            }
        }
    }

    #[test]
    fn a_token_is_made_only_if_the_one_that_is_there_will_not_do() {
        let makes = |change: fn(&mut Seen)| {
            let mut seen = nothing();
            (seen.token, seen.tokens) = (Some(HASH), vec![token(&[])]);
            change(&mut seen);
            token_needed(&seen, "east").is_some()
        };
        assert!(!makes(|_| ()));
        assert!(makes(|seen| seen.tokens[0].over = true), "it expired");
        assert!(makes(|seen| seen.tokens.clear()), "the hub forgot it");
        assert!(
            makes(|seen| seen.tokens = vec![token(&["west"])]),
            "another cluster has used it"
        );
        assert!(
            !makes(|seen| seen.tokens = vec![token(&["east"])]),
            "the agent was interrupted"
        );
        assert!(!makes(
            |seen| (seen.token, seen.certificate) = (None, Some("east".to_owned()))
        ));
    }

    #[test]
    fn a_token_that_reached_no_cluster_is_revoked() {
        let mut seen = nothing();
        seen.tokens = vec![token(&[])];
        assert_eq!(left_behind(&seen, "east", "admin"), [HASH.id()]);
        assert!(left_behind(&seen, "west", "admin").is_empty());
        assert!(left_behind(&seen, "east", "bob").is_empty());
        seen.token = Some(HASH);
        assert!(
            left_behind(&seen, "east", "admin").is_empty(),
            "the cluster has it"
        );
    }

    #[test]
    fn the_wrong_cluster_or_id_is_refused() {
        let member = |id: &str, fingerprint: &str, standing| Member {
            id: id.to_owned(),
            fingerprint: fingerprint.to_owned(),
            standing,
        };
        let refused = |change: &dyn Fn(&mut Seen)| {
            let mut seen = nothing();
            change(&mut seen);
            plan(&seen, "east").expect_err("refused")
        };
        let taken = refused(&|seen| seen.members = vec![member("east", "other", Standing::Member)]);
        assert!(taken.contains("is taken"), "{taken}");
        let second = refused(&|seen| seen.members = vec![member("west", "uid", Standing::Member)]);
        assert!(second.contains("is the member west already"), "{second}");
        let evicted = refused(&|seen| seen.members = vec![member("east", "uid", Standing::Evicted)]);
        assert!(evicted.contains("was evicted"), "{evicted}");
        let stated = refused(&|seen| seen.stated = Some("west".to_owned()));
        assert!(stated.contains("states the id west"), "{stated}");
        let certificate = refused(&|seen| seen.certificate = Some("west".to_owned()));
        assert!(certificate.contains("the certificate of west"), "{certificate}");
        let mut seen = nothing();
        seen.members = vec![
            member("east", "other", Standing::Ended),
            member("west", "uid", Standing::Ended),
        ];
        plan(&seen, "east").expect("both have left");
    }
}

//! The members of a clusterset as a table or as JSON, with what the hub does about those that are lost.

use std::collections::BTreeMap;

use prost_types::Timestamp;
use proto::v1;
use serde_json::{Value, json};

use super::{KEY_DIGITS, brake, leaving, said_by, span, time, version, yes};
use crate::output::{Output, table};

/// The members of a clusterset.
pub(crate) fn members(response: &v1::ListMembersResponse, output: Output) -> String {
    if output.is_document() {
        let members: Vec<Value> = response.members.iter().map(member_json).collect();
        let revoked: Vec<Value> = response.revoked_keys.iter().map(revoked_json).collect();
        let document = json!({
            "epoch": response.epoch,
            "revision": response.revision,
            "loss": response.loss.as_ref().map(loss_json),
            "brake": response.brake.as_ref().map(brake::settings),
            "members": members,
            "revokedKeys": revoked,
        });
        return output.document(&document);
    }
    let header = [
        "CLUSTER",
        "STATE",
        "SINCE",
        "LISTED",
        "CONNECTED",
        "AGENT",
        "APPLIED",
        "TOOK",
        "WAITS",
        "PARKED",
        "EXPORTS",
        "SLICES",
        "JOINED-AT",
        "KEYS",
        "KEYS-END",
    ];
    let rows = response.members.iter().map(row);
    let header = std::iter::once(header.map(str::to_owned).to_vec());
    let table = table(&header.chain(rows).collect::<Vec<_>>(), output);
    let members = match response.members.len() {
        1 => "1 member".to_owned(),
        more => format!("{more} members"),
    };
    let (revision, epoch) = (response.revision, &response.epoch);
    let said_by = said_by(response.answered_by.as_ref());
    let revoked = match response.revoked_keys.len() {
        0 => String::new(),
        1 => "1 revoked key: --output json shows it\n".to_owned(),
        keys => format!("{keys} revoked keys: --output json shows them\n"),
    };
    let contested = response.members.iter().filter(|member| is_contested(member));
    let contested: String = contested
        .map(|member| {
            format!(
                "{} has a duplicate identity: a second key claims it (--output json shows the key)\n",
                member.cluster
            )
        })
        .collect();
    let (lost, held) = (lost(response), brake::held(response));
    let leaving = leaving::leaving(response);
    let (unhealthy, issuers) = (unhealthy(response), issuers(response));
    format!(
        "{table}{members} at revision {revision} of epoch {epoch}{said_by}\n{revoked}{contested}{leaving}{lost}{held}{unhealthy}{issuers}"
    )
}

fn row(member: &v1::MemberState) -> Vec<String> {
    vec![
        member.cluster.clone(),
        state(member),
        time(member.state_since.as_ref()),
        yes(member.listed),
        yes(member.connected),
        version(&member.agent_version),
        applied(member, |applied| {
            applied.revision.map(|revision| revision.to_string())
        }),
        applied(member, |applied| applied.took_millis.map(span)),
        applied(member, |applied| applied.waits_millis.map(span)),
        applied(member, |applied| Some(parked(applied))),
        member.exports.to_string(),
        member.endpoint_slices.to_string(),
        member.incarnation.to_string(),
        keys(member),
        keys_end(member),
    ]
}

/// The issuers of members' certificates, each member's by the one that ends last, if there are several: an authority
/// may be removed when no member depends on it.
fn issuers(response: &v1::ListMembersResponse) -> String {
    let last = |member: &v1::MemberState| {
        let keys = member.keys.iter().filter(|key| !key.contested);
        let last = keys.max_by_key(|key| key.not_after.as_ref().map(|at| at.seconds));
        last.filter(|key| !key.issuer.is_empty()).cloned()
    };
    let mut issuers: BTreeMap<String, (usize, Option<i64>)> = BTreeMap::new();
    for key in response.members.iter().filter_map(last) {
        let (members, end) = issuers.entry(key.issuer).or_default();
        *members += 1;
        *end = (*end).max(key.not_after.map(|at| at.seconds));
    }
    if issuers.len() < 2 {
        return String::new();
    }
    issuers
        .into_iter()
        .map(|(issuer, (members, end))| {
            let members = if members == 1 {
                "1 member".to_owned()
            } else {
                format!("{members} members")
            };
            format!(
                "{members} with certificates of {issuer}, the last ends {}\n",
                time(end.map(|seconds| Timestamp { seconds, nanos: 0 }).as_ref())
            )
        })
        .collect()
}

/// The line about lost members, if there are any.
fn lost(response: &v1::ListMembersResponse) -> String {
    let lost = |member: &&v1::MemberState| member.state() == v1::SourceState::SourceLost;
    let count = response.members.iter().filter(lost).count();
    let Some(loss) = response.loss.as_ref().filter(|_| count > 0) else {
        return String::new();
    };
    let members = match count {
        1 => "1 member is lost".to_owned(),
        more => format!("{more} members are lost"),
    };
    let after = loss.after_millis / 1_000;
    let unless = "while another member has ready ones";
    let follows = match (&*loss.action, &loss.self_preservation_since) {
        ("retain", _) => "the endpoints stay, as the policy says".to_owned(),
        (_, Some(since)) => format!(
            "nothing is withdrawn since {}, because {} or more lost at one time look like a fault of the hub: check \
            its network, evict the members that are gone, or end self-preservation (member release \
            --self-preservation)",
            time(Some(since)),
            loss.self_preservation_lost
        ),
        ("notReady", None) => {
            format!("endpoints are not ready any more {after} s after the last sign of life, {unless}")
        }
        (_, None) => format!("endpoints are withdrawn {after} s after the last sign of life, {unless}"),
    };
    format!("{members}: {follows}\n")
}

/// Problems of members, a line for each condition that is False.
fn unhealthy(response: &v1::ListMembersResponse) -> String {
    let of_member = |member: &v1::MemberState| {
        let failed = member
            .health
            .iter()
            .filter(|condition| condition.status == "False");
        let line = |condition: &v1::ProfileCondition| {
            format!(
                "{} is not healthy: {} is False, {}: {}\n",
                member.cluster, condition.r#type, condition.reason, condition.message
            )
        };
        failed.map(line).collect::<String>()
    };
    response.members.iter().map(of_member).collect()
}

fn condition_json(condition: &v1::ProfileCondition) -> Value {
    json!({
        "type": condition.r#type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "since": time(condition.last_transition_time.as_ref()),
    })
}

fn api_server_json(server: &v1::ApiServer) -> Value {
    let state = match server.state() {
        v1::ApiServerState::Unspecified | v1::ApiServerState::ApiServerUnknown => "unknown",
        v1::ApiServerState::ApiServerFresh => "fresh",
        v1::ApiServerState::ApiServerLate => "late",
        v1::ApiServerState::ApiServerDead => "dead",
    };
    json!({
        "host": server.host,
        "state": state,
        "restarts": server.restarts,
        "restartsInferred": server.restarts_inferred,
        "sharedIdentity": server.shared,
    })
}

fn loss_json(loss: &v1::LossSettings) -> Value {
    json!({
        "action": loss.action,
        "afterMillis": loss.after_millis,
        "selfPreservation": {
            "lost": loss.self_preservation_lost,
            "longestMillis": loss.self_preservation_millis,
            "since": loss.self_preservation_since.as_ref().map(|since| time(Some(since))),
        },
    })
}

fn member_json(member: &v1::MemberState) -> Value {
    json!({
        "cluster": member.cluster,
        "state": state(member),
        "withdrawn": member.withdrawn,
        "leaving": member.leaving.as_ref().map(leaving::settings),
        "heldSince": member.brake_since.as_ref().map(|since| time(Some(since))),
        "heldExports": member.held_exports,
        "stateSince": time(member.state_since.as_ref()),
        "listed": member.listed,
        "connected": member.connected,
        "agentVersion": member.agent_version,
        "applied": member.applied.as_ref().map(applied_json),
        "health": member.health.iter().map(condition_json).collect::<Vec<_>>(),
        "apiServers": member.api_servers.iter().map(api_server_json).collect::<Vec<_>>(),
        "exports": member.exports,
        "endpointSlices": member.endpoint_slices,
        "incarnation": member.incarnation,
        "clusterFingerprint": member.cluster_fingerprint,
        "keyFingerprints": member.key_fingerprints,
        "keys": member.keys.iter().map(key_json).collect::<Vec<_>>(),
    })
}

fn key_json(key: &v1::MemberKey) -> Value {
    json!({
        "fingerprint": key.fingerprint,
        "issuer": key.issuer,
        "notAfter": time(key.not_after.as_ref()),
        "accepted": acceptance(key),
        "acceptedAt": time(key.accepted_at.as_ref()),
        "contested": key.contested,
    })
}

fn revoked_json(key: &v1::RevokedKey) -> Value {
    json!({
        "fingerprint": key.fingerprint,
        "cluster": key.cluster,
        "operator": key.operator,
        "reader": key.reader,
        "revokedAt": time(key.revoked_at.as_ref()),
    })
}

fn acceptance(key: &v1::MemberKey) -> &'static str {
    match key.accepted() {
        v1::KeyAcceptance::Unspecified => "-",
        v1::KeyAcceptance::Pinned => "pinned",
        v1::KeyAcceptance::ByOperator => "operator",
        v1::KeyAcceptance::Renewed => "renewed",
        v1::KeyAcceptance::Certified => "certified",
    }
}

fn applied_json(applied: &v1::MemberApplied) -> Value {
    json!({
        "revision": applied.revision,
        "tookMillis": applied.took_millis,
        "waitsMillis": applied.waits_millis,
        "parked": applied.parked,
        "oldestParkedMillis": applied.oldest_parked_millis,
    })
}

pub(crate) fn applied(
    member: &v1::MemberState,
    shown: impl Fn(&v1::MemberApplied) -> Option<String>,
) -> String {
    member
        .applied
        .as_ref()
        .and_then(shown)
        .unwrap_or_else(|| "-".to_owned())
}

pub(crate) fn parked(applied: &v1::MemberApplied) -> String {
    match applied.oldest_parked_millis {
        Some(millis) => format!("{} ({})", applied.parked, span(millis)),
        None => applied.parked.to_string(),
    }
}

pub(crate) fn state(member: &v1::MemberState) -> String {
    if member.withdrawn {
        return "withdrawn".to_owned();
    }
    if member.leaving.is_some() && member.state() == v1::SourceState::SourceLive {
        return "leaving".to_owned();
    }
    let name = member.state().as_str_name();
    name.strip_prefix("SOURCE_").unwrap_or(name).to_ascii_lowercase()
}

fn keys(member: &v1::MemberState) -> String {
    let short = member
        .key_fingerprints
        .iter()
        .map(|key| key.chars().take(KEY_DIGITS).collect::<String>());
    let short: Vec<String> = short.collect();
    if short.is_empty() {
        "-".to_owned()
    } else {
        short.join(",")
    }
}

pub(crate) fn is_contested(member: &v1::MemberState) -> bool {
    member.keys.iter().any(|key| key.contested)
}

/// Time at which the last certificate ends that was seen of a member.
fn keys_end(member: &v1::MemberState) -> String {
    let ends = member.keys.iter().filter_map(|key| key.not_after.as_ref());
    time(ends.max_by_key(|at| at.seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_columns_that_align() {
        let member = |cluster: &str, exports| v1::MemberState {
            cluster: cluster.to_owned(),
            incarnation: 1,
            state: v1::SourceState::SourceLive.into(),
            listed: true,
            connected: exports > 0,
            key_fingerprints: vec!["ab".repeat(32)],
            keys: vec![v1::MemberKey {
                fingerprint: "ab".repeat(32),
                not_after: (exports > 0).then_some(Timestamp {
                    seconds: 1_767_323_045,
                    nanos: 0,
                }),
                contested: exports > 0,
                ..Default::default()
            }],
            exports,
            state_since: Some(Timestamp {
                seconds: 1_700_000_000,
                nanos: 5,
            }),
            agent_version: "0.1.0".to_owned(),
            applied: (exports > 0).then_some(v1::MemberApplied {
                revision: Some(11),
                took_millis: Some(120),
                waits_millis: None,
                parked: 2,
                oldest_parked_millis: Some(300_000),
            }),
            ..v1::MemberState::default()
        };
        let response = v1::ListMembersResponse {
            next_page_token: String::new(),
            loss: None,
            brake: None,
            epoch: "1000-07".to_owned(),
            revision: 12,
            members: vec![member("east", 3), member("a-long-name", 0)],
            revoked_keys: vec![v1::RevokedKey::default()],
            answered_by: Some(v1::AnsweredBy {
                hub: "h1".to_owned(),
                hub_version: "0.1.0".to_owned(),
                ..Default::default()
            }),
        };
        let text = members(&response, Output::Text);
        let expected = "\
CLUSTER      STATE  SINCE                 LISTED  CONNECTED  AGENT  APPLIED  TOOK  WAITS  PARKED  EXPORTS  SLICES  JOINED-AT  KEYS              KEYS-END
east         live   2023-11-14T22:13:20Z  yes     yes        0.1.0  11       0.1s  -      2 (5m)  3        0       1          abababababababab  2026-01-02T03:04:05Z
a-long-name  live   2023-11-14T22:13:20Z  yes     no         0.1.0  -        -     -      -       0        0       1          abababababababab  -
2 members at revision 12 of epoch 1000-07, says hub h1 (0.1.0)
1 revoked key: --output json shows it
east has a duplicate identity: a second key claims it (--output json shows the key)
";
        assert_eq!(text, expected);
    }

    #[test]
    fn while_an_authority_is_replaced_the_list_says_how_many_are_left() {
        let key = |issuer: &str, seconds| v1::MemberKey {
            issuer: issuer.to_owned(),
            not_after: Some(Timestamp { seconds, nanos: 0 }),
            ..Default::default()
        };
        let member = |keys| v1::MemberState {
            keys,
            ..Default::default()
        };
        let (old, new) = ("CN=Tributary joining 1", "CN=Tributary joining 2");
        let mut response = v1::ListMembersResponse {
            members: vec![
                member(vec![key(old, 1_700_000_000), key(new, 1_767_323_045)]),
                member(vec![key(old, 1_700_000_060)]),
                member(vec![key(old, 1_700_000_000)]),
            ],
            ..Default::default()
        };
        let text = members(&response, Output::Text);
        let expected = "2 members with certificates of CN=Tributary joining 1, the last ends 2023-11-14T22:14:20Z\n\
                        1 member with certificates of CN=Tributary joining 2, the last ends 2026-01-02T03:04:05Z\n";
        assert!(text.ends_with(expected), "{text}");
        response.members.truncate(1);
        assert!(!members(&response, Output::Text).contains("with certificates"));
    }

    #[test]
    fn what_is_wrong_in_a_member_is_told_below_the_table_and_in_json() {
        let condition = |condition_type: &str, status: &str, reason: &str| v1::ProfileCondition {
            r#type: condition_type.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: "Why.".to_owned(),
            last_transition_time: None,
        };
        let member = v1::MemberState {
            cluster: "east".to_owned(),
            health: vec![
                condition("ControlPlaneHealthy", "False", "EtcdUnhealthy"),
                condition("AllNodesHealthy", "True", "NodesReady"),
            ],
            api_servers: vec![v1::ApiServer {
                host: "m1".to_owned(),
                state: v1::ApiServerState::ApiServerDead.into(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let response = v1::ListMembersResponse {
            members: vec![member],
            ..Default::default()
        };
        let table = members(&response, Output::Text);
        let told = "east is not healthy: ControlPlaneHealthy is False, EtcdUnhealthy: Why.\n";
        assert!(table.ends_with(told), "{table}");
        let document: Value = serde_json::from_str(&members(&response, Output::Json)).expect("JSON");
        let member = &document["members"][0];
        assert_eq!(member["health"][0]["reason"], "EtcdUnhealthy");
        assert_eq!(member["apiServers"][0]["state"], "dead");
    }
}

//! Answers as people and as programs read them: columns that align, or one JSON document.

use prost_types::Timestamp;
use proto::v1;
use serde_json::{Value, json};

/// Digits of a key fingerprint that a column shows; JSON has all of them.
const KEY_DIGITS: usize = 16;
/// Longest version that a column shows, in characters; JSON has all of it.
const VERSION_CHARACTERS_MAX: usize = 24;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Output {
    /// Columns for people
    Text,
    /// One JSON document for programs
    Json,
}

/// The members of a clusterset.
pub(super) fn members(response: &v1::ListMembersResponse, output: Output) -> String {
    if output == Output::Json {
        let members: Vec<Value> = response.members.iter().map(member_json).collect();
        let revoked: Vec<Value> = response.revoked_keys.iter().map(revoked_json).collect();
        let document = json!({
            "epoch": response.epoch,
            "revision": response.revision,
            "loss": response.loss.as_ref().map(loss_json),
            "members": members,
            "revokedKeys": revoked,
        });
        return format!("{document:#}\n");
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
    let rows = response.members.iter().map(|member| {
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
    });
    let table = columns(
        std::iter::once(header.map(str::to_owned).to_vec())
            .chain(rows)
            .collect(),
    );
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
                "{} is a duplicate identity: another key came beside its own, --output json shows it\n",
                member.cluster
            )
        })
        .collect();
    let lost = lost(response);
    format!("{table}{members} at revision {revision} of epoch {epoch}{said_by}\n{revoked}{contested}{lost}")
}

/// Recorded events, and how to go on.
pub(super) fn events(response: &v1::ListEventsResponse, output: Output) -> String {
    let v1::ListEventsResponse {
        epoch,
        events,
        next_revision,
        head_revision,
        from_revision,
        ..
    } = response;
    if output == Output::Json {
        let shown: Vec<Value> = events.iter().map(event_json).collect();
        let document = json!({
            "epoch": epoch,
            "fromRevision": from_revision,
            "headRevision": head_revision,
            "nextRevision": next_revision,
            "events": shown,
        });
        return format!("{document:#}\n");
    }
    let header = ["REVISION", "RECORDED", "CLUSTER", "KIND", "ABOUT", "CHANGED-BY"];
    let rows = events.iter().map(|event| {
        vec![
            event.revision.to_string(),
            time(event.recorded_at.as_ref()),
            or_dash(&event.cluster),
            event.kind.clone(),
            or_dash(&about(event)),
            or_dash(&who(event)),
        ]
    });
    let header = std::iter::once(header.map(str::to_owned).to_vec());
    let table = columns(header.chain(rows).collect());
    let count = match events.len() {
        1 => "1 event".to_owned(),
        more => format!("{more} events"),
    };
    let said_by = said_by(response.answered_by.as_ref());
    let place =
        format!("{count} from revision {from_revision} on; the head of epoch {epoch} is {head_revision}");
    let more = match next_revision {
        0 => String::new(),
        next => format!("More: --from {next}\n"),
    };
    format!("{table}{place}{said_by}\n{more}")
}

/// The outcome of a decision, or of its dry run with the command that confirms it.
pub(super) fn decision(response: &v1::MemberDecisionResponse, confirm: &str, output: Output) -> String {
    let v1::MemberDecisionResponse {
        done,
        revision,
        effects,
        nothing_to_do,
        ..
    } = response;
    if output == Output::Json {
        let mut document = json!({
            "done": done,
            "revision": revision,
            "effects": effects,
            "nothingToDo": nothing_to_do,
        });
        if !done && !nothing_to_do {
            document["confirm"] = confirm.into();
        }
        return format!("{document:#}\n");
    }
    let effects: String = effects.iter().map(|effect| format!("  * {effect}\n")).collect();
    match (done, revision) {
        (false, _) if *nothing_to_do => {
            format!("Nothing has changed, and --confirm would change nothing:\n{effects}")
        }
        (false, _) => format!("Nothing has changed yet. With --confirm:\n{effects}To do it:\n  {confirm}\n"),
        (true, 0) => format!("Nothing was recorded:\n{effects}"),
        (true, revision) => format!("Done, recorded at revision {revision}:\n{effects}"),
    }
}

/// The policy in force: the document itself, so that it can be changed and applied again.
pub(super) fn policy(response: &v1::GetPolicyResponse, output: Output) -> String {
    let v1::GetPolicyResponse {
        document,
        revision,
        operator,
        applied_at,
        ..
    } = response;
    if output == Output::Json {
        let document = json!({
            "document": document,
            "revision": revision,
            "operator": operator,
            "appliedAt": time(applied_at.as_ref()),
        });
        return format!("{document:#}\n");
    }
    let said = match revision {
        0 => "# No policy was applied: this one says what holds without.\n".to_owned(),
        revision => format!(
            "# Applied by {operator} at {}, revision {revision}.\n",
            time(applied_at.as_ref())
        ),
    };
    format!(
        "{said}{document}{}",
        if document.ends_with('\n') { "" } else { "\n" }
    )
}

/// What becomes of the members that are lost, if any is.
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
        ("retain", _) => "its endpoints stay, as the policy says".to_owned(),
        (_, Some(since)) => format!(
            "nothing is withdrawn since {}, for {} or more lost at one time look like a fault of this hub's: look at \
             its network, or evict who is gone",
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
        "stateSince": time(member.state_since.as_ref()),
        "listed": member.listed,
        "connected": member.connected,
        "agentVersion": member.agent_version,
        "applied": member.applied.as_ref().map(applied_json),
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

fn event_json(event: &v1::Event) -> Value {
    json!({
        "revision": event.revision,
        "recordedAt": time(event.recorded_at.as_ref()),
        "cluster": event.cluster,
        "incarnation": event.incarnation,
        "session": event.session,
        "kind": event.kind,
        "about": about(event),
        "changedBy": event.changed_by.as_ref().map(|by| {
            json!({ "manager": by.manager, "at": time(by.at.as_ref()) })
        }),
        "decidedBy": (!event.decided_by.is_empty()).then_some(&event.decided_by),
        "hash": event.hash,
    })
}

/// Who decided, or who changed the object that the event is about. A decision is never a member's word, nor the reverse.
fn who(event: &v1::Event) -> String {
    if event.decided_by.is_empty() {
        event.changed_by.as_ref().map(changed_by).unwrap_or_default()
    } else {
        format!("operator {}", event.decided_by)
    }
}

/// Who wrote last, as the member's API server noted it, and when by its clock.
fn changed_by(by: &v1::ChangedBy) -> String {
    format!("{} at {}", by.manager, time(by.at.as_ref()))
}

/// What an event is about: a service, a slice of it, a property, or a key.
fn about(event: &v1::Event) -> String {
    use v1::fact::Fact;
    let service = |key: Option<&v1::ServiceKey>| {
        let key = key.map(|key| format!("{}/{}", key.namespace, key.name));
        key.unwrap_or_default()
    };
    let slice = |key: Option<&v1::EndpointSliceKey>| {
        let named = key.map(|key| format!("{} {}", service(key.service.as_ref()), key.name));
        named.unwrap_or_default()
    };
    match event.fact.as_ref().and_then(|fact| fact.fact.as_ref()) {
        Some(Fact::ExportUpserted(export)) => service(export.service.as_ref()),
        Some(Fact::ExportRemoved(key)) => service(Some(key)),
        Some(Fact::EndpointSliceUpserted(upserted)) => slice(upserted.key.as_ref()),
        Some(Fact::EndpointSliceRemoved(key)) => slice(Some(key)),
        Some(Fact::PrecedenceContested(contested)) => {
            contest(contested, &service(contested.service.as_ref()))
        }
        Some(Fact::PrecedenceReleased(released)) => service(released.service.as_ref()),
        Some(Fact::MemberKeyRevoked(revoked)) => key_named(&revoked.key_fingerprint),
        Some(Fact::MemberRekeyed(rekeyed)) => key_named(&rekeyed.key_fingerprint),
        Some(Fact::OperatorKeyRevoked(revoked)) => {
            let role = if revoked.reader { "reader" } else { "operator" };
            format!(
                "{} of {role} {}",
                key_named(&revoked.key_fingerprint),
                revoked.name
            )
        }
        Some(Fact::JoinTokenCreated(created)) => {
            format!("{} for {}", token_named(&created.token_hash), created.cluster_ids)
        }
        Some(Fact::JoinTokenUsed(used)) => {
            format!(
                "{} with {}",
                key_named(&used.key_fingerprint),
                token_named(&used.token_hash)
            )
        }
        Some(Fact::JoinTokenRevoked(revoked)) => token_named(&revoked.token_hash),
        Some(Fact::ClusterPropertyUpserted(property)) => property.name.clone(),
        Some(Fact::ClusterPropertyRemoved(property)) => property.name.clone(),
        _ => String::new(),
    }
}

/// A key by its first digits; empty: none.
fn key_named(fingerprint: &str) -> String {
    if fingerprint.is_empty() {
        return String::new();
    }
    let short: String = fingerprint.chars().take(KEY_DIGITS).collect();
    format!("key {short}")
}

/// A token by its name.
fn token_named(hash: &[u8]) -> String {
    let hash = hash.try_into().map(shared::model::TokenHash);
    hash.map_or_else(|_| String::new(), |hash| format!("token {}", hash.id()))
}

/// Both sides of a dispute over the first place.
fn contest(contested: &v1::PrecedenceContested, service: &str) -> String {
    let cluster =
        |claim: Option<&v1::PrecedenceClaim>| claim.map(|claim| claim.cluster.clone()).unwrap_or_default();
    let standing = cluster(contested.standing.as_ref());
    let challenger = cluster(contested.challenger.as_ref());
    if contested.held {
        format!("{service}: {standing} held against {challenger}")
    } else {
        format!("{service}: {challenger} before {standing}")
    }
}

/// The end of a line that says who answered.
fn said_by(answered_by: Option<&v1::AnsweredBy>) -> String {
    let said = answered_by.map(|by| format!(", says hub {} ({})", by.hub, version(&by.hub_version)));
    said.unwrap_or_default()
}

/// A version as a column shows it: what a member states of itself is cut.
fn version(text: &str) -> String {
    let shown: String = text.chars().take(VERSION_CHARACTERS_MAX).collect();
    or_dash(&shown)
}

fn applied(member: &v1::MemberState, shown: impl Fn(&v1::MemberApplied) -> Option<String>) -> String {
    member
        .applied
        .as_ref()
        .and_then(shown)
        .unwrap_or_else(|| "-".to_owned())
}

fn parked(applied: &v1::MemberApplied) -> String {
    match applied.oldest_parked_millis {
        Some(millis) => format!("{} ({})", applied.parked, span(millis)),
        None => applied.parked.to_string(),
    }
}

/// A time span as a person would say it.
fn span(millis: u64) -> String {
    match millis / 1_000 {
        seconds @ 0..60 => format!("{seconds}.{}s", millis % 1_000 / 100),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-" } else { text }.to_owned()
}

fn state(member: &v1::MemberState) -> String {
    if member.withdrawn {
        return "withdrawn".to_owned();
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

fn is_contested(member: &v1::MemberState) -> bool {
    member.keys.iter().any(|key| key.contested)
}

/// When the last certificate ends that was seen of a member.
fn keys_end(member: &v1::MemberState) -> String {
    let ends = member.keys.iter().filter_map(|key| key.not_after.as_ref());
    time(ends.max_by_key(|at| at.seconds))
}

pub(super) fn time(at: Option<&Timestamp>) -> String {
    let at = at.and_then(|at| jiff::Timestamp::new(at.seconds, at.nanos).ok());
    at.map_or_else(|| "-".to_owned(), |at| format!("{at:.0}"))
}

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

/// Rows as aligned columns, two spaces apart, nothing behind the last.
fn columns(rows: Vec<Vec<String>>) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..count)
        .map(|column| width(column).unwrap_or_default())
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        let line: Vec<String> = cells.collect();
        format!("{}\n", line.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_names_who_changed_the_object() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let event = |revision, changed_by| v1::Event {
            revision,
            recorded_at: at(1_700_000_000),
            cluster: "east".to_owned(),
            kind: "health_reported".to_owned(),
            changed_by,
            ..v1::Event::default()
        };
        let by = v1::ChangedBy {
            manager: "kubectl-edit".to_owned(),
            at: at(1_699_999_999),
        };
        let response = v1::ListEventsResponse {
            epoch: "1000-07".to_owned(),
            events: vec![event(1, Some(by)), event(2, None)],
            head_revision: 2,
            from_revision: 1,
            ..Default::default()
        };
        let expected = "\
REVISION  RECORDED              CLUSTER  KIND             ABOUT  CHANGED-BY
1         2023-11-14T22:13:20Z  east     health_reported  -      kubectl-edit at 2023-11-14T22:13:19Z
2         2023-11-14T22:13:20Z  east     health_reported  -      -
2 events from revision 1 on; the head of epoch 1000-07 is 2
";
        assert_eq!(events(&response, Output::Text), expected);
        let document: Value = serde_json::from_str(&events(&response, Output::Json)).unwrap();
        let by = json!({ "manager": "kubectl-edit", "at": "2023-11-14T22:13:19Z" });
        assert_eq!(document["events"][0]["changedBy"], by);
        assert_eq!(document["events"][1]["changedBy"], Value::Null);
    }

    #[test]
    fn a_decision_names_who_decided_and_which_key() {
        let revoked = v1::OperatorKeyRevoked {
            operator: "alice".to_owned(),
            name: "dashboard".to_owned(),
            key_fingerprint: "ab".repeat(32),
            reader: true,
        };
        let event = v1::Event {
            revision: 3,
            kind: "operator_key_revoked".to_owned(),
            fact: Some(v1::Fact {
                fact: Some(v1::fact::Fact::OperatorKeyRevoked(revoked)),
            }),
            decided_by: "alice".to_owned(),
            ..Default::default()
        };
        let response = v1::ListEventsResponse {
            events: vec![event],
            ..Default::default()
        };
        let text = events(&response, Output::Text);
        let about = "key abababababababab of reader dashboard  operator alice";
        assert!(text.contains(about), "{text}");
        let document: Value = serde_json::from_str(&events(&response, Output::Json)).unwrap();
        assert_eq!(document["events"][0]["decidedBy"], "alice");
    }

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
east is a duplicate identity: another key came beside its own, --output json shows it
";
        assert_eq!(text, expected);
    }
}

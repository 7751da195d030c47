//! Events of the log as a table or as JSON.

use proto::v1;
use serde_json::{Value, json};

use super::{KEY_DIGITS, or_dash, said_by, time};
use crate::output::{Output, table};

/// Prints recorded events, and the way to the next page.
pub(crate) fn events(response: &v1::ListEventsResponse, output: Output) -> String {
    let v1::ListEventsResponse {
        epoch,
        events,
        next_revision,
        head_revision,
        from_revision,
        epochs,
        ..
    } = response;
    if output.is_document() {
        let shown: Vec<Value> = events.iter().map(event_json).collect();
        let document = json!({
            "epoch": epoch,
            "fromRevision": from_revision,
            "headRevision": head_revision,
            "nextRevision": next_revision,
            "events": shown,
        });
        return output.document(&document);
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
    let table = table(&header.chain(rows).collect::<Vec<_>>(), output);
    let count = match events.len() {
        1 => "1 event".to_owned(),
        more => format!("{more} events"),
    };
    let said_by = said_by(response.answered_by.as_ref());
    let place = match head_revision {
        // A page of an earlier epoch, whose end was not reached.
        0 if *next_revision > 0 => format!("{count} from revision {from_revision} of epoch {epoch} on"),
        head => format!("{count} from revision {from_revision} on; the head of epoch {epoch} is {head}"),
    };
    let more = match next_revision {
        0 => String::new(),
        next if epochs.is_empty() => format!("More: --from {next}\n"),
        next => format!("More: --epoch {epoch} --from {next}\n"),
    };
    format!("{table}{place}{said_by}\n{more}")
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

/// The operator who decided, or the writer of the object that the event is about. An event has one of the two.
fn who(event: &v1::Event) -> String {
    if event.decided_by.is_empty() {
        event.changed_by.as_ref().map(changed_by).unwrap_or_default()
    } else {
        format!("operator {}", event.decided_by)
    }
}

/// The last writer and its time, as the member's API server noted them.
fn changed_by(by: &v1::ChangedBy) -> String {
    format!("{} at {}", by.manager, time(by.at.as_ref()))
}

/// The subject of an event: a service, a slice of it, a property, or a key.
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
        Some(Fact::MemberKeyCertified(certified)) => format!(
            "{} over a session of {}",
            key_named(&certified.key_fingerprint),
            key_named(&certified.certified_by)
        ),
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
        Some(Fact::BrakeEngaged(engaged)) => {
            format!("took back {} of {} exports", engaged.removed, engaged.exports)
        }
        Some(Fact::SelfPreservationEntered(entered)) => {
            format!("{} of {} members are lost", entered.lost, entered.members)
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

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

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
}

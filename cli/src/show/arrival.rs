//! The arrival of an import: compares the position that each member reports with the revisions of the import. It asks
//! nobody.

use std::collections::BTreeMap;

use proto::v1;
use shared::model::ServiceKey;

use crate::operate::print::span;

/// The progress of an import in one member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrival {
    /// The member.
    pub(super) cluster: String,
    /// One word.
    pub(super) state: &'static str,
    /// The reason, or what is waited for; empty: there is nothing to say.
    pub(super) detail: String,
}

/// The revision that a member must have applied to hold the import and its endpoints; `None` if nothing is imported.
pub(super) fn wanted(explained: &v1::ExplainResponse) -> Option<u64> {
    let import = explained.import.as_ref()?.revision;
    let slices = explained
        .candidates
        .iter()
        .flat_map(|candidate| &candidate.slices);
    slices.map(|slice| slice.revision).chain([import]).max()
}

/// Why members lack the exports of a service, as the ServiceExports' condition says: by cluster.
pub(super) fn lacking(
    exports: &[v1::RecordedExport],
    service: &ServiceKey,
) -> BTreeMap<String, v1::LackReason> {
    let is_it = |recorded: &&v1::RecordedExport| {
        let export = recorded.export.as_ref();
        let key = export.and_then(|export| export.service.as_ref());
        key.is_some_and(|key| *key.namespace == *service.namespace && *key.name == *service.name)
    };
    let arrivals = exports
        .iter()
        .filter(is_it)
        .filter_map(|one| one.arrival.as_ref());
    let lacking = arrivals.flat_map(|arrival| &arrival.lacking);
    lacking.map(|one| (one.cluster.clone(), one.reason())).collect()
}

/// The progress of the import in each member, or in one.
pub(super) fn arrivals(
    (explained, lacking): (&v1::ExplainResponse, &BTreeMap<String, v1::LackReason>),
    members: &[v1::MemberState],
    only: Option<&str>,
) -> Vec<Arrival> {
    let Some(wanted) = wanted(explained) else {
        return Vec::new();
    };
    let members = members
        .iter()
        .filter(|member| only.is_none_or(|only| only == member.cluster));
    members
        .filter_map(|member| arrival((explained, lacking), member, wanted))
        .collect()
}

fn arrival(
    (explained, lacking): (&v1::ExplainResponse, &BTreeMap<String, v1::LackReason>),
    member: &v1::MemberState,
    wanted: u64,
) -> Option<Arrival> {
    use v1::SourceState as State;
    if matches!(
        member.state(),
        State::SourceLeft | State::SourceEvicted | State::SourceForgotten
    ) {
        return None;
    }
    let told = |state, detail| {
        Some(Arrival {
            cluster: member.cluster.clone(),
            state,
            detail,
        })
    };
    if let Some(withheld) = explained
        .withheld
        .iter()
        .find(|withheld| withheld.cluster == member.cluster)
    {
        return told("withheld", withheld.message.clone());
    }
    match lacking.get(&member.cluster) {
        Some(v1::LackReason::LackNoNamespace) => {
            return told(
                "no namespace",
                "create the namespace there to import it".to_owned(),
            );
        }
        Some(v1::LackReason::LackNotWritten) => {
            return told("not written", "its agent's log says why".to_owned());
        }
        _ => {}
    }
    let applied = member.applied.as_ref();
    // A revision that does not concern a member may not be told to it: then nothing waits.
    let nothing_waits = member.connected && applied.is_some_and(|applied| applied.waits_millis.is_none());
    match applied.and_then(|applied| applied.revision) {
        Some(revision) if revision >= wanted || nothing_waits => told("applied", parked(applied)),
        Some(revision) => told(
            "waits",
            waits(
                member,
                &format!("it applied revision {revision}, {wanted} is needed"),
            ),
        ),
        None => told(
            "unknown",
            waits(member, "its agent has not reported since the hub started"),
        ),
    }
}

/// The agent counts services that it cannot apply, and does not name them.
fn parked(applied: Option<&v1::MemberApplied>) -> String {
    match applied.map_or(0, |applied| applied.parked) {
        0 => String::new(),
        1 => "1 service could not be applied there; its agent's log names it".to_owned(),
        more => format!("{more} services could not be applied there; its agent's log names them"),
    }
}

fn waits(member: &v1::MemberState, what: &str) -> String {
    let since = member.applied.as_ref().and_then(|applied| applied.waits_millis);
    let since = since
        .map(|millis| format!(", for {}", span(millis)))
        .unwrap_or_default();
    let session = if member.connected {
        ""
    } else {
        ", and it is not connected"
    };
    format!("{what}{since}{session}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained() -> v1::ExplainResponse {
        v1::ExplainResponse {
            import: Some(v1::RecordedImport {
                revision: 10,
                ..Default::default()
            }),
            candidates: vec![v1::Candidate {
                slices: vec![v1::CandidateSlice {
                    revision: 12,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            withheld: vec![v1::WithheldImport {
                cluster: "south".into(),
                message: "no rule allows it".into(),
            }],
            ..Default::default()
        }
    }

    fn member(cluster: &str, revision: Option<u64>, parked: u32) -> v1::MemberState {
        v1::MemberState {
            cluster: cluster.into(),
            state: v1::SourceState::SourceLive.into(),
            connected: true,
            applied: Some(v1::MemberApplied {
                revision,
                parked,
                waits_millis: Some(5_000),
                ..Default::default()
            }),
            ..Default::default()
        }
    }

    #[test]
    fn an_import_arrived_where_its_newest_slice_is_applied() {
        let mut gone = member("gone", Some(99), 0);
        gone.state = v1::SourceState::SourceEvicted.into();
        let mut away = member("away", None, 0);
        (away.connected, away.applied) = (false, None);
        let mut idle = member("idle", Some(3), 0);
        idle.applied.as_mut().expect("it is there").waits_millis = None;
        let members = [
            member("east", Some(12), 0),
            idle,
            member("north", Some(11), 0),
            member("south", Some(12), 0),
            member("west", Some(13), 2),
            member("narrow", Some(13), 0),
            away,
            gone,
        ];
        let lacking = BTreeMap::from([("narrow".to_owned(), v1::LackReason::LackNoNamespace)]);
        let told: Vec<String> = arrivals((&explained(), &lacking), &members, None)
            .into_iter()
            .map(|at| {
                format!("{} {} {}", at.cluster, at.state, at.detail)
                    .trim_end()
                    .to_owned()
            })
            .collect();
        let expected = [
            "east applied",
            "idle applied",
            "north waits it applied revision 11, 12 is needed, for 5.0s",
            "south withheld no rule allows it",
            "west applied 2 services could not be applied there; its agent's log names them",
            "narrow no namespace create the namespace there to import it",
            "away unknown its agent has not reported since the hub started, and it is not connected",
        ];
        assert_eq!(told, expected);
        assert_eq!(
            arrivals((&explained(), &lacking), &members, Some("east")).len(),
            1
        );
    }

    #[test]
    fn nothing_arrives_where_nothing_is_imported() {
        let nothing = v1::ExplainResponse::default();
        let lacking = BTreeMap::new();
        assert!(arrivals((&nothing, &lacking), &[member("east", Some(12), 0)], None).is_empty());
    }
}

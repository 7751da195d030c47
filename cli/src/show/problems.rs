//! Problems of a clusterset, each with the next step. It asks nobody.

use std::time::Duration;

use proto::v1;
use serde::Serialize;
use shared::model::{ServiceKey, UnixMillis, advice};

use crate::operate::print::{is_contested, span, time};

/// A change that a member was sent and has not applied for longer than this is a problem, in milliseconds.
const WAITS_MILLIS_MAX: u64 = 30_000;
/// A certificate that ends within this time is a problem, unless its agent renews it.
const ENDS_SOON: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    /// The member or the export.
    pub(super) about: String,
    /// The state that is not as it should be.
    pub(super) what: String,
    /// The next step.
    pub(super) next: String,
}

fn problem(about: &str, what: impl Into<String>, next: impl Into<String>) -> Problem {
    Problem {
        about: about.to_owned(),
        what: what.into(),
        next: next.into(),
    }
}

/// Problems of members and exports, members first.
pub(super) fn problems(
    members: &v1::ListMembersResponse,
    exports: &[v1::RecordedExport],
    now: UnixMillis,
) -> Vec<Problem> {
    let mut found: Vec<Problem> = self_preservation(members).into_iter().collect();
    found.extend(members.members.iter().flat_map(|member| of_member(member, now)));
    found.extend(exports.iter().flat_map(of_export));
    found
}

fn self_preservation(members: &v1::ListMembersResponse) -> Option<Problem> {
    let since = members.loss.as_ref()?.self_preservation_since.as_ref()?;
    Some(problem(
        "clusterset",
        format!(
            "so many members are lost that the hub withdraws nothing, since {}",
            time(Some(since))
        ),
        "check the network of the hub; evict the members that are gone, or `member release --self-preservation`",
    ))
}

fn of_member(member: &v1::MemberState, now: UnixMillis) -> Vec<Problem> {
    use v1::SourceState as State;
    let cluster = &*member.cluster;
    if matches!(
        member.state(),
        State::SourceLeft | State::SourceEvicted | State::SourceForgotten
    ) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let since = time(member.state_since.as_ref());
    match member.state() {
        State::SourceLost if member.withdrawn => found.push(problem(
            cluster,
            format!("lost since {since}; its endpoints are withdrawn wherever another cluster serves"),
            "look at the agent and at the network; a cluster that is gone for good: `member evict`",
        )),
        State::SourceLost => found.push(problem(
            cluster,
            format!("lost since {since}"),
            "look at the agent and at the network; a cluster that is gone for good: `member evict`",
        )),
        _ if !member.connected => found.push(problem(
            cluster,
            format!(
                "no session ({} since {since})",
                crate::operate::print::state(member)
            ),
            "run the doctor of its agent",
        )),
        _ if !member.listed => found.push(problem(
            cluster,
            "it has not yet listed its exports to this hub",
            "wait; if it lasts, read the log of its agent",
        )),
        _ => {}
    }
    found.extend(applying(member));
    found.extend(identity(member, now));
    found.extend(decisions(member));
    found.extend(health(member));
    found
}

fn applying(member: &v1::MemberState) -> Vec<Problem> {
    let Some(applied) = &member.applied else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if let Some(waits) = applied.waits_millis.filter(|waits| *waits > WAITS_MILLIS_MAX) {
        found.push(problem(
            &member.cluster,
            format!("a change waits for {} to be applied", span(waits)),
            "read the log of its agent",
        ));
    }
    if applied.parked > 0 {
        found.push(problem(
            &member.cluster,
            format!("services that cannot be applied: {}", applied.parked),
            "`kubectl get serviceimports -A` there and the log of its agent name them",
        ));
    }
    found
}

fn identity(member: &v1::MemberState, now: UnixMillis) -> Vec<Problem> {
    let mut found = Vec::new();
    if is_contested(member) {
        found.push(problem(
            &member.cluster,
            "a second key came with its identity",
            "find out whose it is; then `member rekey` or `member revoke-key`",
        ));
    }
    let ends = member
        .keys
        .iter()
        .filter(|key| !key.contested)
        .filter_map(|key| key.not_after.as_ref());
    if let Some(end) = ends.max_by_key(|end| end.seconds) {
        let seconds_left = end
            .seconds
            .saturating_sub(i64::try_from(now.0 / 1_000).unwrap_or(i64::MAX));
        let soon = i64::try_from(ENDS_SOON.as_secs()).unwrap_or(i64::MAX);
        if seconds_left < soon {
            found.push(problem(
                &member.cluster,
                format!("its certificate ends at {}", time(Some(end))),
                "see that its agent renews it, or issue another one",
            ));
        }
    }
    found
}

fn decisions(member: &v1::MemberState) -> Vec<Problem> {
    let mut found = Vec::new();
    if let Some(leaving) = &member.leaving {
        found.push(problem(
            &member.cluster,
            format!(
                "it leaves at {}, as {} decided",
                time(leaving.until.as_ref()),
                leaving.operator
            ),
            "`member stay` cancels that until then",
        ));
    }
    if let Some(since) = &member.brake_since {
        found.push(problem(
            &member.cluster,
            format!(
                "{} exports are on hold since {}: most were removed at once",
                member.held_exports,
                time(Some(since))
            ),
            "bring the ServiceExports back, or accept the removal with `member release`",
        ));
    }
    found
}

fn health(member: &v1::MemberState) -> Vec<Problem> {
    let failed = member
        .health
        .iter()
        .filter(|condition| condition.status == "False");
    let told = failed.map(|condition| {
        problem(
            &member.cluster,
            format!(
                "{} is False, {}: {}",
                condition.r#type, condition.reason, condition.message
            ),
            "look at its control plane and its nodes",
        )
    });
    told.collect()
}

fn of_export(export: &v1::RecordedExport) -> Vec<Problem> {
    let service = export.export.as_ref().and_then(|export| export.service.as_ref());
    let service = service.and_then(|key| ServiceKey::new(&key.namespace, &key.name).ok());
    let Some(service) = service else {
        return Vec::new();
    };
    let about = format!("{service} of {}", export.cluster);
    let explain = || format!("`{}`", advice::explain(&service));
    let mut found = Vec::new();
    if !export.denial_reason.is_empty() {
        let what = format!("refused, {}: {}", export.denial_reason, export.denial_message);
        found.push(problem(&about, what, explain()));
    }
    if !export.left_out.is_empty() {
        found.push(problem(&about, export.left_out.clone(), explain()));
    }
    found.extend(export.conflicts.iter().map(|conflict| {
        let reason = conflict.reason().as_str_name();
        problem(&about, format!("{reason}: {}", conflict.message), explain())
    }));
    found
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

    fn at(seconds_from_now: i64) -> Option<Timestamp> {
        Some(Timestamp {
            seconds: 1_700_000_000 + seconds_from_now,
            nanos: 0,
        })
    }

    fn live(cluster: &str) -> v1::MemberState {
        v1::MemberState {
            cluster: cluster.into(),
            state: v1::SourceState::SourceLive.into(),
            connected: true,
            listed: true,
            keys: vec![v1::MemberKey {
                not_after: at(90 * 86_400),
                ..Default::default()
            }],
            ..Default::default()
        }
    }

    fn found(member: v1::MemberState) -> Vec<String> {
        let members = v1::ListMembersResponse {
            members: vec![member],
            ..Default::default()
        };
        let found = problems(&members, &[], NOW);
        found
            .into_iter()
            .map(|problem| format!("{}: {}", problem.about, problem.what))
            .collect()
    }

    #[test]
    fn a_member_that_does_well_is_no_problem_nor_is_one_that_is_gone() {
        assert_eq!(found(live("east")), Vec::<String>::new());
        let gone = v1::MemberState {
            state: v1::SourceState::SourceEvicted.into(),
            ..Default::default()
        };
        assert_eq!(found(gone), Vec::<String>::new());
    }

    #[test]
    fn each_problem_of_a_member_is_found() {
        let with = |change: fn(&mut v1::MemberState)| {
            let mut member = live("west");
            change(&mut member);
            found(member)
        };
        let one = |change, begins: &str| {
            let found = with(change);
            assert!(
                found.len() == 1 && found[0].starts_with(begins),
                "{begins}: {found:?}"
            );
        };
        one(|west| west.connected = false, "west: no session (live since -)");
        one(|west| west.listed = false, "west: it has not yet listed");
        one(
            |west| west.state = v1::SourceState::SourceLost.into(),
            "west: lost since -",
        );
        one(
            |west| (west.state, west.withdrawn) = (v1::SourceState::SourceLost.into(), true),
            "west: lost since -; its endpoints are withdrawn",
        );
        one(
            |west| west.keys[0].not_after = at(86_400),
            "west: its certificate ends at 2023-11-15",
        );
        one(
            |west| west.leaving = Some(v1::Leaving::default()),
            "west: it leaves at",
        );
        one(
            |west| (west.brake_since, west.held_exports) = (at(0), 7),
            "west: 7 exports are on hold since 2023-11-14",
        );
        one(
            |west| {
                let contested = v1::MemberKey {
                    contested: true,
                    ..Default::default()
                };
                west.keys.push(contested);
            },
            "west: a second key",
        );
        one(
            |west| {
                west.applied = Some(v1::MemberApplied {
                    waits_millis: Some(31_000),
                    ..Default::default()
                });
            },
            "west: a change waits for 31.0s",
        );
        one(
            |west| {
                west.applied = Some(v1::MemberApplied {
                    parked: 2,
                    ..Default::default()
                })
            },
            "west: services that cannot be applied: 2",
        );
    }

    #[test]
    fn exports_that_are_denied_or_in_conflict_are_found() {
        let export = v1::RecordedExport {
            cluster: "east".into(),
            export: Some(v1::Export {
                service: Some(v1::ServiceKey {
                    namespace: "shop".into(),
                    name: "cart".into(),
                }),
                ..Default::default()
            }),
            denial_reason: "PolicyDenied".into(),
            conflicts: vec![v1::Conflict {
                reason: v1::ConflictReason::PortConflict.into(),
                message: "ports differ".into(),
            }],
            ..Default::default()
        };
        let found = problems(&v1::ListMembersResponse::default(), &[export], NOW);
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|problem| problem.about == "shop/cart of east"));
        assert!(
            found
                .iter()
                .all(|problem| problem.next == "`tributary explain shop/cart`")
        );
    }

    #[test]
    fn self_preservation_comes_first() {
        let members = v1::ListMembersResponse {
            loss: Some(v1::LossSettings {
                self_preservation_since: at(0),
                ..Default::default()
            }),
            members: vec![v1::MemberState {
                connected: false,
                ..live("west")
            }],
            ..Default::default()
        };
        let found = problems(&members, &[], NOW);
        assert_eq!(found[0].about, "clusterset");
        assert_eq!(found.len(), 2);
    }
}

//! The lines of `member list` about members that leave.

use proto::v1;
use serde_json::{Value, json};

use super::time;

/// A line for each of them.
pub(super) fn leaving(response: &v1::ListMembersResponse) -> String {
    response.members.iter().filter_map(line).collect()
}

fn line(member: &v1::MemberState) -> Option<String> {
    let leaving = member.leaving.as_ref()?;
    let (cluster, ends) = (
        &member.cluster,
        if leaving.evicts { "is evicted" } else { "leaves" },
    );
    Some(format!(
        "{cluster} {ends} at {}, as {} decided: its endpoints do not count where others have ready ones (member stay \
        {cluster} cancels that)\n",
        time(leaving.until.as_ref()),
        leaving.operator
    ))
}

/// The settings of a leaving member.
pub(super) fn settings(leaving: &v1::Leaving) -> Value {
    json!({
        "operator": leaving.operator,
        "since": time(leaving.since.as_ref()),
        "until": time(leaving.until.as_ref()),
        "evicts": leaving.evicts,
    })
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;

    #[test]
    fn who_is_to_leave_is_told_with_when_and_how_to_take_it_back() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let member = |evicts| v1::MemberState {
            cluster: "west".into(),
            leaving: Some(v1::Leaving {
                operator: "ada".into(),
                since: at(1_767_323_045),
                until: at(1_767_326_645),
                evicts,
            }),
            ..Default::default()
        };
        let response = v1::ListMembersResponse {
            members: vec![member(false), member(true), v1::MemberState::default()],
            ..Default::default()
        };
        let told = leaving(&response);
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert!(
            lines[0].starts_with("west leaves at 2026-01-02T04:04:05Z, as ada decided"),
            "{told}"
        );
        assert!(
            lines[1].starts_with("west is evicted at") && lines[1].contains("member stay west"),
            "{told}"
        );
        let json = settings(&member(true).leaving.unwrap());
        assert_eq!(json["evicts"], true);
        assert_eq!(json["until"], "2026-01-02T04:04:05Z");
    }
}

//! The lines of `member list` about the mass-withdrawal hold.

use proto::v1;
use serde_json::{Value, json};

use super::{span, time};

/// A line for each member on hold, and the rule.
pub(super) fn held(response: &v1::ListMembersResponse) -> String {
    let held: String = response.members.iter().filter_map(held_member).collect();
    match response.brake.as_ref().filter(|_| !held.is_empty()) {
        Some(brake) => held + &in_words(brake),
        None => held,
    }
}

fn held_member(member: &v1::MemberState) -> Option<String> {
    let since = member.brake_since.as_ref()?;
    let exports = match member.held_exports {
        1 => "1 export that it withdrew still counts".to_owned(),
        more => format!("{more} exports that it withdrew still count"),
    };
    Some(format!(
        "{} is on hold since {}: {exports}; look at its cluster, then create them again there, or accept the \
        withdrawal (member release {})\n",
        member.cluster,
        time(Some(since)),
        member.cluster
    ))
}

fn in_words(brake: &v1::BrakeSettings) -> String {
    if !brake.enabled {
        return "the policy puts no member on hold any more\n".to_owned();
    }
    let longest = match brake.longest_millis {
        Some(millis) => format!("for {} at most", span(millis)),
        None => "until an operator decides".to_owned(),
    };
    format!(
        "a member that withdraws {} exports and {} % of its own within {} is put on hold {longest}\n",
        brake.exports,
        brake.percent,
        span(brake.within_millis)
    )
}

/// The brake's settings.
pub(super) fn settings(brake: &v1::BrakeSettings) -> Value {
    json!({
        "enabled": brake.enabled,
        "exports": brake.exports,
        "percent": brake.percent,
        "withinMillis": brake.within_millis,
        "longestMillis": brake.longest_millis,
    })
}

#[cfg(test)]
mod tests {
    use prost_types::Timestamp;

    use super::*;

    #[test]
    fn who_is_held_stands_in_a_line_with_what_to_do_and_the_rule_after_all() {
        let member = |cluster: &str, held_exports| v1::MemberState {
            cluster: cluster.to_owned(),
            held_exports,
            brake_since: (held_exports > 0).then_some(Timestamp {
                seconds: 1_700_000_000,
                nanos: 0,
            }),
            ..Default::default()
        };
        let mut response = v1::ListMembersResponse {
            members: vec![member("east", 1), member("north", 0), member("west", 7)],
            brake: Some(v1::BrakeSettings {
                enabled: true,
                exports: 5,
                percent: 50,
                within_millis: 30_000,
                longest_millis: Some(7_200_000),
            }),
            ..Default::default()
        };
        let expected = "\
east is on hold since 2023-11-14T22:13:20Z: 1 export that it withdrew still counts; look at its cluster, then create them again there, or accept the withdrawal (member release east)
west is on hold since 2023-11-14T22:13:20Z: 7 exports that it withdrew still count; look at its cluster, then create them again there, or accept the withdrawal (member release west)
a member that withdraws 5 exports and 50 % of its own within 30.0s is put on hold for 2h at most
";
        assert_eq!(held(&response), expected);
        response.members.clear();
        assert_eq!(held(&response), "");
    }
}

//! The lines of `member list` about the mass-withdrawal hold.

use proto::v1;
use serde_json::{Value, json};

use super::{span, time};

/// A line for each member that is held, and when one is.
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
        1 => "1 export that it took back counts".to_owned(),
        more => format!("{more} exports that it took back count"),
    };
    Some(format!(
        "{} is held since {}: {exports} all the same; look at its cluster, then bring them back or let them go \
         (member release {})\n",
        member.cluster,
        time(Some(since)),
        member.cluster
    ))
}

fn in_words(brake: &v1::BrakeSettings) -> String {
    if !brake.enabled {
        return "members are not held any more, as the policy says\n".to_owned();
    }
    let longest = match brake.longest_millis {
        Some(millis) => format!("for {} at most", span(millis)),
        None => "until it is released".to_owned(),
    };
    format!(
        "a member is held that takes back {} exports and {} % of its own within {}, {longest}\n",
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
east is held since 2023-11-14T22:13:20Z: 1 export that it took back counts all the same; look at its cluster, then bring them back or let them go (member release east)
west is held since 2023-11-14T22:13:20Z: 7 exports that it took back count all the same; look at its cluster, then bring them back or let them go (member release west)
a member is held that takes back 5 exports and 50 % of its own within 30.0s, for 2h at most
";
        assert_eq!(held(&response), expected);
        response.members.clear();
        assert_eq!(held(&response), "");
    }
}

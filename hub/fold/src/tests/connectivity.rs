//! Transitions of live, suspect and lost; what they leave alone.

use model::{Fact, sync::SourceState};

use super::given::{cluster, export, exported, given_members, slice};
use crate::{Command, Connectivity, DerivedKey};

fn heard(to: Connectivity) -> Command {
    Command::Connectivity {
        cluster: cluster("east"),
        to,
    }
}

#[test]
fn only_transitions_are_events_and_silence_only_deepens() {
    use Connectivity::{Live, Lost, Suspect};
    let table = [
        (Live, Live, None),
        (Live, Suspect, Some(Fact::MemberSuspect)),
        (Live, Lost, Some(Fact::MemberLost)),
        (Suspect, Live, Some(Fact::MemberLive)),
        (Suspect, Suspect, None),
        (Suspect, Lost, Some(Fact::MemberLost)),
        (Lost, Live, Some(Fact::MemberLive)),
        (Lost, Suspect, None),
        (Lost, Lost, None),
    ];
    for (from, to, want) in table {
        let folded = given_members(&["east"]).after(heard(from));
        match want {
            Some(fact) => folded.when(heard(to)).then("east", &[fact]),
            None => folded.when(heard(to)).then_nothing(),
        }
    }
}

#[test]
fn a_lost_member_keeps_its_exports_and_slices_and_changes_its_profile_alone() {
    let mut folded = given_members(&["east"])
        .and("east", exported(export(1)))
        .and("east", slice("one", &["http"]));
    assert_eq!(folded.carry_out(&heard(Connectivity::Suspect)).unwrap(), []);
    let changes = folded.carry_out(&heard(Connectivity::Lost)).unwrap();
    let keys: Vec<_> = changes.into_iter().map(|change| change.key).collect();
    assert_eq!(keys, [DerivedKey::Profile(cluster("east"))]);
    assert!(folded.import().is_some() && folded.imported_slice("east", "one").is_some());
    let member = folded.state.member(&cluster("east")).unwrap();
    assert_eq!(member.source_state(), SourceState::Lost);
    assert_eq!(member.since(), folded.state.recorded_at());
}

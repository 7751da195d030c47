//! The way back: who stopped a clusterset with their word about epochs does not stop it for good.

use super::*;

/// A clusterset of three members, two of which claim a later epoch.
fn stopped() -> Core {
    let mut core = core();
    for (number, cluster) in (1..).zip(["east", "west", "north"]) {
        admit(
            &mut core,
            AdmitRequest {
                key: KeyFingerprint([number; 32]),
                ..hello(cluster, None, CursorCheck::Absent)
            },
        );
    }
    with_a_fact(&mut core, "east");
    for (number, cluster) in (2..).zip(["west", "north"]) {
        admit(
            &mut core,
            AdmitRequest {
                key: KeyFingerprint([number; 32]),
                ..hello(cluster, Some(OURS + 1), CursorCheck::Absent)
            },
        );
    }
    assert!(core.not_serving().is_some());
    core
}

fn decided(core: &mut Core, command: Command) {
    let operate = Request::Operate {
        token: 2,
        command,
        confirm: true,
        describe: |_, _, _| Vec::new(),
    };
    handle(core, operate);
}

#[test]
fn a_hub_serves_again_when_one_who_stopped_it_is_evicted_or_its_key_is_revoked() {
    let evict = Command::Evict {
        cluster: id("west"),
        operator: "alice".into(),
    };
    let revoke = Command::RevokeKey {
        holder: fold::KeyHolder::Member(id("north")),
        key: KeyFingerprint([3; 32]),
        operator: "alice".into(),
    };
    for way_back in [evict, revoke] {
        let mut core = stopped();
        decided(&mut core, way_back.clone());
        assert!(core.not_serving().is_none(), "{way_back:?}");
        let batch = admit(&mut core, hello("east", None, CursorCheck::Absent));
        admission(&batch);
    }
    // Or when it no longer claims so.
    let mut core = stopped();
    let batch = admit(
        &mut core,
        AdmitRequest {
            key: KeyFingerprint([2; 32]),
            ..hello("west", None, CursorCheck::Absent)
        },
    );
    admission(&batch);
    assert!(core.not_serving().is_none());
}

#[test]
fn a_minority_that_knows_a_later_epoch_stops_nobody() {
    let mut core = core();
    for number in 0..6 {
        admit(&mut core, hello(&format!("c{number}"), None, CursorCheck::Absent));
    }
    with_a_fact(&mut core, "c0");
    for number in 1..=3 {
        let batch = admit(
            &mut core,
            hello(&format!("c{number}"), Some(OURS + 1), CursorCheck::Absent),
        );
        assert!(refused(&batch, not_served) && core.not_serving().is_none());
    }
    assert!(core.sessions.contains_key(&id("c0")));
    admit(&mut core, hello("c4", Some(OURS + 1), CursorCheck::Absent));
    assert!(core.not_serving().is_some());
}

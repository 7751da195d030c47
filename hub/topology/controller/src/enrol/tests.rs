//! Tests of the steps for a Cluster, through its whole life and its membership's.

use shared::model::{TokenHash, UnixMillis};

use super::{
    decide::{Act, Awaited, Terms, act},
    standing::{Standing, Token},
};
use crate::observe::Life;

const INSTALLS: Terms = Terms {
    installs: true,
    drain_millis: 120_000,
};
const MANIFEST: Terms = Terms {
    installs: false,
    ..INSTALLS
};
const NOW: UnixMillis = UnixMillis(1_000_000);

fn life() -> Life {
    Life {
        uid: "u".into(),
        stamped: true,
        initialized: true,
        ..Life::default()
    }
}

/// One that the hub has given this token.
fn given(token: u8) -> Life {
    Life {
        enrolled: Some(TokenHash([token; 32]).id()),
        held: true,
        ..life()
    }
}

fn deleted(life: Life, before: u64) -> Life {
    Life {
        deleted_at: Some(UnixMillis(NOW.0 - before)),
        ..life
    }
}

fn token(number: u8, ours: bool, used: bool) -> Token {
    Token {
        hash: TokenHash([number; 32]),
        ours,
        used,
    }
}

fn stranger(tokens: &[Token]) -> Standing {
    Standing::Stranger {
        tokens: tokens.to_vec(),
    }
}

fn former(free: bool, tokens: &[Token]) -> Standing {
    Standing::Former {
        free,
        tokens: tokens.to_vec(),
    }
}

const MEMBER: Standing = Standing::Member {
    leaves: false,
    exports: true,
    ours: false,
};
const LEAVING: Standing = Standing::Member {
    leaves: true,
    exports: true,
    ours: false,
};

fn done(life: &Life, standing: &Standing) -> Act {
    act(life, standing, true, INSTALLS, NOW)
}

fn deliver(revoked: &[u8]) -> Act {
    Act::Deliver {
        revoked: revoked.iter().map(|number| TokenHash([*number; 32])).collect(),
    }
}

fn release(revoked: &[u8]) -> Act {
    Act::Release {
        revoked: revoked.iter().map(|number| TokenHash([*number; 32])).collect(),
    }
}

#[test]
fn a_new_cluster_is_given_what_it_needs_once() {
    let unborn = Life {
        initialized: false,
        ..life()
    };
    assert_eq!(done(&unborn, &stranger(&[])), Act::Wait(Awaited::ControlPlane));
    assert_eq!(act(&unborn, &stranger(&[]), true, MANIFEST, NOW), deliver(&[]));
    assert_eq!(done(&life(), &stranger(&[])), deliver(&[]));
    assert_eq!(
        done(&given(1), &stranger(&[token(1, true, false)])),
        Act::Wait(Awaited::Join)
    );
    // It came: the certificate is out, the Hello is not there yet.
    assert_eq!(
        done(&given(1), &stranger(&[token(1, true, true)])),
        Act::Wait(Awaited::Join)
    );
    assert_eq!(done(&given(1), &MEMBER), Act::Rest);
}

#[test]
fn a_hub_that_ended_between_token_and_delivery_takes_that_token_back() {
    assert_eq!(done(&life(), &stranger(&[token(1, true, false)])), deliver(&[1]));
    // It was delivered, and used, before that was written down.
    let used = stranger(&[token(1, true, true)]);
    let hold = Act::Hold {
        enrolled: TokenHash([1; 32]).id(),
    };
    assert_eq!(done(&life(), &used), hold);
}

#[test]
fn one_that_did_not_come_is_given_another_when_its_token_is_no_good_any_more() {
    assert_eq!(done(&given(1), &stranger(&[])), deliver(&[]));
    assert_eq!(
        done(&given(1), &stranger(&[token(2, true, false)])),
        deliver(&[2])
    );
}

#[test]
fn an_operators_token_is_left_to_the_operator() {
    assert_eq!(
        done(&life(), &stranger(&[token(1, false, false)])),
        Act::Wait(Awaited::Join)
    );
}

#[test]
fn a_member_is_held_and_nothing_is_delivered_to_it() {
    let hold = Act::Hold {
        enrolled: "before".into(),
    };
    assert_eq!(done(&life(), &MEMBER), hold);
    let held = Life {
        enrolled: Some("before".into()),
        held: true,
        ..life()
    };
    assert_eq!(done(&held, &MEMBER), Act::Rest);
}

#[test]
fn who_left_is_not_fetched_back() {
    assert_eq!(
        done(&given(1), &former(true, &[token(1, true, true)])),
        release(&[])
    );
    let let_go = Life {
        held: false,
        ..given(1)
    };
    assert_eq!(done(&let_go, &former(true, &[])), Act::Rest);
    // But another Cluster may have the id of one that left, unless an operator ended it.
    assert_eq!(done(&life(), &former(true, &[])), deliver(&[]));
    assert_eq!(
        done(&given(2), &former(true, &[token(2, true, false)])),
        Act::Wait(Awaited::Join)
    );
    assert_eq!(done(&life(), &former(false, &[])), Act::Rest);
    assert_eq!(done(&given(1), &former(false, &[])), release(&[]));
}

#[test]
fn nothing_is_done_for_one_without_a_topology_or_whose_owner_wants_none() {
    for change in [
        |life: &mut Life| life.off = true,
        |life: &mut Life| life.stamped = false,
    ] {
        let (mut fresh, mut held) = (life(), given(1));
        change(&mut fresh);
        change(&mut held);
        assert_eq!(done(&fresh, &stranger(&[])), Act::Rest);
        assert_eq!(done(&held, &stranger(&[token(1, true, false)])), release(&[1]));
        assert_eq!(done(&held, &MEMBER), release(&[]));
    }
}

#[test]
fn a_deleted_one_is_paused_leaves_and_goes() {
    let going = deleted(given(1), 20_000);
    assert_eq!(done(&going, &MEMBER), Act::Pause);
    let paused = Life {
        paused: true,
        ..going
    };
    assert_eq!(
        done(&paused, &MEMBER),
        Act::Leave {
            after_millis: 100_000
        }
    );
    assert_eq!(done(&paused, &LEAVING), Act::Wait(Awaited::Departure));
    assert_eq!(done(&paused, &former(true, &[])), release(&[]));
}

#[test]
fn one_that_exports_nothing_is_not_kept_waiting() {
    let silent = Standing::Member {
        leaves: false,
        exports: false,
        ours: false,
    };
    assert_eq!(
        done(&deleted(given(1), 0), &silent),
        Act::Leave { after_millis: 0 }
    );
}

#[test]
fn nothing_holds_a_cluster_up_for_longer_than_was_said() {
    for standing in [LEAVING, stranger(&[]), former(false, &[])] {
        let late = deleted(given(1), INSTALLS.drain_millis);
        assert_eq!(done(&late, &standing), release(&[]), "{standing:?}");
    }
    // Its member has never been drained: that comes first, and the Cluster is released at the next look.
    assert_eq!(
        done(&deleted(given(1), INSTALLS.drain_millis), &MEMBER),
        Act::Leave { after_millis: 0 }
    );
}

#[test]
fn what_a_deleted_one_was_given_is_taken_back() {
    assert_eq!(
        done(&deleted(given(1), 0), &stranger(&[token(1, true, false)])),
        release(&[1])
    );
    let never_held = deleted(life(), 0);
    assert_eq!(
        done(&never_held, &stranger(&[token(1, true, false)])),
        release(&[1])
    );
    assert_eq!(done(&never_held, &stranger(&[])), Act::Rest);
    assert_eq!(
        done(&never_held, &MEMBER),
        Act::Leave {
            after_millis: 120_000
        }
    );
}

/// A user who may create a Cluster may write any member's id into it.
#[test]
fn a_cluster_that_only_says_that_it_is_a_member_takes_nobody_with_it() {
    let unproven = |life: &Life, standing: &Standing| act(life, standing, false, INSTALLS, NOW);
    assert_eq!(unproven(&life(), &MEMBER), Act::Rest);
    for said in [given(1), life()] {
        let gone = deleted(said.clone(), 0);
        let expected = if said.held { release(&[]) } else { Act::Rest };
        assert_eq!(unproven(&gone, &MEMBER), expected);
        assert_eq!(unproven(&gone, &LEAVING), expected);
        let late = deleted(said, INSTALLS.drain_millis);
        assert_eq!(unproven(&late, &MEMBER), expected);
    }
    // The hub ended before it sealed what it had enrolled; the token is remembered.
    let ours = Standing::Member {
        leaves: false,
        exports: true,
        ours: true,
    };
    let hold = Act::Hold {
        enrolled: TokenHash([1; 32]).id(),
    };
    assert_eq!(unproven(&given(1), &ours), hold);
    assert_eq!(unproven(&deleted(given(1), 0), &ours), Act::Pause);
    // An operator's token makes nobody the hub's, whatever is written into the Cluster.
    let by_hand = stranger(&[token(1, false, true)]);
    assert_eq!(unproven(&given(1), &by_hand), Act::Wait(Awaited::Join));
}

#[test]
fn one_of_which_it_is_not_known_whose_it_is_is_left_alone_and_goes_in_time() {
    assert_eq!(done(&given(1), &Standing::Nobodys), Act::Rest);
    assert_eq!(
        done(&deleted(given(1), 0), &Standing::Nobodys),
        Act::Wait(Awaited::Departure)
    );
    assert_eq!(done(&deleted(life(), 0), &Standing::Nobodys), Act::Rest);
    let late = deleted(given(1), INSTALLS.drain_millis);
    assert_eq!(done(&late, &Standing::Nobodys), release(&[]));
}

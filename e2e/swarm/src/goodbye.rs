//! Owns: the story of agents that end in good order and say so, are away for longer than a loss needs, and come back.
//! Never: does anything that single steps cannot; a story is a script like any other, and may be shrunk.

use super::{
    draw::Draw,
    happening::{Named, What},
    story::change,
};

/// Rounds after which a silent member is lost and, by a policy that says so, withdrawn: 300 ms each.
const AWAY_ROUNDS: u8 = 50;

/// The agents of a cluster, or of two, end in good order while a policy withdraws who is lost as soon as may be; others
/// change what they export; perhaps the hub starts again, or it does not hear the goodbye. Then they are back.
pub(super) fn goes_away(draw: &mut Draw, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let site = draw.index(clusters);
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let both = draw.percent(25);
    let unheard = draw.percent(15);
    let mut steps = vec![What::Impatient(draw.percent(70)), What::Rounds(4)];
    steps.extend(unheard.then_some(What::Block(site, true, true)));
    steps.push(What::GoAway(site));
    steps.extend(both.then_some(What::GoAway(other)));
    steps.extend([What::Rounds(AWAY_ROUNDS), change(draw, other, exported)]);
    if draw.percent(20) {
        steps.extend([What::StopHub, What::Rounds(AWAY_ROUNDS)]);
    }
    steps.push(What::Rounds(1));
    steps.extend([What::Unblock(site), What::ComeHome(site)]);
    steps.extend(both.then_some(What::ComeHome(other)));
    steps.push(What::Rounds(LEASE_ROUNDS));
    steps
}

/// Rounds in which an agent that starts has the Lease, and a session.
const LEASE_ROUNDS: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{play, two_exporters::world};
    use oracle::laws::Law;

    #[test]
    fn who_says_goodbye_is_away_and_nobody_misses_it() {
        let played = (0..8).map(|seed| play(&world(seed, goes_away)).expect("no law is broken"));
        let guarded: u64 = played.map(|world| world.seen.guarded.of(Law::Goodbye)).sum();
        assert!(guarded > 0, "nobody was away for long enough");
    }
}

//! Owns: stories of wall clocks that are set while a hub runs, or while an agent does: by a moment or by hours, forward or
//! back, and mostly right again. Meanwhile a member is to leave, is on hold for a limited time, or comes with a certificate
//! that ends within the hour.
//! Never: does anything that single steps cannot.

use super::{
    draw::Draw,
    happening::{Named, What},
    story::{change, one_of},
};

/// By how much a clock is wrong, in milliseconds: below a tick, around the times of the stories, and hours. All clocks of a
/// world stay within a day of each other: beyond that an agent refuses its hub, rightly.
const OFF_MILLIS: [i32; 6] = [400, 6_000, 90_000, 1_800_000, 7_200_000, 28_800_000];
/// Time until a member leaves in these stories, in milliseconds.
const LEAVES_AFTER_MILLIS: u32 = 9_000;
/// Rounds in which that time passes, of 300 ms each.
const LEAVES_ROUNDS: u8 = 32;
/// Rounds in which a hold ends by the policy that says for how long.
const HOLD_ROUNDS: u8 = 32;

/// By how much the clock is set, more often forward: then what is counted by it ends too soon.
fn off(draw: &mut Draw) -> i32 {
    let off = OFF_MILLIS[draw.index(OFF_MILLIS.len())];
    if draw.percent(60) { off } else { -off }
}

/// A clock is set, at any time of a world.
pub(super) fn set(draw: &mut Draw, clusters: usize) -> Vec<What> {
    let mut steps = Vec::new();
    let hub = draw.percent(75);
    steps.extend(hub.then(|| What::HubClock(off(draw))));
    if !hub || draw.percent(30) {
        steps.push(What::AgentClock(draw.index(clusters), off(draw)));
    }
    steps
}

/// The hub's clock is wrong for a moment, or until the next rest, in one of three stories.
pub(super) fn wrong_for_a_moment(draw: &mut Draw, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let site = match exported.len() {
        0 => draw.index(clusters),
        some => exported[draw.index(some)].0,
    };
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let mut steps = match draw.below(3) {
        0 => leaves(draw, site, other, exported),
        1 => held(draw, site, other, exported),
        _ => comes_again(draw, site, other, exported),
    };
    if draw.percent(30) {
        steps.insert(0, What::AgentClock(other, off(draw)));
    }
    steps
}

/// The clock is set, something is recorded, and mostly the clock is right again.
fn jump(draw: &mut Draw, other: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let mut steps = vec![What::HubClock(off(draw)), What::Rounds(2)];
    steps.extend([change(draw, other, exported), What::Rounds(1)]);
    steps.extend(draw.percent(70).then_some(What::HubClock(0)));
    steps
}

/// A member is to leave; the clock is set after that, before it, or between the decision and the first look.
fn leaves(draw: &mut Draw, site: usize, other: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let drain = What::Drain(site, LEAVES_AFTER_MILLIS, draw.percent(50));
    let mut steps = jump(draw, other, exported);
    match draw.below(3) {
        0 => steps.insert(0, drain),
        1 => steps.splice(0..0, [drain, What::Rounds(2)]).for_each(drop),
        _ => steps.insert(1, drain),
    }
    steps.extend(draw.percent(20).then_some(What::StopHub));
    steps.extend([What::Rounds(LEAVES_ROUNDS), What::Certify(site), What::Rounds(2)]);
    steps
}

/// A member withdraws what it exports under a policy that holds it for a limited time, and the clock is set.
fn held(draw: &mut Draw, site: usize, other: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let own = exported.iter().filter(|(at, _)| *at == site);
    let own: Vec<Named> = own.map(|(_, name)| *name).collect();
    let mut steps = vec![
        What::Rest(false),
        What::Careful(true),
        What::Rounds(1),
        What::RemoveCrd(site, true),
        What::Rounds(2),
    ];
    steps.extend(jump(draw, other, exported));
    steps.push(What::Rounds(HOLD_ROUNDS));
    steps.push(What::InstallCrds(site));
    steps.extend(own.into_iter().map(|name| What::Export(site, name)));
    steps.push(What::Rounds(2));
    steps
}

/// The clock was wrong for a moment, and a member's agent comes again with its certificate, or with a renewed one.
fn comes_again(draw: &mut Draw, site: usize, other: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let mut steps = jump(draw, other, exported);
    match draw.below(4) {
        0 => steps.extend([What::RenewOverSession(site), What::Rounds(2)]),
        1 => steps.push(What::Renew(site)),
        _ => {}
    }
    steps.push(match draw.below(3) {
        0 => What::StopHub,
        1 => What::CrashAgent(site),
        _ => What::Reset(site),
    });
    steps.push(What::Rounds(4));
    let name = one_of(draw, site, exported);
    steps.extend([What::Slice(site, name, 0, 1 + draw.small(3)), What::Rounds(1)]);
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{play, two_exporters::world};
    use oracle::laws::Law;

    #[test]
    fn what_ends_after_a_time_ends_then_whatever_a_clock_shows() {
        let played = (0..12).map(|seed| play(&world(seed, wrong_for_a_moment)).expect("no law is broken"));
        let guarded: u64 = played.map(|world| world.seen.guarded.of(Law::Due)).sum();
        assert!(guarded > 0, "nothing ended after a clock was set");
    }
}

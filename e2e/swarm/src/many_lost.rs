//! Owns: stories of members that are lost in numbers, half of the fleet and more, and of one that comes back again and again
//! just before its time is over.
//! Never: does anything that single steps cannot; a story is a script like any other, and may be shrunk.

use super::{
    draw::Draw,
    happening::{Named, What},
    story::change,
};

/// Rounds in which a member that is not heard is lost, and its time is over where that is soon: 300 ms each.
const LOST_ROUNDS: u8 = 40;
/// Rounds in which its time is over where no policy says anything: 70 s and some more.
const LOST_BY_DEFAULT_ROUNDS: u8 = 245;
/// Rounds in which self-preservation is over that may be brief, see the operator's policy.
const BRIEF_ROUNDS: u8 = 22;
/// Rounds of silence after which a member is nearly withdrawn, or just so, by a policy that says 10 s.
const NEARLY_MIN: u8 = 30;
const NEARLY_MORE: u8 = 7;

/// Half of the fleet is away at one time, and two members at least, while others change what they export; then enough of them
/// come back, an operator lets go, self-preservation lasts as long as it may, or all come back.
pub(super) fn half_away(draw: &mut Draw, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let first = draw.index(clusters);
    let half = clusters.div_ceil(2).max(2);
    let away = (0..half).map(|next| (first + next) % clusters);
    let away: Vec<usize> = away.collect();
    if draw.percent(20) {
        return away_without_a_policy(&away);
    }
    let brief = draw.percent(30);
    let withdraws = draw.percent(70);
    let mut steps = vec![if brief {
        What::Brief(withdraws)
    } else {
        What::Impatient(withdraws)
    }];
    steps.extend(away.iter().map(|site| What::Block(*site, true, true)));
    steps.push(What::Rounds(LOST_ROUNDS));
    let other = (first + half) % clusters;
    for _ in 0..2 {
        steps.extend([change(draw, other, exported), What::Rounds(1)]);
    }
    steps.extend(draw.percent(20).then_some(What::StopHub));
    steps.extend(
        draw.percent(20)
            .then_some(What::CrashHub(draw.small(3), draw.percent(30))),
    );
    match draw.below(3) {
        _ if brief => steps.push(What::Rounds(BRIEF_ROUNDS)),
        0 => {
            let back = away.iter().skip(1).map(|site| What::Unblock(*site));
            steps.extend(back);
        }
        1 => steps.push(What::LetWithdraw),
        _ => {}
    }
    steps.extend([
        What::Rounds(LOST_ROUNDS),
        change(draw, other, exported),
        What::Rounds(1),
    ]);
    steps.extend(away.iter().map(|site| What::Unblock(*site)));
    steps.push(What::Rounds(2));
    steps
}

/// Nobody has said anything of losses, and nobody does anything: all that stands must go on standing.
fn away_without_a_policy(away: &[usize]) -> Vec<What> {
    let mut steps: Vec<What> = away.iter().map(|site| What::Block(*site, true, true)).collect();
    steps.push(What::Rounds(LOST_BY_DEFAULT_ROUNDS));
    steps.extend(away.iter().map(|site| What::Unblock(*site)));
    steps.push(What::Rounds(2));
    steps
}

/// A member comes back again and again, just before it is withdrawn or just afterwards; perhaps the hub starts again.
pub(super) fn comes_and_goes(draw: &mut Draw, site: usize) -> Vec<What> {
    let mut steps = vec![What::Impatient(draw.percent(70))];
    for _ in 0..3 {
        let silent = What::Rounds(NEARLY_MIN + draw.small(NEARLY_MORE));
        steps.extend([What::Block(site, true, true), silent]);
        steps.extend(draw.percent(15).then_some(What::StopHub));
        steps.extend([What::Unblock(site), What::Rounds(1 + draw.small(4))]);
    }
    steps
}

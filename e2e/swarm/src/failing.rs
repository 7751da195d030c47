//! Owns: stories of an API server that fails one verb or kind, is slow, or holds what nobody can decode.
//! Never: does anything that single steps cannot.

use super::{
    draw::Draw,
    happening::{Going, Named, What, refused_verb},
    story::{EXPIRY_ROUNDS, change, one_of},
};

/// Answers of a slow API server, in milliseconds: below and above the longest time without an answer that blinds nobody.
const SLOW_MILLIS: [u16; 5] = [1_000, 1_900, 2_400, 3_300, 4_000];
/// Answers of one that is well.
const FAST_MILLIS: u16 = 50;

/// An API server fails one verb, or one kind, for longer than the Lease of a source lasts, while others change what they
/// export; perhaps its agent starts again meanwhile.
pub(super) fn verb_refused(
    draw: &mut Draw,
    site: usize,
    clusters: usize,
    exported: &[(usize, Named)],
) -> Vec<What> {
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let mut steps = vec![What::RefuseWrites(site, refused_verb(draw))];
    for _ in 0..3 {
        steps.extend([change(draw, other, exported), What::Rounds(1)]);
    }
    steps.extend(draw.percent(20).then_some(What::CrashAgent(site)));
    steps.push(What::Rounds(EXPIRY_ROUNDS));
    steps
}

/// An API server answers after seconds, always or every other time, while its leader is killed, ends or is cut off.
pub(super) fn slow_api_server(draw: &mut Draw, site: usize) -> Vec<What> {
    let slow = SLOW_MILLIS[draw.index(SLOW_MILLIS.len())];
    let other = if draw.percent(50) { slow } else { FAST_MILLIS };
    let going = match draw.below(4) {
        0 => Going::Ends,
        1 => Going::CutOff,
        _ => Going::Killed,
    };
    vec![
        What::Slow(site, other, slow),
        What::Rounds(EXPIRY_ROUNDS / 2),
        What::HandOver(site, going),
        What::Rounds(EXPIRY_ROUNDS / 2),
    ]
}

/// Something that nobody can decode stands in an export or in a slice of it; the agent starts again, or lists again, and
/// others go on.
pub(super) fn spoiled(draw: &mut Draw, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let site = match exported.len() {
        0 => draw.index(clusters),
        some => exported[draw.index(some)].0,
    };
    let name = one_of(draw, site, exported);
    let mut steps = vec![What::Spoil(site, name, draw.small(3)), What::Rounds(1)];
    if draw.percent(60) {
        steps.push(What::CrashAgent(site));
    } else {
        steps.extend([What::ForgetHistory(site), What::DropWatches(site)]);
    }
    steps.push(What::Rounds(4));
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    steps.extend([change(draw, other, exported), What::Rounds(2)]);
    steps
}

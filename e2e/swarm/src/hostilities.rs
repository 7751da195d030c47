//! Owns: stories of the hostile member and of strangers: what they do, what operators decide about it, and what the others
//! change meanwhile.
//! Never: does anything that single steps cannot; a story is a script like any other, and may be shrunk.

use super::{
    draw::Draw,
    happening::{Decision, Hostility, Named, What},
    story::{change, one_of},
};

/// Silence after which both ends have given a session up, in milliseconds.
const LONG_SILENCE_MILLIS: u32 = 20_000;
/// Changes of a flood, at least, and how many more there may be.
const FLOOD_MIN: u8 = 20;
const FLOOD_MORE: u8 = 60;
/// Newcomers with one story, at least, and how many more there may be: more than a hub needs as witnesses.
const NEWCOMERS_MIN: u8 = 2;
const NEWCOMERS_MORE: u8 = 3;

/// The place over which stories are drawn.
struct Place<'a> {
    site: usize,
    clusters: usize,
    exported: &'a [(usize, Named)],
    /// A service of that site.
    named: Named,
}

impl Place<'_> {
    /// An honest member changes what it exports, and everybody goes on.
    fn goes_on(&self, draw: &mut Draw) -> [What; 2] {
        let site = draw.index(self.clusters);
        [change(draw, site, self.exported), What::Rounds(1)]
    }
}

/// A story.
pub(super) fn hostilities(draw: &mut Draw, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let site = match exported {
        [] => draw.index(clusters),
        some => some[draw.index(some.len())].0,
    };
    let named = one_of(draw, site, exported);
    let place = Place {
        site,
        clusters,
        exported,
        named,
    };
    match draw.below(9) {
        0 => claims(draw, &place),
        1 => places_kept(draw, &place),
        2 => addresses(draw, &place),
        3 => floods(draw, &place),
        4 => epochs(draw, &place),
        5 => strangers(draw, &place),
        6 => former_keys(draw, &place),
        7 => let_in(draw, &place),
        _ => banished(draw, &place),
    }
}

fn hostile(hostility: Hostility) -> What {
    What::Hostile(hostility)
}

/// It states to be older than everybody, or what another one states; perhaps another age later.
fn claims(draw: &mut Draw, place: &Place<'_>) -> Vec<What> {
    let first = if draw.percent(40) {
        Hostility::Copy(place.site, place.named)
    } else {
        Hostility::Claim(place.named, draw.small(2))
    };
    let mut steps = vec![hostile(first), What::Rounds(1)];
    steps.extend(place.goes_on(draw));
    let again = hostile(Hostility::Claim(place.named, draw.small(4)));
    steps.extend(draw.percent(50).then_some(again));
    steps.extend(draw.percent(60).then_some(hostile(Hostility::Replay)));
    steps.extend(draw.percent(40).then_some(What::RestRestricted));
    steps.extend(draw.percent(60).then_some(hostile(Hostility::TakeBack)));
    steps
}

/// The same where incumbents stand first, until an operator lets go; perhaps the hub starts again meanwhile.
fn places_kept(draw: &mut Draw, place: &Place<'_>) -> Vec<What> {
    let mut steps = vec![What::Decide(Decision::Incumbent), What::Rounds(1)];
    steps.push(hostile(Hostility::Claim(place.named, draw.small(2))));
    steps.push(What::Rounds(2));
    steps.extend(draw.percent(30).then_some(What::StopHub));
    steps.extend(draw.percent(30).then_some(What::CrashHub(0, false)));
    if draw.percent(50) {
        steps.extend(place.goes_on(draw));
    }
    steps.extend(draw.percent(70).then_some(What::RestRestricted));
    if draw.percent(75) {
        steps.extend([What::Decide(Decision::Release(place.named)), What::Rounds(1)]);
        steps.extend(draw.percent(60).then_some(What::RestRestricted));
    }
    steps
}

/// Its slices have addresses of others and special ones; perhaps a rule says which it may have, before or after.
fn addresses(draw: &mut Draw, place: &Place<'_>) -> Vec<What> {
    let fence = What::Decide(Decision::Fence);
    let mut steps = Vec::from_iter(draw.percent(40).then_some(fence.clone()));
    steps.push(hostile(Hostility::Addresses(place.named)));
    steps.extend(draw.percent(50).then_some(hostile(Hostility::Reserved)));
    steps.push(What::Rounds(2));
    steps.extend(draw.percent(50).then_some(fence));
    steps.extend(place.goes_on(draw));
    steps.extend(draw.percent(30).then_some(What::StopHub));
    steps.push(What::RestRestricted);
    steps
}

/// It says as much as it can while the others have something to say; perhaps it has little room.
fn floods(draw: &mut Draw, place: &Place<'_>) -> Vec<What> {
    let quota = draw.percent(60);
    let mut steps = Vec::from_iter(quota.then_some(What::Decide(Decision::Quota)));
    steps.push(hostile(Hostility::Claim(place.named, draw.small(2))));
    for _ in 0..2 {
        steps.push(hostile(Hostility::Flood(FLOOD_MIN + draw.small(FLOOD_MORE))));
        steps.extend(place.goes_on(draw));
    }
    steps.extend(
        draw.percent(30)
            .then_some(hostile(Hostility::Addresses(place.named))),
    );
    steps.extend(draw.percent(30).then_some(What::CrashHub(draw.small(3), false)));
    steps.extend([What::Rounds(1), What::RestRestricted]);
    steps
}

/// It claims epochs, one after the other.
fn epochs(draw: &mut Draw, place: &Place<'_>) -> Vec<What> {
    let mut steps = vec![hostile(Hostility::Reserved), What::Rounds(1)];
    for _ in 0..1 + draw.small(3) {
        steps.extend([hostile(Hostility::Epoch(draw.small(3))), What::Rounds(1)]);
    }
    if draw.percent(50) {
        let newcomers = NEWCOMERS_MIN + draw.small(NEWCOMERS_MORE);
        steps.extend([hostile(Hostility::Newcomers(newcomers)), What::Rounds(1)]);
    }
    steps.extend(place.goes_on(draw));
    steps
}

/// Somebody comes in the name of a cluster that answers, or that is away.
fn strangers(draw: &mut Draw, place: &Place<'_>) -> Vec<What> {
    let mut steps = Vec::new();
    if draw.percent(50) {
        steps.push(What::Block(place.site, true, true));
        steps.extend(draw.percent(70).then_some(What::Pass(LONG_SILENCE_MILLIS)));
        steps.push(What::Rounds(1));
    }
    steps.push(hostile(Hostility::Impostor(place.site, draw.percent(50))));
    steps.push(What::Rounds(2));
    steps.extend(place.goes_on(draw));
    steps.extend([What::Unblock(place.site), What::Rounds(2)]);
    steps
}

/// A key was revoked or renewed, or its membership ended, and somebody comes with it.
fn former_keys(draw: &mut Draw, place: &Place<'_>) -> Vec<What> {
    let site = place.site;
    let mut steps = match draw.below(3) {
        0 => vec![What::Renew(site), What::Reset(site)],
        1 => vec![What::Revoke(site), What::Rounds(1), What::Renew(site)],
        _ => vec![What::Evict(site), What::Rounds(1), What::Certify(site)],
    };
    steps.push(What::Rounds(2));
    steps.extend(draw.percent(30).then_some(What::StopHub));
    for _ in 0..2 {
        steps.extend([
            hostile(Hostility::OldKey(site, draw.small(u8::MAX))),
            What::Rounds(1),
        ]);
    }
    steps.extend(place.goes_on(draw));
    steps
}

/// It states to be older than everybody while it may export nothing, and then it may.
fn let_in(draw: &mut Draw, place: &Place<'_>) -> Vec<What> {
    let claim = hostile(Hostility::Claim(place.named, draw.small(2)));
    let mut steps = vec![
        What::Decide(Decision::Ban),
        What::Rounds(1),
        claim,
        What::Rounds(2),
    ];
    steps.extend(place.goes_on(draw));
    steps.extend(draw.percent(30).then_some(What::StopHub));
    // By an order in which it comes first, or one in which who stands there stays.
    if draw.percent(60) {
        steps.extend([What::Decide(Decision::Incumbent), What::Rounds(1)]);
        steps.extend(draw.percent(60).then_some(What::RestRestricted));
    } else {
        steps.extend([
            What::Decide(Decision::Fence),
            What::Rounds(1),
            What::RestRestricted,
        ]);
    }
    steps
}

/// It is allowed nothing; then its membership ends, and it comes again.
fn banished(draw: &mut Draw, place: &Place<'_>) -> Vec<What> {
    let mut steps = vec![
        hostile(Hostility::Claim(place.named, draw.small(2))),
        What::Rounds(2),
    ];
    steps.extend([What::Decide(Decision::Ban), What::Rounds(1)]);
    steps.extend(place.goes_on(draw));
    steps.extend(draw.percent(70).then_some(What::RestRestricted));
    if draw.percent(60) {
        steps.extend([What::Decide(Decision::Evict), What::Rounds(1)]);
        steps.extend(draw.percent(30).then_some(What::StopHub));
        steps.push(hostile(Hostility::Claim(place.named, draw.small(2))));
        steps.push(What::Rounds(2));
    }
    steps
}

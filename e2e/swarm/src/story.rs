//! Owns: sequences of steps that lead where single steps hardly ever meet: several parts of one unlikely circumstance.
//! Never: does anything that single steps cannot; a story is a script like any other, and may be shrunk.

use super::{
    draw::Draw,
    happening::{AgentPart, Named, Taken, WATCHES, What, going, named, refused_writes, taken},
};

/// Silence after which both ends have given a session up, in milliseconds.
const LONG_SILENCE_MILLIS: u32 = 20_000;
/// Longer than a session is silent that has nothing to say, in milliseconds.
const HEARTBEAT_MILLIS: u32 = 1_500;
/// Time in which a segment of the log becomes as old as one may be, in milliseconds; see the bounds of the swarm's hubs.
const SEGMENT_MILLIS: u32 = 2_100;
/// Rounds in which a member that is not heard is lost and, where that is done soon, withdrawn: 300 ms each.
const LOST_ROUNDS: u8 = 40;
/// Rounds in which the Lease of a source is made or renewed: 300 ms each.
const LEASE_ROUNDS: u8 = 8;
/// Rounds in which the Lease of a source expires that nobody renews, in every agent's eyes.
pub(super) const EXPIRY_ROUNDS: u8 = 60;
/// Time until a leaving member leaves, in milliseconds.
const LEAVES_AFTER_MILLIS: u32 = 2_000;
/// Rounds in which it does.
const LEAVES_ROUNDS: u8 = 8;
/// By how much a cluster's clock is wrong meanwhile, in milliseconds: far more than a Lease lasts.
const LEASE_SKEW_MILLIS: i32 = 3_600_000;
/// Longer than what was taken back is held by the policy that says for how long, in milliseconds.
const HELD_MILLIS: u32 = 9_000;
/// Rounds in which a copy of a member is heard, or refused several times.
const COPY_ROUNDS: u8 = 16;
/// Changes after which what was removed before them is forgotten; see the bounds of the swarm's hubs.
const MANY_CHANGES: usize = 6;

/// A story. Without `edits` people do nothing in it, so that all that stands must go on standing.
pub(super) fn story(draw: &mut Draw, clusters: usize, exported: &[(usize, Named)], edits: bool) -> Vec<What> {
    let site = draw.index(clusters);
    match draw.below(if edits { 19 } else { 4 }) {
        0 => slow_start(draw, site),
        1 => rewound_while_somebody_joins(draw, site, clusters),
        2 => renewed(draw, site),
        3 => revoked(draw, site),
        4 => rewound_and_gone_on(draw, site, clusters, exported),
        5 => long_absence(draw, site, clusters, exported),
        6 => evicted(draw, site),
        7 => nearly_full(draw, site, exported),
        8 => namespace_returns(draw, site, clusters, exported),
        9 => restored_where_little_is_free(draw, site),
        10 => restricted(draw, site, exported),
        11 => squeezed(draw, site, exported),
        12..=14 => withheld(draw, site, clusters, exported),
        15 => forgotten(draw, site, clusters, exported),
        16 => stays_lost(draw, site, clusters, exported),
        17 => leaves(draw, site, clusters, exported),
        _ => lie(draw, site, exported),
    }
}

/// The hub is away from a cluster for so long that the Leases of all sources expire there; perhaps the agent that leads is
/// gone as well, its API server's clock is wrong, or somebody meddles with the Leases.
pub(super) fn hub_away_for_long(draw: &mut Draw, site: usize) -> Vec<What> {
    let mut steps = vec![What::ExpireOnHubLoss(site)];
    steps.extend(draw.percent(30).then_some(What::Impatient(draw.percent(50))));
    steps.push(What::Rounds(LEASE_ROUNDS));
    let meddles = draw.percent(40);
    steps.extend(meddles.then_some(What::MeddleWithLease(site, draw.small(u8::MAX))));
    steps.extend([What::Block(site, true, true), What::Reset(site)]);
    let skew = if draw.percent(50) {
        LEASE_SKEW_MILLIS
    } else {
        -LEASE_SKEW_MILLIS
    };
    steps.extend(draw.percent(50).then_some(What::Skew(site, skew)));
    match draw.below(3) {
        0 => steps.push(What::HandOver(site, going(draw))),
        1 => steps.push(What::DoubleAgent(site)),
        _ => {}
    }
    steps.push(What::Rounds(EXPIRY_ROUNDS));
    steps.extend(
        draw.percent(20)
            .then_some(What::MeddleWithLease(site, draw.small(u8::MAX))),
    );
    steps.extend([What::Unblock(site), What::Rounds(2)]);
    steps
}

/// The API server of a cluster refuses writes for longer than a Lease of a source lasts, while the hub confirms all sources
/// and its policy takes away what is lost; perhaps another agent takes over meanwhile, or nobody hears from the hub for a
/// moment.
pub(super) fn writes_refused(draw: &mut Draw, site: usize) -> Vec<What> {
    let mut steps = vec![
        What::Impatient(draw.percent(50)),
        What::Rounds(LEASE_ROUNDS),
        What::RefuseWrites(site, refused_writes(draw)),
    ];
    if draw.percent(30) {
        steps.push(What::CrashAgent(site));
    }
    steps.push(What::Rounds(EXPIRY_ROUNDS));
    steps.extend(draw.percent(30).then_some(What::Reset(site)));
    steps.push(What::Rounds(EXPIRY_ROUNDS));
    steps
}

/// The definition of exports is deleted in a cluster, or half of its exports are, while a policy holds who does that; others
/// go on, the hub or an agent starts again; then everything comes back, is let go, the member is evicted, or time passes.
pub(super) fn definition_goes(
    draw: &mut Draw,
    site: usize,
    clusters: usize,
    exported: &[(usize, Named)],
) -> Vec<What> {
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let own = exported
        .iter()
        .filter(|(at, _)| *at == site)
        .map(|(_, name)| *name);
    let own: Vec<Named> = own.collect();
    let mut steps = vec![
        What::Rest(false),
        What::Careful(draw.percent(25)),
        What::Rounds(1),
    ];
    if draw.percent(70) {
        steps.push(What::RemoveCrd(site, true));
    } else {
        let half = own.iter().take(own.len().div_ceil(2));
        steps.extend(half.map(|name| What::Unexport(site, *name)));
    }
    steps.push(What::Rounds(2 + draw.small(3)));
    steps.extend(draw.percent(30).then(|| change(draw, other, exported)));
    steps.extend(draw.percent(30).then_some(What::StopHub));
    steps.extend(draw.percent(30).then_some(What::CrashAgent(site)));
    steps.extend(draw.percent(30).then_some(What::CrashAgent(other)));
    steps.push(What::Rounds(1));
    steps.extend(draw.percent(60).then_some(What::RestRestricted));
    match draw.below(4) {
        0 => {
            steps.push(What::InstallCrds(site));
            steps.extend(own.into_iter().map(|name| What::Export(site, name)));
        }
        1 => steps.push(What::LetGo(site)),
        2 => steps.extend([What::Evict(site), What::Rounds(1), What::Certify(site)]),
        _ => steps.push(What::Pass(HELD_MILLIS)),
    }
    steps.push(What::Rounds(2));
    steps
}

/// A member is copied, goes on, and its copy comes: beside it, or while it is away, which comes back beside the copy; perhaps
/// another of its agents has been elected since, or the hub starts again.
pub(super) fn copied(draw: &mut Draw, site: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let mut steps = vec![What::Rounds(2), What::Copy(site)];
    let changes = draw.percent(60);
    steps.extend(changes.then(|| change(draw, site, exported)));
    steps.extend(draw.percent(30).then(|| What::HandOver(site, going(draw))));
    steps.push(What::Rounds(2));
    let away = draw.percent(50);
    if away {
        steps.extend([What::Block(site, true, true), What::Reset(site)]);
    }
    steps.extend([What::RunCopy, What::Rounds(COPY_ROUNDS)]);
    steps.extend(draw.percent(20).then_some(What::StopHub));
    steps.extend([What::Unblock(site), What::Rounds(COPY_ROUNDS)]);
    steps
}

/// An agent comes back, and one of its watches shows nothing for a long time.
fn slow_start(draw: &mut Draw, site: usize) -> Vec<What> {
    let slow = AgentPart::Watch(draw.small(WATCHES));
    let cut = What::CutListings(site, 1 + draw.small(3));
    let mut steps = vec![What::Stall(site, slow), What::CrashAgent(site)];
    steps.extend(draw.percent(50).then_some(cut));
    steps.push(What::Rounds(2));
    steps
}

/// The hub starts over an old copy; a member without a cursor is in session when another one shows that.
fn rewound_while_somebody_joins(draw: &mut Draw, site: usize, clusters: usize) -> Vec<What> {
    let others = || (0..clusters).filter(move |other| *other != site);
    let mut steps = vec![
        What::Backup,
        What::Drift(site, draw.small(u8::MAX)),
        What::Rounds(1),
    ];
    steps.extend(others().map(|other| What::Block(other, true, true)));
    steps.extend([What::CrashAgent(site), What::Restore, What::Rounds(1)]);
    steps.push(What::SlowSession(site));
    steps.extend(others().map(What::Unblock));
    steps.extend([What::Rounds(2), What::Pass(HEARTBEAT_MILLIS), What::Rounds(2)]);
    steps
}

/// The hub starts over an old copy and goes on with those who have seen nothing newer, past the position of one who
/// has.
fn rewound_and_gone_on(
    draw: &mut Draw,
    site: usize,
    clusters: usize,
    exported: &[(usize, Named)],
) -> Vec<What> {
    let others = || (0..clusters).filter(move |other| *other != site);
    let mut steps = vec![What::Backup];
    steps.extend(others().map(|other| What::Block(other, true, true)));
    steps.extend([
        change(draw, site, exported),
        What::Rounds(1),
        What::Block(site, true, true),
    ]);
    steps.push(What::Restore);
    steps.extend(others().map(What::Unblock));
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    for _ in 0..MANY_CHANGES {
        steps.extend([change(draw, other, exported), What::Rounds(1)]);
    }
    steps.push(What::Unblock(site));
    steps
}

/// A member is away while more is removed than the hub remembers.
fn long_absence(draw: &mut Draw, site: usize, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let mut steps = vec![What::Block(site, true, true)];
    for _ in 0..MANY_CHANGES {
        steps.extend([change(draw, other, exported), What::Rounds(1)]);
    }
    steps.extend([
        What::Pass(LONG_SILENCE_MILLIS),
        What::Rounds(1),
        What::Unblock(site),
    ]);
    steps
}

/// A member is evicted, perhaps while it is away; the hub starts again; the member comes back with a new key.
fn evicted(draw: &mut Draw, site: usize) -> Vec<What> {
    let mut steps = if draw.percent(50) {
        vec![
            What::Block(site, true, true),
            What::Pass(LONG_SILENCE_MILLIS),
            What::Rounds(1),
        ]
    } else {
        Vec::new()
    };
    steps.push(What::Evict(site));
    steps.push(What::Rounds(1));
    steps.extend(draw.percent(50).then_some(What::StopHub));
    steps.extend([What::Unblock(site), What::Rounds(1), What::Certify(site)]);
    steps
}

/// A certificate is renewed, and its agent connects anew: after a reset, after a start, or beside a session that still
/// stands because the hub has not noticed.
fn renewed(draw: &mut Draw, site: usize) -> Vec<What> {
    let mut steps = if draw.percent(50) {
        vec![What::RenewOverSession(site), What::Rounds(2)]
    } else {
        vec![What::Renew(site)]
    };
    steps.push(match draw.below(4) {
        0 => What::CrashAgent(site),
        1 => What::DoubleAgent(site),
        2 => What::StopHub,
        _ => What::Reset(site),
    });
    steps.push(What::Rounds(2));
    steps
}

/// A key is revoked while its holder is in session or away; the hub may start again; a new certificate follows.
fn revoked(draw: &mut Draw, site: usize) -> Vec<What> {
    let mut steps = Vec::new();
    if draw.percent(30) {
        steps.extend([What::Block(site, true, true), What::Pass(HEARTBEAT_MILLIS)]);
    }
    steps.extend([What::Revoke(site), What::Rounds(1)]);
    steps.extend(draw.percent(30).then_some(What::StopHub));
    steps.extend([What::Unblock(site), What::Rounds(1)]);
    let renewed = draw.percent(50);
    steps.push(if renewed {
        What::Renew(site)
    } else {
        What::Certify(site)
    });
    steps.push(What::Rounds(1));
    steps
}

/// A policy refuses what a member exports, while it goes on changing it; perhaps the hub starts again meanwhile.
fn restricted(draw: &mut Draw, site: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let mut steps = vec![What::Restrict(site), What::Rounds(1)];
    for _ in 0..2 {
        steps.extend([change(draw, site, exported), What::Rounds(1)]);
    }
    steps.extend(draw.percent(30).then_some(What::CrashAgent(site)));
    steps.extend(draw.percent(30).then_some(What::StopHub));
    steps.push(What::RestRestricted);
    steps
}

/// A member is lost for so long that it is withdrawn, while others change what they export; perhaps the hub or another
/// agent starts again meanwhile, or another member is lost as well.
fn stays_lost(draw: &mut Draw, site: usize, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let mut steps = vec![
        What::Impatient(draw.percent(70)),
        What::Block(site, true, true),
        What::Rounds(LOST_ROUNDS),
    ];
    let second = draw.percent(20);
    steps.extend(second.then_some(What::Block(other, true, true)));
    for _ in 0..2 {
        steps.extend([change(draw, other, exported), What::Rounds(1)]);
    }
    steps.extend(second.then_some(What::Rounds(LOST_ROUNDS)));
    steps.extend(draw.percent(30).then_some(What::StopHub));
    steps.extend(draw.percent(30).then_some(What::CrashAgent(other)));
    steps.extend([What::Rounds(2), What::Unblock(site), What::Rounds(2)]);
    steps.extend(second.then_some(What::Unblock(other)));
    steps
}

/// A member is to leave while others change what they export; perhaps it is away, the hub or another agent starts again, or
/// another member is to leave as well. It stays after all, leaves when its time is over, or before it by itself, and then
/// comes again.
fn leaves(draw: &mut Draw, site: usize, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let mut steps = Vec::new();
    steps.extend(draw.percent(20).then_some(What::Block(site, true, true)));
    steps.extend([
        What::Drain(site, LEAVES_AFTER_MILLIS, draw.percent(50)),
        What::Rounds(1),
    ]);
    let second = draw.percent(20);
    steps.extend(second.then_some(What::Drain(other, 2 * LEAVES_AFTER_MILLIS, false)));
    for changing in [other, site] {
        steps.extend([change(draw, changing, exported), What::Rounds(1)]);
    }
    steps.extend(draw.percent(20).then_some(What::StopHub));
    steps.extend(draw.percent(20).then_some(What::CrashAgent(other)));
    steps.push(match draw.below(3) {
        0 => What::Stay(site),
        1 => What::Leave(site),
        _ => What::Rounds(LEAVES_ROUNDS),
    });
    steps.extend([
        What::Rounds(2),
        What::Unblock(site),
        What::Certify(site),
        What::Rounds(2),
    ]);
    steps
}

/// A policy says what a member takes, while others change what they export, and perhaps while it is away; perhaps a
/// namespace comes again meanwhile, the hub or the agent starts again, or another policy follows before it is back.
fn withheld(draw: &mut Draw, site: usize, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let away = draw.percent(50);
    let mut steps = Vec::new();
    steps.extend(away.then_some(What::Block(site, true, true)));
    steps.extend([What::Take(site, taken(draw)), What::Rounds(1)]);
    steps.extend([change(draw, other, exported), What::Rounds(1)]);
    if draw.percent(30) {
        let namespace = one_of(draw, other, exported).namespace;
        let go_and_come = [
            What::RemoveNamespace(site, namespace),
            What::Namespace(site, namespace),
        ];
        steps.extend(go_and_come.into_iter().flat_map(|what| [what, What::Rounds(1)]));
    }
    steps.extend(draw.percent(20).then_some(What::CrashAgent(site)));
    steps.extend(draw.percent(20).then_some(What::StopHub));
    if draw.percent(30) {
        steps.extend([What::Take(site, Taken::Everything), What::Rounds(1)]);
    }
    steps.extend(away.then_some(What::Pass(LONG_SILENCE_MILLIS)));
    steps.extend([What::Unblock(site), What::Rounds(2)]);
    steps.extend(draw.percent(70).then_some(What::RestRestricted));
    steps
}

/// A member has little room for what it says, perhaps from its first word to a new hub on.
fn squeezed(draw: &mut Draw, site: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let mut steps = vec![What::Squeeze(site), What::Rounds(1)];
    for _ in 0..4 {
        steps.extend([change(draw, site, exported), What::Rounds(1)]);
    }
    steps.extend(draw.percent(40).then_some(What::CrashAgent(site)));
    steps.extend(draw.percent(30).then_some(What::StopHub));
    steps.extend([What::Rounds(2), What::Pass(LONG_SILENCE_MILLIS), What::Rounds(2)]);
    steps.extend(draw.percent(50).then_some(What::RestRestricted));
    steps
}

/// A member is away while what it knows last goes from the log; perhaps the hub starts again meanwhile.
fn forgotten(draw: &mut Draw, site: usize, clusters: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let mut steps = vec![What::Block(site, true, true)];
    for _ in 0..2 {
        steps.extend([
            change(draw, other, exported),
            What::Pass(SEGMENT_MILLIS),
            What::Rounds(2),
        ]);
        steps.push(What::Retain(false));
    }
    steps.extend(draw.percent(50).then_some(What::StopHub));
    steps.extend([What::Unblock(site), What::Rounds(1)]);
    steps
}

/// Little of the hub's disk is free while a member has something to say; perhaps the hub starts again meanwhile.
fn nearly_full(draw: &mut Draw, site: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let looked_at = [What::Pass(HEARTBEAT_MILLIS), What::Rounds(1)];
    let mut steps = vec![What::FillDisk(true)];
    steps.extend(looked_at.clone());
    for _ in 0..3 {
        steps.extend([change(draw, site, exported), What::Rounds(1)]);
    }
    steps.extend(draw.percent(30).then_some(What::StopHub));
    steps.push(What::FillDisk(false));
    steps.extend(looked_at);
    steps
}

/// An old copy of the hub's data is put where little is free: what members list that is not in it has to wait.
fn restored_where_little_is_free(draw: &mut Draw, site: usize) -> Vec<What> {
    let name = named(draw);
    vec![
        What::RemoveService(site, name),
        What::Rounds(1),
        What::Backup,
        What::Service(site, name, draw.small(3)),
        What::Slice(site, name, 0, 1 + draw.small(3)),
        What::Export(site, name),
        What::Rest(false),
        What::FillDisk(true),
        What::Pass(HEARTBEAT_MILLIS),
        What::Restore,
        What::Rounds(2),
        What::Pass(HEARTBEAT_MILLIS),
        What::Rounds(2),
        What::FillDisk(false),
        What::Pass(HEARTBEAT_MILLIS),
        What::Rounds(1),
    ]
}

/// A namespace of an importer goes, and what it imported there ends before it comes again.
fn namespace_returns(
    draw: &mut Draw,
    site: usize,
    clusters: usize,
    exported: &[(usize, Named)],
) -> Vec<What> {
    let other = (site + 1 + draw.index(clusters - 1)) % clusters;
    let name = one_of(draw, other, exported);
    vec![
        What::Rounds(2),
        What::RemoveNamespace(site, name.namespace),
        What::Rounds(1),
        What::Unexport(other, name),
        What::Rounds(1),
        What::Namespace(site, name.namespace),
        What::Rounds(1),
    ]
}

/// A member states another age of what it exports, and has something to say about it.
fn lie(draw: &mut Draw, site: usize, exported: &[(usize, Named)]) -> Vec<What> {
    let mut steps = vec![What::Lie(site)];
    for _ in 0..2 {
        steps.push(What::Service(site, one_of(draw, site, exported), draw.small(3)));
    }
    steps.push(What::Rounds(1));
    steps
}

/// Changes objects that other clusters hold of this one.
pub(super) fn change(draw: &mut Draw, site: usize, exported: &[(usize, Named)]) -> What {
    let name = one_of(draw, site, exported);
    match draw.below(4) {
        0 => What::Unexport(site, name),
        1 => What::RemoveSlice(site, name, draw.small(2)),
        2 => What::Export(site, name),
        _ => What::Slice(site, name, draw.small(2), 1 + draw.small(3)),
    }
}

/// A service that the site exported first, if there is one.
pub(super) fn one_of(draw: &mut Draw, site: usize, exported: &[(usize, Named)]) -> Named {
    let of_site: Vec<Named> = exported
        .iter()
        .filter(|(at, _)| *at == site)
        .map(|(_, name)| *name)
        .collect();
    if of_site.is_empty() {
        named(draw)
    } else {
        of_site[draw.index(of_site.len())]
    }
}

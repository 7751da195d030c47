//! The script of a world: steps, drawn from a seed before anything runs. Each step brings its own seed for the turns
//! that follow it, so that a script with steps left out is a script.

use serde::{Deserialize, Serialize};

use super::{
    clocks,
    draw::Draw,
    failing, goodbye,
    happening::{AgentPart, METADATA, Named, SHAPES, WATCHES, What, going, named, taken},
    hostilities, many_lost, story,
};

/// Turns after a step.
const TURNS_MAX: u64 = 24;
/// Turns after each step that makes the world, before anything goes wrong.
const FIRST_TURNS_MAX: u64 = 12;
/// Percentage of steps with a whole story; see `story`.
const STORIES_PERCENT: u64 = 6;
/// Percentage of steps of people with a hostile member for a while; see `hostilities`.
const HOSTILITIES_PERCENT: u64 = 5;
/// Percentage of worlds that keep no removable history.
const NO_HISTORY_PERCENT: u64 = 15;
/// Percentage of worlds in which a leader goes once more than by the faults of the world: drawn apart from them.
const HAND_OVER_PERCENT: u64 = 20;
/// Keeps those draws apart from all others of a seed.
const HAND_OVER_DRAW: u64 = 0x1ead;
/// Percentage of worlds in which a hub is away for so long that the Leases of sources expire: drawn apart, too.
const AWAY_PERCENT: u64 = 10;
/// Keeps those draws apart from all others of a seed.
const AWAY_DRAW: u64 = 0xa4a7;
/// Percent of worlds in which an API server refuses writes for longer than a Lease of a source lasts.
const REFUSED_PERCENT: u64 = 10;
/// Keeps those draws apart from all others of a seed.
const REFUSED_DRAW: u64 = 0x4ef0;
/// Percent of worlds in which an API server refuses one verb, or writes of one kind, for as long.
const VERB_PERCENT: u64 = 8;
/// Percent of worlds in which an API server is slow while a leader goes.
const SLOW_PERCENT: u64 = 10;
/// Percent of worlds in which an object that cannot be decoded stands among good ones.
const SPOILED_PERCENT: u64 = 8;
/// Keeps those draws apart from all others of a seed.
const VERB_DRAW: u64 = 0x7e4b;
const SLOW_DRAW: u64 = 0x510e;
const SPOILED_DRAW: u64 = 0xbad0;
/// Percentage of worlds with exports in which a member withdraws most of them: drawn apart, too.
const HELD_PERCENT: u64 = 15;
/// Keeps those draws apart from all others of a seed.
const HELD_DRAW: u64 = 0xb7a4e;
/// Percentage of worlds in which half of the fleet is away at one time, and in which a member comes and goes: drawn
/// apart, too.
const HALF_AWAY_PERCENT: u64 = 8;
const COMES_AND_GOES_PERCENT: u64 = 5;
/// Percentage of worlds in which a member is copied, and the copy comes.
const COPIED_PERCENT: u64 = 8;
/// Keeps those draws apart from all others of a seed.
const HALF_AWAY_DRAW: u64 = 0x4a1f;
const COMES_AND_GOES_DRAW: u64 = 0xf1a9;
const COPIED_DRAW: u64 = 0xc0b7;
/// Percentage of worlds in which the agents of a cluster end in good order and are away for longer than a loss needs:
/// drawn apart, too.
const GOODBYE_PERCENT: u64 = 8;
/// Keeps those draws apart from all others of a seed.
const GOODBYE_DRAW: u64 = 0xb1e5;
/// Percentage of worlds in which the hub's wall clock is wrong for a moment while a time runs, and in which a wall clock is
/// set at any time: drawn apart, too.
const WRONG_CLOCK_PERCENT: u64 = 10;
const CLOCK_SET_PERCENT: u64 = 8;
/// Keeps those draws apart from all others of a seed.
const WRONG_CLOCK_DRAW: u64 = 0xc111;
const CLOCK_SET_DRAW: u64 = 0x5e7d;
/// Classes of faults; see `fault`.
const CLASSES: u64 = 23;
/// Rounds of everybody in one step, at most.
const ROUNDS_MAX: u8 = 2;
/// By how much a clock is wrong, in milliseconds.
const SKEW_MILLIS_MAX: u64 = 10_000;
/// Largest number of services exported at first.
const FIRST_SERVICES_MAX: u64 = 2;

/// The size of a swarm's worlds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Size {
    /// Two clusters, sometimes three; one or two rests.
    Small,
    /// Three or four clusters, up to five rests, and more between them.
    Large,
}

impl Size {
    fn clusters(self, draw: &mut Draw) -> usize {
        match self {
            Self::Small => 2 + usize::from(draw.percent(33)),
            Self::Large => 3 + draw.index(2),
        }
    }

    fn rounds(self, draw: &mut Draw) -> u64 {
        match self {
            Self::Small => 1,
            Self::Large => 2 + draw.below(4),
        }
    }

    /// Steps between two rests.
    fn steps(self, draw: &mut Draw) -> u64 {
        match self {
            Self::Small => 4 + draw.below(7),
            Self::Large => 10 + draw.below(20),
        }
    }
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The happening.
    pub what: What,
    /// Number of turns after it.
    pub turns: u16,
    /// Seed of those turns.
    pub seed: u64,
}

/// A world's script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// The seed it was drawn from; it also decides ids.
    pub seed: u64,
    /// Number of clusters.
    pub clusters: usize,
    /// The steps.
    pub steps: Vec<Step>,
}

/// Draws the script of a seed. Every world comes to rest before anything goes wrong, so that there is something that
/// must go on standing. A third of the rounds has faults only: then all of it must.
pub fn draw(seed: u64, size: Size) -> Script {
    let mut draw = Draw::new(seed);
    let clusters = size.clusters(&mut draw);
    let classes = classes(&mut draw);
    let mut steps = Vec::new();
    let mut turns = FIRST_TURNS_MAX;
    let first = first(&mut draw, clusters);
    let exported: Vec<(usize, Named)> = first.iter().filter_map(exported).collect();
    for what in first {
        push(&mut steps, &mut draw, what, turns);
    }
    push(&mut steps, &mut draw, What::Rest(false), turns);
    turns = TURNS_MAX;
    if draw.percent(NO_HISTORY_PERCENT) {
        push(&mut steps, &mut draw, What::Retain(true), turns);
    }
    let rounds = size.rounds(&mut draw);
    for round in 1..=rounds {
        let edits = draw.percent(67);
        for _ in 0..size.steps(&mut draw) {
            if edits && draw.percent(HOSTILITIES_PERCENT) {
                for what in hostilities::hostilities(&mut draw, clusters, &exported) {
                    push(&mut steps, &mut draw, what, turns);
                }
                continue;
            }
            if draw.percent(STORIES_PERCENT) {
                for what in story::story(&mut draw, clusters, &exported, edits) {
                    push(&mut steps, &mut draw, what, turns);
                }
                continue;
            }
            let what = if edits && draw.percent(60) {
                edit(&mut draw, clusters, &exported)
            } else {
                fault(&mut draw, clusters, classes)
            };
            push(&mut steps, &mut draw, what, turns);
        }
        let restart = round == rounds && draw.percent(33);
        push(&mut steps, &mut draw, What::Rest(restart), turns);
    }
    told_apart(&mut steps, seed, clusters, &exported);
    Script {
        seed,
        clusters,
        steps,
    }
}

/// Steps of some worlds beside their own draws.
fn told_apart(steps: &mut Vec<Step>, seed: u64, clusters: usize, exported: &[(usize, Named)]) {
    let apart = |draw| Draw::new(seed ^ draw);
    hand_over(steps, apart(HAND_OVER_DRAW), clusters);
    away(steps, apart(AWAY_DRAW), clusters);
    held(steps, apart(HELD_DRAW), clusters, exported);
    insert(steps, apart(REFUSED_DRAW), REFUSED_PERCENT, |draw| {
        let site = draw.index(clusters);
        story::writes_refused(draw, site)
    });
    insert(steps, apart(VERB_DRAW), VERB_PERCENT, |draw| {
        let site = draw.index(clusters);
        failing::verb_refused(draw, site, clusters, exported)
    });
    insert(steps, apart(SLOW_DRAW), SLOW_PERCENT, |draw| {
        let site = draw.index(clusters);
        failing::slow_api_server(draw, site)
    });
    insert(steps, apart(SPOILED_DRAW), SPOILED_PERCENT, |draw| {
        failing::spoiled(draw, clusters, exported)
    });
    insert(steps, apart(HALF_AWAY_DRAW), HALF_AWAY_PERCENT, |draw| {
        many_lost::half_away(draw, clusters, exported)
    });
    insert(
        steps,
        apart(COMES_AND_GOES_DRAW),
        COMES_AND_GOES_PERCENT,
        |draw| {
            let site = draw.index(clusters);
            many_lost::comes_and_goes(draw, site)
        },
    );
    insert(steps, apart(COPIED_DRAW), COPIED_PERCENT, |draw| {
        let site = draw.index(clusters);
        story::copied(draw, site, exported)
    });
    insert(steps, apart(GOODBYE_DRAW), GOODBYE_PERCENT, |draw| {
        goodbye::goes_away(draw, clusters, exported)
    });
    insert(steps, apart(WRONG_CLOCK_DRAW), WRONG_CLOCK_PERCENT, |draw| {
        clocks::wrong_for_a_moment(draw, clusters, exported)
    });
    insert(steps, apart(CLOCK_SET_DRAW), CLOCK_SET_PERCENT, |draw| {
        clocks::set(draw, clusters)
    });
}

/// In some worlds a leader goes between the first rest and the last.
fn hand_over(steps: &mut Vec<Step>, draw: Draw, clusters: usize) {
    insert(steps, draw, HAND_OVER_PERCENT, |draw| {
        vec![What::HandOver(draw.index(clusters), going(draw))]
    });
}

/// In some worlds the hub is away for long from a cluster whose agents let go then what came from others.
fn away(steps: &mut Vec<Step>, draw: Draw, clusters: usize) {
    insert(steps, draw, AWAY_PERCENT, |draw| {
        let site = draw.index(clusters);
        story::hub_away_for_long(draw, site)
    });
}

/// In some worlds a cluster takes back most of its exports at once, and is held.
fn held(steps: &mut Vec<Step>, draw: Draw, clusters: usize, exported: &[(usize, Named)]) {
    if exported.is_empty() {
        return;
    }
    insert(steps, draw, HELD_PERCENT, |draw| {
        let (site, _) = exported[draw.index(exported.len())];
        story::definition_goes(draw, site, clusters, exported)
    });
}

/// So often in a hundred worlds a story is told between the first rest and the last.
fn insert(steps: &mut Vec<Step>, mut draw: Draw, percent: u64, story: impl FnOnce(&mut Draw) -> Vec<What>) {
    let rests = |step: &Step| matches!(step.what, What::Rest(_));
    let first = steps.iter().position(rests).map_or(0, |rest| rest + 1);
    if !draw.percent(percent) || first >= steps.len() {
        return;
    }
    let at = first + draw.index(steps.len() - first);
    let mut told = Vec::new();
    for what in story(&mut draw) {
        push(&mut told, &mut draw, what, TURNS_MAX);
    }
    steps.splice(at..at, told);
}

/// Not every world has every fault, and some have few of them often: rare ones must not always end in the shadow of
/// common ones, and what needs one fault twice must meet it twice.
fn classes(draw: &mut Draw) -> u64 {
    let (some, others) = (draw.number(), draw.number());
    let classes = if draw.percent(50) {
        some | others
    } else {
        some & others
    };
    match classes % (1 << CLASSES) {
        0 => 1 << draw.below(CLASSES),
        classes => classes,
    }
}

/// The initial objects before anything goes wrong: namespaces nearly everywhere, and services that some clusters
/// export.
fn first(draw: &mut Draw, clusters: usize) -> Vec<What> {
    let mut all = Vec::new();
    for site in 0..clusters {
        for namespace in 0..2 {
            if draw.percent(90) {
                all.push(What::Namespace(site, namespace));
            }
        }
    }
    for _ in 0..draw.below(FIRST_SERVICES_MAX + 1) {
        let name = named(draw);
        for site in 0..clusters {
            if draw.percent(60) {
                let shape = if draw.percent(60) { 0 } else { draw.small(SHAPES) };
                all.push(What::Service(site, name, shape));
                all.push(What::Slice(site, name, draw.small(2), 1 + draw.small(3)));
                all.push(What::Export(site, name));
            }
        }
    }
    all
}

fn exported(what: &What) -> Option<(usize, Named)> {
    match what {
        What::Export(site, name) => Some((*site, *name)),
        _ => None,
    }
}

fn push(steps: &mut Vec<Step>, draw: &mut Draw, what: What, turns_max: u64) {
    let turns = if draw.percent(20) {
        0
    } else {
        u16::try_from(draw.below(turns_max)).unwrap_or_default()
    };
    steps.push(Step {
        what,
        turns,
        seed: draw.number(),
    });
}

/// Mostly of what was `exported` first, for only what is there can change and go.
fn edit(draw: &mut Draw, clusters: usize, exported: &[(usize, Named)]) -> What {
    let (site, name) = if exported.is_empty() || draw.percent(40) {
        (draw.index(clusters), named(draw))
    } else {
        exported[draw.index(exported.len())]
    };
    match draw.below(100) {
        0..=14 => What::Service(site, name, draw.small(SHAPES)),
        15..=32 => What::Export(site, name),
        33 => What::Metadata(site, name, draw.small(METADATA)),
        35..=53 => What::Slice(site, name, draw.small(2), 1 + draw.small(3)),
        54..=66 => What::Unexport(site, name),
        67..=75 => What::RemoveSlice(site, name, draw.small(2)),
        76..=82 => What::RemoveService(site, name),
        83..=86 => What::RemoveNamespace(site, name.namespace),
        87..=92 => What::Namespace(site, name.namespace),
        34 | 93 => What::Take(site, taken(draw)),
        94..=95 => What::Stranger(site, name, draw.percent(50)),
        96..=97 => What::RemoveStranger(site, name, draw.percent(50)),
        _ => What::Drift(site, draw.small(u8::MAX)),
    }
}

/// Faults by class, of those that the world has; now and then time passes, or everybody goes on in spite of them.
fn fault(draw: &mut Draw, clusters: usize, classes: u64) -> What {
    if draw.percent(25) {
        return if draw.percent(40) {
            What::Pass(u32::try_from(draw.below(4_000)).unwrap_or_default())
        } else {
            What::Rounds(1 + draw.small(ROUNDS_MAX))
        };
    }
    let (site, mut class) = (draw.index(clusters), draw.below(CLASSES));
    while classes >> class & 1 == 0 {
        class = (class + 1) % CLASSES;
    }
    match class {
        0 => What::DropWatches(site),
        1 => What::ForgetHistory(site),
        2 | 3 => What::Errors(site, draw.small(5), 1 + draw.small(4)),
        4 => What::CutListings(site, 1 + draw.small(3)),
        5 => {
            if draw.percent(15) {
                What::Forge(site)
            } else {
                What::CrashAgent(site)
            }
        }
        6 => {
            if draw.percent(20) {
                What::DoubleAgent(site)
            } else {
                What::HandOver(site, going(draw))
            }
        }
        7 | 8 => What::CrashHub(draw.small(3), draw.percent(30)),
        9 => What::StopHub,
        10 => What::FailSync,
        11 => What::Backup,
        12 => What::Restore,
        13 => What::EmptyHub(skew(draw)),
        14 => What::Block(site, true, true),
        15 => {
            if draw.percent(50) {
                What::Block(site, true, false)
            } else {
                What::Block(site, false, true)
            }
        }
        16 => What::Unblock(site),
        17 => What::Reset(site),
        18 => {
            if draw.percent(50) {
                What::Skew(site, skew(draw))
            } else {
                What::Pass(3_000 + u32::try_from(draw.below(20_000)).unwrap_or_default())
            }
        }
        19 => What::Stall(site, part(draw)),
        20 => What::FillDisk(draw.percent(60)),
        21 => {
            if draw.percent(70) {
                What::Renew(site)
            } else {
                What::Revoke(site)
            }
        }
        _ => match draw.below(4) {
            0 => What::RemoveCrd(site, draw.percent(50)),
            1 => What::InstallCrds(site),
            _ => What::Drift(site, draw.small(u8::MAX)),
        },
    }
}

fn part(draw: &mut Draw) -> AgentPart {
    match draw.below(10) {
        0..=4 => AgentPart::Watch(draw.small(WATCHES)),
        5 => AgentPart::Observe,
        6 | 7 => AgentPart::Speak,
        8 => AgentPart::Listen,
        _ => AgentPart::Apply,
    }
}

/// A clock is wrong by seconds, ahead or behind.
fn skew(draw: &mut Draw) -> i32 {
    i32::try_from(draw.below(2 * SKEW_MILLIS_MAX)).unwrap_or_default() - SKEW_MILLIS_MAX as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults break what stands: without a rest before them the laws on what stood would guard nothing.
    #[test]
    fn every_world_rests_before_its_faults() {
        for (seed, size) in (0..200).flat_map(|seed| [(seed, Size::Small), (seed, Size::Large)]) {
            let script = draw(seed, size);
            let made = |step: &Step| {
                matches!(
                    step.what,
                    What::Namespace(..) | What::Service(..) | What::Slice(..) | What::Export(..)
                )
            };
            let after = script.steps.iter().skip_while(|step| made(step));
            let first = after.map(|step| &step.what).next();
            assert!(matches!(first, Some(What::Rest(_))), "seed {seed}: {first:?}");
        }
    }

    #[test]
    fn a_seed_gives_one_script_that_survives_its_text() {
        let script = draw(7, Size::Small);
        assert_eq!(script, draw(7, Size::Small));
        assert_ne!(script.steps, draw(8, Size::Small).steps);
        let text = serde_json::to_string(&script).expect("plain values");
        assert_eq!(
            serde_json::from_str::<Script>(&text).expect("its own text"),
            script
        );
        let last = script.steps.last().map(|step| &step.what);
        assert!(matches!(last, Some(What::Rest(_))));
    }
}

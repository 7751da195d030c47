//! One seed: trouble, mending, convergence, rest, what becomes of members then, a restart of everything, rest again.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use anyhow::ensure;
use hub::writer::request::SILENCE_MAX_MILLIS;
use shared::process::seed_thread;

use super::{
    clusterset::SimulatedClusterset,
    course::{CONVERGED_WITHIN, advance, converge, no_content, pass, rest},
    logged,
    program::Life,
    script::Script,
    story,
    trace::Trace,
    vigil::Vigil,
};
use oracle::{
    laws::Guarded,
    shorten::{Effort, kind_of, shorten},
};

/// By then after the end of the trouble, both ends of a session whose link lost something while it was broken have
/// noticed: until then the hub may count a session that its member can no longer hear.
const NOTICED: u64 = SILENCE_MAX_MILLIS + 2_000;
/// Time without writes once all is right.
const REST: u64 = 15_000;
/// Time after a restart of everything from which nothing may be written.
const REST_AFTER_RESTART: u64 = 25_000;
/// Prefix of every failure of the simulated disk.
const SICK_DISK: &str = "the simulated ";

thread_local! {
    /// Panics of tasks on this thread.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The result of a seed.
pub struct SeedResult {
    /// The fault, if there was one.
    pub failure: Option<String>,
    /// The hash of everything that happened.
    pub trace: String,
    /// Numbers of happenings, by class.
    pub counts: BTreeMap<&'static str, u64>,
    /// Objects that each law guarded.
    pub guarded: Guarded,
    /// Simulated milliseconds.
    pub simulated: u64,
}

/// Runs one seed on this thread.
pub fn simulate(seed: u64, print_trace: bool) -> SeedResult {
    simulate_script(seed, &Script::draw(seed), print_trace)
}

/// The shortest script found that fails as a seed does, and how it fails.
pub(super) fn shrink(seed: u64, failure: &str, effort: Effort) -> (Script, String) {
    let drawn = Script::draw(seed);
    let mut failed = failure.to_owned();
    let of = |events: &[_]| Script {
        events: events.to_vec(),
        ..drawn.clone()
    };
    let short = shorten(drawn.events.clone(), effort, |events| {
        let found = simulate_script(seed, &of(events), false).failure?;
        let same = kind_of(&found) == kind_of(failure);
        same.then(|| {
            failed = found;
            events.len()
        })
    });
    (of(&short), failed)
}

fn simulate_script(seed: u64, script: &Script, print_trace: bool) -> SeedResult {
    note_panics();
    seed_thread(Some(seed));
    let mut outcome = SeedResult {
        failure: None,
        trace: String::new(),
        counts: BTreeMap::new(),
        guarded: Guarded::default(),
        simulated: 0,
    };
    let played = catch_unwind(AssertUnwindSafe(|| play(seed, script, print_trace, &mut outcome)));
    seed_thread(None);
    let panics = PANICS.take();
    outcome.failure = match played {
        _ if !panics.is_empty() => Some(format!("a task panicked: {}", panics.join("; "))),
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("{error:#}")),
        Err(_) => Some("the simulator panicked".into()),
    };
    outcome
}

/// A panic inside a task ends the task only: it must be seen here.
fn note_panics() {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()));
            before(panic);
        }));
    });
}

fn play(seed: u64, script: &Script, print_trace: bool, outcome: &mut SeedResult) -> anyhow::Result<()> {
    let mut clusterset = SimulatedClusterset::build(seed, script, Trace::new(print_trace))?;
    let mut vigil = Vigil::default();
    let result = acts(script, &mut clusterset, &mut vigil);
    if print_trace {
        println!("the last events of the log:");
        logged::last_events(&clusterset.hub)?
            .iter()
            .for_each(|event| println!("{event}"));
    }
    for life in lives(&clusterset) {
        *outcome.counts.entry("processes started").or_default() += u64::from(life.starts.get());
        *outcome.counts.entry("processes ended by themselves").or_default() +=
            life.ends.borrow().len() as u64;
    }
    outcome.counts.append(&mut clusterset.counts);
    outcome.guarded = vigil.guarded();
    outcome.guarded.add(&clusterset.guarded);
    outcome.trace = clusterset.trace.hash();
    outcome.simulated = clusterset.now();
    result
}

fn acts(script: &Script, clusterset: &mut SimulatedClusterset, vigil: &mut Vigil) -> anyhow::Result<()> {
    let mut events = script.events.iter().peekable();
    while clusterset.now() < script.trouble_ends {
        let now = clusterset.now();
        while let Some((_, event)) = events.next_if(|(at, _)| *at <= now) {
            clusterset.perform(*event);
        }
        advance(clusterset, vigil)?;
    }
    clusterset.mend_everything();
    let ends = ends(clusterset);
    pass(clusterset, vigil, NOTICED)?;
    converge(clusterset, vigil)?;
    rest(clusterset, vigil, REST, "at rest")?;
    story::play(script.story, clusterset, vigil)?;
    converge(clusterset, vigil)?;
    rest(clusterset, vigil, REST, "after the story")?;
    clusterset.restart_everything();
    let restarted = clusterset.now();
    let starts = starts(clusterset);
    while (starts_since(clusterset, starts) as usize) < lives(clusterset).count() {
        ensure!(
            clusterset.now() < restarted + CONVERGED_WITHIN,
            "a process that was asked to stop has not come back"
        );
        let written = advance(clusterset, vigil)?;
        no_content(&written, "during a restart of everything")?;
    }
    converge(clusterset, vigil)?;
    rest(
        clusterset,
        vigil,
        REST_AFTER_RESTART,
        "after a restart of everything",
    )?;
    let late = ends_since(clusterset, &ends);
    ensure!(
        late.is_empty(),
        "a process ended although nothing was broken: {}",
        late.join("; ")
    );
    logged::is_whole(&clusterset.hub)
}

/// Number of times that each process ended by itself.
fn ends(clusterset: &SimulatedClusterset) -> Vec<usize> {
    lives(clusterset).map(|life| life.ends.borrow().len()).collect()
}

/// Last words of processes that ended by themselves since then, though nothing was broken. A log that failed while its
/// disk was sick takes no more events, which its hub may notice later.
fn ends_since(clusterset: &SimulatedClusterset, before: &[usize]) -> Vec<String> {
    let since = |(life, before): (&Life, &usize)| life.ends.borrow()[*before..].to_vec();
    let mut late = lives(clusterset)
        .zip(before)
        .map(since)
        .collect::<Vec<_>>()
        .concat();
    late.retain(|why| !why.contains(SICK_DISK));
    late
}

fn lives(clusterset: &SimulatedClusterset) -> impl Iterator<Item = &Life> {
    let machines = clusterset.members.iter().flat_map(|member| &member.machines);
    machines
        .map(|machine| &machine.life)
        .chain([&clusterset.hub.life])
}

fn starts(clusterset: &SimulatedClusterset) -> u32 {
    lives(clusterset).map(|life| life.starts.get()).sum()
}

fn starts_since(clusterset: &SimulatedClusterset, before: u32) -> u32 {
    starts(clusterset) - before
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use shared::tls::install_crypto_provider;

    use super::*;
    use crate::{
        credentials::Change,
        script::{CLUSTERS, Event, Fault, Story},
        user::{Deed, NAMESPACE, SERVICES, Shape},
    };

    /// A clusterset on which `events` happen, and what was seen, after `millis`.
    fn played(events: Vec<(u64, Event)>, millis: u64) -> (SimulatedClusterset, Vigil) {
        install_crypto_provider().expect("the first provider");
        seed_thread(Some(1));
        let make = (0..CLUSTERS.len()).map(|cluster| (0, Event::Deed(cluster, Deed::MakeNamespace)));
        let script = Script {
            events: make.chain(events).collect(),
            trouble_ends: millis,
            latency: Duration::from_millis(20),
            tcp_capacity: 16,
            doubled: [false; CLUSTERS.len()],
            story: Story::Goodbye(0),
            clocks_ahead: Default::default(),
        };
        let mut clusterset = SimulatedClusterset::build(1, &script, Trace::new(false)).expect("built");
        let mut vigil = Vigil::default();
        let mut events = script.events.iter().peekable();
        while clusterset.now() < millis {
            let now = clusterset.now();
            while let Some((_, event)) = events.next_if(|(at, _)| *at <= now) {
                clusterset.perform(*event);
            }
            advance(&mut clusterset, &mut vigil).expect("no law is broken");
        }
        (clusterset, vigil)
    }

    fn exported() -> (u64, Event) {
        let deed = Deed::Export {
            service: 0,
            shape: Shape::Plain,
            pods: 2,
            generation: 1,
        };
        (100, Event::Deed(0, deed))
    }

    /// Number of members with a session after the hub was killed and came back, when these machines had changed their
    /// files before, one after the other.
    fn sessions_after(changes: &[(Option<usize>, Change)]) -> usize {
        let change = |(number, (machine, to)): (u64, &(Option<usize>, Change))| {
            (5_000 + number, Event::Fault(Fault::Authority(*machine, *to)))
        };
        let mut events = vec![exported()];
        events.extend((0..).zip(changes).map(change));
        events.push((6_000, Event::Fault(Fault::KillHub)));
        events.push((7_000, Event::Fault(Fault::StartHub)));
        let (clusterset, _) = played(events, 20_000);
        clusterset.hub.sessions.borrow().len()
    }

    #[test]
    fn an_authority_is_replaced_beside_the_former_and_not_without_it() {
        let machines = || (0..CLUSTERS.len()).map(Some).chain([None]);
        let all = |to: Change| machines().map(move |machine| (machine, to));
        let steps = [Change::Beside, Change::Certified, Change::After];
        let in_order: Vec<_> = steps.into_iter().flat_map(all).collect();
        assert_eq!(sessions_after(&in_order), CLUSTERS.len());
        assert_eq!(sessions_after(&[(None, Change::After)]), 0);
    }

    /// A restored hub begins an epoch on a disk that lies, and loses it: its members know an epoch that is in no log.
    #[test]
    fn a_hub_that_lost_the_epoch_that_its_members_know_is_taken_up_by_an_operator() {
        let faults = [
            (5_000, Fault::BackUp),
            (8_000, Fault::Restore { from_backup: true }),
            (9_000, Fault::StartHub),
            (9_005, Fault::LieAboutSync),
            (14_000, Fault::DropHub { kept: 0 }),
            (15_000, Fault::StartHub),
        ];
        let change = |at, pods| {
            let (service, generation) = (0, 2);
            let scale = Deed::Scale {
                service,
                pods,
                generation,
            };
            (at, Event::Deed(0, scale))
        };
        let faults = faults.map(|(at, fault)| (at, Event::Fault(fault)));
        // What changes after the copy puts the members ahead of it.
        let mut events = vec![exported()];
        events.extend(faults);
        events.push(change(6_000, 1));
        events.sort_by_key(|(at, _)| *at);
        let (clusterset, _) = played(events, 40_000);
        assert_eq!(clusterset.hub.sessions.borrow().len(), CLUSTERS.len());
    }

    #[test]
    fn a_hub_that_is_stopped_does_not_wait_for_peers_that_are_gone() {
        let lost = (5_000, Event::Fault(Fault::DropAgent(1)));
        let stopped = (15_000, Event::Fault(Fault::StopHub));
        let (clusterset, _) = played(vec![exported(), lost, stopped], 24_000);
        let ends = clusterset.hub.life.ends.borrow();
        assert!(ends.is_empty(), "it ended with an error: {ends:?}");
        assert_eq!(
            clusterset.hub.life.starts.get(),
            2,
            "it was not stopped and started within 9 s"
        );
    }

    #[test]
    fn what_comes_right_and_is_taken_away_again_is_seen() {
        let killed = (8_000, Event::Fault(Fault::KillAgent(2)));
        let (mut clusterset, mut vigil) = played(vec![exported(), killed], 14_000);
        assert_eq!(vigil.wrong(), Vec::<String>::new());
        assert!(vigil.judged() > 0);
        let cluster = clusterset.members[2].cluster.clone();
        cluster
            .delete("ServiceImport", NAMESPACE, SERVICES[0])
            .expect("it was there");
        let mut looks = (0..1_000).map(|_| advance(&mut clusterset, &mut vigil));
        let broken = looks.find_map(Result::err).expect("seen").to_string();
        assert!(
            broken.contains("what stood stays") && broken.contains(", the import, "),
            "{broken}"
        );
    }

    #[test]
    fn a_write_at_rest_is_seen() {
        let (mut clusterset, mut vigil) = played(vec![exported()], 14_000);
        let cluster = clusterset.members[2].cluster.clone();
        let mut written = Vec::new();
        cluster
            .delete("ServiceImport", NAMESPACE, SERVICES[0])
            .expect("it was there");
        for _ in 0..1_000 {
            written.extend(advance(&mut clusterset, &mut vigil).unwrap_or_default());
        }
        let refused = no_content(&written, "at rest").expect_err("seen").to_string();
        assert!(refused.contains("at rest, the agent of west wrote"), "{refused}");
    }
}

//! Owns: shape storm: all members of fleet-1000 lose their hub and come back at once, as agents do: they dial again
//! and again, waiting longer each time. Once they remember what they hold, once they know nothing any more.
//! Never: helps the hub: nobody waits for another, and the time runs from the start of the hub's process.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use agent::link::Waits;
use anyhow::{Context, bail};
use bytes::Bytes;
use proto::v1;
use shared::tls::HubAddress;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout_at},
};

use super::{
    churn::FLEET,
    cores::UsedCores,
    figure::Aim,
    hub::{HubProcess, Setup},
    load_shape::LoadShape,
    player::{Memory, Player, Session},
    probe::{Counters, Generator, GeneratorTime, Usage},
    progress::Progress,
    report::Section,
    series::Sampler,
};

/// Longest wait until everybody has converged.
const CONVERGED_WAIT: Duration = Duration::from_secs(120);
/// The aim.
const FIRST_PUSH_SECONDS_AIM: f64 = 5.0;
const CONVERGED_SECONDS_AIM: f64 = 15.0;
const MEGABYTES_AIM: f64 = 300.0;

/// A member's report of its session with the hub of this generation.
struct Told {
    generation: u64,
    at: Instant,
    what: What,
}

enum What {
    /// The hub sent something that it derived or knows.
    Pushed,
    /// Everything is as before: reported, every slice held, and all others known as listed.
    Converged,
}

/// Common state of all members.
struct Shared {
    hub: HubAddress,
    members: usize,
    /// Counts hubs.
    generation: AtomicU64,
    /// Members come back as if they had been restarted.
    forget: AtomicBool,
    told: mpsc::UnboundedSender<Told>,
}

/// Measures both kinds of storm.
pub(super) async fn measure(setup: &Setup, sections: &mut Vec<Section>) -> anyhow::Result<()> {
    let world = LoadShape::new(FLEET)?;
    let data = setup.data("storm")?;
    let mut hub = HubProcess::start(setup, &data, UsedCores::OwnCores).await?;
    let (told, mut hears) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        hub: hub.address.clone(),
        members: world.members.len(),
        generation: AtomicU64::new(0),
        forget: AtomicBool::new(true),
        told,
    });
    let mut playing = JoinSet::new();
    for member in visitors(setup, &world)? {
        playing.spawn(member.stay(shared.clone()));
    }
    eprintln!("storm: {} members connect and list", shared.members);
    converged(&shared, &mut hears).await.context("before the storm")?;
    for forget in [false, true] {
        let title = if forget {
            "storm, 1000 members come back and know nothing"
        } else {
            "storm, 1000 members come back with what they hold"
        };
        let mut section = Section::begin(title);
        let listen = hub.listen;
        hub.kill().await?;
        shared.forget.store(forget, Ordering::Relaxed);
        shared.generation.fetch_add(1, Ordering::Relaxed);
        let generator = Generator::begin()?;
        hub = HubProcess::start_at(setup, &data, UsedCores::OwnCores, listen).await?;
        let sampler = Sampler::start(hub.pid(), hub.began);
        let came_back = converged(&shared, &mut hears).await?;
        let served = Served {
            began: hub.began,
            serving_after: hub.serving_after(),
            generator: generator.spent()?,
            usage: hub.usage()?,
            counters: hub.counters().await?,
        };
        section.samples = sampler.end().await?;
        describe(&mut section, &served, &came_back);
        sections.push(section);
    }
    hub.kill().await
}

/// Times of members' first push, and of their convergence.
struct CameBack {
    pushed: Vec<Instant>,
    converged: Vec<Instant>,
}

/// The hub that they came back to, and who played them, once all had converged.
struct Served {
    began: Instant,
    serving_after: Duration,
    generator: GeneratorTime,
    usage: Usage,
    counters: Counters,
}

fn describe(section: &mut Section, hub: &Served, came_back: &CameBack) {
    let seconds = |at: Option<&Instant>| {
        at.map_or(f64::NAN, |at| {
            at.saturating_duration_since(hub.began).as_secs_f64()
        })
    };
    let median = came_back.converged.get(came_back.converged.len() / 2);
    let usage = hub.usage;
    section.figure("hub started to serving", hub.serving_after.as_secs_f64(), "s");
    let first = seconds(came_back.pushed.first());
    section.aimed(
        "hub started to first push",
        first,
        "s",
        Aim::Below(FIRST_PUSH_SECONDS_AIM),
    );
    section.figure(
        "hub started to half of the members converged",
        seconds(median),
        "s",
    );
    let last = seconds(came_back.converged.last());
    section.aimed(
        "hub started to all converged",
        last,
        "s",
        Aim::Below(CONVERGED_SECONDS_AIM),
    );
    section.figure("hub processor time", usage.cpu_seconds, "s");
    section.generator(hub.generator);
    section.figure("hub memory", usage.resident as f64 / 1e6, "MB");
    let peak = usage.resident_peak as f64 / 1e6;
    section.aimed("hub memory at its peak", peak, "MB", Aim::Below(MEGABYTES_AIM));
    section.figure("events recorded by it", hub.counters.events, "");
    section.note(
        "members dial as agents do: after 0.1 to 0.2 s, doubling, so a hub that serves may wait to be found",
    );
}

/// Waits until every member has converged with the present hub.
async fn converged(shared: &Shared, hears: &mut mpsc::UnboundedReceiver<Told>) -> anyhow::Result<CameBack> {
    let deadline = Instant::now() + CONVERGED_WAIT;
    let generation = shared.generation.load(Ordering::Relaxed);
    let mut came_back = CameBack {
        pushed: Vec::new(),
        converged: Vec::new(),
    };
    while came_back.converged.len() < shared.members {
        let told = timeout_at(deadline.into(), hears.recv()).await;
        let Ok(Some(told)) = told else {
            let (done, all, wait) = (
                came_back.converged.len(),
                shared.members,
                CONVERGED_WAIT.as_secs(),
            );
            bail!("after {wait} s {done} of {all} members have converged: the hub is overloaded")
        };
        if told.generation == generation {
            match told.what {
                What::Pushed => came_back.pushed.push(told.at),
                What::Converged => came_back.converged.push(told.at),
            }
        }
    }
    came_back.pushed.sort();
    came_back.converged.sort();
    Ok(came_back)
}

fn visitors(setup: &Setup, world: &LoadShape) -> anyhow::Result<Vec<Visitor>> {
    let mut facts: Vec<Vec<Bytes>> = world
        .members
        .iter()
        .map(|member| member.exports.clone())
        .collect();
    for (at, number) in world.slices.iter().zip(0..) {
        facts[at.member].push(world.members[at.member].slices[at.slice].numbered(number));
    }
    let mut due = vec![0; world.members.len()];
    for at in &world.slices {
        world.receivers(at).for_each(|member| due[member] += 1);
    }
    let members = world.members.iter().zip(facts).zip(due);
    let visitors = members.map(|((member, facts), due)| {
        Ok(Visitor {
            player: Player {
                cluster: member.cluster.clone(),
                credentials: setup.member(&member.cluster)?,
                interest: member.interest.clone(),
                takes_differences: false,
            },
            memory: Memory::of(&facts)?,
            facts,
            held: HashSet::new(),
            due,
        })
    });
    visitors.collect()
}

/// One member, over all hubs of the shape.
struct Visitor {
    player: Player,
    facts: Vec<Bytes>,
    memory: Memory,
    /// The imported slices that it has been sent and that were not taken back, over all sessions that resumed.
    held: HashSet<v1::ImportedSliceKey>,
    /// Number of objects that it must hold.
    due: usize,
}

impl Visitor {
    /// Comes back whenever the session ends.
    async fn stay(mut self, shared: Arc<Shared>) {
        let mut waits = Waits::default();
        loop {
            let began = Instant::now();
            if let Ok(session) = self.connect(&shared).await {
                // It ends when the hub does: what it lacked shows in the count of those who converged.
                let _ = self.visit(session, &shared).await;
            }
            waits.ended(began.elapsed());
            sleep(waits.unreached(rand::random())).await;
        }
    }

    async fn connect(&self, shared: &Shared) -> anyhow::Result<Session> {
        if shared.forget.load(Ordering::Relaxed) {
            self.player.connect(&shared.hub).await
        } else {
            self.player.connect_again(&shared.hub, &self.memory).await
        }
    }

    async fn visit(&mut self, mut session: Session, shared: &Shared) -> anyhow::Result<()> {
        let generation = shared.generation.load(Ordering::Relaxed);
        let tell = |what| {
            let at = Instant::now();
            // Whoever measures may have stopped.
            let _ = shared.told.send(Told { generation, at, what });
        };
        let mut progress = Progress::begin(session.starts_over(), &mut self.held);
        let listing = session.list(self.facts.clone(), |heard| {
            if progress.take(&heard) {
                tell(What::Pushed);
            }
        });
        listing.await?;
        let mut told = false;
        loop {
            progress.unbroken()?;
            if !told && progress.is_complete(shared.members, self.due) {
                told = true;
                tell(What::Converged);
            }
            if progress.take(&session.hear().await?) {
                tell(What::Pushed);
            }
            self.memory.cursor = session.cursor();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_plays_the_storm_says_what_that_cost_it() {
        let began = Instant::now();
        let served = Served {
            began,
            serving_after: Duration::from_millis(300),
            generator: GeneratorTime {
                cpu_seconds: 1.5,
                seconds: 3.0,
            },
            usage: Usage::of(std::process::id()).expect("we run"),
            counters: Counters::default(),
        };
        let came_back = CameBack {
            pushed: vec![began + Duration::from_secs(1)],
            converged: vec![began + Duration::from_secs(2)],
        };
        let mut section = Section::begin("storm");
        describe(&mut section, &served, &came_back);
        let lines: Vec<_> = section.figures.iter().map(|figure| figure.line()).collect();
        let printed = |name: &str, value: &str| {
            let line = lines.iter().find(|line| line.contains(name)).expect("printed");
            assert!(line.contains(value), "{line}");
        };
        printed("generator processor time", "0.50 cores");
        printed("hub started to first push", "1.00 s");
        printed("hub started to all converged", "2.00 s");
    }
}

//! Owns: our plans of topologies beside what upstream's own manager of Cluster API makes of the same classes and Clusters,
//! on a real API server: it is the oracle. Many at once: each seed has a namespace with a class, templates and a Cluster.
//! Never: has providers; what they would report is written here.
//!
//! Beside it, on another API server, the hub's own engine keeps the same classes and Clusters through the same edits: both
//! trees are the same but for names.
//!
//! Each plan is made a second time from the spelling of v1beta1.
//!
//! * `older`: that spelling. `ours`: that engine. `trees`: what each of the two says, so that it can be compared.
//! * `world`: the API server, the manager, and everything that is there. `edits`: what people change.
//! * `judged`: whether what the manager did is what was planned, and how much of that was seen.

mod edits;
mod judged;
mod older;
mod ours;
mod trees;
mod world;

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use hub::{
    clock::Clock,
    topology::{
        desired::change::{Changes, Plan},
        own::{
            hand_over::{Keeper, hand_over},
            rules::event::ClusterName,
        },
    },
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use shared::model::UnixMillis;
use tokio::sync::Mutex;

use self::{
    edits::{EDITS, Edit},
    judged::{Guarded, judge, shown},
    ours::Ours,
    world::{Export, ManagementCluster},
};
use cluster::{clusterset::eventually::eventually, real::cluster_api::ClusterApi};

/// Most seeds of one run.
pub const SEEDS_MAX: u32 = 500;
/// Seeds that are played at once on a pair of servers. With many more upstream's manager falls behind what it is told, makes
/// things a second time from what it remembers, and leaves references to what it deleted: then it is no oracle.
const AT_ONCE: u32 = 20;
/// Whoever has not written for so long is not at work; milliseconds.
const QUIET_MILLIS: u64 = 11 * 60 * 1_000;
/// Rounds of providers after one edit, at most: an upgrade of several parts is the longest.
const ROUNDS_MAX: usize = 8;

/// The command's arguments.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// The first seed.
    pub first: u64,
    /// Number of seeds.
    pub seeds: u32,
    /// Edits of each seed.
    pub edits: u32,
}

/// A namespace with its draw.
struct Seed {
    namespace: String,
    draw: StdRng,
}

/// Plays all seeds, some at once. Returns how much was seen, a line for those that were played together.
///
/// # Errors
///
/// What upstream did in another way, with the seed and its edit.
pub async fn compare(told: Told) -> anyhow::Result<String> {
    ensure!(
        (1..=SEEDS_MAX).contains(&told.seeds) && told.edits > 0,
        "one run plays 1 to {SEEDS_MAX} seeds, with an edit at least"
    );
    let mut lines = Vec::new();
    for done in (0..told.seeds).step_by(AT_ONCE as usize) {
        let seeds = AT_ONCE.min(told.seeds - done);
        let some = Told {
            first: told.first + u64::from(done),
            seeds,
            edits: told.edits,
        };
        lines.push(compare_some(some).await?);
        eprintln!("{} of {} seeds are played", done + seeds, told.seeds);
    }
    Ok(lines.join("\n"))
}

/// Each edit of a class, a template or a Cluster is planned while upstream's manager stands still; then it goes on, and
/// must have done what was planned: the same objects made, kept, replaced and gone, and no field of theirs in another way.
/// Returns how much was seen.
///
/// # Errors
///
/// What upstream did in another way, with the seed and its edit.
async fn compare_some(told: Told) -> anyhow::Result<String> {
    let upstream = ClusterApi::find()?;
    let mut seeds: Vec<Seed> = (0..u64::from(told.seeds))
        .map(|at| Seed {
            namespace: format!("seed-{}", told.first + at),
            draw: StdRng::seed_from_u64(told.first + at),
        })
        .collect();
    let namespaces = seeds.iter().map(|seed| seed.namespace.clone());
    let namespaces: Vec<String> = namespaces.collect();
    let mut ours = Ours::start(&upstream, namespaces.clone()).await?;
    let mut world = ManagementCluster::start(&upstream, namespaces).await?;
    let mut guarded = Guarded::default();
    let none = BTreeMap::new();
    round(&mut world, &mut guarded, &none)
        .await
        .context("clusters are made")?;
    // Each in its own world.
    let (theirs, mine) = tokio::join!(rounds(&mut world, &mut guarded, &none), ours.settle());
    theirs.and(mine).context("clusters are made")?;
    let mut same = both(&world, ours.world()).await.context("clusters are made")?;
    for turn in 0..told.edits as usize {
        world.pause()?;
        let edits = edited(&mut seeds, turn, &[ours.world(), &world]).await?;
        // With the edits in it: what is changed from here on, the manager changes.
        let before = world.export().await?;
        let planned = round(&mut world, &mut guarded, &edits).await?;
        let after = world.export().await?;
        for (namespace, plan) in &planned {
            let said = || {
                format!(
                    "{namespace}: {}",
                    edits.get(namespace).copied().unwrap_or_default()
                )
            };
            judged::kept(plan, &before, &after).with_context(said)?;
        }
        let (theirs, mine) = tokio::join!(rounds(&mut world, &mut guarded, &edits), ours.settle());
        theirs.and(mine)?;
        let said = || format!("after the edits {}", told_edits(&edits));
        same += both(&world, ours.world()).await.with_context(said)?;
        eprintln!("edit {} of {}: {}", turn + 1, told.edits, guarded.shown());
    }
    guarded.complete()?;
    previewed(&world, seeds.len()).await?;
    // What they have not seen when the manager ends, nobody will ever have seen.
    eventually(
        "the controllers of machine deployments see them as they are",
        async || {
            let unobserved = world.unobserved().await?;
            ensure!(unobserved.is_empty(), "not seen: {}", unobserved.join(", "));
            Ok(Some(()))
        },
    )
    .await?;
    world.pause()?;
    shadowed(&world, seeds.len()).await?;
    let handed = handed_over(world).await.context("topologies are handed over")?;
    let (seeds, edits) = (told.seeds, told.edits);
    Ok(format!(
        "{seeds} seeds from {}, {edits} edits each; {}; {same} times an object of ours was the same as upstream's, in \
         {} writes; {handed} Clusters handed over, with nothing replaced",
        told.first,
        guarded.shown(),
        ours.writes()
    ))
}

/// Makes an edit of each seed, the same in all worlds.
async fn edited(
    seeds: &mut [Seed],
    turn: usize,
    worlds: &[&ManagementCluster],
) -> anyhow::Result<BTreeMap<String, &'static str>> {
    let mut edits = BTreeMap::new();
    for (at, seed) in seeds.iter_mut().enumerate() {
        let edit = drawn(at, turn, &mut seed.draw);
        let values = seed.draw.random::<u64>();
        for world in worlds {
            let mut draw = StdRng::seed_from_u64(values);
            let made = (edit.make)(world, &seed.namespace, &mut draw).await;
            made.with_context(|| format!("{}: {}", seed.namespace, edit.name))?;
        }
        edits.insert(seed.namespace.clone(), edit.name);
    }
    Ok(edits)
}

fn told_edits(edits: &BTreeMap<String, &'static str>) -> String {
    let each: Vec<String> = edits
        .iter()
        .map(|(seed, edit)| format!("{seed}: {edit}"))
        .collect();
    each.join(", ")
}

/// Both have the same objects; how many these are.
async fn both(world: &ManagementCluster, ours: &ManagementCluster) -> anyhow::Result<usize> {
    let (theirs, mine) = (world.export().await?, ours.export().await?);
    let mut same = 0;
    for namespace in world.namespaces() {
        same += trees::same(&theirs, &mine, namespace).with_context(|| namespace.to_owned())?;
    }
    Ok(same)
}

/// The command reads the same from the server: nothing to do, and what an edited template would rotate.
async fn previewed(world: &ManagementCluster, clusters: usize) -> anyhow::Result<()> {
    let (said, changes) = world.diff(None).await?;
    // What is deferred or held waits, and is said before.
    let nothing = changes == Changes::Nothing && said.contains("nothing changes in ");
    ensure!(nothing, "topology diff finds something to do: {said}");
    let export = world.export().await?;
    let template = export
        .iter()
        .find(|((_, kind, name), _)| kind == "HostTemplate" && name == "host");
    let mut template = template.context("a template")?.1.clone();
    template["spec"]["template"]["spec"]["preview"] = json!(true);
    let (said, changes) = world.diff(Some(&template)).await?;
    let rotates = said.contains("  rotate  control-plane-machines  ")
        && said.contains("spec.template.spec.preview: nothing");
    let one = said.contains(&format!("1 of {clusters} cluster"));
    ensure!(
        changes == Changes::Something && rotates && one,
        "topology diff of an edited template says: {said}"
    );
    Ok(())
}

/// A hub in shadow mode agrees with the manager, and tells what it has not done yet.
async fn shadowed(world: &ManagementCluster, clusters: usize) -> anyhow::Result<()> {
    let agreed = world.compared().await?;
    let (agrees, differs) = agreed.counts();
    ensure!(
        (agrees, differs, agreed.findings()) == (clusters, 0, 0),
        "{agrees} of {clusters} Clusters agree, and {} things are wrong",
        agreed.findings()
    );
    let namespace = world.namespaces().next().context("a namespace")?;
    let template = ("HostTemplate", "host");
    let edit = |one: &mut Value| one["spec"]["template"]["spec"]["shadow"] = json!(true);
    world.edit(namespace, template, edit).await?;
    let differing = world.compared().await?;
    let news = differing.news(&agreed).join("; ");
    let told = news.contains(&format!("Cluster {namespace}/c is not as it would be planned"));
    ensure!(
        differing.counts() == (clusters - 1, 1) && told && news.contains("rotate control-plane-machines"),
        "a template was edited, and it is told as: {news}"
    );
    Ok(())
}

/// Upstream's manager ends, and the Clusters that are as they would be planned go to ours, which has nothing to replace.
async fn handed_over(mut world: ManagementCluster) -> anyhow::Result<usize> {
    world.end_manager();
    let later = UnixMillis(Clock::start().wall().0 + QUIET_MILLIS);
    let now = Clock::start().wall();
    let mut names: Vec<ClusterName> = world
        .namespaces()
        .map(|namespace| ClusterName {
            namespace: namespace.to_owned(),
            name: world::CLUSTER.to_owned(),
        })
        .collect();
    // A template of the first one was edited, and upstream's manager has not seen that.
    let edited = names.remove(0);
    let client = world.client();
    let give = |names: Vec<ClusterName>, now: UnixMillis, confirm: bool| {
        let client = client.clone();
        async move { hand_over(client, &names, Keeper::Tributary, confirm, now).await }
    };
    let refused = give(names.clone(), now, true)
        .await
        .err()
        .map(|error| error.to_string());
    ensure!(
        refused.as_deref().is_some_and(|why| why.contains("is at work")),
        "it wrote a moment ago, and is not taken for alive"
    );
    let refused = give(vec![edited.clone()], later, true)
        .await
        .err()
        .map(|error| error.to_string());
    ensure!(
        refused
            .as_deref()
            .is_some_and(|why| why.contains("not as it would be planned")),
        "a Cluster is handed over of which a template would be replaced"
    );
    let (said, changes) = give(names.clone(), later, false).await?;
    ensure!(
        changes == Changes::Something && said.contains("would be handed over"),
        "it says {said}"
    );
    let before = world.export().await?;
    give(names.clone(), later, true).await?;
    let mut ours = Ours::over(world)?;
    ours.settle_at(later).await?;
    let after = ours.world().export().await?;
    let used = trees::referred(&before);
    for (key, object) in &before {
        let (namespace, kind, name) = key;
        // What nothing refers to may go; the Cluster was paused.
        let stays = used.contains(&(namespace.clone(), kind.clone(), name.clone()))
            || !(kind.ends_with("Template") || trees::OF_POOLS.contains(&kind.as_str()));
        if *namespace == edited.namespace || kind == "Cluster" || !stays {
            continue;
        }
        let generation = after.get(key).map(|one| &one["metadata"]["generation"]);
        ensure!(
            generation == Some(&object["metadata"]["generation"]),
            "{kind} {name} was changed by it"
        );
    }
    let made = after.keys().find(|key| !before.contains_key(*key));
    ensure!(made.is_none(), "an object was made by it");
    let (said, _) = give(names.clone(), later, false).await?;
    ensure!(said.contains("nothing of it is managed by"), "it says {said}");
    Ok(names.len())
}

/// The first seeds go through all edits, each from another one on, so that even a short run has seen each.
fn drawn(seed: usize, turn: usize, draw: &mut StdRng) -> &'static Edit {
    if seed < 2 {
        return &EDITS[(turn + seed * EDITS.len() / 2) % EDITS.len()];
    }
    &EDITS[draw.random_range(0..EDITS.len())]
}

/// Plays providers' reports until the manager has nothing left to do.
async fn rounds(
    world: &mut ManagementCluster,
    guarded: &mut Guarded,
    edits: &BTreeMap<String, &'static str>,
) -> anyhow::Result<()> {
    for _ in 0..ROUNDS_MAX {
        world.pause()?;
        let news = world.provide().await?;
        let planned = world.plans().await?;
        if !news && !planned.values().any(Plan::writes) {
            return world.go_on();
        }
        round(world, guarded, edits).await?;
    }
    bail!("providers and the manager never come to an end")
}

/// Plans while the manager stands still, lets it go on, and judges what it did.
async fn round(
    world: &mut ManagementCluster,
    guarded: &mut Guarded,
    edits: &BTreeMap<String, &'static str>,
) -> anyhow::Result<BTreeMap<String, Plan>> {
    world.pause()?;
    let planned = world.plans().await?;
    world.nudge().await?;
    world.go_on()?;
    let after = settled(world, edits).await?;
    for (namespace, plan) in &planned {
        let said = || {
            let edit = edits.get(namespace).copied().unwrap_or("at first");
            format!("{namespace}: {edit}")
        };
        let now = after.get(namespace).with_context(said)?;
        judge(plan, now).with_context(said)?;
        guarded.add(plan);
    }
    Ok(planned)
}

/// Waits until plans of what is there change nothing; those that do not are not made again. A manager that went on may look
/// at a Cluster before it has heard of its template, which it does not watch: then it is asked once more.
async fn settled(
    world: &mut ManagementCluster,
    edits: &BTreeMap<String, &'static str>,
) -> anyhow::Result<BTreeMap<String, Plan>> {
    let done = Mutex::new(BTreeMap::new());
    let mut is_asked_again = false;
    // Many take it longer than that: it may go on as long as it comes on.
    loop {
        let before = done.lock().await.len();
        let looked = eventually("upstream's manager does what is planned", async || {
            all_settled(world, edits, &done).await
        })
        .await;
        match looked {
            Ok(()) => return Ok(done.into_inner()),
            Err(error) if done.lock().await.len() == before => {
                if std::mem::replace(&mut is_asked_again, true) {
                    return Err(error.context(world.manager_says()));
                }
                world.nudge().await?;
            }
            Err(_) => {}
        }
    }
}

/// Looks once at those whose plans still changed something at the look before.
async fn all_settled(
    world: &ManagementCluster,
    edits: &BTreeMap<String, &'static str>,
    done: &Mutex<BTreeMap<String, Plan>>,
) -> anyhow::Result<Option<()>> {
    let mut done = done.lock().await;
    let left: Vec<&str> = (world.namespaces())
        .filter(|namespace| !done.contains_key(*namespace))
        .collect();
    let mut still = None;
    for (namespace, plan) in world.plans_of(&left).await? {
        if plan.writes() {
            let edit = edits.get(&namespace).copied().unwrap_or("at first");
            still = Some(format!("{namespace}, {edit}: still to do: {}", shown(&plan)));
        } else {
            done.insert(namespace, plan);
        }
    }
    match still {
        Some(still) => bail!(still),
        None => Ok(Some(())),
    }
}

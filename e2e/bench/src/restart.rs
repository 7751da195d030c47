//! Owns: shape restart-agent: an agent is killed and started again over thousands of imported slices of which none
//! changed: how long until it has compared everything, what it wrote, what it costs when nothing happens.
//! Never: asks the agent what it wrote: the simulated API server counts.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use bytes::Bytes;
use hub::certs::{Subject, Validity};
use serde_json::json;
use shared::{
    model::{ClusterId, ServiceKey, derived_name::imported_slice_name, sync::Namespaces},
    tls::{Credentials, HubAddress, LiveCredentials},
};
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    args::Arguments,
    declared,
    facts::{self, SliceTemplate},
    figure::Aim,
    hub::Setup,
    judged::require,
    player::Player,
    probe::{Generator, GeneratorTime, Usage},
    report::Section,
    series::Sampler,
};
use cluster::clusterset::{Backend, LocalClusterset};
use oracle::{Picture, judge_in};
use sim::{REQUESTS_MAX, SimCluster};

/// The cluster whose agent is restarted, and the member that exports to it.
const CLUSTER: &str = "west";
const SOURCE: &str = "source";
/// Namespaces that the services lie in, and the one of the fence: the last in order, so that what is imported there
/// was planned after everything else.
const NAMESPACES: usize = 50;
const FENCE: &str = "zz-fence";
const ENDPOINTS: usize = 10;
/// Longest wait until the fence has arrived, or everything for the first time.
const FENCE_WAIT: Duration = Duration::from_secs(900);
const FENCE_POLL: Duration = Duration::from_millis(10);
/// Interval of counting everything, which is much to read.
const COUNT_POLL: Duration = Duration::from_secs(3);
/// After a start things are still being given back: idle is measured later.
const CALM: Duration = Duration::from_secs(2);
/// The aim.
const STEADY_SECONDS_AIM: f64 = 2.0;
const IDLE_CORES_AIM: f64 = 0.002;
const MEGABYTES_AIM: f64 = 30.0;
const PEAK_MEGABYTES_AIM: f64 = 180.0;
const EACH_KILOBYTES_AIM: f64 = 15.0;

/// Measures with so many slices.
pub(super) async fn measure(
    setup: &Setup,
    arguments: &Arguments,
    slices: usize,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    let mut section = Section::begin(format!(
        "restart-agent, {slices} imported slices of {ENDPOINTS} endpoints"
    ));
    let directory = setup.data(&format!("restart-{slices}"))?;
    let mut world = LocalClusterset::without_agents(&directory, &Backend::Simulated, &[CLUSTER]).await?;
    let cluster = world
        .cluster(CLUSTER)?
        .sim()
        .context("a simulated cluster")?
        .clone();
    for namespace in (0..NAMESPACES).map(namespace).chain([FENCE.to_owned()]) {
        cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))?;
    }
    // The fence is the last of them: a member may export 10,000 services, and no more.
    let before_the_fence = slices.saturating_sub(1);
    let mut source = Source::start(&world, before_the_fence).await?;
    world.start_agent(CLUSTER).await?;
    tokio::select! {
        imported = all_imported(&cluster, before_the_fence) => imported?,
        ended = source.ended() => return ended.context("while everything was imported for the first time"),
    }
    world.kill_agent(CLUSTER).await?;
    cluster.requests().clear();
    let (began, generator) = (Instant::now(), Generator::begin()?);
    let fence = source.report_fence().await?;
    world.start_agent(CLUSTER).await?;
    tokio::select! {
        arrived = wait_for(&cluster, &fence) => arrived?,
        ended = source.ended() => return ended.context("while the agent compared what it holds"),
    }
    describe_start(&mut section, began.elapsed(), generator.spent()?);
    relist(&cluster).await?;
    idle(&mut section, &mut world, Duration::from_secs(arguments.seconds)).await?;
    let writes = writes(&cluster)?;
    section.aimed(
        "writes at the API server, Leases left out",
        writes as f64,
        "",
        Aim::Below(1.0),
    );
    let with = usage(&mut world)?;
    let without = without_imports(setup, slices).await?;
    let each = with.resident.saturating_sub(without.resident) as f64 / slices as f64 / 1e3;
    section.aimed(
        "agent memory without anything imported",
        without.resident as f64 / 1e6,
        "MB",
        Aim::Below(MEGABYTES_AIM),
    );
    section.aimed(
        "watch cache and desired state, a slice with service and import",
        each,
        "KB",
        Aim::Below(EACH_KILOBYTES_AIM),
    );
    section.note("a simulated API server over HTTP, in the generator; the first start is not measured");
    let west = Picture::of(CLUSTER, |kind| cluster.objects(kind));
    let judged = require(&mut section, &judge_in(&[&source.picture()?, &west], &west));
    sections.push(section);
    judged?;
    source.end().await?;
    world.end().await
}

/// From the start of the agent's process until it had compared everything.
fn describe_start(section: &mut Section, steady: Duration, generator: GeneratorTime) {
    section.aimed(
        "process started to everything compared",
        steady.as_secs_f64(),
        "s",
        Aim::Below(STEADY_SECONDS_AIM),
    );
    section.generator(generator);
}

/// Makes the agent list everything again, as after an outage that outlasted the API server's history.
async fn relist(cluster: &SimCluster) -> anyhow::Result<()> {
    let before = cluster.requests().all().len();
    // Something happens behind the last bookmark of every watch: one that is at the end of the history loses nothing
    // with it, and need not list.
    cluster.apply(
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "zz-behind-all-watches"}}),
    )?;
    cluster.forget_history();
    cluster.faults().drop_watches();
    let deadline = Instant::now() + FENCE_WAIT;
    let mut poll = tokio::time::interval(COUNT_POLL);
    loop {
        poll.tick().await;
        let requests = cluster.requests().all();
        let mut slices = requests[before.min(requests.len())..]
            .iter()
            .filter(|entry| entry.resource == "endpointslices" && entry.code == 200);
        // a listing, and a watch that goes on after it
        if slices.any(|entry| entry.verb == "list") && slices.any(|entry| entry.verb == "watch") {
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!("the agent has not listed its slices again: see its log (--keep)");
        }
    }
}

/// Processor time and memory while nothing happens.
async fn idle(section: &mut Section, world: &mut LocalClusterset, lasting: Duration) -> anyhow::Result<()> {
    tokio::time::sleep(CALM).await;
    let pid = world.agent(CLUSTER)?.id().context("the agent has ended")?;
    let (before, began) = (Usage::of(pid)?, Instant::now());
    let sampler = Sampler::start(pid, began);
    tokio::time::sleep(lasting).await;
    section.samples = sampler.end().await?;
    let after = Usage::of(pid)?;
    let cores = (after.cpu_seconds - before.cpu_seconds) / began.elapsed().as_secs_f64();
    section.aimed(
        "agent processor time, idle",
        cores * 1e3,
        "m cores",
        Aim::Below(IDLE_CORES_AIM * 1e3),
    );
    section.figure("agent memory, idle", after.resident as f64 / 1e6, "MB");
    section.aimed(
        "agent memory at its peak, a relist included",
        after.resident_peak as f64 / 1e6,
        "MB",
        Aim::Below(PEAK_MEGABYTES_AIM),
    );
    Ok(())
}

fn usage(world: &mut LocalClusterset) -> anyhow::Result<Usage> {
    Usage::of(world.agent(CLUSTER)?.id().context("the agent has ended")?)
}

/// The same agent where nothing is exported.
async fn without_imports(setup: &Setup, slices: usize) -> anyhow::Result<Usage> {
    let directory = setup.data(&format!("restart-{slices}-nothing"))?;
    let mut world = LocalClusterset::start(&directory, &Backend::Simulated, &[CLUSTER]).await?;
    tokio::time::sleep(CALM).await;
    let usage = usage(&mut world)?;
    world.end().await?;
    Ok(usage)
}

/// Writes of the agent since the record was cleared, but Leases and the fence.
fn writes(cluster: &SimCluster) -> anyhow::Result<usize> {
    if cluster.requests().all().len() >= REQUESTS_MAX {
        bail!("the simulated API server remembers {REQUESTS_MAX} requests, and there were more");
    }
    let writes = cluster.requests().writes();
    let counted = writes
        .iter()
        .filter(|write| write.resource != "leases" && write.namespace != FENCE);
    Ok(counted.count())
}

/// Waits until the cluster holds so many slices.
async fn all_imported(cluster: &SimCluster, slices: usize) -> anyhow::Result<()> {
    let deadline = Instant::now() + FENCE_WAIT;
    let mut poll = tokio::time::interval(COUNT_POLL);
    loop {
        poll.tick().await;
        let imported = cluster.list("EndpointSlice").len();
        eprintln!("restart-agent: {imported} of {slices} slices imported for the first time");
        if imported >= slices {
            return Ok(());
        }
        if Instant::now() >= deadline {
            bail!("{imported} slices were imported, not {slices}: see the agent's log (--keep)");
        }
    }
}

/// Waits until an object of the cluster is there.
async fn wait_for(cluster: &SimCluster, slice: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + FENCE_WAIT;
    let mut poll = tokio::time::interval(FENCE_POLL);
    while cluster.get("EndpointSlice", FENCE, slice).is_none() {
        if Instant::now() >= deadline {
            bail!(
                "after {} s an export has not arrived: see the agent's log (--keep)",
                FENCE_WAIT.as_secs()
            );
        }
        poll.tick().await;
    }
    Ok(())
}

fn namespace(index: usize) -> String {
    format!("team-{index:04}")
}

/// The member that exports everything.
struct Source {
    reports: mpsc::Sender<Vec<Bytes>>,
    playing: JoinSet<anyhow::Result<()>>,
    cluster: ClusterId,
    exports: usize,
    /// All that it has reported.
    facts: Vec<Bytes>,
}

impl Source {
    async fn start(world: &LocalClusterset, slices: usize) -> anyhow::Result<Self> {
        let cluster = ClusterId::new(SOURCE)?;
        let issued = world
            .authority
            .issue(&Subject::Member(cluster.clone()), Validity::days_from_now(1))?;
        let player = Player {
            cluster: cluster.clone(),
            credentials: LiveCredentials::new(Credentials::from_pem(&world.authority.tls(&issued))?),
            interest: Namespaces::default(),
            takes_differences: false,
        };
        let hub: HubAddress = format!("https://{}", world.hub_address).parse()?;
        let mut facts = Vec::new();
        for index in 0..slices {
            facts.extend(export(
                &facts::service(&namespace(index % NAMESPACES), index)?,
                index,
            ));
        }
        let mut session = player.connect(&hub).await?;
        session.list(facts.clone(), |_| {}).await?;
        let (reports, mut inbox) = mpsc::channel::<Vec<Bytes>>(1);
        let mut playing = JoinSet::new();
        playing.spawn(async move {
            loop {
                tokio::select! {
                    heard = session.hear() => drop(heard?),
                    facts = inbox.recv() => match facts {
                        Some(facts) => session.report(facts).await?,
                        None => return Ok(()),
                    },
                }
            }
        });
        Ok(Self {
            reports,
            playing,
            cluster,
            exports: slices,
            facts,
        })
    }

    /// Exports one more service, in the namespace of the fence; the name of its imported slice.
    async fn report_fence(&mut self) -> anyhow::Result<String> {
        let key = ServiceKey::new(FENCE, "fence")?;
        let facts = export(&key, self.exports);
        self.facts.extend(facts.iter().cloned());
        let told = self.reports.send(facts).await;
        told.context("the source's session has ended")?;
        Ok(imported_slice_name(FENCE, &key.name, SOURCE, &slice_name(&key)))
    }

    /// Its cluster, as the oracle sees it.
    fn picture(&self) -> anyhow::Result<Picture> {
        declared::picture(&self.cluster, &self.facts)
    }

    /// Waits until the session ends, which it does not by itself.
    async fn ended(&mut self) -> anyhow::Result<()> {
        if let Some(ended) = self.playing.join_next().await {
            ended??;
        }
        bail!("the source's session has ended")
    }

    async fn end(mut self) -> anyhow::Result<()> {
        drop(self.reports);
        while let Some(ended) = self.playing.join_next().await {
            ended??;
        }
        Ok(())
    }
}

fn slice_name(service: &ServiceKey) -> String {
    format!("{}-abcde", service.name)
}

fn export(service: &ServiceKey, index: usize) -> Vec<Bytes> {
    let slice = SliceTemplate::new(service, &slice_name(service), ENDPOINTS);
    vec![facts::export(service, index, false), slice.numbered(index as u32)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_stands_beside_what_the_generator_took_of_the_processor() {
        let mut section = Section::begin("restart-agent");
        let generator = GeneratorTime {
            cpu_seconds: 3.0,
            seconds: 2.0,
        };
        describe_start(&mut section, Duration::from_millis(1_500), generator);
        let lines: Vec<_> = section.figures.iter().map(|figure| figure.line()).collect();
        assert!(lines[0].contains("1.50 s"), "{lines:?}");
        assert!(lines[1].contains("generator processor time"), "{lines:?}");
        assert!(lines[1].contains("1.50 cores"), "{lines:?}");
    }
}

//! Owns: the part of shape storm that has agents: so many, each over a simulated cluster, lose their hub and come
//! back to the next one; what they write to their API servers from its end until long after all are back.
//! Never: plays a member: observing, planning and applying are the product's, and so is the way to the hub.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use agent::{
    agent::{AgentMetrics, AgentOptions},
    membership::Membership,
};
use anyhow::{Context, ensure};
use shared::{
    api::{
        convert::NamespaceDenyList,
        names::{LABEL_SOURCE_CLUSTER, TRIBUTARY_NAMESPACE},
    },
    api_client,
    model::ClusterId,
    process::{Readiness, Shutdown, Supervisor},
    tls::{HubConnector, TcpDial, TlsMetrics},
};
use tokio::{task::JoinSet, time::interval};

use super::{
    cores::UsedCores,
    figure::Aim,
    hub::{HubProcess, Setup},
    probe::Generator,
    report::Section,
};
use cluster::clusterset::admin;
use sim::{Entry, SimCluster, SimConfig};

/// Clusters that have a namespace in common, and export one Service from it: each imports so many slices.
const GROUP: usize = 10;
/// Longest wait until everybody holds everything, or is back.
const WAIT: Duration = Duration::from_secs(300);
/// Interval of looking at that.
const LOOK: Duration = Duration::from_millis(500);
/// For how long nothing may be written before the hub ends, and how long writes are counted once all are back: several
/// heartbeats, and longer than any pause before another try.
const QUIET: Duration = Duration::from_secs(10);
/// Field manager of the writes.
const AGENT: &str = "tributary-agent";
/// Objects declared in a cluster of a group: `GROUP` is its namespace, `ADDRESS` its endpoint.
const DECLARED: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: GROUP}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: GROUP}
spec: {ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: GROUP, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [ADDRESS], conditions: {ready: true}}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: cart, namespace: GROUP}
";

/// A cluster with what it declares.
fn cluster(number: usize) -> anyhow::Result<SimCluster> {
    let cluster = SimCluster::new(SimConfig {
        name: format!("member-{number}"),
        seed: number as u64 + 1,
        ..SimConfig::default()
    })?;
    let own = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {TRIBUTARY_NAMESPACE}}}");
    cluster.apply_yaml(&own)?;
    let address = format!("10.{}.{}.1", 1 + number / 250, number % 250);
    let declared = DECLARED
        .replace("GROUP", &format!("group-{}", number / GROUP))
        .replace("ADDRESS", &address);
    cluster.apply_yaml(&declared)?;
    Ok(cluster)
}

/// Number of imported slices in a cluster.
fn imported(cluster: &SimCluster) -> usize {
    let slices = cluster.objects("EndpointSlice").into_iter();
    let from = |slice: &serde_json::Value| !slice["metadata"]["labels"][LABEL_SOURCE_CLUSTER].is_null();
    slices.filter(|slice| from(slice)).count()
}

/// Number of slices that each of so many clusters must hold: one of each in its group, itself among them.
fn due(members: usize) -> impl Iterator<Item = usize> {
    (0..members).map(move |number| GROUP.min(members - number / GROUP * GROUP))
}

/// Writes of agents: Leases, and all others by kind.
#[derive(Debug, Default, PartialEq, Eq)]
struct Written {
    leases: usize,
    others: BTreeMap<String, usize>,
}

impl Written {
    fn add(&mut self, entries: &[Entry]) {
        let writes = entries.iter().filter(|entry| entry.is_write());
        for entry in writes.filter(|entry| entry.user_agent.starts_with(AGENT)) {
            if entry.resource == "leases" {
                self.leases += 1;
            } else {
                let what = format!("{} {} ({})", entry.verb, entry.resource, entry.code);
                *self.others.entry(what).or_default() += 1;
            }
        }
    }

    fn count(&self) -> usize {
        self.others.values().sum()
    }
}

/// Agents and their clusters.
struct Crowd {
    clusters: Vec<SimCluster>,
    shutdown: Shutdown,
    running: JoinSet<anyhow::Result<()>>,
}

impl Crowd {
    fn start(setup: &Setup, hub: &HubProcess, members: usize) -> anyhow::Result<Self> {
        let mut crowd = Self {
            clusters: (0..members).map(cluster).collect::<anyhow::Result<_>>()?,
            shutdown: Shutdown::default(),
            running: JoinSet::new(),
        };
        for cluster in &crowd.clusters {
            let options = options(setup, hub, cluster)?;
            let supervisor = Supervisor::new(crowd.shutdown.clone());
            crowd.running.spawn(async move {
                let (metrics, readiness) = (AgentMetrics::default(), Readiness::default());
                agent::agent::run(options, metrics, &readiness, supervisor).await
            });
        }
        Ok(crowd)
    }

    /// Writes since the last look.
    fn written(&self) -> Written {
        let mut written = Written::default();
        for cluster in &self.clusters {
            written.add(&cluster.requests().take());
        }
        written
    }

    /// Waits until every cluster holds what all of its group export, and nobody has anything more to write.
    async fn settle(&mut self) -> anyhow::Result<()> {
        let (began, mut quiet_since) = (Instant::now(), Instant::now());
        let mut looks = interval(LOOK);
        loop {
            looks.tick().await;
            let lacking = self.clusters.len() - self.complete();
            if self.written().count() > 0 || lacking > 0 {
                quiet_since = Instant::now();
            }
            if quiet_since.elapsed() >= QUIET {
                return Ok(());
            }
            self.all_run()?;
            ensure!(
                began.elapsed() < WAIT,
                "after {} s {lacking} clusters lack something, or somebody still writes",
                WAIT.as_secs()
            );
        }
    }

    /// Number of complete clusters.
    fn complete(&self) -> usize {
        let due = due(self.clusters.len());
        let held = self.clusters.iter().map(imported);
        held.zip(due).filter(|(held, due)| held == due).count()
    }

    fn all_run(&mut self) -> anyhow::Result<()> {
        match self.running.try_join_next() {
            None => Ok(()),
            Some(ended) => ended?
                .context("an agent ended")
                .and(Err(anyhow::anyhow!("an agent ended"))),
        }
    }

    async fn end(mut self) -> anyhow::Result<()> {
        self.shutdown.begin();
        while let Some(ended) = self.running.join_next().await {
            ended??;
        }
        Ok(())
    }
}

fn options(setup: &Setup, hub: &HubProcess, cluster: &SimCluster) -> anyhow::Result<AgentOptions> {
    let id = ClusterId::new(cluster.name())?;
    let (addresses, dial) = (vec![hub.address.clone()], Arc::new(TcpDial));
    Ok(AgentOptions {
        membership: Membership {
            cluster: id.clone(),
            clusterset: setup.clusterset().name().into(),
        },
        client: api_client::over(cluster.client_named(AGENT), Default::default()),
        connector: HubConnector::new(addresses, setup.member(&id)?, dial, TlsMetrics::default()),
        namespace: TRIBUTARY_NAMESPACE.to_owned(),
        holder: id.to_string(),
        deny: NamespaceDenyList::default(),
        all_namespaces: false,
        imports: Default::default(),
        withdrawals: Default::default(),
        renewing: None,
        source_leases: Default::default(),
        node_tolerance: agent::health::nodes::TOLERANCE_DEFAULT,
    })
}

/// Waits until as many sessions are open as there are members.
async fn all_are_back(hub: &HubProcess, members: usize) -> anyhow::Result<()> {
    let (began, mut looks) = (Instant::now(), interval(LOOK));
    loop {
        looks.tick().await;
        let open = admin::metric_at(hub.admin, "tributary_hub_sessions", "").await?;
        if open >= members as f64 {
            return Ok(());
        }
        ensure!(
            began.elapsed() < WAIT,
            "after {} s {open} of {members} sessions are open",
            WAIT.as_secs()
        );
    }
}

/// Measures it.
pub(super) async fn measure(setup: &Setup, members: usize) -> anyhow::Result<Section> {
    let mut section = Section::begin(format!(
        "storm, {members} agents over simulated clusters come back"
    ));
    let data = setup.data("storm-agents")?;
    let hub = HubProcess::start(setup, &data, UsedCores::OwnCores).await?;
    eprintln!("storm: {members} agents connect, and import {GROUP} slices each");
    let mut crowd = Crowd::start(setup, &hub, members)?;
    crowd.settle().await.context("before the storm")?;
    let generator = Generator::begin()?;
    let listen = hub.listen;
    let ended = Instant::now();
    hub.kill().await?;
    let hub = HubProcess::start_at(setup, &data, UsedCores::OwnCores, listen).await?;
    all_are_back(&hub, members).await?;
    let back = ended.elapsed();
    // What is counted is what nobody does: there is nothing to wait for.
    tokio::time::sleep(QUIET).await;
    crowd.all_run()?;
    let written = crowd.written();
    ensure!(
        crowd.complete() == members,
        "not all clusters hold what they held"
    );
    let held: usize = crowd.clusters.iter().map(imported).sum();
    section.figure("slices that the agents hold", held as f64, "");
    section.figure("hub ended to all sessions open again", back.as_secs_f64(), "s");
    section.aimed(
        "writes to API servers meanwhile, Leases aside",
        written.count() as f64,
        "",
        Aim::Below(1.0),
    );
    section.figure("writes of Leases meanwhile", written.leases as f64, "");
    section.generator(generator.spent()?);
    section.note(format!(
        "counted from the end of the hub until {} s after all were back; what agents write to is simulated, each cluster \
         by itself",
        QUIET.as_secs()
    ));
    for (what, times) in &written.others {
        section.note(format!("written {times} times: {what}"));
    }
    crowd.end().await?;
    hub.kill().await?;
    Ok(section)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(verb: &'static str, resource: &str, user_agent: &str) -> Entry {
        Entry {
            verb,
            resource: resource.to_owned(),
            user_agent: user_agent.to_owned(),
            code: 200,
            ..Entry::default()
        }
    }

    #[test]
    fn only_what_agents_write_counts_and_leases_by_themselves() {
        let mut written = Written::default();
        written.add(&[
            entry("patch", "endpointslices", AGENT),
            entry("update", "leases", AGENT),
            entry("list", "endpointslices", AGENT),
            entry("patch", "services", "kubectl"),
        ]);
        assert_eq!((written.leases, written.count()), (1, 1));
        assert!(written.others.contains_key("patch endpointslices (200)"));
    }

    #[test]
    fn clusters_of_a_group_declare_the_same_service_with_endpoints_of_their_own() {
        let (one, other) = (cluster(3).expect("valid"), cluster(4).expect("valid"));
        let address = |cluster: &SimCluster| {
            let slice = cluster
                .get("EndpointSlice", "group-0", "cart-1")
                .expect("declared");
            slice["endpoints"][0]["addresses"][0].clone()
        };
        assert_ne!(address(&one), address(&other));
        assert!(one.get("ServiceExport", "group-0", "cart").is_some());
        assert!(cluster(999).is_ok());
        assert_eq!(
            due(12).collect::<Vec<_>>(),
            [[10; 10].as_slice(), &[2, 2]].concat()
        );
        assert_eq!(imported(&one), 0);
    }
}

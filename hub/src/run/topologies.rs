//! Owns: what a clusterset does about topologies, as its flags say: which tasks that takes, and what they are given.
//! Never: looks at one.

use std::sync::Arc;

use anyhow::ensure;
use kube::Client;
use prometheus_client::registry::Registry;

use super::Task;
use crate::{
    args::{EnrolmentArgs, EnrolmentMode, SetArgs, TopologyMode},
    clock::Clock,
    hub::Hub,
    inspect::ExplainsTopologies,
    lead::Leading,
    membership::{HubDecisions, Joinable},
    topology::{
        answers::TopologyAnswers,
        enrol::{Asked, Decides, Enroller, EnrolmentMetrics, Settings},
        own::{self, OwnLog, OwnMetrics, Owner, Waves},
        shadow::{Shadow, ShadowMetrics},
        watch::{Observed, Observer, TopologyMetrics},
    },
};

/// Handling of topologies.
pub(super) struct Topologies {
    /// Only where they are observed.
    observed: Option<TopologyMetrics>,
    /// Only where they are compared, too.
    compared: Option<ShadowMetrics>,
    /// Only where the hub keeps them.
    kept: Option<OwnMetrics>,
    /// Only where Clusters become members.
    enrolled: Option<(Settings, EnrolmentMetrics)>,
}

/// Inputs of the tasks.
pub(super) struct Wired<'a> {
    /// The hub's own Kubernetes cluster.
    pub(super) client: Client,
    pub(super) hub: &'a Hub,
    pub(super) lead: &'a Leading,
}

impl Topologies {
    /// Prepares the mode that the flag asks for, if the cluster allows it.
    pub(super) async fn prepare(
        mode: Option<TopologyMode>,
        client: Option<&Client>,
        clock: Clock,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        let is = |wanted: TopologyMode| mode == Some(wanted);
        let topologies = Self {
            observed: mode.map(|_| TopologyMetrics::register(registry)),
            compared: is(TopologyMode::Shadow).then(|| ShadowMetrics::register(registry)),
            kept: is(TopologyMode::Own).then(|| OwnMetrics::register(registry)),
            enrolled: None,
        };
        match client {
            Some(client) if topologies.keep() => own::refuse_rival(client, clock).await?,
            None => ensure!(
                mode.is_none(),
                "--topology needs a cluster to look at: give --kubeconfig, or run in a pod with a service account"
            ),
            Some(_) => {}
        }
        Ok(topologies)
    }

    /// Has Clusters become members, if the flags ask for it.
    pub(super) fn enrol(
        &mut self,
        args: &SetArgs,
        joinable: Option<Joinable>,
        registry: &mut Registry,
    ) -> anyhow::Result<()> {
        let EnrolmentArgs {
            topology_enrolment: Some(mode),
            topology_agent: agent,
            topology_hub_addresses: hub_addresses,
            topology_join_addresses: join_addresses,
            topology_drain_limit: drain_limit,
        } = &args.enrolment
        else {
            return Ok(());
        };
        let settings = Settings::read(&Asked {
            installs: *mode == EnrolmentMode::Install,
            drain_limit: *drain_limit,
            agent: agent.as_deref(),
            hub_addresses,
            join_addresses,
            join_key: args.join.join_key.as_deref(),
            joinable: joinable.map(|Joinable { pin, port }| (pin, port)),
        })?;
        self.enrolled = Some((settings, EnrolmentMetrics::register(registry)));
        Ok(())
    }

    /// Returns true if the hub keeps them.
    pub(super) fn keep(&self) -> bool {
        self.kept.is_some()
    }

    /// The explainer of topologies: only if their sources are read anyway.
    pub(super) fn explains(&self, client: &Client) -> Option<Arc<dyn ExplainsTopologies>> {
        let reads = self.compared.is_some() || self.keep();
        reads.then(|| Arc::new(TopologyAnswers::new(client.clone())) as Arc<dyn ExplainsTopologies>)
    }

    /// Starts what does it; what is observed, if anything is. `log` is there if the hub keeps topologies, of so many Clusters
    /// of a class at once.
    pub(super) fn run_on(
        self,
        Wired { client, hub, lead }: &Wired<'_>,
        (log, rollouts): (Option<OwnLog>, u16),
        spawn: &mut impl FnMut(&'static str, Task),
    ) -> Option<Observed> {
        let lead: &Leading = lead;
        let (client, leading) = (|| client.clone(), || lead.leading.clone());
        if let Some(metrics) = self.compared {
            let shadow = Shadow::new(client(), metrics, leading());
            let kept = lead.clone().keep(shadow.run());
            spawn("the shadow of topologies", Box::pin(kept));
        }
        let (observer, observed) = Observer::new(client(), self.observed?, leading());
        if let Some((settings, metrics)) = self.enrolled {
            let seen = (observed.clone(), hub.present.clone());
            let decisions: Arc<dyn Decides> = Arc::new(HubDecisions::new(hub.writer.clone()));
            let decided = (decisions, hub.clock);
            let enroller = Enroller::new(client(), seen, decided, settings, metrics, leading());
            let kept = lead.clone().keep(enroller.run());
            spawn("the enrolment of Clusters", Box::pin(kept));
        }
        if let (Some(metrics), Some(log)) = (self.kept, log) {
            let waves = Waves {
                at_once: rollouts.into(),
                patience_millis: own::PATIENCE_MILLIS,
            };
            let owner = Owner::new(client(), log, waves, hub.clock, metrics, leading());
            let kept = lead.clone().keep(owner.run());
            spawn("the keeper of topologies", Box::pin(kept));
        }
        let kept = lead.clone().keep(observer.run());
        spawn("the observer of topologies", Box::pin(kept));
        Some(observed)
    }
}

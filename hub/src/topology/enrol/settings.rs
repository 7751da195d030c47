//! Owns: what an operator said of enrolment, read and checked before anything is served.
//! Never: looks at it again.

use std::{fs, sync::Arc};

use anyhow::{Context, ensure};
use shared::{
    model::{JoinString, KeyFingerprint, TokenSecret},
    tls::HubAddress,
};

use super::{decide::Terms, manifests::AgentManifests, seal::Seals};
use crate::{
    args::{EnrolmentArgs, EnrolmentMode, SetArgs},
    membership::Joinable,
};

/// What an operator said.
#[derive(Debug, Clone)]
pub struct Settings {
    pub(super) manifests: Arc<AgentManifests>,
    terms: Terms,
    hubs: Vec<String>,
    doors: Vec<String>,
    pin: KeyFingerprint,
    pub(super) seals: Seals,
}

impl Settings {
    /// Reads what the flags name; none if nothing is enrolled.
    ///
    /// # Errors
    ///
    /// The hub lets nobody join, or a file cannot be read; what to do.
    pub fn read(flags: &SetArgs, joinable: Option<Joinable>) -> anyhow::Result<Option<Self>> {
        let args: &EnrolmentArgs = &flags.enrolment;
        let Some(mode) = args.topology_enrolment else {
            return Ok(None);
        };
        let Some(Joinable { pin, port }) = joinable else {
            anyhow::bail!(
                "--topology-enrolment needs a port at which clusters join: give --join-listen, --join-cert and --join-key"
            );
        };
        let key = flags.join.join_key.as_ref().context("--join-key is missing")?;
        let key = fs::read(key).with_context(|| format!("cannot read --join-key {}", key.display()))?;
        let file = args.topology_agent.as_ref().context(
            "--topology-enrolment needs the objects of the agent: give --topology-agent FILE, rendered with its chart",
        )?;
        let about = || format!("--topology-agent {}", file.display());
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", about()))?;
        let manifests = Arc::new(AgentManifests::read(&text).with_context(about)?);
        let texts = |addresses: &[HubAddress]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
        ensure!(
            !args.topology_hub_addresses.is_empty(),
            "--topology-enrolment needs the address at which members reach this hub: give --topology-hub-address"
        );
        let doors = match &args.topology_join_addresses[..] {
            [] => {
                let at = |hub: &HubAddress| HubAddress { port, ..hub.clone() };
                let doors: Vec<_> = args.topology_hub_addresses.iter().map(at).collect();
                texts(&doors)
            }
            given => texts(given),
        };
        let settings = Self {
            manifests,
            terms: Terms {
                installs: mode == EnrolmentMode::Install,
                drain_millis: u64::try_from(args.topology_drain_limit.as_millis()).unwrap_or(u64::MAX),
            },
            hubs: texts(&args.topology_hub_addresses),
            doors,
            pin,
            seals: Seals::of(&key),
        };
        // More addresses than fit would be noticed at the first Cluster only.
        settings.join_string(TokenSecret::new(Default::default()))?;
        Ok(Some(settings))
    }

    /// What decisions depend on.
    pub(super) fn terms(&self) -> Terms {
        self.terms
    }

    /// The string with which a cluster joins that has this token.
    pub(super) fn join_string(&self, token: TokenSecret) -> anyhow::Result<String> {
        let join = JoinString {
            doors: self.doors.clone(),
            hubs: self.hubs.clone(),
            pin: self.pin,
            token,
        };
        join.encode().context(
            "more addresses than a join string takes: give fewer --topology-hub-address or --topology-join-address",
        )
    }
}

//! Owns: what an operator said of enrolment, read and checked before anything is served.
//! Never: looks at it again.

use std::{fs, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, ensure};
use shared::{
    model::{JoinString, KeyFingerprint, TokenSecret},
    tls::HubAddress,
};

use super::{decide::Terms, manifests::AgentManifests, seal::Seals};

/// The flags of enrolment.
#[derive(Debug)]
pub struct Asked<'a> {
    /// The agent is installed, instead of a Secret with its objects.
    pub installs: bool,
    /// The longest time for which a Cluster is kept from going.
    pub drain_limit: Duration,
    /// File with the objects of the agent.
    pub agent: Option<&'a Path>,
    /// Addresses at which members reach the hub.
    pub hub_addresses: &'a [HubAddress],
    /// Addresses at which they join; if empty, the same hosts at the port of `joinable`.
    pub join_addresses: &'a [HubAddress],
    /// The key that signs certificates of those who join.
    pub join_key: Option<&'a Path>,
    /// The key of the authority that the hub's certificate leads to, and the port, if clusters can join.
    pub joinable: Option<(KeyFingerprint, u16)>,
}

/// An operator's settings.
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
    /// Reads what the flags name.
    ///
    /// # Errors
    ///
    /// The hub lets nobody join, or a file cannot be read; what to do.
    pub fn read(args: &Asked<'_>) -> anyhow::Result<Self> {
        let Some((pin, port)) = args.joinable else {
            anyhow::bail!(
                "--topology-enrolment needs a port at which clusters join: give --join-listen, --join-cert and --join-key"
            );
        };
        let key = args.join_key.context("--join-key is missing")?;
        let key = fs::read(key).with_context(|| format!("cannot read --join-key {}", key.display()))?;
        let file = args.agent.context(
            "--topology-enrolment needs the objects of the agent: give --topology-agent FILE, rendered with its chart",
        )?;
        let about = || format!("--topology-agent {}", file.display());
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", about()))?;
        let manifests = Arc::new(AgentManifests::read(&text).with_context(about)?);
        let texts = |addresses: &[HubAddress]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
        ensure!(
            !args.hub_addresses.is_empty(),
            "--topology-enrolment needs the address at which members reach this hub: give --topology-hub-address"
        );
        let doors = match args.join_addresses {
            [] => {
                let at = |hub: &HubAddress| HubAddress { port, ..hub.clone() };
                let doors: Vec<_> = args.hub_addresses.iter().map(at).collect();
                texts(&doors)
            }
            given => texts(given),
        };
        let settings = Self {
            manifests,
            terms: Terms {
                installs: args.installs,
                drain_millis: u64::try_from(args.drain_limit.as_millis()).unwrap_or(u64::MAX),
            },
            hubs: texts(args.hub_addresses),
            doors,
            pin,
            seals: Seals::of(&key),
        };
        // More addresses than fit would be noticed at the first Cluster only.
        settings.join_string(TokenSecret::new(Default::default()))?;
        Ok(settings)
    }

    /// The settings that decisions depend on.
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

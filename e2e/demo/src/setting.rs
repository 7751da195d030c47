//! The demo's setting: simulated clusters or real ones, with a hub and agents, and the files for users. It starts
//! things; it shows nothing of what happens in them.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use anyhow::anyhow;
use kube::Client;

use super::{args::CLUSTERS, directory::DemoDirectory, kubeconfig, table::duration};
use cluster::{
    clusterset::{Backend, LocalClusterset},
    files::write_private,
    real::{Fleet, Options, build, module::Module},
};

/// The kind of clusters, proven to be available.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting {
    real: bool,
}

/// Everything that runs.
pub(super) struct Running {
    pub(super) clusterset: LocalClusterset,
    /// As a user, from the kubeconfig that was written.
    pub(super) clients: BTreeMap<String, Client>,
    /// The kind of the clusters, in words.
    pub(super) kind: String,
    /// Kept until the clusterset has ended.
    pub(super) backend: Backend,
}

impl Setting {
    /// For real clusters the control plane is built here, if it is not there yet; an error is one line.
    pub(super) fn new(real: bool) -> anyhow::Result<Self> {
        let module = Module::of_this_workspace();
        if real && build::assets().is_none() && module.built().is_err() {
            build::control_plane(&module)?;
        }
        Ok(Self { real })
    }

    /// Starts clusters, hub and agents, and writes the files for users.
    pub(super) async fn start(self, place: &DemoDirectory) -> anyhow::Result<Running> {
        let began = Instant::now();
        let (backend, kind) = if self.real {
            // The first line of such an error says all; its causes repeat it.
            let fleet = Fleet::start(&CLUSTERS, Options::default()).await;
            let fleet = Arc::new(fleet.map_err(|error| anyhow!("{error}"))?);
            let version = fleet.clusters()[0].git_version().to_owned();
            (Backend::Real(fleet), format!("real (kube-apiserver {version})"))
        } else {
            (Backend::Simulated, "simulated".to_owned())
        };
        let clusterset = LocalClusterset::start(&place.clusterset(), &backend, &CLUSTERS).await?;
        for name in ["ca.crt", "operator.crt", "operator.key"] {
            let content = std::fs::read(clusterset.certificate(name))?;
            write_private(&place.file(name), &content)?;
        }
        let address = format!("{}\n", clusterset.hub_address);
        write_private(&place.file("hub.addr"), address.as_bytes())?;
        kubeconfig::write(
            &kubeconfig::join(clusterset.clusters.values())?,
            &place.kubeconfig(),
        )?;
        let clients = kubeconfig::clients(&place.kubeconfig()).await?;
        Ok(Running {
            clusterset,
            clients,
            kind: format!("{kind}, started in {}", duration(began.elapsed())),
            backend,
        })
    }
}

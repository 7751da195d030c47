//! Owns: upstream's own manager of Cluster API: where it and its definitions are, and running it beside a real API
//! server, of which it knows no provider.
//! Never: builds it (`build` does); one that is missing is an answer (`Unavailable`).

use std::path::{Path, PathBuf};

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use rustix::process::{Pid, Signal, kill_process_group};

use super::{
    Cluster, Unavailable, build, module::Module, ports::ReservedPort, process::Process, programs::Program,
};

/// The version of the contract between it and its providers, which is that of its kinds too.
pub const CONTRACT: &str = "v1beta2";
/// A definition's label that says for which versions of its kind a contract holds.
pub const CONTRACT_LABEL: &str = "cluster.x-k8s.io/v1beta2";
/// Files for its webhooks; none are installed.
const CERTIFICATES: [&str; 2] = ["tls.crt", "tls.key"];

/// The manager that `cargo control-plane cluster-api` builds.
#[derive(Debug, Clone)]
pub struct ClusterApi {
    program: PathBuf,
    definitions: PathBuf,
}

impl ClusterApi {
    /// The one of this workspace.
    pub fn find() -> Result<Self, Unavailable> {
        let (program, definitions) = build::built_cluster_api(&Module::of_this_workspace())?;
        Ok(Self { program, definitions })
    }

    /// The definitions of its own kinds, with one version each, since nobody converts, and the label of the contract.
    pub fn definitions(&self) -> anyhow::Result<Vec<CustomResourceDefinition>> {
        let directory = &self.definitions;
        let files =
            std::fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
        let mut all = Vec::new();
        for file in files {
            let path = file?.path();
            let text = std::fs::read_to_string(&path)?;
            let read = serde_norway::from_str(&text);
            let mut definition: CustomResourceDefinition =
                read.with_context(|| format!("{} is no definition", path.display()))?;
            let labels = definition.metadata.labels.get_or_insert_default();
            labels.insert(CONTRACT_LABEL.to_owned(), CONTRACT.to_owned());
            definition.spec.conversion = None;
            let versions = &mut definition.spec.versions;
            if versions.iter().any(|version| version.name == CONTRACT) {
                versions.retain(|version| version.name == CONTRACT);
            }
            all.push(definition);
        }
        all.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        Ok(all)
    }

    /// Starts it beside a cluster that has the definitions, with topologies switched on.
    pub fn start(&self, cluster: &Cluster) -> anyhow::Result<Manager> {
        let directory = cluster.directory().join("cluster-api");
        std::fs::create_dir_all(&directory)?;
        let key = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
        for (name, text) in CERTIFICATES
            .iter()
            .zip([key.cert.pem(), key.signing_key.serialize_pem()])
        {
            std::fs::write(directory.join(name), text)?;
        }
        // It does not share a port with who reserved it, so that this one is given back just before.
        let webhooks = ReservedPort::reserve()?.number();
        let arguments = [
            format!("--kubeconfig={}", cluster.kubeconfig_path().display()),
            "--feature-gates=ClusterTopology=true".to_owned(),
            format!("--webhook-cert-dir={}", directory.display()),
            format!("--webhook-port={webhooks}"),
            "--health-addr=0".to_owned(),
            "--diagnostics-address=0".to_owned(),
            "--leader-elect=false".to_owned(),
        ];
        let program = Program {
            path: self.program.clone(),
            leading_arguments: Vec::new(),
            ends_with_stdin: false,
        };
        let log = directory.join("manager.log");
        let process = Process::start("the manager of Cluster API", &program, &arguments, &log)?;
        Ok(Manager { process, log })
    }
}

/// A manager that runs. It ends when it is dropped.
pub struct Manager {
    process: Process,
    log: PathBuf,
}

impl Manager {
    /// Stands still until [`Manager::go_on`]: what is changed meanwhile it sees then.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Goes on.
    pub fn go_on(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Path of its log.
    pub fn log(&self) -> &Path {
        &self.log
    }

    fn signal(&mut self, signal: Signal) -> anyhow::Result<()> {
        self.process.check()?;
        let (name, id) = self.process.who();
        let group = Pid::from_raw(id as i32).with_context(|| format!("{name} has no process"))?;
        kill_process_group(group, signal).with_context(|| format!("{name} takes no signal"))
    }
}

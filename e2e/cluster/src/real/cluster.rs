//! Owns: one real cluster: its API server, its controllers, its users, its address.
//! Never: knows the other clusters of the fleet.

use super::audit::AuditLog;
use super::certificates::{self, Authority};
use super::components::{self, Files};
use super::ports::ReservedPort;
use super::process::Process;
use super::programs::{ASSETS_VARIABLE, Programs};
use super::users::{self, ADMINISTRATORS, HARNESS_USER, User};
use super::{Error, Options, Unavailable};
use crate::definitions;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// An API server that is not ready after this long never will be.
const READY_WAIT: Duration = Duration::from_secs(120);
/// Interval of asking: nothing tells from outside when it begins to listen.
const READY_POLL: Duration = Duration::from_millis(50);
/// The user that the cluster's controllers act as.
const CONTROLLERS_USER: &str = "system:kube-controller-manager";

/// A running cluster. It stops when its fleet is dropped.
pub struct Cluster {
    name: String,
    directory: PathBuf,
    url: String,
    authority: Authority,
    harness: User,
    git_version: String,
    programs: Programs,
    apiserver_flags: Vec<String>,
    port: ReservedPort,
    apiserver: Mutex<Option<Process>>,
    /// One more, on a host of its own name as far as it can see.
    another: Mutex<Option<Process>>,
    another_port: ReservedPort,
    controllers: Mutex<Option<Process>>,
}

impl Cluster {
    /// Writes the cluster's files and starts its API server, which waits for etcd by itself.
    pub(super) fn launch(
        name: &str,
        index: usize,
        fleet_directory: &Path,
        programs: &Programs,
        etcd_port: u16,
        options: &Options,
    ) -> Result<Self, Error> {
        let directory = fleet_directory.join(name);
        std::fs::create_dir_all(&directory).map_err(Error::io("create", &directory))?;
        let authority = Authority::generate(name)?;
        write_files(&directory, &authority)?;
        let port = ReservedPort::reserve()?;
        let url = format!("https://127.0.0.1:{}", port.number());
        let harness = users::create(
            &authority,
            name,
            &url,
            HARNESS_USER,
            Some(ADMINISTRATORS),
            &directory,
        )?;
        let ranges = options.service_families.ranges(index);
        let files = Files {
            directory: &directory,
        };
        let apiserver_flags = components::apiserver(name, &files, etcd_port, port.number(), &ranges);
        let cluster = Self {
            name: name.to_owned(),
            directory,
            url,
            authority,
            harness,
            git_version: String::new(),
            programs: programs.clone(),
            apiserver_flags,
            port,
            apiserver: Mutex::new(None),
            another: Mutex::new(None),
            another_port: ReservedPort::reserve()?,
            controllers: Mutex::new(None),
        };
        cluster.launch_apiserver()?;
        Ok(cluster)
    }

    /// Waits until the API server is ready, then installs definitions and starts the controllers.
    pub(super) async fn complete(&mut self, crds: &[CustomResourceDefinition]) -> Result<(), Error> {
        self.wait_ready().await?;
        let client = self.client().await?;
        self.git_version = client.apiserver_version().await?.git_version;
        install(&client, crds).await?;
        if self.programs.have_controllers() {
            let kubeconfig = self.user_in(CONTROLLERS_USER, Some(ADMINISTRATORS))?;
            let process = Process::start(
                &format!("kube-controller-manager of {}", self.name),
                &self.programs.program("kube-controller-manager"),
                &components::controllers(kubeconfig.kubeconfig_path()),
                &self.directory.join("controller-manager.log"),
            )?;
            *locked(&self.controllers) = Some(process);
        }
        Ok(())
    }

    /// Its components that run, and their process ids.
    pub(super) fn processes(&self) -> Vec<(String, u32)> {
        let components = [&self.apiserver, &self.controllers];
        components
            .iter()
            .filter_map(|component| locked(component).as_ref().map(Process::who))
            .collect()
    }

    /// The name it was started under; also the context of its kubeconfig files.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Address of the API server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The version the API server reports.
    pub fn git_version(&self) -> &str {
        &self.git_version
    }

    /// The administrator's kubeconfig file: the user is `HARNESS_USER`.
    pub fn kubeconfig_path(&self) -> &Path {
        self.harness.kubeconfig_path()
    }

    /// The harness as a user of this cluster.
    pub fn harness(&self) -> &User {
        &self.harness
    }

    /// A client that may do everything. It belongs to the runtime it is made in.
    pub async fn client(&self) -> Result<kube::Client, Error> {
        self.harness.client().await
    }

    /// The cluster's audit log.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::at(&self.audit_log_path())
    }

    /// The file the API server writes its audit log to.
    pub fn audit_log_path(&self) -> PathBuf {
        self.directory.join("audit.log")
    }

    /// The directory with the logs of this cluster's components.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes a user, in a group if one is named. It may do nothing until RBAC objects say so.
    pub fn user(&self, name: &str, group: Option<&str>) -> Result<User, Error> {
        self.user_in(name, group)
    }

    /// Makes a user who is, to RBAC, the service account `name` of `namespace`: manifests that bind roles to
    /// the account apply to this user unchanged.
    pub fn service_account(&self, namespace: &str, name: &str) -> Result<User, Error> {
        let group = format!("system:serviceaccounts:{namespace}");
        self.user_in(&format!("system:serviceaccount:{namespace}:{name}"), Some(&group))
    }

    fn user_in(&self, name: &str, group: Option<&str>) -> Result<User, Error> {
        users::create(
            &self.authority,
            &self.name,
            &self.url,
            name,
            group,
            &self.directory,
        )
    }

    /// True when this cluster finalises namespaces, collects garbage and makes EndpointSlices.
    pub fn has_controllers(&self) -> bool {
        locked(&self.controllers).is_some()
    }

    /// For a test that needs them: says what to do when there are none, and the test is then ignored.
    pub fn require_controllers(&self) -> Result<(), Unavailable> {
        if self.has_controllers() {
            return Ok(());
        }
        let reason =
            format!("{ASSETS_VARIABLE} has no kube-controller-manager; add it or unset the variable");
        Err(Unavailable { reason })
    }

    /// Stops the API server at once, as a crash would. Its data stays in etcd.
    pub fn stop_apiserver(&self) {
        if let Some(mut process) = locked(&self.apiserver).take() {
            process.stop();
        }
    }

    /// Starts the API server again at the same address and waits until it is ready.
    pub async fn start_apiserver(&self) -> Result<(), Error> {
        if locked(&self.apiserver).is_some() {
            return Err(Error::Usage(format!(
                "the API server of {} runs already; stop it first",
                self.name
            )));
        }
        self.launch_apiserver()?;
        self.wait_ready().await
    }

    /// Starts one more API server over the same etcd, in a namespace in which this is the host's name, and waits until it
    /// listens. Nobody asks it anything: it keeps its identity Lease. Making the namespace needs root.
    pub async fn start_another_apiserver(&self, host: &str) -> Result<(), Error> {
        let own_port = format!("--secure-port={}", self.port.number());
        let port = self.another_port.number();
        let flags: Vec<String> = self
            .apiserver_flags
            .iter()
            .filter(|flag| !flag.starts_with("--audit-log-"))
            .map(|flag| {
                if *flag == own_port {
                    format!("--secure-port={port}")
                } else {
                    flag.clone()
                }
            })
            .collect();
        let program = self.programs.program("kube-apiserver").on_host(host);
        let log = self.directory.join("another-apiserver.log");
        let mut process = Process::start(&format!("kube-apiserver on {host}"), &program, &flags, &log)?;
        let deadline = Instant::now() + READY_WAIT;
        let mut poll = tokio::time::interval(READY_POLL);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
            poll.tick().await;
            process.check()?;
            if Instant::now() >= deadline {
                return Err(process.failure(format!("does not listen after {} s", READY_WAIT.as_secs())));
            }
        }
        *locked(&self.another) = Some(process);
        Ok(())
    }

    /// Kills that one, as a crash would: its Lease stays.
    pub fn kill_another_apiserver(&self) {
        if let Some(mut process) = locked(&self.another).take() {
            process.stop();
        }
    }

    /// An error with the end of the log when one of the cluster's components has ended by itself.
    pub fn check(&self) -> Result<(), Error> {
        for component in [&self.apiserver, &self.controllers] {
            if let Some(process) = locked(component).as_mut() {
                process.check()?;
            }
        }
        Ok(())
    }

    /// Lets every component end without waiting for it.
    pub(super) fn close(&self) {
        for component in [&self.controllers, &self.another, &self.apiserver] {
            if let Some(process) = locked(component).as_mut() {
                process.close();
            }
        }
    }

    fn launch_apiserver(&self) -> Result<(), Error> {
        let process = Process::start(
            &format!("kube-apiserver of {}", self.name),
            &self.programs.program("kube-apiserver"),
            &self.apiserver_flags,
            &self.directory.join("apiserver.log"),
        )?;
        *locked(&self.apiserver) = Some(process);
        Ok(())
    }

    async fn wait_ready(&self) -> Result<(), Error> {
        let mut config = self.harness.config().await?;
        config.default_retry = false;
        let client = kube::Client::try_from(config)?;
        let deadline = Instant::now() + READY_WAIT;
        let mut poll = tokio::time::interval(READY_POLL);
        loop {
            poll.tick().await;
            let request = http::Request::get("/readyz")
                .body(Vec::new())
                .map_err(kube::Error::HttpError)?;
            let Err(refused) = client.request_text(request).await else {
                return Ok(());
            };
            let mut running = locked(&self.apiserver);
            let Some(process) = running.as_mut() else {
                return Err(Error::Usage(format!(
                    "the API server of {} was stopped meanwhile",
                    self.name
                )));
            };
            process.check()?;
            if Instant::now() >= deadline {
                let why = format!("is not ready after {} s ({refused})", READY_WAIT.as_secs());
                return Err(process.failure(why));
            }
        }
    }
}

/// A poisoned lock only means that another test panicked; the process behind it is unharmed.
fn locked(process: &Mutex<Option<Process>>) -> std::sync::MutexGuard<'_, Option<Process>> {
    process.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn write_files(directory: &Path, authority: &Authority) -> Result<(), Error> {
    let serving = authority.serving(Vec::new())?;
    let service_account = certificates::service_account_key()?;
    let files = [
        ("ca.crt", authority.certificate()),
        ("apiserver.crt", serving.certificate),
        ("apiserver.key", serving.key),
        ("service-account.pub", service_account.certificate),
        ("service-account.key", service_account.key),
        ("audit-policy.yaml", components::AUDIT_POLICY.to_owned()),
    ];
    for (name, content) in files {
        let path = directory.join(name);
        std::fs::write(&path, content).map_err(Error::io("write", &path))?;
    }
    Ok(())
}

/// Creates the definitions and waits until each is served and described.
async fn install(client: &kube::Client, crds: &[CustomResourceDefinition]) -> Result<(), Error> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds {
        api.create(&PostParams::default(), crd).await?;
    }
    for crd in crds {
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        let served = definitions::served(client, name).await;
        served.map_err(|error| Error::Usage(format!("{error:#}")))?;
    }
    Ok(())
}

//! Owns: the control planes of all clusters, in one set of namespaces: their keys, their flags, their first words.
//! Never: knows what a node needs besides a kubeconfig.

use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use super::{
    address::{CONTROL_V4, CONTROL_V6, ClusterAddresses},
    namespace::{Namespace, detached},
    programs::Programs,
};
use cluster::real::{
    certificates::{Authority, service_account_key},
    users::{self, ADMINISTRATORS},
};

/// Address of etcd, inside the namespaces.
const ETCD: &str = "http://127.0.0.1:2379";
/// Address of etcd for peers.
const ETCD_PEER: &str = "http://127.0.0.1:2380";
/// A component that is not ready after this long never will be.
const READY_WAIT: Duration = Duration::from_secs(120);
/// Interval of asking: nothing tells from outside.
const READY_POLL: Duration = Duration::from_millis(200);
/// The user that people act as.
const ADMINISTRATOR: &str = "administrator";
/// The users that components act as: what they may do, Kubernetes knows by these names.
const COMPONENTS: [&str; 3] = [CONTROLLER_MANAGER, SCHEDULER, PROXY];
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
const SCHEDULER: &str = "system:kube-scheduler";
/// The user of every node's kube-proxy.
const PROXY: &str = "system:kube-proxy";
/// The group of all kubelets.
const NODES: &str = "system:nodes";

/// The user of a node's kubelet.
fn node_user(node: &str) -> String {
    format!("system:node:{node}")
}

/// The control plane of one cluster.
pub(super) struct ControlPlane<'a> {
    pub(super) name: String,
    pub(super) addresses: ClusterAddresses,
    /// The names of its nodes.
    pub(super) nodes: Vec<String>,
    /// Directory of its files.
    pub(super) directory: PathBuf,
    /// Namespace of all control planes.
    pub(super) namespace: &'a Namespace,
    pub(super) programs: &'a Programs,
}

impl ControlPlane<'_> {
    /// Kubeconfig of the administrator, for programs and for people.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        kubeconfig_in(&self.directory)
    }

    /// By which a node's kubelet connects.
    pub(super) fn kubelet_kubeconfig(&self, node: &str) -> PathBuf {
        self.kubeconfig_of(&node_user(node))
    }

    /// By which kube-proxy does.
    pub(super) fn proxy_kubeconfig(&self) -> PathBuf {
        self.kubeconfig_of(PROXY)
    }

    fn kubeconfig_of(&self, user: &str) -> PathBuf {
        users::kubeconfig_path(&self.directory, user)
    }

    /// The authority that its API server and kubelets know clients by.
    pub(super) fn authority(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    fn url(&self) -> String {
        format!("https://{CONTROL_V4}:{}", self.addresses.api_port())
    }

    /// Writes keys and starts the API server, which waits for etcd by itself.
    pub(super) fn start_apiserver(&self) -> anyhow::Result<()> {
        let authority = Authority::generate(&self.name)?;
        let names = self.addresses.api_service().into_iter();
        let names = names.chain([CONTROL_V4.to_string(), CONTROL_V6.to_string()]);
        let serving = authority.serving(names.collect())?;
        let kubelets = authority.client("apiserver-kubelet-client", Some(ADMINISTRATORS))?;
        let account = service_account_key()?;
        for (name, text) in [
            ("ca.crt", &authority.certificate()),
            ("apiserver.crt", &serving.certificate),
            ("apiserver.key", &serving.key),
            ("kubelets.crt", &kubelets.certificate),
            ("kubelets.key", &kubelets.key),
            ("service-account.pub", &account.certificate),
            ("service-account.key", &account.key),
        ] {
            cluster::files::write_private(&self.directory.join(name), text.as_bytes())?;
        }
        let known = [(ADMINISTRATOR.to_owned(), Some(ADMINISTRATORS))].into_iter();
        let known = known.chain(COMPONENTS.map(|component| (component.to_owned(), None)));
        let nodes = self.nodes.iter().map(|node| (node_user(node), Some(NODES)));
        for (name, group) in known.chain(nodes) {
            users::create(&authority, &self.name, &self.url(), &name, group, &self.directory)?;
        }
        self.start("kube-apiserver", &self.apiserver_flags())
    }

    fn apiserver_flags(&self) -> Vec<String> {
        let file = |name: &str| self.directory.join(name).display().to_string();
        vec![
            format!("--etcd-servers={ETCD}"),
            format!("--etcd-prefix=/{}", self.name),
            "--bind-address=::".to_owned(),
            format!("--advertise-address={}", self.advertised()),
            format!("--secure-port={}", self.addresses.api_port()),
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--service-account-key-file={}", file("service-account.pub")),
            format!(
                "--service-account-signing-key-file={}",
                file("service-account.key")
            ),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            format!("--kubelet-client-certificate={}", file("kubelets.crt")),
            format!("--kubelet-client-key={}", file("kubelets.key")),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--service-cluster-ip-range={}", self.addresses.service_ranges()),
            "--allow-privileged=true".to_owned(),
            "--profiling=false".to_owned(),
        ]
    }

    /// Of the family that comes first in its Services.
    fn advertised(&self) -> IpAddr {
        if self.addresses.dns().contains(':') {
            CONTROL_V6.into()
        } else {
            CONTROL_V4.into()
        }
    }

    /// Starts what makes Pods of Deployments and gives them nodes.
    pub(super) fn start_controllers(&self) -> anyhow::Result<()> {
        let kubeconfig = |user| format!("--kubeconfig={}", self.kubeconfig_of(user).display());
        let controllers = [
            kubeconfig(CONTROLLER_MANAGER),
            format!(
                "--service-account-private-key-file={}",
                self.directory.join("service-account.key").display()
            ),
            format!("--root-ca-file={}", self.authority().display()),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--use-service-account-credentials=true".to_owned(),
            "--allocate-node-cidrs=false".to_owned(),
            "--node-monitor-grace-period=60s".to_owned(),
            format!(
                "--flex-volume-plugin-dir={}",
                self.directory.join("flex").display()
            ),
        ];
        self.start("kube-controller-manager", &controllers)?;
        let scheduler = [
            kubeconfig(SCHEDULER),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ];
        self.start("kube-scheduler", &scheduler)
    }

    fn start(&self, component: &str, flags: &[String]) -> anyhow::Result<()> {
        let mut command = self.namespace.command(self.programs.kubernetes());
        command.arg(component).args(flags);
        detached(
            &mut command,
            Some(&self.directory.join(format!("{component}.log"))),
        )?;
        Ok(())
    }

    /// Output of kubectl for these arguments.
    pub(super) fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut kubectl = self.namespace.command(self.programs.kubectl());
        kubectl
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .args(arguments)
            .stdin(std::process::Stdio::null());
        cluster::real::command::printed(&mut kubectl)
    }

    /// Applies what is in a text.
    pub(super) fn apply(&self, text: &str, name: &str) -> anyhow::Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        let path = path.display().to_string();
        self.kubectl(&["apply", "--filename", &path]).map(drop)
    }

    /// Waits until a question is answered so.
    pub(super) fn wait_for(&self, what: &str, arguments: &[&str], answer: &str) -> anyhow::Result<()> {
        wait_for(&format!("{what} in {}", self.name), &self.directory, || {
            self.kubectl(arguments).is_ok_and(|said| said.contains(answer))
        })
    }
}

/// Path of a cluster's administrator kubeconfig.
pub(super) fn kubeconfig_in(directory: &Path) -> PathBuf {
    users::kubeconfig_path(directory, ADMINISTRATOR)
}

/// Starts the etcd of all clusters.
pub(super) fn start_etcd(namespace: &Namespace, programs: &Programs, directory: &Path) -> anyhow::Result<()> {
    let mut etcd = namespace.command(programs.kubernetes());
    etcd.args([
        "etcd",
        "--name=nodes",
        "--log-level=warn",
        "--unsafe-no-fsync=true",
    ])
    .arg(format!("--data-dir={}", directory.join("etcd").display()))
    .args([
        format!("--listen-client-urls={ETCD}"),
        format!("--advertise-client-urls={ETCD}"),
        format!("--listen-peer-urls={ETCD_PEER}"),
        format!("--initial-advertise-peer-urls={ETCD_PEER}"),
        format!("--initial-cluster=nodes={ETCD_PEER}"),
    ]);
    detached(&mut etcd, Some(&directory.join("etcd.log"))).map(drop)
}

/// Waits for a condition, and says where to look when it does not come.
pub(super) fn wait_for(what: &str, logs: &Path, condition: impl Fn() -> bool) -> anyhow::Result<()> {
    wait_at_most(READY_WAIT, what, logs, condition)
}

/// The same with a time of one's own.
pub(super) fn wait_at_most(
    most: Duration,
    what: &str,
    logs: &Path,
    condition: impl Fn() -> bool,
) -> anyhow::Result<()> {
    let deadline = Instant::now() + most;
    while !condition() {
        if Instant::now() >= deadline {
            bail!(
                "{} s passed, and not yet: {what}; logs are in {}",
                most.as_secs(),
                logs.display()
            );
        }
        std::thread::sleep(READY_POLL);
    }
    Ok(())
}

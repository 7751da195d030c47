//! Owns: one node: its namespaces, its network, and the programs that make it a node of its cluster.
//! Never: decides what runs on it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context;
use serde_json::Value;

use super::{
    address::{CONTROL_V4, CONTROL_V6, ClusterAddresses, NodeAddresses},
    cgroup,
    configuration::{self, CONTAINERD_SOCKET, Proxy},
    control::{ControlPlane, wait_for},
    host,
    layout::{Directory, Layout, MOUNTED, Place, ZONES, cgroup_of},
    namespace::{Namespace, detached},
    programs::Programs,
};
use cluster::real::command::printed;

/// Settings that the kubelet writes and a namespace cannot: files of this content are there instead.
const SYSCTLS: [(&str, &str); 3] = [
    ("vm/overcommit_memory", "1"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
];
/// The device among the control planes that every node has a port of.
pub(super) const BRIDGE: &str = "nodes";
/// The label by which Kubernetes knows a node's zone.
const ZONE: &str = "topology.kubernetes.io/zone";
/// kube-proxy's line when all parts interested in its node are registered.
const PROXY_LISTENS: &str = "Starting node config controller";

/// A node.
pub(super) struct Node<'a> {
    pub(super) name: String,
    pub(super) zone: &'static str,
    pub(super) addresses: NodeAddresses,
    pub(super) directory: PathBuf,
    pub(super) namespace: Namespace,
    pub(super) programs: &'a Programs,
}

impl<'a> Node<'a> {
    /// The node at this place, in these namespaces.
    pub(super) fn of(
        place: Place,
        directory: &Directory,
        layout: Layout,
        namespace: Namespace,
        programs: &'a Programs,
    ) -> Self {
        Self {
            name: place.name(),
            zone: ZONES[usize::from(place.node) - 1],
            addresses: layout.addresses(place.cluster).node(place.node),
            directory: directory.node(place),
            namespace,
            programs,
        }
    }

    /// Joins the network between the nodes, and gives the node what it must have of its own.
    pub(super) fn prepare(&self, control: &Namespace, others: &[NodeAddresses]) -> anyhow::Result<()> {
        for (directory, _) in MOUNTED {
            let path = self.directory.join(directory);
            fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        }
        self.connect(control)?;
        self.namespace.script(&self.network(others))?;
        self.namespace.script(&self.mounts()?)?;
        cgroup::create(&cgroup_of(&self.name))
    }

    /// A pair of devices: one end is the node's, the other one a port of the bridge.
    fn connect(&self, control: &Namespace) -> anyhow::Result<()> {
        let Self { name, addresses, .. } = self;
        // From outside: in a set of namespaces of its own, nobody knows the process numbers of another one.
        let mut link = Command::new("ip");
        link.args(["link", "add", name, "netns", &control.pid(), "type", "veth"])
            .args(["peer", "name", "eth0", "netns", &self.namespace.pid()]);
        printed(&mut link)?;
        let routes = routes(&[*addresses]);
        control.script(&format!("ip link set {name} master {BRIDGE} up\n{routes}"))
    }

    fn network(&self, others: &[NodeAddresses]) -> String {
        let (name, v4, v6) = (&self.name, self.addresses.v4(), self.addresses.v6());
        format!(
            "hostname {name}
            ip link set lo up
            ip link set eth0 up
            ip address add {v4}/24 dev eth0
            ip address add {v6}/64 dev eth0 nodad
            ip route add default via {CONTROL_V4}
            ip -6 route add default via {CONTROL_V6}
            sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
            sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv6.conf.default.accept_dad=0
            {}",
            routes(others)
        )
    }

    fn mounts(&self) -> anyhow::Result<String> {
        let directory = self.directory.display();
        let mut script = String::from("mount -t tmpfs tmpfs /run\nmkdir -p /run/netns /run/lock\n");
        for (own, place) in MOUNTED {
            script += &format!("mkdir -p {place}\nmount --bind {directory}/{own} {place}\n");
        }
        for (sysctl, value) in SYSCTLS {
            let file = self.directory.join(sysctl.replace('/', "."));
            fs::write(&file, value).with_context(|| format!("cannot write {}", file.display()))?;
            script += &format!("mount --bind {} /proc/sys/{sysctl}\n", file.display());
        }
        Ok(script + "mount --make-rshared /\n")
    }

    /// Starts containerd, and gives it the images when it answers.
    pub(super) fn start_containerd(&self) -> anyhow::Result<()> {
        let cni = self.directory.join("cni");
        fs::create_dir_all(&cni)?;
        write_json(
            &cni.join("nodes.conflist"),
            &configuration::network(self.addresses),
        )?;
        let file = self.directory.join("containerd.toml");
        fs::write(&file, configuration::containerd(&self.directory))?;
        let mut containerd = self.namespace.command("env");
        let path = format!("PATH={}:{}", self.programs.directory().display(), host::PATH);
        containerd
            .arg(path)
            .arg(self.programs.path("containerd"))
            .arg("--config")
            .arg(&file);
        detached(&mut containerd, Some(&self.directory.join("containerd.log")))?;
        wait_for(
            &format!("containerd of {} answers", self.name),
            &self.directory,
            || self.ctr(&["version"]).is_ok(),
        )?;
        let images = self.programs.images();
        images.iter().try_for_each(|image| self.import(image, None))
    }

    /// Takes an image from an archive; `named`: the name without its tag, where the archive has only that.
    pub(super) fn import(&self, archive: &Path, named: Option<&str>) -> anyhow::Result<()> {
        let archive = archive.display().to_string();
        let named = named.map(|name| format!("--base-name={name}"));
        let import = ["--namespace", "k8s.io", "images", "import"].into_iter();
        let arguments: Vec<&str> = import.chain(named.as_deref()).chain([&*archive]).collect();
        self.ctr(&arguments).map(drop)
    }

    /// Output of containerd's own client for these arguments.
    pub(super) fn ctr(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let mut ctr = self.namespace.command(self.programs.path("ctr"));
        ctr.args(["--address", CONTAINERD_SOCKET])
            .args(arguments)
            .stdin(Stdio::null());
        printed(&mut ctr)
    }

    /// Starts the kubelet, which makes the node known to its cluster.
    pub(super) fn start_kubelet(&self, control: &ControlPlane<'_>) -> anyhow::Result<()> {
        let group = format!("/{}", cgroup_of(&self.name));
        let file = self.directory.join("kubelet.yaml");
        write_json(
            &file,
            &configuration::kubelet(control.addresses, &group, &control.authority()),
        )?;
        let flags = [
            format!("--config={}", file.display()),
            format!(
                "--kubeconfig={}",
                control.kubelet_kubeconfig(&self.name).display()
            ),
            "--root-dir=/var/lib/kubelet".to_owned(),
            "--cert-dir=/var/lib/kubelet/pki".to_owned(),
            format!("--hostname-override={}", self.name),
            format!("--node-ip={}", self.addresses.node_ips()),
        ];
        self.start("kubelet", &flags)
    }

    /// Ends the kubelet at once, as a crash would. What runs in pods goes on.
    pub(super) fn kill_kubelet(&self) -> anyhow::Result<()> {
        self.namespace.script(&kill_kubelet(self.programs.kubernetes()))
    }

    /// Starts what makes the Services of its cluster on it.
    pub(super) fn start_proxy(
        &self,
        cluster: ClusterAddresses,
        kubeconfig: &Path,
        proxy: Proxy,
    ) -> anyhow::Result<()> {
        let file = self.directory.join("kube-proxy.yaml");
        write_json(
            &file,
            &configuration::proxy(cluster, &self.name, kubeconfig, proxy),
        )?;
        self.start("kube-proxy", &[format!("--config={}", file.display())])
    }

    /// Gives the node its zone, once its kube-proxy listens: kube-proxy of Kubernetes 1.36 looks at its node before it has
    /// registered who wants to know the zone, and one that was there then it may never learn, so that it keeps no traffic
    /// in a zone.
    pub(super) fn enter_zone(&self, control: &ControlPlane<'_>) -> anyhow::Result<()> {
        let log = self.directory.join("kube-proxy.log");
        let what = format!("kube-proxy of {} listens to what its node says", self.name);
        wait_for(&what, &self.directory, || {
            fs::read_to_string(&log).is_ok_and(|said| said.contains(PROXY_LISTENS))
        })?;
        let label = format!("{ZONE}={}", self.zone);
        let label = ["label", "node", &self.name, "--overwrite", &label];
        control.kubectl(&label).map(drop)
    }

    fn start(&self, component: &str, flags: &[String]) -> anyhow::Result<()> {
        let mut command = self.namespace.command("env");
        command
            .arg(format!("PATH={}", host::PATH))
            .arg(self.programs.kubernetes())
            .arg(component)
            .args(flags);
        detached(
            &mut command,
            Some(&self.directory.join(format!("{component}.log"))),
        )?;
        Ok(())
    }
}

/// Looks for the kubelet by how its command line begins: this script, which has the same words in it, begins otherwise.
fn kill_kubelet(kubernetes: PathBuf) -> String {
    format!(
        "killed=
        for process in /proc/[0-9]*; do
            line=$(tr '\\0' ' ' 2>/dev/null <$process/cmdline || :)
            case $line in
            \"{} kubelet --config=\"*) kill -KILL ${{process#/proc/}}; killed=1 ;;
            esac
        done
        [ $killed ] || {{ echo 'no kubelet runs' >&2; exit 1; }}",
        kubernetes.display()
    )
}

fn routes(nodes: &[NodeAddresses]) -> String {
    let routes = nodes.iter().flat_map(|node| node.routes());
    let lines = routes.map(|(range, via)| {
        if range.contains(':') {
            format!("ip -6 route add {range} via {via}\n")
        } else {
            format!("ip route add {range} via {via}\n")
        }
    });
    lines.collect()
}

fn write_json(path: &Path, value: &Value) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

//! Owns: bringing clusters up, step by step, with what is said on the way; running a part that failed it takes down.
//! Never: builds.

use std::{path::PathBuf, time::Instant};

use super::{
    address::{CONTROL_V4, CONTROL_V6, NodeAddresses},
    configuration::COREDNS_IMAGE,
    control::{self, ControlPlane},
    host,
    layout::{Directory, Layout, Place},
    namespace::Namespace,
    node::{BRIDGE, Node},
    programs::Programs,
    running::planes,
};
use advice::NODES_DOWN;

/// The manifests of CoreDNS.
const COREDNS: &str = include_str!("../coredns.yaml");

/// Starts what was asked for, and waits until every node is ready and every CoreDNS answers.
pub(super) fn up(directory: &Directory, layout: Layout) -> anyhow::Result<()> {
    host::check()?;
    let programs = Programs::of_this_workspace();
    programs.check()?;
    directory.create(layout)?;
    let started = start(directory, layout, &programs);
    if started.is_err() {
        eprintln!(
            "what runs already goes on, for looking at its logs in {}; `{NODES_DOWN}` ends it",
            directory.path().display()
        );
    }
    started
}

fn start(directory: &Directory, layout: Layout, programs: &Programs) -> anyhow::Result<()> {
    let began = Instant::now();
    let say = |what: &str| eprintln!("{:6.1} s  {what}", began.elapsed().as_secs_f64());
    let control = Namespace::create(&directory.control(), &programs.path("pause"))?;
    control.script(&control_network())?;
    let nodes = nodes(directory, layout, programs)?;
    for (node, place) in &nodes {
        let others: Vec<NodeAddresses> = nodes
            .iter()
            .filter(|(_, other)| other != place)
            .map(|(node, _)| node.addresses)
            .collect();
        node.prepare(&control, &others)?;
    }
    say("namespaces and networks are there");
    control::start_etcd(&control, programs, &directory.control())?;
    let planes = planes(directory, layout, &control, programs);
    planes.iter().try_for_each(ControlPlane::start_apiserver)?;
    for plane in &planes {
        plane.wait_for("the API server is ready", &["get", "--raw", "/readyz"], "ok")?;
        plane.start_controllers()?;
    }
    say("control planes are ready");
    for (node, place) in &nodes {
        node.start_containerd()?;
        node.start_kubelet(&planes[usize::from(place.cluster) - 1])?;
    }
    for (node, place) in &nodes {
        let plane = &planes[usize::from(place.cluster) - 1];
        let ready = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        plane.wait_for(
            &format!("the node {} is ready", node.name),
            &["get", "node", &node.name, "--output", ready],
            "True",
        )?;
        node.start_proxy(plane.addresses, &plane.proxy_kubeconfig(), layout.proxy)?;
    }
    for (node, place) in &nodes {
        node.enter_zone(&planes[usize::from(place.cluster) - 1])?;
    }
    say("nodes are ready");
    for plane in &planes {
        plane.apply(&coredns(&plane.addresses.dns()), "coredns.yaml")?;
    }
    for plane in &planes {
        let available = "jsonpath={.status.availableReplicas}";
        plane.wait_for(
            "CoreDNS answers",
            &[
                "get",
                "deployment",
                "coredns",
                "--namespace",
                "kube-system",
                "--output",
                available,
            ],
            "1",
        )?;
    }
    say("CoreDNS answers everywhere");
    Ok(())
}

/// Makes the namespaces of every node.
fn nodes<'a>(
    directory: &Directory,
    layout: Layout,
    programs: &'a Programs,
) -> anyhow::Result<Vec<(Node<'a>, Place)>> {
    let node = |place: Place| {
        let namespace = Namespace::create(&directory.node(place), &programs.path("pause"))?;
        Ok((Node::of(place, directory, layout, namespace, programs), place))
    };
    layout.places().map(node).collect()
}

/// The administrator of a cluster, as a file.
pub(super) fn kubeconfig(directory: &Directory, cluster: u8) -> PathBuf {
    control::kubeconfig_in(&directory.cluster(cluster))
}

fn control_network() -> String {
    format!(
        "hostname control
        ip link set lo up
        sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
        ip link add {BRIDGE} type bridge
        ip link set {BRIDGE} up
        ip address add {CONTROL_V4}/24 dev {BRIDGE}
        ip address add {CONTROL_V6}/64 dev {BRIDGE} nodad"
    )
}

fn coredns(address: &str) -> String {
    COREDNS
        .replace("@ADDRESS@", address)
        .replace("@IMAGE@", COREDNS_IMAGE)
}

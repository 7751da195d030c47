//! Owns: what the programs of a node read: containerd, kubelet, kube-proxy, the CNI plugins. Pure.
//! Never: writes a file.

use std::path::Path;

use serde_json::{Value, json};

use super::address::{ClusterAddresses, NodeAddresses};

/// Socket of a node's containerd, in the node's own mounts.
pub(super) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
/// The image of the container that holds a pod's namespaces.
pub(super) const PAUSE_IMAGE: &str = "tributary.local/pause:1";
/// The image with the tools that checks run in pods.
pub(super) const TOOLS_IMAGE: &str = "tributary.local/tools:1";
/// The image of CoreDNS.
pub(super) const COREDNS_IMAGE: &str = "tributary.local/coredns:1";
/// Pods on one node.
const PODS_MAX: u32 = 100;
/// Bytes of a packet between pods.
const MTU: u32 = 1500;

/// Mode of kube-proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize)]
pub enum Proxy {
    /// With nftables.
    Nftables,
    /// With iptables.
    Iptables,
}

impl Proxy {
    /// As kube-proxy calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
        }
    }
}

/// containerd's, with everything it keeps below `directory`.
pub(super) fn containerd(directory: &Path) -> String {
    let directory = directory.display();
    format!(
        r#"version = 3
root = "{directory}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.differ.v1.erofs",
  "io.containerd.internal.v1.opt",
  "io.containerd.internal.v1.tracing",
  "io.containerd.nri.v1.nri",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.tracing.processor.v1.otlp",
]
[grpc]
address = "{CONTAINERD_SOCKET}"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{PAUSE_IMAGE}"
[plugins.'io.containerd.cri.v1.runtime']
# Where the right to lower a score is missing, it is asked for nothing lower than its own.
restrict_oom_score_adj = true
disable_apparmor = true
enable_unprivileged_ports = true
enable_unprivileged_icmp = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "/usr/sbin/runc"
SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "{directory}/cni"
"#
    )
}

/// Pods have a device each to the node, and plain routes: nothing is translated on the way to another cluster.
pub(super) fn network(node: NodeAddresses) -> Value {
    let ranges = node.pod_ranges();
    let routes = ranges.iter().map(|range| {
        if range.contains(':') {
            json!({"dst": "::/0"})
        } else {
            json!({"dst": "0.0.0.0/0"})
        }
    });
    let subnets = ranges.iter().map(|range| json!([{ "subnet": range }]));
    json!({
        "cniVersion": "0.4.0",
        "name": "nodes",
        "plugins": [
            {
                "type": "ptp",
                "mtu": MTU,
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni-ipam",
                    "ranges": subnets.collect::<Vec<_>>(),
                    "routes": routes.collect::<Vec<_>>(),
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

/// The kubelet's. JSON is YAML, which it reads.
pub(super) fn kubelet(cluster: ClusterAddresses, cgroup: &str, authority: &Path) -> Value {
    let never = ["memory.available", "nodefs.available", "nodefs.inodesFree"]
        .into_iter()
        .chain(["imagefs.available", "imagefs.inodesFree"]);
    let never: serde_json::Map<_, _> = never.map(|signal| (signal.to_owned(), json!("0%"))).collect();
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        // It would refuse the first version of cgroups, which some machines still have.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup,
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "oomScoreAdj": 0,
        "makeIPTablesUtilChains": false,
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "clusterDNS": [cluster.dns()],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "volumePluginDir": "/var/lib/kubelet/plugins-exec",
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": never,
        "maxPods": PODS_MAX,
        "readOnlyPort": 0,
        "serializeImagePulls": false,
        "registryPullQPS": 0,
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": authority},
        },
        "authorization": {"mode": "Webhook"},
    })
}

/// kube-proxy's. It must not set what a network namespace cannot.
pub(super) fn proxy(cluster: ClusterAddresses, node: &str, kubeconfig: &Path, proxy: Proxy) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": kubeconfig},
        "mode": proxy.name(),
        "clusterCIDR": cluster.pod_ranges(),
        "hostnameOverride": node,
        "oomScoreAdj": 0,
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "nodePortAddresses": ["primary"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Families;

    #[test]
    fn a_nodes_network_has_a_range_and_a_route_for_each_family() {
        for (families, count) in [(Families::Dual, 2), (Families::V4, 1), (Families::V6, 1)] {
            let node = ClusterAddresses::of(1, families).node(2);
            let addresses = &network(node)["plugins"][0]["ipam"];
            let length = |field: &str| addresses[field].as_array().map(Vec::len);
            assert_eq!((length("ranges"), length("routes")), (Some(count), Some(count)));
        }
    }

    #[test]
    fn a_cluster_of_one_family_asks_its_dns_by_it() {
        let configuration = kubelet(
            ClusterAddresses::of(3, Families::V6),
            "/tributary-c3n1",
            Path::new("ca.crt"),
        );
        assert_eq!(configuration["clusterDNS"][0], "fd93::a");
        assert_eq!(configuration["authentication"]["x509"]["clientCAFile"], "ca.crt");
    }
}

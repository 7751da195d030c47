//! Owns: the law of edges: which files may name the wire format, the store and Kubernetes.
//! Never: says what they do with it.

use super::source;
use anyhow::ensure;
use libtest_mimic::Trial;
use regex::Regex;
use tributary_e2e::suite::plain_test;

/// A name from outside, the files that may say it, and the law in one sentence.
struct Edge {
    name: &'static str,
    pattern: &'static str,
    files: &'static [&'static str],
    law: &'static str,
}

const EDGES: &[Edge] = &[
    Edge {
        name: "the store",
        pattern: r"\bsled::(Batch|CompareAndSwap|Config|Db|Error|Event|IVec|Iter|Mode|Result|Subscriber|Tree|transaction)\b|\bextern crate sled\b",
        files: &["hub/log/src/sled.rs"],
        law: "only hub/log/src/sled.rs names sled",
    },
    Edge {
        name: "the persistent map",
        pattern: r"\brpds\b",
        files: &["hub/fold/src/map.rs"],
        law: "only hub/fold/src/map.rs names rpds",
    },
    Edge {
        name: "protobuf",
        pattern: r"\bproto::|\bprost\b|\bprost_types\b",
        files: &[
            // The conversions.
            "shared/wire/src/",
            "hub/src/doors/hello.rs",
            "shared/src/testing/",
            "hub/core/src/snapshot",
            // The services and clients that carry whole messages, and ask the conversions for the rest.
            "hub/src/session/serve.rs",
            "hub/src/inspect/",
            "hub/src/membership/",
            "hub/src/maintain/backup.rs",
            // The client prints whole messages.
            "cli/src/",
            "hub/src/hub.rs",
            "hub/src/run/ports.rs",
            "agent/src/doctor/gather.rs",
            "shared/src/doctor/look.rs",
            "agent/src/join/ask.rs",
            "agent/src/leave/hub.rs",
            "agent/src/link/dial.rs",
        ],
        law: "protobuf is converted in shared/wire/src, hub/core/src/snapshot and hub/src/inspect, and carried by the services",
    },
    Edge {
        name: "Kubernetes",
        pattern: r"\bkube::|\bkube_core::|\bk8s_openapi::",
        files: &[
            // The conversions, and the client.
            "shared/api/src/",
            "shared/src/api_client.rs",
            "shared/src/api_client/",
            "shared/src/bin/",
            "shared/src/testing/",
            // The agent's shells: watches, reports, writes, its Leases, whose cluster it is; and what wires them.
            "agent/src/watch/",
            "agent/src/definition.rs",
            "agent/engine/src/",
            // Where a cluster that joins keeps its key.
            "agent/src/join/",
            "agent/src/renewal/keep.rs",
            "agent/src/health/",
            "agent/src/agent.rs",
            "agent/src/membership/agree.rs",
            "agent/src/membership/keep.rs",
            "agent/src/membership/object.rs",
            "agent/src/run.rs",
            // What a cluster that leaves removes, with a person's rights.
            "agent/src/leave/mod.rs",
            "agent/src/leave/cluster.rs",
            "agent/src/leave/lead.rs",
            // The ConfigMap of CoreDNS, with a person's rights.
            "agent/src/corefile/cluster.rs",
            "agent/src/corefile/mod.rs",
            // The client prepares clusters, with a person's rights.
            "cli/src/setup/",
            // Doctors ask, and write nothing.
            "shared/src/doctor/ask.rs",
            "agent/src/doctor/",
            "hub/src/doctor/",
            // The hub writes ClusterProfiles into its own cluster.
            "hub/src/profile/",
            "hub/src/run/set.rs",
            "hub/src/run/topologies.rs",
            // Previews read a management cluster, with a person's rights; controllers write to it, and answer it.
            "hub/topology/reader/",
            "hub/topology/controller/",
            // The program dry-runs plans and gives Clusters another class, with a person's rights, and asks extensions as an
            // API server does.
            "hub/topology/program/src/dry.rs",
            "hub/topology/program/src/extension.rs",
            "hub/topology/program/src/rebase.rs",
            "hub/topology/program/src/rebase/",
            "shared/api-client/",
        ],
        law: "Kubernetes types are converted in shared/api/src and handled by the agent's and the inventory's shells",
    },
    Edge {
        name: "the hub's sessions",
        pattern: r"\bsession::",
        files: &[
            "hub/core/src/session/",
            "hub/core/src/lib.rs",
            "hub/src/session/",
            "hub/src/inspect/",
            "hub/src/hub.rs",
            "hub/src/run/",
        ],
        law: "the writer knows no session, only what sessions ask of it",
    },
    Edge {
        name: "topologies",
        pattern: r"\btopology::",
        files: &[
            "hub/src/lib.rs",
            // The command line, and what starts the observer.
            "hub/src/args.rs",
            "hub/src/program.rs",
            "hub/src/run/set.rs",
            "hub/src/run/topologies.rs",
            // What wires the webhook.
            "hub/src/run.rs",
            "hub/src/run/webhook.rs",
            // What was observed becomes properties of profiles.
            "hub/src/profile/run.rs",
            "hub/src/profile/wanted.rs",
        ],
        law: "topologies are a room of their own; only the command line and the inventory take something from there",
    },
    Edge {
        name: "a decision of an operator",
        pattern: r"\.operate\(",
        files: &["hub/src/membership/", "hub/core/src/writer/"],
        law: "operators decide through hub/src/membership, and the writer records it; who answers questions changes nothing",
    },
    Edge {
        name: "a Kubernetes client of its own",
        pattern: r"\bClient::(new|try_from|try_default)\(|\bClientBuilder\b",
        files: &["shared/api-client/src/lib.rs", "shared/src/api_client.rs"],
        law: "requests are made by the client of shared/api-client, which repeats nothing and gives up in seconds",
    },
];

pub(super) fn trials() -> Vec<Trial> {
    vec![plain_test("tidy::edges_stay_where_they_are", edges_stay)]
}

fn edges_stay() -> anyhow::Result<()> {
    let sources = source::files(&[".rs"])?;
    let product = |path: &str| source::is_product(path);
    let mut found = Vec::new();
    for edge in EDGES {
        let pattern = Regex::new(edge.pattern)?;
        let mut said = 0;
        for source in sources
            .iter()
            .filter(|source| product(&source.path) && !source.is_test())
        {
            let allowed = edge.files.iter().any(|file| source.path.starts_with(file));
            for (number, line) in source.code() {
                let names = !line.trim_start().starts_with("pub mod") && pattern.is_match(line);
                said += usize::from(names && allowed);
                if names && !allowed {
                    found.push(format!(
                        "{}:{number}: names {}: {}",
                        source.path, edge.name, edge.law
                    ));
                }
            }
        }
        ensure!(said > 0, "nobody names {}: the pattern sees nothing", edge.name);
    }
    ensure!(
        found.is_empty(),
        "names outside their edges:\n{}",
        found.join("\n")
    );
    Ok(())
}

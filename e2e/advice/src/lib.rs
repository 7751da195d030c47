//! Owns: the commands of this workspace that messages advise, each as it can be typed. A test parses all of them.
//! Never: runs one, or knows the program that does: every room may use this file, so it uses none.

use std::path::Path;

use model::advice::quoted;

/// Builds the control plane.
pub const BUILD_CONTROL_PLANE: &str = "cargo control-plane build";
/// Builds Helm.
pub const BUILD_HELM: &str = "cargo control-plane helm";
/// Builds the Lua of Argo CD.
pub const BUILD_LUA: &str = "cargo control-plane lua";
/// Builds the manager of Cluster API.
pub const BUILD_CLUSTER_API: &str = "cargo control-plane cluster-api";
/// Installs grpcurl.
pub const BUILD_GRPCURL: &str = "cargo control-plane grpcurl";
/// Builds kubectl.
pub const BUILD_KUBECTL: &str = "cargo control-plane kubectl";
/// Renders the plain manifests.
pub const RENDER_MANIFESTS: &str = "cargo control-plane manifests";
/// Builds what nodes run.
pub const BUILD_NODES: &str = "cargo nodes build";
/// Builds the image.
pub const BUILD_IMAGE: &str = "cargo image build";
/// Installs Tributary on clusters with nodes.
pub const NODES_INSTALL: &str = "cargo nodes install";
/// Starts clusters with nodes.
pub const NODES_UP: &str = "cargo nodes up";
/// Ends them.
pub const NODES_DOWN: &str = "cargo nodes down";
/// Shows which nodes run.
pub const NODES_STATUS: &str = "cargo nodes status";
/// Starts a demo.
pub const DEMO: &str = "cargo demo";
/// Records it for docs/demo.md.
pub const DEMO_RECORD: &str = "cargo demo --record";
/// Shows the exports of a demo.
pub const DEMO_EXPORTS: &str = "cargo demo get exports";
/// Shows the imports of a demo.
pub const DEMO_IMPORTS: &str = "cargo demo get imports";
/// Names the planted bugs.
pub const LIST_PLANTED: &str = "cargo sim planted --list";
/// Names the mutants.
pub const LIST_MUTANTS: &str = "cargo sim mutants --list";

/// Builds the control plane of an older Kubernetes.
pub fn build_older_control_plane(minor: &str) -> String {
    format!("{BUILD_CONTROL_PLANE} --kubernetes {minor}")
}

/// Starts the hub, or the agent of a cluster, in a demo.
pub fn demo_start(program: &str) -> String {
    format!("cargo demo start {program}")
}

/// Applies a file in a demo.
pub fn demo_apply(cluster: &str) -> String {
    format!("cargo demo apply {cluster} FILE")
}

/// Anything that can be done with a demo; `directory`: not the one that a demo has by itself.
pub fn demo_in(directory: Option<&Path>, what: &str) -> String {
    let directory =
        directory.map(|directory| format!("--directory {} ", quoted(&directory.to_string_lossy())));
    format!("cargo demo {}{what}", directory.unwrap_or_default())
}

/// Plays a world again.
pub fn sim_run(seed: u64, large: bool) -> String {
    format!("cargo sim run --seed {seed}{}", size(large))
}

/// Makes a world shorter.
pub fn sim_shrink(seed: u64, large: bool) -> String {
    format!("cargo sim shrink --seed {seed}{}", size(large))
}

fn size(large: bool) -> &'static str {
    if large { " --size large" } else { "" }
}

/// Plays a seed of the simulated network again.
pub fn netsim_trace(seed: u64) -> String {
    format!("cargo netsim --seed {seed} --trace")
}

/// Compares the templates of a seed with Go's again.
pub fn compare_templates(seed: u64, cases: usize) -> String {
    format!("cargo control-plane templates --first {seed} --seeds 1 --cases {cases}")
}

/// One of each that is built here.
pub fn advised() -> Vec<String> {
    let mut advised: Vec<String> = [
        BUILD_CONTROL_PLANE,
        BUILD_HELM,
        BUILD_LUA,
        BUILD_CLUSTER_API,
        BUILD_GRPCURL,
        BUILD_KUBECTL,
        RENDER_MANIFESTS,
        BUILD_IMAGE,
        BUILD_NODES,
        NODES_INSTALL,
        NODES_UP,
        NODES_DOWN,
        NODES_STATUS,
        DEMO,
        DEMO_RECORD,
        DEMO_EXPORTS,
        DEMO_IMPORTS,
        LIST_PLANTED,
        LIST_MUTANTS,
    ]
    .map(str::to_owned)
    .into();
    for program in ["hub", "east"] {
        advised.push(demo_start(program));
    }
    advised.push(demo_apply("east"));
    for large in [false, true] {
        advised.extend([sim_run(7, large), sim_shrink(7, large)]);
    }
    advised.push(build_older_control_plane("1.33"));
    advised.push(netsim_trace(7));
    advised.push(compare_templates(7, 100));
    advised
}

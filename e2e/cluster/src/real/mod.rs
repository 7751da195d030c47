//! Owns: real Kubernetes clusters for tests and the demo, without containers.
//! Never: is needed for anything but tests, the demo and measurements; never compiles Go inside `cargo test`.
//!
//! A fleet is one etcd and, for each cluster, a kube-apiserver (its own etcd prefix, certificate authority,
//! service range and audit log) and a kube-controller-manager that collects garbage, finalises namespaces and
//! makes EndpointSlices. Everything listens on 127.0.0.1, on ports that stay reserved while the fleet lives.
//! Nothing outlives the process that started it: each component ends when the pipe to it closes.
//!
//! The programs come from `KUBEBUILDER_ASSETS` when that is set (a directory with `etcd`, `kube-apiserver` and,
//! for namespaces that end, `kube-controller-manager`). Else they come from the Go module in
//! `e2e/control-plane`, which `cargo control-plane build` compiles into the target directory: about four
//! minutes on two cores the first time, nothing when the sources are unchanged. A test that finds neither
//! gets `Unavailable` and is reported as ignored; with `CI=true` it fails (see `suite`).
//!
//! ```no_run
//! # async fn example() -> Result<(), tributary_cluster::real::Error> {
//! use tributary_cluster::real::{Counts, Fleet, Options};
//! let fleet = Fleet::start(&["east", "west"], Options::default()).await?;
//! let east = fleet.cluster("east")?;
//! let client = east.client().await?;
//! let agent = east.service_account("tributary-system", "tributary-agent")?;
//! let mark = east.audit_log().settle(&client).await?;
//! // ... run the agent with agent.kubeconfig_path() ...
//! let _end = east.audit_log().settle(&client).await?;
//! println!("{}", Counts::of_the_tested(&east.audit_log().since(mark)?));
//! # Ok(()) }
//! ```
//!
//! Tests share a few fleets (`shared`), because a start costs seconds; each has one for itself meanwhile, and uses
//! namespaces of its own.
//! The namespace controller waits five seconds before it empties a namespace that is deleted; a scenario that
//! does not need that leaves its namespaces behind, empty; they go with the fleet.
//! A definition installed after the start is unknown to the garbage collector for up to 30 seconds: give it in
//! `Options::crds` when a test needs owner references collected.

pub mod args;
mod audit;
pub mod build;
pub mod certificates;
mod cluster;
pub mod cluster_api;
pub mod command;
mod components;
mod directory;
mod error;
pub mod etcd;
mod fleet;
pub mod helm;
mod inventory;
pub(crate) mod kept;
pub mod kubectl;
pub mod lua;
pub mod module;
mod options;
mod pool;
mod ports;
mod process;
mod programs;
pub mod promtool;
pub mod shared;
pub mod users;

pub use audit::{AuditLog, Counts, Mark, Request};
pub use cluster::Cluster;
pub use error::{Error, Unavailable};
pub use fleet::{CLUSTERS_MAX, Fleet};
pub use inventory::{ResourceVersions, resource_versions};
pub use options::{Options, ServiceFamilies};
pub use programs::ASSETS_VARIABLE;
pub use users::{HARNESS_USER, User};

//! Owns: real clusters with real nodes on one machine, without a registry or a container engine: kubelet, containerd,
//! runc, kube-proxy and CoreDNS that answers for clusterset.local too.
//! Never: touches the machine's own network; every address lives in namespaces that are made here.
//!
//! One set of namespaces has a bridge, one etcd and all control planes; each node has a set of its own, with a device
//! on that bridge. Pods of all clusters reach each other by plain routes. Everything in a set of namespaces ends with
//! the process that keeps it, so `down` takes all of it, after a crash too.

mod address;
pub mod args;
mod cgroup;
mod check;
mod churn;
mod client;
mod configuration;
mod conformance;
mod control;
mod demo;
mod dns;
mod ended;
mod first_answer;
mod guide;
mod held;
mod host;
mod install;
mod installed;
mod labelled;
mod layout;
mod leave;
mod lines;
mod lost;
mod names;
mod namespace;
mod node;
mod pair;
mod planted;
mod programs;
mod readme;
mod row;
mod running;
mod served;
mod specs;
mod state;
mod three_commands;
mod traffic;
mod transcript;
mod unbroken;
mod up;
mod upgrade;

pub use self::{address::Families, configuration::Proxy, demo::demo};

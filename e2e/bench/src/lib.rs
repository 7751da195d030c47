//! Owns: the load generator: members played over real mTLS against a real hub process, and what is measured.
//! Never: is part of a product; never lets a figure stand beside clusters that are wrong, never invents one that it
//! did not measure.
//!
//! * `args`: the command line. `run`: one invocation, shape by shape.
//! * `load_shape`: who exports what to whom in a shape. `facts`: encoded facts that carry a number.
//! * `player`: one member's session; `held`: what it holds. `traffic`: its bytes on the wire. `crowd`: all members of a shape, paced updates, latencies.
//! * `hub`, `cores`, `disk`, `probe`: the process under test and the machine below it.
//! * `ingest`, `churn`, `replay`: the shapes. `loaded`: a hub with all members of one. `flood`: one member that floods beside
//!   249 others. `unbounded`: a hub whose budgets nobody meets. `etcd`: the peer that ingest and churn are compared with.
//! * `real`: two real clusters with agents, and the bare relay beside them.
//! * `storm`, `restart`: a hub, and an agent, that come back. `storm_agents`: what agents write when a hub does.
//! * `handovers`: two agents that take turns.
//! * `renewals`: certificates of all members that are renewed. `progress`: what a member of a storm holds.
//! * `doors`: strangers with sockets and a hostile member, beside an operator who calls.
//! * `questions`: a hub that is asked while it records, by `readers`.
//! * `judged`: whether the clusters are right that were measured. `declared`: what a played member declared.
//! * `series`: what is measured over time. `figure`, `report`, `plot`: values of several runs, the table,
//!   the JSON file, the plots.

pub mod args;

mod churn;
mod cores;
mod crowd;
mod declared;
mod disk;
pub mod doors;
mod etcd;
mod facts;
mod figure;
mod flood;
mod handovers;
mod held;
mod hub;
mod ingest;
mod judged;
mod load_shape;
mod loaded;
mod losses;
mod player;
mod plot;
mod preview;
mod probe;
mod progress;
mod questions;
mod readers;
mod real;
mod renewals;
mod replay;
mod report;
mod restart;
mod retention;
mod run;
mod series;
mod storm;
mod storm_agents;
mod traffic;
mod unbounded;

pub use run::run;

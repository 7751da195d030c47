//! Owns: which rooms are pure, and what each may name for what reason.
//! Never: reads one.

/// A room, and what it may name besides `std`, the domain model and itself.
pub(super) struct PureRoom {
    pub(super) path: &'static str,
    pub(super) may_name: &'static [&'static str],
}

/// The rooms that docs/design.md, section 1, calls pure, and the pure halves of others. `bytes` is a value: a shared slice.
pub(super) const ROOMS: &[PureRoom] = &[
    PureRoom {
        path: "shared/model/src",
        // Names of derived objects are a hash in base32.
        may_name: &["crate", "bytes", "data_encoding", "sha2", "blake3"],
    },
    PureRoom {
        path: "hub/fold/src",
        // A persistent map is a value: it has the order of its keys and no other.
        may_name: &["bytes", "crate", "rpds"],
    },
    PureRoom {
        path: "hub/replication/src/engine",
        may_name: &["bytes"],
    },
    PureRoom {
        path: "hub/replication/src/machine",
        may_name: &["bytes", "crate::engine"],
    },
    PureRoom {
        path: "hub/src/inspect/page.rs",
        // A short hash of what was asked.
        may_name: &["blake3"],
    },
    PureRoom {
        path: "hub/src/inspect/pins.rs",
        may_name: &["crate::writer::Published"],
    },
    PureRoom {
        path: "hub/src/inspect/concern.rs",
        may_name: &["crate::fold"],
    },
    PureRoom {
        path: "hub/core/src/arrival.rs",
        may_name: &["fold", "crate::view"],
    },
    PureRoom {
        path: "hub/core/src/push.rs",
        may_name: &["bytes", "fold", "crate::view"],
    },
    PureRoom {
        path: "hub/core/src/push/takes.rs",
        may_name: &["fold", "crate::view"],
    },
    PureRoom {
        path: "hub/core/src/view/mod.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/session/machine.rs",
        may_name: &["bytes", "crate::push", "crate::view", "crate::writer::request"],
    },
    PureRoom {
        path: "hub/core/src/session/renewals.rs",
        may_name: &[],
    },
    PureRoom {
        path: "agent/src/renewal/due.rs",
        may_name: &[],
    },
    PureRoom {
        path: "hub/core/src/session/applied.rs",
        may_name: &["crate::push"],
    },
    PureRoom {
        path: "hub/core/src/writer/core.rs",
        // It numbers, encodes and chains events: encoding and hashing are functions of their input.
        may_name: &[
            "bytes",
            "crate::bounds",
            "fold",
            "event_log::Limits",
            "event_log::chain",
            "crate::view",
            "wire",
        ],
    },
    PureRoom {
        path: "hub/core/src/writer/request.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/admission.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/claims.rs",
        may_name: &[],
    },
    PureRoom {
        path: "hub/core/src/writer/conflicts.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/connectivity.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/departures.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/event_size.rs",
        may_name: &["fold", "event_log::Limits", "wire"],
    },
    PureRoom {
        path: "hub/core/src/writer/heard.rs",
        may_name: &[],
    },
    PureRoom {
        path: "hub/core/src/writer/held_back.rs",
        may_name: &[],
    },
    PureRoom {
        path: "hub/core/src/writer/log_time.rs",
        may_name: &[],
    },
    PureRoom {
        path: "hub/core/src/writer/brake.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/budgets.rs",
        may_name: &["crate::bounds", "fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/operate.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/over_budget.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/publication.rs",
        may_name: &["fold", "crate::view"],
    },
    PureRoom {
        path: "hub/core/src/writer/published.rs",
        may_name: &["fold", "event_log::Limits"],
    },
    PureRoom {
        path: "hub/core/src/writer/waiting.rs",
        may_name: &[],
    },
    PureRoom {
        path: "hub/core/src/writer/totals.rs",
        may_name: &["crate::bounds"],
    },
    PureRoom {
        path: "hub/core/src/writer/self_preservation.rs",
        may_name: &[],
    },
    PureRoom {
        path: "hub/core/src/writer/withdrawals.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/core/src/writer/disk_room.rs",
        may_name: &[
            "crate::bounds",
            "fold",
            "event_log::{Retention, Space}",
            "event_log::Retention",
            "event_log::Space",
        ],
    },
    PureRoom {
        path: "hub/core/src/writer/segments.rs",
        may_name: &["crate::bounds", "event_log::Stats"],
    },
    PureRoom {
        path: "hub/core/src/writer/stored.rs",
        // The state's bytes are what a difference leads from: encoding is a function of its input.
        may_name: &["fold", "crate::recall", "wire"],
    },
    PureRoom {
        path: "hub/topology/clusterclass/src/admission",
        // Questions are read as API servers send them.
        may_name: &["crate", "serde", "serde_json"],
    },
    PureRoom {
        path: "hub/topology/clusterclass/src/desired",
        // It makes and prints objects as API servers show them; ends of names are a hash.
        may_name: &["crate", "serde", "serde_json", "sha2"],
    },
    PureRoom {
        path: "hub/topology/controller/src/own/rules",
        // What is recorded is JSON, and digests of words; objects of Kubernetes say when their fields were written.
        may_name: &[
            "blake3",
            "crate::desired",
            "crate::model",
            "crate::own",
            "crate::patch",
            "jiff",
            "serde",
            "serde_json",
            "shared::api::names",
        ],
    },
    PureRoom {
        path: "hub/topology/controller/src/enrol/decide.rs",
        may_name: &["crate::observe", "shared::api::names"],
    },
    PureRoom {
        path: "hub/topology/controller/src/enrol/seal.rs",
        // A keyed hash is a function of its input.
        may_name: &["blake3"],
    },
    PureRoom {
        path: "hub/topology/controller/src/enrol/standing.rs",
        may_name: &["fold"],
    },
    PureRoom {
        path: "hub/topology/controller/src/enrol/manifests.rs",
        // Manifests are read and written as YAML.
        may_name: &["anyhow", "serde", "serde_json", "serde_norway"],
    },
    PureRoom {
        path: "hub/topology/controller/src/enrol/objects.rs",
        may_name: &[
            "crate::model",
            "crate::observe",
            "serde_json",
            "shared::api::names",
        ],
    },
    PureRoom {
        path: "hub/topology/controller/src/shadow/differing.rs",
        may_name: &["crate::desired", "crate::model"],
    },
    PureRoom {
        path: "hub/topology/clusterclass/src/model",
        may_name: &["serde_json", "serde_norway"],
    },
    PureRoom {
        path: "hub/topology/controller/src/observe",
        // Names are constants; a digest is a function of its input.
        may_name: &[
            "crate::model",
            // Objects of Kubernetes say when they were deleted.
            "jiff",
            "serde_json",
            "sha2",
            "shared::api::names",
        ],
    },
    PureRoom {
        path: "hub/topology/clusterclass/src/validation",
        may_name: &["crate", "serde_json"],
    },
    PureRoom {
        path: "hub/topology/clusterclass/src/variables",
        // Regular expressions are functions of their input.
        may_name: &["crate", "kube_cel", "regex", "serde_json", "stacker"],
    },
    PureRoom {
        path: "hub/topology/clusterclass/src/patch",
        // It reads and patches objects as API servers show them; extensions write patches in base64.
        may_name: &[
            "crate::model",
            "crate::patch",
            "crate::template",
            "data_encoding",
            "serde_json",
        ],
    },
    PureRoom {
        path: "hub/topology/clusterclass/src/template",
        // Regular expressions and checksums are functions of their input.
        may_name: &["crate::unicode", "regex", "sha2"],
    },
    PureRoom {
        path: "agent/src/corefile/edit",
        may_name: &["thiserror"],
    },
    PureRoom {
        path: "agent/src/health/judge.rs",
        may_name: &[],
    },
    PureRoom {
        path: "agent/src/health/leader.rs",
        may_name: &[],
    },
    PureRoom {
        path: "agent/src/health/leases.rs",
        may_name: &[],
    },
    PureRoom {
        path: "agent/src/health/nodes.rs",
        may_name: &[],
    },
    PureRoom {
        path: "agent/src/health/pace.rs",
        may_name: &[],
    },
    PureRoom {
        path: "agent/src/health/probes.rs",
        may_name: &[],
    },
    PureRoom {
        path: "agent/src/health/report.rs",
        may_name: &[],
    },
    PureRoom {
        path: "shared/api/src/identity_lease/collect.rs",
        may_name: &[],
    },
    PureRoom {
        path: "agent/src/leave/decide.rs",
        may_name: &[],
    },
    PureRoom {
        path: "agent/src/leave/report.rs",
        may_name: &["shared::api::names"],
    },
    PureRoom {
        path: "agent/src/membership/decide.rs",
        may_name: &["shared::api::names"],
    },
    PureRoom {
        path: "agent/core/src",
        // It restores objects from differences: encoding and hashing are functions of their input.
        may_name: &["bytes", "crate", "thiserror", "wire"],
    },
    PureRoom {
        path: "shared/src/doctor/report.rs",
        may_name: &[],
    },
    PureRoom {
        path: "shared/src/doctor/redact.rs",
        may_name: &[],
    },
    PureRoom {
        path: "shared/src/doctor/own.rs",
        may_name: &["crate::model", "crate::doctor", "super::report"],
    },
    PureRoom {
        path: "shared/src/doctor/hub.rs",
        may_name: &["crate::model", "crate::doctor", "super::own", "super::report"],
    },
    PureRoom {
        path: "shared/src/doctor/rights.rs",
        may_name: &["crate::doctor", "super::report"],
    },
    PureRoom {
        path: "agent/src/doctor/judge.rs",
        // It asks the room that edits a Corefile whether there is anything to edit.
        may_name: &["shared::api::names", "shared::doctor", "crate::corefile::edit"],
    },
    PureRoom {
        path: "agent/src/doctor/network.rs",
        may_name: &["shared::doctor"],
    },
    PureRoom {
        path: "hub/src/doctor/judge.rs",
        may_name: &[
            "crate::writer::STATE_ALARM_PERCENT",
            "shared::api::names",
            "shared::doctor",
        ],
    },
    // Of the oracle, all but `shorten`, which reads the clock.
    PureRoom {
        path: "e2e/oracle/src/lib.rs",
        // It reads objects as API servers show them.
        may_name: &["crate", "serde_json", "thiserror"],
    },
    PureRoom {
        path: "e2e/oracle/src/arrival.rs",
        // It reads objects as API servers show them.
        may_name: &["anyhow", "serde_json"],
    },
    PureRoom {
        path: "e2e/oracle/src/carried.rs",
        // It reads objects as API servers show them.
        may_name: &["crate", "serde_json", "thiserror"],
    },
    PureRoom {
        path: "e2e/oracle/src/declared.rs",
        // It reads objects as API servers show them.
        may_name: &["crate", "serde_json", "thiserror"],
    },
    PureRoom {
        path: "e2e/oracle/src/expected.rs",
        // It reads objects as API servers show them.
        may_name: &["crate", "serde_json", "thiserror"],
    },
    PureRoom {
        path: "e2e/oracle/src/part.rs",
        // It reads objects as API servers show them.
        may_name: &["crate", "serde_json", "thiserror"],
    },
    PureRoom {
        path: "e2e/oracle/src/picture.rs",
        // It reads objects as API servers show them.
        may_name: &["crate", "serde_json", "thiserror"],
    },
    PureRoom {
        path: "e2e/oracle/src/pieces.rs",
        // It reads objects as API servers show them.
        may_name: &["crate", "serde_json", "thiserror"],
    },
    PureRoom {
        path: "e2e/oracle/src/laws",
        may_name: &["crate"],
    },
    PureRoom {
        path: "e2e/oracle/src/seeds.rs",
        // A text becomes a seed by its hash.
        may_name: &["blake3"],
    },
];

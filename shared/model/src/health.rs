//! An agent's report about its cluster's health: observations, conclusion, reason. Counts and names, no times and no
//! text: an unchanged health is an unchanged fact. It judges nothing.

/// Most failed checks that a health names.
pub const FAILED_CHECKS_MAX: usize = 64;
/// Most API servers that a health names.
pub const API_SERVERS_NAMED_MAX: usize = 16;
/// Most nodes that a health names.
pub const NODES_NAMED_MAX: usize = 5;

/// An agent's observations of its control plane and its nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// gitVersion of the API server; empty while it has not been read.
    pub kubernetes_version: Box<str>,
    /// The verdict of /readyz, for hubs that know no other.
    pub control_plane: ControlPlane,
    /// Names of failed checks, sorted; at most [`FAILED_CHECKS_MAX`].
    pub failed_checks: Vec<Box<str>>,
    /// The agent's conclusion; absent: it is of a release that judged by /readyz alone.
    pub verdict: Option<ControlPlaneVerdict>,
    /// Its nodes; absent: it does not count them, or not yet.
    pub nodes: Option<NodesHealth>,
}

/// The verdict of /readyz.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlPlane {
    /// It answered that it is ready.
    Ready,
    /// It answered that it is not.
    NotReady,
    /// It did not answer.
    Unreachable,
}

/// An agent's conclusion about its control plane from probes and Leases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlPlaneVerdict {
    /// Why.
    pub reason: ControlPlaneReason,
    /// API servers whose identity Lease moves.
    pub api_servers_fresh: u32,
    /// Number of expected ones.
    pub api_servers_expected: u32,
    /// By host, each once; at most [`API_SERVERS_NAMED_MAX`].
    pub api_servers: Vec<ApiServer>,
}

/// Why a control plane counts as healthy, unhealthy or unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ControlPlaneReason {
    /// Its probes pass and its identity Leases move.
    Healthy,
    /// Its probes pass, and nobody keeps identity Leases, or the agent may not read them.
    HealthyNoIdentity,
    /// Some API servers do not renew their Lease.
    ApiServersDegraded,
    /// An API server starts again and again.
    ApiServerFlapping,
    /// Two API servers keep one Lease: they have one host name.
    SharedIdentity,
    /// The API server refuses connections or says that it is not ready.
    ApiServerNotReady,
    /// The API server does not answer, and no Lease moves.
    ApiServerUnreachable,
    /// The API server answers, and none writes its Lease any more.
    IdentityLeasesStale,
    /// The API server says that etcd fails.
    EtcdUnhealthy,
    /// Nobody renews the leader's Lease of the controller manager.
    ControllerManagerLeaderLost,
    /// Nobody renews the leader's Lease of the scheduler.
    SchedulerLeaderLost,
    /// The agent has only just started.
    Starting,
    /// The agent itself has no network.
    AgentIsolated,
    /// The agent may not ask.
    HealthNotReadable,
    /// The agent is of a later release and states a reason that this one does not know.
    ReasonNotKnown,
}

impl ControlPlaneReason {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Healthy,
        Self::HealthyNoIdentity,
        Self::ApiServersDegraded,
        Self::ApiServerFlapping,
        Self::SharedIdentity,
        Self::ApiServerNotReady,
        Self::ApiServerUnreachable,
        Self::IdentityLeasesStale,
        Self::EtcdUnhealthy,
        Self::ControllerManagerLeaderLost,
        Self::SchedulerLeaderLost,
        Self::Starting,
        Self::AgentIsolated,
        Self::HealthNotReadable,
        Self::ReasonNotKnown,
    ];

    /// The health of the control plane that follows from it; `None`: unknown.
    pub fn is_healthy(self) -> Option<bool> {
        match self {
            Self::Healthy
            | Self::HealthyNoIdentity
            | Self::ApiServersDegraded
            | Self::ApiServerFlapping
            | Self::SharedIdentity => Some(true),
            Self::ApiServerNotReady
            | Self::ApiServerUnreachable
            | Self::IdentityLeasesStale
            | Self::EtcdUnhealthy
            | Self::ControllerManagerLeaderLost
            | Self::SchedulerLeaderLost => Some(false),
            Self::Starting | Self::AgentIsolated | Self::HealthNotReadable | Self::ReasonNotKnown => None,
        }
    }

    /// The status in the condition ControlPlaneHealthy.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Healthy => "Healthy",
            Self::HealthyNoIdentity => "HealthyNoIdentity",
            Self::ApiServersDegraded => "APIServersDegraded",
            Self::ApiServerFlapping => "APIServerFlapping",
            Self::SharedIdentity => "SharedIdentity",
            Self::ApiServerNotReady => "APIServerNotReady",
            Self::ApiServerUnreachable => "APIServerUnreachable",
            Self::IdentityLeasesStale => "IdentityLeasesStale",
            Self::EtcdUnhealthy => "EtcdUnhealthy",
            Self::ControllerManagerLeaderLost => "ControllerManagerLeaderLost",
            Self::SchedulerLeaderLost => "SchedulerLeaderLost",
            Self::Starting => "Starting",
            Self::AgentIsolated => "AgentIsolated",
            Self::HealthNotReadable => "HealthNotReadable",
            Self::ReasonNotKnown => "ReasonNotKnown",
        }
    }
}

/// An API server by its identity Lease (KEP-1965).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiServer {
    /// The host in the label of its Lease, or the Lease's name.
    pub host: Box<str>,
    /// The state of its Lease.
    pub state: ApiServerState,
    /// Number of restarts seen within 10 minutes.
    pub restarts: u32,
    /// One of these is inferred from a gap in its renewals.
    pub restarts_inferred: bool,
    /// Two servers of this host renew one Lease.
    pub shared: bool,
}

/// The state of an identity Lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiServerState {
    /// It was not seen to be renewed yet.
    Unknown,
    /// It is renewed.
    Fresh,
    /// Its renewal is late.
    Late,
    /// It has not been renewed for long.
    Dead,
}

/// Nodes by their condition Ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodesHealth {
    /// The agent may not list them.
    NotReadable,
    /// The agent has just started, and a node that it has not seen ready may be within its tolerance or not.
    Starting,
    /// They are counted.
    Counted {
        /// Their number.
        total: u32,
        /// Nodes that have not been ready for longer than the tolerance.
        not_ready: u32,
        /// The first of these by name; at most [`NODES_NAMED_MAX`].
        named: Vec<Box<str>>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_of_its_own_and_one_status() {
        let words: std::collections::BTreeSet<_> = ControlPlaneReason::ALL
            .iter()
            .map(|reason| reason.as_str())
            .collect();
        assert_eq!(words.len(), ControlPlaneReason::ALL.len());
        let of = |status: Option<bool>| {
            let all = ControlPlaneReason::ALL.into_iter();
            all.filter(|reason| reason.is_healthy() == status).count()
        };
        assert_eq!((of(Some(true)), of(Some(false)), of(None)), (5, 6, 4));
    }
}

//! Values common to Services and endpoints: transport protocols, IP families, the bound on ports.

/// Most ports of one Service (the API server's own bound on EndpointSlice ports is 20,000; no Service is near).
pub const SERVICE_PORTS_MAX: usize = 1_000;

/// A transport protocol. The order is the order in which ports are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// An IP family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

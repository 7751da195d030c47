//! Owns: what a caller may choose about a fleet of real clusters.
//! Never: holds state.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// The address families of a cluster's Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceFamilies {
    /// One IPv4 range.
    #[default]
    Ipv4,
    /// An IPv4 and an IPv6 range, IPv4 first.
    DualStack,
    /// An IPv6 and an IPv4 range, IPv6 first.
    DualStackIpv6First,
    /// Not all alike: the first cluster has an IPv4 range, the second an IPv6 range, and so on, every third both.
    Mixed,
}

impl ServiceFamilies {
    /// The ranges of the `index`th cluster; no two clusters share one.
    pub(super) fn ranges(self, index: usize) -> String {
        let ipv4 = format!("10.{}.0.0/16", FIRST_RANGE + index);
        let ipv6 = format!("fd00:{:x}::/108", FIRST_RANGE + index);
        match self {
            Self::Ipv4 => ipv4,
            Self::DualStack => format!("{ipv4},{ipv6}"),
            Self::DualStackIpv6First => format!("{ipv6},{ipv4}"),
            Self::Mixed => match index % 3 {
                0 => ipv4,
                1 => ipv6,
                _ => format!("{ipv4},{ipv6}"),
            },
        }
    }
}

/// The second byte of the first cluster's range; below it lie networks that people often have.
const FIRST_RANGE: usize = 96;

/// Options of a fleet's start. `Options::default()` is what most tests want.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The address families of every cluster's Services.
    pub service_families: ServiceFamilies,
    /// Wait for the disk on every write, as a production etcd does. Tests leave it off, measurements turn it on.
    pub sync_to_disk: bool,
    /// Installed in every cluster before its controllers start, and awaited until they are served. What is
    /// installed later is unknown to the garbage collector for up to 30 seconds.
    pub crds: Vec<CustomResourceDefinition>,
    /// Keep the directory with logs and audit logs when the fleet stops.
    pub keep_directory: bool,
}

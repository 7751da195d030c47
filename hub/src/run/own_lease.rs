//! Owns: the Lease that says that this hub process runs, in the namespace and the cluster that it runs in.
//! Never: holds up, ends or tells anything else of the process: a hub serves without a cluster as well as with one.

use std::path::{Path, PathBuf};

use prometheus_client::registry::Registry;
use shared::{
    api::{
        identity_lease::{IdentityLease, IdentityLeaseMetrics, Replica},
        names::HUB_MANAGER,
    },
    api_client::api_server,
    process::{host_name, monotonic, own_namespace},
};

use crate::{
    args::ServeArgs,
    profile::{self, ProfileMetrics},
};

/// The duration stated in the Lease, as upstream's: people see for an hour who was there. Observers of liveness look at
/// the renewal time, which is updated every 10 s.
const LEASE_SECONDS: i32 = 3_600;

/// The Lease, if the process has a cluster of its own. Its requests are not among those that clustersets count.
pub(super) async fn prepare(
    args: &ServeArgs,
    registry: &mut Registry,
) -> anyhow::Result<Option<IdentityLease>> {
    let metrics = IdentityLeaseMetrics::register(registry);
    let kubeconfig = args.kubeconfig.as_deref();
    let Some(client) = profile::client(kubeconfig, &ProfileMetrics::default()).await? else {
        return Ok(None);
    };
    let files = args.set.0.as_ref().map(|set| &*set.data);
    let files = files.or(args.clustersets.as_deref());
    let host = host_name();
    let replica = Replica {
        program: HUB_MANAGER,
        namespace: own_namespace(),
        place: place(&host, kubeconfig.and(files)),
        host,
        duration_seconds: LEASE_SECONDS,
    };
    Ok(Some(IdentityLease::new(
        api_server(client),
        replica,
        monotonic(),
        || true,
        metrics,
    )))
}

/// The part of a hub's identity that stays through restarts and is unique: in a pod its name, which its StatefulSet
/// keeps. On other hosts several hubs may run, each with files of its own.
fn place(host: &str, files: Option<&Path>) -> String {
    match files {
        None => host.to_owned(),
        Some(files) => {
            let files = std::path::absolute(files).unwrap_or_else(|_| files.to_owned());
            // Without a slash at the end.
            let files: PathBuf = files.components().collect();
            format!("{host}:{}", files.display())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hubs_of_one_host_differ_and_each_is_the_same_at_every_start() {
        assert_eq!(place("tributary-hub-0", None), "tributary-hub-0");
        let of = |files: &str| place("laptop", Some(Path::new(files)));
        assert_eq!(of("/srv/a"), of("/srv/a/"));
        assert_ne!(of("/srv/a"), of("/srv/b"));
        assert_ne!(of("/srv/a"), place("other", Some(Path::new("/srv/a"))));
    }
}

//! The client of a cluster's API, and the version in which a cluster serves the kinds that Tributary brings along.

mod served_version;

use http::Request;
use kube::{Client, client::Body};

pub use ::api_client::*;
pub use served_version::{KindVersion, ServedVersions};

/// The client, with requests about kinds of mcs-api, and ClusterProfiles, in the version that the cluster serves.
pub fn in_served_version(client: Client, versions: ServedVersions) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, versions) = (client.clone(), versions.clone());
        async move { versions.ask(&client, request).await }
    });
    Client::new(service, namespace)
}

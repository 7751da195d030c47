//! The client of a cluster's API, and the version in which a cluster serves the kinds that Tributary brings along.

mod served_version;

use bytes::Bytes;
use http::{Request, Response};
use kube::{Client, client::Body};

use crate::api::server;

pub use ::api_client::*;
pub use served_version::{KindVersion, ServedVersions};

/// The API server behind this client, for what knows no other client.
pub fn api_server(client: Client) -> server::Client {
    server::Client::new(move |request: Request<Bytes>| {
        let client = client.clone();
        async move {
            let answer = client.send(request.map(Body::from)).await?;
            let (parts, body) = answer.into_parts();
            let body = body.collect_bytes().await?;
            Ok::<_, server::NoAnswer>(Response::from_parts(parts, body))
        }
    })
}

/// The client, with requests about kinds of mcs-api, and ClusterProfiles, in the version that the cluster serves.
pub fn in_served_version(client: Client, versions: ServedVersions) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, versions) = (client.clone(), versions.clone());
        async move { versions.ask(&client, request).await }
    });
    Client::new(service, namespace)
}

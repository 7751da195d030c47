//! The client of the hub's own Kubernetes cluster, from a kubeconfig and over a real socket.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde_json::json;
use shared::testing::api_server::RefusingServer;

use crate::profile::{ProfileMetrics, client};

#[tokio::test]
async fn nothing_is_asked_twice_behind_the_back_of_whoever_asked() {
    for code in [429, 503, 504] {
        let server = RefusingServer::start(code).await;
        let kubeconfig = json!({
            "clusters": [{ "name": "own", "cluster": { "server": server.uri } }],
            "contexts": [{ "name": "own", "context": { "cluster": "own", "user": "hub" } }],
            "users": [{ "name": "hub", "user": {} }],
            "current-context": "own",
        });
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), kubeconfig.to_string()).expect("written");
        let client = client(Some(file.path()), &ProfileMetrics::default()).await;
        let client = client.expect("a client").expect("of the kubeconfig's cluster");
        let namespaces: Api<Namespace> = Api::all(client);
        namespaces.get("x").await.expect_err("refused");
        assert_eq!(server.asked(), 1, "{code}");
    }
}

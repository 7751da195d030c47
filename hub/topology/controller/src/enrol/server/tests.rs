//! API servers of Clusters whose owners are hostile, and how a kind is found at an honest one.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use shared::testing::api_server::ScriptedServer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::{super::AT_ONCE, *};

/// Bytes that the kernel holds between a server and us: both socket buffers at their largest.
const SOCKETS_BYTES: u64 = 12 * 1024 * 1024;

fn installing(uri: &str) -> Installing {
    shared::api_client::install_crypto_provider().ok();
    Installing::by(Config::new(uri.parse().expect("a URI"))).expect("a client")
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
}

/// A server whose answers never end, and the bytes of them that somebody took.
async fn endless(head: &'static str) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let uri = format!("http://{}", listener.local_addr().expect("an address"));
    let taken = Arc::new(AtomicU64::new(0));
    let counted = taken.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let asked = socket.read(&mut request).await;
                let mut part = head.as_bytes().to_vec();
                while asked.is_ok() && socket.write_all(&part).await.is_ok() {
                    counted.fetch_add(part.len() as u64, Ordering::Relaxed);
                    part = vec![b' '; 64 * 1024];
                }
            });
        }
    });
    (uri, taken)
}

#[tokio::test]
async fn answers_without_an_end_take_a_few_mebibytes_however_many_run_at_once() {
    for head in [
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n",
        "HTTP/1.1 500 no\r\ncontent-type: application/json\r\n\r\n",
    ] {
        let (uri, taken) = endless(head).await;
        let asking = (0..AT_ONCE).map(|_| async { installing(&uri).apply(&namespace()).await });
        for applied in futures::future::join_all(asking).await {
            let error = format!("{:#}", applied.expect_err("endless"));
            assert!(error.contains("without an end"), "{error}");
        }
        let most = AT_ONCE as u64 * (ANSWER_BYTES_MAX + SOCKETS_BYTES);
        let taken = taken.load(Ordering::Relaxed);
        assert!(taken <= most, "{taken} bytes");
    }
}

#[tokio::test]
async fn a_kind_is_found_by_its_name_and_a_subresource_is_none() {
    let server = ScriptedServer::start(|asked| match asked.path.as_str() {
        "/api/v1" => {
            let entry = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": false});
            let resources = [
                entry("namespaces/finalize", "Namespace"),
                entry("namespaces", "Namespace"),
            ];
            (200, json!({"kind": "APIResourceList", "resources": resources}))
        }
        path if path.starts_with("/api/v1/namespaces/x?") && asked.method == "PATCH" => (200, json!({})),
        _ => (404, json!({"kind": "Status", "code": 404, "message": "not here"})),
    })
    .await;
    let installing = installing(&server.uri);
    installing.apply(&namespace()).await.expect("applied");
    let unknown = json!({"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "x"}});
    let error = installing.apply(&unknown).await.expect_err("no such kind");
    assert!(
        format!("{error:#}").contains("serves no Nothing of v1"),
        "{error:#}"
    );
    let group = json!({"apiVersion": "x.example/v1", "kind": "Namespace", "metadata": {"name": "x"}});
    let error = installing.apply(&group).await.expect_err("no such group");
    assert!(format!("{error:#}").contains("not here (HTTP 404)"), "{error:#}");
}

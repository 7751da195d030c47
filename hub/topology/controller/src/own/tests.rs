//! The hub that keeps topologies, from taking the Lease to giving it back.

use std::sync::Mutex;

use serde_json::{Value, json};
use shared::{
    model::UnixMillis,
    testing::api_server::{Asked, ScriptedServer},
};

use super::*;
use event_log::{MemoryDisk, MemoryLog};

/// Longest wait for what is to happen.
const PATIENCE: Duration = Duration::from_secs(30);
const LEASES: &str = "/apis/coordination.k8s.io/v1/leases";

/// The Lease of the topologies' keeper, and a signal of its release.
#[derive(Default)]
struct Held {
    lease: Mutex<Value>,
    given_back: Notify,
}

impl Held {
    fn answer(&self, asked: &Asked) -> (u16, Value) {
        let mut lease = self.lease.lock().expect("one at a time");
        if asked.method == "GET" {
            return match &*lease {
                Value::Null => not_found(),
                lease => (200, lease.clone()),
            };
        }
        *lease = asked.body.clone();
        let holder = lease["spec"]["holderIdentity"].as_str();
        if holder.unwrap_or_default().is_empty() {
            self.given_back.notify_one();
        }
        (200, lease.clone())
    }
}

fn not_found() -> (u16, Value) {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound", "message": "none",
    });
    (404, status)
}

/// A management cluster without Clusters, where another controller is at work.
fn answer(held: &Held, asked: &Asked) -> (u16, Value) {
    const CORE: &str = "cluster.x-k8s.io/v1beta2";
    let path = asked.path.split('?').next().unwrap_or_default();
    let list = |version: &str, kind: &str, items: Value| {
        let kind = format!("{kind}List");
        (
            200,
            json!({"apiVersion": version, "kind": kind, "metadata": {"resourceVersion": "1"}, "items": items}),
        )
    };
    match path {
        "/apis" => {
            let version = json!({"groupVersion": CORE, "version": "v1beta2"});
            let group =
                json!({"name": "cluster.x-k8s.io", "versions": [version], "preferredVersion": version});
            (
                200,
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}),
            )
        }
        "/apis/cluster.x-k8s.io/v1beta2" => {
            let kinds = [
                ("ClusterClass", "clusterclasses"),
                ("Cluster", "clusters"),
                ("MachineDeployment", "machinedeployments"),
            ];
            let resources = kinds.map(|(kind, plural)| {
                json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list", "get"]})
            });
            let all = json!({
                "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": CORE, "resources": resources,
            });
            (200, all)
        }
        LEASES => {
            let rival = json!({
                "metadata": {"name": "controller-leader-election-capi", "namespace": "capi-system"},
                "spec": {"holderIdentity": "capi", "leaseDurationSeconds": 60, "renewTime": "2999-01-01T00:00:00.000000Z"},
            });
            list("coordination.k8s.io/v1", "Lease", json!([rival]))
        }
        _ if path.starts_with("/apis/coordination.k8s.io/v1/namespaces/default/leases") => held.answer(asked),
        _ if path.starts_with("/apis/cluster.x-k8s.io/v1beta2/") => list(CORE, "Object", json!([])),
        _ => not_found(),
    }
}

#[tokio::test]
async fn a_hub_beside_another_controller_gives_the_lease_back() {
    let _ = shared::tls::install_crypto_provider();
    let held = Arc::new(Held::default());
    let answering = held.clone();
    let server = ScriptedServer::start(move |asked| answer(&answering, asked)).await;
    let config = kube::Config::new(server.uri.parse().expect("a URI"));
    let client = Client::try_from(config).expect("a client");
    let clusterset = Clusterset::new("example.org", "default").expect("a name");
    let epoch = Epoch::default().next(UnixMillis(1), 1);
    let log = MemoryLog::open(&MemoryDisk::default(), &clusterset, epoch).expect("a log");
    let log = OwnLog(Journal::open(Box::new(log)).expect("a journal"));
    let waves = Waves {
        at_once: 1,
        patience_millis: 1,
    };
    let drain = CancellationToken::new();
    let metrics = OwnMetrics::default();
    let owner = Owner::new(client, log, waves, Clock::start(), metrics, drain.clone());
    let given_back = async {
        let waited = tokio::time::timeout(PATIENCE, held.given_back.notified()).await;
        drain.cancel();
        waited
    };
    let (ran, waited) = tokio::join!(owner.run(), given_back);
    ran.expect("it ends with the drain");
    waited.expect("the Lease is given back while the hub runs");
}

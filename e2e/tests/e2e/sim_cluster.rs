//! Tests of the simulated cluster beyond single answers: watches, controllers, faults, the request record.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Namespace, Service};
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use libtest_mimic::Trial;
use serde_json::json;
use sim::{Fault, ManualClock, SimCluster, SimConfig, older_crds};
use tributary_e2e::suite::sim_test;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test(
            "sim::both_watch_strategies_of_kube_list_and_follow",
            both_watch_strategies_of_kube_list_and_follow,
        ),
        sim_test(
            "sim::a_watch_from_before_the_history_is_expired",
            a_watch_from_before_the_history_is_expired,
        ),
        sim_test(
            "sim::namespaces_terminate_and_take_their_content",
            namespaces_terminate_and_take_their_content,
        ),
        sim_test(
            "sim::owned_objects_go_with_their_owner",
            owned_objects_go_with_their_owner,
        ),
        sim_test(
            "sim::a_lost_answer_is_a_done_write_and_is_recorded",
            a_lost_answer_is_a_done_write_and_is_recorded,
        ),
        sim_test(
            "sim::the_same_seed_gives_the_same_uids_and_faults",
            the_same_seed_gives_the_same_uids_and_faults,
        ),
        sim_test(
            "sim::an_older_schema_prunes_and_refuses_and_crds_come_and_go",
            an_older_schema_prunes_and_refuses_and_crds_come_and_go,
        ),
        sim_test(
            "sim::the_manual_clock_dates_objects_by_the_second",
            the_manual_clock_dates_objects_by_the_second,
        ),
        sim_test(
            "sim::dropped_watches_and_lost_history_are_recovered_by_kube",
            dropped_watches_and_lost_history_are_recovered_by_kube,
        ),
        sim_test(
            "sim::served_over_http_it_is_the_same_cluster",
            served_over_http_it_is_the_same_cluster,
        ),
    ]
}

fn cluster() -> SimCluster {
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    SimCluster::new(SimConfig {
        clock,
        ..SimConfig::default()
    })
    .expect("a cluster")
}

const CART: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {ports: [{port: 80}]}
";

/// The next events of a kube watcher, as short words.
async fn words(cluster: &SimCluster, config: watcher::Config, count: usize) -> Vec<String> {
    let services: Api<Service> = Api::all(cluster.client());
    let word = |event: Event<Service>| match event {
        Event::Init => "init".to_owned(),
        Event::InitApply(object) => format!("init {}", object.name_any()),
        Event::InitDone => "done".to_owned(),
        Event::Apply(object) => format!("apply {}", object.name_any()),
        Event::Delete(object) => format!("delete {}", object.name_any()),
    };
    watcher(services, config)
        .map_ok(word)
        .take(count)
        .try_collect()
        .await
        .expect("a healthy watch")
}

async fn both_watch_strategies_of_kube_list_and_follow() -> anyhow::Result<()> {
    for config in [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ] {
        let cluster = cluster();
        cluster.apply_yaml(CART).expect("applied");
        assert_eq!(
            words(&cluster, config.clone(), 3).await,
            ["init", "init cart", "done"]
        );
        cluster.requests().clear();
        let later = cluster.clone();
        let follow = words(&cluster, config, 5);
        let change = async {
            while !later.requests().all().iter().any(|entry| entry.verb == "watch") {
                tokio::task::yield_now().await;
            }
            let added = CART.replace("name: cart", "name: more");
            later.apply_yaml(&added).expect("applied");
            later.delete("Service", "shop", "cart").expect("deleted");
        };
        let (seen, ()) = tokio::join!(follow, change);
        assert_eq!(seen[..3], ["init", "init cart", "done"]);
        assert_eq!(seen[3..], ["apply more", "delete cart"]);
    }
    Ok(())
}

async fn a_watch_from_before_the_history_is_expired() -> anyhow::Result<()> {
    let cluster = cluster();
    cluster.apply_yaml(CART).expect("applied");
    cluster.forget_history();
    let services: Api<Service> = Api::all(cluster.client());
    let mut events = services
        .watch(&WatchParams::default(), "1")
        .await
        .expect("a watch")
        .boxed();
    let Some(Ok(WatchEvent::Error(status))) = events.next().await else {
        panic!("an ERROR event was due")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    Ok(())
}

async fn namespaces_terminate_and_take_their_content() -> anyhow::Result<()> {
    let cluster = cluster();
    cluster.apply_yaml(CART).expect("applied");
    cluster.hold_controllers(true);
    cluster.delete("Namespace", "", "shop").expect("deleted");
    assert_eq!(
        cluster.get("Namespace", "", "shop").expect("held")["status"]["phase"],
        "Terminating"
    );
    let late = cluster
        .apply_yaml(&CART.replace("name: cart", "name: late"))
        .expect_err("refused");
    assert!(late.to_string().contains("NamespaceTerminating"), "{late}");
    assert!(cluster.get("Service", "shop", "cart").is_some());
    cluster.hold_controllers(false);
    assert!(
        cluster.get("Service", "shop", "cart").is_none() && cluster.get("Namespace", "", "shop").is_none()
    );
    Ok(())
}

async fn owned_objects_go_with_their_owner() -> anyhow::Result<()> {
    let cluster = cluster();
    let owner = cluster
        .apply_yaml(CART)
        .expect("applied")
        .pop()
        .expect("the Service");
    let mut slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": [],
        "metadata": {"name": "cart-1", "namespace": "shop", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Service", "name": "cart", "uid": owner["metadata"]["uid"]}]}});
    cluster.apply(slice.clone()).expect("applied");
    cluster.delete("Service", "shop", "cart").expect("deleted");
    assert_eq!(cluster.list("EndpointSlice"), Vec::<serde_json::Value>::new());
    slice["metadata"]["ownerReferences"][0]["uid"] = json!("nobody");
    cluster.apply(slice).expect("applied");
    assert_eq!(cluster.list("EndpointSlice"), Vec::<serde_json::Value>::new());
    Ok(())
}

async fn a_lost_answer_is_a_done_write_and_is_recorded() -> anyhow::Result<()> {
    let cluster = cluster();
    cluster.apply_yaml(CART).expect("applied");
    cluster.faults().next(Fault::AnswerLost, 1, "services");
    let services: Api<Service> = Api::namespaced(cluster.client(), "shop");
    let patch =
        Patch::Apply(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"labels": {"a": "b"}}}));
    let apply = PatchParams::apply("agent");
    assert!(services.patch("cart", &apply, &patch).await.is_err());
    assert_eq!(
        cluster.get("Service", "shop", "cart").expect("there")["metadata"]["labels"]["a"],
        "b"
    );
    let revision = cluster.revision();
    services
        .patch("cart", &apply, &patch)
        .await
        .expect("the second answer arrives");
    assert_eq!(cluster.revision(), revision, "a no-op apply writes nothing");
    let writes = cluster.requests().writes();
    assert_eq!(
        writes
            .iter()
            .map(|write| (write.verb, write.manager.as_str()))
            .collect::<Vec<_>>(),
        [("patch", "agent"); 2]
    );
    Ok(())
}

async fn the_same_seed_gives_the_same_uids_and_faults() -> anyhow::Result<()> {
    let run = || async {
        let cluster = cluster();
        cluster.faults().rate(Fault::InternalError, 300, "");
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        let mut answers = Vec::new();
        for _ in 0..50 {
            answers.push(namespaces.list(&ListParams::default()).await.is_ok());
        }
        (answers, cluster.list("Namespace"))
    };
    let (first, second) = (run().await, run().await);
    assert_eq!(first, second);
    assert!(first.0.contains(&true) && first.0.contains(&false));
    Ok(())
}

async fn an_older_schema_prunes_and_refuses_and_crds_come_and_go() -> anyhow::Result<()> {
    let cluster = SimCluster::new(SimConfig {
        crds: older_crds(),
        ..SimConfig::default()
    })
    .expect("a cluster");
    let import = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": "cart", "namespace": "default"}, "spec": {"type": "Headless", "ports": []}});
    cluster.apply(import).expect("applied");
    let request = http::Request::get("/openapi/v3/apis/multicluster.x-k8s.io/v1beta1").body(Vec::new());
    let document = cluster
        .client()
        .request_text(request.expect("a request"))
        .await
        .expect("OpenAPI");
    assert!(document.contains("ServiceImport") && !document.contains("endpointSliceObjects"));
    cluster
        .remove_crd("serviceimports.multicluster.x-k8s.io")
        .expect("removed");
    let listed = || async {
        let path = "/apis/multicluster.x-k8s.io/v1beta1/serviceimports";
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        cluster.client().request::<serde_json::Value>(request).await
    };
    assert!(matches!(listed().await, Err(kube::Error::Api(status)) if status.code == 404));
    older_crds().iter().for_each(|crd| cluster.install_crd(crd));
    assert_eq!(listed().await.expect("served again")["items"], json!([]));
    Ok(())
}

async fn the_manual_clock_dates_objects_by_the_second() -> anyhow::Result<()> {
    let clock = Arc::new(ManualClock::new(1_700_000_000_999));
    let cluster = SimCluster::new(SimConfig {
        clock: clock.clone(),
        ..SimConfig::default()
    })
    .expect("a cluster");
    clock.advance(500);
    cluster.apply_yaml(CART).expect("applied");
    let created =
        cluster.get("Service", "shop", "cart").expect("there")["metadata"]["creationTimestamp"].clone();
    assert_eq!(created, "2023-11-14T22:13:21Z");
    assert_eq!(cluster.clock().now_ms(), 1_700_000_001_499);
    Ok(())
}

async fn dropped_watches_and_lost_history_are_recovered_by_kube() -> anyhow::Result<()> {
    let cluster = cluster();
    cluster.apply_yaml(CART)?;
    let services: Api<Service> = Api::all(cluster.client());
    let mut events = std::pin::pin!(watcher(services, watcher::Config::default()).default_backoff());
    let mut changed = false;
    loop {
        match events.try_next().await {
            Ok(Some(Event::InitDone)) if !changed => {
                // What happens now is in no history that the watcher can resume from.
                changed = true;
                cluster.faults().next(Fault::Gone, 1, "services");
                cluster.delete("Service", "shop", "cart")?;
                cluster.apply_yaml(&CART.replace("name: cart", "name: more"))?;
                cluster.faults().drop_watches();
                cluster.forget_history();
            }
            Ok(Some(Event::InitApply(object) | Event::Apply(object))) if changed => {
                assert_eq!(object.name_any(), "more");
                return Ok(());
            }
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => anyhow::bail!("a watcher never ends"),
        }
    }
}

async fn served_over_http_it_is_the_same_cluster() -> anyhow::Result<()> {
    let cluster = cluster();
    let served = cluster.serve("127.0.0.1:0".parse()?).await?;
    let uri: http::Uri = format!("http://{}", served.address).parse()?;
    let client = kube::Client::try_from(kube::Config::new(uri))?;
    cluster.apply_yaml(CART)?;
    let services: Api<Service> = Api::namespaced(client.clone(), "shop");
    assert_eq!(services.get("cart").await?.name_any(), "cart");
    let version = client.apiserver_version().await?;
    assert_eq!(version.git_version, sim::GIT_VERSION);
    drop(served);
    while services.get("cart").await.is_ok() {
        tokio::task::yield_now().await;
    }
    Ok(())
}

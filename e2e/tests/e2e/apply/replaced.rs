//! A write that was on its way when another agent took the Lease: it comes late, and has no effect.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use agent::lease::WritePermit;
use http::Method;
use serde_json::{Value, json};
use shared::{
    api::convert::NamespaceDenyList,
    model::{ExportStatus, sync::DesiredChange},
};
use sim::SimCluster;
use tokio::sync::watch;

use super::{cluster::*, driver::*};

/// The way of an agent to its API server on which writes can be held up.
#[derive(Clone)]
struct Way {
    cluster: SimCluster,
    holds_up: Arc<watch::Sender<bool>>,
    held_up: Arc<AtomicUsize>,
    /// Answers to the delayed requests.
    answers: Arc<Mutex<Vec<u16>>>,
}

impl Way {
    fn to(cluster: &SimCluster) -> Self {
        Self {
            cluster: cluster.clone(),
            holds_up: Arc::new(watch::Sender::new(false)),
            held_up: Arc::default(),
            answers: Arc::default(),
        }
    }

    fn client(&self) -> kube::Client {
        let way = self.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let way = way.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.map_err(std::io::Error::other)?;
                let writes = matches!(parts.method, Method::PATCH | Method::DELETE);
                let held_up = writes && *way.holds_up.borrow();
                if held_up {
                    way.held_up.fetch_add(1, Ordering::SeqCst);
                    let free = way
                        .holds_up
                        .subscribe()
                        .wait_for(|holds_up| !holds_up)
                        .await
                        .is_ok();
                    assert!(free, "the sender lives");
                }
                let answer = way
                    .cluster
                    .respond(http::Request::from_parts(parts, body))
                    .await?;
                if held_up {
                    let mut answers = way.answers.lock().expect("no panic");
                    answers.push(answer.status().as_u16());
                }
                Ok::<_, std::io::Error>(answer)
            }
        });
        kube::Client::new(service, "default")
    }
}

/// A plan of several writes ends where the permit does: what is on its way arrives, and nothing follows it.
pub(super) async fn nothing_is_begun_without_a_permit() -> anyhow::Result<()> {
    let cluster = cluster()?;
    let (way, permit) = (Way::to(&cluster), WritePermit::unlimited());
    let agent = Agent::start_permitted(way.client(), "shop", NamespaceDenyList::default(), permit.clone());
    agent.handle.sources_known().await;
    way.holds_up.send_replace(true);
    agent.told(1, &all_listed(), wishes());
    until("a write on its way", || way.held_up.load(Ordering::SeqCst) > 0).await?;
    permit.set(None);
    way.holds_up.send_replace(false);
    until("its answer", || !way.answers.lock().expect("no panic").is_empty()).await?;
    agent.stop().await?;
    let writes = cluster.requests().writes();
    assert_eq!(
        writes.len(),
        1,
        "the import has a Service, two slices and a status: {writes:?}"
    );
    Ok(())
}

fn status(cluster: &SimCluster, exporters: u32, left_out: &str) -> DesiredChange {
    let export = cluster.get("ServiceExport", "shop", "cart").unwrap_or_default();
    DesiredChange::ExportStatus(Arc::new(ExportStatus {
        service: key(),
        uid: export["metadata"]["uid"].as_str().unwrap_or_default().into(),
        generation: 1,
        conflicts: Vec::new(),
        exporters,
        denial: None,
        left_out: left_out.into(),
    }))
}

/// The existing object, the first write of the replaced agent, and the newer one's in its place.
struct Case {
    what: &'static str,
    stood: Vec<DesiredChange>,
    older: Vec<DesiredChange>,
    newer: Vec<DesiredChange>,
}

fn with_import(change: impl FnOnce(&mut shared::model::ServiceImport)) -> Vec<DesiredChange> {
    let mut changed = import(&[port("http", 80)], &["east", "west"]);
    change(&mut changed);
    let mut wishes = wishes();
    wishes[0] = DesiredChange::Import(Arc::new(changed));
    wishes
}

fn with_slice(address: &str) -> Vec<DesiredChange> {
    let mut wishes = wishes();
    wishes[1] = DesiredChange::Slice(Arc::new(slice("east", address)));
    wishes
}

fn cases(cluster: &SimCluster) -> Vec<Case> {
    let affinity = |import: &mut shared::model::ServiceImport| {
        import.policies.session_affinity = shared::model::SessionAffinity::ClientIp;
    };
    let label = |value: &'static str| {
        with_import(|import| {
            import.labels.insert("tier".into(), value.into());
        })
    };
    let mut without_east = wishes();
    without_east.remove(1);
    vec![
        Case {
            what: "an endpoint",
            stood: wishes(),
            older: with_slice("10.1.0.8"),
            newer: with_slice("10.1.0.9"),
        },
        Case {
            what: "a derived Service",
            stood: wishes(),
            older: with_import(affinity),
            newer: with_import(|import| import.policies.internal_traffic_policy = Some("Local".into())),
        },
        Case {
            what: "an import",
            stood: wishes(),
            older: label("older"),
            newer: label("newer"),
        },
        Case {
            what: "a deletion",
            stood: wishes(),
            older: without_east,
            newer: with_slice("10.1.0.9"),
        },
        Case {
            what: "the status of an export",
            stood: vec![status(cluster, 1, "")],
            older: vec![status(cluster, 1, "older")],
            newer: vec![status(cluster, 1, "newer")],
        },
    ]
}

/// Whatever the write: over what the newer agent has written it is refused, and not tried again.
pub(super) async fn a_late_write_of_a_replaced_agent_has_no_effect() -> anyhow::Result<()> {
    let count = cases(&cluster()?).len();
    for index in 0..count {
        let cluster = cluster()?;
        cluster.apply_yaml("{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{name: http, port: 80}]}}")?;
        if index + 1 == count {
            cluster.apply_yaml(EXPORT)?;
        }
        let case = cases(&cluster).swap_remove(index);
        late(&cluster, case).await?;
    }
    Ok(())
}

async fn late(cluster: &SimCluster, case: Case) -> anyhow::Result<()> {
    let Case {
        what,
        stood,
        older,
        newer,
    } = case;
    let (way, permit) = (Way::to(cluster), WritePermit::unlimited());
    let old = Agent::start_permitted(way.client(), "shop", NamespaceDenyList::default(), permit.clone());
    old.told(1, &all_listed(), stood);
    until("what stood", || stands(&old)).await?;
    way.holds_up.send_replace(true);
    old.told(2, &all_listed(), older);
    until("a write on its way", || way.held_up.load(Ordering::SeqCst) > 0).await?;
    // It cannot renew the Lease any more, and another agent takes it.
    permit.set(None);
    let new = Agent::start(cluster);
    new.handle.sources_known().await;
    new.told(3, &all_listed(), newer);
    until("the newer content", || stands(&new)).await?;
    let (before, objects) = (cluster.revision(), everything(cluster));
    way.holds_up.send_replace(false);
    until("the late write", || {
        way.answers.lock().expect("no panic").len() == way.held_up.load(Ordering::SeqCst)
    })
    .await?;
    let answers = way.answers.lock().expect("no panic").clone();
    assert!(answers.iter().all(|code| *code == 409), "{what}: {answers:?}");
    old.stop().await?;
    assert_eq!(
        cluster.revision(),
        before,
        "{what}: {} is not {objects}",
        everything(cluster)
    );
    new.stop().await
}

/// Returns true if everything that it was told is applied.
fn stands(agent: &Agent) -> bool {
    let applied = agent.handle.reach().applied;
    applied.cursor.is_some() && applied.parked == 0
}

fn everything(cluster: &SimCluster) -> Value {
    let kinds = ["ServiceImport", "Service", "EndpointSlice", "ServiceExport"];
    json!(kinds.map(|kind| cluster.list(kind)))
}

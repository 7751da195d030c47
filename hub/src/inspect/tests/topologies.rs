//! `State/Explain` of a topology: who may ask, what is answered, and every way in which it is not.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use proto::v1::{self, state_server::State};
use tokio::sync::Semaphore;
use tonic::{Code, Request};

use super::inspected_hub::{InspectedHub, by_alice, by_dashboard, by_east};
use crate::inspect::{ExplainsTopologies, Inspection, NotExplained, ObjectExplained, TopologyExplained};

/// Knows one Cluster, and answers about another one only when told to.
struct OneCluster(Semaphore);

impl ExplainsTopologies for OneCluster {
    fn explain(
        &self,
        namespace: String,
        name: String,
    ) -> BoxFuture<'_, Result<TopologyExplained, NotExplained>> {
        async move {
            match (&*namespace, &*name) {
                ("fleet", "shop") => Ok(TopologyExplained {
                    class: "fleet/edge".into(),
                    version: "v1.34.1".into(),
                    variables: vec![
                        ("password".into(), None),
                        ("region".into(), Some("\"eu\"".into())),
                    ],
                    objects: vec![ObjectExplained {
                        place: "control-plane".into(),
                        action: "keep",
                        patches: vec![("z".into(), 1, true), ("a".into(), 0, false)],
                        ..ObjectExplained::default()
                    }],
                    ..TopologyExplained::default()
                }),
                ("fleet", "wrong") => Ok(TopologyExplained {
                    findings: vec!["Cluster fleet/wrong: spec.topology: required".into()],
                    ..TopologyExplained::default()
                }),
                ("fleet", "slow") => {
                    let told = self.0.acquire().await;
                    told.map_or(
                        Err(NotExplained::NoTopology),
                        |_| Ok(TopologyExplained::default()),
                    )
                }
                ("fleet", "unread") => Err(NotExplained::Unread("no answer".into())),
                _ => Err(NotExplained::NoTopology),
            }
        }
        .boxed()
    }
}

fn asked(namespace: &str, name: &str) -> v1::ExplainRequest {
    v1::ExplainRequest {
        namespace: namespace.into(),
        name: name.into(),
        subject: v1::ExplainSubject::ClusterTopology.into(),
        ..Default::default()
    }
}

async fn inspection() -> (InspectedHub, Inspection) {
    let (inspected, ..) = InspectedHub::with_two_members().await;
    let cluster = Arc::new(OneCluster(Semaphore::new(0)));
    let explaining = inspected.inspection.clone().explaining(Some(cluster));
    (inspected, explaining)
}

async fn refused(inspection: &Inspection, request: Request<v1::ExplainRequest>) -> (Code, String) {
    let said = inspection.explain(request).await.expect_err("refused");
    (said.code(), said.message().to_owned())
}

#[tokio::test]
async fn operators_and_readers_are_told_what_a_topology_is_made_of() {
    let (_hub, inspection) = inspection().await;
    for request in [
        by_alice(asked("fleet", "shop")),
        by_dashboard(asked("fleet", "shop")),
    ] {
        let answer = inspection.explain(request).await.expect("answered").into_inner();
        assert_eq!(
            answer.summary,
            "Cluster fleet/shop is of ClusterClass fleet/edge, and wants v1.34.1."
        );
        assert!(answer.answered_by.is_some());
        let topology = answer.topology.expect("the topology");
        let variables: Vec<_> = topology
            .variables
            .iter()
            .map(|one| (&*one.name, one.published, &*one.value))
            .collect();
        assert_eq!(variables, [("password", false, ""), ("region", true, "\"eu\"")]);
        let patches: Vec<_> = topology.objects[0]
            .patches
            .iter()
            .map(|patch| (&*patch.name, patch.definition, patch.changed))
            .collect();
        assert_eq!(patches, [("z", 1, true), ("a", 0, false)], "in their order");
        assert_eq!(topology.left_out, 0);
    }
    let wrong = inspection.explain(by_alice(asked("fleet", "wrong"))).await;
    let wrong = wrong.expect("answered").into_inner();
    assert!(
        wrong.summary.starts_with("Something is wrong"),
        "{}",
        wrong.summary
    );
    assert_eq!(wrong.topology.expect("the topology").findings.len(), 1);
}

#[tokio::test]
async fn whoever_is_not_told_hears_why() {
    let (hub, inspection) = inspection().await;
    let (code, said) = refused(&inspection, by_east(asked("fleet", "shop"))).await;
    assert_eq!(code, Code::PermissionDenied, "{said}");
    let (code, said) = refused(&hub.inspection, by_alice(asked("fleet", "shop"))).await;
    assert!(
        code == Code::FailedPrecondition && said.contains("--topology shadow"),
        "{said}"
    );
    let (code, said) = refused(&inspection, by_alice(asked("fleet", "other"))).await;
    assert!(code == Code::NotFound && said.contains("fleet/other"), "{said}");
    let (code, said) = refused(&inspection, by_alice(asked("fleet", "unread"))).await;
    assert!(code == Code::Unavailable && said.contains("no answer"), "{said}");
    let (code, _) = refused(&inspection, by_alice(asked("", "shop"))).await;
    assert_eq!(code, Code::InvalidArgument);
}

/// Each reads much of the hub's own cluster.
#[tokio::test]
async fn so_many_are_explained_at_once_and_no_more() {
    let (hub, _) = inspection().await;
    let cluster = Arc::new(OneCluster(Semaphore::new(0)));
    let inspection = hub.inspection.clone().explaining(Some(cluster.clone()));
    let slow = || inspection.explain(by_alice(asked("fleet", "slow")));
    // Polled in this order: the last one finds the places taken, and makes room then.
    let third = async {
        let refused = refused(&inspection, by_alice(asked("fleet", "shop"))).await;
        cluster.0.add_permits(2);
        refused
    };
    let (first, second, (third, said)) = tokio::join!(biased; slow(), slow(), third);
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(third, Code::ResourceExhausted, "{said}");
    let again = inspection.explain(by_alice(asked("fleet", "shop"))).await;
    assert!(again.is_ok(), "there is room again");
}

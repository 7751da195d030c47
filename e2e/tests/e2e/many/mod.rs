//! Numbers that a clusterset has to bear on a real cluster with a real agent: fifty exporters of one service, and ten
//! thousand imported slices. All members but one are played, over mutual TLS and against a real hub.

mod clusters;
mod slices;

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use anyhow::Context;
use cluster::{
    clusterset::LocalClusterset,
    member::{Member, hello},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, Client, api::PostParams};
use libtest_mimic::Trial;
use proto::v1::{self, observation::Observation};
use serde_json::json;
use shared::{
    model::{
        ClusterId, Endpoint, EndpointPort, EndpointSlice, Export, Fact, IpFamily, Metadata, Protocol,
        ServiceKey, ServicePolicies, ServicePort, ServiceType, SessionAffinity, SliceKey, UnixMillis,
        sync::Namespaces,
    },
    wire,
};
use tokio::sync::mpsc;
use tributary_e2e::suite::{real_test, test_with_own_clusters};

/// Creation time of the oldest played export.
const FIRST_CREATED_SECONDS: u64 = 1_700_000_000;
/// Observations of one message.
const MESSAGE_OBSERVATIONS: usize = 256;
/// Default duration of session affinity.
const AFFINITY_SECONDS: i32 = 10_800;

/// Ten thousand slices on a busy machine take longer than what other scenarios do: they had not ended after 180 s.
const TEN_THOUSAND_LIMIT: Duration = Duration::from_secs(400);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        real_test(
            "real::many::fifty_clusters_export_one_service",
            clusters::fifty_clusters_export_one_service,
        ),
        test_with_own_clusters(
            "real::many::ten_thousand_slices_are_imported",
            TEN_THOUSAND_LIMIT,
            slices::ten_thousand_slices_are_imported,
        ),
    ]
}

/// A played member whose session is kept.
struct Played {
    reports: mpsc::Sender<Vec<Observation>>,
}

impl Played {
    /// Joins as `name` with these facts, which are all that it exports.
    async fn join(clusterset: &LocalClusterset, name: &str, facts: Vec<Fact>) -> anyhow::Result<Self> {
        let subject = hub::certs::Subject::Member(ClusterId::new(name)?);
        clusterset.issue(name, &subject)?;
        let mut hello = hello(&format!("fingerprint-of-{name}"));
        hello.interest.namespaces = Namespaces::default();
        let joined = Member::open(clusterset, name, hello).await;
        let mut member = joined.with_context(|| format!("member {name}"))?;
        let facts: Vec<Observation> = facts.iter().map(observed).collect();
        for some in facts.chunks(MESSAGE_OBSERVATIONS) {
            member.observe_next(some.iter().cloned()).await?;
            // So many may be unacknowledged, and no more.
            member.settled().await.with_context(|| format!("member {name}"))?;
        }
        member.complete(v1::ListingGroup::Exports).await?;
        member.settled().await.with_context(|| format!("member {name}"))?;
        let (reports, mut inbox) = mpsc::channel::<Vec<Observation>>(1);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    heard = member.hear() => heard.map(drop)?,
                    told = inbox.recv() => match told {
                        Some(observations) => member.observe_next(observations).await?,
                        None => return anyhow::Ok(()),
                    },
                }
            }
        });
        Ok(Self { reports })
    }

    /// Reports facts that are news.
    async fn report(&self, facts: &[Fact]) -> anyhow::Result<()> {
        let told = self.reports.send(facts.iter().map(observed).collect()).await;
        told.context("the session of a played member has ended")
    }
}

fn observed(fact: &Fact) -> Observation {
    Observation::Fact(wire::encode_fact(fact).bytes)
}

/// An export of the `age`th second.
fn export(service: &ServiceKey, age: u64, affinity: SessionAffinity) -> Fact {
    let export = Export {
        service: service.clone(),
        created_at: UnixMillis((FIRST_CREATED_SECONDS + age) * 1_000),
        uid: format!("uid-{age}-of-{}", service.name).into(),
        generation: 1,
        service_type: ServiceType::ClusterSetIp,
        ports: vec![ServicePort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: 80,
            app_protocol: None,
        }],
        policies: ServicePolicies {
            session_affinity: affinity,
            session_affinity_timeout_seconds: (affinity == SessionAffinity::ClientIp)
                .then_some(AFFINITY_SECONDS),
            internal_traffic_policy: Some("Cluster".into()),
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::new(),
        annotations: Metadata::new(),
    };
    Fact::ExportUpserted(export.into())
}

/// Key of a service's slice.
fn slice_key(service: &ServiceKey, number: u32) -> SliceKey {
    SliceKey {
        service: service.clone(),
        name: format!("{}-{number}", service.name).into(),
    }
}

/// A slice with one endpoint.
fn slice(key: SliceKey, address: Ipv4Addr) -> Fact {
    let slice = EndpointSlice {
        key,
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: vec![Endpoint {
            addresses: vec![IpAddr::V4(address)],
            ready: Some(true),
            serving: Some(true),
            terminating: Some(false),
            hostname: None,
            zone: None,
        }]
        .into(),
    };
    Fact::EndpointSliceUpserted(slice.into())
}

/// Makes a namespace.
async fn create_namespace(client: &Client, name: &str) -> anyhow::Result<()> {
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await?;
    Ok(())
}

//! Owns: the life of ClusterProfiles in the hub's own cluster, on simulated and on real API servers.
//! Never: starts agents; members are sessions that report by hand.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use anyhow::{Context, ensure};
use cluster::{
    clusterset::shop::unique_name,
    deploy,
    member::hello,
    real::Fleet,
    rights::{Account, ask},
};
use hub::{
    clock::Clock,
    hub::{Hub, HubMetrics},
    log::{MemoryDisk, MemoryLog},
    membership::MembershipService,
    profile::{AccessProviders, ProfileMetrics, ProfileWriter, default_manager, default_namespace},
    writer::{AdmitRequest, CursorCheck, CursorVerdict, Options, Request, SessionEvent, SessionSink},
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    runtime::wait::{await_condition, conditions::is_deleted},
};
use libtest_mimic::Trial;
use prometheus_client::registry::Registry;
use proto::v1::{EvictMemberRequest, membership_server::Membership};
use serde_json::json;
use shared::{
    api::{
        cluster_profile::ClusterProfile,
        names::{HUB_MANAGER, LABEL_CLUSTER_MANAGER, LABEL_CLUSTERSET},
    },
    identity::Identity,
    model::{
        ClusterId, ClusterProperty, Clusterset, ControlPlane, Cursor, Epoch, Fact, Health, KeyFingerprint,
        PropertyValue, SessionId, UnixMillis,
        sync::{Observation, ObservedItem},
    },
    tls::PeerIdentity,
    wire,
};
use sim::{SimCluster, SimConfig};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use tributary_e2e::suite::{real_test, sim_test};

/// Time for anything to be seen.
pub(crate) const SEEN_WAIT: Duration = Duration::from_secs(30);

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test("profiles::follow_their_members", || async {
            let cluster = SimCluster::new(SimConfig::default())?;
            let clusterset = Clusterset::new("example.org", &unique_name("inventory"))?;
            follow_their_members(cluster.client(), cluster.client(), clusterset).await
        }),
        real_test("profiles::follow_their_members", |fleet: Arc<Fleet>| async move {
            let cluster = &fleet.clusters()[0];
            let client = cluster.client().await?;
            deploy::install(&client, &deploy::DIRECTORIES).await?;
            ask::until_all(cluster, Account::Hub, None).await?;
            let account = Account::Hub.in_cluster(cluster)?.client().await?;
            // The clusterset of the charts, for the account has its rights in that one's inventory only.
            let clusterset = Clusterset::new("example.org", "default")?;
            let profiles: Api<ClusterProfile> =
                Api::namespaced(client.clone(), &default_namespace(&clusterset));
            let followed = follow_their_members(client, account, clusterset).await;
            let (all, now) = (ListParams::default(), DeleteParams::default());
            profiles.delete_collection(&now, &all).await?;
            followed
        }),
    ]
}

/// `client` is a user's, `account` the hub's.
async fn follow_their_members(client: Client, account: Client, clusterset: Clusterset) -> anyhow::Result<()> {
    let profiled = ProfiledHub::start(client, account, clusterset)?;
    let writing = profiled.write();
    let mut east = profiled.join("east").await?;
    let made = profiled.wait("east", |_| true).await?;
    ensure!(
        made.labels().get(LABEL_CLUSTER_MANAGER).map(String::as_str) == Some(&*profiled.manager()),
        "{made:?}"
    );
    let namespaces: Api<Namespace> = Api::all(profiled.client.clone());
    let label = namespaces
        .get(&profiled.namespace)
        .await?
        .labels()
        .get(LABEL_CLUSTERSET)
        .cloned();
    ensure!(
        label.as_deref() == Some(profiled.clusterset.name()),
        "the namespace's label is {label:?}"
    );

    let property = ClusterProperty {
        name: "location".into(),
        value: PropertyValue::Text("apac".into()),
    };
    let located = Fact::ClusterPropertyUpserted(Arc::new(property));
    east.report(vec![health(ControlPlane::Ready), located]).await?;
    profiled
        .wait("east", |profile| {
            healthy(profile) == "True" && properties(profile) == ["location=apac"]
        })
        .await?;
    east.report(vec![health(ControlPlane::NotReady)]).await?;
    profiled
        .wait("east", |profile| healthy(profile) == "False")
        .await?;
    east.report(vec![Fact::ClusterPropertyRemoved("location".into())])
        .await?;
    let settled = profiled
        .wait("east", |profile| properties(profile).is_empty())
        .await?;

    let stranger = profiled.apply_as("somebody", "west", json!({})).await?;
    let _west = profiled.join("west").await?;
    // A restarted hub finds everything as it should be. What it does for north shows that it has looked.
    writing.end().await?;
    let writing = profiled.write();
    let _north = profiled.join("north").await?;
    profiled
        .wait("north", |profile| !healthy(profile).is_empty())
        .await?;
    ensure!(
        profiled.profiles.get("east").await?.resource_version() == settled.resource_version(),
        "east was written"
    );
    ensure!(
        profiled.profiles.get("west").await?.resource_version() == stranger.resource_version(),
        "west is not ours"
    );

    profiled
        .apply_as("meddler", "east", json!({ LABEL_CLUSTER_MANAGER: "meddler" }))
        .await?;
    let ours = |profile: &ClusterProfile| {
        profile
            .labels()
            .get(LABEL_CLUSTER_MANAGER)
            .is_some_and(|manager| *manager == profiled.manager())
    };
    profiled.wait("east", ours).await?;

    let uid = settled.uid().context("a uid")?;
    for cluster in ["east", "west"] {
        profiled.evict(cluster).await?;
    }
    let gone = await_condition(profiled.profiles.clone(), "east", is_deleted(&uid));
    timeout(SEEN_WAIT, gone).await.context("east's profile stays")??;
    ensure!(
        profiled.profiles.get("west").await?.uid() == stranger.uid(),
        "a stranger's profile was deleted"
    );
    writing.end().await
}

/// A hub over a log in memory whose profiles are written into a cluster.
pub(crate) struct ProfiledHub {
    client: Client,
    account: Client,
    hub: Hub,
    clusterset: Clusterset,
    namespace: String,
    /// As a user sees them.
    pub(crate) profiles: Api<ClusterProfile>,
    /// By which ways members are reached.
    pub(crate) access: AccessProviders,
}

/// A profile writer that runs.
pub(crate) struct Writing {
    drain: CancellationToken,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Writing {
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        self.drain.cancel();
        self.task.await?
    }
}

impl ProfiledHub {
    /// The cluster manager of this hub's profiles.
    fn manager(&self) -> String {
        default_manager(&self.hub.clusterset)
    }

    pub(crate) fn start(client: Client, account: Client, clusterset: Clusterset) -> anyhow::Result<Self> {
        let epoch = Epoch::default().next(UnixMillis(1_000), 7);
        let log = MemoryLog::open(&MemoryDisk::default(), &clusterset, epoch)?;
        let options = Options {
            hub: "hub".into(),
            hub_version: "test".into(),
            adopt_epoch: false,
            bounds: Default::default(),
        };
        let metrics = HubMetrics::register(&mut Registry::default());
        let hub = Hub::start(Box::new(log), options, Clock::start(), metrics)?;
        let namespace = default_namespace(&clusterset);
        let profiles = Api::namespaced(client.clone(), &namespace);
        Ok(Self {
            client,
            account,
            hub,
            clusterset,
            namespace,
            profiles,
            access: AccessProviders::default(),
        })
    }

    pub(crate) fn write(&self) -> Writing {
        let drain = CancellationToken::new();
        let metrics = ProfileMetrics::register(&mut Registry::default());
        let namespace = self.namespace.clone();
        let kept = (namespace, self.access.clone());
        let writer = ProfileWriter::new(self.account.clone(), kept, &self.hub, metrics, drain.clone());
        Writing {
            drain,
            task: tokio::spawn(writer.run()),
        }
    }

    pub(crate) async fn wait(
        &self,
        name: &str,
        wanted: impl Fn(&ClusterProfile) -> bool + Send,
    ) -> anyhow::Result<ClusterProfile> {
        let seen = |profile: Option<&ClusterProfile>| profile.is_some_and(&wanted);
        let waited = timeout(SEEN_WAIT, await_condition(self.profiles.clone(), name, seen)).await;
        match waited {
            Ok(profile) => profile?.context("it is there"),
            Err(_) => anyhow::bail!("{name} is {:#?}", self.profiles.get_opt(name).await?),
        }
    }

    async fn apply_as(
        &self,
        manager: &str,
        name: &str,
        labels: serde_json::Value,
    ) -> anyhow::Result<ClusterProfile> {
        let body = json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1",
            "kind": "ClusterProfile",
            "metadata": { "name": name, "labels": labels },
            "spec": { "clusterManager": { "name": self.manager() } },
        });
        ensure!(manager != HUB_MANAGER, "a stranger has a name of its own");
        let as_manager = PatchParams::apply(manager).force();
        Ok(self
            .profiles
            .patch(name, &as_manager, &Patch::Apply(body))
            .await?)
    }

    pub(crate) async fn join(&self, id: &str) -> anyhow::Result<Member> {
        let cluster = ClusterId::new(id)?;
        let (sender, events) = mpsc::unbounded_channel();
        let heard_at = Arc::new(AtomicU64::new(0));
        let sink = SessionSink {
            cluster: cluster.clone(),
            events: sender,
            heard_at,
        };
        let request = AdmitRequest {
            cluster: cluster.clone(),
            key: KeyFingerprint([id.as_bytes()[0]; 32]),
            hello: hello(&format!("uid-{id}")),
            cursor: CursorVerdict {
                under: Cursor::default(),
                check: CursorCheck::Absent,
            },
            pinged: None,
            presented: Default::default(),
        };
        let admitted = self.hub.writer.permit().await?.admit(request, sink).await?;
        let session = admitted
            .map_err(|why| anyhow::anyhow!("{why:?}"))?
            .welcome
            .session;
        Ok(Member {
            cluster,
            session,
            writer: self.hub.writer.clone(),
            events,
            sequence: 0,
        })
    }

    pub(crate) async fn evict(&self, cluster: &str) -> anyhow::Result<()> {
        let inspection = self.hub.inspection(CancellationToken::new());
        let set = self.clusterset.name();
        let peer = PeerIdentity {
            identity: Identity::parse(&format!("spiffe://example.org/clusterset/{set}/operator/alice"))?,
            key_fingerprint: KeyFingerprint([1; 32]),
            not_after: UnixMillis(u64::MAX),
            issuer: "".into(),
            renewable: false,
            lifetime: Default::default(),
            calls: Default::default(),
            remote: None,
        };
        let evict = EvictMemberRequest {
            cluster: cluster.to_owned(),
            confirm: true,
            ..Default::default()
        };
        let mut request = tonic::Request::new(evict);
        request.extensions_mut().insert(Arc::new(peer));
        MembershipService::new(inspection, self.hub.writer.clone())
            .evict(request)
            .await?;
        Ok(())
    }
}

pub(crate) struct Member {
    cluster: ClusterId,
    session: SessionId,
    writer: hub::writer::WriterHandle,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    sequence: u64,
}

impl Member {
    /// Reports facts and waits until they are durable.
    pub(crate) async fn report(&mut self, facts: Vec<Fact>) -> anyhow::Result<()> {
        let mut observations = Vec::new();
        for fact in &facts {
            self.sequence += 1;
            let item = ObservedItem::Fact(wire::encode_fact(fact));
            observations.push(Observation::new(self.sequence, item));
        }
        let request = Request::Observe {
            session: self.session,
            cluster: self.cluster.clone(),
            observations,
        };
        self.writer.permit().await?.send(request);
        loop {
            match self.events.recv().await.context("the session is open")? {
                SessionEvent::Acknowledged(dealt) if dealt.sequence == self.sequence => return Ok(()),
                SessionEvent::Acknowledged(_) => {}
                other => anyhow::bail!("{other:?}"),
            }
        }
    }
}

pub(crate) fn health(control_plane: ControlPlane) -> Fact {
    let kubernetes_version = "v1.33.1".into();
    Fact::HealthReported(Arc::new(Health {
        kubernetes_version,
        control_plane,
        failed_checks: Vec::new(),
        verdict: None,
        nodes: None,
    }))
}

fn healthy(profile: &ClusterProfile) -> String {
    let conditions = profile.status.iter().flat_map(|status| &status.conditions);
    let mut healthy = conditions.filter(|condition| condition.type_ == "ControlPlaneHealthy");
    healthy
        .next()
        .map(|condition| condition.status.clone())
        .unwrap_or_default()
}

fn properties(profile: &ClusterProfile) -> Vec<String> {
    let properties = profile.status.iter().flat_map(|status| &status.properties);
    properties
        .map(|property| format!("{}={}", property.name, property.value))
        .collect()
}

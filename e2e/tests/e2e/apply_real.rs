//! The agent's driver against a real API server: what only a real one settles, such as IPs that have to survive,
//! values it refuses, and that a restart writes nothing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use agent::apply::{ONLY_IF_ABSENT, Orphan, adopt};
use anyhow::{Context, ensure};
use cluster::{
    clusterset::shop::unique_name,
    deploy,
    real::Fleet,
    rights::{Account, ask},
};
use k8s_openapi::api::{
    core::v1::{Namespace, Service},
    discovery::v1::EndpointSlice,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use libtest_mimic::Trial;
use serde_json::json;
use shared::{
    api::{
        ServiceImport,
        names::{self, AGENT_MANAGER, LABEL_MANAGED_BY, LABEL_SOURCE_CLUSTER},
    },
    model::{
        Revision, ServiceKey,
        derived_name::derived_service_name,
        sync::{DesiredChange, DesiredItem},
    },
};
use tributary_e2e::suite::real_test;

use super::apply::{Agent, all_listed, import, port, wishes};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        real_test(
            "real::apply::ips_survive_and_a_restart_writes_nothing",
            ips_survive_and_a_restart_writes_nothing,
        ),
        real_test(
            "real::apply::a_refused_value_is_left_out_and_named",
            a_refused_value_is_left_out_and_named,
        ),
        real_test(
            "real::apply::what_somebody_changes_is_restored",
            what_somebody_changes_is_restored,
        ),
        real_test(
            "real::apply::objects_from_a_backup_are_adopted",
            objects_from_a_backup_are_adopted,
        ),
        real_test(
            "real::apply::an_apply_that_may_only_create_touches_nothing",
            an_apply_that_may_only_create_touches_nothing,
        ),
    ]
}

const WAIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// A namespace of its own on the first cluster.
struct Place {
    client: Client,
    account: Client,
    key: ServiceKey,
}

impl Place {
    async fn new(fleet: &Fleet) -> anyhow::Result<Self> {
        let cluster = &fleet.clusters()[0];
        let client = cluster.client().await?;
        deploy::install(&client, &["crds", "agent"]).await?;
        ask::until_all(cluster, Account::Agent, None).await?;
        let account = Account::Agent.in_cluster(cluster)?.client().await?;
        let name = unique_name("apply");
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces.create(&PostParams::default(), &namespace).await?;
        let key = ServiceKey::new(&name, "cart")?;
        Ok(Self { client, account, key })
    }

    fn agent(&self) -> Agent {
        Agent::start_on(self.account.clone(), &self.key.namespace)
    }

    fn derived_name(&self) -> String {
        derived_service_name(&self.key.namespace, &self.key.name)
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), &self.key.namespace)
    }

    fn imports(&self) -> Api<ServiceImport> {
        Api::namespaced(self.client.clone(), &self.key.namespace)
    }

    fn slices(&self) -> Api<EndpointSlice> {
        Api::namespaced(self.client.clone(), &self.key.namespace)
    }

    async fn derived(&self) -> anyhow::Result<Option<Service>> {
        Ok(self.services().get_opt(&self.derived_name()).await?)
    }

    async fn import(&self) -> anyhow::Result<Option<ServiceImport>> {
        Ok(self.imports().get_opt(&self.key.name).await?)
    }

    async fn addresses(&self) -> anyhow::Result<Vec<String>> {
        let imported = ListParams::default().labels(LABEL_SOURCE_CLUSTER);
        let slices = self.slices().list(&imported).await?;
        let mut all: Vec<String> = slices
            .iter()
            .flat_map(|slice| slice.endpoints.iter().flat_map(|one| one.addresses.clone()))
            .collect();
        all.sort();
        Ok(all)
    }

    async fn is_settled(&self) -> anyhow::Result<bool> {
        let import = self.import().await?;
        let ready = import.and_then(|import| import.status).is_some_and(|status| {
            status
                .conditions
                .iter()
                .any(|one| one.type_ == "Ready" && one.status == "True")
        });
        Ok(ready && self.addresses().await?.len() == 2)
    }

    async fn is_empty(&self) -> anyhow::Result<bool> {
        Ok(self.import().await?.is_none()
            && self.derived().await?.is_none()
            && self.addresses().await?.is_empty())
    }

    /// The hub's status for the service of this place.
    fn ours(&self, changes: Vec<DesiredChange>) -> Vec<DesiredChange> {
        let moved = |change| match change {
            DesiredChange::Import(mut import) => {
                Arc::make_mut(&mut import).service = self.key.clone();
                DesiredChange::Import(import)
            }
            DesiredChange::Slice(mut slice) => {
                Arc::make_mut(&mut slice).key.service = self.key.clone();
                DesiredChange::Slice(slice)
            }
            other => other,
        };
        changes.into_iter().map(moved).collect()
    }

    /// resourceVersion of every object that agents write.
    async fn versions(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let all = ListParams::default();
        let mut versions = BTreeMap::new();
        for object in self.services().list(&all).await? {
            versions.insert(
                format!("Service {}", object.name_any()),
                object.resource_version().unwrap_or_default(),
            );
        }
        for object in self.imports().list(&all).await? {
            versions.insert(
                format!("ServiceImport {}", object.name_any()),
                object.resource_version().unwrap_or_default(),
            );
        }
        for object in self.slices().list(&all).await? {
            versions.insert(
                format!("EndpointSlice {}", object.name_any()),
                object.resource_version().unwrap_or_default(),
            );
        }
        Ok(versions)
    }

    async fn end(self) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.client);
        namespaces
            .delete(&self.key.namespace, &DeleteParams::default())
            .await?;
        Ok(())
    }
}

/// Waits until the block gives true. A macro, because a borrowing async closure is not `Send`.
macro_rules! until {
    ($what:expr, $holds:block) => {
        tokio::time::timeout(WAIT, async {
            while !$holds {
                tokio::time::sleep(POLL).await;
            }
            anyhow::Ok(())
        })
        .await
        .with_context(|| format!("waited in vain: {}", $what))??
    };
}

fn ips(service: &Service) -> Vec<String> {
    let spec = service.spec.as_ref();
    spec.and_then(|spec| spec.cluster_ips.clone()).unwrap_or_default()
}

async fn ips_survive_and_a_restart_writes_nothing(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let place = Place::new(&fleet).await?;
    let agent = place.agent();
    agent.told(1, &all_listed(), place.ours(wishes()));
    until!("the import", { place.is_settled().await? });
    let first = place.derived().await?.context("a derived Service")?;
    let import_ips = place.import().await?.context("an import")?.spec.ips;
    assert_eq!(ips(&first), import_ips);

    place
        .services()
        .delete(&place.derived_name(), &DeleteParams::default())
        .await?;
    until!("another Service of the same IP", {
        let service = place.derived().await?;
        service.is_some_and(|service| service.uid() != first.uid() && ips(&service) == ips(&first))
    });

    let mut changes = wishes();
    let ports = [port("http", 80), port("grpc", 90)];
    changes[0] = DesiredChange::Import(Arc::new(import(&ports, &["east", "west"])));
    agent.told(2, &all_listed(), place.ours(changes.clone()));
    until!("two ports and the same IP", {
        let service = place.derived().await?.context("a derived Service")?;
        let count = service
            .spec
            .as_ref()
            .and_then(|spec| Some(spec.ports.as_ref()?.len()));
        count == Some(2) && ips(&service) == ips(&first)
    });
    until!("the import", {
        place
            .import()
            .await?
            .is_some_and(|import| import.spec.ports.len() == 2)
    });
    agent.stop().await?;

    let before = place.versions().await?;
    let agent = place.agent();
    agent.told(1, &all_listed(), place.ours(changes));
    let mut probe = import(&[port("http", 80)], &["north"]);
    probe.service = ServiceKey::new(&place.key.namespace, "zz-probe")?;
    agent.handle.feed(|desired| {
        let change = DesiredChange::Import(Arc::new(probe));
        let revision = Revision(100);
        (desired.items(1, [DesiredItem { revision, change }]), ())
    });
    until!("the probe", {
        place.imports().get_opt("zz-probe").await?.is_some()
    });
    let after = place.versions().await?;
    for (object, version) in &before {
        ensure!(after.get(object) == Some(version), "{object} was written");
    }
    agent.stop().await?;
    place.end().await
}

/// The basis of ADR 0024, for each kind that the agent creates: an absent object is created, and an existing one,
/// unmanaged or the agent's own, is left as it is.
async fn an_apply_that_may_only_create_touches_nothing(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let place = Place::new(&fleet).await?;
    let ports = json!([{"name": "http", "port": 80}]);
    let kinds = [
        ("v1", "Service", json!({"spec": {"ports": ports}})),
        (
            names::MULTICLUSTER_API_VERSION,
            "ServiceImport",
            json!({"spec": {"type": "ClusterSetIP", "ports": ports}}),
        ),
        (
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({"addressType": "IPv4", "ports": ports, "endpoints": []}),
        ),
    ];
    for (api_version, kind, content) in kinds {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> =
            Api::namespaced_with(place.client.clone(), &place.key.namespace, &resource);
        let apply = async |manager: &str, note: &str| {
            let mut body = content.clone();
            body["apiVersion"] = json!(api_version);
            body["kind"] = json!(kind);
            body["metadata"] = json!({
                "name": "only", "resourceVersion": ONLY_IF_ABSENT, "annotations": {"note": note},
            });
            let params = PatchParams::apply(manager).force();
            api.patch("only", &params, &Patch::Apply(&body)).await
        };
        let created = apply("first", "one")
            .await
            .with_context(|| format!("{kind}, absent"))?;
        for (manager, note) in [("second", "two"), ("first", "two")] {
            let refused = apply(manager, note).await.err();
            let code = match &refused {
                Some(kube::Error::Api(status)) => status.code,
                _ => 0,
            };
            ensure!(code == 409, "{kind}, of {manager}: {refused:?}");
        }
        let left = api.get("only").await?;
        ensure!(left.metadata == created.metadata, "{kind} was written: {left:?}");
    }
    place.end().await
}

async fn a_refused_value_is_left_out_and_named(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let place = Place::new(&fleet).await?;
    let agent = place.agent();
    let mut wanted = import(&[port("http", 80)], &["east", "west"]);
    wanted.policies.traffic_distribution = Some("PreferMars".into());
    let mut changes = wishes();
    changes[0] = DesiredChange::Import(Arc::new(wanted));
    agent.told(1, &all_listed(), place.ours(changes));
    until!("the import", { place.is_settled().await? });
    let import = place.import().await?.context("an import")?;
    assert_eq!(import.spec.traffic_distribution.as_deref(), Some("PreferMars"));
    let message = &import.status.context("a status")?.conditions[0].message;
    ensure!(message.contains("PreferMars"), "{message}");
    agent.stop().await?;
    place.end().await
}

async fn what_somebody_changes_is_restored(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let place = Place::new(&fleet).await?;
    let agent = place.agent();
    agent.told(1, &all_listed(), place.ours(wishes()));
    until!("the import", { place.is_settled().await? });
    let somebody = PatchParams::apply("somebody").force();
    let port = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": "cart", "labels": {"tier": "stolen"}},
        "spec": {"type": "ClusterSetIP", "ports": [{"port": 1}]}});
    place
        .imports()
        .patch("cart", &somebody, &Patch::Apply(&port))
        .await?;
    let merge = json!({"spec": {"sessionAffinity": "ClientIP"}, "metadata": {"labels": {"someone": "else"}}});
    place
        .services()
        .patch(
            &place.derived_name(),
            &PatchParams::default(),
            &Patch::Merge(&merge),
        )
        .await?;
    until!("import and Service", {
        let import = place.import().await?.context("an import")?;
        let service = place.derived().await?.context("a Service")?;
        let affinity = service
            .spec
            .as_ref()
            .and_then(|spec| spec.session_affinity.as_deref());
        import.spec.ports.first().map(|port| port.port) == Some(80)
            && import.labels().get("tier").is_some_and(|tier| tier == "web")
            && affinity == Some("None")
            && service.labels().contains_key("someone")
    });
    agent.told(2, &all_listed(), Vec::new());
    until!("everything to go", { place.is_empty().await? });
    agent.stop().await?;
    place.end().await
}

/// Takes every object of ours away and makes it again from what was read, as a backup tool does.
async fn restore_from_backup(place: &Place) -> anyhow::Result<usize> {
    let kinds = [
        (names::MULTICLUSTER_API_VERSION, "ServiceImport"),
        ("v1", "Service"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
    ];
    let ours = ListParams::default().labels(&format!("{LABEL_MANAGED_BY}={AGENT_MANAGER}"));
    let mut restored = 0;
    for (api_version, kind) in kinds {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> =
            Api::namespaced_with(place.client.clone(), &place.key.namespace, &resource);
        for object in api.list(&ours).await?.items {
            let name = object.name_any();
            api.delete(&name, &DeleteParams::default()).await?;
            until!("the object goes", { api.get_opt(&name).await?.is_none() });
            let metadata = ObjectMeta {
                name: object.metadata.name,
                labels: object.metadata.labels,
                annotations: object.metadata.annotations,
                ..ObjectMeta::default()
            };
            let backup = DynamicObject { metadata, ..object };
            let by_the_tool = PostParams {
                field_manager: Some("velero-server".to_owned()),
                ..PostParams::default()
            };
            api.create(&by_the_tool, &backup).await?;
            restored += 1;
        }
    }
    Ok(restored)
}

async fn objects_from_a_backup_are_adopted(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let place = Place::new(&fleet).await?;
    let agent = place.agent();
    agent.told(1, &all_listed(), place.ours(wishes()));
    until!("the import", { place.is_settled().await? });
    agent.stop().await?;
    let before = place.derived().await?.context("a derived Service")?;
    let restored = restore_from_backup(&place).await?;
    ensure!(restored == 4, "an import, a Service and two slices: {restored}");
    let back = place.derived().await?.context("a restored Service")?;
    ensure!(ips(&back) == ips(&before), "the backup keeps the IPs");

    let here = |orphan: &Orphan| *orphan.namespace == *place.key.namespace;
    let found = adopt(&shared::api_client::api_server(place.client.clone()), true).await?;
    ensure!(
        found.iter().filter(|orphan| here(orphan)).count() == restored,
        "{found:?}"
    );
    let again = adopt(&shared::api_client::api_server(place.client.clone()), true).await?;
    ensure!(!again.iter().any(here), "taken twice: {again:?}");
    let agent = place.agent();
    agent.told(1, &all_listed(), place.ours(wishes()));
    until!("the import", { place.is_settled().await? });
    let after = place.derived().await?.context("a derived Service")?;
    ensure!(after.uid() == back.uid(), "another Service was made");
    ensure!(ips(&after) == ips(&before), "other IPs");
    // What is the agent's, it also removes.
    agent.told(2, &all_listed(), Vec::new());
    until!("everything to go", { place.is_empty().await? });
    agent.stop().await?;
    place.end().await
}

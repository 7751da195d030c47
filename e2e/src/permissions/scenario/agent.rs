//! Owns: what an agent does with each of its rights.
//! Never: says which right that is; the table does.

use anyhow::{Context, ensure};
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use shared::{
    api::names::{
        AGENT_LEASE, AGENT_MANAGER, LABEL_IDENTITY, MULTICLUSTER_API_VERSION, PROPERTY_CLUSTER_ID,
        PROPERTY_CLUSTERSET, TRIBUTARY_NAMESPACE,
    },
    model::derived_name::{derived_service_name, imported_slice_name},
};

use super::{
    overtaken::Overtaken,
    stage::{MEMBER, Stage, api, slice_name},
};
use cluster::{clusterset::questions, deploy, rights::Account};

const ABOUT: &str = "about.k8s.io/v1alpha1";
/// The definition that is followed.
const IMPORTS: &str = "serviceimports.multicluster.x-k8s.io";

/// A Service exported after the agent listed everything arrives, changes when it changes, and comes back when somebody
/// deletes it.
pub(super) async fn an_export_arrives(stage: &mut Stage) -> anyhow::Result<()> {
    stage.start_agent().await?;
    stage.export("cart", "192.0.2.1", 80).await?;
    stage.arrived().await?;
    stage.export("cart", "192.0.2.2", 81).await?;
    stage.arrived().await?;
    let imports = stage.api(MULTICLUSTER_API_VERSION, "ServiceImport");
    imports.delete("cart", &DeleteParams::default()).await?;
    let derived = derived_service_name(&stage.namespace, "cart");
    stage
        .api("v1", "Service")
        .delete(&derived, &DeleteParams::default())
        .await?;
    let imported = imported_slice_name(&stage.namespace, "cart", MEMBER, &slice_name("cart"));
    stage
        .api("discovery.k8s.io/v1", "EndpointSlice")
        .delete(&imported, &DeleteParams::default())
        .await?;
    stage.arrived().await?;
    // Only a namespace that came later tells that namespaces are followed.
    stage.make_namespace().await?;
    stage.export("till", "192.0.2.3", 80).await?;
    stage.arrived().await
}

/// A Service that is no longer exported goes with all its objects.
pub(super) async fn an_export_goes(stage: &mut Stage) -> anyhow::Result<()> {
    stage.start_agent().await?;
    stage.export("cart", "192.0.2.1", 80).await?;
    stage.arrived().await?;
    stage
        .api(MULTICLUSTER_API_VERSION, "ServiceExport")
        .delete("cart", &DeleteParams::default())
        .await?;
    stage.arrived().await
}

/// Strangers take all three names a moment before the agent writes there: it looks whose they are, leaves them alone
/// and says so.
pub(super) async fn a_taken_name_is_told(stage: &mut Stage) -> anyhow::Result<()> {
    let namespace = stage.namespace.clone();
    let spec = json!({"ports": [{"name": "other", "port": 9}]});
    let names = [
        ("ServiceImport", "imported".to_owned()),
        ("Service", derived_service_name(&namespace, "derived")),
        (
            "EndpointSlice",
            imported_slice_name(&namespace, "sliced", MEMBER, &slice_name("sliced")),
        ),
    ];
    let strangers = names.clone().map(|(kind, name)| {
        let metadata = json!({"name": name, "namespace": namespace});
        match kind {
            "ServiceImport" => json!({"apiVersion": MULTICLUSTER_API_VERSION, "kind": kind,
                "metadata": metadata, "spec": {"type": "Headless", "ports": []}}),
            "Service" => json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}),
            _ => json!({"apiVersion": "discovery.k8s.io/v1", "kind": kind, "metadata": metadata,
                "addressType": "IPv4", "endpoints": [{"addresses": ["198.51.100.2"]}]}),
        }
    });
    let agent = Account::Agent.in_cluster(stage.cluster())?.client().await?;
    let way = Overtaken::serve(agent, stage.client.clone(), strangers.into()).await?;
    let kubeconfig = stage.file("overtaken.kubeconfig");
    std::fs::write(&kubeconfig, way.kubeconfig())?;
    let member = stage.clusterset.clusters.get_mut(MEMBER).context("the member")?;
    member.agent_kubeconfig = kubeconfig;
    stage.start_agent().await?;
    for service in ["imported", "derived", "sliced"] {
        stage.export(service, "192.0.2.1", 80).await?;
    }
    let events = stage.api("events.k8s.io/v1", "Event");
    for (kind, name) in &names {
        stage
            .until(format!("an Event about the {kind} {name}"), async || {
                let all = events.list(&ListParams::default()).await?;
                let about = |event: &Value| {
                    event["reason"] == "NameTaken" && event["regarding"]["name"] == json!(name)
                };
                Ok(all.items.iter().any(|event| about(&event.data)).then_some(()))
            })
            .await?;
    }
    ensure!(
        way.overtook() == names.len(),
        "strangers came first {} times",
        way.overtook()
    );
    Ok(())
}

/// A property that is there when the agent starts, and one that comes later, reach the hub.
pub(super) async fn a_property_is_told(stage: &mut Stage) -> anyhow::Result<()> {
    let names = ["rights.example.org", "later.example.org"];
    let property = |name: &str| {
        json!({"apiVersion": ABOUT, "kind": "ClusterProperty", "metadata": {"name": name},
            "spec": {"value": "told"}})
    };
    let told = async {
        stage.apply("", property(names[0])).await?;
        stage.start_agent().await?;
        stage.apply("", property(names[1])).await?;
        for name in names {
            let clusterset = &stage.clusterset;
            stage
                .until(format!("the hub has the property {name}"), async || {
                    let state = questions::state(clusterset).await?;
                    let mut properties = state.profiles.iter().flat_map(|profile| &profile.properties);
                    Ok(properties.any(|property| property.name == name).then_some(()))
                })
                .await?;
        }
        anyhow::Ok(())
    }
    .await;
    let properties = api(&stage.client, ABOUT, "ClusterProperty", "");
    for name in names {
        // One that was never made is not there to delete.
        let _ = properties.delete(name, &DeleteParams::default()).await;
    }
    told
}

/// A member's cluster says its id and its clusterset, and says them again when somebody changed them. Once its membership has
/// ended it says no clusterset.
pub(super) async fn a_membership_is_said(stage: &mut Stage) -> anyhow::Result<()> {
    let clusterset = stage.clusterset.authority.clusterset().name().to_owned();
    let said = [(PROPERTY_CLUSTER_ID, MEMBER), (PROPERTY_CLUSTERSET, &clusterset)];
    let properties = api(&stage.client, ABOUT, "ClusterProperty", "");
    let is_said = async |stage: &Stage| {
        for (name, value) in said {
            let right = async || {
                let found = properties.get_opt(name).await?;
                Ok(found
                    .is_some_and(|found| found.data["spec"]["value"] == value)
                    .then_some(()))
            };
            stage.until(format!("{name} says {value}"), right).await?;
        }
        anyhow::Ok(())
    };
    stage.start_agent().await?;
    is_said(stage).await?;
    for (name, _) in said {
        let another = json!({"apiVersion": ABOUT, "kind": "ClusterProperty", "metadata": {"name": name},
            "spec": {"value": "another"}});
        stage.apply("", another).await?;
    }
    is_said(stage).await?;
    stage
        .clusterset
        .member_command(&["evict", MEMBER, "--now"])
        .await?;
    let gone = async || {
        let found = properties.get_opt(PROPERTY_CLUSTERSET).await?;
        Ok(found.is_none().then_some(()))
    };
    stage
        .until("a cluster that is no member says no clusterset", gone)
        .await?;
    let id = properties.get_opt(PROPERTY_CLUSTER_ID).await?;
    ensure!(id.is_some(), "its id is its own");
    Ok(())
}

/// Version and health of the control plane reach the hub.
pub(super) async fn a_health_is_told(stage: &mut Stage) -> anyhow::Result<()> {
    stage.start_agent().await?;
    let version = stage.cluster().git_version();
    let clusterset = &stage.clusterset;
    stage
        .until(
            format!("the hub has the health of a control plane {version}"),
            async || {
                let state = questions::state(clusterset).await?;
                let healthy = state.profiles.iter().any(|profile| {
                    let mut conditions = profile.conditions.iter();
                    profile.kubernetes_version == version
                        && conditions.any(|one| one.r#type == "ControlPlaneHealthy" && one.status == "True")
                });
                Ok(healthy.then_some(()))
            },
        )
        .await
}

/// After a change of ServiceImport's definition its fields are read again at once.
pub(super) async fn a_definition_changes(stage: &mut Stage) -> anyhow::Result<()> {
    stage.start_agent().await?;
    stage.export("cart", "192.0.2.1", 80).await?;
    stage.arrived().await?;
    let log = stage.cluster().audit_log();
    let mark = log.settle(&stage.client).await?;
    let objects = deploy::read_directory(&deploy::directory("crds"))?;
    let definition = objects.into_iter().find(|object| deploy::name(object) == IMPORTS);
    let mut definition = definition.context("the definition of ServiceImport")?;
    for version in definition.data["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        version["schema"]["openAPIV3Schema"]["description"] = json!(stage.namespace);
    }
    deploy::apply(&stage.client, &definition).await?;
    let user = Account::Agent.user();
    stage
        .until("the agent asks which fields ServiceImport has", async || {
            let requests = log.since(mark)?;
            let asks = |resource: &str| resource.starts_with("/openapi/v3");
            let asked = requests.iter().any(|one| one.user == user && asks(&one.resource));
            Ok(asked.then_some(()))
        })
        .await
}

/// The Lease is made, taken, given back, and taken again.
pub(super) async fn a_lease_is_given_back(stage: &mut Stage) -> anyhow::Result<()> {
    let leases = api(
        &stage.client,
        "coordination.k8s.io/v1",
        "Lease",
        TRIBUTARY_NAMESPACE,
    );
    let holder = async || {
        let lease = leases.get(AGENT_LEASE).await?;
        anyhow::Ok(
            lease.data["spec"]["holderIdentity"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    for _ in 0..2 {
        stage.start_agent().await?;
        ensure!(
            !holder().await?.is_empty(),
            "the agent runs and nobody holds the Lease"
        );
        stage.clusterset.stop_agent(MEMBER).await?;
        let left = holder().await?;
        ensure!(left.is_empty(), "the agent ended, and {left} holds the Lease");
    }
    Ok(())
}

/// Each agent keeps a Lease of itself while it runs, and deletes it at a clean end. Those of source clusters it looks at
/// from its start.
pub(super) async fn an_identity_is_kept(stage: &mut Stage) -> anyhow::Result<()> {
    let leases = api(
        &stage.client,
        "coordination.k8s.io/v1",
        "Lease",
        TRIBUTARY_NAMESPACE,
    );
    let selector = ListParams::default().labels(&format!("{LABEL_IDENTITY}={AGENT_MANAGER}"));
    let kept = async || anyhow::Ok(leases.list(&selector).await?.items.len());
    let before = kept().await?;
    stage.start_agent().await?;
    let more = async || Ok((kept().await? > before).then_some(()));
    stage.until("the agent keeps a Lease of itself", more).await?;
    stage.clusterset.stop_agent(MEMBER).await?;
    let left = kept().await?;
    ensure!(left == before, "the agent ended, and its Lease stays");
    Ok(())
}

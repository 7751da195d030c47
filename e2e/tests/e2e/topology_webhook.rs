//! Owns: the admission webhook of classes and clusters behind a real API server: what people are told there, with the
//! configuration and the rights of the chart; and what becomes of their changes while the hub is away.
//! Never: runs Cluster API; of its manager there is a Lease at most.

use std::{path::Path, sync::Arc};

use anyhow::{Context, bail, ensure};
use cluster::{
    charts::Charts,
    clusterset::{Backend, LocalClusterset, admin, eventually::eventually},
    deploy,
    rights::{Account, ask},
};
use kube::{
    Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
};
use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Value, json};
use tributary_e2e::suite::{SCENARIO_WAIT, test_with_own_clusters};

use crate::charts::fresh;

pub(crate) fn trials() -> Vec<Trial> {
    vec![test_with_own_clusters(
        "real::topology_webhook::classes_and_clusters_are_held_to_their_rules",
        SCENARIO_WAIT,
        held,
    )]
}

async fn held() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut stage = Stage::set(dir.path()).await?;
    stage.in_force().await?;
    stage.refuses_the_proposals_example().await?;
    stage.judges_classes_and_clusters().await?;
    stage.keeps_what_is_used().await?;
    stage.holds_nobody_up().await?;
    stage.refuses_what_it_cannot_judge().await?;
    stage.counts().await?;
    stage.is_away().await?;
    stage.clusterset.end().await
}

/// A management cluster, and a hub with the account of the chart that its API server asks.
struct Stage {
    clusterset: LocalClusterset,
    client: Client,
    /// The configuration that the chart has, for the port of this hub.
    configuration: DynamicObject,
    /// The role and its binding that the chart adds.
    rights: Vec<DynamicObject>,
}

impl Stage {
    async fn set(dir: &Path) -> anyhow::Result<Self> {
        let fleet = Arc::new(fresh(&["management"]).await?);
        let backend = Backend::Real(fleet.clone());
        let mut clusterset = LocalClusterset::without_hub(dir, &backend, &["east"], "default").await?;
        let client = clusterset.cluster("east")?.client.clone();
        deploy::install(&client, &["hub"]).await?;
        let cluster = &fleet.clusters()[0];
        ask::until_all(cluster, Account::Hub, None).await?;
        deploy::install_objects(&client, &definitions()?).await?;
        let (mut configuration, rights) = of_the_chart()?;
        deploy::install_objects(&client, &rights).await?;
        let key = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
        let (cert_file, key_file) = (dir.join("webhook.crt"), dir.join("webhook.key"));
        std::fs::write(&cert_file, key.cert.pem())?;
        std::fs::write(&key_file, key.signing_key.serialize_pem())?;
        let account = Account::Hub.in_cluster(cluster)?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let flags = [
            "--kubeconfig".to_owned(),
            path(account.kubeconfig_path()),
            "--topology-webhook".to_owned(),
            "127.0.0.1:0".to_owned(),
            "--topology-webhook-cert".to_owned(),
            path(&cert_file),
            "--topology-webhook-key".to_owned(),
            path(&key_file),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        clusterset.start_hub_with(&flags).await?;
        let address = clusterset.hub()?.webhook().await?;
        let asked = &mut configuration.data["webhooks"][0]["clientConfig"];
        *asked = json!({
            "url": format!("https://{address}/validate"),
            "caBundle": base64(key.cert.pem()),
        });
        deploy::install_objects(&client, std::slice::from_ref(&configuration)).await?;
        Ok(Self {
            clusterset,
            client,
            configuration,
            rights,
        })
    }

    /// API servers take a moment to see a configuration, and the authorizer one to see a role.
    async fn in_force(&self) -> anyhow::Result<()> {
        eventually("a class without a template is refused", async || {
            let refused = self
                .tried(&without(class(), "/spec/infrastructure/templateRef/name"))
                .await;
            Ok(refused.err().filter(|told| told.contains("template-reference")))
        })
        .await?;
        eventually("Clusters can be judged", async || {
            self.tried(&cluster()).await.map_err(anyhow::Error::msg)?;
            Ok(Some(()))
        })
        .await
    }

    /// As the proposal writes it, and with one of its mistakes at a time.
    async fn refuses_the_proposals_example(&self) -> anyhow::Result<()> {
        let mistakes = [
            ("selector", "selector-empty"),
            ("quotes", "path-outside-spec"),
            ("variable", "variable-unknown"),
        ];
        let told = refusal(self.tried(&proposal(&["selector", "quotes", "variable"])).await)?;
        for (mistake, rule) in mistakes {
            ensure!(told.contains(rule), "{rule} is not in: {told}");
            let told = refusal(self.tried(&proposal(&[mistake])).await)?;
            ensure!(told.contains(rule), "{rule} is not in: {told}");
            let others = mistakes.iter().filter(|(other, _)| *other != mistake);
            for (_, other) in others {
                ensure!(!told.contains(other), "{other} is in: {told}");
            }
        }
        ensure!(
            told.contains("machineType") && told.contains("denied the request"),
            "{told}"
        );
        self.tried(&proposal(&[])).await.map_err(anyhow::Error::msg)
    }

    async fn judges_classes_and_clusters(&self) -> anyhow::Result<()> {
        self.create(&class()).await?;
        for (at, value, told) in [
            (
                "/spec/topology/workers/machineDeployments/0/class",
                json!("none"),
                "class mixed has no class of machine deployments none",
            ),
            (
                "/spec/topology/version",
                json!("1"),
                "topology-version: must be a version",
            ),
            ("/spec/topology/variables/0/value", json!(7), "variable-value"),
        ] {
            let said = refusal(self.tried(&with(cluster(), at, value)).await)?;
            ensure!(said.contains(told), "{told} is not in: {said}");
        }
        self.create(&cluster()).await?;
        let back = json!({"spec": {"topology": {"version": "v1.29.0"}}});
        let said = refusal(self.patch(&cluster(), &back).await)?;
        ensure!(said.contains("version-change: must not go back"), "{said}");
        let on = json!({"spec": {"topology": {"version": "v1.31.0"}}});
        self.patch(&cluster(), &on).await.map_err(anyhow::Error::msg)
    }

    /// Of a class that a Cluster has.
    async fn keeps_what_is_used(&self) -> anyhow::Result<()> {
        let workers = json!({"spec": {"workers": {"machineDeployments": []}}});
        let said = refusal(self.patch(&class(), &workers).await)?;
        ensure!(
            said.contains("class linux is used by cluster default/shop"),
            "{said}"
        );
        let said = refusal(self.delete(&class()).await)?;
        ensure!(
            said.contains("class-in-use: is used by cluster default/shop"),
            "{said}"
        );
        let variables = json!({"spec": {"variables": []}});
        let said = refusal(self.patch(&class(), &variables).await)?;
        ensure!(
            said.contains("variable region is used by cluster default/shop"),
            "{said}"
        );
        // While Cluster API's manager leads, that is its affair.
        let renewed = |at: jiff::Timestamp| {
            object(json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": "controller-leader-election-capi", "namespace": "default"},
                "spec": {"holderIdentity": "manager", "renewTime": format!("{at:.6}")},
            }))
        };
        let now = jiff::Timestamp::now();
        deploy::apply(&self.client, &renewed(now - jiff::SignedDuration::from_mins(11))).await?;
        ensure!(
            self.patch(&class(), &variables).await.is_err(),
            "the manager is long gone"
        );
        deploy::apply(&self.client, &renewed(now)).await?;
        self.patch(&class(), &variables)
            .await
            .map_err(anyhow::Error::msg)?;
        let said = refusal(self.patch(&class(), &workers).await)?;
        ensure!(said.contains("worker-class-in-use"), "{said}");
        Ok(())
    }

    /// The Cluster keeps a rule no more, for its class defines none of its variables: it can be changed, and goes.
    async fn holds_nobody_up(&self) -> anyhow::Result<()> {
        let finalizer = json!({"metadata": {"finalizers": ["example.org/held"]}});
        self.patch(&cluster(), &finalizer)
            .await
            .map_err(anyhow::Error::msg)?;
        let referring =
            json!({"spec": {"infrastructureRef": {"kind": "Cloud", "name": "a", "apiGroup": "i.example"}}});
        self.patch(&cluster(), &referring)
            .await
            .map_err(anyhow::Error::msg)?;
        self.delete(&cluster()).await.map_err(anyhow::Error::msg)?;
        let said = refusal(self.delete(&class()).await)?;
        ensure!(
            said.contains("class-in-use"),
            "it is being deleted, and is there: {said}"
        );
        let none = json!({"metadata": {"finalizers": null}});
        self.patch(&cluster(), &none).await.map_err(anyhow::Error::msg)?;
        eventually("the class is deleted when its Cluster is gone", async || {
            self.delete(&class()).await.map_err(anyhow::Error::msg)?;
            Ok(Some(()))
        })
        .await
    }

    async fn refuses_what_it_cannot_judge(&self) -> anyhow::Result<()> {
        for right in &self.rights {
            let api = deploy::api(&self.client, right)?;
            api.delete(deploy::name(right), &DeleteParams::default()).await?;
        }
        eventually("a Cluster is refused for want of a right", async || {
            let told = refusal(self.tried(&cluster()).await)?;
            ensure!(
                told.contains("cannot be judged now: ClusterClass default/mixed cannot be read"),
                "{told}"
            );
            ensure!(told.contains("forbidden"), "{told}");
            Ok(Some(()))
        })
        .await
    }

    async fn counts(&mut self) -> anyhow::Result<()> {
        let address = self.clusterset.hub()?.admin().await?;
        for answer in ["allowed", "warned", "refused", "unread"] {
            let labels = format!("answer=\"{answer}\"");
            let name = "tributary_hub_topology_webhook_reviews_total";
            let shown = admin::metric_at(address, name, &labels).await?;
            ensure!(shown >= 1.0, "{answer}: {shown}");
        }
        let name = "tributary_hub_topology_webhook_certificate_expires_in_seconds";
        ensure!(admin::metric_at(address, name, "").await? > 0.0, "it has expired");
        Ok(())
    }

    /// The configuration's answer for a hub that does not answer.
    async fn is_away(&mut self) -> anyhow::Result<()> {
        self.clusterset.stop_hub().await?;
        let bad = without(class(), "/spec/infrastructure/templateRef/name");
        self.tried(&bad).await.map_err(anyhow::Error::msg)?;
        self.configuration.data["webhooks"][0]["failurePolicy"] = json!("Fail");
        deploy::apply(&self.client, &self.configuration).await?;
        eventually("no class is made without the hub", async || {
            let told = refusal(self.tried(&bad).await)?;
            ensure!(told.contains("failed calling webhook"), "{told}");
            Ok(Some(()))
        })
        .await
    }

    /// Asks whether it may be created, and creates nothing.
    async fn tried(&self, value: &Value) -> Result<(), String> {
        let object = object(value.clone());
        let api = deploy::api(&self.client, &object).map_err(|error| format!("{error:#}"))?;
        let parameters = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        said(api.create(&parameters, &object).await)
    }

    async fn create(&self, value: &Value) -> anyhow::Result<()> {
        let object = object(value.clone());
        let api = deploy::api(&self.client, &object)?;
        let created = api.create(&PostParams::default(), &object).await;
        created.with_context(|| format!("create {}", deploy::name(&object)))?;
        Ok(())
    }

    async fn patch(&self, value: &Value, patch: &Value) -> Result<(), String> {
        let object = object(value.clone());
        let api = deploy::api(&self.client, &object).map_err(|error| format!("{error:#}"))?;
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        said(api.patch(deploy::name(&object), &parameters, &patch).await)
    }

    async fn delete(&self, value: &Value) -> Result<(), String> {
        let object = object(value.clone());
        let api = deploy::api(&self.client, &object).map_err(|error| format!("{error:#}"))?;
        said(api.delete(deploy::name(&object), &DeleteParams::default()).await)
    }
}

/// The refusal of an API server.
fn said<T>(answer: Result<T, kube::Error>) -> Result<(), String> {
    match answer {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(error) => Err(error.to_string()),
    }
}

fn refusal(answer: Result<(), String>) -> anyhow::Result<String> {
    match answer {
        Ok(()) => bail!("it is not refused"),
        Err(told) => Ok(told),
    }
}

/// Those of the fixture, served in the older version, too.
fn definitions() -> anyhow::Result<Vec<DynamicObject>> {
    let mut definitions = deploy::read_file(&deploy::fixture("cluster-api/definitions.yaml"))?;
    for definition in &mut definitions {
        let versions = definition.data["spec"]["versions"].as_array_mut();
        let versions = versions.context("versions")?;
        let mut older = versions[0].clone();
        older["name"] = json!("v1beta1");
        older["storage"] = json!(false);
        versions.push(older);
    }
    Ok(definitions)
}

/// The configuration of the chart, and the role with its binding.
fn of_the_chart() -> anyhow::Result<(DynamicObject, Vec<DynamicObject>)> {
    let values = "--set=topologyWebhook.secretName=a,topologyWebhook.annotations.a=b";
    let rendered = Charts::new()?.render("hub", &[values])?;
    let (mut configurations, mut rights) = (Vec::new(), Vec::new());
    for document in serde_norway::Deserializer::from_str(&rendered) {
        let Some(object) = Option::<DynamicObject>::deserialize(document)? else {
            continue;
        };
        if deploy::kind(&object) == "ValidatingWebhookConfiguration" {
            configurations.push(object);
        } else if deploy::name(&object) == "tributary-hub-topology-webhook" {
            rights.push(object);
        }
    }
    ensure!(rights.len() == 2, "a role and its binding, not {}", rights.len());
    let configuration = configurations.pop().context("a configuration")?;
    Ok((configuration, rights))
}

fn base64(text: String) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(text)
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).expect("an object")
}

fn with(mut object: Value, at: &str, value: Value) -> Value {
    *object.pointer_mut(at).expect("a field") = value;
    object
}

fn without(object: Value, at: &str) -> Value {
    with(object, at, json!(""))
}

fn class() -> Value {
    let reference =
        |kind: &str| json!({"templateRef": {"apiVersion": "i.example/v1", "kind": kind, "name": "t"}});
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass",
        "metadata": {"name": "mixed", "namespace": "default"},
        "spec": {
            "infrastructure": reference("CloudTemplate"),
            "controlPlane": {"templateRef": {"apiVersion": "i.example/v1", "kind": "PlaneTemplate", "name": "t"}},
            "workers": {"machineDeployments": [{
                "class": "linux", "bootstrap": reference("BootTemplate"), "infrastructure": reference("HostTemplate"),
            }]},
            "variables": [{"name": "region", "schema": {"openAPIV3Schema": {"type": "string"}}}],
        }
    })
}

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"topology": {
            "classRef": {"name": "mixed"}, "version": "v1.30.1",
            "workers": {"machineDeployments": [{"class": "linux", "name": "big"}]},
            "variables": [{"name": "region", "value": "here"}],
        }}
    })
}

/// The class with variables and patches that the proposal shows, with some of its mistakes. The templates that its "other
/// fields are omitted" leaves out are those that its patches name.
fn proposal(mistakes: &[&str]) -> Value {
    let is = |mistake: &str| mistakes.contains(&mistake);
    let quoted = |path: &str| {
        let mark = |mark: &'static str| if is("quotes") { mark } else { "" };
        format!("{}{path}{}", mark("“"), mark("”"))
    };
    let infrastructure = "infrastructure.cluster.x-k8s.io/v1beta1";
    let reference = |kind: &str| json!({"ref": {"apiVersion": infrastructure, "kind": kind, "name": "t"}});
    let mut selector = json!({"apiVersion": infrastructure, "kind": "AWSClusterTemplate"});
    if !is("selector") {
        selector["matchResources"] = json!({"infrastructureCluster": true});
    }
    let machine_type = if is("variable") {
        "machineType"
    } else {
        "controlPlaneMachineType"
    };
    let plane = "controlplane.cluster.x-k8s.io/v1beta1";
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "ClusterClass",
        "metadata": {"name": "my-cluster-class", "namespace": "default"},
        "spec": {
            "infrastructure": reference("AWSClusterTemplate"),
            "controlPlane": {
                "ref": {"apiVersion": plane, "kind": "KubeadmControlPlaneTemplate", "name": "t"},
                "machineInfrastructure": reference("AWSMachineTemplate"),
            },
            "variables": [
                {"name": "region", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}},
                {"name": "controlPlaneMachineType",
                 "schema": {"openAPIV3Schema": {"type": "string", "default": "t3.large"}}},
            ],
            "patches": [
                {"name": "region", "definitions": [{
                    "selector": selector,
                    "jsonPatches": [{"op": "replace", "path": quoted("/spec/template/spec/region"),
                                     "valueFrom": {"variable": "region"}}],
                }]},
                {"name": "controlPlaneMachineType", "definitions": [{
                    "selector": {"apiVersion": infrastructure, "kind": "AWSMachineTemplate",
                                 "matchResources": {"controlPlane": true}},
                    "jsonPatches": [{"op": "replace", "path": quoted("/spec/template/spec/instanceType"),
                                     "valueFrom": {"variable": machine_type}}],
                }]},
            ],
        }
    })
}

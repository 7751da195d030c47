//! The agent's doctor on real clusters: nothing is wrong with a member that works, and of fourteen faults that are planted
//! in its cluster, in its files and before its hub each is named, with what to do.

use std::sync::Arc;

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{Backend, LocalClusterset, eventually::eventually, questions::listed, shop::Shop},
    deploy,
    real::Fleet,
    rights::{Account, Right, Table, ask, roles},
};
use hub::certs::{CertificateAuthority, Subject, Validity};
use k8s_openapi::{
    api::coordination::v1::Lease,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, PostParams},
};
use serde_json::{Value, json};
use shared::{
    api::names::{AGENT_LEASE, PROPERTY_CLUSTER_ID, TRIBUTARY_NAMESPACE},
    doctor::look,
    model::{ClusterId, Clusterset, UnixMillis},
};
use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpSocket},
};

use super::{
    COREFILE, COREFILE_WITHOUT,
    asked::{Patient, found},
    served,
};

/// The definition of what a cluster says of itself, of which we speak one version.
const PROPERTIES: &str = "clusterproperties.about.k8s.io";
/// Lead of a hub's clock, in milliseconds.
const APART: u64 = 3_600_000;

pub(super) fn object(value: Value) -> anyhow::Result<DynamicObject> {
    Ok(serde_json::from_value(value)?)
}

fn corefile(text: &str) -> anyhow::Result<DynamicObject> {
    object(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "coredns", "namespace": "kube-system"}, "data": {"Corefile": text}}))
}

/// A node whose pods have this address.
fn node(address: &str) -> anyhow::Result<DynamicObject> {
    let range = format!("{address}/32");
    object(
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "planted"},
        "spec": {"podCIDR": range, "podCIDRs": [range]}}),
    )
}

/// An address that refuses connections at once, for which no other could be relied upon: one of this machine's own, at
/// which nothing listens. It is no address of the clusters'.
fn endpoint() -> anyhow::Result<String> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    // Nothing is sent: it says from which address it would be.
    socket.connect("192.0.2.1:9")?;
    Ok(socket.local_addr()?.ip().to_string())
}

fn property(id: &str) -> anyhow::Result<DynamicObject> {
    object(
        json!({"apiVersion": "about.k8s.io/v1beta1", "kind": "ClusterProperty",
        "metadata": {"name": PROPERTY_CLUSTER_ID}, "spec": {"value": id}}),
    )
}

/// Deletes an object if it is there.
pub(super) async fn delete(client: &Client, object: &DynamicObject) -> anyhow::Result<()> {
    let api = deploy::api(client, object)?;
    match api.delete(deploy::name(object), &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop).map_err(Into::into),
    }
}

/// Waits until a doctor finds just these faults: an API server takes a moment to see what is planted.
async fn finds(
    clusterset: &LocalClusterset,
    patient: &Patient,
    wanted: &[(&str, &str)],
) -> anyhow::Result<()> {
    eventually(&format!("the agent's doctor finds {wanted:?}"), async || {
        found(&patient.examined(clusterset).await?, wanted)?;
        Ok(Some(()))
    })
    .await?;
    println!("found {wanted:?}");
    Ok(())
}

/// A member that imports, faults planted one after the other, and everything back as it was.
pub(super) async fn a_member_has_nothing_and_faults_are_named(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let backend = Backend::Real(fleet.clone());
    let mut clusterset = LocalClusterset::start(dir.path(), &backend, &["east", "west"]).await?;
    listed(&clusterset, &["east", "west"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    let endpoint = endpoint()?;
    shop.export(&clusterset, "west", "cart", &[&endpoint]).await?;
    shop.arrived(&clusterset).await?;
    let client = clusterset.cluster("east")?.client.clone();
    let played = async {
        deploy::apply(&client, &corefile(COREFILE)?).await?;
        let well = Patient::of(&clusterset, "east")?;
        finds(&clusterset, &well, &[]).await?;
        ensure!(
            well.exit_code(&clusterset).await? == Some(0),
            "not 0 when all is well"
        );
        in_the_cluster(&fleet, &clusterset, &client, &endpoint).await?;
        before_the_hub(&clusterset, dir.path()).await?;
        in_the_files(&clusterset).await?;
        anyhow::Ok(())
    }
    .await;
    played?;
    shop.close(&clusterset).await?;
    clusterset.stop_agent("east").await?;
    let played = while_no_agent_runs(&clusterset, &client).await;
    let restored = restore(&client).await;
    played.and(restored)?;
    clusterset.end().await
}

/// Restores the state for the next story.
async fn restore(client: &Client) -> anyhow::Result<()> {
    deploy::install(client, &["crds", "agent"]).await?;
    for object in [corefile(COREFILE)?, node("")?, property("")?] {
        delete(client, &object).await?;
    }
    Ok(())
}

fn leases(client: &Client) -> Api<Lease> {
    Api::namespaced(client.clone(), TRIBUTARY_NAMESPACE)
}

/// The agent may not delete slices; CoreDNS does not know the zone; a node's pods have addresses of another cluster; names
/// and endpoints of the clusterset are not answered.
async fn in_the_cluster(
    fleet: &Fleet,
    clusterset: &LocalClusterset,
    client: &Client,
    endpoint: &str,
) -> anyhow::Result<()> {
    let well = Patient::of(clusterset, "east")?;
    let of_the_agent = Patient {
        kubeconfig: clusterset.cluster("east")?.agent_kubeconfig.clone(),
        ..well.clone()
    };
    finds(clusterset, &of_the_agent, &[]).await?;
    let right = right_of(Account::Agent, "delete", "endpointslices")?;
    without(fleet, client, &right).await?;
    let wanted = [("rights", "delete endpointslices.discovery.k8s.io")];
    finds(clusterset, &of_the_agent, &wanted).await?;
    ensure!(
        of_the_agent.exit_code(clusterset).await? == Some(1),
        "a fault, and the program does not end with 1"
    );
    deploy::install(client, &["agent"]).await?;

    deploy::apply(client, &corefile(COREFILE_WITHOUT)?).await?;
    finds(
        clusterset,
        &well,
        &[("coredns-corefile", "zone clusterset.local")],
    )
    .await?;
    deploy::apply(client, &corefile(COREFILE)?).await?;
    deploy::apply(client, &node(endpoint)?).await?;
    finds(clusterset, &well, &[("ranges", endpoint)]).await?;
    delete(client, &node(endpoint)?).await?;
    let within = Patient {
        flags: vec!["--dial-endpoints"],
        ..well
    };
    let wanted = [
        ("coredns-answer", "clusterset.local"),
        ("source-endpoint", endpoint),
    ];
    finds(clusterset, &within, &wanted).await
}

/// One right of an account.
pub(super) fn right_of(account: Account, verb: &str, resource: &str) -> anyhow::Result<Right> {
    let table = Table::read()?;
    let mut rights = table.rights(account).map(|(right, _)| right);
    let right = rights.find(|right| right.verb == verb && right.resource == resource);
    right.with_context(|| format!("no right to {verb} {resource}"))
}

/// Takes a right away, and waits until that is in force.
pub(super) async fn without(fleet: &Fleet, client: &Client, right: &Right) -> anyhow::Result<()> {
    for role in roles::without(right, &roles::of(right.account)?)? {
        deploy::apply(client, &role).await?;
    }
    let account = right.account.in_cluster(&fleet.clusters()[0])?.client().await?;
    ask::until(&account, right, false).await
}

/// A name that is none; a port at which nothing listens; a proxy that speaks HTTP; a hub of another authority; a hub whose
/// clock is apart.
async fn before_the_hub(clusterset: &LocalClusterset, dir: &std::path::Path) -> anyhow::Result<()> {
    let at = |hub: String| -> anyhow::Result<Patient> {
        Ok(Patient {
            hub,
            ..Patient::of(clusterset, "east")?
        })
    };
    let nowhere = at("hub.invalid:8443".to_owned())?;
    finds(clusterset, &nowhere, &[("hub-name", "hub.invalid")]).await?;
    // Bound, so that nobody else takes it.
    let closed = TcpSocket::new_v4()?;
    closed.bind("127.0.0.1:0".parse()?)?;
    let closed_at = at(closed.local_addr()?.to_string())?;
    finds(clusterset, &closed_at, &[("hub-port", "nothing listens")]).await?;

    let proxy = TcpListener::bind("127.0.0.1:0").await?;
    let proxy_at = at(proxy.local_addr()?.to_string())?;
    let answering = tokio::spawn(async move {
        // They stay open until it was looked at: an end would be another fault.
        let mut open = Vec::new();
        while let Ok((mut socket, _)) = proxy.accept().await {
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            open.push(socket);
        }
    });
    let named = finds(clusterset, &proxy_at, &[("hub-tls", "ends TLS")]).await;
    answering.abort();
    named?;

    let others = dir.join("others");
    let mut other = LocalClusterset::without_hub(&others, &Backend::Simulated, &[], "default").await?;
    other.start_hub().await?;
    let other_at = at(other.hub_address.to_string())?;
    finds(clusterset, &other_at, &[("hub-certificate", "")]).await?;
    other.end().await?;

    let hub = served(clusterset, UnixMillis(look::now().0 + APART)).await?;
    let report = at(hub.address.to_string())?.examined(clusterset).await?;
    hub.stop().await?;
    // That hub knows nothing of this member, which may be told beside it.
    let clock = report.faults().find(|check| check.name == "hub-clock");
    let (what, _) = clock.with_context(|| report.text())?.verdict.words();
    ensure!(what.contains("behind the hub's"), "{what}");
    ensure!(report.exit_code() == 1, "{}", report.text());
    println!("found hub-clock");
    Ok(())
}

/// A certificate that has expired; one of another cluster; one of another authority.
async fn in_the_files(clusterset: &LocalClusterset) -> anyhow::Result<()> {
    let east = Subject::Member(ClusterId::new("east")?);
    let now = look::now();
    let over = Validity {
        not_before: UnixMillis(now.0 - 2 * APART),
        not_after: UnixMillis(now.0 - APART),
    };
    clusterset.keep("over", &clusterset.authority.issue(&east, over)?)?;
    let clusterset_name = Clusterset::new("e2e.tributary.test", "default")?;
    let days = Validity::days_from_now(30);
    let others = CertificateAuthority::generate(&clusterset_name, days)?;
    clusterset.keep("foreign", &others.issue(&east, days)?)?;
    for (certificate, flags, wanted) in [
        ("over", &[][..], "certificate-time"),
        ("foreign", &[], "certificate-issuer"),
        ("west", &["--cluster-id", "east"], "certificate-identity"),
    ] {
        let patient = Patient {
            certificate: certificate.to_owned(),
            flags: flags.to_vec(),
            ..Patient::of(clusterset, "east")?
        };
        let report = patient.examined(clusterset).await?;
        // The hub and the cluster may have something to say of it too.
        let first = report.faults().next().context("nothing is wrong with it")?;
        ensure!(first.name == wanted, "{wanted}: {}", report.text());
        ensure!(report.exit_code() == 1, "{}", report.text());
        println!("found {wanted}");
    }
    Ok(())
}

/// The cluster says another id; its Lease was left by somebody; a definition is served in another version only, or is not
/// there.
async fn while_no_agent_runs(clusterset: &LocalClusterset, client: &Client) -> anyhow::Result<()> {
    let well = Patient::of(clusterset, "east")?;
    finds(clusterset, &well, &[]).await?;
    deploy::apply(client, &property("west")?).await?;
    finds(clusterset, &well, &[("cluster-id", "says west")]).await?;
    deploy::apply(client, &property("east")?).await?;

    let mut lease = leases(client).get(AGENT_LEASE).await?;
    let spec = lease.spec.as_mut().context("it has one")?;
    spec.holder_identity = Some("a-laptop".to_owned());
    spec.renew_time = Some(serde_json::from_value(json!("2001-01-01T00:00:00.000000Z"))?);
    leases(client)
        .replace(AGENT_LEASE, &PostParams::default(), &lease)
        .await?;
    finds(clusterset, &well, &[("agent-lease", "held by a-laptop")]).await?;
    leases(client)
        .delete(AGENT_LEASE, &DeleteParams::default())
        .await?;

    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    let mut definition = definitions.get(PROPERTIES).await?;
    for version in &mut definition.spec.versions {
        version.served = version.name == "v1alpha1";
    }
    definitions
        .replace(PROPERTIES, &PostParams::default(), &definition)
        .await?;
    // The older version is spoken too.
    finds(clusterset, &well, &[]).await?;
    remove(&definitions, PROPERTIES).await?;
    let none = [("definitions", "there is no definition of clusterproperties")];
    finds(clusterset, &well, &none).await?;
    deploy::install(client, &["crds"]).await?;
    finds(clusterset, &well, &[]).await
}

/// Deletes a definition, and waits until it is gone: one that is going would take its successor along.
pub(super) async fn remove(definitions: &Api<CustomResourceDefinition>, name: &str) -> anyhow::Result<()> {
    definitions.delete(name, &DeleteParams::default()).await?;
    eventually("the definition is gone", async || {
        Ok(definitions.get_opt(name).await?.is_none().then_some(()))
    })
    .await
}

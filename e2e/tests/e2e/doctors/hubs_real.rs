//! The hub's doctor beside a real cluster: nothing is wrong with a hub that runs there under the chart's account, and each
//! fault that is planted in its cluster, in its files and at its ports is named, with what to do.

use std::{ffi::OsString, fs, net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use cluster::{
    clusterset::{Backend, LocalClusterset, Program, Role, eventually::eventually, signal},
    deploy,
    real::Fleet,
    rights::{Account, ask},
};
use hub::{
    args::{Cli, Command},
    certs::{Subject, Validity},
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Api, Client};
use serde_json::json;
use shared::{
    api::names::LABEL_CLUSTERSET,
    doctor::{Report, look},
    model::UnixMillis,
};

use super::{
    agents_real::{object, remove, right_of, without},
    asked::found,
};

/// The charts' namespace of ClusterProfiles.
const INVENTORY: &str = "tributary-default";
/// The definition of what a hub writes.
const PROFILES: &str = "clusterprofiles.multicluster.x-k8s.io";
/// Time since something was over, in milliseconds.
const OVER: u64 = 3_600_000;

/// A hub's place, as `serve` is told of it.
#[derive(Clone)]
struct Place {
    certificate: String,
    data: PathBuf,
    listen: SocketAddr,
    admin: SocketAddr,
    kubeconfig: PathBuf,
    joining: Option<String>,
}

impl Place {
    fn words(&self, clusterset: &LocalClusterset) -> Vec<OsString> {
        let file = |name: String| clusterset.certificate(&name).into_os_string();
        let certificate = &self.certificate;
        let mut words: Vec<OsString> = vec!["doctor".into()];
        for (flag, value) in [
            ("--data", self.data.clone().into_os_string()),
            ("--tls-ca", file("ca.crt".to_owned())),
            ("--tls-cert", file(format!("{certificate}.crt"))),
            ("--tls-key", file(format!("{certificate}.key"))),
            ("--listen", self.listen.to_string().into()),
            ("--admin", self.admin.to_string().into()),
            ("--kubeconfig", self.kubeconfig.clone().into()),
            // That of the machine that runs the tests says nothing about the product.
            ("--disk-alarm", "0%".into()),
            ("--disk-reserve", "0%".into()),
            ("--state-memory", "1MiB".into()),
        ] {
            words.extend([flag.into(), value]);
        }
        if let Some(name) = &self.joining {
            words.extend(["--join-listen".into(), "127.0.0.1:0".into()]);
            words.extend(["--join-cert".into(), file(format!("{name}.crt"))]);
            words.extend(["--join-key".into(), file(format!("{name}.key"))]);
        }
        words
    }

    async fn examined(&self, clusterset: &LocalClusterset) -> anyhow::Result<Report> {
        let words = [vec!["tributary-hub".into()], self.words(clusterset)].concat();
        let Command::Doctor(args) = Cli::try_parse_from(words)?.command else {
            bail!("another command");
        };
        let set = args.serve.set.0.as_ref().context("one clusterset")?;
        Ok(hub::doctor::examine(&args.serve, set).await)
    }

    async fn exit_code(&self, clusterset: &LocalClusterset) -> anyhow::Result<Option<i32>> {
        let log = clusterset.log("doctor");
        let program = Program::start(Role::Hub, self.words(clusterset), &log)?;
        Ok(program.ended().await?.0.code())
    }
}

/// Waits until a doctor finds just these faults: an API server takes a moment to see what is planted.
async fn finds(clusterset: &LocalClusterset, place: &Place, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
    eventually(&format!("the hub's doctor finds {wanted:?}"), async || {
        found(&place.examined(clusterset).await?, wanted)?;
        Ok(Some(()))
    })
    .await?;
    println!("found {wanted:?}");
    Ok(())
}

/// A hub under the chart's account, faults planted one after the other, and everything back as it was.
pub(super) async fn a_hub_has_nothing_and_faults_are_named(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let backend = Backend::Real(fleet.clone());
    let mut clusterset = LocalClusterset::without_hub(dir.path(), &backend, &["east"], "default").await?;
    let client = clusterset.cluster("east")?.client.clone();
    deploy::install(&client, &["crds", "hub"]).await?;
    let cluster = &fleet.clusters()[0];
    ask::until_all(cluster, Account::Hub, None).await?;
    let account = Account::Hub.in_cluster(cluster)?;
    let kubeconfig = account.kubeconfig_path().to_owned();
    let flags = ["--kubeconfig", &*kubeconfig.to_string_lossy()];
    clusterset.start_hub_with(&flags).await?;
    let admin = clusterset.hub()?.admin().await?;
    let place = Place {
        certificate: "hub".to_owned(),
        data: clusterset.data(),
        listen: clusterset.hub_address,
        admin,
        kubeconfig,
        joining: None,
    };
    finds(&clusterset, &place, &[]).await?;
    ensure!(
        place.exit_code(&clusterset).await? == Some(0),
        "not 0 when all is well"
    );
    let played = in_its_cluster(&fleet, &clusterset, &client, &place).await;
    let restored = deploy::install(&client, &["crds", "hub"]).await;
    played.and(restored)?;
    finds(&clusterset, &place, &[]).await?;

    let process = clusterset.hub()?.id().context("it runs")?;
    signal(process, "STOP").await?;
    let stopped = finds(&clusterset, &place, &[("hub-ready", "does not answer")]).await;
    signal(process, "CONT").await?;
    stopped?;
    finds(&clusterset, &place, &[]).await?;
    clusterset.stop_hub().await?;
    at_its_place(&clusterset, &place).await
}

/// It may not delete profiles; their namespace is another clusterset's, or is not there; their definition is not there.
async fn in_its_cluster(
    fleet: &Fleet,
    clusterset: &LocalClusterset,
    client: &Client,
    place: &Place,
) -> anyhow::Result<()> {
    let right = right_of(Account::Hub, "delete", "clusterprofiles")?;
    without(fleet, client, &right).await?;
    finds(clusterset, place, &[("rights", "delete clusterprofiles")]).await?;
    ensure!(
        place.exit_code(clusterset).await? == Some(1),
        "a fault, and the program does not end with 1"
    );
    deploy::install(client, &["hub"]).await?;
    finds(clusterset, place, &[]).await?;

    let namespace = object(json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": INVENTORY, "labels": {LABEL_CLUSTERSET: "another"}}}))?;
    deploy::apply(client, &namespace).await?;
    finds(clusterset, place, &[("inventory-namespace", "lacks the label")]).await?;
    deploy::install(client, &["hub"]).await?;
    finds(clusterset, place, &[]).await?;

    let definitions = Api::<CustomResourceDefinition>::all(client.clone());
    remove(&definitions, PROFILES).await?;
    let none = [("inventory-definition", "there is no definition")];
    finds(clusterset, place, &none).await
}

/// Nobody has the data directory, and somebody its port; a directory that is none; a certificate and an authority with which
/// clusters join that are over.
async fn at_its_place(clusterset: &LocalClusterset, place: &Place) -> anyhow::Result<()> {
    finds(clusterset, place, &[]).await?;
    let taken = std::net::TcpListener::bind(place.listen)?;
    finds(
        clusterset,
        place,
        &[("port", "by no hub with this data directory")],
    )
    .await?;
    drop(taken);

    let file = clusterset.log("file");
    fs::write(&file, "a file")?;
    let nowhere = Place {
        data: file,
        ..place.clone()
    };
    finds(clusterset, &nowhere, &[("data-directory", "cannot be written")]).await?;

    let subject = Subject::Hub {
        name: "hub".into(),
        dns_names: Vec::new(),
        ips: Vec::new(),
    };
    let now = look::now();
    let over = Validity {
        not_before: UnixMillis(now.0 - 2 * OVER),
        not_after: UnixMillis(now.0 - OVER),
    };
    clusterset.keep("over", &clusterset.authority.issue(&subject, over)?)?;
    let over_place = Place {
        certificate: "over".to_owned(),
        ..place.clone()
    };
    finds(clusterset, &over_place, &[("certificate-time", "")]).await?;
    let joining = clusterset.authority.members_only(over)?;
    fs::write(clusterset.certificate("joining.crt"), &joining.certificate_pem)?;
    fs::write(clusterset.certificate("joining.key"), &joining.key_pem)?;
    let nobody_joins = Place {
        joining: Some("joining".to_owned()),
        ..place.clone()
    };
    finds(
        clusterset,
        &nobody_joins,
        &[("joining-authority", "has expired: nobody joins")],
    )
    .await
}

//! Owns: certificates that cert-manager makes by the charts: their identities are those that hub and agent need.
//! Never: runs cert-manager.

use anyhow::{Context, ensure};
use cluster::{charts::Charts, deploy};
use kube::api::DynamicObject;
use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Value, json};
use shared::identity::{Identity, Role};
use tributary_e2e::suite::sim_test;

const ISSUER: &str = "certManager.issuer=clusterset,certManager.trustDomain=example.org";

pub(crate) fn trials() -> Vec<Trial> {
    vec![sim_test(
        "charts::cert_manager_issues_the_identities_of_hub_and_agent",
        || async { issues() },
    )]
}

fn issues() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let agent = certificate(
        &charts,
        "agent",
        &[
            "--set",
            ISSUER,
            "--set",
            "clusterId=east,hubs={https://hub:8443},certManager.rotationPolicy=Always",
        ],
    )?;
    let identity = identity(&agent)?;
    ensure!(
        matches!(&identity.role, Role::Cluster(id) if id.as_str() == "east"),
        "{identity}"
    );
    ensure!(agent["secretName"] == "tributary-agent-tls", "{agent}");
    ensure!(agent["privateKey"]["rotationPolicy"] == "Always", "{agent}");
    ensure!(
        agent["usages"] == json!(["digital signature", "client auth"]),
        "{agent}"
    );
    let hub = certificate(
        &charts,
        "hub",
        &[
            "--set",
            ISSUER,
            "--set",
            "certManager.kind=Issuer,certManager.dnsNames={hub.example.org},clusterset=labs",
        ],
    )?;
    let identity = self::identity(&hub)?;
    ensure!(
        matches!(&identity.role, Role::Hub(name) if &**name == "hub")
            && identity.clusterset.to_string() == "example.org/labs",
        "{identity}"
    );
    ensure!(
        hub["issuerRef"] == json!({"group": "cert-manager.io", "kind": "Issuer", "name": "clusterset"}),
        "{hub}"
    );
    ensure!(hub["dnsNames"] == json!(["hub.example.org"]), "{hub}");
    refused(&charts)
}

/// Values that contradict each other are refused with the reason.
fn refused(charts: &Charts) -> anyhow::Result<()> {
    let hubs = "hubs={https://hub:8443}";
    let both = "certManager.trustDomain=d,clusterId=east,join.secretName=j";
    for (chart, values, why) in [
        (
            "agent",
            &[hubs, "clusterId=east"][..],
            "certManager.trustDomain is empty",
        ),
        ("agent", &[hubs, both], "both make the Secret"),
        (
            "agent",
            &[hubs, "certManager.trustDomain=d"],
            "clusterId is empty",
        ),
        ("hub", &[], "certManager.trustDomain is empty"),
    ] {
        let mut words = vec!["--set", "certManager.issuer=a"];
        words.extend(values.iter().flat_map(|value| ["--set", value]));
        let said = charts.render(chart, &words).err().context(why)?;
        let said = format!("{said:#}");
        ensure!(said.contains(why), "{values:?}: {said}");
    }
    Ok(())
}

/// The one Certificate of a chart.
fn certificate(charts: &Charts, chart: &str, values: &[&str]) -> anyhow::Result<Value> {
    let rendered = charts.render(chart, values)?;
    let documents = serde_norway::Deserializer::from_str(&rendered).map(DynamicObject::deserialize);
    let objects: Result<Vec<_>, _> = documents.collect();
    let found = objects?
        .into_iter()
        .find(|object| deploy::kind(object) == "Certificate");
    Ok(found.context("no Certificate")?.data["spec"].clone())
}

/// The one identity of a certificate.
fn identity(certificate: &Value) -> anyhow::Result<Identity> {
    let uris = certificate["uris"].as_array().context("no URI")?;
    ensure!(uris.len() == 1, "{uris:?}");
    Ok(Identity::parse(uris[0].as_str().context("no text")?)?)
}

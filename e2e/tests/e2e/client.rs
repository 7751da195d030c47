//! Owns: the client as people use it, against the hub of a simulated clusterset: contexts, status, get, explain, exit codes.
//! Never: calls the hub by other means.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use anyhow::{Context, ensure};
use cluster::clusterset::{Backend, LocalClusterset, Role, child::ROLE_VARIABLE, eventually::eventually};
use libtest_mimic::Trial;
use serde_json::Value;
use tokio::process::Command;
use tributary_e2e::suite::sim_test;

use crate::player::Player;

/// A namespace, a Service with one ready endpoint, and its export.
const SHOP: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: cart, namespace: shop}
"#;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test("sim::client::says_what_is_recorded_and_where_it_arrived", shows),
        sim_test(
            "sim::client::remembers_a_hub_and_ends_with_stable_codes",
            remembers,
        ),
    ]
}

async fn started(dir: &Path) -> anyhow::Result<LocalClusterset> {
    let clusterset = LocalClusterset::start(dir, &Backend::Simulated, &["east", "west"]).await?;
    let simulated = |name| {
        clusterset
            .cluster(name)?
            .sim()
            .context("the clusters are simulated")
    };
    simulated("east")?.apply_yaml(SHOP)?;
    simulated("west")?.apply_yaml("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")?;
    Ok(clusterset)
}

/// Types a command until it says all of these.
async fn says(clusterset: &LocalClusterset, command: &str, words: &[&str]) -> anyhow::Result<()> {
    let player = Player::at(clusterset);
    eventually(command, || async {
        let said = player.play(clusterset, command).await?;
        Ok(words.iter().all(|word| said.contains(word)).then_some(()))
    })
    .await
}

async fn shows() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = started(dir.path()).await?;
    let player = Player::at(&clusterset);
    let explained = [
        "shop/cart: ",
        "Arrival",
        "east     applied",
        "west     applied",
        "1 of 1",
        "export_upserted",
    ];
    says(&clusterset, "tributary explain shop/cart", &explained).await?;
    let said = player
        .play(&clusterset, "tributary explain shop/cart --cluster west")
        .await?;
    ensure!(
        said.contains("west     applied") && !said.contains("east     applied"),
        "{said}"
    );
    says(
        &clusterset,
        "tributary get exports",
        &["shop/cart  east     yes", "http 80/TCP"],
    )
    .await?;
    says(
        &clusterset,
        "tributary get imports --namespace shop",
        &["shop/cart  east "],
    )
    .await?;
    says(
        &clusterset,
        "tributary get imports --namespace nothing",
        &["Nothing is recorded."],
    )
    .await?;
    says(
        &clusterset,
        "tributary get members",
        &["east     live   yes", "west     live   yes"],
    )
    .await?;
    says(&clusterset, "tributary get profiles", &["CONDITIONS", "east"]).await?;
    says(
        &clusterset,
        "tributary get slices shop/cart",
        &["cart-1", "READY"],
    )
    .await?;
    says(
        &clusterset,
        "tributary status",
        &["2 members, 1 export, 1 import", "No problems."],
    )
    .await?;
    let json = player
        .play(&clusterset, "tributary explain shop/cart -o json")
        .await?;
    let json: Value = serde_json::from_str(&json)?;
    ensure!(json["candidates"][0]["cluster"] == "east", "{json}");
    let yaml = player.play(&clusterset, "tributary get members -o yaml").await?;
    ensure!(
        yaml.starts_with("---\n") && yaml.contains("state: SOURCE_LIVE"),
        "{yaml}"
    );

    clusterset.kill_agent("west").await?;
    says(
        &clusterset,
        "tributary status",
        &["west: no session", "next: run the doctor of its agent"],
    )
    .await?;
    let nobody = player
        .play(&clusterset, "tributary explain shop/cart --cluster nobody")
        .await;
    let error = nobody.err().context("nobody is a member")?;
    ensure!(
        format!("{error:#}").contains("nobody is not a member"),
        "{error:#}"
    );
    clusterset.end().await
}

/// The client as a process of its own, with its own file of contexts.
struct Client {
    config: PathBuf,
}

impl Client {
    async fn run(&self, words: &[String]) -> anyhow::Result<Output> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(words)
            .env(ROLE_VARIABLE, Role::Client.as_str())
            .env("TRIBUTARY_CONFIG", &self.config)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        // The child ends when it closes.
        let _stdin = child.stdin.take();
        Ok(child.wait_with_output().await?)
    }

    /// Types a line, and returns standard output, or standard error with an exit code other than 0.
    async fn types(&self, line: &str, code: i32) -> anyhow::Result<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let output = self.run(&words).await?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = said(if code == 0 { &output.stdout } else { &output.stderr });
        ensure!(output.status.code() == Some(code), "{line}: {output:?}");
        Ok(told)
    }
}

async fn remembers() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = started(dir.path()).await?;
    let client = Client {
        config: dir.path().join("contexts/config.yaml"),
    };
    let said = client.types("status", 2).await?;
    ensure!(said.contains("tributary context set NAME"), "{said}");
    client.types("get nothing", 2).await?;
    client.types("get slices", 2).await?;

    let path = |file: &str| clusterset.certificate(file).display().to_string();
    let (hub, ca) = (format!("https://{}", clusterset.hub_address), path("ca.crt"));
    let set = |name: &str, whose: &str| {
        let (cert, key) = (path(&format!("{whose}.crt")), path(&format!("{whose}.key")));
        format!("context set {name} --hub {hub} --tls-ca {ca} --tls-cert {cert} --tls-key {key}")
    };
    let refused = client.types(&set("member", "east"), 1).await?;
    ensure!(refused.contains("needs an operator's or a reader's"), "{refused}");
    ensure!(!client.config.exists(), "a refused context was written");
    let said = client.types(&(set("prod", "operator") + " --embed"), 0).await?;
    ensure!(said.contains("It is the current context."), "{said}");
    let said = client.types("status", 0).await?;
    ensure!(said.contains("2 members"), "{said}");
    client.types("doctor", 0).await?;
    let shown = client.types("context show", 0).await?;
    ensure!(shown.contains("key: (in the file)"), "{shown}");

    let said = client.types("status --context other", 1).await?;
    ensure!(said.contains("there are: prod"), "{said}");
    let dry = client.types("member drain west", 0).await?;
    ensure!(
        dry.contains("tributary member drain west --after 3600s --context prod --confirm"),
        "{dry}"
    );
    let admin = clusterset.hub()?.admin().await?;
    let said = client.types(&format!("status --hub https://{admin}"), 1).await?;
    ensure!(said.contains("does not speak TLS"), "{said}");
    clusterset.kill_agent("west").await?;
    eventually("a problem", || async {
        let checked = client.types("status --check", 1).await;
        Ok(checked.ok().map(drop))
    })
    .await?;
    std::fs::write(&client.config, "current: [\n")?;
    let said = client.types("context list", 1).await?;
    ensure!(
        said.contains("config.yaml holds no contexts") && said.contains("line"),
        "{said}"
    );
    clusterset.end().await
}

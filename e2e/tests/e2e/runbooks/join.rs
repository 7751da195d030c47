//! The runbook of a cluster that joins.

use std::{ffi::OsString, fs};

use anyhow::{Context, ensure};
use cluster::clusterset::{Backend, LocalClusterset, Program, Role, questions};
use hub::certs::Subject;

use super::{Page, Player};

/// A hub is given its authority and its door, an operator has a string made, an agent joins with it.
pub(super) async fn a_cluster_joins(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_hub(dir.path(), &backend, &["east"], "default").await?;
    clusterset.issue("alice", &Subject::Operator("alice".into()))?;
    // The directory of `certs ca` has the key of the authority, too.
    fs::write(clusterset.certificate("ca.key"), clusterset.authority.key_pem())?;
    let mut page = Page::of("guides/enrol.md", "A cluster joins")?;

    let player = Player::at(&clusterset)
        .with("data", clusterset.data().display().to_string())
        .with("0.0.0.0:8444", "127.0.0.1:0");
    let joining = page.take("tributary-hub certs joining --ca certs")?;
    player.play(&clusterset, joining).await?;
    let serve = page.take(
        "tributary-hub serve --data data --tls-ca certs/ca.crt --tls-cert certs/hub.crt --tls-key certs/hub.key \
         --join-listen 0.0.0.0:8444 --join-cert certs/joining.ca.crt --join-key certs/joining.ca.key",
    )?;
    let mut typed = player.typed(serve);
    typed.extend(
        [
            "--listen",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
            "--disk-reserve",
            "0%",
        ]
        .map(str::to_owned),
    );
    let arguments = typed.into_iter().skip(1).map(OsString::from).collect();
    let hub = Program::start(Role::Hub, arguments, &clusterset.log("hub"))?;
    clusterset.adopt_hub(hub).await?;

    let player = Player::at(&clusterset).with("ID", "east");
    let files =
        "--hub https://HOST:8443 --tls-ca certs/ca.crt --tls-cert certs/alice.crt --tls-key certs/alice.key";
    let one = format!("tributary token create --cluster-id ID {files}");
    let said = player.play(&clusterset, page.take(&one)?).await?;
    let string = said.lines().next().context("no string")?.to_owned();
    let many = format!("tributary token create --id-pattern 'prod-*' --uses 50 --expires 24h {files}");
    player.play(&clusterset, page.take(&many)?).await?;

    let file = dir.path().join("join");
    fs::write(&file, &string)?;
    let own = |name: &str| dir.path().join(name).display().to_string();
    let player = player
        .with("FILE", file.display().to_string())
        .with("ca.crt", own("own-ca.crt"))
        .with("agent.crt", own("agent.crt"))
        .with("agent.key", own("agent.key"));
    let run = "tributary-agent run --join-file FILE --cluster-id ID --tls-ca ca.crt --tls-cert agent.crt --tls-key agent.key";
    let mut typed = player.typed(page.take(run)?);
    let kubeconfig = clusterset.cluster("east")?.agent_kubeconfig.display().to_string();
    typed.extend(["--admin", "127.0.0.1:0", "--kubeconfig"].map(str::to_owned));
    typed.push(kubeconfig);
    let arguments = typed.into_iter().skip(1).map(OsString::from).collect();
    let agent = Program::start(Role::Agent, arguments, &clusterset.log("east"))?;
    questions::listed(&clusterset, &["east"]).await?;

    let said = player
        .play(&clusterset, page.take("tributary token list")?)
        .await?;
    ensure!(said.contains("east") && said.contains("prod-*"), "{said}");
    // The token that anybody of prod-* could still use.
    let id = said
        .lines()
        .find(|line| line.contains("prod-*"))
        .and_then(|line| line.split_whitespace().next())
        .context("no token of prod-*")?
        .to_owned();
    let revoke = page.take("tributary token revoke")?;
    let said = player.play_with(&clusterset, revoke, &[&id]).await?;
    player.confirm(&clusterset, &said).await?;
    let said = player.play(&clusterset, "tributary token list").await?;
    let line = said
        .lines()
        .find(|line| line.contains("prod-*"))
        .unwrap_or_default();
    ensure!(line.split_whitespace().any(|word| word == "yes"), "{said}");
    page.all_played(&[])?;
    agent.stop().await?;
    clusterset.end().await
}

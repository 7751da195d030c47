//! An authority that is replaced by the very commands of the runbook, under a member that renews: it stays a member, gets
//! both roots, and is the last to need the old one. A change without the old root is not taken.

use std::{
    ffi::OsString,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{bail, ensure};
use cluster::clusterset::{Backend, LocalClusterset, Program, Role, admin, questions};
use shared::model::ClusterId;

use super::{Page, Player};
use crate::join::{joinable_on, made, start_hub};

/// Renewed about every 30 s; the 15 s that are left then are what a hub has that starts on a busy machine.
const LIFETIME: [&str; 2] = ["--member-cert-lifetime", "45s"];
/// Longest wait for renewals, of which two take a minute, or for the hub to take files up: below the scenario's own time,
/// so that what the agent said is shown.
const WAIT: Duration = Duration::from_secs(100);
/// Interval of looking at a figure.
const LOOK: Duration = Duration::from_millis(200);
/// The runbook.
const HEADING: &str = "Replace the root authority";

/// An agent that joins, with files of its own.
fn agent(clusterset: &LocalClusterset, own: &Path, join: &str) -> anyhow::Result<Program> {
    let mut arguments: Vec<OsString> = [
        "run",
        "--admin",
        "127.0.0.1:0",
        "--cluster-id",
        "east",
        "--join",
        join,
    ]
    .map(OsString::from)
    .to_vec();
    arguments.extend([
        "--kubeconfig".into(),
        clusterset.cluster("east")?.agent_kubeconfig.clone().into(),
    ]);
    for (flag, file) in [
        ("--tls-ca", "ca.crt"),
        ("--tls-cert", "agent.crt"),
        ("--tls-key", "agent.key"),
    ] {
        arguments.extend([flag.into(), own.join(file).into()]);
    }
    Program::start(Role::Agent, arguments, &clusterset.log("own"))
}

fn roots(file: &Path) -> anyhow::Result<usize> {
    Ok(fs::read_to_string(file)?.matches("BEGIN CERTIFICATE").count())
}

async fn renewals(agent: &mut Program) -> anyhow::Result<u64> {
    Ok(admin::metric(agent, "tributary_agent_certificate_renewals_total", "renewed").await? as u64)
}

/// Waits until a member has renewed so many times more.
async fn renewed(agent: &mut Program, times: u64) -> anyhow::Result<()> {
    let (before, began) = (renewals(agent).await?, Instant::now());
    while renewals(agent).await? < before + times {
        ensure!(began.elapsed() < WAIT, "{}", agent.tail());
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Number of times that the hub has loaded files.
pub(super) async fn loaded(clusterset: &mut LocalClusterset) -> anyhow::Result<u64> {
    Ok(admin::metric(clusterset.hub()?, "tributary_hub_tls_reloads_total", "loaded").await? as u64)
}

/// Waits until it has more often than before.
pub(super) async fn taken_up(clusterset: &mut LocalClusterset, before: u64) -> anyhow::Result<()> {
    let began = Instant::now();
    while loaded(clusterset).await? <= before {
        ensure!(began.elapsed() < WAIT, "the hub does not take the files up");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// The new root stands beside the old one until everybody has what it certifies.
pub(super) async fn an_authority_is_replaced(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = joinable_on(dir.path(), &backend, &["east"], &LIFETIME).await?;
    clusterset.issue("alice", &hub::certs::Subject::Operator("alice".into()))?;
    let (join, _) = made(&clusterset, &["--cluster-id", "east"]).await?;
    let own = dir.path().join("own");
    let mut joined = agent(&clusterset, &own, &join)?;
    questions::listed(&clusterset, &["east"]).await?;
    let page = Page::of("guides/certificates.md", HEADING)?;
    let [ca, beside, joining, list, hub, operator, away] = page.commands() else {
        bail!("other commands: {:?}", page.commands());
    };
    let next = format!(
        "{}-2",
        clusterset
            .certificate("")
            .display()
            .to_string()
            .trim_end_matches('/')
    );
    let player = Player::at(&clusterset).with("certs-2", next);
    fs::write(clusterset.certificate("ca.key"), clusterset.authority.key_pem())?;
    player.play(&clusterset, ca).await?;

    // Without the old root it is refused, and nothing is changed.
    let old = fs::read(clusterset.certificate("ca.crt"))?;
    player.play(&clusterset, away).await?;
    questions::said(
        &clusterset.log("hub"),
        "it lacks the authority of this hub's own certificate",
    )
    .await?;
    fs::write(clusterset.certificate("ca.crt"), old)?;
    questions::listed(&clusterset, &["east"]).await?;

    player.play(&clusterset, beside).await?;
    player.play(&clusterset, joining).await?;
    // "Restart the hub."
    let door = clusterset.hub()?.joining().await?;
    clusterset.stop_hub().await?;
    start_hub(&mut clusterset, door, &LIFETIME).await?;
    renewed(&mut joined, 2).await?;
    let said = player.play(&clusterset, list).await?;
    ensure!(said.contains("1 member at revision"), "{said}");
    ensure!(!said.contains("with certificates of"), "{said}");
    ensure!(
        roots(&own.join("ca.crt"))? == 2,
        "the member was not given both roots"
    );

    let before = loaded(&mut clusterset).await?;
    player.play(&clusterset, hub).await?;
    player.play(&clusterset, operator).await?;
    taken_up(&mut clusterset, before).await?;
    let before = loaded(&mut clusterset).await?;
    player.play(&clusterset, away).await?;
    taken_up(&mut clusterset, before).await?;
    renewed(&mut joined, 1).await?;
    ensure!(roots(&own.join("ca.crt"))? == 1, "the old root is still trusted");
    let said = player.play(&clusterset, list).await?;
    ensure!(said.contains("east") && said.contains("1 member"), "{said}");
    let east = ClusterId::new("east")?;
    let kinds = questions::kinds(&clusterset, east.as_str());
    // The inspection of this harness has a certificate of the old root.
    ensure!(kinds.await.is_err(), "a certificate of the old root is heard");
    joined.stop().await?;
    clusterset.end().await
}

//! Owns: logs that earlier versions wrote, kept in `fixtures/logs`: the hub of today starts over them, says of them what
//! the hub that wrote them said, and goes on.
//! Never: writes such a log: each was left by a hub of its commit that was killed.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, ensure};
use tributary_e2e::{
    clusterset::{
        Backend, LocalClusterset,
        questions::{events, listed, state},
        shop::Shop,
    },
    deploy,
};

use super::account::account;

/// The logs, by the commit whose hub wrote them. Their clusterset is the one of every test.
const WRITTEN_BY: [&str; 2] = ["c1d0795", "1997f02"];
/// A cluster that none of them knows.
const NEWCOMER: &str = "newcomer";

pub(super) async fn a_log_of_an_earlier_version_goes_on() -> anyhow::Result<()> {
    for commit in WRITTEN_BY {
        goes_on(&deploy::fixture(&format!("logs/{commit}")))
            .await
            .with_context(|| format!("the log of {commit}"))?;
    }
    Ok(())
}

async fn goes_on(fixture: &Path) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    unpack(&fixture.join("data.tar.gz"), &dir.path().join("data"))?;
    let told = fs::read_to_string(fixture.join("account.txt"))?;
    let told: Vec<&str> = told.lines().collect();
    let written = told.iter().filter(|line| line.starts_with("event ")).count();

    let mut clusterset =
        LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &[NEWCOMER]).await?;
    let (all, now) = (events(&clusterset).await?, state(&clusterset).await?);
    ensure!(all.len() >= written, "{} of {written} events are left", all.len());
    let tells = account(&all[..written], &now);
    ensure!(tells == told, "it tells another story:\n{}", tells.join("\n"));

    clusterset.start_agent(NEWCOMER).await?;
    listed(&clusterset, &[NEWCOMER]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, NEWCOMER, "cart", &["10.9.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    clusterset.kill_hub().await?;
    clusterset.start_hub().await?;
    let after = events(&clusterset).await?;
    let recorded = after[written..]
        .iter()
        .any(|event| event.cluster == NEWCOMER && event.kind == "export_upserted");
    ensure!(recorded, "what was recorded after the old events is not there");
    let tells = account(&after[..written], &Default::default());
    ensure!(tells == told[..written], "the old events have changed");
    clusterset.end().await?;

    let report = hub::log::verify(&dir.path().join("data"), &mut |_| {})?;
    ensure!(report.is_good(), "the chain does not hold: {report:?}");
    println!(
        "{written} old events and {} new ones, all verified",
        after.len() - written
    );
    Ok(())
}

fn unpack(archive: &Path, into: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(into)?;
    let mut tar = Command::new("tar");
    tar.arg("--extract")
        .arg("--file")
        .arg(archive)
        .arg("--directory")
        .arg(into);
    let done = tar.status().context("tar is needed to unpack a log")?;
    ensure!(done.success(), "{}: {done}", archive.display());
    Ok(())
}

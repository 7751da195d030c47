//! An authority that is replaced by the very commands of the runbook, under a member that renews: it stays a member, gets
//! both roots, and is the last to need the old one. A change without the old root is not taken.

use std::{
    ffi::OsString,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use hub::args::{Cli, Command};
use libtest_mimic::Trial;
use shared::{model::ClusterId, testing::advice::words};
use tributary_e2e::{
    clusterset::{LocalClusterset, Program, Role, admin, questions},
    suite::sim_test,
};

use crate::join::{joinable, made, start_hub};

/// Renewed about every 30 s; the 15 s that are left then are what a hub has that starts on a busy machine.
const LIFETIME: [&str; 2] = ["--member-cert-lifetime", "45s"];
/// Longest wait for a renewal, or for the hub to take files up.
const WAIT: Duration = Duration::from_secs(180);
/// How often a figure is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// The runbook's heading, and the one behind it.
const HEADINGS: (&str, &str) = ("### The authority is replaced\n", "\n### ");

pub(crate) fn trials() -> Vec<Trial> {
    vec![sim_test(
        "sim::renewal::an_authority_is_replaced_by_the_commands_of_the_runbook",
        an_authority_is_replaced_by_the_commands_of_the_runbook,
    )]
}

/// The commands of the runbook, in order.
fn commands() -> anyhow::Result<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/operations.md");
    let text = fs::read_to_string(page)?;
    let (_, section) = text.split_once(HEADINGS.0).context("the runbook is gone")?;
    let section = section.split(HEADINGS.1).next().unwrap_or_default();
    let blocks = section.split("```sh\n").skip(1);
    let commands = blocks.map(|block| block.split("```").next().unwrap_or_default().trim().to_owned());
    Ok(commands.collect())
}

/// With the directories and names of this clusterset.
fn here(clusterset: &LocalClusterset, command: &str) -> String {
    let directory = clusterset.certificate("");
    let directory = directory.display().to_string();
    let directory = directory.trim_end_matches('/');
    let next = format!("{directory}-2");
    let ours = command.starts_with("tributary-hub ");
    let words = command
        .split(' ')
        .enumerate()
        .map(|(place, word)| match word.split_once('/') {
            // The command and its sub-command.
            _ if ours && place < 2 => word.to_owned(),
            _ if word == "certs" => directory.to_owned(),
            _ if word == "certs-2" => next.clone(),
            Some(("certs", file)) => format!("{directory}/{file}"),
            Some(("certs-2", file)) => format!("{next}/{file}"),
            _ if word == "example.org" => "e2e.tributary.test".to_owned(),
            _ if word == "https://HOST:8443" => format!("https://{}", clusterset.hub_address),
            _ => word.to_owned(),
        });
    words.collect::<Vec<_>>().join(" ")
}

/// Runs one command to its end; what it printed.
async fn play(clusterset: &LocalClusterset, command: &str) -> anyhow::Result<String> {
    let command = here(clusterset, command);
    println!("$ {command}");
    if !command.starts_with("tributary-hub ") {
        let run = tokio::process::Command::new("sh").args(["-c", &command]).output();
        let output = run.await?;
        ensure!(output.status.success(), "{command}: {output:?}");
        return Ok(String::new());
    }
    let parsed = Cli::try_parse_from(words(&command))?.command;
    tokio::task::spawn_blocking(|| match parsed {
        Command::Certs(args) => hub::certs::command::run(args),
        Command::Member(args) => hub::operate::run_member(args),
        _ => bail!("another command"),
    })
    .await?
}

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

/// How often the hub has taken files up.
async fn loaded(clusterset: &mut LocalClusterset) -> anyhow::Result<u64> {
    Ok(admin::metric(clusterset.hub()?, "tributary_hub_tls_reloads_total", "loaded").await? as u64)
}

/// Waits until it has more often than before.
async fn taken_up(clusterset: &mut LocalClusterset, before: u64) -> anyhow::Result<()> {
    let began = Instant::now();
    while loaded(clusterset).await? <= before {
        ensure!(began.elapsed() < WAIT, "the hub does not take the files up");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

async fn an_authority_is_replaced_by_the_commands_of_the_runbook() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = joinable(dir.path(), &["east"], &LIFETIME).await?;
    clusterset.issue("alice", &hub::certs::Subject::Operator("alice".into()))?;
    let (join, _) = made(&clusterset, &["--cluster-id", "east"]).await?;
    let own = dir.path().join("own");
    let mut joined = agent(&clusterset, &own, &join)?;
    questions::listed(&clusterset, &["east"]).await?;
    let commands = commands()?;
    let [ca, beside, joining, list, hub, operator, away] = &commands[..] else {
        bail!("other commands: {commands:?}");
    };
    play(&clusterset, ca).await?;

    // Without the old root it is refused, and nothing is changed.
    let old = fs::read(clusterset.certificate("ca.crt"))?;
    play(&clusterset, away).await?;
    questions::said(
        &clusterset.log("hub"),
        "it lacks the authority of this hub's own certificate",
    )
    .await?;
    fs::write(clusterset.certificate("ca.crt"), old)?;
    questions::listed(&clusterset, &["east"]).await?;

    play(&clusterset, beside).await?;
    play(&clusterset, joining).await?;
    // "Restart the hub."
    let door = clusterset.hub()?.joining().await?;
    clusterset.stop_hub().await?;
    start_hub(&mut clusterset, door, &LIFETIME).await?;
    renewed(&mut joined, 2).await?;
    let said = play(&clusterset, list).await?;
    ensure!(said.contains("1 member at revision"), "{said}");
    ensure!(!said.contains("with certificates of"), "{said}");
    ensure!(
        roots(&own.join("ca.crt"))? == 2,
        "the member was not given both roots"
    );

    let before = loaded(&mut clusterset).await?;
    play(&clusterset, hub).await?;
    play(&clusterset, operator).await?;
    taken_up(&mut clusterset, before).await?;
    let before = loaded(&mut clusterset).await?;
    play(&clusterset, away).await?;
    taken_up(&mut clusterset, before).await?;
    renewed(&mut joined, 1).await?;
    ensure!(roots(&own.join("ca.crt"))? == 1, "the old root is still trusted");
    let said = play(&clusterset, list).await?;
    ensure!(said.contains("east") && said.contains("1 member"), "{said}");
    let east = ClusterId::new("east")?;
    let kinds = questions::kinds(&clusterset, east.as_str());
    // The inspection of this harness has a certificate of the old root.
    ensure!(kinds.await.is_err(), "a certificate of the old root is heard");
    joined.stop().await?;
    clusterset.end().await
}

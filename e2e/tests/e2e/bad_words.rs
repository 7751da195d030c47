//! Mistakes of people when members come and leave, typed as they type it, on simulated clusters and on real ones: each
//! gets one line with the next step, and nothing has changed, in the log, in the policy or in a cluster. The change of
//! authority without the old root is in the runbook of that change (`runbooks::authority`).

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{AgentVariant, Backend, LocalClusterset, eventually::eventually, questions},
    real::Fleet,
};
use kube::Api;
use libtest_mimic::Trial;
use shared::{
    api::{
        ClusterProperty,
        names::{PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET},
    },
    model::{JoinString, KeyFingerprint, TokenSecret},
};
use tributary_e2e::suite::{real_test, sim_test};

use crate::{
    join::{joinable_on, made},
    player::Player,
};

/// clap's text below the line with the fault.
const HELP: &str = "\n\nFor more information, try '--help'.\n";
/// A policy that withdraws before a loss can be noticed.
const TOO_SOON: &str = "apiVersion: tributary.dev/v1alpha1\nkind: ClustersetPolicy\nspec:\n  loss: {action: withdraw, after: 9s}\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test("sim::bad_words::change_nothing_and_are_told_in_a_line", || {
            change_nothing(Backend::Simulated)
        }),
        real_test(
            "real::bad_words::change_nothing_and_are_told_in_a_line",
            |fleet: Arc<Fleet>| change_nothing(Backend::Real(fleet)),
        ),
    ]
}

/// All that was ever decided, and the policy in force. What members report of themselves comes when they look.
async fn decided(clusterset: &LocalClusterset, player: &Player) -> anyhow::Result<(Vec<String>, String)> {
    let decisions = ["member_", "join_token_", "policy_"];
    let events = questions::events(clusterset).await?;
    let mut kinds: Vec<String> = events.into_iter().map(|event| event.kind).collect();
    kinds.retain(|kind| decisions.iter().any(|prefix| kind.starts_with(prefix)));
    let policy = player.play(clusterset, "tributary policy get").await?;
    // What it says of itself has the revision in it at which it was asked.
    let policy = policy.lines().filter(|line| !line.starts_with('#'));
    Ok((kinds, policy.collect::<Vec<_>>().join("\n")))
}

/// The line in which a command of the hub's said why it did nothing.
async fn refused(clusterset: &LocalClusterset, player: &Player, command: &str) -> anyhow::Result<String> {
    let ended = player.play(clusterset, command).await;
    let error = ended.err().with_context(|| format!("{command} was done"))?;
    let said = error.root_cause().to_string();
    let line = said.strip_suffix(HELP).unwrap_or(&said).trim_end().to_owned();
    ensure!(!line.contains('\n'), "{command}: more than a line: {said}");
    println!("{command}\n  {line}");
    Ok(line)
}

/// Unknown ids, a policy that no loss can precede, patterns that match nothing or everybody.
async fn wrong_words(clusterset: &LocalClusterset, player: &Player, dir: &Path) -> anyhow::Result<()> {
    let policy = dir.join("too-soon.yaml");
    fs::write(&policy, TOO_SOON)?;
    let policy = format!("tributary policy apply {} --confirm", policy.display());
    for (command, why, instead) in [
        (
            "tributary member drain south --confirm",
            "south is not a member",
            "",
        ),
        (
            "tributary member evict south --confirm",
            "south is not a member",
            "",
        ),
        ("tributary member stay south", "south is not a member", ""),
        (&*policy, "9s\" is less than 10 s", ""),
        (
            "tributary token create --id-pattern 'prod.*'",
            "matches no cluster id",
            "write it as 'prod-*'",
        ),
        (
            "tributary token create --id-pattern '*'",
            "matches every cluster id",
            "as 'prod-*'",
        ),
    ] {
        let line = refused(clusterset, player, command).await?;
        ensure!(line.contains(why) && line.contains(instead), "{command}: {line}");
    }
    Ok(())
}

/// A string that was cut, one of another hub by its key, one whose token another hub made: the agent ends, and its cluster
/// has nothing of ours.
async fn wrong_strings(clusterset: &LocalClusterset, text: &str, join: &JoinString) -> anyhow::Result<()> {
    let other_hub = JoinString {
        pin: KeyFingerprint([1; 32]),
        ..join.clone()
    };
    let other_token = JoinString {
        token: TokenSecret::new([1; 32]),
        ..join.clone()
    };
    let client = clusterset.cluster("south")?.client.clone();
    let properties = Api::<ClusterProperty>::all(client);
    for (string, why) in [
        (text[..text.len() - 9].to_owned(), "the join string was cut"),
        (
            other_hub.encode().context("it fits")?,
            "is not the hub that this join string is of",
        ),
        (other_token.encode().context("it fits")?, "knows no such token"),
    ] {
        let variant = AgentVariant {
            certificate: "nobody",
            cluster: "south",
            log: "nobody",
            flags: &["--join", &string, "--cluster-id", "south"],
        };
        let (status, tail) = clusterset.spawn_agent(&variant)?.ended().await?;
        let last = tail.lines().last().unwrap_or_default();
        ensure!(!status.success() && last.contains(why), "{status}: {tail}");
        println!("run --join …\n  {last}");
        let certificate = clusterset.certificate("nobody.crt");
        ensure!(!certificate.exists(), "{why}, and there is a certificate");
        for name in [PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET] {
            let said = properties.get_opt(name).await?;
            ensure!(said.is_none(), "{why}, and the cluster says {name}");
        }
    }
    Ok(())
}

async fn change_nothing(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = joinable_on(dir.path(), &backend, &["east", "west", "south"], &[]).await?;
    for name in ["east", "west"] {
        clusterset.start_agent(name).await?;
    }
    questions::listed(&clusterset, &["east", "west"]).await?;
    let player = Player::at(&clusterset);
    let (text, join) = made(&clusterset, &["--cluster-id", "south"]).await?;
    let before = decided(&clusterset, &player).await?;
    wrong_words(&clusterset, &player, dir.path()).await?;
    wrong_strings(&clusterset, &text, &join).await?;
    let after = decided(&clusterset, &player).await?;
    ensure!(after == before, "{after:?} instead of {before:?}");

    // Undone too late.
    player
        .play(&clusterset, "tributary member drain west --after 1s --confirm")
        .await?;
    eventually("west has left", async || {
        let kinds = questions::kinds(&clusterset, "west").await?;
        Ok(kinds.iter().any(|kind| kind == "member_left").then_some(()))
    })
    .await?;
    let before = decided(&clusterset, &player).await?;
    let line = refused(&clusterset, &player, "tributary member stay west").await?;
    ensure!(line.contains("too late for west to stay"), "{line}");
    let after = decided(&clusterset, &player).await?;
    ensure!(after == before, "{after:?} instead of {before:?}");
    questions::listed(&clusterset, &["east"]).await?;
    // Its agent is told that its membership ended, and goes on asking.
    drop(clusterset.take_running_agent("west")?);
    clusterset.end().await
}

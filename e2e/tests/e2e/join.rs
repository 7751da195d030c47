//! One string to join: from the operator's command to a member that is ready, every refusal, an answer that got lost, and
//! fifty clusters from one template.

use std::{ffi::OsString, fs, net::SocketAddr, sync::Arc, time::Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use cli::command::{Cli, Command};
use cluster::clusterset::{AgentVariant, Backend, LocalClusterset, admin, eventually::eventually, questions};
use hub::certs::{MembersOnlyPem, Validity};
use libtest_mimic::Trial;
use proto::v1::{self, joining_client::JoiningClient};
use shared::{
    identity::{CertificateFacts, Role},
    model::{Clusterset, JoinString, KeyFingerprint},
    tls::{Credentials, JoinConnector, Pem, TcpDial, explain, new_key, signing_request},
};
use tonic::{Code, Status};
use tributary_e2e::suite::sim_test;

/// Clusters of the template.
const FLEET: u32 = 50;
/// Seconds from the start of an agent until it is ready.
const READY_WITHIN: u64 = 30;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test(
            "sim::join::a_string_makes_a_cluster_ready",
            a_string_makes_a_cluster_ready,
        ),
        sim_test(
            "sim::join::every_refusal_says_what_to_do",
            every_refusal_says_what_to_do,
        ),
        sim_test(
            "sim::join::a_lost_answer_is_given_again",
            a_lost_answer_is_given_again,
        ),
        sim_test(
            "sim::join::a_fleet_joins_from_one_template",
            a_fleet_joins_from_one_template,
        ),
    ]
}

/// A clusterset whose hub lets clusters join.
pub(crate) async fn joinable(
    dir: &std::path::Path,
    clusters: &[&str],
    flags: &[&str],
) -> anyhow::Result<LocalClusterset> {
    joinable_on(dir, &Backend::Simulated, clusters, flags).await
}

/// The same with clusters of this kind.
pub(crate) async fn joinable_on(
    dir: &std::path::Path,
    backend: &Backend,
    clusters: &[&str],
    flags: &[&str],
) -> anyhow::Result<LocalClusterset> {
    let mut clusterset = LocalClusterset::without_agents(dir, backend, clusters).await?;
    let joining = clusterset.authority.members_only(Validity::days_from_now(30))?;
    write_joining(&clusterset, &joining)?;
    clusterset.stop_hub().await?;
    start_hub(&mut clusterset, "127.0.0.1:0".parse()?, flags).await?;
    Ok(clusterset)
}

fn write_joining(clusterset: &LocalClusterset, joining: &MembersOnlyPem) -> anyhow::Result<()> {
    fs::write(clusterset.certificate("joining.ca.crt"), &joining.certificate_pem)?;
    fs::write(clusterset.certificate("joining.ca.key"), &joining.key_pem)?;
    Ok(())
}

/// The hub with its door at this address and further flags.
pub(crate) async fn start_hub(
    clusterset: &mut LocalClusterset,
    door: SocketAddr,
    further: &[&str],
) -> anyhow::Result<()> {
    let path = |file: &str| clusterset.certificate(file).display().to_string();
    let (cert, key, door) = (path("joining.ca.crt"), path("joining.ca.key"), door.to_string());
    let flags = ["--join-listen", &door, "--join-cert", &cert, "--join-key", &key];
    clusterset.start_hub_with(&[&flags[..], further].concat()).await
}

/// Runs `tributary token WORDS` with the operator's certificate; what it printed.
async fn token(clusterset: &LocalClusterset, words: &[&str]) -> anyhow::Result<String> {
    let words = ["tributary", "token"].iter().chain(words).map(OsString::from);
    let access = clusterset.access_to_the_hub(&clusterset.hub_address.to_string(), "operator");
    let line = words.chain(access);
    let Command::Token(args) = Cli::try_parse_from(line)?.command else {
        anyhow::bail!("another command");
    };
    // As in its own process: it makes a runtime for itself.
    tokio::task::spawn_blocking(|| cli::operate::run_token(args)).await?
}

/// The join string that a new token gives.
pub(crate) async fn made(
    clusterset: &LocalClusterset,
    words: &[&str],
) -> anyhow::Result<(String, JoinString)> {
    let said = token(clusterset, &[&["create"], words].concat()).await?;
    let text = said.lines().next().context("nothing was printed")?.to_owned();
    let join = JoinString::parse(&text)?;
    Ok((text, join))
}

/// Asks as an agent does, once.
async fn ask(join: &JoinString, id: &str, key: &str) -> Result<v1::JoinResponse, Status> {
    let unknown = |error: &dyn std::fmt::Display| Status::unknown(error.to_string());
    let doors = join
        .doors
        .iter()
        .map(|door| door.parse())
        .collect::<Result<_, _>>();
    let doors = doors.map_err(|error: shared::tls::InvalidAddress| unknown(&error))?;
    let connector =
        JoinConnector::new(doors, join.pin, Arc::new(TcpDial)).map_err(|error| unknown(&error))?;
    let channel = connector.connect().await;
    let channel = channel.map_err(|error| unknown(&explain(&error).unwrap_or_else(|| error.to_string())))?;
    let request = v1::JoinRequest {
        token: join.token.bytes().to_vec(),
        cluster: id.to_owned(),
        signing_request: signing_request(key).map_err(|error| unknown(&error))?,
    };
    JoiningClient::new(channel)
        .join(request)
        .await
        .map(tonic::Response::into_inner)
}

/// Asked and refused: the code, and what is said.
async fn refused(join: &JoinString, id: &str, code: Code, why: &str) -> anyhow::Result<()> {
    let said = ask(join, id, &new_key()?)
        .await
        .err()
        .with_context(|| format!("given, and not {why}"))?;
    ensure!(
        said.code() == code && said.message().contains(why),
        "{said:?} instead of {why}"
    );
    ensure!(!said.message().contains('\n'), "more than a line: {said:?}");
    Ok(())
}

async fn kinds(clusterset: &LocalClusterset) -> anyhow::Result<Vec<String>> {
    let events = questions::events(clusterset).await?;
    Ok(events.into_iter().map(|event| event.kind).collect())
}

/// Decisions about members and tokens; members' own reports come when they look.
async fn decided(clusterset: &LocalClusterset) -> anyhow::Result<Vec<String>> {
    let mut kinds = kinds(clusterset).await?;
    kinds.retain(|kind| kind.starts_with("member_") || kind.starts_with("join_token_"));
    Ok(kinds)
}

/// From the command to Ready, and again after a restart without another use; nothing of the token is in any log.
async fn a_string_makes_a_cluster_ready() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusterset = joinable(dir.path(), &["east"], &[]).await?;
    let (text, join) = made(&clusterset, &["--cluster-id", "east"]).await?;
    let flags = ["--join", &text, "--cluster-id", "east"];
    let variant = AgentVariant {
        certificate: "joined",
        cluster: "east",
        log: "joined",
        flags: &flags,
    };
    for start in 0..2 {
        let began = Instant::now();
        let mut agent = clusterset.spawn_agent(&variant)?;
        let address = agent.admin().await?;
        eventually("the agent is ready", async || {
            Ok((admin::get(address, "/readyz").await?.0 == 200).then_some(()))
        })
        .await?;
        questions::listed(&clusterset, &["east"]).await?;
        let took = began.elapsed();
        println!("start {start}: ready after {took:?}");
        ensure!(took.as_secs() < READY_WITHIN, "ready after {took:?}");
        agent.stop().await?;
    }
    let used = kinds(&clusterset)
        .await?
        .iter()
        .filter(|kind| *kind == "join_token_used")
        .count();
    ensure!(used == 1, "{used} uses");
    let shown = token(&clusterset, &["list"]).await?;
    ensure!(
        shown.contains(&join.token.hash().id()) && shown.contains("1 of 1"),
        "{shown}"
    );
    let secret = join
        .token
        .bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    for name in ["hub", "joined"] {
        let log = fs::read_to_string(clusterset.log(name))?;
        ensure!(
            !log.contains(&text) && !log.contains(&secret),
            "the token is in the log of {name}"
        );
    }
    clusterset.end().await
}

/// Spent, replayed, expired, revoked, foreign, of another pin, for an id that is taken, cut: one line each, and nothing
/// is recorded; the holder of an id is left alone.
async fn every_refusal_says_what_to_do() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = joinable(dir.path(), &["east"], &[]).await?;
    clusterset.start_agent("east").await?;
    questions::listed(&clusterset, &["east"]).await?;
    let (_, once) = made(&clusterset, &["--id-pattern", "p-*"]).await?;
    ask(&once, "p-1", &new_key()?).await?;
    let (_, many) = made(&clusterset, &["--id-pattern", "*a*", "--uses", "9"]).await?;
    let (_, taken_back) = made(&clusterset, &["--cluster-id", "west"]).await?;
    token(
        &clusterset,
        &["revoke", &taken_back.token.hash().id(), "--confirm"],
    )
    .await?;
    let (_, short) = made(&clusterset, &["--cluster-id", "south", "--expires", "1s"]).await?;
    let before = decided(&clusterset).await?;

    refused(&once, "p-2", Code::PermissionDenied, "is spent").await?;
    refused(&once, "p-1", Code::PermissionDenied, "is taken").await?;
    refused(
        &many,
        "north",
        Code::PermissionDenied,
        "not good for cluster id north",
    )
    .await?;
    refused(&many, "east", Code::PermissionDenied, "a member has it").await?;
    refused(&taken_back, "west", Code::PermissionDenied, "was revoked").await?;
    // Asked before its second has passed it would be used.
    let end = Instant::now() + std::time::Duration::from_secs(2);
    eventually("the token expires", async || {
        Ok((Instant::now() > end).then_some(()))
    })
    .await?;
    refused(&short, "south", Code::PermissionDenied, "expired").await?;
    let foreign = JoinString {
        token: shared::model::TokenSecret::new([1; 32]),
        ..once.clone()
    };
    refused(&foreign, "p-2", Code::PermissionDenied, "knows no such token").await?;
    let pinned = JoinString {
        pin: KeyFingerprint([1; 32]),
        ..once.clone()
    };
    refused(
        &pinned,
        "p-2",
        Code::Unknown,
        "is not the hub that this join string is of",
    )
    .await?;
    let members = JoinString {
        doors: once.hubs.clone(),
        ..once.clone()
    };
    ensure!(
        ask(&members, "p-2", &new_key()?).await.is_err(),
        "the members' port asks for no certificate"
    );
    agents_end_with_one_line(&clusterset, &once).await?;
    ensure!(decided(&clusterset).await? == before, "something was recorded");
    questions::listed(&clusterset, &["east"]).await?;
    clusterset.end().await
}

/// An agent that is refused ends, with what to do as the last line.
async fn agents_end_with_one_line(clusterset: &LocalClusterset, spent: &JoinString) -> anyhow::Result<()> {
    let whole = spent.encode().context("it fits")?;
    for (text, why) in [
        (&*whole, "is spent"),
        (&whole[..whole.len() - 9], "was cut"),
        ("hello", "it is no join string"),
    ] {
        let variant = AgentVariant {
            certificate: "nobody",
            cluster: "east",
            log: "nobody",
            flags: &["--join", text, "--cluster-id", "p-7"],
        };
        let (status, tail) = clusterset.spawn_agent(&variant)?.ended().await?;
        let last = tail.lines().last().unwrap_or_default();
        ensure!(!status.success() && last.contains(why), "{status}: {tail}");
    }
    Ok(())
}

/// The same token with the same key is given the same certificate, by a hub that was killed meanwhile too.
async fn a_lost_answer_is_given_again() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = joinable(dir.path(), &["east"], &[]).await?;
    let (_, join) = made(&clusterset, &["--cluster-id", "west"]).await?;
    let key = new_key()?;
    let first = ask(&join, "west", &key).await?;
    let again = ask(&join, "west", &key).await?;
    ensure!(first == again, "another certificate");
    let door = clusterset.hub()?.joining().await?;
    clusterset.kill_hub().await?;
    start_hub(&mut clusterset, door, &[]).await?;
    let after = ask(&join, "west", &key).await?;
    ensure!(first == after, "another certificate after a restart");
    refused(&join, "west", Code::PermissionDenied, "is taken").await?;
    clusterset.end().await
}

/// One token, one pattern, fifty clusters at once; the fifty-first is one too many.
async fn a_fleet_joins_from_one_template() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusterset = joinable(dir.path(), &["east"], &[]).await?;
    let uses = FLEET.to_string();
    let (_, join) = made(&clusterset, &["--id-pattern", "prod-*", "--uses", &uses]).await?;
    let began = Instant::now();
    let asked = (0..FLEET).map(|number| {
        let join = &join;
        async move {
            let (id, key) = (format!("prod-{number}"), new_key()?);
            let given = ask(join, &id, &key).await?;
            let credentials = Credentials::from_pem(&Pem {
                cert: given.certificate.into_bytes(),
                key: key.into_bytes(),
                ca: given.authorities.into_bytes(),
            })?;
            let CertificateFacts { identity, .. } = credentials.facts();
            ensure!(
                identity.clusterset == Clusterset::new("e2e.tributary.test", "default")?,
                "{identity}"
            );
            ensure!(
                matches!(&identity.role, Role::Cluster(given) if given.as_str() == id),
                "{identity}"
            );
            Ok(())
        }
    });
    futures::future::try_join_all(asked).await?;
    println!(
        "{FLEET} clusters were given certificates in {:?}",
        began.elapsed()
    );
    refused(&join, "prod-50", Code::PermissionDenied, "is spent").await?;
    let used = kinds(&clusterset)
        .await?
        .iter()
        .filter(|kind| *kind == "join_token_used")
        .count();
    ensure!(used == FLEET as usize, "{used} uses");
    clusterset.end().await
}

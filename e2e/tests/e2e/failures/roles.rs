//! Roles with real certificates: a reader reads and may not decide, a member sees its own, a stranger hears no name.

use std::{fmt::Debug, fs};

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{Backend, Inspection, LocalClusterset, eventually::eventually, shop::Shop},
    member,
};
use hub::certs::Subject;
use proto::v1::{
    self, event_log_client::EventLogClient, membership_client::MembershipClient, state_client::StateClient,
};
use shared::tls::{Credentials, TlsFiles};
use tonic::{Code, Response, Status};

use super::{
    hub::{events, listed, state},
    identity::write_strangers,
};

/// A reader's certificate, beside the operator's.
const READER: &str = "dashboard";
/// Refusals of one identity that the hub logs in a minute.
const NOISE_LOGGED: usize = 20;

/// East and west export the same service; there are agents in both, and a reader's certificate.
async fn two_exporters(dir: &std::path::Path) -> anyhow::Result<(LocalClusterset, Shop)> {
    let clusterset = LocalClusterset::start(dir, &Backend::Simulated, &["east", "west"]).await?;
    clusterset.issue(READER, &Subject::Reader(READER.into()))?;
    listed(&clusterset, &["east", "west"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.export(&clusterset, "west", "cart", &["10.2.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    Ok((clusterset, shop))
}

/// The text of a refusal with the required code.
fn refusal<T: Debug>(answer: Result<Response<T>, Status>) -> anyhow::Result<String> {
    let status = answer.err().context("it was answered")?;
    ensure!(status.code() == Code::PermissionDenied, "{status}");
    Ok(status.message().to_owned())
}

/// It sees what an operator sees, tries nothing and decides nothing, and reads no more once its key is revoked.
pub(super) async fn a_reader_reads_and_decides_nothing() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (clusterset, _shop) = two_exporters(dir.path()).await?;
    let mut reader = Inspection::connect(&clusterset, READER).await?;
    let before = events(&clusterset).await?;
    let seen = reader
        .state
        .get(v1::GetStateRequest::default())
        .await?
        .into_inner();
    ensure!(seen.members.len() == 2 && seen.exports.len() == 2, "{seen:?}");
    let listed = reader.membership.list(v1::ListMembersRequest::default()).await?;
    ensure!(listed.get_ref().members.len() == 2, "{listed:?}");
    for confirm in [false, true] {
        let evict = v1::EvictMemberRequest {
            cluster: "west".into(),
            confirm,
            ..Default::default()
        };
        let said = refusal(reader.membership.evict(evict).await)?;
        ensure!(said.contains("only an operator decides"), "{said}");
    }
    let copied = reader.log.backup(v1::BackupRequest::default()).await;
    let said = refusal(copied.map(|_| Response::new(())))?;
    ensure!(said.contains("only an operator copies"), "{said}");
    let after = events(&clusterset).await?;
    ensure!(
        after.iter().all(|event| event.decided_by.is_empty()) && after.len() >= before.len(),
        "nobody decided"
    );
    revoked_it_reads_no_more(&clusterset, reader).await?;
    clusterset.end().await
}

/// The decision names the operator and the reader; what is open under the key ends.
async fn revoked_it_reads_no_more(
    clusterset: &LocalClusterset,
    mut reader: Inspection,
) -> anyhow::Result<()> {
    let key = key_of(clusterset, READER)?;
    let mut watch = reader
        .log
        .watch(v1::WatchEventsRequest::default())
        .await?
        .into_inner();
    let revoke = v1::RevokeReaderRequest {
        name: READER.into(),
        key_fingerprint: key,
        confirm: true,
        ..Default::default()
    };
    let mut operator = clusterset.inspect().await?;
    operator.membership.revoke_reader(revoke).await?;
    let ended = loop {
        match watch.message().await {
            Ok(Some(_)) => {}
            Ok(None) => anyhow::bail!("the watch ended without a word"),
            Err(status) => break status,
        }
    };
    ensure!(ended.code() == Code::PermissionDenied, "{ended}");
    let said = refusal(reader.state.get(v1::GetStateRequest::default()).await)?;
    ensure!(said.contains("was revoked by an operator"), "{said}");
    let recorded = events(clusterset).await?;
    let recorded = recorded.iter().find(|event| event.kind == "operator_key_revoked");
    let recorded = recorded.context("it is recorded")?;
    ensure!(recorded.decided_by == "e2e", "{recorded:?}");
    Ok(())
}

/// Waits for a line of the hub's log with these texts, of which it has all that an auditor asks for.
async fn audited(clusterset: &LocalClusterset, who: &str, texts: &[&str]) -> anyhow::Result<()> {
    let path = clusterset.log("hub");
    let of_who = |line: &&str| line.contains(who) && texts.iter().all(|text| line.contains(text));
    eventually(&format!("the hub's log says {texts:?} of {who}"), async || {
        let log = fs::read_to_string(&path)?;
        Ok(log.lines().any(|line| of_who(&line)).then_some(()))
    })
    .await
}

/// An evict request for `west`.
fn evict_west(confirm: bool) -> v1::EvictMemberRequest {
    v1::EvictMemberRequest {
        cluster: "west".into(),
        confirm,
        ..Default::default()
    }
}

/// The hub's log says of every decision who asked for it, with which key, from where, and what became of it; a member
/// that is refused without end hides nobody's refusal and no decision of its own.
pub(super) async fn every_decision_is_audited_whoever_makes_noise() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (clusterset, _shop) = two_exporters(dir.path()).await?;
    let mut east = Inspection::connect(&clusterset, "east").await?;
    for _ in 0..100 {
        let another = v1::GetStateRequest {
            cluster: "west".into(),
            clusterset: "another".into(),
            ..Default::default()
        };
        refusal(east.state.get(another).await)?;
    }
    eventually("a share of the refusals is logged", async || {
        Ok((noise(&clusterset)? >= NOISE_LOGGED).then_some(()))
    })
    .await?;

    refusal(east.membership.evict(evict_west(true)).await)?;
    let mut reader = Inspection::connect(&clusterset, READER).await?;
    refusal(reader.membership.evict(evict_west(true)).await)?;
    for who in ["east", READER] {
        let key = key_of(&clusterset, who)?;
        let asked = [
            "refused a request",
            "EvictMemberRequest",
            "127.0.0.1:",
            "only an operator decides",
            &key,
        ];
        audited(&clusterset, &format!("/{who}"), &asked).await?;
    }
    refusal(reader.membership.leave(v1::LeaveRequest::default()).await)?;
    audited(
        &clusterset,
        READER,
        &["refused a request", "LeaveRequest", "its own certificate"],
    )
    .await?;

    operators_are_audited(&clusterset).await?;
    let leave = v1::LeaveRequest {
        confirm: true,
        ..Default::default()
    };
    east.membership.leave(leave).await?;
    let asked = ["and may", "LeaveRequest", "127.0.0.1:"];
    audited(&clusterset, "/cluster/east", &asked).await?;
    let noise = noise(&clusterset)?;
    ensure!(noise == NOISE_LOGGED, "{noise} lines");
    clusterset.end().await
}

/// A decision that the rules refuse, and one that they allow.
async fn operators_are_audited(clusterset: &LocalClusterset) -> anyhow::Result<()> {
    let mut operator = clusterset.inspect().await?;
    let nobody = v1::EvictMemberRequest {
        cluster: "nobody".into(),
        ..evict_west(true)
    };
    let rejected = operator.membership.evict(nobody).await;
    rejected.err().context("nobody was evicted")?;
    audited(clusterset, "e2e", &["refused a decision", "nobody"]).await?;
    operator.membership.evict(evict_west(true)).await?;
    let key = key_of(clusterset, "operator")?;
    let asked = ["and may", "EvictMemberRequest", "127.0.0.1:", &key];
    audited(clusterset, "/operator/e2e", &asked).await?;
    audited(clusterset, "e2e", &["an operator decided", "revision", "evict"]).await
}

/// Lines of the hub's log about refused reads.
fn noise(clusterset: &LocalClusterset) -> anyhow::Result<usize> {
    let log = fs::read_to_string(clusterset.log("hub"))?;
    let lines = log.lines().filter(|line| line.contains("GetStateRequest"));
    Ok(lines.count())
}

/// The fingerprint of the key of a certificate by its file.
fn key_of(clusterset: &LocalClusterset, name: &str) -> anyhow::Result<String> {
    let file = |name: &str| clusterset.certificate(name);
    let files = TlsFiles {
        cert: file(&format!("{name}.crt")),
        key: file(&format!("{name}.key")),
        ca: file("ca.crt"),
    };
    let credentials = Credentials::from_pem(&files.read()?)?;
    Ok(credentials.facts().key_fingerprint.to_string())
}

/// Of the other cluster it sees what the import says, and its own events only.
pub(super) async fn a_member_sees_its_own() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (clusterset, shop) = two_exporters(dir.path()).await?;
    let all = state(&clusterset).await?;
    ensure!(all.members.len() == 2 && all.exports.len() == 2, "{all:?}");
    let mut east = Inspection::connect(&clusterset, "east").await?;
    let own = east.state.get(v1::GetStateRequest::default()).await?.into_inner();
    ensure!(
        own.imports == all.imports,
        "imports are what every member is sent"
    );
    let listed = east.membership.list(v1::ListMembersRequest::default()).await?;
    let log = east
        .log
        .list(v1::ListEventsRequest::default())
        .await?
        .into_inner();
    ensure!(
        !log.events.is_empty() && log.events.iter().all(|event| event.cluster == "east"),
        "{log:?}"
    );
    let explain = v1::ExplainRequest {
        namespace: shop.namespace.clone(),
        name: "cart".into(),
        ..Default::default()
    };
    let explained = east.state.explain(explain).await?.into_inner();
    ensure!(explained.candidates.len() == 1, "{explained:?}");
    // Exporters are told who holds what they export.
    let mut exports = own.exports.clone();
    for export in &mut exports {
        export.arrival = None;
    }
    let shown = [
        format!("{:?} {exports:?} {:?}", own.members, own.profiles),
        format!("{listed:?} {log:?}"),
        format!("{:?} {:?}", explained.candidates, explained.events),
    ];
    for shown in &shown {
        ensure!(shown.contains("east") && !shown.contains("west"), "{shown}");
    }
    let another = v1::GetStateRequest {
        cluster: "west".into(),
        ..Default::default()
    };
    refusal(east.state.get(another).await)?;
    clusterset.end().await
}

/// Whoever comes from another clusterset of the same authority hears of none but its own.
pub(super) async fn a_stranger_hears_no_name_but_its_own() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (clusterset, shop) = two_exporters(dir.path()).await?;
    write_strangers(&clusterset)?;
    let mut said = Vec::new();
    for certificate in ["other", "other-member"] {
        // Not as our own clients connect: those would find out by the hub's certificate that it is another's.
        let channel = member::connect(&clusterset, certificate).await?;
        let mut state = StateClient::new(channel.clone());
        let mut log = EventLogClient::new(channel.clone());
        let mut membership = MembershipClient::new(channel);
        said.push(refusal(state.get(v1::GetStateRequest::default()).await)?);
        said.push(refusal(state.explain(v1::ExplainRequest::default()).await)?);
        said.push(refusal(log.list(v1::ListEventsRequest::default()).await)?);
        let watched = log.watch(v1::WatchEventsRequest::default()).await;
        said.push(refusal(watched.map(|_| Response::new(())))?);
        said.push(refusal(membership.list(v1::ListMembersRequest::default()).await)?);
        let evict = v1::EvictMemberRequest {
            cluster: "nobody".into(),
            confirm: true,
            ..Default::default()
        };
        said.push(refusal(membership.evict(evict).await)?);
    }
    for said in &said {
        for name in ["default", "west", "e2e/", "/hub/", &shop.namespace] {
            ensure!(!said.contains(name), "{name:?} comes out: {said}");
        }
        ensure!(said.contains("clusterset/other/"), "its own is said: {said}");
    }
    clusterset.end().await
}

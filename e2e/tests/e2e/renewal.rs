//! Certificates that renew themselves over the session. An authority that is replaced is in `runbooks`.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use cluster::clusterset::{
    AgentVariant, Backend, LocalClusterset, Program, admin, eventually::eventually, questions, shop::Shop,
};
use libtest_mimic::Trial;
use proto::v1::fact::Fact;
use shared::{
    model::KeyFingerprint,
    tls::{Credentials, TlsFiles},
};
use tributary_e2e::suite::{real_test, sim_test};

use crate::join::{joinable_on, made, start_hub};

/// Lifetime of certificates here: they are renewed about every 40 s, and a hub that starts on a busy machine has the 20
/// s that are left then.
const LIFETIME: &str = "60s";
/// Longest wait for a renewal, or for the end of a session.
const RENEWAL_WAIT: Duration = Duration::from_secs(150);

pub(crate) fn trials() -> Vec<Trial> {
    let sim = || certificates_renew_themselves_under_changes(Backend::Simulated);
    let real = |fleet| certificates_renew_themselves_under_changes(Backend::Real(fleet));
    vec![
        sim_test("sim::renewal::certificates_renew_themselves_under_changes", sim),
        real_test("real::renewal::certificates_renew_themselves_under_changes", real),
    ]
}

/// A joined member that exports, one that imports, and what is counted of both.
struct Story {
    clusterset: LocalClusterset,
    joined: Program,
    shop: Shop,
    changes: u8,
}

impl Story {
    async fn begin(dir: &std::path::Path, backend: &Backend) -> anyhow::Result<Self> {
        let flags = ["--member-cert-lifetime", LIFETIME];
        let mut clusterset = joinable_on(dir, backend, &["east", "west"], &flags).await?;
        clusterset.start_agent("west").await?;
        let (text, _) = made(&clusterset, &["--cluster-id", "east"]).await?;
        let joined = clusterset.spawn_agent(&AgentVariant {
            certificate: "joined",
            cluster: "east",
            log: "joined",
            flags: &["--join", &text, "--cluster-id", "east"],
        })?;
        questions::listed(&clusterset, &["east", "west"]).await?;
        let shop = Shop::open(&clusterset).await?;
        Ok(Self {
            clusterset,
            joined,
            shop,
            changes: 0,
        })
    }

    /// A change of what is exported, which arrives.
    async fn change(&mut self) -> anyhow::Result<()> {
        self.changes = self.changes.wrapping_add(1);
        let (service, address) = (
            format!("s{}", self.changes % 5),
            format!("10.96.0.{}", self.changes.max(1)),
        );
        self.shop
            .export(&self.clusterset, "east", &service, &[&address])
            .await?;
        self.shop.arrived_in(&self.clusterset, "west").await
    }

    async fn count(&mut self, name: &str, labels: &str) -> anyhow::Result<u64> {
        Ok(admin::metric(&mut self.joined, name, labels).await? as u64)
    }

    async fn renewals(&mut self) -> anyhow::Result<u64> {
        self.count("tributary_agent_certificate_renewals_total", "renewed")
            .await
    }

    async fn sessions(&mut self) -> anyhow::Result<u64> {
        self.count("tributary_agent_hub_sessions_total", "").await
    }

    /// Changes what is exported until so many renewals are counted.
    async fn until_renewed(&mut self, times: u64) -> anyhow::Result<()> {
        let began = Instant::now();
        while self.renewals().await? < times {
            ensure!(
                began.elapsed() < RENEWAL_WAIT,
                "not renewed {times} times:\n{}",
                self.joined.tail()
            );
            self.change().await?;
        }
        Ok(())
    }

    /// The keys of the member, the last one certified last.
    async fn keys(&self) -> anyhow::Result<Vec<KeyFingerprint>> {
        let state = questions::state(&self.clusterset).await?;
        let member = state.members.iter().find(|member| member.cluster == "east");
        let keys = &member.context("it is a member")?.key_fingerprints;
        keys.iter().map(|key| Ok(key.parse()?)).collect()
    }

    /// The key of the certificate in the agent's file.
    fn key_in_file(&self) -> anyhow::Result<KeyFingerprint> {
        let file = |name: &str| self.clusterset.certificate(name);
        let files = TlsFiles {
            cert: file("joined.crt"),
            key: file("joined.key"),
            ca: file("ca.crt"),
        };
        Ok(Credentials::from_pem(&files.read()?)?.facts().key_fingerprint)
    }

    /// Returns true if a `member_rekeyed` admitted a key of its. Without that word it is news of a certificate: of the
    /// second one for a key, where the answer with the first was lost.
    async fn a_rekey_admitted_a_key(&self) -> anyhow::Result<bool> {
        let events = questions::events(&self.clusterset).await?;
        Ok(events
            .into_iter()
            .filter(|event| event.cluster == "east")
            .filter_map(|event| event.fact?.fact)
            .any(|fact| matches!(fact, Fact::MemberRekeyed(rekeyed) if rekeyed.accepted != 0)))
    }

    async fn events_of(&self, kind: &str) -> anyhow::Result<usize> {
        let kinds = questions::kinds(&self.clusterset, "east").await?;
        Ok(kinds.iter().filter(|one| *one == kind).count())
    }
}

/// Two renewals while exports change, with a hub that is killed in between: a renewal ends no stream, the next
/// connection carries the new key and needs neither an operator nor a ping, and no acknowledged fact is lost.
async fn certificates_renew_themselves_under_changes(backend: Backend) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut story = Story::begin(dir.path(), &backend).await?;
    story.change().await?;
    let (first, sessions) = (story.key_in_file()?, story.sessions().await?);
    story.until_renewed(1).await?;
    ensure!(story.sessions().await? == sessions, "the renewal ended a stream");
    let second = story.key_in_file()?;
    ensure!(first != second, "the key is the old one");
    ensure!(
        story.keys().await?.contains(&second),
        "the hub does not know the new key"
    );
    ensure!(
        story.events_of("member_key_certified").await? == 1,
        "not recorded once"
    );
    story.change().await?;

    // The session ends with the certificate that opened it, and the next one comes with the new one.
    let began = Instant::now();
    while story.sessions().await? == sessions {
        ensure!(
            began.elapsed() < RENEWAL_WAIT,
            "the session outlived its certificate"
        );
        story.change().await?;
    }
    let door = story.clusterset.hub()?.joining().await?;
    story.clusterset.kill_hub().await?;
    start_hub(&mut story.clusterset, door, &["--member-cert-lifetime", LIFETIME]).await?;
    questions::listed(&story.clusterset, &["east", "west"]).await?;
    story.until_renewed(2).await?;
    let newest = story.key_in_file()?;
    eventually("the newest key is known", async || {
        Ok(story.keys().await?.contains(&newest).then_some(()))
    })
    .await?;
    story.change().await?;
    story.shop.arrived(&story.clusterset).await?;

    for (kind, times) in [("member_joined", 1), ("member_key_contested", 0)] {
        let found = story.events_of(kind).await?;
        ensure!(found == times, "{found} events {kind}");
    }
    ensure!(
        !story.a_rekey_admitted_a_key().await?,
        "a key was admitted that was not certified over a session"
    );
    let renewals = story.renewals().await? as usize;
    let certified = story.events_of("member_key_certified").await?;
    ensure!(certified >= renewals, "{certified} keys for {renewals} renewals");
    let held = admin::metric(
        story.clusterset.hub()?,
        "tributary_hub_sessions_rejected_total",
        "",
    )
    .await?;
    ensure!(held == 0.0, "{held} sessions were refused");
    let (changes, sessions) = (story.changes, story.sessions().await?);
    println!("{renewals} renewals, {changes} changes, {sessions} sessions");
    story.shop.close(&story.clusterset).await?;
    story.joined.stop().await?;
    story.clusterset.end().await
}

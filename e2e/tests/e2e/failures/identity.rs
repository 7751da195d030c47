//! Identity (docs/design.md, section 3): who may do what follows from the certificate, and nothing else.

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{AgentVariant, Backend, LocalClusterset, admin, eventually::eventually},
    member::{self, Member, hello},
};
use hub::certs::{CertificateAuthority, Subject, Validity};
use proto::v1::{self, membership_client::MembershipClient, state_client::StateClient};
use serde_json::json;
use shared::{
    api::names,
    model::{ClusterId, Clusterset},
};
use tonic::Code;

use super::{
    guard::Guard,
    hub::{listed, said, state},
    shop::Shop,
};

/// Certificates beside the usual ones: of another clusterset of the same authority, and of a foreign authority.
pub(super) fn write_strangers(clusterset: &LocalClusterset) -> anyhow::Result<()> {
    let subject = Subject::Operator("stranger".into());
    let other = Clusterset::new("e2e.tributary.test", "other")?;
    let validity = Validity::days_from_now(30);
    clusterset.keep(
        "other",
        &clusterset.authority.issue_in(&other, &subject, validity)?,
    )?;
    let member = Subject::Member(ClusterId::new("east")?);
    clusterset.keep(
        "other-member",
        &clusterset.authority.issue_in(&other, &member, validity)?,
    )?;
    let same = Clusterset::new("e2e.tributary.test", "default")?;
    let foreign = CertificateAuthority::generate(&same, Validity::days_from_now(30))?;
    clusterset.keep("foreign", &foreign.issue(&subject, validity)?)
}

/// Another clusterset: PERMISSION_DENIED. A foreign authority or no certificate: no handshake.
pub(super) async fn strangers_are_refused() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    write_strangers(&clusterset)?;

    let mut session = Member::silent(&clusterset, "other-member").await;
    let refusal = match &mut session {
        Ok(session) => session.refusal().await?,
        Err(error) => member::status(std::mem::replace(error, anyhow::anyhow!("taken")))?,
    };
    ensure!(refusal.code() == Code::PermissionDenied, "{refusal}");
    let told = refusal.message();
    ensure!(told.contains("clusterset/other/cluster/east"), "{refusal}");
    ensure!(
        !told.contains("default"),
        "the one that is served is not named: {refusal}"
    );

    let mut state = StateClient::new(member::connect(&clusterset, "other").await?);
    let refusal = state
        .get(v1::GetStateRequest::default())
        .await
        .err()
        .context("an answer")?;
    ensure!(refusal.code() == Code::PermissionDenied, "{refusal}");
    let mut state = StateClient::new(member::connect(&clusterset, "operator").await?);
    let named = v1::GetStateRequest {
        clusterset: "other".into(),
        ..Default::default()
    };
    let refusal = state.get(named).await.err().context("an answer")?;
    ensure!(refusal.code() == Code::PermissionDenied, "{refusal}");

    let accepted = member::try_handshake(&clusterset, Some("operator")).await?;
    ensure!(accepted.is_ok(), "{accepted:?}");
    for certificate in [Some("foreign"), None] {
        let refused = member::try_handshake(&clusterset, certificate).await?;
        ensure!(refused.is_err(), "{certificate:?} got through the handshake");
    }
    let accepted = admin::metric(clusterset.hub()?, "tributary_hub_tls_handshakes_total", "").await?;
    ensure!(
        accepted >= 5.0,
        "handshakes are counted, also those that failed: {accepted}"
    );
    clusterset.end().await
}

/// A member reads what is its own and reports; it decides nothing. An operator decides; it reports nothing.
pub(super) async fn each_role_has_its_own_calls() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    let channel = member::connect(&clusterset, "east").await?;
    StateClient::new(channel.clone())
        .get(v1::GetStateRequest::default())
        .await?;
    let evict = v1::EvictMemberRequest {
        cluster: "east".into(),
        ..Default::default()
    };
    let refusal = MembershipClient::new(channel)
        .evict(evict)
        .await
        .err()
        .context("an answer")?;
    ensure!(refusal.code() == Code::PermissionDenied, "{refusal}");
    ensure!(
        refusal.message().contains("operator"),
        "it says what is needed: {refusal}"
    );

    let refusal = match Member::open(&clusterset, "operator", hello("uid-of-nobody")).await {
        Ok(_) => anyhow::bail!("an operator opened a session"),
        Err(error) => member::status(error)?,
    };
    ensure!(refusal.code() == Code::PermissionDenied, "{refusal}");
    ensure!(refusal.message().contains("member's certificate"), "{refusal}");
    ensure!(state(&clusterset).await?.members.is_empty(), "nobody joined");
    clusterset.end().await
}

/// A cluster that is restored from a backup, beside the one of which that is: both lead, and whoever holds the member keeps
/// it until its agent ends.
pub(super) async fn a_copy_of_a_cluster_takes_nobodys_place() -> anyhow::Result<()> {
    const REFUSED: &str = "is a copy of the other";
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let copied = clusterset.cluster("east")?.restored("copy", dir.path()).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.2"]).await?;
    shop.arrived(&clusterset).await?;
    let guard = Guard::set(&clusterset, &shop.namespace).await?;

    clusterset.clusters.insert("copy".into(), copied);
    let copy = clusterset.spawn_agent(&AgentVariant {
        certificate: "east",
        cluster: "copy",
        log: "copy",
        flags: &[],
    })?;
    // Its cluster is nobody's whom the others wait for.
    let copied = clusterset.clusters.remove("copy").context("it was put there")?;
    said(&clusterset.log("copy"), REFUSED).await?;
    let refused = r#"reason="duplicate_identity""#;
    let name = "tributary_hub_sessions_rejected_total";
    ensure!(
        admin::metric(clusterset.hub()?, name, refused).await? >= 1.0,
        "it is counted"
    );
    guard.nothing_lost_of(&["cart"])?;
    shop.arrived(&clusterset).await?;
    drop(guard);

    clusterset.kill_agent("east").await?;
    said(&clusterset.log("copy"), "the hub admitted this cluster").await?;
    let west = clusterset.cluster("west")?.sim().context("simulated")?.clone();
    eventually("what the copy states stands", async || {
        let slices = west.list("EndpointSlice");
        let states = |slice: &serde_json::Value| slice["endpoints"][0]["addresses"][0] == "10.1.0.1";
        Ok(slices.iter().any(states).then_some(()))
    })
    .await?;
    clusterset.start_agent("east").await?;
    said(&clusterset.log("east"), REFUSED).await?;
    copy.stop().await?;
    drop(copied);
    listed(&clusterset, &["east", "west"]).await?;
    shop.arrived(&clusterset).await?;
    shop.close(&clusterset).await?;
    clusterset.end().await
}

/// The certificate's id is the id: a flag or a property that differs stops the agent at its start.
pub(super) async fn an_agent_that_is_told_another_id_does_not_start() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    let flagged = clusterset.spawn_agent(&AgentVariant {
        certificate: "east",
        cluster: "east",
        log: "flagged",
        flags: &["--cluster-id", "west"],
    })?;
    let (status, tail) = flagged.ended().await?;
    ensure!(!status.success(), "{status}");
    let told = tail.contains("--tls-cert is for cluster east") && tail.contains("--cluster-id says west");
    ensure!(told, "{tail}");

    let cluster = clusterset.cluster("east")?;
    let cluster = cluster.sim().context("a simulated cluster")?;
    for (name, value, told) in [
        (names::PROPERTY_CLUSTER_ID, "south", "is for cluster east"),
        (names::PROPERTY_CLUSTERSET, "other", "is for clusterset default"),
    ] {
        cluster.apply(property(name, value))?;
        let named = clusterset.spawn_agent(&AgentVariant {
            certificate: "east",
            cluster: "east",
            log: name,
            flags: &[],
        })?;
        let (status, tail) = named.ended().await?;
        ensure!(!status.success(), "{status}");
        let told = tail.contains(told) && tail.contains(&format!("{name} says {value}"));
        ensure!(told, "{tail}");
        let found = cluster.get("ClusterProperty", "", name).context("it stays")?;
        ensure!(found["spec"]["value"] == value, "{found:#}");
        cluster.delete("ClusterProperty", "", name)?;
    }
    ensure!(
        state(&clusterset).await?.members.is_empty(),
        "none reached the hub"
    );
    clusterset.end().await
}

fn property(name: &str, value: &str) -> serde_json::Value {
    json!({"apiVersion": names::ABOUT_API_VERSION, "kind": "ClusterProperty", "metadata": {"name": name},
           "spec": {"value": value}})
}

/// A user's property that is changed under a running agent is as wrong as one at its start: it shows, and takes nothing
/// away.
pub(super) async fn an_agent_whose_property_changes_is_unready_and_goes_on() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    let cluster = clusterset
        .cluster("east")?
        .sim()
        .context("a simulated cluster")?
        .clone();
    let id = |value| property(names::PROPERTY_CLUSTER_ID, value);
    cluster.apply(id("east"))?;
    clusterset.start_agent("east").await?;
    listed(&clusterset, &["east"]).await?;
    cluster.apply(id("south"))?;
    said(&clusterset.log("east"), "says south").await?;
    ensure!(state(&clusterset).await?.members[0].connected, "it goes on");
    cluster.apply(id("east"))?;
    said(&clusterset.log("east"), "agree with the certificate again").await?;
    clusterset.end().await
}

/// A new key of a known member is refused with the command that admits it, and admitted after it.
pub(super) async fn a_changed_key_waits_for_the_operator() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east"]).await?;
    listed(&clusterset, &["east"]).await?;
    let before = state(&clusterset).await?.members;
    clusterset.stop_agent("east").await?;
    clusterset.issue("east", &Subject::Member(ClusterId::new("east")?))?;
    clusterset.start_agent("east").await?;
    let line = said(&clusterset.log("east"), "tributary member rekey east").await?;
    let key = line
        .split("--key-fingerprint ")
        .nth(1)
        .context("the command names the key")?;
    let key = key.split_whitespace().next().unwrap_or_default();
    ensure!(
        !state(&clusterset).await?.members[0].connected,
        "not before the operator said so"
    );

    let rekey = v1::RekeyMemberRequest {
        cluster: "east".into(),
        key_fingerprint: key.into(),
        confirm: true,
        ..Default::default()
    };
    let answer = clusterset
        .inspect()
        .await?
        .membership
        .rekey(rekey)
        .await?
        .into_inner();
    ensure!(answer.done && answer.revision > 0, "{answer:?}");
    listed(&clusterset, &["east"]).await?;
    let after = state(&clusterset).await?.members;
    ensure!(
        after[0].key_fingerprints.iter().any(|known| known == key),
        "{after:?}"
    );
    ensure!(
        after[0].incarnation == before[0].incarnation,
        "the cluster is the same: {after:?}"
    );
    clusterset.end().await
}

//! Bad input from a member that is no agent: refused per item or per session with a message that says what is
//! wrong, counted, never in the log, and of no concern to other members.

use anyhow::{Context, bail, ensure};
use cluster::{
    clusterset::{Backend, LocalClusterset, admin},
    member::{self, Member, hello},
};
use proto::v1::{self, agent_message::Message};
use shared::{
    model::sync::{AgentMessage, Hello},
    wire,
};
use tonic::{Code, Status};

use super::{
    facts::{encoded, export, slice},
    hub::{events, listed},
};

/// An encoded fact that no generator of ours would make.
type Bad = (&'static str, Vec<u8>, &'static str);

/// A clusterset in which east is an agent, and west is played.
async fn clusterset(dir: &std::path::Path) -> anyhow::Result<LocalClusterset> {
    let mut clusterset = LocalClusterset::without_agents(dir, &Backend::Simulated, &["east", "west"]).await?;
    clusterset.start_agent("east").await?;
    listed(&clusterset, &["east"]).await?;
    Ok(clusterset)
}

fn with_export(name: &'static str, told: &'static str, change: impl FnOnce(&mut v1::Export)) -> Bad {
    let mut value = export("bad", name);
    change(&mut value);
    (name, encoded(v1::fact::Fact::ExportUpserted(value)), told)
}

fn with_slice(name: &'static str, told: &'static str, change: impl FnOnce(&mut v1::EndpointSlice)) -> Bad {
    let mut value = slice("bad", name, &["10.2.0.1"]);
    change(&mut value);
    (name, encoded(v1::fact::Fact::EndpointSliceUpserted(value)), told)
}

fn label(key: &str) -> v1::KeyValue {
    v1::KeyValue {
        key: key.into(),
        value: "x".into(),
    }
}

/// Facts that must be refused, with a word of the reason.
fn bad_facts() -> Vec<Bad> {
    let unknown_kind = vec![0xc2, 0x3e, 0x00];
    vec![
        ("garbage", b"\xff\xff\xff\xff".to_vec(), ""),
        ("nothing", Vec::new(), ""),
        ("unknown-kind", unknown_kind, ""),
        (
            "decision",
            encoded(v1::fact::Fact::MemberEvicted(v1::MemberEvicted {
                operator: "west".into(),
            })),
            "",
        ),
        with_export("bad-name", "name", |export| {
            export.service = Some(v1::ServiceKey {
                namespace: "bad".into(),
                name: "Not_A_Name".into(),
            });
        }),
        with_export("port-0", "port", |export| export.ports[0].port = 0),
        with_export("port-70000", "port", |export| export.ports[0].port = 70_000),
        with_export("reserved-label", "kubernetes.io/", |export| {
            export.exported_labels = vec![label("multicluster.kubernetes.io/service-name")];
        }),
        with_export("reserved-annotation", "kubernetes.io/", |export| {
            export.exported_annotations = vec![label("kubernetes.io/name")];
        }),
        with_export("oversized-metadata", "", |export| {
            export.exported_annotations = (0..40)
                .map(|index| v1::KeyValue {
                    key: format!("example.org/{index:02}"),
                    value: "x".repeat(1_000),
                })
                .collect();
        }),
        with_slice("short-address", "address", |slice| {
            slice.endpoints[0].addresses = vec!["10.0.0".into()];
        }),
        with_slice("other-text", "send fd00::7", |slice| {
            slice.endpoints[0].addresses = vec!["FD00::7".into()];
        }),
        with_slice("loopback", "127.0.0.1", |slice| {
            slice.endpoints[0].addresses = vec!["127.0.0.1".into()];
        }),
        with_slice("too-many-endpoints", "1000", |slice| {
            slice.endpoints = vec![slice.endpoints[0].clone(); 1_001];
        }),
        with_slice("oversized", "", |slice| {
            slice.endpoints[0].hostname = Some("x".repeat(1_100_000));
        }),
    ]
}

/// Each bad item is refused by itself: what stands beside it is taken.
pub(super) async fn a_bad_item_is_refused_alone() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = clusterset(dir.path()).await?;
    let mut member = Member::open(&clusterset, "west", hello("uid-of-west")).await?;
    let good = encoded(v1::fact::Fact::ExportUpserted(export("good", "cart")));
    member.report([good]).await?;
    let bad = bad_facts();
    for (name, fact, told) in &bad {
        let refused = member.refused.len();
        member.report([fact.clone()]).await?;
        member.settled().await?;
        ensure!(member.refused.len() == refused + 1, "{name} was taken");
        let refusal = &member.refused[refused];
        ensure!(refusal.sequence == member.sequence, "{name}: {refusal:?}");
        ensure!(
            !refusal.message.is_empty() && refusal.message.contains(told),
            "{name} says nothing of {told:?}: {refusal:?}"
        );
    }
    // The changed timestamp of a uid that is known is a refusal too.
    let mut moved = export("good", "cart");
    if let Some(at) = &mut moved.created_at {
        at.seconds += 1;
    }
    let also_good = encoded(v1::fact::Fact::EndpointSliceUpserted(slice(
        "good",
        "cart",
        &["10.2.0.1"],
    )));
    member
        .report([encoded(v1::fact::Fact::ExportUpserted(moved)), also_good])
        .await?;
    member.settled().await?;
    let all = bad.len() + 1;
    ensure!(member.refused.len() == all, "{:?}", member.refused);

    let counted = admin::metric(clusterset.hub()?, "tributary_hub_facts_refused_total", "").await?;
    ensure!(counted == all as f64, "{counted} of {all} refusals are counted");
    let recorded: Vec<String> = events(&clusterset)
        .await?
        .into_iter()
        .filter(|event| event.cluster == "west" && event.member_sequence > 0)
        .map(|event| event.kind)
        .collect();
    ensure!(
        recorded == ["export_upserted", "endpoint_slice_upserted"],
        "only what is good is in the log: {recorded:?}"
    );
    undisturbed(&mut clusterset).await?;
    clusterset.end().await
}

/// A way to break a session.
type Break = (&'static str, Vec<v1::AgentMessage>, &'static str);

fn message(message: Message) -> v1::AgentMessage {
    v1::AgentMessage {
        message: Some(message),
    }
}

fn observations(of: Vec<(u64, v1::observation::Observation)>) -> v1::AgentMessage {
    let observations = of.into_iter().map(|(sequence, observation)| v1::Observation {
        sequence,
        observation: Some(observation),
        changed_by: None,
    });
    message(Message::Observations(v1::Observations {
        observations: observations.collect(),
    }))
}

fn fact(service: &str) -> v1::observation::Observation {
    let fact = encoded(v1::fact::Fact::ExportUpserted(export("bad", service)));
    v1::observation::Observation::Fact(fact.into())
}

fn said(hello: Hello) -> v1::AgentMessage {
    wire::agent_message_to_proto(AgentMessage::Hello(Box::new(hello)))
}

/// Messages that end an open session.
fn breaks() -> Vec<Break> {
    let listing = |group: v1::ListingGroup| v1::observation::Observation::ListingCompleted(group.into());
    let completed = || listing(v1::ListingGroup::Exports);
    vec![
        ("a gap", vec![observations(vec![(2, fact("gap"))])], "sequence"),
        (
            "a repetition",
            vec![observations(vec![
                (1, listing(v1::ListingGroup::Properties)),
                (1, fact("again")),
            ])],
            "sequence",
        ),
        (
            "a listing twice",
            vec![observations(vec![(1, completed()), (2, completed())])],
            "not asked for",
        ),
        ("a second Hello", vec![said(hello("uid-of-west"))], "Hello"),
        ("an empty message", vec![v1::AgentMessage { message: None }], ""),
    ]
}

/// A session that breaks the protocol ends, and only that one.
pub(super) async fn a_broken_session_ends_alone() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = clusterset(dir.path()).await?;
    // It joins as it should, so that what comes is not a join.
    drop(Member::open(&clusterset, "west", hello("uid-of-west")).await?);
    let mut broken = 0.0;
    for (name, messages, told) in breaks() {
        let mut member = open_again(&clusterset).await?;
        for message in messages {
            member.say(message).await?;
        }
        let status = member.refusal().await.with_context(|| name.to_owned())?;
        refused(name, &status, told)?;
        broken += 1.0;
    }
    let mut silent = Member::silent(&clusterset, "west").await?;
    silent
        .say(message(Message::Heartbeat(v1::Heartbeat::default())))
        .await?;
    refused("no Hello", &silent.refusal().await?, "Hello")?;
    let mut old = hello("uid-of-west");
    old.protocol_version = 99;
    let status = match Member::open(&clusterset, "west", old).await {
        Ok(_) => bail!("protocol version 99 is served"),
        Err(error) => member::status(error)?,
    };
    refused("version 99", &status, "99")?;
    broken += 2.0;
    // A message that is too large is not even read.
    let mut member = open_again(&clusterset).await?;
    let large = vec![b'x'; 5 * 1024 * 1024];
    member.report([large]).await?;
    let status = member.refusal().await?;
    refused("5 MiB", &status, "4194304 bytes")?;
    broken += 1.0;
    let counted = admin::metric(
        clusterset.hub()?,
        "tributary_hub_sessions_rejected_total",
        "protocol",
    )
    .await?;
    ensure!(counted == broken, "{counted} of {broken} are counted");

    let recorded = events(&clusterset).await?;
    let facts: Vec<_> = recorded
        .iter()
        .filter(|event| event.cluster == "west" && event.kind.starts_with("export_"))
        .collect();
    ensure!(
        facts.is_empty(),
        "what a broken session said is in the log: {facts:?}"
    );
    undisturbed(&mut clusterset).await?;
    clusterset.end().await
}

fn refused(name: &str, status: &Status, told: &str) -> anyhow::Result<()> {
    ensure!(
        status.code() == Code::InvalidArgument
            && status.message().contains(told)
            && !status.message().is_empty(),
        "{name}: {status:?}"
    );
    Ok(())
}

/// Opens a session with a newer Lease than any before.
async fn open_again(clusterset: &LocalClusterset) -> anyhow::Result<Member> {
    let mut again = hello("uid-of-west");
    again.lease_transitions = i64::from(std::process::id()) + i64::from(rand::random::<u32>());
    for _ in 0..20 {
        match Member::open(clusterset, "west", again.clone()).await {
            Ok(member) => return Ok(member),
            // The session before may still be held for a moment.
            Err(_) => again.lease_transitions += i64::from(u32::MAX),
        }
    }
    Member::open(clusterset, "west", again).await
}

/// The other member noticed nothing: it has one session, since the beginning.
async fn undisturbed(clusterset: &mut LocalClusterset) -> anyhow::Result<()> {
    listed(clusterset, &["east"]).await?;
    let sessions = admin::metric(
        clusterset.agent("east")?,
        "tributary_agent_hub_sessions_total",
        "",
    )
    .await?;
    ensure!(sessions == 1.0, "east has had {sessions} sessions");
    let (ready, why) = admin::get(clusterset.hub()?.admin().await?, "/readyz").await?;
    ensure!(ready == 200, "the hub is not ready: {why}");
    Ok(())
}

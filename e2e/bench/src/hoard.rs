//! Owns: shape hoard: members that export as much as every budget allows, 8,000 exports of the largest size together, and
//! whether the hub stays within the memory that its chart gives it, also after a restart.
//! Never: measures time.

use std::{sync::Arc, time::Duration};

use anyhow::{bail, ensure};
use bytes::Bytes;
use proto::v1::{self, observation::Observation};
use shared::{
    model::{
        ClusterId, Fact, Metadata,
        service::EXPORTED_METADATA_BYTES_MAX,
        sync::{FEATURE_REPORT_AGAIN, Hello},
    },
    tls::{HubAddress, HubConnector, LiveCredentials, TcpDial, TlsMetrics},
    wire,
};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::sleep,
};

use super::{
    cores::UsedCores,
    facts,
    figure::Aim,
    hub::{HubProcess, Setup},
    report::Section,
};
use cluster::member::{self, Member};

/// Members that hoard. A lone one has two thirds of what all may have; these fill it.
const MEMBERS: usize = 4;
/// Exports of all of them.
const EXPORTS: usize = 8_000;
/// Exports of one message: it has a megabyte.
const MESSAGE_EXPORTS: usize = 16;
/// The memory limit of the hub's chart.
const LIMIT_BYTES: u64 = 1024 * 1024 * 1024;
/// What was sent to members is done by then.
const REST: Duration = Duration::from_secs(5);
/// Letters of the names of annotations.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The kinds of exports that are as large as they may be.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// One annotation that is long.
    Long,
    /// As many annotations as there may be.
    Many,
}

/// Fills a hub with each kind.
pub(super) async fn measure(setup: &Setup, sections: &mut Vec<Section>) -> anyhow::Result<()> {
    for (kind, name) in [(Kind::Long, "long"), (Kind::Many, "many")] {
        let mut section = Section::begin(format!("hoard, {EXPORTS} exports with {name} annotations"));
        let data = setup.data(&format!("hoard-{name}"))?;
        let hub = HubProcess::start(setup, &data, UsedCores::OwnCores).await?;
        let mut hoarding = Hoarding::begin(setup, &hub, Some(kind)).await?;
        let waiting = hoarding.reported().await?;
        let filled = peak(&hub, &mut section, "memory, filled").await?;
        hoarding.end().await;
        hub.kill().await?;
        let again = HubProcess::start(setup, &data, UsedCores::OwnCores).await?;
        let mut hoarding = Hoarding::begin(setup, &again, None).await?;
        hoarding.reported().await?;
        let restarted = peak(&again, &mut section, "memory, after a restart").await?;
        hoarding.end().await;
        again.kill().await?;
        section.figure("exports that wait at their agents", waiting as f64, "");
        sections.push(section);
        ensure!(
            waiting > 0,
            "all {EXPORTS} exports were taken: they prove nothing about a bound"
        );
        ensure!(
            filled.max(restarted) < LIMIT_BYTES,
            "the hub had {filled} bytes, and {restarted} after a restart: its chart allows {LIMIT_BYTES}"
        );
    }
    Ok(())
}

/// The hub's most memory so far.
async fn peak(hub: &HubProcess, section: &mut Section, name: &str) -> anyhow::Result<u64> {
    sleep(REST).await;
    let peak = hub.usage()?.resident_peak;
    println!("{name}: {:.0} MB", peak as f64 / 1e6);
    section.aimed(
        name,
        peak as f64 / 1e6,
        "MB",
        Aim::Below(LIMIT_BYTES as f64 / 1e6),
    );
    Ok(peak)
}

/// Members in session, each of which hears everything.
struct Hoarding {
    members: JoinSet<anyhow::Result<()>>,
    reported: mpsc::Receiver<usize>,
    over: watch::Sender<bool>,
}

impl Hoarding {
    /// Each reports its part of the exports, or nothing.
    async fn begin(setup: &Setup, hub: &HubProcess, kind: Option<Kind>) -> anyhow::Result<Self> {
        let (sender, reported) = mpsc::channel(MEMBERS);
        let (over, is_over) = watch::channel(false);
        let mut members = JoinSet::new();
        for number in 0..MEMBERS {
            let cluster = ClusterId::new(&format!("hoarder-{number}"))?;
            let member = session(&hub.address, setup.member(&cluster)?, &cluster).await?;
            let (sender, mut is_over) = (sender.clone(), is_over.clone());
            members.spawn(async move {
                tokio::select! {
                    _ = is_over.wait_for(|over| *over) => Ok(()),
                    hoarded = hoard(member, number, kind, sender) => hoarded,
                }
            });
        }
        Ok(Self {
            members,
            reported,
            over,
        })
    }

    /// Number of exports that wait, once everybody has reported and heard what others did.
    async fn reported(&mut self) -> anyhow::Result<usize> {
        let mut waiting = 0;
        for _ in 0..MEMBERS {
            tokio::select! {
                Some(ended) = self.members.join_next() => {
                    ended??;
                    bail!("a member ended before it had reported");
                }
                Some(more) = self.reported.recv() => waiting += more,
            }
        }
        sleep(REST).await;
        Ok(waiting)
    }

    async fn end(mut self) {
        self.over.send_replace(true);
        while self.members.join_next().await.is_some() {}
    }
}

/// A session of a member that may be told to wait.
async fn session(
    hub: &HubAddress,
    credentials: Arc<LiveCredentials>,
    cluster: &ClusterId,
) -> anyhow::Result<Member> {
    let connector = HubConnector::new(
        vec![hub.clone()],
        credentials,
        Arc::new(TcpDial),
        TlsMetrics::default(),
    );
    let channel = connector.connect_once().await?;
    let hello = Hello {
        features: FEATURE_REPORT_AGAIN,
        instance: format!("player-{}", std::process::id()).into(),
        ..member::hello(&format!("fingerprint-of-{cluster}"))
    };
    Ok(Member::introduce(channel, hello).await?.0)
}

/// Reports its exports, says how many wait, and hears what others export until it is dropped.
async fn hoard(
    mut member: Member,
    number: usize,
    kind: Option<Kind>,
    reported: mpsc::Sender<usize>,
) -> anyhow::Result<()> {
    if let Some(kind) = kind {
        let part = EXPORTS / MEMBERS;
        let mut left = number * part..(number + 1) * part;
        while !left.is_empty() {
            let exports = left
                .by_ref()
                .take(MESSAGE_EXPORTS)
                .map(|index| export(index, kind));
            member
                .report(exports.collect::<anyhow::Result<Vec<_>>>()?)
                .await?;
            member.settled().await?;
        }
        let listed = Observation::ListingCompleted(v1::ListingGroup::Exports.into());
        member.observe_next([listed]).await?;
        member.settled().await?;
    }
    reported.send(member.refused.len()).await?;
    loop {
        member.take_note().await?;
    }
}

/// An export that is as large as one may be.
fn export(index: usize, kind: Kind) -> anyhow::Result<Bytes> {
    let service = facts::service("hoard", index)?;
    let bytes = facts::export(&service, index, false);
    let Fact::ExportUpserted(export) = wire::decode_member_fact(bytes)?.fact else {
        bail!("it is no export")
    };
    let mut export = Arc::unwrap_or_clone(export);
    export.annotations = annotations(kind);
    let fact = wire::encode_fact(&Fact::ExportUpserted(export.into()));
    Ok(fact.bytes)
}

fn annotations(kind: Kind) -> Metadata {
    match kind {
        Kind::Long => [("long".into(), "x".repeat(EXPORTED_METADATA_BYTES_MAX - 4).into())].into(),
        Kind::Many => names().map(|name| (name, "".into())).collect(),
    }
}

/// As many names of three letters as there is room for.
fn names() -> impl Iterator<Item = Box<str>> {
    let letters = || LETTERS.iter().copied().map(char::from);
    let names = letters().flat_map(move |first| {
        letters().flat_map(move |second| {
            letters().map(move |third| [first, second, third].iter().collect::<String>().into())
        })
    });
    names.take(EXPORTED_METADATA_BYTES_MAX / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_are_as_large_as_a_hub_takes_them() {
        for kind in [Kind::Long, Kind::Many] {
            let bytes = export(7, kind).expect("an export");
            assert!(bytes.len() >= EXPORTED_METADATA_BYTES_MAX, "{kind:?}");
            wire::decode_member_fact(bytes).expect("a hub takes it");
        }
    }
}

//! Owns: shape losses: members that all export one service; one after the other goes without a word, and another member
//! says when it hears that the member is lost, when its endpoints go, and when they are back with it.
//! Never: says goodbye, or loses so many at one time that the hub takes its own network for the fault.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use bytes::Bytes;
use hdrhistogram::Histogram;
use prost::Message;
use proto::v1::{self, desired_item::Item};
use shared::model::{
    ClusterId,
    sync::{Namespaces, SourceState},
};
use tokio::{sync::mpsc, task::JoinSet, time::timeout};

use super::{
    cores::UsedCores,
    facts::{self, SliceTemplate},
    figure::Aim,
    hub::{HubProcess, Setup},
    player::{Heard, Memory, Player, Session},
    report::{Section, latencies},
    unbounded::apply_policy,
};

/// Members, and how many of them go: fewer than what self-preservation takes for a fault of the hub's.
const MEMBERS: usize = 50;
const LOST: usize = 10;
/// Between one that goes and the next.
const APART: Duration = Duration::from_millis(700);
/// Seconds from a member's last sign of life until its endpoints go.
const WITHDRAW_AFTER: u64 = 15;
/// Longest wait for anything that is heard.
const WAIT: Duration = Duration::from_secs(120);
/// Aims for noticing a loss, and for the accuracy of the withdrawal, in seconds.
const DETECTION_AIM: f64 = 10.0;
const WITHDRAWAL_AIM: f64 = 1.0;
/// Things heard that wait to be counted.
const HEARD_MAX: usize = 10_000;

/// The watching member's news of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    Lost,
    Withdrawn,
    Back,
}

impl News {
    fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Withdrawn => "withdrawn",
            Self::Back => "back",
        }
    }
}

type Told = (ClusterId, News, Instant);

/// Measures it.
pub(super) async fn measure(setup: &Setup) -> anyhow::Result<Section> {
    let mut section = Section::begin(format!("losses, {LOST} of {MEMBERS} members go without a word"));
    let data = setup.data("losses")?;
    let hub = HubProcess::start(setup, &data, UsedCores::OwnCores).await?;
    let policy = format!("loss: {{action: withdraw, after: {WITHDRAW_AFTER}s}}");
    apply_policy(setup, &hub, &policy).await?;
    let mut members = Vec::new();
    for number in 0..MEMBERS {
        let mut member = Playing::new(setup, number)?;
        member.connect(&hub).await?;
        members.push(member);
    }
    let (teller, mut told) = mpsc::channel(HEARD_MAX);
    let watching = watch(setup, &hub, teller).await?;
    let mut staying = JoinSet::new();
    for member in members.split_off(LOST) {
        staying.spawn(member.stay());
    }
    let mut went = BTreeMap::new();
    for member in &mut members {
        went.insert(member.player.cluster.clone(), member.go().await?);
        tokio::time::sleep(APART).await;
    }
    let mut noticed = latencies()?;
    let mut early = 0.0_f64;
    let mut late = 0.0_f64;
    let news = hear(&mut told, News::Withdrawn, LOST).await?;
    for (cluster, gone) in &went {
        let after = |what: News| {
            let at = news.get(&(cluster.clone(), what));
            let at = at.with_context(|| format!("{cluster} was never told as {}", what.name()))?;
            anyhow::Ok(at.saturating_duration_since(*gone))
        };
        noticed.saturating_record(after(News::Lost)?.as_micros() as u64);
        let off = after(News::Withdrawn)?.as_secs_f64() - WITHDRAW_AFTER as f64;
        (early, late) = (early.min(off), late.max(off));
    }
    let mut back = latencies()?;
    for member in &mut members {
        let came = Instant::now();
        member.connect(&hub).await?;
        let news = hear(&mut told, News::Back, 1).await?;
        let at = news.values().next().context("nobody is back")?;
        back.saturating_record(at.saturating_duration_since(came).as_micros() as u64);
    }
    describe(&mut section, &noticed, (early, late), &back);
    watching.abort();
    staying.shutdown().await;
    hub.kill().await?;
    Ok(section)
}

fn describe(
    section: &mut Section,
    noticed: &Histogram<u64>,
    (early, late): (f64, f64),
    back: &Histogram<u64>,
) {
    let seconds = |micros: u64| micros as f64 / 1e6;
    section.figure(
        "last sign of life to the news of a loss, median",
        seconds(noticed.value_at_quantile(0.5)),
        "s",
    );
    let slowest = seconds(noticed.max());
    section.aimed(
        "last sign of life to the news of a loss, slowest",
        slowest,
        "s",
        Aim::Below(DETECTION_AIM),
    );
    section.figure("endpoints go, before the policy's time at most", early.abs(), "s");
    let off = late.max(-early);
    section.aimed(
        "endpoints go, off the policy's time at most",
        off,
        "s",
        Aim::Below(WITHDRAWAL_AIM),
    );
    section.figure(
        "connecting to endpoints that are back, median",
        back.value_at_quantile(0.5) as f64 / 1e3,
        "ms",
    );
    section.figure(
        "connecting to endpoints that are back, slowest",
        back.max() as f64 / 1e3,
        "ms",
    );
    section.note(format!(
        "the policy withdraws {WITHDRAW_AFTER} s after the last sign of life; a member that goes was acknowledged a report \
         just before; heard by another member"
    ));
}

/// A member that exports what all do.
struct Playing {
    player: Player,
    export: Bytes,
    slice: SliceTemplate,
    /// Its slice's number: each report is another one.
    number: u32,
    session: Option<Session>,
}

impl Playing {
    fn new(setup: &Setup, number: usize) -> anyhow::Result<Self> {
        let cluster = ClusterId::new(&format!("member-{number:04}"))?;
        let service = facts::service("shop", 0)?;
        Ok(Self {
            player: Player {
                credentials: setup.member(&cluster)?,
                interest: Namespaces::Only(Default::default()),
                takes_differences: false,
                cluster,
            },
            export: facts::export(&service, number, false),
            slice: SliceTemplate::new(&service, &format!("cart-{number:05}"), 1),
            number: 0,
            session: None,
        })
    }

    fn facts(&self) -> Vec<Bytes> {
        vec![self.export.clone(), self.slice.numbered(self.number)]
    }

    async fn connect(&mut self, hub: &HubProcess) -> anyhow::Result<()> {
        let memory = Memory::default();
        let mut session = self.player.connect_again(&hub.address, &memory).await?;
        session.list(self.facts(), |_| ()).await?;
        self.session = Some(session);
        Ok(())
    }

    /// Lets the session end without a goodbye, as a cut power line does; when the hub last heard of it.
    async fn go(&mut self) -> anyhow::Result<Instant> {
        let mut session = self.session.take().context("it is in session")?;
        self.number += 1;
        session.report(vec![self.slice.numbered(self.number)]).await?;
        while session.acknowledged() < session.sent() {
            session.hear().await?;
        }
        Ok(Instant::now())
    }

    /// Stays in session until it is ended.
    async fn stay(self) -> anyhow::Result<()> {
        let mut session = self.session.context("it is in session")?;
        loop {
            session.hear().await?;
        }
    }
}

/// A member that exports nothing and hears everything.
async fn watch(
    setup: &Setup,
    hub: &HubProcess,
    teller: mpsc::Sender<Told>,
) -> anyhow::Result<tokio::task::JoinHandle<anyhow::Result<()>>> {
    let cluster = ClusterId::new("watching")?;
    let player = Player {
        credentials: setup.member(&cluster)?,
        interest: Namespaces::All,
        takes_differences: false,
        cluster,
    };
    let mut session = player.connect(&hub.address).await?;
    let mut begun = false;
    let complete = |heard: &Heard| matches!(heard, Heard::SnapshotComplete);
    session
        .list(Vec::new(), |heard| begun |= complete(&heard))
        .await?;
    Ok(tokio::spawn(async move {
        loop {
            let heard = session.hear().await?;
            let at = Instant::now();
            begun |= complete(&heard);
            for (cluster, news) in news(&heard)? {
                // What is there at first is no news.
                if begun {
                    teller.send((cluster, news, at)).await?;
                }
            }
        }
    }))
}

fn news(heard: &Heard) -> anyhow::Result<Vec<(ClusterId, News)>> {
    let mut told = Vec::new();
    match heard {
        Heard::Sources(sources) => {
            let lost = sources.iter().filter(|source| source.state == SourceState::Lost);
            told.extend(lost.map(|source| (source.cluster.clone(), News::Lost)));
        }
        Heard::Desired(items) => {
            for item in items {
                let item =
                    v1::DesiredItem::decode(item.clone()).context("the hub pushed what is no object")?;
                let (key, news) = match item.item {
                    Some(Item::ImportedSlice(slice)) => (slice.key, News::Back),
                    Some(Item::ImportedSliceRemoved(key)) => (Some(key), News::Withdrawn),
                    _ => continue,
                };
                let key = key.context("a slice has a key")?;
                told.push((ClusterId::new(&key.source_cluster)?, news));
            }
        }
        _ => {}
    }
    Ok(told)
}

/// Hears until so many members were told as this; the first time of each word counts.
async fn hear(
    told: &mut mpsc::Receiver<Told>,
    wanted: News,
    count: usize,
) -> anyhow::Result<BTreeMap<(ClusterId, News), Instant>> {
    let mut all = BTreeMap::new();
    while all.keys().filter(|(_, news)| *news == wanted).count() < count {
        let heard = timeout(WAIT, told.recv()).await;
        let heard = heard.with_context(|| format!("not {count} members are told as {}", wanted.name()))?;
        let (cluster, news, at) = heard.context("the watching member's session ended")?;
        all.entry((cluster, news)).or_insert(at);
    }
    ensure!(all.len() < HEARD_MAX, "more was heard than can be told apart");
    Ok(all)
}

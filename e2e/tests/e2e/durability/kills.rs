//! Owns: a hub killed again and again while two members report: the acknowledged prefix is there, the chain holds.
//! Never: kills in an orderly way. TRIBUTARY_KILL_ROUNDS sets how often (default 10).

use super::member::{self, Session};
use anyhow::{Context, ensure};
use proto::v1;
use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tributary_e2e::world::{Backend, World};

/// How often the hub is killed, unless the environment says otherwise.
const ROUNDS: u64 = 10;
/// Facts a member has under way.
const WINDOW: u64 = 64;
/// Acknowledged facts after which the hub is killed, at most.
const ACKNOWLEDGED_MAX: u64 = 400;
/// Events in one page.
const PAGE: u32 = 1_000;
/// How long a round may take to acknowledge enough.
const ROUND_WAIT: Duration = Duration::from_secs(60);
const MEMBERS: [&str; 2] = ["east", "west"];

/// Sequence numbers up to the value were acknowledged, by the session's number.
type Acknowledged = BTreeMap<u64, u64>;

pub(super) async fn nothing_acknowledged_is_lost() -> anyhow::Result<()> {
    let rounds = match env::var("TRIBUTARY_KILL_ROUNDS") {
        Ok(text) => text.parse().context("TRIBUTARY_KILL_ROUNDS is a number")?,
        Err(_) => ROUNDS,
    };
    let dir = tempfile::tempdir()?;
    let mut world = World::without_agents(dir.path(), &Backend::Simulated, &MEMBERS).await?;
    let (mut next_revision, mut epoch, mut found, mut numbers) = (1, None, 0, 1_u32);
    for round in 0..rounds {
        // Spread over the whole range, differently in each round.
        let kill_after = 1 + round * 7_919 % ACKNOWLEDGED_MAX;
        let acknowledged = report_until_killed(&mut world, round, kill_after, &mut numbers).await?;
        world
            .start_hub()
            .await
            .with_context(|| format!("round {round}"))?;
        let page = events(&world, next_revision)
            .await
            .with_context(|| format!("round {round}"))?;
        ensure!(
            *epoch.get_or_insert(page.epoch.clone()) == page.epoch,
            "round {round}: a new epoch began"
        );
        found += check(round, next_revision, &page.events, &acknowledged)?;
        next_revision += page.events.len() as u64;
    }
    world.kill_hub().await?;
    let report = hub::log::verify(&world.data(), &mut |_| {})?;
    ensure!(report.is_good(), "the chain does not hold: {report:?}");
    println!(
        "{found} acknowledged facts found again after {rounds} kills, {} events verified",
        next_revision - 1
    );
    Ok(())
}

/// All members report at once; the hub is killed once so many facts are acknowledged.
async fn report_until_killed(
    world: &mut World,
    round: u64,
    kill_after: u64,
    numbers: &mut u32,
) -> anyhow::Result<Acknowledged> {
    let total = Arc::new(AtomicU64::new(0));
    let mut members = tokio::task::JoinSet::new();
    for name in MEMBERS {
        member::cluster(name)?;
        let session = Session::open(world, name, 1 + i64::try_from(round)?).await?;
        // Numbers of its own, so that no fact equals an earlier one.
        let first = *numbers;
        *numbers += 100_000;
        members.spawn(report(session, first, total.clone()));
    }
    let enough = async {
        while total.load(Ordering::Relaxed) < kill_after {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let waited = tokio::time::timeout(ROUND_WAIT, enough).await;
    waited.with_context(|| format!("round {round}: fewer than {kill_after} facts were acknowledged"))?;
    world.kill_hub().await?;
    members.join_all().await.into_iter().collect()
}

/// Reports until the session breaks, and says what was acknowledged by then.
async fn report(mut session: Session, first: u32, total: Arc<AtomicU64>) -> anyhow::Result<(u64, u64)> {
    let mut number = first;
    let mut before = 0;
    let mut broken = session.report(member::export()?).await.is_err();
    while !broken {
        while !broken && session.sent() - session.acknowledged() < WINDOW {
            broken = session.report(member::change(number)?).await.is_err();
            number += 1;
        }
        broken |= session.hear().await.is_err();
        total.fetch_add(session.acknowledged() - before, Ordering::Relaxed);
        before = session.acknowledged();
    }
    Ok((session.number, session.acknowledged()))
}

/// A part of the log, and which epoch it is of.
struct Page {
    epoch: String,
    events: Vec<v1::Event>,
}

/// Every event from a revision on, as an operator reads them.
async fn events(world: &World, from_revision: u64) -> anyhow::Result<Page> {
    let mut log = world.inspect().await?.log;
    let (mut events, mut next) = (Vec::new(), from_revision);
    loop {
        let request = v1::ListEventsRequest {
            from_revision: next,
            limit: PAGE,
            ..Default::default()
        };
        let page = log.list(request).await?.into_inner();
        events.extend(page.events);
        match page.next_revision {
            0 => {
                return Ok(Page {
                    epoch: page.epoch,
                    events,
                });
            }
            further => next = further,
        }
    }
}

/// Revisions are gapless, and each acknowledged fact that changed something is an event. Returns how many.
fn check(round: u64, first: u64, events: &[v1::Event], acknowledged: &Acknowledged) -> anyhow::Result<u64> {
    for (expected, event) in (first..).zip(events) {
        ensure!(
            event.revision == expected,
            "round {round}: {} where {expected} belongs",
            event.revision
        );
    }
    let recorded: BTreeSet<_> = events
        .iter()
        .map(|event| (event.session, event.member_sequence))
        .collect();
    let mut found = 0;
    for (&session, &last) in acknowledged {
        // The export stands first and is news only in the first round.
        let from = if round == 0 { 1 } else { 2 };
        for sequence in from..=last {
            ensure!(
                recorded.contains(&(session, sequence)),
                "round {round}: fact {sequence} of session {session} was acknowledged and is not in the log"
            );
            found += 1;
        }
    }
    Ok(found)
}

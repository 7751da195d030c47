//! The contract of engines over real etcd of one member and of three, and what a client does about a member that is gone.

use anyhow::{Context, ensure};
use cluster::real::etcd::Etcd;
use etcd_engine::{EtcdEngine, EtcdSettings};
use libtest_mimic::Trial;
use replication::{
    engine::{Answer, Commit, Keys, LogName, Request},
    testing::suite::{CASES, ask, batch, first_head},
};
use shared::model::Clusterset;
use tokio::runtime::Handle;
use tributary_e2e::suite::{SCENARIO_WAIT, test_with_own_clusters};

/// Requests that may fail until the first answer: members elect a leader first.
const FIRST_ANSWER_TRIES: usize = 100;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test_with_own_clusters("real::engine::one_etcd_keeps_the_contract", SCENARIO_WAIT, || {
            contract(1)
        }),
        test_with_own_clusters(
            "real::engine::three_etcd_keep_the_contract",
            SCENARIO_WAIT,
            || contract(3),
        ),
        test_with_own_clusters(
            "real::engine::a_member_that_is_gone_is_left_for_the_next",
            SCENARIO_WAIT,
            a_member_goes,
        ),
    ]
}

fn settings(etcd: &Etcd) -> EtcdSettings {
    EtcdSettings {
        endpoints: etcd.endpoints(),
        tls: None,
        compacts: true,
    }
}

/// A client of a log that nobody else has.
fn client(settings: &EtcdSettings, set: &str) -> anyhow::Result<EtcdEngine> {
    let keys = Keys::new(&Clusterset::new("example.org", set)?, LogName::Events);
    Ok(EtcdEngine::new(settings, keys, Handle::current())?)
}

/// Asks until something is answered.
fn first_answer(engine: &EtcdEngine) -> anyhow::Result<()> {
    let mut last = None;
    for _ in 0..FIRST_ANSWER_TRIES {
        match ask(engine, Request::Read { from: None }) {
            Ok(_) => return Ok(()),
            other => last = Some(other),
        }
    }
    anyhow::bail!("etcd never answered: {last:?}")
}

fn keep_the_contract(settings: &EtcdSettings) -> anyhow::Result<()> {
    first_answer(&client(settings, "first")?)?;
    for (number, (name, case)) in CASES.into_iter().enumerate() {
        println!("{name}");
        case(&client(settings, &format!("case-{number}"))?);
    }
    Ok(())
}

/// Cases wait for answers on a thread of their own, while this runtime sends requests.
async fn off_the_runtime(work: impl FnOnce() -> anyhow::Result<()> + Send + 'static) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(work)
        .await
        .context("the cases ended")?
}

async fn contract(members: usize) -> anyhow::Result<()> {
    let etcd = Etcd::start(members).await?;
    let settings = settings(&etcd);
    off_the_runtime(move || keep_the_contract(&settings)).await
}

async fn a_member_goes() -> anyhow::Result<()> {
    let mut etcd = Etcd::start(3).await?;
    let settings = settings(&etcd);
    off_the_runtime(move || {
        let engine = client(&settings, "default")?;
        first_answer(&engine)?;
        let mut head = first_head("hub-0", 1);
        let begin = Commit {
            expected: None,
            ..Commit::seal(head.clone(), head.clone())
        };
        ask(&engine, begin.into())?;
        etcd.stop(0);
        for number in 0..20u8 {
            let commit = Commit::append(&head, batch(&head, &[&[number]]));
            head = commit.next.clone();
            // As a leader does: the same bytes until the engine says what the head is.
            let answered = (0..FIRST_ANSWER_TRIES).find_map(|_| ask(&engine, commit.clone().into()).ok());
            let answered = answered.context("no member answered")?;
            let is_there = answered == Answer::Committed || answered == Answer::HeadIs(Some(head.clone()));
            ensure!(is_there, "commit {number}: {answered:?}");
        }
        Ok(())
    })
    .await
}

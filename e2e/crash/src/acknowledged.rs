//! Owns: members that report facts until the hub goes down, what was acknowledged to them, and whether it is there.
//! Never: kills anybody.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, ensure};
use bytes::Bytes;
use shared::model::sync::Hello;
use tokio::{sync::watch, task::JoinSet};

use super::facts;
use cluster::{
    clusterset::{LocalClusterset, questions::epoch_and_events},
    member::{Member, hello},
};

/// Facts that a member has under way.
const WINDOW: u64 = 64;
/// Numbers that one session may use up.
const NUMBERS: u32 = 100_000;
/// Time until enough is acknowledged.
const ENOUGH_WAIT: Duration = Duration::from_secs(60);

/// Makes the `number`th fact.
pub type Facts = fn(u32) -> anyhow::Result<Bytes>;

/// Sequence numbers up to the value were acknowledged, by the session's number.
type Acknowledged = BTreeMap<u64, u64>;

/// The reporters, and the position read in the log.
pub struct Reporters {
    names: Vec<String>,
    facts: Facts,
    sessions: u32,
    next_revision: u64,
    epoch: Option<String>,
}

/// Sessions that report, until the hub is gone.
pub struct Reporting {
    total: watch::Receiver<u64>,
    members: JoinSet<anyhow::Result<(u64, u64)>>,
}

impl Reporters {
    /// Members with these certificates, which report these facts.
    pub fn new(names: &[&str], facts: Facts) -> Self {
        Self {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            facts,
            sessions: 0,
            next_revision: 1,
            epoch: None,
        }
    }

    /// All of them begin to report.
    pub async fn start(&mut self, clusterset: &LocalClusterset) -> anyhow::Result<Reporting> {
        let (adding, total) = watch::channel(0);
        let mut members = JoinSet::new();
        for name in &self.names {
            self.sessions += 1;
            // Higher at each start, as with a restarted agent.
            let hello = Hello {
                lease_transitions: self.sessions.into(),
                ..hello(&format!("kube-system-of-{name}"))
            };
            let member = Member::open(clusterset, name, hello).await?;
            // Numbers of its own, so that no fact equals an earlier one.
            let first = self.sessions.wrapping_mul(NUMBERS);
            members.spawn(report(member, self.facts, first, adding.clone()));
        }
        Ok(Reporting { total, members })
    }

    /// Reads what the log has beyond what was read before: revisions are gapless, the epoch is the same, and each
    /// acknowledged fact is an event. Returns how many acknowledged facts were found so.
    pub async fn check(
        &mut self,
        clusterset: &LocalClusterset,
        acknowledged: &Acknowledged,
    ) -> anyhow::Result<u64> {
        let (epoch, events) = epoch_and_events(clusterset, self.next_revision).await?;
        let before = self.epoch.get_or_insert_with(|| epoch.clone());
        ensure!(*before == epoch, "a new epoch began: {before}, now {epoch}");
        for (expected, event) in (self.next_revision..).zip(&events) {
            let found = event.revision;
            ensure!(found == expected, "revision {found} where {expected} belongs");
        }
        self.next_revision += events.len() as u64;
        let recorded: BTreeSet<_> = events
            .iter()
            .map(|event| (event.session, event.member_sequence))
            .collect();
        let mut found = 0;
        for (&session, &last) in acknowledged {
            // The export stands first in every session and is news only once.
            for sequence in 2..=last {
                ensure!(
                    recorded.contains(&(session, sequence)),
                    "fact {sequence} of session {session} was acknowledged and is not in the log"
                );
                found += 1;
            }
        }
        Ok(found)
    }

    /// Number of events read so far.
    pub fn events(&self) -> u64 {
        self.next_revision - 1
    }
}

impl Reporting {
    /// Waits until so many facts were acknowledged.
    pub async fn acknowledged(&self, count: u64) -> anyhow::Result<()> {
        let mut total = self.total.clone();
        let enough = total.wait_for(|total| *total >= count);
        let waited = tokio::time::timeout(ENOUGH_WAIT, enough).await;
        let too_few = || format!("fewer than {count} facts were acknowledged");
        // The senders go when every session has broken.
        waited.with_context(too_few)?.with_context(too_few)?;
        Ok(())
    }

    /// Waits until every session broke, and says what was acknowledged by then.
    pub async fn ended(self) -> anyhow::Result<Acknowledged> {
        self.members.join_all().await.into_iter().collect()
    }
}

/// Reports until the session breaks, and says what was acknowledged by then.
async fn report(
    mut member: Member,
    facts: Facts,
    first: u32,
    total: watch::Sender<u64>,
) -> anyhow::Result<(u64, u64)> {
    let mut number = first;
    let mut before = 0;
    let mut broken = member.report([facts::export()?]).await.is_err();
    while !broken {
        while !broken && member.sequence - member.acknowledged < WINDOW {
            broken = member.report([facts(number)?]).await.is_err();
            number = number.wrapping_add(1);
        }
        broken |= member.hear().await.is_err();
        let more = member.acknowledged - before;
        total.send_modify(|total| *total += more);
        before = member.acknowledged;
    }
    Ok((member.session, member.acknowledged))
}

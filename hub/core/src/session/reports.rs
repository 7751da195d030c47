//! Owns: what members say of themselves that is never recorded, in this hub process's life: the agent's version, and
//! how far the cluster has come. Shown to people and to Prometheus.
//! Never: is read for a decision.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::{ClusterId, SessionId};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::{Registry, Unit},
};

use super::applied::Standing;
use crate::{
    arrival::{Word, Words},
    clock::Clock,
};

/// A member's last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The version of its agent.
    pub agent_version: Box<str>,
    /// Progress of its cluster; `None`: its agent does not report it.
    pub standing: Option<Standing>,
    /// The session that said so.
    session: SessionId,
    /// True while that session is open.
    open: bool,
}

/// The reports of all members, one for each id that was admitted. Clones are the same.
#[derive(Debug, Clone)]
pub struct Reports {
    clock: Clock,
    members: Arc<Mutex<BTreeMap<ClusterId, Report>>>,
    words: Arc<Mutex<Arc<Words>>>,
}

/// One session's place among the reports, until it is dropped.
#[derive(Debug)]
pub(super) struct Reporting {
    reports: Reports,
    cluster: ClusterId,
    session: SessionId,
    told: Option<Standing>,
    said: Option<Word>,
}

impl Reports {
    /// No reports yet, by this clock.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            members: Arc::default(),
            words: Arc::default(),
        }
    }

    /// Adds what is computed at each scrape: how long the oldest of all waits, and how much is parked.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    /// A session was admitted.
    pub(super) fn admitted(
        &self,
        cluster: ClusterId,
        session: SessionId,
        agent_version: Box<str>,
    ) -> Reporting {
        let report = Report {
            agent_version,
            standing: None,
            session,
            open: true,
        };
        self.lock().insert(cluster.clone(), report);
        Reporting {
            reports: self.clone(),
            cluster,
            session,
            told: None,
            said: None,
        }
    }

    /// A member's last report.
    pub fn of(&self, cluster: &ClusterId) -> Option<Report> {
        self.lock().get(cluster).cloned()
    }

    /// The last report of each member on its cluster. It outlives their sessions: a cluster keeps what it
    /// holds.
    pub fn words(&self) -> Arc<Words> {
        self.lock_words().clone()
    }

    fn lock_words(&self) -> MutexGuard<'_, Arc<Words>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, by the clock of the reports.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClusterId, Report>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sums up the reports of members with a session: parked services, since when the first one is parked, and since
    /// when the oldest change waits.
    fn together(&self) -> (u64, Option<u64>, Option<u64>) {
        let members = self.lock();
        let open = members.values().filter(|report| report.open);
        let standings: Vec<Standing> = open.filter_map(|report| report.standing).collect();
        let parked = standings.iter().map(|standing| u64::from(standing.parked)).sum();
        let parked_since = standings
            .iter()
            .filter_map(|standing| standing.parked_since)
            .min();
        let waits_since = standings.iter().filter_map(|standing| standing.waits_since).min();
        (parked, parked_since, waits_since)
    }
}

impl Reporting {
    /// The session knows this now.
    pub(super) fn stands(&mut self, standing: Option<Standing>) {
        if self.told == standing {
            return;
        }
        self.told = standing;
        self.change(|report| report.standing = standing);
    }

    /// The session heard this of what stands.
    pub(super) fn says(&mut self, word: Option<Word>) {
        if word.is_none() || self.said == word {
            return;
        }
        self.said.clone_from(&word);
        let members = self.reports.lock();
        let current = members.get(&self.cluster).map(|report| report.session);
        if let (Some(word), true) = (word, current == Some(self.session)) {
            let mut words = self.reports.lock_words();
            let words = Arc::make_mut(&mut words);
            words.version += 1;
            words.members.insert(self.cluster.clone(), word);
        }
    }

    /// A session that took over has a report of its own.
    fn change(&self, change: impl FnOnce(&mut Report)) {
        let mut members = self.reports.lock();
        let report = members.get_mut(&self.cluster);
        if let Some(report) = report.filter(|report| report.session == self.session) {
            change(report);
        }
    }
}

impl Drop for Reporting {
    fn drop(&mut self) {
        self.change(|report| report.open = false);
    }
}

impl Collector for Reports {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let (parked, parked_since, waits_since) = self.together();
        let now = self.now();
        let seconds = |since: Option<u64>| {
            let millis = since.map_or(0, |since| now.saturating_sub(since));
            millis as f64 / 1e3
        };
        let unit = Some(&Unit::Seconds);
        let gauge = ConstGauge::new(i64::try_from(parked).unwrap_or(i64::MAX));
        let help = "Services that members in session cannot bring to what they were sent: refused, fought over, or under \
                    a taken name";
        let name = "applied_parked";
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        let gauge = ConstGauge::new(seconds(parked_since));
        let help = "How long the first of them has been parked; 0: none is";
        let name = "applied_oldest_parked";
        gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)?;
        let gauge = ConstGauge::new(seconds(waits_since));
        let help = "How long the oldest recorded change waits that a member in session was sent and does not say to have \
                    applied; 0: none does";
        let name = "applied_oldest_waiting";
        gauge.encode(encoder.encode_descriptor(name, help, unit, gauge.metric_type())?)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn east() -> ClusterId {
        ClusterId::new("east").expect("valid")
    }

    fn parked(parked: u32) -> Option<Standing> {
        Some(Standing {
            parked,
            parked_since: Some(0),
            ..Standing::default()
        })
    }

    #[test]
    fn the_last_word_of_a_member_outlives_its_session_and_no_session_speaks_for_the_next() {
        let reports = Reports::new(Clock::start());
        assert_eq!(reports.of(&east()), None);
        let mut old = reports.admitted(east(), SessionId(1), "1".into());
        old.stands(parked(3));
        assert_eq!(reports.together().0, 3);
        let new = reports.admitted(east(), SessionId(2), "2".into());
        old.stands(parked(4));
        drop(old);
        let report = reports.of(&east()).expect("admitted");
        assert_eq!((&*report.agent_version, report.standing), ("2", None));
        assert!(report.open);
        drop(new);
        assert_eq!(reports.of(&east()).map(|report| report.open), Some(false));
    }

    #[test]
    fn whoever_has_no_session_counts_for_no_gauge() {
        let reports = Reports::new(Clock::start());
        let mut reporting = reports.admitted(east(), SessionId(1), "1".into());
        reporting.stands(parked(3));
        drop(reporting);
        assert_eq!(reports.together(), (0, None, None));
        assert_eq!(reports.of(&east()).and_then(|report| report.standing), parked(3));
    }

    #[test]
    fn what_is_known_is_in_the_metrics() {
        let mut registry = Registry::default();
        let reports = Reports::new(Clock::start());
        reports.register(&mut registry);
        let mut reporting = reports.admitted(east(), SessionId(1), "1".into());
        reporting.stands(parked(3));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("encoded");
        for line in [
            "applied_parked 3",
            "applied_oldest_parked_seconds ",
            "applied_oldest_waiting_seconds 0",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}

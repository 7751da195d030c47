//! Owns: the law on Leases of sources, as somebody sees it who has nothing but the clusters' own records: nothing is
//! removed by a Lease unless the agent that removes it has seen that Lease stand still for its whole time, look by look,
//! and could write itself all that time; never under `retain`; and nothing of a source that its own session confirms.
//! Never: uses the agent's own judge.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use agent_engine::{
    expiry::upkeep::{OnHubLoss, Settings},
    lease::machine::PACE_ERROR_PERCENT_MAX,
};
use api::names::{ANNOTATION_ON_EXPIRY, LABEL_SOURCE_CLUSTER, SOURCE_LEASE_PREFIX};
use model::ClusterId;
use serde_json::Value;

use oracle::{
    is_ours,
    laws::{Guarded, Law},
};
use sim::{Entry, SimCluster};

/// Duration of a renewal in a world.
const DURATION: Duration = Duration::from_secs(12);
/// Renewal interval in a world.
const RENEW: Duration = Duration::from_secs(4);
/// Looks that may be missed before what was not seen counts: one more than the agent allows itself, for clocks differ.
const MISSED_LOOKS: u64 = 4;

/// Settings of the Leases of a world.
pub(super) fn settings(expires: bool) -> Settings {
    Settings {
        duration: DURATION,
        renew: RENEW,
        on_hub_loss: if expires {
            OnHubLoss::Expire
        } else {
            OnHubLoss::Retain
        },
    }
}

/// Interval of an agent's looks at them, in milliseconds.
pub(super) fn look_every() -> u64 {
    u64::try_from(settings(false).look_every().as_millis()).unwrap_or(u64::MAX)
}

/// A Lease in one version.
type Version = (String, String);

/// One agent's observations of the Leases of sources. Times are the world's, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Eyes {
    looked: Option<u64>,
    /// In which version it saw each, and since when.
    since: BTreeMap<String, (String, u64)>,
    /// Time of its own last write of any Lease.
    wrote: Option<u64>,
    /// Those that stood still for a whole time once, and have not moved since.
    over: BTreeMap<String, String>,
}

/// The state before a look: the Leases, with version and content, and the objects that may go.
pub(super) struct Before {
    leases: BTreeMap<String, Arc<Value>>,
    slices: BTreeMap<(String, String), Arc<Value>>,
}

impl Before {
    pub(super) fn of(cluster: &SimCluster) -> Self {
        let place = |object: &Value| {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
            (text("namespace"), text("name"))
        };
        let leases = cluster
            .objects("Lease")
            .into_iter()
            .map(|lease| (place(&lease).1, lease));
        let slices = cluster.objects("EndpointSlice").into_iter();
        Self {
            leases: leases
                .filter(|(name, _)| name.starts_with(SOURCE_LEASE_PREFIX))
                .collect(),
            slices: slices
                .filter(|slice| is_ours(slice))
                .map(|slice| (place(&slice), slice))
                .collect(),
        }
    }

    fn version(&self, name: &str) -> Option<Version> {
        let version = self.leases.get(name)?["metadata"]["resourceVersion"].as_str()?;
        Some((name.to_owned(), version.to_owned()))
    }
}

impl Eyes {
    /// The agent has looked `now`, if its listing was answered; what it then removed is judged.
    pub(super) fn look(
        &mut self,
        (name, cluster, confirmed): (&ClusterId, &SimCluster, &BTreeSet<ClusterId>),
        (before, entries): (&Before, &[Entry]),
        now: u64,
        guarded: &mut Guarded,
    ) -> Result<(), String> {
        let listed = |entry: &Entry| entry.verb == "list" && entry.resource == "leases" && entry.code < 300;
        if !entries.iter().any(listed) {
            return Ok(());
        }
        let is_long_ago = |at: u64| now - at > MISSED_LOOKS * look_every();
        let wrote = |entry: &Entry| entry.is_write() && entry.resource == "leases" && entry.code < 300;
        if entries.iter().any(wrote) {
            self.wrote = Some(now);
        }
        let could_write = self.wrote.is_some_and(|at| !is_long_ago(at));
        if self.looked.replace(now).is_some_and(is_long_ago) || !could_write {
            self.since.clear();
        }
        self.since.retain(|name, _| before.leases.contains_key(name));
        for (lease, version) in before.leases.keys().filter_map(|lease| before.version(lease)) {
            match self.since.get(&lease) {
                Some((seen, _)) if *seen == version => {}
                _ => drop(self.since.insert(lease, (version, now))),
            }
        }
        self.note_who_is_over(now);
        let removed = entries.iter().filter(|entry| {
            entry.is_write() && entry.resource != "leases" && entry.resource != "events" && entry.code < 300
        });
        for entry in removed {
            guarded.count(Law::Still, 1);
            self.judge(before, entry, confirmed, now).map_err(|why| {
                Law::Still.broken(format!(
                    "{} {} {}/{} in {}: {why}",
                    entry.verb, entry.resource, entry.namespace, entry.name, name
                ))
            })?;
        }
        self.wrote((before, &Before::of(cluster)), entries, now);
        Ok(())
    }

    /// A Lease that stood still for its whole time is over until it moves, whether anything had to go by it then or not.
    fn note_who_is_over(&mut self, now: u64) {
        let since = &self.since;
        self.over
            .retain(|name, version| since.get(name).is_some_and(|(seen, _)| seen == version));
        let over = since
            .iter()
            .filter(|(_, (_, since))| u128::from(now - since) >= whole_time());
        let over = over.map(|(name, (version, _))| (name.clone(), version.clone()));
        self.over.extend(over);
    }

    /// An agent has seen its own writes. A request that makes a Lease does not name it.
    fn wrote(&mut self, (before, after): (&Before, &Before), entries: &[Entry], now: u64) {
        let written = entries
            .iter()
            .filter(|entry| entry.is_write() && entry.resource == "leases" && entry.code < 300);
        let makes = written.clone().any(|entry| entry.verb == "create");
        let is_new = |name: &&String| makes && !before.leases.contains_key(*name);
        let made = after.leases.keys().filter(is_new);
        let names = written.map(|entry| &entry.name).chain(made);
        for (name, version) in names.filter_map(|name| after.version(name)) {
            self.since.insert(name, (version, now));
        }
    }

    /// A slice goes by the Lease of its source; what is left empty by any that is over.
    fn judge(
        &self,
        before: &Before,
        entry: &Entry,
        confirmed: &BTreeSet<ClusterId>,
        now: u64,
    ) -> Result<(), String> {
        if entry.resource != "endpointslices" {
            let names: Vec<String> = before.leases.keys().cloned().collect();
            let mut reasons = names.iter().map(|name| self.stood_still(before, name, now));
            return if reasons.any(|reason| reason.is_ok()) {
                Ok(())
            } else {
                Err("no Lease is over".to_owned())
            };
        }
        let place = (entry.namespace.clone(), entry.name.clone());
        let slice = before.slices.get(&place).ok_or("it is no slice of an agent's")?;
        let source = slice["metadata"]["labels"][LABEL_SOURCE_CLUSTER]
            .as_str()
            .unwrap_or_default();
        if confirmed.iter().any(|confirmed| confirmed.as_str() == source) {
            return Err(format!("the hub confirms {source} over this agent's own session"));
        }
        self.stood_still(before, &format!("{SOURCE_LEASE_PREFIX}{source}"), now)
    }

    fn stood_still(&self, before: &Before, name: &str, now: u64) -> Result<(), String> {
        let (_, version) = before
            .version(name)
            .ok_or_else(|| format!("there is no {name}"))?;
        let says = before.leases[name]["metadata"]["annotations"][ANNOTATION_ON_EXPIRY].as_str();
        if !matches!(says, Some("withdraw" | "notReady")) {
            return Err(format!("{name} says {}", says.unwrap_or("nothing")));
        }
        if self.over.get(name) == Some(&version) {
            return Ok(());
        }
        let since = self.since.get(name).map_or(now, |(_, since)| *since);
        Err(format!(
            "{name} was seen to stand still for {} ms only",
            now - since
        ))
    }
}

/// The whole time of a Lease, in milliseconds. By a clock that is too fast it is over sooner.
fn whole_time() -> u128 {
    DURATION.as_millis() * 100 / u128::from(100 + PACE_ERROR_PERCENT_MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use sim::SimConfig;

    const LEASE: &str = "tributary-source-west";

    /// The Lease of a source in this version, and a slice of it.
    fn standing(version: &str) -> Before {
        let lease = json!({"metadata": {
            "name": LEASE,
            "resourceVersion": version,
            "annotations": {ANNOTATION_ON_EXPIRY: "withdraw"},
        }});
        let slice = json!({"metadata": {"labels": {LABEL_SOURCE_CLUSTER: "west"}}});
        Before {
            leases: [(LEASE.to_owned(), Arc::new(lease))].into(),
            slices: [(("shop".to_owned(), "imported".to_owned()), Arc::new(slice))].into(),
        }
    }

    fn entry(verb: &'static str, resource: &str) -> Entry {
        Entry {
            verb,
            resource: resource.to_owned(),
            namespace: "shop".to_owned(),
            name: "imported".to_owned(),
            code: 200,
            ..Entry::default()
        }
    }

    /// Looks at these times, in milliseconds, at the Lease in these versions; at the last one the slice goes.
    fn goes(looks: &[(u64, &str)]) -> Result<(), String> {
        let name = ClusterId::new("east").expect("valid");
        let cluster = SimCluster::new(SimConfig::default()).expect("built");
        let (mut eyes, mut guarded) = (Eyes::default(), Guarded::default());
        let confirmed = BTreeSet::new();
        // It writes its own Lease too, without which a look does not count.
        let listed = [entry("list", "leases"), entry("update", "leases")];
        let mut look = |(at, version): &(u64, &str), entries: &[Entry]| {
            eyes.look(
                (&name, &cluster, &confirmed),
                (&standing(version), entries),
                *at,
                &mut guarded,
            )
        };
        let (last, before) = looks.split_last().expect("one at least");
        for one in before {
            look(one, &listed)?;
        }
        let [list, write] = listed.clone();
        look(last, &[list, write, entry("delete", "endpointslices")])
    }

    /// A look every 800 ms, until then.
    fn until(end: u64) -> Vec<(u64, &'static str)> {
        (0..=end).step_by(800).map(|at| (at, "1")).collect()
    }

    #[test]
    fn a_slice_goes_by_a_lease_that_stood_still_and_by_no_other() {
        assert_eq!(goes(&until(12_000)), Ok(()));
        assert!(goes(&until(9_600)).is_err());
        let moved = [until(8_000), vec![(8_800, "2"), (12_000, "2")]].concat();
        assert!(goes(&moved).is_err());
    }

    /// Nothing had to go when it was over; then the agent did not look for a while, and something came that does.
    #[test]
    fn a_lease_that_was_over_is_over_until_it_moves_though_nobody_looked_since() {
        let looked_again = |version| [until(12_000), vec![(30_000, version), (31_800, version)]].concat();
        assert_eq!(goes(&looked_again("1")), Ok(()));
        assert!(goes(&looked_again("2")).is_err());
        let too_early = [until(8_000), vec![(30_000, "1"), (31_800, "1")]].concat();
        assert!(goes(&too_early).is_err(), "it may have moved while nobody looked");
    }

    /// The agent made the Lease at its first look: it has seen it from then on.
    #[test]
    fn a_lease_stands_still_from_the_look_that_made_it() {
        let name = ClusterId::new("east").expect("valid");
        let cluster = SimCluster::new(SimConfig::default()).expect("built");
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": LEASE, "namespace": "shop"}});
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
        for object in [namespace, lease] {
            cluster.apply(object).expect("made");
        }
        let (_, version) = Before::of(&cluster).version(LEASE).expect("it is there");
        let nothing = Before {
            leases: BTreeMap::new(),
            slices: BTreeMap::new(),
        };
        let made = Entry {
            name: String::new(),
            ..entry("create", "leases")
        };
        let (mut eyes, mut guarded) = (Eyes::default(), Guarded::default());
        let confirmed = BTreeSet::new();
        for at in (0..=11_200).step_by(800) {
            let before = if at == 0 { &nothing } else { &standing(&version) };
            let last = match at {
                0 => made.clone(),
                11_200 => entry("delete", "endpointslices"),
                _ => entry("get", "leases"),
            };
            let entries = [entry("list", "leases"), entry("update", "leases"), last];
            let looked = eyes.look(
                (&name, &cluster, &confirmed),
                (before, &entries),
                at,
                &mut guarded,
            );
            assert_eq!(looked, Ok(()));
        }
    }
}

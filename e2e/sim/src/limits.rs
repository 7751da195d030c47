//! Owns: *bounded requests*: how often an agent may ask an API server for one thing, by what the server recorded.
//! Never: asks anything itself.

use std::collections::BTreeMap;

use crate::Entry;

/// One minute, in milliseconds.
const MINUTE_MILLIS: i64 = 60_000;
/// Most listings of one kind in a minute by one agent. A kind that cannot be listed is tried again after waits that
/// double from a tenth of a second to ten: 7 in the first 13 s, then 5 in what is left of the minute. Each listing
/// may take several pages, and a watch that breaks asks anew.
pub const LISTS_MAX: u64 = 40;
/// Most watches of one kind that an agent opens in a minute, for the same reason.
pub const WATCHES_MAX: u64 = 40;

/// Most writes of one object, or of its status, in a minute by one agent, refused ones included. One that the API
/// server does not take is tried again after waits that double from a twentieth of a second to half a minute, ten times
/// in the first minute; each change of what is wanted is a write at once.
pub const WRITES_MAX: u64 = 60;

/// Most writes of the Lease in a minute: the agent that leads renews it every second, and notes each new epoch in it.
pub const LEASE_WRITES_MAX: u64 = 90;

/// Requests of one agent process: verb, resource, namespace and name of what is written, and minute of the cluster's
/// clock.
type Slot = (&'static str, String, String, i64);

/// Counts the requests of one agent.
#[derive(Debug, Default)]
pub struct Requests(BTreeMap<Slot, u64>);

impl Requests {
    /// Takes note of what the server recorded of this agent. An error names what was asked too often.
    pub fn note<'a>(&mut self, entries: impl Iterator<Item = &'a Entry>) -> Result<(), String> {
        for entry in entries {
            let (object, most) = match entry.verb {
                "list" => (String::new(), LISTS_MAX),
                "watch" => (String::new(), WATCHES_MAX),
                _ if entry.is_write() || entry.dry_run => {
                    let part = if entry.status { "/status" } else { "" };
                    let object = format!(" {}/{}{part}", entry.namespace, entry.name);
                    let is_lease = entry.resource == "leases";
                    (object, if is_lease { LEASE_WRITES_MAX } else { WRITES_MAX })
                }
                _ => continue,
            };
            let minute = entry.at_ms.div_euclid(MINUTE_MILLIS);
            let slot = (entry.verb, entry.resource.clone(), object, minute);
            let said = format!("{} {}{}", slot.0, slot.1, slot.2);
            let count = self.0.entry(slot).or_default();
            *count += 1;
            if *count > most {
                return Err(format!(
                    "more than {most} requests to {said} within a minute, the last one answered with {}",
                    entry.code
                ));
            }
        }
        Ok(())
    }

    /// Number of counted verbs, kinds, written objects and minutes.
    pub fn guarded(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(verb: &'static str, resource: &str, at_ms: i64) -> Entry {
        Entry {
            verb,
            resource: resource.to_owned(),
            code: 404,
            at_ms,
            ..Entry::default()
        }
    }

    /// Agent 0.1.0 listed every 75 ms while a definition was missing.
    #[test]
    fn a_kind_that_is_listed_again_and_again_is_seen() {
        let asked: Vec<Entry> = (0..LISTS_MAX as i64 + 1)
            .map(|number| asked("list", "serviceimports", number * 75))
            .collect();
        let mut requests = Requests::default();
        let broken = requests.note(asked.iter()).unwrap_err();
        assert!(
            broken.contains("40 requests to list serviceimports within a minute"),
            "{broken}"
        );
        assert!(broken.ends_with("answered with 404"), "{broken}");
    }

    #[test]
    fn an_object_that_is_written_again_and_again_is_seen() {
        let written = |name: &str, at_ms| Entry {
            name: name.to_owned(),
            ..asked("patch", "services", at_ms)
        };
        let mut requests = Requests::default();
        for number in 0..WRITES_MAX as i64 {
            let both = [written("cart", number), written("shop", number)];
            assert_eq!(requests.note(both.iter()), Ok(()));
        }
        let broken = requests.note([written("cart", 1)].iter()).unwrap_err();
        assert!(
            broken.contains("60 requests to patch services /cart within a minute"),
            "{broken}"
        );
    }

    #[test]
    fn other_kinds_and_other_minutes_are_counted_apart() {
        let mut requests = Requests::default();
        for number in 0..LISTS_MAX as i64 {
            let asked = [
                asked("list", "services", number),
                asked("list", "services", MINUTE_MILLIS + number),
                asked("watch", "services", number),
                asked("list", "namespaces", number),
            ];
            assert_eq!(requests.note(asked.iter()), Ok(()));
        }
        assert_eq!(requests.guarded(), 4);
    }
}

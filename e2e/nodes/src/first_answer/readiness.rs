//! Owns: when pods are ready, as a watch of the API server says.
//! Never: asks pods.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, bail};

use crate::{
    client::Asking,
    lines::{Moment, Telling},
};

/// Fields to print of each event, between signs, because one that does not exist yet is empty.
const FIELDS: &str = "--output=jsonpath={.type}/{.object.metadata.name}/\
                      {.object.status.conditions[?(@.type==\"Ready\")].status}{\"\\n\"}";
/// A watch that says nothing within this time, while there are pods, never will.
const EVENT_WAIT: Duration = Duration::from_secs(30);

/// A watch of all pods of a namespace.
pub(super) struct Watch {
    telling: Telling,
    ready: BTreeMap<String, Moment>,
}

impl Watch {
    /// Starts it, and returns when it has said which pods there are: who asks is among them.
    pub(super) fn start(cluster: &Asking<'_>) -> anyhow::Result<Self> {
        let mut command = cluster.command(&["get", "pods", "--watch", "--output-watch-events", FIELDS]);
        let telling = Telling::start(&mut command)?;
        let first = telling.next(EVENT_WAIT);
        first.with_context(|| format!("the watch of the pods in {} says nothing", cluster.plane.name))?;
        Ok(Self {
            telling,
            ready: BTreeMap::new(),
        })
    }

    /// Times at which each of these pods was first ready, waited for: an answer may come before the event.
    pub(super) fn readiness_of<'a>(
        &mut self,
        pods: impl Iterator<Item = &'a str>,
    ) -> anyhow::Result<BTreeMap<String, Moment>> {
        let wanted: BTreeSet<&str> = pods.collect();
        while let Some(missing) = wanted.iter().find(|pod| !self.ready.contains_key(**pod)) {
            let Some(line) = self.telling.next(EVENT_WAIT) else {
                bail!("{missing} answered, and the watch does not say that it is ready");
            };
            if let Some(pod) = ready(&line.text) {
                self.ready.entry(pod.to_owned()).or_insert(line.at);
            }
        }
        let ready = self.ready.iter().filter(|(pod, _)| wanted.contains(&***pod));
        Ok(ready.map(|(pod, at)| (pod.clone(), *at)).collect())
    }
}

/// The pod that an event says is ready.
fn ready(line: &str) -> Option<&str> {
    let mut fields = line.split('/');
    match (fields.next()?, fields.next()?, fields.next()?) {
        ("ADDED" | "MODIFIED", pod, "True") => Some(pod),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn an_event_says_whether_its_pod_is_ready() {
        assert_eq!(ready("MODIFIED/one-3-a/True"), Some("one-3-a"));
        assert_eq!(ready("ADDED/one-3-a/True"), Some("one-3-a"));
        for other in [
            "MODIFIED/one-3-a/False",
            "ADDED/one-3-a/",
            "DELETED/one-3-a/True",
            "",
        ] {
            assert_eq!(ready(other), None, "{other}");
        }
    }

    #[test]
    fn the_first_event_counts() {
        let script = "echo ADDED/a/; echo MODIFIED/a/True; echo ADDED/b/True; sleep 0.05; echo MODIFIED/a/True; \
                      echo MODIFIED/c/True";
        let mut watch = Watch {
            telling: Telling::start(Command::new("sh").args(["-c", script])).unwrap(),
            ready: BTreeMap::new(),
        };
        let ready = watch.readiness_of(["a", "c"].into_iter()).unwrap();
        assert_eq!(ready.len(), 2);
        assert!(ready["a"] < ready["c"] && watch.ready["a"] <= watch.ready["b"]);
        let error = watch.readiness_of(["d"].into_iter()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "d answered, and the watch does not say that it is ready"
        );
    }
}

//! Owns: what became of the planted bugs, as a table and a verdict.
//! Never: plants or runs anything.

use std::{collections::BTreeSet, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    bug::Bug,
    ring::{Ring, Sights},
};

/// The result of one bug.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlantedResult {
    /// Its name.
    pub(super) bug: String,
    /// The rings' sights, or the reason why the bug could not be played.
    pub(super) sights: Result<Sights, String>,
    /// Why it had a build of its own.
    pub(super) alone: Option<String>,
}

impl PlantedResult {
    /// Complaints about the bug, or about the rings; there may be several.
    pub(super) fn complaints(&self, bug: &Bug) -> Vec<String> {
        let sights = match &self.sights {
            Ok(sights) => sights,
            Err(why) => return vec![why.clone()],
        };
        let blind = |ring: &&Ring| sights.get(ring).is_some_and(|sight| !sight.is_seen());
        let blind = bug.seen_by.iter().filter(blind);
        let mut complaints: Vec<String> = blind
            .map(|ring| format!("{} should see it and does not", ring.name()))
            .collect();
        if bug.seen_by.is_empty() {
            complaints.push("its file does not say which rings see it (seen_by)".to_owned());
        }
        let all_asked = sights.contains_key(&Ring::Swarm);
        if all_asked && !sights.values().any(super::ring::Sight::is_seen) {
            complaints.push("nothing sees it".to_owned());
        }
        complaints
    }

    /// Rings that saw it though its file does not say so.
    fn unforeseen(&self, bug: &Bug) -> Vec<&'static str> {
        self.seen()
            .difference(&bug.seen_by)
            .map(|ring| ring.name())
            .collect()
    }

    fn seen(&self) -> BTreeSet<Ring> {
        let sights = self.sights.iter().flatten();
        sights
            .filter(|(_, sight)| sight.is_seen())
            .map(|(ring, _)| *ring)
            .collect()
    }

    /// It as a row of the table.
    pub(super) fn row(&self, bug: &Bug) -> String {
        let words = |ring| match &self.sights {
            Ok(sights) => sights
                .get(&ring)
                .map_or("not asked".to_owned(), super::ring::Sight::words),
            Err(_) => "not shown".to_owned(),
        };
        format!(
            "| `{}`: {} | {} |",
            self.bug,
            bug.what,
            Ring::ALL.map(words).join(" | ")
        )
    }
}

/// The bugs, what each is, and which rings see it.
pub(super) fn list(bugs: &[Bug]) -> String {
    let line = |bug: &Bug| {
        let rings: Vec<&str> = bug.seen_by.iter().map(|ring| ring.name()).collect();
        format!("{:<36} [{}] {}", bug.name, rings.join(", "), bug.what)
    };
    bugs.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Of three bugs that change behaviour, so many must be seen by more than the tests of their own room.
const BEYOND_OF_THREE: usize = 2;

/// The table in Markdown, what to change, and the verdict in the last line, and whether it passed. Of a run of all bugs and rings (`whole`) it
/// is asked how many are seen by more than their own tests.
pub(super) fn text(outcomes: &[(&Bug, PlantedResult)], whole: bool, took: Duration) -> (String, bool) {
    let mut lines = vec![
        "| bug | tests | swarm | netsim | scenarios |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(outcomes.iter().map(|(bug, outcome)| outcome.row(bug)));
    lines.push(String::new());
    for (bug, outcome) in outcomes {
        if let Some(why) = &outcome.alone {
            lines.push(format!("{}: had a build of its own, for {why}", bug.name));
        }
        let unforeseen = outcome.unforeseen(bug);
        if !unforeseen.is_empty() {
            lines.push(format!(
                "{}: seen by {} too; its file may say so",
                bug.name,
                unforeseen.join(", ")
            ));
        }
    }
    let mut wrong = 0;
    for (bug, outcome) in outcomes {
        let complaints = outcome.complaints(bug);
        wrong += usize::from(!complaints.is_empty());
        lines.extend(
            complaints
                .iter()
                .map(|complaint| format!("{}: {complaint}", bug.name)),
        );
    }
    let seen = outcomes.iter().filter(|(_, outcome)| !outcome.seen().is_empty());
    let behaviour = outcomes.iter().filter(|(bug, _)| bug.changes_behaviour());
    let beyond = behaviour
        .clone()
        .filter(|(_, outcome)| outcome.seen().iter().any(|ring| *ring > Ring::Tests));
    let (behaviour, beyond) = (behaviour.count(), beyond.count());
    if whole && !are_enough(beyond, behaviour) {
        wrong += 1;
        lines.push(format!(
            "the rings: {BEYOND_OF_THREE} of 3 bugs should be seen by more than their own tests"
        ));
    }
    lines.push(format!(
        "verdict: {}: {} of {} planted bugs were seen; {} of the {} that change behaviour by more than their own \
         tests; in {} s",
        match wrong {
            0 => "PASSED".to_owned(),
            wrong => format!("FAILED: {wrong} are not seen as they should be"),
        },
        seen.count(),
        outcomes.len(),
        beyond,
        behaviour,
        took.as_secs()
    ));
    (lines.join("\n"), wrong == 0)
}

/// Returns true if so many of the bugs that change behaviour are seen by more than their own tests.
fn are_enough(beyond: usize, behaviour: usize) -> bool {
    beyond * 3 >= behaviour * BEYOND_OF_THREE
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            bug::{PROGRAMS, all},
            ring::Sight,
        },
        *,
    };
    use crate::workspace;

    fn bug(seen_by: &str) -> Bug {
        let text = format!("what: x\nseen_by: {seen_by}\ntests:\n  package: a\n  filter: b\nedits: []\n");
        serde_norway::from_str(&text).unwrap()
    }

    fn outcome(sights: &[(Ring, bool)]) -> PlantedResult {
        let sight = |seen| {
            if seen {
                Sight::Seen("s".to_owned())
            } else {
                Sight::Nothing("n".to_owned())
            }
        };
        PlantedResult {
            bug: "one".to_owned(),
            sights: Ok(sights.iter().map(|(ring, seen)| (*ring, sight(*seen))).collect()),
            alone: None,
        }
    }

    /// False claims in the files would fail a whole run, an hour later.
    #[test]
    fn the_files_of_the_bugs_claim_enough() {
        let bugs = all(&workspace(), PROGRAMS).expect("they can be read");
        let behaviour: Vec<&Bug> = bugs.iter().filter(|bug| bug.changes_behaviour()).collect();
        let claims = |bug: &&&Bug| bug.seen_by.iter().any(|ring| *ring > Ring::Tests);
        let beyond = behaviour.iter().filter(claims).count();
        assert!(
            are_enough(beyond, behaviour.len()),
            "{beyond} of {} claim to be seen by more than their own tests",
            behaviour.len()
        );
        assert!(!are_enough(beyond, beyond * 2));
    }

    #[test]
    fn every_ring_that_a_bug_names_must_see_it() {
        let all = |tests, swarm| outcome(&[(Ring::Tests, tests), (Ring::Swarm, swarm)]);
        assert!(all(true, true).complaints(&bug("[tests, swarm]")).is_empty());
        assert_eq!(
            all(true, false).complaints(&bug("[tests, swarm]")),
            ["swarm should see it and does not"]
        );
        assert!(all(true, false).complaints(&bug("[tests]")).is_empty());
        assert!(
            all(false, false)
                .complaints(&bug("[]"))
                .join(",")
                .contains("nothing sees it")
        );
        assert!(all(true, true).complaints(&bug("[]"))[0].contains("seen_by"));
        let alone = outcome(&[(Ring::Tests, false)]);
        assert!(
            alone.complaints(&bug("[swarm]")).is_empty(),
            "the swarm was not asked"
        );
        assert_eq!(all(true, true).unforeseen(&bug("[tests]")), ["swarm"]);
    }

    #[test]
    fn the_verdict_counts_what_more_than_unit_tests_see() {
        let bug = bug("[tests]");
        let outcomes = [
            (&bug, outcome(&[(Ring::Tests, true), (Ring::Swarm, true)])),
            (&bug, outcome(&[(Ring::Tests, true), (Ring::Swarm, false)])),
            (
                &bug,
                PlantedResult {
                    sights: Err("it does not apply".to_owned()),
                    ..outcome(&[])
                },
            ),
        ];
        let (said, passed) = text(&outcomes, false, Duration::from_secs(3));
        let verdict = said.lines().last().unwrap();
        assert!(
            verdict.contains("FAILED: 1 are")
                && verdict.contains("2 of 3")
                && verdict.contains(" 1 of the 3 ")
        );
        assert!(!passed && said.contains("it does not apply"), "{said}");
        let (whole, _) = text(&outcomes, true, Duration::from_secs(3));
        assert!(
            whole.lines().last().unwrap().contains("FAILED: 2 are"),
            "one of three is too few"
        );
        let mut hidden = bug.clone();
        hidden.second_guard = Some("another".to_owned());
        let outcomes = [
            outcomes[0].clone(),
            (&hidden, outcome(&[(Ring::Tests, true), (Ring::Swarm, false)])),
        ];
        let (whole, passed) = text(&outcomes, true, Duration::from_secs(3));
        let verdict = whole.lines().last().unwrap();
        assert!(
            passed && verdict.contains("PASSED") && verdict.contains("1 of the 1 "),
            "{verdict}"
        );
    }
}

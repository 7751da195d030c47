//! Owns: the Clusters whose objects differ from the plan, the changes since the last look, and their wording.
//! Never: forgets a Cluster because it could not be planned.

use std::collections::BTreeMap;

use crate::{
    desired::{
        change::{Action, Plan},
        offline::Planned,
    },
    model::Key,
};

/// Most lines of one look.
const LINES_MAX: usize = 100;
/// Most objects of a Cluster, and findings of all, that are named.
const NAMED_MAX: usize = 3;

/// The result of one look at all Clusters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differing {
    /// Clusters with a plan, each with what it would change; empty if nothing.
    clusters: BTreeMap<Key, String>,
    /// Findings, a line each; the Clusters concerned have no plan.
    findings: Vec<String>,
}

impl Differing {
    /// The result of plans.
    pub fn of(planned: &Planned) -> Self {
        let clusters = planned.plans.iter();
        Self {
            clusters: clusters
                .map(|plan| ((plan.namespace.clone(), plan.name.clone()), shown(plan)))
                .collect(),
            findings: planned.findings.iter().map(ToString::to_string).collect(),
        }
    }

    /// Numbers of Clusters that are as planned, and that are not.
    pub fn counts(&self) -> (usize, usize) {
        let differing = self.clusters.values().filter(|shown| !shown.is_empty()).count();
        (self.clusters.len() - differing, differing)
    }

    /// Number of findings.
    pub fn findings(&self) -> usize {
        self.findings.len()
    }

    /// Changes since `before`, in lines.
    pub fn news(&self, before: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((namespace, name), now) in &self.clusters {
            let was = before.clusters.get(&(namespace.clone(), name.clone()));
            let cluster = format!("Cluster {namespace}/{name}");
            match (was.map(String::as_str), now.as_str()) {
                (was, now) if was == Some(now) => {}
                (None, "") => {}
                (Some(_), "") => lines.push(format!("{cluster} is as it would be planned again")),
                (_, now) => lines.push(format!("{cluster} is not as it would be planned: {now}")),
            }
        }
        let new = self
            .findings
            .iter()
            .filter(|finding| !before.findings.contains(finding));
        lines.extend(new.map(|finding| format!("not planned: {finding}")));
        if lines.len() > LINES_MAX {
            let more = lines.len() - LINES_MAX;
            lines.truncate(LINES_MAX);
            lines.push(format!("and {more} more"));
        }
        lines
    }
}

/// The changes of a plan: numbers by kind, and the first objects with their first field.
fn shown(plan: &Plan) -> String {
    let changes: Vec<_> = plan
        .changes
        .iter()
        .filter(|change| change.action.writes())
        .collect();
    if changes.is_empty() {
        return String::new();
    }
    let count = |action: Action| changes.iter().filter(|change| change.action == action).count();
    let actions = [Action::Create, Action::Update, Action::Rotate, Action::Delete];
    let counts: Vec<String> = actions
        .into_iter()
        .filter(|action| count(*action) > 0)
        .map(|action| format!("{} to {}", count(action), action.name()))
        .collect();
    let named = changes.iter().take(NAMED_MAX).map(|change| {
        let field = change.fields.first();
        let field = field.map_or_else(String::new, |one| format!(" ({})", one.field));
        format!("{} {}{field}", change.action.name(), change.place)
    });
    let named: Vec<String> = named.collect();
    let more = changes.len().saturating_sub(NAMED_MAX);
    let more = if more > 0 {
        format!(", and {more} more")
    } else {
        String::new()
    };
    format!("{}: {}{more}", counts.join(", "), named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desired::change::{Change, Difference};

    fn plan(name: &str, actions: &[(Action, &str)]) -> Plan {
        let changes = actions.iter().map(|(action, place)| Change {
            place: (*place).to_owned(),
            action: *action,
            kind: String::new(),
            name: String::new(),
            before: None,
            fields: vec![Difference {
                field: "spec.a".to_owned(),
                old: None,
                new: None,
            }],
            note: String::new(),
            object: None,
            machines: 0,
        });
        Plan {
            namespace: "ns".to_owned(),
            name: name.to_owned(),
            changes: changes.collect(),
            ..Plan::default()
        }
    }

    fn differing(plans: Vec<Plan>, findings: &[&str]) -> Differing {
        Differing {
            findings: findings.iter().map(|text| (*text).to_owned()).collect(),
            ..Differing::of(&Planned {
                plans,
                ..Planned::default()
            })
        }
    }

    #[test]
    fn what_is_said_is_what_changed() {
        let kept = [(Action::Keep, "x"), (Action::Wait, "y")];
        let changed = [
            (Action::Update, "a"),
            (Action::Rotate, "b"),
            (Action::Update, "c"),
            (Action::Create, "d"),
        ];
        let before = differing(
            vec![plan("a", &kept), plan("b", &changed), plan("gone", &changed)],
            &["old"],
        );
        assert_eq!(before.counts(), (1, 2));
        let now = differing(
            vec![plan("a", &changed), plan("b", &kept), plan("new", &kept)],
            &["old", "new"],
        );
        assert_eq!(now.counts(), (2, 1));
        assert_eq!(
            now.news(&before),
            [
                "Cluster ns/a is not as it would be planned: 1 to create, 2 to update, 1 to rotate: update a (spec.a), \
                 rotate b (spec.a), update c (spec.a), and 1 more",
                "Cluster ns/b is as it would be planned again",
                "not planned: new",
            ]
        );
        assert_eq!(now.news(&now), Vec::<String>::new());
        assert_eq!((now.findings(), before.findings()), (2, 1));
    }

    #[test]
    fn lines_have_a_bound() {
        let plans = (0..LINES_MAX + 5).map(|at| plan(&format!("c{at:03}"), &[(Action::Update, "a")]));
        let lines = differing(plans.collect(), &[]).news(&Differing::default());
        assert_eq!(lines.len(), LINES_MAX + 1);
        assert_eq!(lines[LINES_MAX], "and 5 more");
    }
}

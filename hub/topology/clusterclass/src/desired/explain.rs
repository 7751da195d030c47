//! Owns: the explanation of clusters' objects for people: the class, the variables, and for each object the patches
//! that changed it, in their order.

use std::fmt::Write;

use ::model::columns::columns;

use super::{
    change::{Change, Plan},
    table::spoken,
};
use crate::patch::finding::shown;

/// Longest value that is shown, characters.
const MAX_SHOWN: usize = 200;

/// Plans as explanations.
pub fn explained(plans: &[Plan]) -> String {
    let mut said = String::new();
    for (at, plan) in plans.iter().enumerate() {
        if at > 0 {
            said.push('\n');
        }
        let cluster = shown(&format!("{}/{}", plan.namespace, plan.name));
        let (class, version) = (shown(&plan.class), shown(&plan.version));
        let _ = writeln!(
            said,
            "Cluster {cluster} is of ClusterClass {class}, and wants {version}."
        );
        for line in &plan.upgrade {
            let _ = writeln!(said, "{}", shown(line));
        }
        for one in &plan.left_out {
            let _ = writeln!(said, "{}", spoken(one));
        }
        said += "\n";
        let mut rows = vec![["VARIABLE", "VALUE"].map(str::to_owned).to_vec()];
        for (name, value) in &plan.sources.variables {
            let value: String = value.to_string().chars().take(MAX_SHOWN).collect();
            rows.push(vec![shown(name), shown(&value)]);
        }
        said += &(columns(&rows).join("\n") + "\n\n");
        let header = ["OBJECT", "KIND", "NAME", "NOW", "PATCHES"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        rows.extend(plan.changes.iter().map(|change| row(plan, change)));
        said += &(columns(&rows).join("\n") + "\n");
    }
    said
}

fn row(plan: &Plan, change: &Change) -> Vec<String> {
    let steps = plan.sources.patches.get(&change.place);
    let steps = steps.into_iter().flatten();
    let patches: Vec<String> = steps
        .map(|step| {
            let name = format!("{}[{}]", step.name, step.definition);
            if step.changed {
                name
            } else {
                format!("{name} (changed nothing)")
            }
        })
        .collect();
    vec![
        shown(&change.place),
        shown(&change.kind),
        shown(&change.name),
        change.action.name().to_owned(),
        shown(&patches.join(", ")),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{
        super::change::{Action, Sources},
        *,
    };
    use crate::patch::apply::Step;

    #[test]
    fn each_object_has_its_patches_in_their_order() {
        let step = |name: &str, definition: usize, changed: bool| Step {
            patch: 0,
            name: name.to_owned(),
            definition,
            changed,
        };
        let change = |place: &str| Change {
            place: place.to_owned(),
            action: Action::Keep,
            kind: "Plane".to_owned(),
            name: "c-x".to_owned(),
            before: None,
            fields: Vec::new(),
            note: String::new(),
            object: None,
            machines: 0,
        };
        let steps = vec![step("z", 0, true), step("a", 1, false)];
        let plan = Plan {
            namespace: "ns".to_owned(),
            name: "c".to_owned(),
            class: "edge".to_owned(),
            version: "v1.34.1".to_owned(),
            changes: vec![change("control-plane"), change("cluster")],
            sources: Sources {
                variables: BTreeMap::from([("region".to_owned(), json!("eu"))]),
                patches: BTreeMap::from([("control-plane".to_owned(), steps)]),
            },
            ..Plan::default()
        };
        assert_eq!(
            explained(&[plan]),
            "Cluster ns/c is of ClusterClass edge, and wants v1.34.1.\n\n\
             VARIABLE  VALUE\n\
             region    \"eu\"\n\n\
             OBJECT         KIND   NAME  NOW   PATCHES\n\
             control-plane  Plane  c-x   keep  z[0], a[1] (changed nothing)\n\
             cluster        Plane  c-x   keep\n"
        );
    }
}

//! Owns: the rights in the roles of the rendered charts, and these roles without one of them.
//! Never: applies anything.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use kube::api::DynamicObject;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Account, Right};
use crate::deploy;

/// Kinds that hold rules.
const ROLES: [&str; 2] = ["ClusterRole", "Role"];

/// A rule as it stands in a role.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Rule {
    api_groups: Vec<String>,
    resources: Vec<String>,
    resource_names: Vec<String>,
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
}

/// The roles that the chart of an account binds to it.
pub fn of(account: Account) -> anyhow::Result<Vec<DynamicObject>> {
    let mut objects = deploy::read_directory(&deploy::directory(account.chart()))?;
    let bound: BTreeSet<(String, String, String)> = objects
        .iter()
        .filter(|object| deploy::kind(object).ends_with("RoleBinding"))
        .filter(|object| object.data["subjects"][0]["name"] == json!(account.name()))
        .map(|object| {
            let word = |field: &str| {
                object.data["roleRef"][field]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            (word("kind"), word("name"), namespace(object).to_owned())
        })
        .collect();
    objects.retain(|object| {
        let role = (
            deploy::kind(object).to_owned(),
            deploy::name(object).to_owned(),
            namespace(object).to_owned(),
        );
        ROLES.contains(&deploy::kind(object)) && bound.contains(&role)
    });
    ensure!(!objects.is_empty(), "nothing is bound to {}", account.name());
    Ok(objects)
}

/// Every single right that these roles hold.
pub fn rights(account: Account, roles: &[DynamicObject]) -> anyhow::Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    for role in roles {
        rights.extend(rights_of(account, role)?);
    }
    Ok(rights)
}

/// The roles without one right, which exactly one of them must hold.
pub fn without(right: &Right, roles: &[DynamicObject]) -> anyhow::Result<Vec<DynamicObject>> {
    let (mut left, mut taken) = (roles.to_vec(), 0);
    for role in &mut left {
        let mut rights = rights_of(right.account, role)?;
        taken += usize::from(rights.remove(right));
        role.data["rules"] = rights.iter().map(rule).collect();
    }
    ensure!(taken == 1, "{taken} roles hold the right {right}");
    Ok(left)
}

fn namespace(object: &DynamicObject) -> &str {
    object.metadata.namespace.as_deref().unwrap_or_default()
}

fn rights_of(account: Account, role: &DynamicObject) -> anyhow::Result<BTreeSet<Right>> {
    let rules: Vec<Rule> = serde_json::from_value(role.data["rules"].clone())
        .with_context(|| format!("the rules of {} {}", deploy::kind(role), deploy::name(role)))?;
    let mut rights = BTreeSet::new();
    for rule in &rules {
        let any = [String::new()];
        let names = if rule.resource_names.is_empty() {
            &any[..]
        } else {
            &rule.resource_names
        };
        for verb in &rule.verbs {
            let right = |group: &str, resource: &str, name: &str, path: &str| Right {
                account,
                namespace: namespace(role).to_owned(),
                group: group.to_owned(),
                resource: resource.to_owned(),
                name: name.to_owned(),
                path: path.to_owned(),
                verb: verb.clone(),
            };
            rights.extend(rule.paths.iter().map(|path| right("", "", "", path)));
            for (group, resource) in rule
                .api_groups
                .iter()
                .flat_map(|group| rule.resources.iter().map(move |resource| (group, resource)))
            {
                rights.extend(names.iter().map(|name| right(group, resource, name, "")));
            }
        }
    }
    Ok(rights)
}

/// A rule that grants this right alone.
fn rule(right: &Right) -> Value {
    if !right.path.is_empty() {
        return json!({"nonResourceURLs": [right.path], "verbs": [right.verb]});
    }
    let mut rule = json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]});
    if !right.name.is_empty() {
        rule["resourceNames"] = json!([right.name]);
    }
    rule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_loses_one_right_and_keeps_the_others() {
        for account in Account::ALL {
            let roles = of(account).expect("roles");
            let all = rights(account, &roles).expect("rights");
            assert!(all.len() > 1, "{all:?}");
            for right in &all {
                let left = rights(account, &without(right, &roles).expect("a role")).expect("rights");
                let mut wanted = all.clone();
                wanted.remove(right);
                assert_eq!(left, wanted, "without {right}");
            }
        }
    }

    #[test]
    fn a_right_that_no_role_holds_cannot_be_taken_away() {
        let roles = of(Account::Hub).expect("roles");
        let held = rights(Account::Hub, &roles).expect("rights");
        let mut right = held.into_iter().next().expect("a right");
        right.verb = "impersonate".to_owned();
        without(&right, &roles).expect_err("nothing to take");
    }
}

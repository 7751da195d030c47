//! Rules of cluster properties and of the control plane's health.

use super::{InvalidValue, identity, text::dns_subdomain};
use crate::{
    ClusterProperty, ControlPlaneVerdict, Health, NodesHealth, PropertyValue,
    fact::PROPERTY_VALUE_CHARACTERS_MAX,
    health::{API_SERVERS_NAMED_MAX, FAILED_CHECKS_MAX, NODES_NAMED_MAX},
};

/// Checks a property: its name, and that its value is in the form its length asks for.
pub fn cluster_property(property: &ClusterProperty) -> Result<(), InvalidValue> {
    property_name(&property.name)?;
    match &property.value {
        PropertyValue::Text(value) => match value.chars().count() {
            1..=PROPERTY_VALUE_CHARACTERS_MAX => Ok(()),
            count => {
                let problem = format!(
                    "has {count} characters; 1 to {PROPERTY_VALUE_CHARACTERS_MAX} travel as they are, \
                     a longer value as size and digest"
                );
                Err(InvalidValue::new("value", problem))
            }
        },
        PropertyValue::Oversize { characters, .. } if *characters <= PROPERTY_VALUE_CHARACTERS_MAX as u64 => {
            let problem = format!("has {characters} characters only; send the value itself");
            Err(InvalidValue::new("oversize", problem))
        }
        PropertyValue::Oversize { .. } => Ok(()),
    }
}

/// Checks a property's name.
pub fn property_name(name: &str) -> Result<(), InvalidValue> {
    dns_subdomain("name", name)
}

/// Checks a health: version, and checks, API servers and nodes that are bounded and sorted.
pub fn health(health: &Health) -> Result<(), InvalidValue> {
    if !health.kubernetes_version.is_empty() {
        identity("kubernetesVersion", &health.kubernetes_version)?;
    }
    // One health has one form: otherwise an unchanged one would look changed.
    let checks: Vec<&str> = health.failed_checks.iter().map(|check| &**check).collect();
    few_and_sorted("failedChecks", &checks, FAILED_CHECKS_MAX)?;
    health.verdict.as_ref().map_or(Ok(()), control_plane_verdict)?;
    health.nodes.as_ref().map_or(Ok(()), nodes)
}

fn control_plane_verdict(verdict: &ControlPlaneVerdict) -> Result<(), InvalidValue> {
    let hosts: Vec<&str> = verdict.api_servers.iter().map(|server| &*server.host).collect();
    few_and_sorted("verdict.apiServers", &hosts, API_SERVERS_NAMED_MAX)
}

fn nodes(nodes: &NodesHealth) -> Result<(), InvalidValue> {
    let NodesHealth::Counted {
        total,
        not_ready,
        named,
    } = nodes
    else {
        return Ok(());
    };
    if not_ready > total {
        let problem = format!("is {not_ready} of {total}");
        return Err(InvalidValue::new("nodes.notReady", problem));
    }
    let names: Vec<&str> = named.iter().map(|name| &**name).collect();
    few_and_sorted("nodes.notReadyNames", &names, NODES_NAMED_MAX)
}

/// Names as [`identity`] takes them, each once.
fn few_and_sorted(field: &str, names: &[&str], max: usize) -> Result<(), InvalidValue> {
    if names.len() > max {
        return Err(InvalidValue::new(
            field,
            format!("are {}; name the first {max}", names.len()),
        ));
    }
    for (index, name) in names.iter().enumerate() {
        identity(&format!("{field}[{index}]"), name)?;
    }
    if !names.is_sorted_by(|one, next| one < next) {
        let problem = "are not sorted, or one is there twice; sort them, each once";
        return Err(InvalidValue::new(field, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::{
        ApiServer, ApiServerState, ControlPlane, ControlPlaneReason, ControlPlaneVerdict, Health, NodesHealth,
    };

    #[test]
    fn bad_verdicts_and_counts_of_nodes_are_refused() {
        let health = |hosts: &[&str], nodes| {
            let servers = hosts.iter().map(|host| ApiServer {
                host: (*host).into(),
                state: ApiServerState::Fresh,
                restarts: 0,
                restarts_inferred: false,
                shared: false,
            });
            Health {
                kubernetes_version: "".into(),
                control_plane: ControlPlane::Ready,
                failed_checks: Vec::new(),
                verdict: Some(ControlPlaneVerdict {
                    reason: ControlPlaneReason::Healthy,
                    api_servers_fresh: 1,
                    api_servers_expected: 1,
                    api_servers: servers.collect(),
                }),
                nodes: Some(nodes),
            }
        };
        let counted = |total, not_ready, names: &[&str]| NodesHealth::Counted {
            total,
            not_ready,
            named: names.iter().map(|name| (*name).into()).collect(),
        };
        let refused = |health: Health, words: &str| {
            let problem = super::health(&health).expect_err(words).to_string();
            assert!(problem.contains(words), "{problem}");
        };
        refused(
            health(&["b", "a"], counted(1, 0, &[])),
            "verdict.apiServers: are not sorted",
        );
        let hosts: Vec<String> = (10..27).map(|n| n.to_string()).collect();
        let hosts: Vec<&str> = hosts.iter().map(|host| &**host).collect();
        refused(health(&hosts, counted(1, 0, &[])), "verdict.apiServers: are 17");
        refused(
            health(&[""], counted(1, 0, &[])),
            "verdict.apiServers[0]: is empty",
        );
        refused(health(&[], counted(1, 2, &[])), "nodes.notReady: is 2 of 1");
        let names = ["1", "2", "3", "4", "5", "6"];
        refused(health(&[], counted(9, 9, &names)), "nodes.notReadyNames: are 6");
    }
}

//! Values of the charts, and what a release needs. Pure.

use serde_json::{Value, json};

use super::args::{ChartArgs, ServiceType};

/// The Secret with the hub's certificate.
pub(super) const HUB_TLS: &str = "tributary-hub-tls";
/// The Secret with the authority with which clusters join.
pub(super) const HUB_JOINING: &str = "tributary-hub-joining";
/// The Secret with the agent's certificate.
pub(super) const AGENT_TLS: &str = "tributary-agent-tls";
/// The Secret with the join string.
pub(super) const AGENT_JOIN: &str = "tributary-join";
/// The definitions, and the value of the chart that installs each.
pub(super) const DEFINITIONS: [(&str, &str); 4] = [
    ("clusterproperties.about.k8s.io", "clusterProperties"),
    ("clusterprofiles.multicluster.x-k8s.io", "clusterProfiles"),
    ("serviceexports.multicluster.x-k8s.io", "serviceExports"),
    ("serviceimports.multicluster.x-k8s.io", "serviceImports"),
];

/// Sets the image in the values of a chart with a program.
fn image(values: &mut Value, charts: &ChartArgs) {
    if let Some(registry) = &charts.image_registry {
        values["image"]["registry"] = json!(registry);
    }
    if let Some(image) = &charts.image {
        values["image"]["repository"] = json!(image.repository);
        values["image"]["tag"] = json!(image.tag);
        values["image"]["digest"] = json!(image.digest);
    }
}

/// The values of the hub's chart.
pub(super) fn hub(
    clusterset: &str,
    service: ServiceType,
    address: Option<&str>,
    charts: &ChartArgs,
) -> Value {
    let service = match service {
        ServiceType::LoadBalancer => "LoadBalancer",
        ServiceType::NodePort => "NodePort",
        ServiceType::ClusterIp => "ClusterIP",
    };
    let mut values = json!({
        "clusterset": clusterset,
        "tls": {"secretName": HUB_TLS},
        "join": {"secretName": HUB_JOINING},
        "service": {"type": service},
    });
    if let Some(address) = address {
        values["address"] = json!(address);
    }
    image(&mut values, charts);
    values
}

/// The values of the agent's chart.
pub(super) fn agent(id: &str, hub_ports: &[u16], join_port: u16, charts: &ChartArgs) -> Value {
    let mut values = json!({
        "clusterId": id,
        "tls": {"secretName": AGENT_TLS},
        "join": {"secretName": AGENT_JOIN},
        "networkPolicy": {"hubPorts": hub_ports, "joinPort": join_port},
    });
    image(&mut values, charts);
    values
}

/// A definition in a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Definition {
    /// It is not there.
    Missing,
    /// Our chart installed it.
    Ours,
    /// Somebody else did.
    Foreign,
}

/// The values of the definitions' chart: what somebody else installed is left alone. `None`: all of it belongs to
/// somebody else. The others are named too, because Helm keeps the values of earlier runs.
pub(super) fn definitions(seen: [Definition; 4]) -> Option<Value> {
    let mut values = json!({});
    for ((_, name), seen) in DEFINITIONS.iter().zip(seen) {
        values[name] = json!(seen != Definition::Foreign);
    }
    seen.iter()
        .any(|seen| *seen != Definition::Foreign)
        .then_some(values)
}

/// A release, as Helm shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Release {
    /// Version of its chart.
    pub(super) version: String,
    /// `deployed`, `failed`, `pending-install`, `pending-upgrade` and others.
    pub(super) status: String,
    /// The values that were given.
    pub(super) values: Value,
}

/// The reason to call Helm for a release; `None`: it is as wanted. `given` are further values or charts of the user, which
/// only Helm can compare.
pub(super) fn release_needs(release: Option<&Release>, wanted: &Value, given: bool) -> Option<String> {
    let Some(release) = release else {
        return Some("it is not installed".to_owned());
    };
    if release.status != "deployed" {
        return Some(format!("its status is {}", release.status));
    }
    if given {
        return Some("values or charts were given".to_owned());
    }
    let own = env!("CARGO_PKG_VERSION");
    if release.version != own {
        return Some(format!(
            "its version is {}, and this client has {own}",
            release.version
        ));
    }
    (!contains(&release.values, wanted)).then(|| "its values differ".to_owned())
}

/// The reason not to update a release with the charts of this client; `None`: it is not newer.
pub(super) fn newer_than_client(release: &Release) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    is_newer(&release.version, own).then(|| {
        format!(
            "its version is {}, and this client has {own}. Use a client of that version or newer",
            release.version
        )
    })
}

/// Compares versions such as `1.2.3` and `1.2.3-rc.1`, which is older than `1.2.3`. One that cannot be read is not newer.
fn is_newer(version: &str, than: &str) -> bool {
    let read = |text: &str| {
        let text = text.trim_start_matches('v');
        let text = text.split_once('+').map_or(text, |(text, _)| text);
        let (numbers, candidate) = match text.split_once('-') {
            Some((numbers, candidate)) => (numbers, Some(candidate)),
            None => (text, None),
        };
        let numbers: Result<Vec<u64>, _> = numbers.split('.').map(str::parse).collect();
        Some((numbers.ok()?, candidate.is_none()))
    };
    match (read(version), read(than)) {
        (Some(version), Some(than)) => version > than,
        _ => false,
    }
}

/// True if every value of `wanted` is in `present`.
fn contains(present: &Value, wanted: &Value) -> bool {
    match (present, wanted) {
        (Value::Object(present), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| present.get(name).is_some_and(|found| contains(found, value))),
        (_, Value::Object(wanted)) => wanted.is_empty(),
        (present, wanted) => present == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(status: &str, values: Value) -> Release {
        Release {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            status: status.to_owned(),
            values,
        }
    }

    #[test]
    fn helm_is_called_only_for_a_difference() {
        let wanted = json!({"join": {"secretName": "a"}});
        let more = json!({"join": {"secretName": "a", "port": 1}, "image": {"registry": "r"}});
        let needs = |release: &Release, given| release_needs(Some(release), &wanted, given);
        assert_eq!(needs(&release("deployed", more.clone()), false), None);
        assert!(needs(&release("deployed", more.clone()), true).is_some());
        assert!(needs(&release("deployed", json!({})), false).is_some());
        assert!(needs(&release("pending-install", more.clone()), false).is_some());
        let older = Release {
            version: "0.0.1".to_owned(),
            ..release("deployed", more)
        };
        assert!(needs(&older, false).is_some_and(|why| why.contains("0.0.1")));
        assert!(release_needs(None, &wanted, false).is_some());
        assert_eq!(
            release_needs(Some(&release("deployed", Value::Null)), &json!({}), false),
            None
        );
    }

    #[test]
    fn a_newer_release_is_not_updated_by_an_older_client() {
        for (version, than, newer) in [
            ("0.2.0", "0.1.0", true),
            ("0.10.0", "0.9.9", true),
            ("1.0.0", "1.0.0-rc.1", true),
            ("0.1.0", "0.1.0", false),
            ("0.1.0-rc.1", "0.1.0", false),
            ("0.1.0+build", "0.1.0", false),
            ("0.0.9", "0.1.0", false),
            ("of-mine", "0.1.0", false),
        ] {
            assert_eq!(is_newer(version, than), newer, "{version} and {than}");
        }
        let mut newer = release("deployed", json!({}));
        assert_eq!(newer_than_client(&newer), None);
        newer.version = "9999.0.0".to_owned();
        assert!(newer_than_client(&newer).is_some_and(|why| why.contains("9999.0.0")));
    }

    #[test]
    fn definitions_of_others_are_left_alone() {
        use Definition::{Foreign, Missing, Ours};
        let all = json!({
            "clusterProperties": true, "clusterProfiles": true, "serviceExports": true, "serviceImports": true,
        });
        assert_eq!(definitions([Missing, Ours, Missing, Ours]), Some(all));
        assert_eq!(
            definitions([Foreign, Missing, Ours, Foreign]),
            Some(json!({
                "clusterProperties": false, "clusterProfiles": true, "serviceExports": true, "serviceImports": false,
            }))
        );
        assert_eq!(definitions([Foreign; 4]), None);
    }
}

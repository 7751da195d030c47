//! Owns: who exports a service, by precedence, and what the exports say together: KEP-1645, read anew.
//! Never: looks at what Tributary made, or shares a rule with the hub's fold.

use std::collections::BTreeSet;

use model::ServiceKey;
use serde_json::Value;

use super::{
    carried::carried,
    part::Port,
    picture::{Picture, is_ours, text},
};

/// These namespaces are the cluster's own, and export nothing.
const NAMESPACES_OF_KUBERNETES: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];

/// One valid export.
pub(super) struct Exporter<'a> {
    created: String,
    uid: String,
    pub(super) picture: &'a Picture,
    export: &'a Value,
    service: &'a Value,
}

/// The export of a cluster, if it has one that is valid, or why it is not.
pub(super) fn exporter<'a>(
    picture: &'a Picture,
    service: &ServiceKey,
) -> Option<Result<Exporter<'a>, &'static str>> {
    let export = picture.export(service)?;
    if !export["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let invalid = |reason| Some(Err(reason));
    if NAMESPACES_OF_KUBERNETES.contains(&&*service.namespace) {
        return invalid("NamespaceDenied");
    }
    let Some(found) = picture.service(service) else {
        return invalid("NoService");
    };
    if found["spec"]["type"] == "ExternalName" || is_ours(found) {
        return invalid("InvalidServiceType");
    }
    if picture.denied {
        return invalid("PolicyDenied");
    }
    Some(Ok(Exporter {
        created: text(&export["metadata"]["creationTimestamp"]),
        uid: text(&export["metadata"]["uid"]),
        picture,
        export,
        service: found,
    }))
}

/// The valid exports of a service, the oldest first, then by the cluster's name; one that keeps the first place before
/// the others.
pub(super) fn exporters<'a>(
    members: impl Iterator<Item = &'a Picture>,
    service: &ServiceKey,
) -> Vec<Exporter<'a>> {
    let mut exporters: Vec<Exporter<'a>> = members
        .filter_map(|picture| exporter(picture, service)?.ok())
        .collect();
    exporters.sort_by(|a, b| (&a.created, &a.picture.cluster).cmp(&(&b.created, &b.picture.cluster)));
    // Stable: the others keep their order.
    exporters.sort_by_key(|exporter| !exporter.picture.held.contains(service));
    exporters
}

/// Users' declarations of a service in all clusters, as text: while it stays the same, a right state must stay right.
pub fn declared(pictures: &[Picture], service: &ServiceKey) -> String {
    let mut declared = String::new();
    for picture in pictures {
        declared += &format!("{} {:?}", picture.cluster, picture.namespace(service));
        if let Some(Ok(exporter)) = exporter(picture, service) {
            declared += &format!(" {} {}", exporter.uid, exporter.created);
            declared += &format!(" {} {}", exporter.export["spec"], exporter.service["spec"]);
            for slice in picture.local_slices(service) {
                let name = &slice["metadata"]["name"];
                declared += &format!(" {name} {} {}", slice["ports"], slice["endpoints"]);
            }
        }
        declared.push('\n');
    }
    declared
}

impl Exporter<'_> {
    pub(super) fn cluster(&self) -> &str {
        &self.picture.cluster
    }

    pub(super) fn is_headless(&self) -> bool {
        self.service["spec"]["clusterIP"] == "None"
    }

    pub(super) fn affinity(&self) -> String {
        text(&self.service["spec"]["sessionAffinity"])
    }

    pub(super) fn ports(&self) -> Vec<Port> {
        Port::all(&self.service["spec"]["ports"])
    }
}

/// The older export's ports, and of the others those whose name and whose protocol and number nobody has yet.
pub(super) fn merged(exporters: &[Exporter<'_>]) -> Vec<Port> {
    let mut merged: Vec<Port> = Vec::new();
    for port in exporters.iter().flat_map(Exporter::ports) {
        let collides = |taken: &Port| taken.name == port.name || taken.number() == port.number();
        if !merged.iter().any(collides) {
            merged.push(port);
        }
    }
    merged
}

/// On what the exports disagree: every reason, in no order.
pub(super) fn conflicts(exporters: &[Exporter<'_>]) -> BTreeSet<&'static str> {
    let Some((oldest, others)) = exporters.split_first() else {
        return BTreeSet::new();
    };
    let spec = |exporter: &Exporter<'_>, field: &str| exporter.service["spec"][field].clone();
    let set = |exporter: &Exporter<'_>, field: &str| -> BTreeSet<String> {
        let values = exporter.service["spec"][field].as_array().into_iter().flatten();
        values.map(Value::to_string).collect()
    };
    let carried = |exporter: &Exporter<'_>| carried(&exporter.export["spec"]);
    let policy = |exporter: &Exporter<'_>| match spec(exporter, "internalTrafficPolicy") {
        Value::Null => Value::from("Cluster"),
        stated => stated,
    };
    // One is the deprecated name of the other.
    let distribution = |exporter: &Exporter<'_>| match spec(exporter, "trafficDistribution") {
        Value::String(name) if name == "PreferClose" => Value::from("PreferSameZone"),
        stated => stated,
    };
    let timeout = |exporter: &Exporter<'_>| {
        spec(exporter, "sessionAffinityConfig")["clientIP"]["timeoutSeconds"].clone()
    };
    let mut reasons = BTreeSet::new();
    for other in others {
        let ports = |exporter: &Exporter<'_>| exporter.ports().into_iter().collect::<BTreeSet<Port>>();
        let differences = [
            ("PortConflict", ports(oldest) != ports(other)),
            ("TypeConflict", oldest.is_headless() != other.is_headless()),
            ("SessionAffinityConflict", oldest.affinity() != other.affinity()),
            ("SessionAffinityConfigConflict", timeout(oldest) != timeout(other)),
            ("LabelsConflict", carried(oldest).0 != carried(other).0),
            ("AnnotationsConflict", carried(oldest).1 != carried(other).1),
            ("InternalTrafficPolicyConflict", policy(oldest) != policy(other)),
            (
                "TrafficDistributionConflict",
                distribution(oldest) != distribution(other),
            ),
            (
                "IPFamilyConflict",
                set(oldest, "ipFamilies") != set(other, "ipFamilies"),
            ),
        ];
        let found = differences.into_iter().filter(|(_, differs)| *differs);
        reasons.extend(found.map(|(reason, _)| reason));
    }
    reasons
}

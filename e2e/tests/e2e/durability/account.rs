//! Owns: what a hub says of its log, as lines that can be compared: every event with its chain hash, and what follows
//! from them for people. Connections, which are of the moment, and times are left out.
//! Never: asks a hub; judges.

use proto::v1;

/// An account of these events and of the state behind the last one.
pub(super) fn account(events: &[v1::Event], state: &v1::GetStateResponse) -> Vec<String> {
    let mut lines: Vec<String> = events.iter().map(event).collect();
    lines.extend(state.members.iter().map(member));
    lines.extend(state.exports.iter().map(export));
    lines.extend(state.imports.iter().map(import));
    lines.extend(state.profiles.iter().map(profile));
    lines
}

fn event(event: &v1::Event) -> String {
    format!(
        "event {} {} {} {}",
        event.revision, event.cluster, event.kind, event.hash
    )
}

fn member(member: &v1::MemberState) -> String {
    let keys = member.key_fingerprints.join(" ");
    format!(
        "member {} since {} of {} keys {keys}",
        member.cluster, member.incarnation, member.cluster_fingerprint
    )
}

fn export(recorded: &v1::RecordedExport) -> String {
    let export = recorded.export.clone().unwrap_or_default();
    // By their reasons: the words for people may change.
    let conflicts = recorded.conflicts.iter();
    let conflicts: Vec<String> = conflicts
        .map(|conflict| format!("{:?}", conflict.reason()))
        .collect();
    format!(
        "export {} {} recorded at {} {:?} {} {} slices {} endpoints {} {} {}",
        recorded.cluster,
        key(export.service.as_ref()),
        recorded.revision,
        export.r#type(),
        export.uid,
        recorded.endpoint_slices,
        recorded.endpoints,
        ports(&export.ports),
        pairs(&export.exported_labels),
        conflicts.join(" "),
    )
}

fn import(recorded: &v1::RecordedImport) -> String {
    let import = recorded.import.clone().unwrap_or_default();
    let clusters = import.clusters.iter();
    let clusters: Vec<String> = clusters
        .map(|cluster| format!("{}{:?}", cluster.cluster, cluster.eligible_ports))
        .collect();
    format!(
        "import {} {:?} {} {} {} from {} {} slices {} endpoints",
        key(import.service.as_ref()),
        import.r#type(),
        ports(&import.ports),
        import.session_affinity,
        pairs(&import.labels),
        clusters.join(" "),
        recorded.endpoint_slices,
        recorded.endpoints,
    )
}

fn profile(profile: &v1::Profile) -> String {
    let properties = profile.properties.iter();
    let properties: Vec<String> = properties
        .map(|property| format!("{} {:?}", property.name, property.content))
        .collect();
    format!(
        "profile {} {} {}",
        profile.cluster,
        profile.kubernetes_version,
        properties.join(" ")
    )
}

fn key(key: Option<&v1::ServiceKey>) -> String {
    key.map_or_else(String::new, |key| format!("{}/{}", key.namespace, key.name))
}

fn ports(ports: &[v1::ServicePort]) -> String {
    let ports = ports
        .iter()
        .map(|port| format!("{} {:?} {}", port.name, port.protocol(), port.port));
    ports.collect::<Vec<_>>().join(" ")
}

fn pairs(pairs: &[v1::KeyValue]) -> String {
    let pairs = pairs.iter().map(|pair| format!("{}={}", pair.key, pair.value));
    pairs.collect::<Vec<_>>().join(" ")
}

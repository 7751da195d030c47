//! The columns of built-in kinds in `kubectl get`: their names and what each shows of an object.
//! Pure functions; CRDs name their own columns.

use serde_json::{Value, json};

use super::{age::age, kinds::Kind};

/// The items of a list that are shown; the others are counted.
const SHOWN_MAX: usize = 3;

/// A column: its name, whether only `-o wide` shows it, and its cell for an object at a time.
pub(super) type Column = (&'static str, bool, fn(&Value, i64) -> Value);

/// The columns of a built-in kind behind its name, or in place of it: an Event's name says nothing.
pub(super) fn of(kind: &Kind) -> &'static [Column] {
    match kind.kind.as_str() {
        "Namespace" => &[("Status", false, |it, _| cell(&it["status"]["phase"])), AGE],
        "Service" => SERVICE,
        "EndpointSlice" => SLICE,
        "Deployment" => DEPLOYMENT,
        "Event" => EVENT,
        "Lease" => &[
            ("Holder", false, |it, _| cell(&it["spec"]["holderIdentity"])),
            AGE,
        ],
        "ConfigMap" => &[
            ("Data", false, |it, _| {
                json!(size(&it["data"]) + size(&it["binaryData"]))
            }),
            AGE,
        ],
        _ => &[AGE],
    }
}

const AGE: Column = ("Age", false, |it, now| {
    json!(age(&it["metadata"]["creationTimestamp"], now))
});

const SERVICE: &[Column] = &[
    ("Type", false, |it, _| cell(&it["spec"]["type"])),
    ("Cluster-IP", false, |it, _| {
        or_none(text(&it["spec"]["clusterIPs"][0]))
    }),
    ("External-IP", false, |it, _| json!(external_ip(it))),
    ("Port(s)", false, |it, _| {
        or_none(joined(&it["spec"]["ports"], service_port))
    }),
    AGE,
    ("Selector", true, |it, _| or_none(pairs(&it["spec"]["selector"]))),
];

const SLICE: &[Column] = &[
    ("AddressType", false, |it, _| cell(&it["addressType"])),
    ("Ports", false, |it, _| {
        json!(few(items(&it["ports"]).map(slice_port)))
    }),
    ("Endpoints", false, |it, _| {
        let addresses = items(&it["endpoints"]).flat_map(|endpoint| items(&endpoint["addresses"]));
        json!(few(addresses.map(text)))
    }),
    AGE,
];

const DEPLOYMENT: &[Column] = &[
    ("Ready", false, |it, _| {
        let (is, wanted) = (
            count(&it["status"]["readyReplicas"]),
            count(&it["spec"]["replicas"]),
        );
        json!(format!("{is}/{wanted}"))
    }),
    ("Up-to-date", false, |it, _| {
        json!(count(&it["status"]["updatedReplicas"]))
    }),
    ("Available", false, |it, _| {
        json!(count(&it["status"]["availableReplicas"]))
    }),
    AGE,
    ("Containers", true, |it, _| {
        json!(joined(containers(it), |container| text(&container["name"])))
    }),
    ("Images", true, |it, _| {
        json!(joined(containers(it), |container| text(&container["image"])))
    }),
    ("Selector", true, |it, _| {
        json!(pairs(&it["spec"]["selector"]["matchLabels"]))
    }),
];

const EVENT: &[Column] = &[
    ("Last Seen", false, |it, now| {
        let times = [
            &it["series"]["lastObservedTime"],
            &it["deprecatedLastTimestamp"],
            &it["eventTime"],
        ];
        let last = times
            .into_iter()
            .find(|time| time.is_string())
            .unwrap_or(&Value::Null);
        json!(age(last, now))
    }),
    ("Type", false, |it, _| cell(&it["type"])),
    ("Reason", false, |it, _| cell(&it["reason"])),
    ("Object", false, |it, _| {
        let kind = text(&it["regarding"]["kind"]).to_lowercase();
        match text(&it["regarding"]["name"]).as_str() {
            "" => json!(kind),
            name => json!(format!("{kind}/{name}")),
        }
    }),
    ("Message", false, |it, _| json!(text(&it["note"]).trim())),
    ("Name", true, |it, _| cell(&it["metadata"]["name"])),
];

fn cell(value: &Value) -> Value {
    json!(text(value))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn or_none(text: String) -> Value {
    json!(if text.is_empty() {
        "<none>".to_owned()
    } else {
        text
    })
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn size(map: &Value) -> usize {
    map.as_object().map_or(0, |map| map.len())
}

fn count(number: &Value) -> i64 {
    number.as_i64().unwrap_or_default()
}

fn containers(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"]
}

fn joined(list: &Value, shown: fn(&Value) -> String) -> String {
    items(list).map(shown).collect::<Vec<_>>().join(",")
}

fn pairs(map: &Value) -> String {
    let pairs = map.as_object().into_iter().flatten();
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{key}={}", text(value)))
        .collect();
    pairs.join(",")
}

/// The first few of a list, and how many there are beyond them.
fn few(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    match all.len().checked_sub(SHOWN_MAX) {
        Some(more) if more > 0 => format!("{} + {more} more...", all[..SHOWN_MAX].join(",")),
        _ if all.is_empty() => "<unset>".to_owned(),
        _ => all.join(","),
    }
}

fn service_port(port: &Value) -> String {
    match count(&port["nodePort"]) {
        0 => format!("{}/{}", port["port"], text(&port["protocol"])),
        node => format!("{}:{node}/{}", port["port"], text(&port["protocol"])),
    }
}

fn slice_port(port: &Value) -> String {
    match port["port"].as_i64() {
        Some(number) => number.to_string(),
        None => text(&port["name"]),
    }
}

fn external_ip(service: &Value) -> String {
    let spec = &service["spec"];
    let stated = joined(&spec["externalIPs"], text);
    match spec["type"].as_str() {
        Some("ExternalName") => text(&spec["externalName"]),
        _ if !stated.is_empty() => stated,
        Some("LoadBalancer") => "<pending>".to_owned(),
        _ => "<none>".to_owned(),
    }
}

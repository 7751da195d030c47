//! Plans after the answers of an API server.

use std::sync::{Arc, Mutex};

use serde_json::json;
use shared::testing::api_server::{Asked, ScriptedServer};

use super::*;

fn object(kind: &str, name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "p.x/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"image": image},
    })
}

fn change(action: Action, kind: &str, name: &str, image: &str) -> Change {
    Change {
        place: kind.to_lowercase(),
        action,
        kind: kind.to_owned(),
        name: name.to_owned(),
        before: (action == Action::Rotate).then(|| "old".to_owned()),
        fields: Vec::new(),
        note: String::new(),
        object: Some(object(kind, name, image)),
        machines: 0,
    }
}

/// A server that writes images in small letters, and takes no image called `bad`.
fn answer(asked: &Asked) -> (u16, Value) {
    if asked.method == "GET" {
        let resource = |(kind, plural): (&str, &str)| json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["patch"]});
        let resources = [
            ("Host", "hosts"),
            ("HostTemplate", "hosttemplates"),
            ("Secret", "secrets"),
        ]
        .map(resource);
        let list = json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "p.x/v1", "resources": resources});
        return (200, list);
    }
    let failure = |code: u16, reason: &str, message: &str, causes: Value| {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message,
            "details": {"causes": causes},
        });
        (code, status)
    };
    if asked.path.contains("/secrets/") {
        let message = "secrets.p.x \"s\" is forbidden: User \"ci\" cannot patch resource \"secrets\" in API group \"p.x\"";
        return failure(403, "Forbidden", message, json!([]));
    }
    let mut stored = asked.body.clone();
    let image = stored["spec"]["image"]
        .as_str()
        .unwrap_or_default()
        .to_lowercase();
    if image == "bad" {
        return failure(422, "Invalid", "spec.image: must not be bad", json!([]));
    }
    if asked.path.contains("/hosttemplates/old") && image != "debian-12" {
        let cause =
            json!([{"field": "spec.image", "reason": "FieldValueInvalid", "message": "Value is immutable"}]);
        return failure(422, "Invalid", "it is immutable", cause);
    }
    stored["spec"]["image"] = json!(image);
    (200, stored)
}

/// The plan after dry runs: what is told, and what becomes of each object.
async fn asked(changes: Vec<Change>, there: &[Value]) -> (Told, Vec<String>, Vec<String>) {
    let _ = shared::tls::install_crypto_provider();
    let paths = Arc::new(Mutex::new(Vec::new()));
    let seen = paths.clone();
    let server = ScriptedServer::start(move |asked| {
        if asked.method != "GET" {
            seen.lock()
                .expect("no panic")
                .push(format!("{} {}", asked.method, asked.path));
        }
        answer(asked)
    })
    .await;
    let config = kube::Config::new(server.uri.parse().expect("a URI"));
    let client = Client::try_from(config).expect("a client");
    let mut plans = vec![Plan {
        namespace: "ns".to_owned(),
        name: "c".to_owned(),
        changes,
        ..Plan::default()
    }];
    let told = dry_run(client, &Objects::of(there), &mut plans).await;
    let shown = plans[0]
        .changes
        .iter()
        .map(|one| format!("{} {}", one.action.name(), one.name));
    let paths = paths.lock().expect("no panic").clone();
    (told, shown.collect(), paths)
}

#[tokio::test]
async fn a_value_that_the_server_normalises_is_no_change() {
    let there = [
        object("Host", "h", "debian-12"),
        object("HostTemplate", "old", "debian-12"),
    ];
    let changes = vec![
        change(Action::Update, "Host", "h", "Debian-12"),
        change(Action::Rotate, "HostTemplate", "new", "Debian-12"),
        change(Action::Keep, "Host", "kept", "x"),
    ];
    let (told, shown, paths) = asked(changes, &there).await;
    assert_eq!((told.findings.len(), told.no_right.len()), (0, 0));
    assert_eq!(shown, ["keep h", "keep old", "keep kept"]);
    assert_eq!(paths.len(), 2, "what is kept is not asked about: {paths:?}");
    for path in &paths {
        assert!(path.starts_with("PATCH") && path.contains("dryRun=All"), "{path}");
        assert!(path.contains("fieldManager=capi-topology"), "{path}");
    }
}

#[tokio::test]
async fn a_template_that_may_not_change_is_rotated_and_its_successor_asked_about() {
    let there = [object("HostTemplate", "old", "debian-12")];
    let (told, shown, paths) = asked(
        vec![change(Action::Rotate, "HostTemplate", "new", "debian-13")],
        &there,
    )
    .await;
    assert!(told.findings.is_empty(), "{:?}", told.findings);
    assert_eq!(shown, ["rotate new"]);
    assert!(paths[1].contains("/hosttemplates/new"), "{paths:?}");
}

#[tokio::test]
async fn a_refusal_is_told_with_the_name_of_its_object() {
    let there = [object("Host", "h", "debian-12")];
    let changes = vec![
        change(Action::Update, "Host", "h", "bad"),
        change(Action::Create, "Host", "made", "bad"),
        change(Action::Create, "Unserved", "u", "x"),
        change(Action::Create, "Secret", "s", "x"),
    ];
    let (told, shown, _) = asked(changes, &there).await;
    assert_eq!(shown[..2], ["update h", "create made"]);
    let lines: Vec<String> = told.findings.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines[0],
        "server: Cluster ns/c: host: dry-run: Host h: spec.image: must not be bad (HTTP 422)"
    );
    assert!(lines[1].contains("Host made"), "{lines:?}");
    assert!(lines[2].contains("serves no Unserved"), "{lines:?}");
    assert_eq!(lines.len(), 3);
    assert_eq!(
        Vec::from_iter(told.no_right),
        ["Secret"],
        "it is no fault of the class"
    );
}

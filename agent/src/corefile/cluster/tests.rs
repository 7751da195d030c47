//! The ConfigMap on an API server that knows nothing else.

use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use shared::model::advice;

use super::*;
use crate::corefile::{Answering, answering, args::CorefileCommand, configure, edit::Wanted, in_cluster};

const COREFILE: &str =
    ".:53 {\n    kubernetes cluster.local in-addr.arpa {\n        ttl 30\n    }\n    reload\n}\n";

/// The API server: its ConfigMap, if there is one, and what was sent to change it.
#[derive(Clone)]
struct Server {
    map: Arc<Mutex<Option<Value>>>,
    patches: Arc<Mutex<Vec<Value>>>,
    /// The data of the ConfigMap beside it.
    beside: Arc<Mutex<Option<Value>>>,
    /// Somebody else changes the ConfigMap whenever it was read.
    contended: bool,
    /// Nobody may do anything.
    forbidden: bool,
    /// The path of a ConfigMap of another server.
    other: &'static str,
}

impl Server {
    fn with(map: Option<Value>) -> Self {
        Self {
            map: Arc::new(Mutex::new(map)),
            patches: Arc::default(),
            beside: Arc::default(),
            contended: false,
            forbidden: false,
            other: "",
        }
    }

    fn holding(corefile: &str) -> Self {
        Self::with(Some(json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "coredns", "namespace": "kube-system", "resourceVersion": "7"},
            "data": {"Corefile": corefile, "other": "stays"},
        })))
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.expect("a body");
                let name = parts
                    .uri
                    .path()
                    .strip_prefix("/api/v1/namespaces/kube-system/configmaps/");
                let other = [
                    "/api/v1/namespaces/openshift-dns/configmaps/dns-default",
                    "/api/v1/namespaces/kube-system/configmaps/kube-dns",
                ];
                let (code, answer) = match name {
                    _ if other.contains(&parts.uri.path()) => server.answer_other(parts.uri.path()),
                    Some("coredns") => server.answer(&parts.method, &body),
                    Some("coredns-custom") => server.answer_beside(&parts.method, &body),
                    _ => panic!("{} was asked", parts.uri),
                };
                Response::builder()
                    .status(code)
                    .body(Body::from(answer.to_string().into_bytes()))
            }
        });
        Client::new(service, "default")
    }

    fn answer_other(&self, path: &str) -> (StatusCode, Value) {
        if path == self.other {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
            return (StatusCode::OK, map);
        }
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
            "message": "not found", "reason": "NotFound"});
        (StatusCode::NOT_FOUND, status)
    }

    fn answer(&self, method: &Method, body: &[u8]) -> (StatusCode, Value) {
        let mut stored = self.map.lock().expect("not poisoned");
        let status = |code: StatusCode| {
            let message = code.canonical_reason().unwrap_or_default();
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(),
                "message": format!("{message}, says the server"), "reason": message.replace(' ', "")});
            (code, status)
        };
        if self.forbidden {
            return status(StatusCode::FORBIDDEN);
        }
        let Some(map) = &mut *stored else {
            return status(StatusCode::NOT_FOUND);
        };
        let answer = map.clone();
        if *method == Method::GET {
            if self.contended {
                map["metadata"]["resourceVersion"] = json!("8");
            }
            return (StatusCode::OK, answer);
        }
        assert_eq!(*method, Method::PATCH);
        let patch: Value = serde_json::from_slice(body).expect("a patch");
        self.patches.lock().expect("not poisoned").push(patch.clone());
        if patch["metadata"]["resourceVersion"] != map["metadata"]["resourceVersion"] {
            return status(StatusCode::CONFLICT);
        }
        map["data"]["Corefile"] = patch["data"]["Corefile"].clone();
        map["metadata"]["resourceVersion"] = json!("9");
        (StatusCode::OK, map.clone())
    }

    /// One manager applies the ConfigMap beside it: what it leaves out goes.
    fn answer_beside(&self, method: &Method, body: &[u8]) -> (StatusCode, Value) {
        let mut stored = self.beside.lock().expect("not poisoned");
        if *method != Method::GET {
            let applied: Value = serde_json::from_slice(body).expect("an object");
            *stored = Some(applied["data"].clone());
        }
        let shown = |data: &Value| json!({"metadata": {"name": "coredns-custom", "resourceVersion": "1"}, "data": data});
        match &*stored {
            Some(data) => (StatusCode::OK, shown(data)),
            None => {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
                    "message": "not found", "reason": "NotFound"});
                (StatusCode::NOT_FOUND, status)
            }
        }
    }

    /// One that a provider keeps, by this label.
    fn kept(corefile: &str, label: (&str, &str)) -> Self {
        let server = Self::holding(corefile);
        if let Some(map) = &mut *server.map.lock().expect("not poisoned") {
            map["metadata"]["labels"] = json!({label.0: label.1});
        }
        server
    }

    fn corefile(&self) -> String {
        let map = self.map.lock().expect("not poisoned").clone().expect("there");
        map["data"]["Corefile"].as_str().expect("a text").to_owned()
    }

    fn patches(&self) -> Vec<Value> {
        self.patches.lock().expect("not poisoned").clone()
    }

    /// Runs the command against it, with these flags behind its name.
    async fn run(&self, line: &str) -> Result<String, String> {
        let (wanted, args) = typed(line);
        let corefile = ClusterCorefile::new(self.client(), &args);
        let ran = in_cluster(wanted, &args, &corefile, "https://east:6443").await;
        ran.map_err(|error| format!("{error:#}"))
    }
}

fn typed(line: &str) -> (Wanted, CorefileArgs) {
    use clap::Parser;
    let words = format!("tributary-agent corefile {line}");
    match crate::args::Cli::try_parse_from(words.split_whitespace())
        .expect("understood")
        .command
    {
        crate::args::Command::Corefile(CorefileCommand::Add(args)) => (Wanted::Zone, args),
        crate::args::Command::Corefile(CorefileCommand::Remove(args)) => (Wanted::NoZone, args),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_dry_run_changes_nothing_and_the_command_it_names_does_it() {
    let server = Server::holding(COREFILE);
    let told = server.run("add").await.expect("decided");
    assert!(
        told.contains("Nothing has changed yet") && told.contains("https://east:6443"),
        "{told}"
    );
    assert!(
        told.contains("+     kubernetes cluster.local clusterset.local in-addr.arpa {"),
        "{told}"
    );
    let command = advice::agent_corefile_add(&[]);
    assert!(told.ends_with(&format!("To do it:\n  {command}\n")), "{told}");
    assert!(server.patches().is_empty());

    let told = server.run("add --apply").await.expect("done");
    assert!(told.contains("was added") && told.contains("by itself"), "{told}");
    assert!(told.contains(&advice::kubectl_coredns_rights()), "{told}");
    let after = server.corefile();
    assert!(after.contains("multicluster clusterset.local"), "{after}");
    assert_eq!(
        server.patches(),
        [json!({"metadata": {"resourceVersion": "7"}, "data": {"Corefile": after}})]
    );

    for line in ["add", "add --apply"] {
        let told = server.run(line).await.expect("decided");
        assert!(told.starts_with("Nothing to do"), "{told}");
    }
    let told = server.run("remove").await.expect("decided");
    assert!(
        told.ends_with(&format!("  {}\n", advice::agent_corefile_remove(&[]))),
        "{told}"
    );
    let told = server.run("remove --apply").await.expect("done");
    assert!(told.contains("was removed"), "{told}");
    assert_eq!(server.corefile(), COREFILE);
    let told = server.run("remove --apply").await.expect("decided");
    assert!(told.starts_with("Nothing to do"), "{told}");
    assert_eq!(server.patches().len(), 2);
}

#[tokio::test]
async fn a_corefile_that_nobody_reloads_wants_a_restart() {
    let server = Server::holding(&COREFILE.replace("    reload\n", ""));
    let told = server.run("add --apply").await.expect("done");
    let restart = advice::kubectl_restart_coredns("kube-system", "coredns");
    assert!(told.contains(&restart), "{told}");
}

#[tokio::test]
async fn what_somebody_else_wrote_meanwhile_stays() {
    let mut server = Server::holding(COREFILE);
    server.contended = true;
    let error = server.run("add --apply").await.expect_err("a conflict");
    assert!(
        error.contains("run the command again") && !error.contains('\n'),
        "{error}"
    );
    assert_eq!(server.corefile(), COREFILE);
}

#[tokio::test]
async fn whose_right_is_missing_is_told() {
    let mut server = Server::holding(COREFILE);
    server.forbidden = true;
    let error = server.run("add").await.expect_err("forbidden");
    assert!(
        error.contains("Forbidden, says the server; it takes a kubeconfig"),
        "{error}"
    );
    let (_, args) = typed("add");
    let read = Read {
        text: String::new(),
        version: "7".to_owned(),
        kept_by: None,
    };
    let corefile = ClusterCorefile::new(server.client(), &args);
    let error = corefile
        .write(&read, "")
        .await
        .expect_err("forbidden")
        .to_string();
    assert!(
        error.starts_with("cannot change the ConfigMap coredns: Forbidden"),
        "{error}"
    );
}

/// AKS puts its ConfigMap back within minutes: the zone goes into the one beside it, and the provider's stays as it is.
#[tokio::test]
async fn beside_a_corefile_that_is_put_back_a_server_block_is_written() {
    let corefile = format!("{COREFILE}import custom/*.server\n");
    let server = Server::kept(&corefile, ("addonmanager.kubernetes.io/mode", "Reconcile"));
    let told = server.run("add").await.expect("decided");
    assert!(
        told.contains("addonmanager.kubernetes.io/mode: Reconcile") && told.contains("coredns-custom"),
        "{told}"
    );
    assert!(told.contains("+ clusterset.local:53 {"), "{told}");
    assert!(
        told.ends_with(&format!("To do it:\n  {}\n", advice::agent_corefile_add(&[]))),
        "{told}"
    );
    assert!(server.beside.lock().expect("not poisoned").is_none(), "a dry run");

    server.run("add --apply").await.expect("done");
    let block = server.beside.lock().expect("not poisoned").clone().expect("made");
    let block = block["clusterset.server"].as_str().expect("our key").to_owned();
    assert!(block.contains("multicluster clusterset.local"), "{block}");
    let told = server.run("add --apply").await.expect("decided");
    assert!(told.starts_with("Nothing to do"), "{told}");
    server.run("remove --apply").await.expect("done");
    let left = server.beside.lock().expect("not poisoned").clone();
    assert_eq!(left, Some(Value::Null), "our key goes");
    assert!(server.patches().is_empty(), "the provider's stays as it is");
    assert_eq!(server.corefile(), corefile);
}

/// It was added before the provider's label was there, or before this command knew of the place beside it.
#[tokio::test]
async fn what_was_added_in_both_places_is_removed_from_both() {
    let corefile = format!("{COREFILE}import custom/*.server\n");
    for label in [
        ("addonmanager.kubernetes.io/mode", "Reconcile"),
        ("k8s-app", "kube-dns"),
    ] {
        let server = Server::kept(&corefile, ("k8s-app", "kube-dns"));
        server.run("add --apply").await.expect("done");
        let kept = Server::kept(
            &server.corefile(),
            ("addonmanager.kubernetes.io/mode", "Reconcile"),
        );
        kept.run("add --apply").await.expect("done");
        if let Some(map) = &mut *kept.map.lock().expect("not poisoned") {
            map["metadata"]["labels"] = json!({label.0: label.1});
        }
        let told = kept.run("remove").await.expect("decided");
        assert!(kept.patches().is_empty(), "a dry run: {told}");
        let told = kept.run("remove --apply").await.expect("done");
        assert!(
            told.contains("was removed") && told.contains("coredns-custom"),
            "{told}"
        );
        assert_eq!(kept.corefile(), corefile);
        let left = kept.beside.lock().expect("not poisoned").clone();
        assert_eq!(left, Some(Value::Null), "our key goes");
    }
}

/// Without an import there is no other place: who edits it is warned, and what was added before can be removed.
#[tokio::test]
async fn an_edit_that_is_put_back_is_warned_of() {
    let server = Server::kept(COREFILE, ("eks.amazonaws.com/component", "coredns"));
    let told = server.run("add --apply").await.expect("done");
    assert!(
        told.starts_with("Warning: the ConfigMap kube-system/coredns is put back"),
        "{told}"
    );
    assert!(server.corefile().contains("multicluster clusterset.local"));
    let told = server.run("remove --apply").await.expect("done");
    assert!(!told.contains("Warning"), "{told}");
    assert_eq!(server.corefile(), COREFILE);
}

/// A program that configures DNS asks first: nothing is changed, and an edit that would be put back is known before.
#[tokio::test]
async fn a_program_knows_before_what_an_edit_would_do() {
    let args = CorefileArgs::usual(true).expect("valid");
    let ask = async |server: &Server| answering(server.client(), &args, "here").await;
    let server = Server::holding(COREFILE);
    let found = ask(&server).await.expect("looked");
    let Answering::Not { change } = found else {
        panic!("{found:?}")
    };
    assert!(
        change.contains("clusterset.local") && server.patches().is_empty(),
        "{change}"
    );
    let done = configure(server.client(), Wanted::Zone, &args, "here").await;
    done.expect("configured");
    assert_eq!(ask(&server).await.expect("looked"), Answering::Yes);
    let reverted = Server::kept(COREFILE, ("eks.amazonaws.com/component", "coredns"));
    assert_eq!(
        ask(&reverted).await.expect("looked"),
        Answering::Reverted("eks.amazonaws.com/component: coredns".to_owned())
    );
    let imports = format!("{COREFILE}import custom/*.server\n");
    let beside = Server::kept(&imports, ("addonmanager.kubernetes.io/mode", "Reconcile"));
    assert!(matches!(
        ask(&beside).await.expect("looked"),
        Answering::Not { .. }
    ));
    ask(&Server::with(None)).await.expect_err("there is none");
}

#[tokio::test]
async fn a_server_that_is_not_corednss_is_named_with_its_part_of_the_guide() {
    let guide = include_str!("../../../../docs/guides/dns.md");
    for (other, heading, anchor) in [
        (
            "/api/v1/namespaces/openshift-dns/configmaps/dns-default",
            "## OpenShift",
            "dns.md#openshift",
        ),
        (
            "/api/v1/namespaces/kube-system/configmaps/kube-dns",
            "## GKE",
            "dns.md#gke",
        ),
    ] {
        let mut server = Server::with(None);
        server.other = other;
        let (wanted, args) = typed("add");
        let refused = configure(server.client(), wanted, &args, "https://a").await;
        let refused = format!("{:#}", refused.expect_err("there is no Corefile"));
        assert!(refused.ends_with(anchor), "{refused}");
        assert!(guide.lines().any(|line| line == heading), "no {heading}");
        assert!(server.patches.lock().expect("not poisoned").is_empty());
    }
}

#[tokio::test]
async fn a_corefile_that_is_not_there_or_not_understood_is_told_in_one_line() {
    for (server, line, told) in [
        (Server::with(None), "add", "--configmap"),
        (
            Server::holding(COREFILE),
            "add --key other.conf",
            "it has: Corefile, other",
        ),
        (
            Server::with(Some(json!({"metadata": {"resourceVersion": "1"}}))),
            "remove",
            "it has: none",
        ),
        (
            Server::with(Some(json!({"metadata": {}, "data": {"Corefile": ""}}))),
            "add",
            "resourceVersion",
        ),
        (Server::holding("errors"), "add --apply", "no braces"),
        (
            Server::holding(COREFILE),
            "add --apply --zone cluster.local",
            "stays as it is: line 2: cluster.local",
        ),
    ] {
        let error = server.run(line).await.expect_err(line);
        assert!(error.contains(told) && !error.contains('\n'), "{line}: {error}");
        assert!(server.patches().is_empty());
    }
}

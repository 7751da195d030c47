//! The one request handler of a simulated cluster: HTTP in, an answer or an open watch out.
//! Synchronous and without a socket; both fronts and a synchronous simulation call it.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};

use super::{
    answer::{Answer, Reply},
    discovery,
    faults::{Fault, Faults},
    list,
    managers::Subresource,
    media::{self, Form, Include},
    requests::{Entry, Requests},
    scale,
    status::{Cause, Refusal},
    store::{Store, Watch},
    table::table,
    target::Target,
    versions::{convert_event, in_version, presented},
    write::{How, Write},
};
use crate::grants::{Grants, REVIEWS};

/// Lifetime of a watch without timeoutSeconds.
const WATCH_SECONDS_DEFAULT: u64 = 1_800;
/// The longest manager name.
const MANAGER_LENGTH_MAX: usize = 128;

/// One simulated cluster: its store behind faults, with a record of every request.
pub(crate) struct Cluster {
    pub(crate) store: Store,
    pub(crate) faults: Faults,
    pub(crate) requests: Requests,
    pub(crate) grants: Grants,
}

impl Cluster {
    /// Answers one request.
    pub(crate) fn handle(&mut self, request: &Request<Bytes>) -> Reply {
        let path = request.uri().path().trim_end_matches('/').to_owned();
        if request.method() == Method::GET {
            let kinds = &self.store.kinds;
            let described = discovery::document(kinds, &path).map(Answer::Document);
            let whole = |body| Answer::Whole { code: 200, body };
            if let Some(answer) = described.or_else(|| discovery::answer(kinds, &path).map(whole)) {
                return Reply { delay_ms: 0, answer };
            }
        }
        if request.method() == Method::POST && path == REVIEWS {
            let review: Value = serde_json::from_slice(request.body()).unwrap_or_default();
            return Reply {
                delay_ms: 0,
                answer: Answer::Whole {
                    code: 201,
                    body: self.grants.review(&review),
                },
            };
        }
        let query = request.uri().query().unwrap_or_default();
        let target = Target::parse(&self.store.kinds, &path, query);
        let mut entry = match &target {
            Ok(target) => entry(request, target),
            Err(_) => Entry {
                verb: "unknown",
                resource: path,
                ..Entry::default()
            },
        };
        let fault = self.faults.decide(entry.verb, &entry.resource, &entry.name);
        let answer = match (target, fault.as_ref().and_then(Fault::refusal)) {
            (_, Some(refusal)) | (Err(refusal), None) => Err(refusal),
            (Ok(target), None) => self.perform(request, target),
        };
        let answer = answer.unwrap_or_else(|refusal| Answer::Whole {
            code: refusal.code,
            body: refusal.body(),
        });
        entry.code = if let Answer::Whole { code, .. } = answer {
            code
        } else {
            200
        };
        entry.at_ms = self.store.clock.now_ms();
        self.requests.record(entry);
        match fault {
            Some(Fault::AnswerLost) => Reply {
                delay_ms: 0,
                answer: Answer::Lost,
            },
            Some(Fault::Slow { by_ms }) => Reply {
                delay_ms: by_ms,
                answer,
            },
            _ => Reply { delay_ms: 0, answer },
        }
    }

    fn perform(&mut self, request: &Request<Bytes>, target: Target) -> Result<Answer, Refusal> {
        let form = media::accepted(request)?;
        if *request.method() == Method::GET {
            return if !target.name.is_empty() {
                self.get(&target, form)
            } else if target.flag("watch") {
                self.watch(target, form)
            } else {
                list::list(&self.store, target, form)
            };
        }
        let dry_run = !target.text("dryRun").is_empty();
        if dry_run && *request.method() == Method::DELETE {
            return Err(Refusal::bad_request(
                "the simulated API server has no dryRun of deletions: send the request without it",
            ));
        }
        let mut body = media::body(request, &target.kind)?;
        let how = match (request.method(), target.name.is_empty()) {
            (&Method::DELETE, false) => return self.delete(&target, &body),
            (&Method::POST, true) => How::Create,
            (&Method::PUT, false) => How::Update,
            (&Method::PATCH, false) => patch_kind(request, &target)?,
            _ => {
                return Err(Refusal::new(
                    405,
                    "MethodNotAllowed",
                    "the server does not allow this method on the resource",
                ));
            }
        };
        convert_event(&mut body, &target.kind.group, true);
        let before = dry_run.then(|| self.store.clone());
        let written = self.write(request, &target, how, body);
        if let Some(before) = before {
            self.store = before;
        }
        let (created, object) = written?;
        Ok(Answer::Whole {
            code: if created { 201 } else { 200 },
            body: self.shown(&target, &object, form),
        })
    }

    fn write(
        &mut self,
        request: &Request<Bytes>,
        target: &Target,
        mut how: How,
        mut body: Value,
    ) -> Result<(bool, Arc<Value>), Refusal> {
        if target.subresource == Subresource::Scale {
            body = scale::as_patch(&target.kind, &*self.kept(target)?, &how, &body)?;
            how = How::MergePatch;
        }
        self.store.write(Write {
            manager: manager(request, target),
            strict: target.text("fieldValidation") == "Strict",
            kind: target.kind.clone(),
            version: target.version.clone(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            subresource: target.subresource,
            how,
            body,
        })
    }

    fn kept(&self, target: &Target) -> Result<Arc<Value>, Refusal> {
        let object = self.store.get(target.kind.key(), &target.namespace, &target.name);
        object.ok_or_else(|| Refusal::not_found(&target.kind, &target.name))
    }

    fn get(&self, target: &Target, form: Form) -> Result<Answer, Refusal> {
        let object = self.kept(target)?;
        Ok(Answer::Whole {
            code: 200,
            body: self.shown(target, &object, form),
        })
    }

    /// One object in the form that was asked for; of a Scale there is no table.
    fn shown(&self, target: &Target, object: &Arc<Value>, form: Form) -> Value {
        if target.subresource == Subresource::Scale {
            return scale::of(object);
        }
        let (kind, version) = (&target.kind, target.version.as_str());
        if form == Form::Object {
            return presented(kind, version, object);
        }
        let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
        let include = Include::parse(target.text("includeObject"));
        let objects = std::slice::from_ref(object);
        table(
            kind,
            version,
            objects,
            metadata,
            include,
            self.store.clock.now_ms(),
        )
    }

    fn delete(&mut self, target: &Target, options: &Value) -> Result<Answer, Refusal> {
        let place = (
            target.kind.key().to_owned(),
            target.namespace.clone(),
            target.name.clone(),
        );
        let last = self.store.remove(&target.kind, place, options)?;
        let held = !last["metadata"]["deletionTimestamp"].is_null();
        if held || target.kind.kind == "Service" {
            return Ok(Answer::Whole {
                code: 200,
                body: presented(&target.kind, &target.version, &last),
            });
        }
        let details = json!({"name": target.name, "group": target.kind.group, "kind": target.kind.plural,
                             "uid": last["metadata"]["uid"]});
        let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
        Ok(Answer::Whole { code: 200, body })
    }

    fn watch(&self, target: Target, form: Form) -> Result<Answer, Refusal> {
        let selector = list::selector(&target)?;
        let revision = list::revision(target.text("resourceVersion"))?;
        let streaming = target.flag("sendInitialEvents");
        if streaming && target.text("resourceVersionMatch") != "NotOlderThan" {
            let why = "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            let cause = Cause::other("FieldValueForbidden", "resourceVersionMatch", why);
            return Err(Refusal::invalid_as("meta.k8s.io", "ListOptions", "", &[cause]));
        }
        Ok(Answer::Watch(Box::new(Watch {
            timeout_seconds: target
                .text("timeoutSeconds")
                .parse()
                .unwrap_or(WATCH_SECONDS_DEFAULT),
            bookmarks: target.flag("allowWatchBookmarks"),
            initial: streaming || revision == 0,
            initial_bookmark: streaming && target.flag("allowWatchBookmarks"),
            opened: self.faults.watch_epoch(),
            form,
            include: Include::parse(target.text("includeObject")),
            kind: target.kind,
            version: target.version,
            namespace: target.namespace,
            selector,
            revision,
        })))
    }

    /// The lines of a watch that are due, and whether it ends after them.
    pub(crate) fn poll_watch(&mut self, watch: &mut Watch) -> (Vec<Value>, bool) {
        if self.faults.drops_watch(watch.opened, &watch.kind.plural) {
            return (Vec::new(), true);
        }
        match self.store.poll(watch) {
            Ok(events) => {
                let now = self.store.clock.now_ms();
                let line = |(event, object): (&str, Value)| {
                    let object = told(watch, object, now);
                    Value::from_iter([("type", event.into()), ("object", object)])
                };
                (
                    events.into_iter().map(line).collect(),
                    self.store.kinds.by_key(watch.kind.key()).is_none(),
                )
            }
            Err(refusal) => (vec![json!({"type": "ERROR", "object": refusal.body()})], true),
        }
    }

    /// A bookmark for an idle watch, unless it wants none or a fault skips it.
    pub(crate) fn bookmark(&mut self, watch: &Watch) -> Option<Value> {
        let due = watch.bookmarks && !self.faults.skips_bookmark(&watch.kind.plural);
        due.then(|| json!({"type": "BOOKMARK", "object": self.store.bookmark(watch)}))
    }
}

/// An object, or a bookmark, as a watch tells it.
fn told(watch: &Watch, object: Value, now_ms: i64) -> Value {
    if watch.form == Form::Object {
        return in_version(&watch.kind, &watch.version, object);
    }
    let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
    let row = [Arc::new(object)];
    table(&watch.kind, &watch.version, &row, metadata, watch.include, now_ms)
}

fn patch_kind(request: &Request<Bytes>, target: &Target) -> Result<How, Refusal> {
    match media::content_type(request) {
        "application/apply-patch+yaml" if target.text("fieldManager").is_empty() => {
            Err(Refusal::no_manager())
        }
        "application/apply-patch+yaml" => Ok(How::Apply {
            force: target.flag("force"),
        }),
        "application/merge-patch+json" => Ok(How::MergePatch),
        "application/strategic-merge-patch+json" if !target.kind.custom => Ok(How::StrategicPatch),
        other => {
            let message = format!(
                "the body of the request was in an unknown format - {other} is not served for this resource"
            );
            Err(Refusal::new(415, "UnsupportedMediaType", message))
        }
    }
}

fn manager(request: &Request<Bytes>, target: &Target) -> String {
    let agent = user_agent(request);
    let named = match target.text("fieldManager") {
        "" => agent.split('/').next().unwrap_or_default(),
        named => named,
    };
    let named = if named.is_empty() { "unknown" } else { named };
    named.chars().take(MANAGER_LENGTH_MAX).collect()
}

fn user_agent(request: &Request<Bytes>) -> &str {
    request
        .headers()
        .get(http::header::USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn entry(request: &Request<Bytes>, target: &Target) -> Entry {
    let verb = match (request.method(), target.name.is_empty()) {
        (&Method::GET, true) if target.flag("watch") => "watch",
        (&Method::GET, true) => "list",
        (&Method::GET, false) => "get",
        (&Method::POST, _) => "create",
        (&Method::PUT, _) => "update",
        (&Method::PATCH, _) => "patch",
        (&Method::DELETE, _) => "delete",
        _ => "unknown",
    };
    Entry {
        verb,
        resource: target.kind.plural.clone(),
        status: target.subresource == Subresource::Status,
        namespace: target.namespace.clone(),
        name: target.name.clone(),
        user_agent: user_agent(request).to_owned(),
        manager: manager(request, target),
        dry_run: !target.text("dryRun").is_empty(),
        ..Entry::default()
    }
}

//! Lists: of the present or of a past revision, whole or in pages that all show the same revision.
//! Reads the store and its history; never changes anything.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{
    answer::Answer,
    listing::Listing,
    media::{Form, Include},
    selector::Selector,
    status::{Cause, Refusal},
    store::{ObjectKey, Store},
    table::table,
    target::Target,
};

/// The parameters of a list beside its selectors.
struct Question {
    /// Items in a page; nothing for all of them.
    limit: Option<usize>,
    /// Only what stands behind this namespace and name.
    after: Option<(String, String)>,
    /// As it was at this revision; nothing for the present.
    at: Option<u64>,
}

/// One page.
struct Page {
    objects: Vec<Arc<Value>>,
    revision: u64,
    /// The namespace and name of the last item, and how many follow it, when any do.
    more: Option<(String, usize)>,
}

/// One page of a kind, or all of it.
pub(super) fn list(store: &Store, target: Target, form: Form) -> Result<Answer, Refusal> {
    let selector = selector(&target)?;
    let question = question(store, &target)?;
    let page = store.page(&target, &question, &selector)?;
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some((last, remaining)) = &page.more {
        metadata["continue"] = json!(token(page.revision.cast_signed(), &format!("{last}\0")));
        // How many a selector would still find is not known without looking.
        if selector.is_empty() {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    Ok(match form {
        Form::Table => {
            let include = Include::parse(target.text("includeObject"));
            let (version, now) = (&target.version, store.clock.now_ms());
            let body = table(&target.kind, version, &page.objects, metadata, include, now);
            Answer::Whole { code: 200, body }
        }
        Form::Object => {
            let listing = Listing::new(target.kind, target.version, metadata, page.objects);
            Answer::List(Box::new(listing))
        }
    })
}

/// The objects that a list or a watch asks for.
pub(super) fn selector(target: &Target) -> Result<Selector, Refusal> {
    let event = target.kind.kind == "Event";
    Selector::parse(target.text("labelSelector"), target.text("fieldSelector"), event)
}

/// The options of a list, refused where they contradict each other.
fn question(store: &Store, target: &Target) -> Result<Question, Refusal> {
    let (stated, matching) = (
        target.text("resourceVersion"),
        target.text("resourceVersionMatch"),
    );
    let resumed = target.text("continue");
    check_match(stated, matching, resumed, target.flag("sendInitialEvents"))?;
    let limit = match target.text("limit") {
        "" => None,
        text => {
            let limit: usize = text
                .parse()
                .map_err(|_| Refusal::bad_request(format!("limit {text:?} is no number")))?;
            Some(limit).filter(|limit| *limit > 0)
        }
    };
    if !resumed.is_empty() {
        if !matches!(stated, "" | "0") {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Refusal::bad_request(why));
        }
        let (at, after) = read_token(resumed)?;
        return Ok(Question {
            limit,
            after: Some(after),
            at,
        });
    }
    let revision = revision(stated)?;
    let exact = matching == "Exact" || (matching.is_empty() && limit.is_some());
    if revision > store.revision() {
        return Err(Refusal::too_large(revision, store.revision()));
    }
    Ok(Question {
        limit,
        after: None,
        at: (revision > 0 && exact).then_some(revision),
    })
}

/// A revision as a query states it; 0 is any.
pub(super) fn revision(stated: &str) -> Result<u64, Refusal> {
    let refused =
        |_| Refusal::bad_request(format!("Invalid value: {stated:?}: resourceVersion is no number"));
    if stated.is_empty() {
        Ok(0)
    } else {
        stated.parse().map_err(refused)
    }
}

fn check_match(stated: &str, matching: &str, resumed: &str, streaming: bool) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    let mut forbid = |field: &str, why: &str| {
        causes.push(Cause::other(
            "FieldValueForbidden",
            field,
            format!("Forbidden: {why}"),
        ));
    };
    if !matching.is_empty() && stated.is_empty() {
        let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        forbid("resourceVersionMatch", why);
    }
    if !matching.is_empty() && !resumed.is_empty() {
        forbid(
            "resourceVersionMatch",
            "resourceVersionMatch is forbidden when continue is provided",
        );
    }
    if matching == "Exact" && stated == "0" {
        forbid(
            "resourceVersionMatch",
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
        );
    }
    if streaming {
        forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    if !matches!(matching, "" | "Exact" | "NotOlderThan") {
        let message =
            format!("Unsupported value: {matching:?}: supported values: \"Exact\", \"NotOlderThan\", \"\"");
        causes.push(Cause::unsupported("resourceVersionMatch", message));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid_as("meta.k8s.io", "ListOptions", "", &causes))
}

/// Start of the next page. The revision is -1 when later pages show things as they are then.
fn token(revision: i64, start: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start});
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(text: &str) -> Result<(Option<u64>, (String, String)), Refusal> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).ok();
    let token: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let invalid = || Refusal::bad_request("invalid continue token: continue key is not valid");
    let token = token
        .filter(|token| token["v"] == json!("meta.k8s.io/v1"))
        .ok_or_else(invalid)?;
    let start = token["start"].as_str().unwrap_or_default().trim_end_matches('\0');
    let revision = token["rv"]
        .as_i64()
        .filter(|revision| *revision != 0)
        .ok_or_else(invalid)?;
    if start.is_empty() {
        return Err(invalid());
    }
    let (namespace, name) = start.rsplit_once('/').unwrap_or(("", start));
    // A negative revision continues with what is there now.
    Ok((
        u64::try_from(revision).ok(),
        (namespace.to_owned(), name.to_owned()),
    ))
}

impl Store {
    fn page(&self, target: &Target, question: &Question, selector: &Selector) -> Result<Page, Refusal> {
        let (key, namespace, after) = (target.kind.key(), &*target.namespace, question.after.as_ref());
        let Some(at) = question.at else {
            let found = self.behind(key, namespace, after);
            return Ok(first_of(found, self.revision(), question.limit, selector));
        };
        match self.behind_at(key, namespace, after, at) {
            Some(found) => Ok(first_of(found, at, question.limit, selector)),
            None => Err(Refusal::list_expired(after.map(|(namespace, name)| {
                token(-1, &format!("{}\0", start(namespace, name)))
            }))),
        }
    }
}

/// The first objects that are selected.
fn first_of<'a>(
    found: impl Iterator<Item = (&'a ObjectKey, &'a Arc<Value>)>,
    revision: u64,
    limit: Option<usize>,
    selector: &Selector,
) -> Page {
    let mut selected = found.filter(|(_, object)| selector.matches(object));
    let taken: Vec<_> = selected.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
    let last = taken
        .last()
        .map(|((_, namespace, name), _)| start(namespace, name));
    let remaining = match (limit, selector.is_empty()) {
        (None, _) => 0,
        (_, true) => selected.count(),
        // Nobody is told how many: looking at all of them would make a page cost what the kind does.
        (_, false) => selected.take(1).count(),
    };
    Page {
        objects: taken.into_iter().map(|(_, object)| object.clone()).collect(),
        revision,
        more: last.filter(|_| remaining > 0).map(|last| (last, remaining)),
    }
}

/// Position of a list, as in a token.
fn start(namespace: &str, name: &str) -> String {
    match namespace {
        "" => name.to_owned(),
        _ => format!("{namespace}/{name}"),
    }
}

//! Owns: reading what an API server's audit log says about who asked for what.
//! Never: judges the numbers; a test does.

use super::Error;
use super::users::HARNESS_USER;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Time for a request to appear in the log after its answer.
const SETTLE_WAIT: Duration = Duration::from_secs(10);
/// Interval of reading the log meanwhile.
const SETTLE_POLL: Duration = Duration::from_millis(5);
/// The verbs that change something.
const WRITES: [&str; 6] = ["create", "update", "patch", "delete", "deletecollection", "apply"];
/// The stage at which a watch counts; its end may come much later.
const BEGUN: &str = "ResponseStarted";
/// The answer to what somebody may not do.
const FORBIDDEN: u16 = 403;
/// Answers of the same form that are no matter of rights: they pass by themselves.
const PASSING: [&str; 2] = [
    "while custom resource definition is terminating",
    "because it is being terminated",
];
/// The groups whose objects are questions.
const REVIEWS: [&str; 2] = ["authorization.k8s.io", "authentication.k8s.io"];

/// The audit log of one API server.
#[derive(Debug, Clone)]
pub struct AuditLog {
    path: PathBuf,
}

/// A place in the log: what comes after it was asked later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(u64);

/// One request as the API server saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// get, list, watch, create, update, patch, delete, deletecollection.
    pub verb: String,
    /// The authenticated user.
    pub user: String,
    /// The client's user agent.
    pub user_agent: String,
    /// Empty for the core group.
    pub api_group: String,
    /// Plural name, followed by a slash and the subresource when there is one; the path when it is no resource.
    pub resource: String,
    /// Empty for what lies in no namespace.
    pub namespace: String,
    /// Empty for lists.
    pub name: String,
    /// The answer's code.
    pub code: u16,
    /// The API server's refusal for lack of rights; empty without one.
    pub refusal: String,
    uri: String,
}

impl Request {
    /// True for a request that changes something: neither a dry run nor a review, which is created but not kept.
    pub fn is_write(&self) -> bool {
        WRITES.contains(&self.verb.as_str()) && !self.is_review() && !self.uri.contains("dryRun=All")
    }

    /// True when it was answered that its user may not do that, whatever said so: a role that is missing, or a policy.
    pub fn is_denied(&self) -> bool {
        self.code == FORBIDDEN && !PASSING.iter().any(|why| self.refusal.contains(why))
    }

    /// True for a question about rights or credentials.
    pub fn is_review(&self) -> bool {
        REVIEWS.contains(&self.api_group.as_str())
    }

    /// True for a request about a Lease.
    pub fn is_lease(&self) -> bool {
        self.api_group == "coordination.k8s.io"
    }
}

impl Request {
    /// One that was answered, for tests of those who count.
    pub fn sample(user: &str, verb: &str, resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            verb: verb.to_owned(),
            user: user.to_owned(),
            user_agent: String::new(),
            api_group: String::new(),
            resource: resource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            code: 200,
            refusal: String::new(),
            uri: String::new(),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            verb,
            resource,
            namespace,
            name,
            code,
            user,
            ..
        } = self;
        write!(out, "{user} {verb} {resource} {namespace}/{name} -> {code}")
    }
}

impl AuditLog {
    pub(super) fn at(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
        }
    }

    /// The present end of the log. For a sharp edge, `settle` first.
    pub fn mark(&self) -> Result<Mark, Error> {
        match std::fs::metadata(&self.path) {
            Ok(metadata) => Ok(Mark(metadata.len())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Mark(0)),
            Err(error) => Err(Error::io("read", &self.path)(error)),
        }
    }

    /// Waits until the log holds what was answered before this call, and returns the mark behind it. The API
    /// server may write a line shortly after it has answered: a request of our own is followed into the log.
    pub async fn settle(&self, client: &kube::Client) -> Result<Mark, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let probe = format!("/version?settle={}-{number}", std::process::id());
        let before = self.mark()?;
        let request = http::Request::get(&probe)
            .body(Vec::new())
            .map_err(kube::Error::HttpError)?;
        client.request_text(request).await?;
        let deadline = Instant::now() + SETTLE_WAIT;
        let mut poll = tokio::time::interval(SETTLE_POLL);
        loop {
            poll.tick().await;
            if self.since(before)?.iter().any(|request| request.uri == probe) {
                return self.mark();
            }
            if Instant::now() >= deadline {
                let path = self.path.display();
                return Err(Error::Usage(format!(
                    "{path} does not show a request that was answered"
                )));
            }
        }
    }

    /// Every request after `mark`, once each, in the order of the log. A watch counts when it begins.
    pub fn since(&self, mark: Mark) -> Result<Vec<Request>, Error> {
        let mut file = match std::fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("open", &self.path)(error)),
        };
        file.seek(SeekFrom::Start(mark.0))
            .map_err(Error::io("read", &self.path))?;
        let mut seen = BTreeSet::new();
        let mut requests = Vec::new();
        for line in BufReader::new(file).split(b'\n') {
            let line = line.map_err(Error::io("read", &self.path))?;
            // The last line may be half written: it belongs to the next reading.
            let Ok(entry) = serde_json::from_slice::<Entry>(&line) else {
                continue;
            };
            // One that was denied never begins.
            let begun_before =
                entry.verb == "watch" && entry.stage != BEGUN && entry.response.code != FORBIDDEN;
            if !begun_before && seen.insert(entry.audit_id.clone()) {
                requests.push(entry.into());
            }
        }
        Ok(requests)
    }
}

/// Numbers of requests, by verb and resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    requests: BTreeMap<(String, String), u64>,
    writes: u64,
}

impl Counts {
    /// Counts the requests that `wanted` holds for.
    pub fn of(requests: &[Request], wanted: impl Fn(&Request) -> bool) -> Self {
        let mut counts = Self::default();
        for request in requests.iter().filter(|request| wanted(request)) {
            *counts
                .requests
                .entry((request.verb.clone(), request.resource.clone()))
                .or_insert(0) += 1;
            counts.writes += u64::from(request.is_write());
        }
        counts
    }

    /// Counts everything except what the harness and the cluster's own components asked.
    pub fn of_the_tested(requests: &[Request]) -> Self {
        Self::of(requests, |request| {
            let component =
                request.user.starts_with("system:") && !request.user.starts_with("system:serviceaccount:");
            request.user != HARNESS_USER && !component
        })
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }

    /// Those that change something.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Those with this verb on this resource.
    pub fn get(&self, verb: &str, resource: &str) -> u64 {
        self.requests
            .get(&(verb.to_owned(), resource.to_owned()))
            .copied()
            .unwrap_or(0)
    }

    /// Verb, resource and number, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, u64)> {
        self.requests
            .iter()
            .map(|((verb, resource), count)| (verb.as_str(), resource.as_str(), *count))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self
            .iter()
            .map(|(verb, resource, count)| format!("{count} {verb} {resource}"))
            .collect();
        out.write_str(if parts.is_empty() { "none" } else { "" })?;
        out.write_str(&parts.join(", "))
    }
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "auditID")]
    audit_id: String,
    stage: String,
    verb: String,
    #[serde(rename = "requestURI")]
    uri: String,
    #[serde(default, rename = "userAgent")]
    user_agent: String,
    user: EntryUser,
    #[serde(default, rename = "objectRef")]
    object: EntryObject,
    #[serde(default, rename = "responseStatus")]
    response: EntryResponse,
}

#[derive(Deserialize)]
struct EntryUser {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct EntryObject {
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    api_group: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct EntryResponse {
    code: u16,
    message: String,
}

impl From<Entry> for Request {
    fn from(entry: Entry) -> Self {
        let is_denied = entry.response.code == FORBIDDEN;
        let object = entry.object;
        let resource = match (object.resource.is_empty(), object.subresource.is_empty()) {
            (true, _) => entry.uri.split('?').next().unwrap_or_default().to_owned(),
            (false, true) => object.resource,
            (false, false) => format!("{}/{}", object.resource, object.subresource),
        };
        Self {
            verb: entry.verb,
            user: entry.user.username,
            user_agent: entry.user_agent,
            api_group: object.api_group,
            resource,
            namespace: object.namespace,
            name: object.name,
            code: entry.response.code,
            refusal: if is_denied {
                entry.response.message
            } else {
                String::new()
            },
            uri: entry.uri,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_watch_that_was_denied_counts_and_says_so() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("audit.log");
        let log = AuditLog::at(&path);
        let denied = serde_json::json!({
            "auditID": "1", "stage": "ResponseComplete", "verb": "watch", "requestURI": "/u",
            "user": { "username": "agent" }, "responseStatus": { "code": FORBIDDEN, "message": "cannot watch" },
            "objectRef": { "resource": "services" },
        });
        let ended = line(2, "ResponseComplete", "watch", "agent", "services");
        std::fs::write(&path, format!("{denied}\n{ended}")).expect("a log");
        let requests = log.since(Mark(0)).expect("readable");
        assert_eq!(requests.len(), 1, "{requests:?}");
        assert!(requests[0].is_denied(), "{requests:?}");
        assert_eq!(requests[0].refusal, "cannot watch");
        let refusal = "new content in namespace shop because it is being terminated".to_owned();
        let passing = Request {
            refusal,
            ..requests[0].clone()
        };
        assert!(!passing.is_denied(), "{passing:?}");
    }

    fn line(id: u32, stage: &str, verb: &str, user: &str, resource: &str) -> String {
        let (group, resource) = resource.rsplit_once('/').unwrap_or(("", resource));
        let entry = serde_json::json!({
            "auditID": id.to_string(), "stage": stage, "verb": verb, "requestURI": "/u", "userAgent": "x/1",
            "user": { "username": user }, "responseStatus": { "code": 200 },
            "objectRef": { "resource": resource, "apiGroup": group, "namespace": "shop", "name": "cart" },
        });
        format!("{entry}\n")
    }

    #[test]
    fn requests_after_a_mark_are_counted_once_by_verb_and_resource() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("audit.log");
        let log = AuditLog::at(&path);
        let nothing = log.mark().expect("no file is an empty log");
        assert_eq!(log.since(nothing).expect("empty"), Vec::new());
        let mut file = std::fs::File::create(&path).expect("a log");
        let before = [
            line(1, "ResponseComplete", "create", "agent", "services"),
            line(2, "ResponseStarted", "watch", "agent", "services"),
        ];
        file.write_all(before.concat().as_bytes()).expect("written");
        let mark = log.mark().expect("a mark");
        let after = [
            line(2, "ResponseComplete", "watch", "agent", "services"),
            line(3, "ResponseStarted", "watch", "agent", "namespaces"),
            line(3, "ResponseComplete", "watch", "agent", "namespaces"),
            line(
                4,
                "ResponseComplete",
                "patch",
                "agent",
                "coordination.k8s.io/leases",
            ),
            line(
                5,
                "ResponseComplete",
                "create",
                "agent",
                "authorization.k8s.io/selfsubjectaccessreviews",
            ),
            line(6, "ResponseComplete", "patch", HARNESS_USER, "services"),
            line(
                7,
                "ResponseComplete",
                "list",
                "system:kube-controller-manager",
                "pods",
            ),
            "{\"auditID\":\"8\",\"verb\":\"del".to_owned(),
        ];
        file.write_all(after.concat().as_bytes()).expect("written");
        let requests = log.since(mark).expect("readable");
        assert_eq!(requests.len(), 5, "{requests:?}");
        let tested = Counts::of_the_tested(&requests);
        let expected = "1 create selfsubjectaccessreviews, 1 patch leases, 1 watch namespaces";
        assert_eq!((tested.to_string().as_str(), tested.writes()), (expected, 1));
        let writes = Counts::of(&requests, |request| request.is_write() && !request.is_lease());
        assert_eq!((writes.total(), writes.get("patch", "services")), (1, 1));
    }
}

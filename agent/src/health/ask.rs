//! The requests to the API server: its probes, the Leases of the leaders, and a new listing of the identity Leases.
//! Each has an answer or is given up in seconds. It judges nothing.

use std::{collections::BTreeMap, error::Error as _, io::ErrorKind, time::Duration};

use http::{Request, header::CONNECTION};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client, ResourceExt, api::ListParams};
use shared::api::{
    convert::{ProbeAnswer, probe_answer, shown_name},
    names::{
        CONTROLLER_MANAGER_LEASE, KUBE_SYSTEM_NAMESPACE, SCHEDULER_LEASE, SELECTOR_API_SERVER_IDENTITY,
        SELECTOR_API_SERVER_IDENTITY_OLD,
    },
};
use tokio::time::timeout;
use tracing::debug;

use super::{observed::KeptLease, probes::Answer};
use crate::watch::{Event, Kept, Watched};

/// Time that an answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Every so many turns the connection of a probe is closed behind it: the next one opens another, which a load balancer
/// may give to another server. In these turns the version is asked for, and leaders that were not there are.
const NEW_CONNECTION_EVERY: u32 = 6;
/// Most identity Leases that are listed.
const LIST_MAX: u32 = 500;

/// The outcome of reading a leader's Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaderRead {
    /// Its resourceVersion.
    Version(String),
    /// It is not there, or not for us.
    Absent,
    /// Nobody answered, or nobody was asked.
    Unanswered,
}

/// The answers of one look.
pub struct Answers {
    /// To /readyz.
    pub readyz: Answer,
    /// To /livez.
    pub livez: Answer,
    /// The Lease of the controller manager's leader.
    pub controller_manager: LeaderRead,
    /// The scheduler's Lease.
    pub scheduler: LeaderRead,
    /// True if the API server had no time to list identity Leases; absent: it was not asked.
    pub no_time: Option<bool>,
}

/// The sender of the requests.
pub struct Questions {
    client: Client,
    leases: Api<Lease>,
    /// Stores for the identity Leases of both forms.
    stores: (Watched<KeptLease>, Watched<KeptLease>),
    turn: u32,
    /// Leaders that were not there: controller manager and scheduler.
    absent: (bool, bool),
    /// gitVersion of the API server; empty while it is not known.
    pub version: Box<str>,
}

impl Questions {
    /// A sender that has asked nothing.
    pub fn new(client: Client, current: Watched<KeptLease>, old: Watched<KeptLease>) -> Self {
        Self {
            leases: Api::namespaced(client.clone(), KUBE_SYSTEM_NAMESPACE),
            client,
            stores: (current, old),
            turn: 0,
            absent: (false, false),
            version: "".into(),
        }
    }

    /// Asks everything once, all at one time; the identity Leases if `list`.
    pub async fn ask(&mut self, list: bool) -> Answers {
        let seldom = self.turn.is_multiple_of(NEW_CONNECTION_EVERY);
        self.turn = self.turn.wrapping_add(1);
        let (readyz, livez, controller_manager, scheduler, no_time, version) = tokio::join!(
            self.probe("/readyz?verbose", seldom),
            self.probe("/livez?verbose", seldom),
            self.leader(CONTROLLER_MANAGER_LEASE, seldom || !self.absent.0),
            self.leader(SCHEDULER_LEASE, seldom || !self.absent.1),
            self.list(list),
            self.ask_version(seldom || self.version.is_empty()),
        );
        if let Some(version) = version {
            self.version = version;
        }
        let absent = |read: &LeaderRead, before: bool| match read {
            LeaderRead::Version(_) => false,
            LeaderRead::Absent => true,
            LeaderRead::Unanswered => before,
        };
        self.absent = (
            absent(&controller_manager, self.absent.0),
            absent(&scheduler, self.absent.1),
        );
        Answers {
            readyz,
            livez,
            controller_manager,
            scheduler,
            no_time,
        }
    }

    async fn probe(&self, path: &str, closing: bool) -> Answer {
        let mut request = Request::get(path);
        if closing {
            request = request.header(CONNECTION, "close");
        }
        let Ok(request) = request.body(Vec::new()) else {
            return Answer::Other;
        };
        let answer = match timeout(ANSWER_WAIT, self.client.request_text(request)).await {
            Err(_) => return Answer::Silent,
            Ok(Ok(body)) => probe_answer(200, &body),
            Ok(Err(kube::Error::Api(status))) => probe_answer(status.code, &status.message),
            Ok(Err(error)) => return unanswered(&error),
        };
        match answer {
            ProbeAnswer::Passed => Answer::Passed,
            ProbeAnswer::Failed(checks) => Answer::Failed(checks),
            ProbeAnswer::NotReadable => Answer::NotReadable,
            ProbeAnswer::Other => Answer::Other,
        }
    }

    async fn leader(&self, name: &str, asked: bool) -> LeaderRead {
        if !asked {
            return LeaderRead::Unanswered;
        }
        match timeout(ANSWER_WAIT, self.leases.get(name)).await {
            Ok(Ok(lease)) => LeaderRead::Version(lease.resource_version().unwrap_or_default()),
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403 | 404) => LeaderRead::Absent,
            Ok(Err(_)) | Err(_) => LeaderRead::Unanswered,
        }
    }

    /// Reads the identity Leases from etcd, not from a server's cache, which shows them long after nobody writes.
    async fn list(&self, asked: bool) -> Option<bool> {
        if !asked {
            return None;
        }
        let (current, old) = (&self.stores.0, &self.stores.1);
        let (one, other) = tokio::join!(
            self.list_into(SELECTOR_API_SERVER_IDENTITY, current),
            self.list_into(SELECTOR_API_SERVER_IDENTITY_OLD, old),
        );
        Some(one || other)
    }

    /// True: the API server had no time. New objects are left to the watch, which knows the order of events.
    async fn list_into(&self, selector: &str, store: &Watched<KeptLease>) -> bool {
        let before = store.all();
        if before.is_empty() {
            return false;
        }
        let parameters = ListParams::default().labels(selector).limit(LIST_MAX);
        let listed = match timeout(ANSWER_WAIT, self.leases.list(&parameters)).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(kube::Error::Api(status))) => return status.code == 429,
            Ok(Err(_)) | Err(_) => return false,
        };
        let continued = listed.metadata.continue_.is_some_and(|token| !token.is_empty());
        let mut leases: BTreeMap<String, Lease> = listed
            .items
            .into_iter()
            .map(|lease| (lease.name_any(), lease))
            .collect();
        for known in before {
            let head = known.head();
            let unchanged = || {
                let now = store.get(&head.namespace, &head.name);
                now.is_some_and(|now| now.head().is_same_state(head))
            };
            match leases.remove(&*head.name) {
                Some(lease) if store.get(&head.namespace, &head.name).is_some() => {
                    store.handle(Event::Apply(lease));
                }
                None if !continued && unchanged() => {
                    store.deleted(&head.namespace, &head.name, &head.uid);
                }
                Some(_) | None => {}
            }
        }
        false
    }

    async fn ask_version(&self, asked: bool) -> Option<Box<str>> {
        if !asked {
            return None;
        }
        let answer = timeout(ANSWER_WAIT, self.client.apiserver_version()).await;
        shown_name(&answer.ok()?.ok()?.git_version)
    }
}

/// Classifies a request without an answer.
fn unanswered(error: &kube::Error) -> Answer {
    debug!(%error, "a probe was not answered");
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(failed) = inner.downcast_ref::<std::io::Error>() {
            match failed.kind() {
                ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => return Answer::Refused,
                ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown | ErrorKind::AddrNotAvailable => {
                    return Answer::NoNetwork;
                }
                _ => {}
            }
        }
        cause = inner.source();
    }
    Answer::Silent
}

//! The seeded fault layer in front of a simulated cluster.
//! Decides which requests and watches suffer what; the same seed and the same requests give the same faults.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{clock::Seeded, status::Refusal};

/// A thousand permille: always.
pub const ALWAYS: u16 = 1_000;

/// Something that goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An open watch ends without a word.
    DropWatch,
    /// An idle watch gets no bookmark.
    SkipBookmark,
    /// A write is answered by 409.
    Conflict,
    /// A list or watch is answered by 410.
    Gone,
    /// 429 with the advice to retry.
    TooManyRequests,
    /// 500, and nothing was done.
    InternalError,
    /// A write other than a deletion is answered by 500, as where etcd has no room: reads and deletions pass.
    NoSpace,
    /// A request of this verb is answered by 500, and nothing was done.
    VerbFails(&'static str),
    /// A request of this verb is answered by 503, and nothing was done.
    Unavailable(&'static str),
    /// A list or watch is answered by 403, as by an API server that has not read roles yet.
    Unlisted,
    /// A change of an object whose name begins so is answered by 403, a dry run too, as a policy does that knows names.
    Denied(&'static str),
    /// The answer comes late.
    Slow {
        /// By how much.
        by_ms: u64,
    },
    /// The write is done, but its answer never arrives.
    AnswerLost,
}

impl Fault {
    fn concerns(&self, verb: &str, name: &str) -> bool {
        let write = matches!(verb, "create" | "update" | "patch" | "delete");
        match self {
            Self::Conflict | Self::AnswerLost => write,
            Self::NoSpace => write && verb != "delete",
            Self::Denied(names) => matches!(verb, "update" | "patch") && name.starts_with(names),
            Self::VerbFails(failing) | Self::Unavailable(failing) => verb == *failing,
            Self::Gone | Self::Unlisted => matches!(verb, "list" | "watch"),
            Self::DropWatch => verb == "open watch",
            Self::SkipBookmark => verb == "bookmark",
            Self::TooManyRequests | Self::InternalError | Self::Slow { .. } => {
                !matches!(verb, "open watch" | "bookmark")
            }
        }
    }

    pub(crate) fn refusal(&self) -> Option<Refusal> {
        let (code, reason, words) = match self {
            Self::Conflict => (409, "Conflict", "the object has been modified"),
            Self::Gone => (410, "Expired", "too old resource version"),
            Self::TooManyRequests => (429, "TooManyRequests", "please try again later"),
            Self::NoSpace => (500, "InternalError", "etcdserver: mvcc: database space exceeded"),
            Self::InternalError | Self::VerbFails(_) => (500, "InternalError", "internal error"),
            Self::Unavailable(_) => {
                let words = "the server is currently unable to handle the request";
                (503, "ServiceUnavailable", words)
            }
            Self::Denied(_) => (403, "Forbidden", "a policy denies it"),
            Self::Unlisted => (403, "Forbidden", "no role lets you read it"),
            _ => return None,
        };
        Some(Refusal::new(code, reason, format!("injected fault: {words}")))
    }
}

#[derive(Debug)]
struct Rule {
    fault: Fault,
    permille: u16,
    /// A plural, or empty for every kind.
    resource: String,
    left: u32,
}

struct Layer {
    random: Seeded,
    rules: Vec<Rule>,
    watch_epoch: u64,
}

/// The faults of one cluster; clones share them.
#[derive(Clone)]
pub struct Faults {
    layer: Arc<Mutex<Layer>>,
    /// Makes the fronts look at their watches again.
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Faults {
    pub(crate) fn new(seed: u64, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        let layer = Layer {
            random: Seeded::new(seed),
            rules: Vec::new(),
            watch_epoch: 0,
        };
        Self {
            layer: Arc::new(Mutex::new(layer)),
            wake,
        }
    }

    fn layer(&self) -> MutexGuard<'_, Layer> {
        self.layer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on `permille` of the requests that `fault` can concern suffer it, on one kind (a plural) or on all ("").
    pub fn rate(&self, fault: Fault, permille: u16, resource: &str) {
        self.layer().rules.push(Rule {
            fault,
            permille,
            resource: resource.into(),
            left: u32::MAX,
        });
    }

    /// The next `times` requests that `fault` can concern suffer it.
    pub fn next(&self, fault: Fault, times: u32, resource: &str) {
        self.layer().rules.push(Rule {
            fault,
            permille: ALWAYS,
            resource: resource.into(),
            left: times,
        });
    }

    /// Everything is well again.
    pub fn clear(&self) {
        self.layer().rules.clear();
    }

    /// Ends every watch that is open now.
    pub fn drop_watches(&self) {
        self.layer().watch_epoch += 1;
        (self.wake)();
    }

    pub(crate) fn watch_epoch(&self) -> u64 {
        self.layer().watch_epoch
    }

    pub(crate) fn drops_watch(&self, opened: u64, resource: &str) -> bool {
        opened < self.watch_epoch() || self.decide("open watch", resource, "").is_some()
    }

    pub(crate) fn skips_bookmark(&self, resource: &str) -> bool {
        self.decide("bookmark", resource, "").is_some()
    }

    pub(crate) fn decide(&self, verb: &str, resource: &str, name: &str) -> Option<Fault> {
        let Layer { random, rules, .. } = &mut *self.layer();
        for rule in rules {
            let concerned = rule.left > 0 && rule.fault.concerns(verb, name);
            if concerned && (rule.resource.is_empty() || rule.resource == resource) {
                let hit = random.next() % u64::from(ALWAYS) < u64::from(rule.permille);
                if hit {
                    rule.left = if rule.left == u32::MAX {
                        rule.left
                    } else {
                        rule.left - 1
                    };
                    return Some(rule.fault.clone());
                }
            }
        }
        None
    }
}

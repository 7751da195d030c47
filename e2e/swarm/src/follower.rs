//! One watch of one kind, by hand: lists, follows, lists again, as a client of the API server does it.
//! What the store makes of it is the agent's own code. Listings may be cut off, as connections are.

use std::time::Duration;

use agent_engine::watch::{Denials, Event, Guarded, Kept, Read, Watched};
use bytes::Bytes;
use http::Request;
use kube_core::Resource;
use serde::de::DeserializeOwned;
use serde_json::Value;

use sim::{Answer, SimCluster, Watch};

/// The result of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Followed {
    /// Nothing new.
    Nothing,
    /// Something was told to the store, or is to be tried again.
    Something,
    /// A listing was cut off in the middle.
    CutOff,
}

/// Follows a kind into a store.
pub(super) trait Follow {
    /// One turn; `cut` ends a listing in the middle.
    fn turn(&mut self, cluster: &SimCluster, cut: bool) -> Followed;
    /// Nothing is waiting to be read.
    fn is_current(&self, cluster: &SimCluster) -> bool;
}

/// The follower of one kind.
pub(super) struct Follower<K> {
    store: Watched<K>,
    path: String,
    watch: Option<Watch>,
    revision: Option<u64>,
    denials: Denials,
}

impl<K: Kept> Follower<K> {
    pub(super) fn new(store: Watched<K>) -> Self {
        Self {
            store,
            path: K::Object::url_path(&(), None),
            watch: None,
            revision: None,
            denials: Denials::default(),
        }
    }

    fn ask(&self, cluster: &SimCluster, query: &str) -> Answer {
        let request = Request::get(format!("{}?{query}", self.path)).body(Bytes::new());
        cluster.handle(&request.expect("a path of ours")).answer
    }

    fn refused(&mut self, cluster: &SimCluster, code: u16) -> Followed {
        let now = Duration::from_millis(cluster.clock().now_ms().unsigned_abs());
        let failure = self.denials.judged(code, self.store.is_listed(), now);
        if failure.makes_unknown() {
            self.store.unlisted();
            self.revision = None;
        } else if code == 410 {
            self.revision = None;
        }
        Followed::Something
    }

    fn list(&mut self, cluster: &SimCluster, cut: bool) -> Followed {
        let listing = match self.ask(cluster, "limit=500") {
            Answer::List(listing) => listing,
            Answer::Whole { code, .. } => return self.refused(cluster, code),
            Answer::Watch(_) | Answer::Document(_) | Answer::Lost => return Followed::Something,
        };
        self.store.handle(Event::Init);
        let items = listing.items();
        let shown = if cut { items.len() / 2 } else { items.len() };
        for item in items.take(shown) {
            self.store.handle_read(Event::InitApply(read(item)));
        }
        if cut {
            return Followed::CutOff;
        }
        self.store.handle(Event::InitDone);
        self.revision = revision(listing.metadata());
        Followed::Something
    }

    fn open(&mut self, cluster: &SimCluster, from: u64) -> Followed {
        let query = format!("watch=true&allowWatchBookmarks=true&resourceVersion={from}");
        match self.ask(cluster, &query) {
            Answer::Watch(watch) => {
                self.denials.succeeded();
                self.watch = Some(*watch);
            }
            Answer::Whole { code, .. } => return self.refused(cluster, code),
            Answer::List(_) | Answer::Document(_) | Answer::Lost => {}
        }
        Followed::Something
    }

    fn take(&mut self, cluster: &SimCluster, event: Value) {
        let Value::Object(mut event) = event else { return };
        let object = event.remove("object").unwrap_or_default();
        let kind = event.remove("type").unwrap_or_default();
        if kind == "ERROR" {
            self.watch = None;
            let code = object["code"].as_u64().and_then(|code| code.try_into().ok());
            self.refused(cluster, code.unwrap_or(500));
            return;
        }
        self.revision = revision(&object["metadata"]).or(self.revision);
        match kind.as_str() {
            Some("ADDED" | "MODIFIED") => {
                self.store.handle_read(Event::Apply(read(object)));
            }
            Some("DELETED") => {
                self.store.handle_read(Event::Delete(read(object)));
            }
            _ => {}
        }
    }
}

impl<K: Kept> Follow for Follower<K> {
    fn turn(&mut self, cluster: &SimCluster, cut: bool) -> Followed {
        let Some(revision) = self.revision else {
            self.watch = None;
            return self.list(cluster, cut);
        };
        let Some(mut watch) = self.watch.take() else {
            return self.open(cluster, revision);
        };
        let (events, over) = cluster.poll_watch(&mut watch);
        if !over {
            self.watch = Some(watch);
        }
        let news = !events.is_empty() || over;
        for event in events {
            self.take(cluster, event);
        }
        if news {
            Followed::Something
        } else {
            Followed::Nothing
        }
    }

    fn is_current(&self, cluster: &SimCluster) -> bool {
        let quiet = |watch: &Watch| {
            let (events, over) = cluster.poll_watch(&mut watch.clone());
            events.is_empty() && !over
        };
        self.revision.is_some() && self.watch.as_ref().is_some_and(quiet)
    }
}

fn revision(metadata: &Value) -> Option<u64> {
    metadata["resourceVersion"].as_str()?.parse().ok()
}

/// As the agent reads an object of a kind that has one that cannot be decoded.
fn read<K: Resource + DeserializeOwned>(object: Value) -> Read<K> {
    match K::deserialize(&object) {
        Ok(read) => Ok(read),
        Err(_) => {
            serde_json::from_value::<Guarded<K>>(object)
                .expect("an object has metadata")
                .0
        }
    }
}

//! Owns: the objects of topologies in a management cluster as watches show them, all together or not at all.
//! Never: writes there, or shows a state that is older than what this process wrote.
//!
//! * `store.rs`: one kind, and whether it may be relied on. `stores.rs`: all of them; which are to be watched.

mod store;
mod stores;

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use anyhow::bail;
use futures::StreamExt;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::watcher::{self, Event, watcher},
};
use serde_json::Value;
use shared::process::{Backoff, random};
use tokio::{
    sync::{Notify, watch},
    task::{AbortHandle, JoinSet},
    time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout_at},
};
use tracing::{debug, info, warn};

use self::stores::{Look, Stores, Watched};
use crate::{
    desired::objects::Listed,
    live::{self, OF_POOLS},
    model::Key,
    watch::told::told,
};

/// Objects in one answer of a listing.
const PAGE: u32 = 250;
/// The settings of the chart that give the rights to watch.
const RIGHTS: &str = "topology=own and topologyProviders";
/// Waits after a watch broke. They are shorter than the time for which a kind is relied on without one: without the right to
/// watch, a hub lists instead.
const RETRY: Backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(30));
/// A watch that lasts so long is a good one.
const GOOD_WATCH: Duration = Duration::from_secs(60);
/// Wait before a kind is listed again for which there was no room.
const NO_ROOM_RETRY: Duration = Duration::from_secs(300);
/// Interval of asking which kinds of Cluster API the server has, and for the definitions of others.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(300);
/// The same while the server does not say.
const DISCOVERY_RETRY: Duration = Duration::from_secs(5);
/// Longest wait of a look for what is not known yet.
const LOOK_WAIT: Duration = Duration::from_secs(20);
/// Events within this time are taken together where what follows from them is found out.
const TOGETHER: Duration = Duration::from_millis(20);

/// The objects of topologies, as watches show them. They begin with the first look and end with this.
pub struct Mirror {
    client: Client,
    shared: Arc<Shared>,
    watching: OnceLock<Watching>,
}

struct Shared {
    stores: Mutex<Stores>,
    /// Changes with every event.
    news: watch::Sender<()>,
    /// Notified when a plan may be another one.
    changed: Arc<Notify>,
}

/// Ends with its last owner.
struct Watching(AbortHandle);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Mirror {
    /// Of this server.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            shared: Arc::new(Shared {
                stores: Mutex::default(),
                news: watch::Sender::default(),
                changed: Arc::default(),
            }),
            watching: OnceLock::new(),
        }
    }

    /// Notified when a plan may be another one.
    pub fn changed(&self) -> Arc<Notify> {
        self.shared.changed.clone()
    }

    /// Everything that topologies are made of, with all that this process wrote before.
    ///
    /// # Errors
    ///
    /// Something that every topology needs cannot be read, or is not known in time.
    pub async fn look(&self) -> anyhow::Result<Listed> {
        self.watching.get_or_init(|| {
            let watching = keep_watching(self.client.clone(), self.shared.clone());
            Watching(tokio::spawn(watching).abort_handle())
        });
        let mut news = self.shared.news.subscribe();
        let deadline = Instant::now() + LOOK_WAIT;
        loop {
            news.borrow_and_update();
            let look = self.shared.stores().look(Instant::now());
            match look {
                Look::Whole(listed) => return Ok(listed),
                Look::Unread(why) => bail!(why),
                Look::Waits(why) => {
                    if timeout_at(deadline, news.changed()).await.is_err() {
                        self.shared.stores().restart_late();
                        self.shared.news.send_replace(());
                        bail!("after {} s {why}", LOOK_WAIT.as_secs());
                    }
                    sleep(TOGETHER).await;
                }
            }
        }
    }

    /// No look is older than this answer of the server to a write.
    pub fn wrote(&self, object: &Value) {
        self.shared.stores().wrote(object);
    }

    /// No look is older than the deletion of this object.
    pub fn deleted(&self, kind: (&str, &str), key: &Key, uid: &str) {
        self.shared.stores().deleted(kind, key, uid);
    }
}

impl Shared {
    fn stores(&self) -> MutexGuard<'_, Stores> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&self, watched: &Watched, event: Event<Value>) -> Result<(), String> {
        let seen = self.stores().see(watched, event, Instant::now());
        if !matches!(seen, Ok(false)) {
            self.changed.notify_one();
        }
        self.news.send_replace(());
        seen.map(drop)
    }

    fn failed(&self, watched: &Watched, why: String) {
        self.stores().failed(watched, why, Instant::now());
        self.news.send_replace(());
    }
}

/// Watches what is to be watched.
async fn keep_watching(client: Client, shared: Arc<Shared>) {
    let mut news = shared.news.subscribe();
    let mut following = JoinSet::new();
    let mut watches: BTreeMap<Watched, AbortHandle> = BTreeMap::new();
    let mut discovery = Instant::now();
    loop {
        if discovery <= Instant::now() {
            let served = live::kinds_for_writing(&client).await;
            let is_known = served.is_ok();
            shared
                .stores()
                .serve(served.map_err(|error| format!("{error:#}")));
            shared.news.send_replace(());
            let wait = if is_known {
                DISCOVERY_INTERVAL
            } else {
                DISCOVERY_RETRY
            };
            discovery = Instant::now() + wait;
        }
        news.borrow_and_update();
        let wanted = {
            let mut stores = shared.stores();
            let wanted = stores.wanted(Instant::now());
            stores.keep(&wanted);
            for late in std::mem::take(&mut stores.restart) {
                watches.remove(&late).inspect(AbortHandle::abort);
            }
            wanted
        };
        if wanted.is_all {
            watches.retain(|watched, handle| {
                let is_wanted = wanted.kinds.contains(watched);
                if !is_wanted {
                    handle.abort();
                }
                is_wanted
            });
        }
        for watched in wanted.kinds {
            watches
                .entry(watched.clone())
                .or_insert_with(|| following.spawn(follow(client.clone(), shared.clone(), watched)));
        }
        while following.try_join_next().is_some() {}
        tokio::select! {
            _ = news.changed() => sleep(TOGETHER).await,
            () = sleep_until(discovery) => {}
        }
    }
}

/// Watches one kind until it is aborted.
async fn follow(client: Client, shared: Arc<Shared>, watched: Watched) {
    let mut backoff = RETRY;
    let mut is_told = false;
    loop {
        let begun = Instant::now();
        let ended = follow_once(&client, &shared, &watched, &mut is_told).await;
        if begun.elapsed() > GOOD_WATCH {
            backoff.succeeded();
        }
        let (why, wait) = match ended {
            Ended::Broken(why) => (why, backoff.failed(random())),
            Ended::NoRoom(why) => (why, NO_ROOM_RETRY),
        };
        shared.failed(&watched, format!("{watched} is not watched: {why}"));
        if is_told {
            debug!(%watched, %why, "still not watched");
        } else {
            warn!(%watched, %why, "objects of topologies are not watched; trying again");
        }
        is_told = true;
        sleep(wait).await;
    }
}

/// Why a watch ended.
enum Ended {
    Broken(String),
    NoRoom(String),
}

async fn follow_once(client: &Client, shared: &Shared, watched: &Watched, is_told: &mut bool) -> Ended {
    let core = shared.stores().resource(watched);
    let found = match core.clone() {
        Some(resource) => Ok(resource),
        None => live::resource(client, &watched.api_version, &watched.kind).await,
    };
    let resource = match found {
        Ok(resource) => resource,
        Err(error) => return Ended::Broken(format!("{error:#}")),
    };
    let is_defined = core.is_none() && !watched.is_of_pools && !watched.kind.ends_with("Template");
    if is_defined && let Err(why) = define(client, shared, watched, &resource).await {
        return Ended::Broken(why);
    }
    let mut config = watcher::Config::default().page_size(PAGE);
    if watched.is_of_pools {
        config = config.labels(OF_POOLS);
    }
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let mut events = pin!(watcher(api, config));
    let mut definition = interval_at(Instant::now() + DISCOVERY_INTERVAL, DISCOVERY_INTERVAL);
    definition.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            _ = definition.tick(), if is_defined => {
                // The definition that is known stays if the server does not say.
                let _ = define(client, shared, watched, &resource).await;
                continue;
            }
        };
        let event = match event {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Ended::Broken(told(&error, RIGHTS)),
            None => return Ended::Broken("the watch ended".to_owned()),
        };
        if *is_told && matches!(event, Event::InitDone) {
            info!(%watched, "objects of topologies are listed again");
            *is_told = false;
        }
        if let Err(why) = shared.see(watched, value(event, &resource)) {
            return Ended::NoRoom(why);
        }
    }
}

async fn define(
    client: &Client,
    shared: &Shared,
    watched: &Watched,
    resource: &ApiResource,
) -> Result<(), String> {
    let definition = live::definition(client, resource).await;
    let definition = definition.map_err(|error| format!("{error:#}"))?;
    if shared.stores().define(watched, definition) {
        shared.changed.notify_one();
    }
    Ok(())
}

fn value(event: Event<DynamicObject>, resource: &ApiResource) -> Event<Value> {
    let of = |object: DynamicObject| {
        // An object that was read can be written.
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["apiVersion"] = resource.api_version.as_str().into();
        value["kind"] = resource.kind.as_str().into();
        value
    };
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(of(object)),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(of(object)),
        Event::Delete(object) => Event::Delete(of(object)),
    }
}

//! Follows one kind for ever: what its watch tells goes into the store, and what goes wrong makes the next try wait.
//! When to wait, and what to tell people, is decided from events and times alone; the loop only does it.
//! A kind with an object that cannot be decoded is read object by object from then on.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use kube::{
    Api, Client, Resource,
    core::Status,
    runtime::watcher::{self, watcher},
};
use shared::{
    api_client::WATCH_WAIT,
    process::{Backoff, random},
};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::{Denials, Event, Failure, Guarded, Kept, Read, Watched, Watches};

/// First wait after a watch failed.
const RETRY_FIRST: Duration = Duration::from_millis(100);
/// Longest wait after a watch failed.
const RETRY_LONGEST: Duration = Duration::from_secs(10);
/// Objects that a listing asks for at a time: a page of them, as they come, is in memory before it is reduced.
const LIST_PAGE: u32 = 250;
/// Time after its listing for which a good watch lasts. A listing is not enough: the kind may be one that can be listed
/// and not watched.
const GOOD_WATCH: Duration = Duration::from_secs(2);
/// A watch that continued without a listing is good after so long in silence: its request fails earlier.
const QUIET_WATCH: Duration = WATCH_WAIT.saturating_add(GOOD_WATCH);
/// Failures in a row before people are told: a few are an API server that starts again.
const FAILURES_TOLD: u32 = 6;
/// Objects of a kind that cannot be decoded, each of which is reported: more are counted by a metric.
const UNREADABLE_TOLD_MAX: usize = 20;

type Events<K> = BoxStream<'static, watcher::Result<Event<Read<<K as Kept>::Object>>>>;

/// Follows all kinds that observe and apply share until `drain`. A kind that cannot be listed is tried again for ever, and
/// unknown meanwhile.
pub async fn follow_all(watches: Watches, client: Client, drain: CancellationToken) -> anyhow::Result<()> {
    // A task each: most of a start is reading what was listed, and kinds need not wait for one another.
    let mut following = JoinSet::new();
    following.spawn(follow_in_task(&client, &watches.namespaces, &drain));
    following.spawn(follow_in_task(&client, &watches.services, &drain));
    following.spawn(follow_in_task(&client, &watches.slices, &drain));
    following.spawn(follow_in_task(&client, &watches.exports, &drain));
    following.spawn(follow_in_task(&client, &watches.imports, &drain));
    while let Some(ended) = following.join_next().await {
        ended?;
    }
    Ok(())
}

fn follow_in_task<K: Kept>(
    client: &Client,
    store: &Watched<K>,
    drain: &CancellationToken,
) -> impl Future<Output = ()> + use<K> {
    let (api, store, drain) = (Api::all(client.clone()), store.clone(), drain.clone());
    async move { follow(api, &store, &drain).await }
}

/// Follows one kind until `drain`.
pub async fn follow<K: Kept>(api: Api<K::Object>, store: &Watched<K>, drain: &CancellationToken) {
    follow_with(api, watcher::Config::default(), store, drain).await;
}

/// The same, of the objects with a label only.
pub async fn follow_labelled<K: Kept>(
    api: Api<K::Object>,
    selector: &str,
    store: &Watched<K>,
    drain: &CancellationToken,
) {
    follow_with(api, watcher::Config::default().labels(selector), store, drain).await;
}

async fn follow_with<K: Kept>(
    api: Api<K::Object>,
    config: watcher::Config,
    store: &Watched<K>,
    drain: &CancellationToken,
) {
    let kind = K::Object::kind(&());
    let mut course = Course::default();
    let begun = Instant::now();
    let config = config.page_size(LIST_PAGE);
    let mut one_by_one = false;
    let mut events = begin::<K>(&api, &config, one_by_one);
    loop {
        let good_at = course.good_at();
        let event = tokio::select! {
            biased;
            () = drain.cancelled() => return,
            event = events.next() => event,
            () = tokio::time::sleep_until(good_at.unwrap_or_else(Instant::now)), if good_at.is_some() => {
                tell(&kind, store, course.good(), &"");
                continue;
            }
        };
        match event {
            Some(Ok(event)) => {
                tell(&kind, store, course.told(&event, Instant::now()), &"");
                show_read(&kind, store, event);
            }
            Some(Err(error)) if !one_by_one && is_undecodable(&error) => {
                debug!(%kind, %error, "an object cannot be decoded; reading the kind object by object");
                one_by_one = true;
                events = begin::<K>(&api, &config, one_by_one); // a listing: what a watch could not tell is lost to it
            }
            Some(Err(error)) => {
                let failure = course
                    .denials
                    .judged(status_code(&error), store.is_listed(), begun.elapsed());
                if failure.makes_unknown() {
                    store.unlisted();
                    events = begin::<K>(&api, &config, one_by_one); // a watch would go on where it was: only a listing makes the kind known again
                }
                debug!(%kind, %error, "watch interrupted");
                let (wait, notice) = course.failed(failure, Instant::now(), random());
                tell(&kind, store, notice, &error);
                tokio::select! {
                    biased;
                    () = drain.cancelled() => return,
                    () = tokio::time::sleep(wait) => {}
                }
            }
            None => return,
        }
    }
}

/// A watch of a kind, which begins with a listing.
fn begin<K: Kept>(api: &Api<K::Object>, config: &watcher::Config, one_by_one: bool) -> Events<K> {
    if !one_by_one {
        let events = watcher(api.clone(), config.clone());
        return events.map_ok(|event| read(event, Ok)).boxed();
    }
    let client = api.clone().into_client();
    let guarded: Api<Guarded<K::Object>> = match api.namespace() {
        Some(namespace) => Api::namespaced_with(client, namespace, &()),
        None => Api::all_with(client, &()),
    };
    let events = watcher(guarded, config.clone());
    events.map_ok(|event| read(event, |guarded| guarded.0)).boxed()
}

fn read<A, B>(event: watcher::Event<A>, object: impl FnOnce(A) -> B) -> Event<B> {
    match event {
        watcher::Event::Init => Event::Init,
        watcher::Event::InitApply(one) => Event::InitApply(object(one)),
        watcher::Event::InitDone => Event::InitDone,
        watcher::Event::Apply(one) => Event::Apply(object(one)),
        watcher::Event::Delete(one) => Event::Delete(object(one)),
    }
}

/// Returns true if what came is no object of the kind. kube reads a line of a watch that is no event as a Status, and any JSON
/// object is one: a Status that says nothing is an event whose object cannot be decoded.
fn is_undecodable(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::SerdeError(_))
        | watcher::Error::WatchFailed(kube::Error::SerdeError(_)) => true,
        watcher::Error::WatchFailed(kube::Error::Api(status)) => **status == Status::default(),
        _ => false,
    }
}

/// Takes an event of a watch into the store that follows it, and tells of an object that cannot be decoded.
fn show_read<K: Kept>(kind: &str, store: &Watched<K>, event: Event<Read<K::Object>>) {
    let unreadable = match &event {
        Event::Apply(Err(unreadable)) | Event::InitApply(Err(unreadable)) => {
            Some((unreadable.head(), unreadable.problem().to_owned()))
        }
        _ => None,
    };
    let is_news = store.handle_read(event);
    if let Some((head, problem)) =
        unreadable.filter(|_| is_news && store.unreadable_count() <= UNREADABLE_TOLD_MAX)
    {
        let (namespace, name) = (&*head.namespace, &*head.name);
        warn!(
            kind,
            namespace,
            name,
            problem,
            "cannot decode this object, so its last known state stays in use; others are not affected. Correct or delete it"
        );
    }
}

/// The HTTP status of a failed list or watch; 0 if there was none.
fn status_code(error: &watcher::Error) -> u16 {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code,
        watcher::Error::WatchError(status) => status.code,
        _ => 0,
    }
}

/// Reports for people: each once, however often the watch is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notice {
    Failing(Failure),
    Recovered,
}

fn tell<K: Kept>(kind: &str, store: &Watched<K>, notice: Option<Notice>, error: &dyn std::fmt::Display) {
    let Some(notice) = notice else { return };
    store.follows_badly(notice != Notice::Recovered);
    match notice {
        Notice::Failing(Failure::NotServed) => {
            warn!(%kind, %error, "the API server does not have the kind: install its CRD (see deploy/); trying again");
        }
        Notice::Failing(Failure::Denied) => {
            warn!(%kind, %error, "the API server does not let the agent list and watch the kind, so changes of it are not seen: apply the agent's ClusterRole (see deploy/), or see why its token is refused; trying again");
        }
        Notice::Failing(Failure::Interrupted) => {
            warn!(%kind, %error, "the watch of the kind fails again and again; what is known of it stays, trying again");
        }
        Notice::Recovered => info!(%kind, "the kind is listed and watched again"),
    }
}

/// The recent health of a kind's watch.
#[derive(Debug)]
struct Course {
    backoff: Backoff,
    denials: Denials,
    failures: u32,
    /// The failure last reported.
    told: Option<Failure>,
    /// Time at which the present watch finished its listing.
    listed_at: Option<Instant>,
    /// Time at which the last request of a watch that failed before began, at the latest.
    retried_at: Option<Instant>,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            backoff: Backoff::new(RETRY_FIRST, RETRY_LONGEST),
            denials: Denials::default(),
            failures: 0,
            told: None,
            listed_at: None,
            retried_at: None,
        }
    }
}

impl Course {
    /// An event came. The beginning or a part of a listing is no success: every retry has that.
    fn told<K>(&mut self, event: &Event<K>, now: Instant) -> Option<Notice> {
        match event {
            Event::Init | Event::InitApply(_) => {
                self.retried_at = Some(now);
                None
            }
            Event::InitDone => {
                self.listed_at = Some(now);
                None
            }
            Event::Apply(_) | Event::Delete(_) => self.good(),
        }
    }

    /// Time from which the watch counts as good if it does not fail before; absent when nothing depends on it.
    fn good_at(&self) -> Option<Instant> {
        if self.failures == 0 {
            return None;
        }
        let listed = self.listed_at.map(|at| at + GOOD_WATCH);
        listed.or(self.retried_at.map(|at| at + QUIET_WATCH))
    }

    /// The watch works.
    fn good(&mut self) -> Option<Notice> {
        self.backoff.succeeded();
        self.denials.succeeded();
        self.failures = 0;
        self.told.take().map(|_| Notice::Recovered)
    }

    /// The watch failed: how long to wait, and what to say. `random` is any uniformly distributed number.
    fn failed(&mut self, failure: Failure, now: Instant, random: u64) -> (Duration, Option<Notice>) {
        self.listed_at = None;
        self.failures = self.failures.saturating_add(1);
        let is_news = match failure {
            Failure::NotServed | Failure::Denied => self.told != Some(failure),
            Failure::Interrupted => self.told.is_none() && self.failures >= FAILURES_TOLD,
        };
        if is_news {
            self.told = Some(failure);
        }
        let wait = self.backoff.failed(random);
        self.retried_at = Some(now + wait);
        (wait, is_news.then_some(Notice::Failing(failure)))
    }
}

#[cfg(test)]
mod tests;

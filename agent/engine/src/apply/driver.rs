//! The loop: services that changed are worked on, a bounded number at a time and each by one worker at a time;
//! what failed waits longer each time. Nothing is lost by a crash: the stores and the hub say it all again.

use std::{sync::Arc, time::Duration};

use api::server::Client;
use futures::{StreamExt, stream::BoxStream};
use model::ServiceKey;
use pace::{Backoff, random};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::{
    handle::{DriverConfig, Handle, Shared},
    lock::lock,
    metrics::ApplyMetrics,
    served_fields,
    step::{Outcome, step, what_to_do},
    work::{News, RETRY_FIRST, Work},
};
use crate::{
    plan::ServedFields,
    watch::{Dirty, Kept, KeptService, KeptSlice, Watches},
};

/// Services that are worked on at a time.
pub const CONCURRENT_SERVICES_MAX: usize = 16;
/// Interval of reading the index of served schemas if nothing announces a change.
const SCHEMA_INTERVAL: Duration = Duration::from_secs(60);
/// First wait while the schema lacks a field: the definition may have been installed just now.
const SCHEMA_YOUNG: Duration = Duration::from_secs(1);
/// Longest wait before the schema is asked for again after a failure.
const SCHEMA_RETRY_LONGEST: Duration = Duration::from_secs(5);

/// New definitions of ServiceImport, as somebody watches them.
pub type Definitions = BoxStream<'static, ()>;

/// Applies what the hub desires to one cluster.
pub struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) namespaces: Dirty<Box<str>>,
}

impl Driver {
    /// A driver that reads `watches` (which somebody has to run) and writes through `client`.
    pub fn new(
        client: Client,
        watches: Watches,
        config: DriverConfig,
        metrics: ApplyMetrics,
    ) -> (Self, Handle) {
        let handle = Handle::new(client, watches.clone(), config, metrics);
        let shared = handle.0.clone();
        let queue = &shared.queue;
        watches.imports.mark_services(queue);
        watches.exports.mark_services(queue);
        let of_service =
            |service: &KeptService| service.labelled_service().or_else(|| service.head().service());
        watches.services.mark_changes(queue, of_service);
        watches.slices.mark_changes(queue, KeptSlice::imported_or_own);
        let names = shared.taken_names.clone();
        watches
            .services
            .mark_changes(queue, move |object| names.waiting_for(object.head()));
        let names = shared.taken_names.clone();
        watches
            .slices
            .mark_changes(queue, move |object| names.waiting_for(object.head()));
        let namespaces = Dirty::default();
        watches
            .namespaces
            .mark_changes(&namespaces, |namespace| Some(namespace.head().name.clone()));
        watches.mark_unreadable(&namespaces);
        (Self { shared, namespaces }, handle)
    }

    /// Works until `drain`; what is under way is finished. `definition` has an item for each new definition of
    /// ServiceImport, and never ends.
    pub async fn run(self, definition: Definitions, drain: CancellationToken) -> anyhow::Result<()> {
        let shared = self.shared.clone();
        tokio::select! {
            biased;
            () = self.work(&drain) => Ok(()),
            () = follow_schema(&shared, definition) => Ok(()),
            () = follow_listings(&shared) => Ok(()),
            () = follow_patience(&shared) => Ok(()),
        }
    }

    async fn work(self, drain: &CancellationToken) {
        let (mut work, mut running) = (Work::default(), JoinSet::new());
        let planned = |service: &ServiceKey| what_to_do(&self.shared, service);
        let permit = &self.shared.config.permit;
        loop {
            let permitted = permit.holds();
            if permitted {
                start(&self.shared, &mut work, &mut running);
            }
            let next = work.next_due().filter(|_| permitted);
            tokio::select! {
                biased;
                () = drain.cancelled() => break,
                Some(joined) = running.join_next(), if !running.is_empty() => {
                    let (service, outcome) = done(joined);
                    let news = work.done(service.clone(), outcome, planned, Instant::now(), random());
                    tell(&service, news);
                }
                namespaces = self.namespaces.taken() => self.shared.mark_namespaces(&namespaces.into_iter().collect()),
                services = self.shared.queue.taken() => work.marked(services, planned),
                () = permit.given(), if !permitted => {}
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
            }
            work.measure(&self.shared.metrics);
        }
        while running.join_next().await.is_some() {}
    }
}

/// A service after a step.
type Done = (ServiceKey, Outcome);

/// Starts as many services as may be worked on at a time.
fn start(shared: &Arc<Shared>, work: &mut Work, running: &mut JoinSet<Done>) {
    let free = CONCURRENT_SERVICES_MAX.saturating_sub(running.len());
    for service in work.take(free, Instant::now()) {
        let shared = shared.clone();
        running.spawn(async move {
            let outcome = step(&shared, &service, shared.now()).await;
            (service, outcome)
        });
    }
}

fn tell(service: &ServiceKey, news: Option<News>) {
    match news {
        None => {}
        Some(News::Parked(why)) => {
            warn!(%service, %why, "cannot bring the service to what is desired; trying again now and then");
        }
        Some(News::Recovered) => info!(%service, "the service is as desired again"),
    }
}

fn done(done: Result<Done, tokio::task::JoinError>) -> Done {
    done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

/// Reads the served schema at start, when the definition changed, when a write shows that it changed, and now and then.
async fn follow_schema(shared: &Shared, mut definition: Definitions) {
    let mut backoff = Backoff::new(RETRY_FIRST, SCHEMA_RETRY_LONGEST);
    let mut lacking = Backoff::new(SCHEMA_YOUNG, SCHEMA_INTERVAL);
    let mut known: Option<Vec<String>> = None;
    let mut failing = false;
    loop {
        let wait = match read_schema(shared, known.as_ref()).await {
            Ok(documents) => {
                backoff.succeeded();
                if std::mem::take(&mut failing) {
                    info!("/openapi/v3 can be read again");
                }
                known = Some(documents);
                if *lock(&shared.served) == Some(ServedFields::ALL) {
                    SCHEMA_INTERVAL
                } else {
                    // an API server describes a definition some time after it serves it
                    lacking.failed(random())
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    warn!(%error, "cannot read /openapi/v3, and so not which fields ServiceImport has here; trying again");
                }
                backoff.failed(random())
            }
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep(wait) => {}
            // what it says of the fields follows within moments
            Some(()) = definition.next() => lacking.succeeded(),
            () = shared.schema_changed.notified() => {
                known = None;
                // writes keep saying so until the API server itself has noticed
                tokio::time::sleep(backoff.failed(random())).await;
            }
        }
    }
}

pub(super) async fn read_schema(
    shared: &Shared,
    known: Option<&Vec<String>>,
) -> Result<Vec<String>, api::server::Error> {
    let served_fields::Documents {
        multicluster: documents,
        core,
    } = served_fields::documents(&shared.client).await?;
    if core.is_some_and(|core| lock(&shared.refusals).served_by(&core)) {
        info!("the API server is another one: asking it again for what the one before refused");
        shared.mark_all();
    }
    if lock(&shared.refusals).expire(shared.now()) {
        debug!("asking the API server again for what it refused a while ago");
        shared.mark_all();
    }
    if known == Some(&documents) {
        return Ok(documents);
    }
    let fields = served_fields::read(&shared.client, &documents).await?;
    let before = lock(&shared.served).replace(fields);
    if before != Some(fields) {
        debug!("other fields of ServiceImport and ServiceExport are served than before");
        shared.mark_all();
    }
    Ok(documents)
}

/// The hub has not answered in time: what its answer would have replaced is written after all.
async fn follow_patience(shared: &Shared) {
    loop {
        shared.queue.mark(shared.patience.lost().await);
    }
}

/// Plans everything again when a kind becomes known or unknown.
async fn follow_listings(shared: &Shared) {
    let watches = &shared.watches;
    let mut listed = [
        watches.namespaces.listed(),
        watches.services.listed(),
        watches.slices.listed(),
        watches.exports.listed(),
        watches.imports.listed(),
    ];
    loop {
        shared.mark_all();
        let changes = listed.iter_mut().map(|listed| Box::pin(listed.changed()));
        let _ = futures::future::select_all(changes).await; // the stores live as long as `shared`
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use api::{convert::NamespaceDenyList, server::NoAnswer};
    use bytes::Bytes;
    use http::{Request, Response};
    use model::{ClusterId, IpFamily, policy::Brake};
    use serde_json::json;

    use super::*;
    use crate::{
        apply::failure::Failure,
        lease::WritePermit,
        plan::{
            Action,
            content::{DerivedContent, Policies},
        },
    };

    /// Longer than anything that was refused is left out.
    const LONG: Duration = Duration::from_secs(2 * 60 * 60);

    fn cart() -> ServiceKey {
        ServiceKey::new("shop", "cart").expect("a key")
    }

    /// A driver's own beside an API server that serves its own kinds by a document of this hash. Its schema was read,
    /// and an export is observed.
    async fn shared(hash: &Arc<AtomicU64>) -> Arc<Shared> {
        let hash = hash.clone();
        let client = Client::new(move |_: Request<Bytes>| {
            let core = format!("/openapi/v3/api/v1?hash={}", hash.load(Ordering::Relaxed));
            let index = json!({"paths": {"api/v1": {"serverRelativeURL": core}}});
            let answer = Response::new(Bytes::from(index.to_string()));
            async move { Ok::<_, NoAnswer>(answer) }
        });
        let config = DriverConfig {
            cluster: ClusterId::new("north").expect("an id"),
            deny: NamespaceDenyList::default(),
            permit: WritePermit::unlimited(),
            withdrawals: Brake::default(),
        };
        let watches = Watches::default();
        let shared = Handle::new(client, watches, config, ApplyMetrics::default()).0;
        lock(&shared.progress).received(&[cart()].into(), None);
        read_schema(&shared, None).await.expect("an index");
        assert_eq!(shared.queue.take_now(), [cart()], "the fields are known now");
        shared
    }

    /// The API server refuses families; true when they are left out from now on.
    fn refuse(shared: &Shared) -> bool {
        let asked = Action::ApplyDerived {
            name: "derived-x".into(),
            uid: None,
            content: DerivedContent {
                ports: [].into(),
                policies: Policies::default(),
                family_policy: None,
                ip_families: vec![IpFamily::V6],
                sources: [].into(),
                labels: [].into(),
                annotations: [].into(),
            },
            cluster_ips: Vec::new(),
        };
        let refused = Failure::Refused {
            message: "not configured on this cluster".into(),
            fields: vec!["spec.ipFamilies".into()],
        };
        lock(&shared.refusals).learn(&cart(), false, &asked, &refused)
    }

    fn leaves_out(shared: &Shared) -> bool {
        !lock(&shared.refusals).of(&cart()).families.is_empty()
    }

    #[tokio::test]
    async fn what_an_api_server_refused_its_successor_is_asked_for() {
        let hash = Arc::new(AtomicU64::new(1));
        let shared = shared(&hash).await;
        assert!(refuse(&shared) && leaves_out(&shared));
        read_schema(&shared, Some(&Vec::new())).await.expect("an index");
        assert!(leaves_out(&shared), "it is the same one");
        assert_eq!(shared.queue.take_now(), []);
        hash.store(2, Ordering::Relaxed);
        read_schema(&shared, Some(&Vec::new())).await.expect("an index");
        assert!(!leaves_out(&shared));
        assert_eq!(shared.queue.take_now(), [cart()], "it is planned again");
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_api_server_refused_long_ago_it_is_asked_for_again() {
        let shared = shared(&Arc::new(AtomicU64::new(1))).await;
        assert!(refuse(&shared));
        read_schema(&shared, Some(&Vec::new())).await.expect("an index");
        assert!(leaves_out(&shared), "it was refused just now");
        tokio::time::advance(LONG).await;
        assert_eq!(shared.queue.take_now(), []);
        read_schema(&shared, Some(&Vec::new())).await.expect("an index");
        assert!(!leaves_out(&shared));
        assert_eq!(shared.queue.take_now(), [cart()], "it is planned again");
    }
}

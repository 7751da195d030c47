//! Owns: several clustersets beside each other in one process: what is wrong with one at its start stops the process before
//! anybody is served, and from then on each ends alone.
//! Never: starts an ended one again: after a repair of its disk the process is restarted.

use std::panic::AssertUnwindSafe;

use anyhow::{Context, anyhow, bail, ensure};
use futures::FutureExt;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
    registry::Registry,
};
use shared::process::{Readiness, ReadyHandle, Shutdown, Supervisor};
use tokio::task::JoinSet;
use tracing::{Instrument, Span, error, info_span};

use super::{
    layout::Layout,
    set::{Common, Prepared},
};

/// The log line when a task of a clusterset ends it.
const ENDING: &str = "ending this clusterset";

/// A clusterset with its name in the process.
pub(super) struct Set {
    name: String,
    span: Span,
    prepared: Prepared,
    /// Its readiness, with its end.
    readiness: Readiness,
    /// Holds the process back until this one has begun, or cannot.
    beginning: ReadyHandle,
}

/// Reads the files of all and opens all ports. The metrics of each carry its name.
pub(super) async fn prepare(
    layout: Layout,
    common: &Common,
    registry: &mut Registry,
    readiness: &Readiness,
) -> anyhow::Result<Vec<Set>> {
    let mut sets = Vec::new();
    for (name, args) in layout.sets {
        let span = info_span!("set", clusterset = %name);
        let part = readiness.part(&name);
        let label = ("clusterset".into(), name.clone().into());
        let registry = registry.sub_registry_with_label(label);
        registry.register_collector(Box::new(ServingMetric(part.clone())));
        let prepared = Prepared::prepare(args, common, registry, part.clone());
        let about = || format!("clusterset {name} of --clustersets {}", layout.file.display());
        let prepared = prepared.instrument(span.clone()).await.with_context(about)?;
        let named = prepared.clusterset();
        ensure!(
            named.name() == name,
            "{}: its certificate names clusterset {}; give it the certificate of {name}, or that name",
            about(),
            named.name()
        );
        sets.push(Set {
            beginning: readiness.handle(format!("{name} begun")),
            readiness: part,
            span,
            prepared,
            name,
        });
    }
    Ok(sets)
}

/// Runs all of them. An error: the last one has ended, or one could not be drained.
pub(super) async fn run(sets: Vec<Set>, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    for set in sets {
        let own = shutdown.part();
        running.spawn(set.run(own, shutdown.clone()));
    }
    // The conditions awaited by the ended ones, for as long as the process runs.
    let mut ends = Vec::new();
    let mut drained = Ok(());
    while let Some(ended) = running.join_next().await {
        match ended.context("a clusterset panicked")? {
            Ended::Drained(outcome) => drained = drained.and(outcome),
            Ended::Alone(kept) => ends.push(kept),
        }
    }
    if !shutdown.drain().is_cancelled() {
        bail!("every clusterset has ended; the lines above say why");
    }
    drained
}

/// The end of a clusterset.
enum Ended {
    /// With the process, or on its way.
    Drained(anyhow::Result<()>),
    /// By itself. It stays shown.
    Alone(ReadyHandle),
}

impl Set {
    /// Serves it with a shutdown of its own until it ends.
    async fn run(self, own: Shutdown, process: Shutdown) -> Ended {
        let Self {
            name,
            span,
            prepared,
            readiness,
            beginning,
        } = self;
        // It is shown as served from when it is until it ends, and not in between.
        let mut awaited = Some((readiness.handle("begun"), beginning));
        let ending = async {
            own.drain().cancelled().await;
            readiness.handle("ending")
        };
        let serving = async {
            let served = serve(prepared, &mut awaited, own.clone());
            // A panic is the end of this one alone.
            let ended = AssertUnwindSafe(served).catch_unwind().await;
            own.begin();
            ended.unwrap_or_else(|_| Err(anyhow!("it panicked")))
        };
        let (ended, _ending) = tokio::join!(serving.instrument(span.clone()), ending);
        match ended {
            Err(reason) if !process.drain().is_cancelled() => {
                let reason = format!("{reason:#}");
                span.in_scope(|| {
                    error!(
                        %reason,
                        "this clusterset has ended and serves nobody, the others go on: repair what failed, then start \
                         the process again"
                    );
                });
                Ended::Alone(readiness.handle(format!("ended: {reason}")))
            }
            ended => Ended::Drained(ended.with_context(|| format!("clusterset {name}"))),
        }
    }
}

/// Opens the log, and serves until the end. A condition is no longer awaited once it serves.
async fn serve(
    prepared: Prepared,
    awaited: &mut Option<(ReadyHandle, ReadyHandle)>,
    own: Shutdown,
) -> anyhow::Result<()> {
    let drain = own.drain().clone();
    let opened = tokio::select! {
        biased;
        () = drain.cancelled() => return Ok(()),
        opened = prepared.open() => opened?,
    };
    let mut supervisor = Supervisor::ending(own, ENDING);
    opened.run_on(&mut supervisor);
    *awaited = None;
    supervisor.run().await
}

/// Collects at each scrape whether a clusterset is served.
struct ServingMetric(Readiness);

impl std::fmt::Debug for ServingMetric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServingMetric")
    }
}

impl Collector for ServingMetric {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let gauge = ConstGauge::new(i64::from(self.0.is_ready()));
        let help = "1 while this one of several clustersets is served";
        let name = "clusterset_serving";
        gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
    }
}

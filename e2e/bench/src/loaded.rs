//! Owns: a hub with all members of a shape connected, and what it takes while nothing or much is changed.
//! Never: knows which shape that is.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use super::{
    cores::UsedCores,
    crowd::{Crowd, Tally, WaveResult},
    figure::Aim,
    hub::{HubProcess, Setup},
    load_shape::{LoadShape, Measures},
    probe::{Counters, Generator},
    report::{Point, Section},
    series::{Sampler, by_second},
};

/// Milliseconds below which 99 of 100 updates are to reach a member.
const LATENCY_P99_AIM_MILLIS: f64 = 50.0;
/// Aim for mesh-250.
const MESH_CORES_AIM: f64 = 1.0;
const MESH_BYTES_PER_ENDPOINT_AIM: f64 = 400.0;
/// Aim for fleet-1000 while it is idle.
const IDLE_CORES_AIM: f64 = 0.05;
const IDLE_MEGABYTES_AIM: f64 = 200.0;
/// Bytes on the wire per update and member: so many per endpoint, and so many besides.
const WIRE_BYTES_PER_ENDPOINT: usize = 60;
const WIRE_BYTES_BESIDES: usize = 100;
/// The same where one endpoint of a hundred changes and members are told differences.
const WIRE_DIFFERENCE_BYTES_AIM: f64 = 400.0;
/// So many endpoints it is about.
const WIRE_DIFFERENCE_ENDPOINTS: usize = 100;

/// A hub with all members of a shape connected.
pub(super) struct LoadedHub {
    /// The process.
    pub(super) hub: HubProcess,
    crowd: Crowd,
    name: String,
    /// Directory of the log.
    directory: PathBuf,
}

impl LoadedHub {
    /// Starts a hub, has everybody connect and list, and says what that took.
    pub(super) async fn set(
        setup: &Setup,
        measures: Measures,
        name: &str,
        sections: &mut Vec<Section>,
    ) -> anyhow::Result<Self> {
        let mut section = Section::begin(format!("{name}: everybody connects and lists"));
        let directory = name.replace([' ', ','], "-");
        let hub = HubProcess::start(setup, &setup.data(&directory)?, UsedCores::OwnCores).await?;
        let empty = hub.usage()?;
        let crowd = Crowd::gather(setup, &hub, LoadShape::new(measures)?).await?;
        let (usage, counters) = (hub.usage()?, hub.counters().await?);
        let endpoints = crowd.world().endpoints() as f64;
        section.figure("until all had everything", crowd.settled_after.as_secs_f64(), "s");
        section.figure("hub processor time", usage.cpu_seconds - empty.cpu_seconds, "s");
        section.figure("hub memory", usage.resident as f64 / 1e6, "MB");
        section.figure("hub memory at its peak", usage.resident_peak as f64 / 1e6, "MB");
        let per_endpoint = usage.resident as f64 / endpoints;
        if measures_mesh(&crowd) {
            section.aimed(
                "hub memory, everything included",
                per_endpoint,
                "bytes/endpoint",
                Aim::Below(MESH_BYTES_PER_ENDPOINT_AIM),
            );
        } else {
            section.figure("hub memory, everything included", per_endpoint, "bytes/endpoint");
        }
        section.figure("events", counters.events, "");
        sections.push(section);
        Ok(Self {
            hub,
            crowd,
            name: name.to_owned(),
            directory: setup.directory.clone(),
        })
    }

    /// Nobody changes anything for so long.
    pub(super) async fn idle(&self, mut section: Section, seconds: u64) -> anyhow::Result<Section> {
        let (before, began) = (self.hub.usage()?, Instant::now());
        let wire = self.crowd.wire_bytes();
        let sampler = Sampler::start(self.hub.pid(), began);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let (after, elapsed) = (self.hub.usage()?, began.elapsed().as_secs_f64());
        section.samples = sampler.end().await?;
        let cores = (after.cpu_seconds - before.cpu_seconds) / elapsed;
        section.aimed("hub processor time", cores, "cores", Aim::Below(IDLE_CORES_AIM));
        section.aimed(
            "hub memory",
            after.resident as f64 / 1e6,
            "MB",
            Aim::Below(IDLE_MEGABYTES_AIM),
        );
        let wire =
            (self.crowd.wire_bytes() - wire) as f64 / elapsed / self.crowd.world().measures.members as f64;
        section.figure("wire, to one member", wire, "bytes/s");
        Ok(section)
    }

    /// Updates at this rate for so long.
    pub(super) async fn wave(
        &mut self,
        mut section: Section,
        rate: u32,
        seconds: u64,
    ) -> anyhow::Result<Section> {
        let (counters, before) = (self.hub.counters().await?, self.hub.usage()?);
        let generator = Generator::begin()?;
        let WaveResult {
            tally,
            sent,
            expected,
            wire_bytes,
            elapsed,
        } = {
            let sampler = Sampler::start(self.hub.pid(), Instant::now());
            let outcome = self.crowd.wave(rate, Duration::from_secs(seconds)).await?;
            section.samples = sampler.end().await?;
            outcome
        };
        let generator = generator.spent()?;
        section.latencies = by_second(&tally.arrivals);
        let after = self.hub.usage()?;
        let end = self
            .hub
            .settled_counters(counters.events + f64::from(sent))
            .await?;
        let millis = |quantile| tally.latency.value_at_quantile(quantile) as f64 / 1e3;
        section.figure("due to received by members p50", millis(0.5), "ms");
        let p99 = millis(0.99);
        if self.crowd.world().measures.all {
            section.figure("due to received by members p99", p99, "ms");
        } else {
            section.aimed(
                "due to received by members p99",
                p99,
                "ms",
                Aim::Below(LATENCY_P99_AIM_MILLIS),
            );
        }
        section.figure(
            "due to received by members max",
            tally.latency.max() as f64 / 1e3,
            "ms",
        );
        section.beside_the_disk(&self.directory)?;
        section.figure("updates sent", f64::from(sent), "");
        section.figure("updates to be received", expected as f64, "");
        section.figure("updates received", tally.received as f64, "");
        section.figure(
            "superseded before they were pushed",
            expected.saturating_sub(tally.received) as f64,
            "",
        );
        let seconds = elapsed.as_secs_f64();
        section.generator(generator);
        let cores = (after.cpu_seconds - before.cpu_seconds) / seconds;
        if self.name == "mesh-250" {
            section.aimed("hub processor time", cores, "cores", Aim::Below(MESH_CORES_AIM));
        } else {
            section.figure("hub processor time", cores, "cores");
        }
        section.figure("hub memory", after.resident as f64 / 1e6, "MB");
        let measures = &self.crowd.world().measures;
        section.point = Some(Point {
            members: measures.members,
            services: measures.slices,
            rate,
            p99_millis: p99,
            megabytes: after.resident as f64 / 1e6,
            cores,
        });
        wire_figures(&mut section, &tally, wire_bytes, measures);
        log_figures(&mut section, &counters, &end, seconds);
        Ok(section)
    }
}

/// Bytes of an update on the wire, to a member.
fn wire_figures(section: &mut Section, tally: &Tally, wire_bytes: u64, measures: &Measures) {
    let endpoints = measures.endpoints;
    let received = tally.received.max(1) as f64;
    let wire = wire_bytes as f64 / received;
    let bound = if endpoints == WIRE_DIFFERENCE_ENDPOINTS && !measures.all {
        WIRE_DIFFERENCE_BYTES_AIM
    } else {
        (WIRE_BYTES_PER_ENDPOINT * endpoints + WIRE_BYTES_BESIDES) as f64
    };
    section.aimed(
        "wire, an update to a member, all included",
        wire,
        "bytes",
        Aim::Below(bound),
    );
    section.figure("wire, an endpoint", wire / endpoints as f64, "bytes");
    section.figure(
        "encoded object, an update",
        tally.item_bytes as f64 / received,
        "bytes",
    );
}

/// Bytes of a wave in the log, and its duration in seconds.
fn log_figures(section: &mut Section, before: &Counters, end: &Counters, seconds: f64) {
    let events = end.events - before.events;
    section.figure(
        "log payload",
        (end.payload_bytes - before.payload_bytes) / events.max(1.0),
        "bytes/event",
    );
    let per_day = (end.payload_bytes - before.payload_bytes) / seconds * 86_400.0 / 1e9;
    section.figure("log payload at this rate", per_day, "GB/day");
    let syncs = end.syncs - before.syncs;
    section.figure("syncs", syncs, "");
    let inside = (end.append_seconds - before.append_seconds) * 1e3 / syncs.max(1.0);
    section.figure("inside the log, a sync", inside, "ms");
}

fn measures_mesh(crowd: &Crowd) -> bool {
    let measures = &crowd.world().measures;
    measures.shared && !measures.all
}

//! Owns: shape retention: a log that is written at full speed for so many events while old history goes, what it takes
//! on disk meanwhile, and how long an event takes at a quiet rate before all that and while segments go.
//! Never: plays the writer: it is the product's, over the product's log, stepped in this process without a network.
//!
//! * `driven`: the writer and its simulated wall clock, by which history ages. `reporter`: what a member says.
//! * `segments`: what lies on the disk.

mod driven;
mod reporter;
mod segments;

use std::{
    collections::VecDeque,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;
use hdrhistogram::Histogram;
use hub::log::Retention;

use super::{
    figure::Aim,
    hub::Setup,
    report::{Section, latencies},
};
use driven::Driven;
use segments::Segments;

/// Bytes of a fact.
const FACT_BYTES: usize = 400;
/// Updates a second: by the simulated clock at full speed, by the real one at the quiet rate.
const QUIET_RATE: u32 = 100;
/// Spans that are measured before: the quietest counts, since a disturbed one would hide what segments cost.
const BEFORE: u32 = 3;
/// Number of jumps of the simulated clock while segments are to go; together they are as long as history is kept, so
/// that all of it goes. Between them it runs as the real one: each segment sealed meanwhile is one more than the log
/// would have in these seconds.
const JUMPS: u32 = 6;
/// Events between two looks at the disk.
const LOOK_EVERY: u64 = 100_000;
/// The largest size on disk once history goes, beside the smallest, is to stay below this.
const FLAT_AIM: f64 = 1.10;
/// The p99 while segments go, beside that of before, is to stay below this.
const P99_AIM: f64 = 1.5;

/// Measures it.
pub(super) async fn measure(setup: &Setup, events: u64, seconds: u64) -> anyhow::Result<Section> {
    let mut section = Section::begin(format!("retention, {events} events of {FACT_BYTES} bytes"));
    let data = setup.data("retention")?;
    let mut hub = Driven::start(&data, setup.clusterset()).await?;
    let mut segments = Segments::of(&data)?;
    let lasting = Duration::from_secs(seconds);
    let mut minutes = Vec::new();
    for _ in 0..BEFORE {
        settled().await?;
        minutes.push(quiet(&mut hub, lasting, 0).await?);
    }
    let p99 = |latency: &Histogram<u64>| latency.value_at_quantile(0.99);
    minutes.sort_by_key(p99);
    let (Some(before), Some(loudest)) = (minutes.first(), minutes.last()) else {
        anyhow::bail!("nothing was measured before")
    };
    let began = Instant::now();
    let sizes = fill(&mut hub, events, &data, &mut segments).await?;
    let rate = events as f64 / began.elapsed().as_secs_f64();
    section.figure("recorded at full speed", rate, "events/s");
    section.figure("segments that had gone by then", segments.went() as f64, "");
    describe(&sizes, &mut section);
    let went_before = segments.went();
    let jump = Retention::default().age_millis / u64::from(JUMPS);
    settled().await?;
    let after = quiet(&mut hub, lasting, jump).await?;
    segments.look(&data)?;
    let all = [
        ("before, quietest", before),
        ("before, loudest", loudest),
        ("while segments go", &after),
    ];
    for (when, latency) in all {
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let millis = latency.value_at_quantile(quantile) as f64 / 1e3;
            section.figure(
                format!("{QUIET_RATE}/s {when}: due to durable {name}"),
                millis,
                "ms",
            );
        }
    }
    let went = segments.went() - went_before;
    ensure!(went > 0, "no segment went in {seconds} s: nothing was measured");
    section.figure("segments that went meanwhile", went as f64, "");
    let ratio = p99(&after) as f64 / p99(before).max(1) as f64;
    section.aimed(
        "ratio p99, while segments go to the quietest before",
        ratio,
        "",
        Aim::Below(P99_AIM),
    );
    section.beside_the_disk(&setup.directory)?;
    section.note("the product's writer and log in this process; the wall clock is simulated");
    hub.stop().await?;
    Ok(section)
}

/// Waits until what the machine had still to write is on the disk: it would be measured with ours.
async fn settled() -> anyhow::Result<()> {
    Ok(tokio::task::spawn_blocking(rustix::fs::sync).await?)
}

/// Records so many events as fast as the writer takes them; what lay on the disk from the first segment on that went.
async fn fill(
    hub: &mut Driven,
    events: u64,
    data: &Path,
    segments: &mut Segments,
) -> anyhow::Result<Vec<u64>> {
    let (mut sizes, mut recorded) = (Vec::new(), 0);
    while recorded < events {
        let piece = LOOK_EVERY.min(events - recorded);
        hub.record(piece, 1_000 / u64::from(QUIET_RATE)).await?;
        recorded += piece;
        let bytes = segments.look(data)?;
        if segments.went() > 0 {
            sizes.push(bytes);
        }
    }
    Ok(sizes)
}

fn describe(sizes: &[u64], section: &mut Section) {
    let Some((most, least)) = sizes.iter().max().zip(sizes.iter().min()) else {
        section.note("too few events for history to go: nothing is said of the disk");
        return;
    };
    for (which, bytes) in [("smallest", least), ("largest", most)] {
        let name = format!("log on disk once history goes, {which}");
        section.figure(name, *bytes as f64 / 1e9, "GB");
    }
    let sway = *most as f64 / *least as f64;
    section.aimed("largest beside smallest", sway, "", Aim::Below(FLAT_AIM));
}

/// Updates at the quiet rate for so long, while the simulated clock jumps by so many milliseconds now and then: from when
/// each was due until it was acknowledged, in microseconds.
async fn quiet(hub: &mut Driven, lasting: Duration, jump: u64) -> anyhow::Result<Histogram<u64>> {
    let interval = Duration::from_secs(1) / QUIET_RATE;
    let count = u32::try_from(lasting.as_secs())? * QUIET_RATE;
    let start = Instant::now() + interval;
    let mut latency = latencies()?;
    let mut waiting = VecDeque::new();
    for number in 0..count {
        if number.is_multiple_of(count.div_ceil(JUMPS)) {
            hub.jump(jump);
        }
        let due = start + interval * number;
        let arrived = hub.acknowledged_by(due).await?;
        note(&mut waiting, &arrived, &mut latency);
        waiting.push_back((hub.say_one()?, due));
    }
    while !waiting.is_empty() {
        let arrived = hub.acknowledged_by(Instant::now() + interval).await?;
        note(&mut waiting, &arrived, &mut latency);
    }
    Ok(latency)
}

/// Everything up to a sequence number arrived at a time.
fn note(waiting: &mut VecDeque<(u64, Instant)>, arrived: &[(u64, Instant)], latency: &mut Histogram<u64>) {
    for (up_to, at) in arrived {
        while let Some((_, due)) = waiting.pop_front_if(|(sequence, _)| *sequence <= *up_to) {
            latency.saturating_record(at.saturating_duration_since(due).as_micros() as u64);
        }
    }
}

//! The demo itself: starts everything, exports the examples, shows the table until Ctrl-C.
//! It reads the clusters' APIs as a user; what happens in them is the programs' doing.

use std::{collections::BTreeMap, future::Future, time::Instant};

use anyhow::Context;
use kube::Client;
use shared::process::Shutdown;
use tokio::sync::mpsc;

use super::{
    control,
    directory::{Claimed, DemoDirectory},
    hints, keeper,
    screen::Screen,
    setting::{Running, Setting},
    stage::Stage,
    story,
    table::duration,
};

/// Orders that may wait; each caller waits for its answer anyway.
const ORDERS_WAITING_MAX: usize = 4;
/// Sentences about what was done that may wait to be shown.
const SENTENCES_WAITING_MAX: usize = 16;

/// Plays until a signal comes, then ends everything in good order.
pub(super) async fn run(setting: Setting, place: DemoDirectory, shutdown: &Shutdown) -> anyhow::Result<()> {
    let began = Instant::now();
    let claimed = Claimed::claim(place)?;
    if claimed.swept {
        println!(
            "A demo that was killed had left its files in {}; they are removed.",
            claimed.place.path().display()
        );
    }
    println!("Starting three clusters, a hub and three agents ...");
    let starting = setting.start(&claimed.place);
    // Dropped in the middle of the start, every program ends at once: there is nothing to drain yet.
    let Some(started) = shutdown.drain().run_until_cancelled(starting).await else {
        println!("Stopped.");
        return Ok(());
    };
    let Running {
        clusterset,
        clients,
        kind,
        backend,
    } = started?;
    println!("Three clusters, {kind}; each joined the clusterset through its agent.\n");
    hints::hints(&claimed.place)
        .iter()
        .for_each(|line| println!("{line}"));
    println!("\nCtrl-C stops everything.\n");

    let (orders, ordered) = mpsc::channel(ORDERS_WAITING_MAX);
    let (said, sentences) = mpsc::channel(SENTENCES_WAITING_MAX);
    let stop = shutdown.drain().clone();
    let keeper = tokio::spawn(keeper::keep(clusterset, ordered, said, stop.clone()));
    let listener = control::listen(&claimed.place)?;
    let played = tokio::select! {
        played = play(&clients, began, sentences) => played,
        served = control::serve(listener, orders) => served,
        () = stop.cancelled() => Ok(()),
    };
    println!("\nStopping: agents and hub drain ...");
    shutdown.begin();
    let ended = unless_aborted(shutdown, keeper).await;
    drop(backend);
    if ended.is_ok() && played.is_ok() {
        println!(
            "Stopped. The logs are in {}.",
            hints::shown(&claimed.place.clusterset())
        );
    }
    played.and(ended)
}

async fn unless_aborted(
    shutdown: &Shutdown,
    ending: impl Future<Output = Result<anyhow::Result<()>, tokio::task::JoinError>>,
) -> anyhow::Result<()> {
    match shutdown.abort().run_until_cancelled(ending).await {
        Some(ended) => ended.context("the end of the programs")?,
        None => anyhow::bail!("a second signal cut the drain short"),
    }
}

/// Exports the examples one after the other, then shows whatever happens.
async fn play(
    clients: &BTreeMap<String, Client>,
    began: Instant,
    mut sentences: mpsc::Receiver<String>,
) -> anyhow::Result<()> {
    let mut stage = Stage::new(clients, Screen::standard_output());
    stage.complete().await?;
    story::first_exports(&mut stage, clients).await?;
    stage.screen.print_table(&stage.picture)?;
    let first = format!(
        "the first table stood {} after the start",
        duration(began.elapsed())
    );
    stage.screen.say(first, &stage.picture)?;
    story::conflict(&mut stage, clients).await?;
    stage.screen.print_table(&stage.picture)?;
    loop {
        tokio::select! {
            looked = stage.look() => looked?,
            Some(sentence) = sentences.recv() => stage.screen.say(sentence, &stage.picture)?,
        }
    }
}

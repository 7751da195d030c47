//! Owns: the story that is recorded: its lines are typed as a person would, carried out by what they call, and what
//! they print is kept; nothing is printed by anybody else.
//! Never: writes a line that was not typed, or that no program printed.

use std::{
    collections::BTreeMap,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use cli::command::{Cli, Command as Asked};
use kube::Client;
use proto::v1::ListMembersRequest;
use shared::{process::Shutdown, tls::TlsFiles};
use tokio::sync::mpsc;

use super::{
    args::{Arguments, Command as Typed},
    command, control,
    directory::{Claimed, DemoDirectory},
    film::film,
    hints, keeper, objects,
    recording::{Block, Recording, Scene, remark, typed},
    screen::Screen,
    setting::{Running, Setting},
    stage::Stage,
    story::{self, cart},
};
use advice::{BUILD_GRPCURL, DEMO_RECORD};
use cluster::{
    charts,
    clusterset::Inspection,
    real::{Unavailable, command::printed},
};

/// Path of the recording, below the root.
const CAST: &str = "docs/demo.cast";
const FILM: &str = "docs/demo.svg";
const PAGE: &str = "docs/demo.md";
/// The typed path of a demo's directory, wherever it is.
const TYPED_DIRECTORY: &str = "target/demo";
/// Pauses, so that a person can read: before something is typed, and for each line that was printed.
const BEFORE: Duration = Duration::from_millis(1500);
const FOR_A_LINE: Duration = Duration::from_millis(350);
/// Interval of asking the hub until every member has applied everything.
const CALM_POLL: Duration = Duration::from_millis(100);
/// And how long.
const CALM_WAIT: Duration = Duration::from_secs(30);
/// Orders that may wait: each is waited for.
const ORDERS_WAITING_MAX: usize = 1;
/// The flags of a connection, by the variables that docs/demo.md names.
const TLS_FLAGS: [(&str, &str); 3] = [
    ("--tls-ca", "ca.crt"),
    ("--tls-cert", "operator.crt"),
    ("--tls-key", "operator.key"),
];
/// The arguments that give grpcurl its identity: `alias hub='…'` in docs/demo.md.
const ALIAS_BODY: &str =
    "grpcurl -cacert target/demo/ca.crt -cert target/demo/operator.crt -key target/demo/operator.key";
/// Why an import looks as it does: one of its properties, and in sentences.
const EXPLAIN_ONE: &str = "hub -d '{\"namespace\":\"shop\",\"name\":\"cart\"}' $(cat target/demo/hub.addr) tributary.v1.State/Explain | grep -A10 '\"property\": \"sessionAffinity\",'";
const EXPLAIN: &str = "hub -d '{\"namespace\":\"shop\",\"name\":\"cart\"}' $(cat target/demo/hub.addr) tributary.v1.State/Explain | grep -e summary -e message";
/// The events of one namespace.
const EVENTS: &str = "tributary events --namespace shop";

/// Plays the story and writes it into the page of the demo, its cast and its film.
pub(super) async fn write(shutdown: &Shutdown) -> anyhow::Result<()> {
    let recorded = shutdown.drain().run_until_cancelled(record()).await;
    let recording = recorded.unwrap_or_else(|| Err(anyhow::anyhow!("stopped by a signal")))?;
    let root = charts::root();
    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let page = recording.filled_in(&page)?;
    let cast = recording.cast();
    // Of the cast, whose times are whole milliseconds: the same file gives the same film.
    let film = film(&Recording::of_cast(&cast)?);
    for (name, text) in [(CAST, cast), (FILM, film), (PAGE, page)] {
        std::fs::write(root.join(name), text).with_context(|| format!("cannot write {name}"))?;
        println!("{name} is written");
    }
    Ok(())
}

/// Differences between the recording in the tree and the command's output today.
pub async fn compare() -> anyhow::Result<Vec<String>> {
    let read =
        |name: &str| std::fs::read_to_string(charts::root().join(name)).with_context(|| name.to_owned());
    let (cast, shown, page) = (read(CAST)?, read(FILM)?, read(PAGE)?);
    let mut found = record().await?.differences(&cast, &page)?;
    if film(&Recording::of_cast(&cast)?) != shown {
        found.push(format!(
            "{FILM} is not the film of {CAST}; `{DEMO_RECORD}` makes both"
        ));
    }
    Ok(found)
}

/// Plays the story in a directory of its own.
async fn record() -> anyhow::Result<Recording> {
    let grpcurl = hints::grpcurl().with_context(|| Unavailable {
        reason: format!("grpcurl is not installed; run `{BUILD_GRPCURL}`"),
    })?;
    let directory = tempfile::Builder::new().prefix("tributary-record-").tempdir()?;
    let claimed = Claimed::claim(DemoDirectory::new(directory.path().to_owned()))?;
    let Running {
        clusterset,
        clients,
        kind: _,
        backend,
    } = Setting::new(false)?.start(&claimed.place).await?;
    let (orders, ordered) = mpsc::channel(ORDERS_WAITING_MAX);
    let (said, _) = mpsc::channel(ORDERS_WAITING_MAX);
    let shutdown = Shutdown::default();
    let stop = shutdown.drain().clone();
    let keeper = tokio::spawn(keeper::keep(clusterset, ordered, said, stop.clone()));
    let listener = control::listen(&claimed.place)?;
    let mut recorder = Recorder {
        place: claimed.place.clone(),
        stage: Stage::new(&clients, Screen::silent()),
        clients,
        grpcurl: grpcurl.to_string_lossy().into_owned(),
        recording: Recording::default(),
        last: Instant::now(),
    };
    let played = tokio::select! {
        played = recorder.play() => played,
        served = control::serve(listener, orders) => served,
    };
    stop.cancel();
    keeper.await.context("the end of the programs")??;
    drop(backend);
    played?;
    Ok(recorder.recording)
}

struct Recorder {
    place: DemoDirectory,
    stage: Stage,
    clients: BTreeMap<String, Client>,
    grpcurl: String,
    recording: Recording,
    last: Instant,
}

impl Recorder {
    async fn play(&mut self) -> anyhow::Result<()> {
        self.stage.complete().await?;
        for client in self.clients.values() {
            objects::apply(client, objects::EVERYWHERE).await?;
        }
        self.remark(
            "east, west and north are clusters with an agent each; all of them have a namespace shop",
        );
        self.type_line("cargo demo apply west e2e/demo/src/objects/west.yaml")
            .await?;
        let arrived = self.stage.until("west's exports are everywhere", |picture| {
            picture.is_everywhere("west", &cart()) && picture.is_everywhere("west", &story::invoice())
        });
        arrived.await?;
        self.type_line("cargo demo get imports").await?;
        self.remark("every cluster has a clusterset IP for shop/cart; billing is where its namespace is");
        story::until_later_than_export(&self.stage.picture, "west", &cart()).await?;
        self.remark("east exports shop/cart too, later and with other settings");
        self.type_line("cargo demo apply east e2e/demo/src/objects/east.yaml")
            .await?;
        story::conflict_told(&mut self.stage).await?;
        self.type_line("cargo demo get exports").await?;
        self.calm().await?;
        self.block("members", "tributary member list").await?;
        self.remark("why? the hub knows which recorded event decided what");
        self.type_line(EXPLAIN_ONE).await?;
        self.block("why", EXPLAIN).await?;
        self.remark("without its hub a cluster keeps all that it has");
        self.type_line("cargo demo kill hub").await?;
        self.type_line("cargo demo get imports").await?;
        self.type_line("cargo demo start hub").await?;
        self.calm().await?;
        self.remark("what happened is in the log, with who changed it");
        self.type_line(EVENTS).await?;
        self.block("events", EVENTS).await
    }

    fn show(&mut self, read: Duration, lines: Vec<String>) {
        let took = self.last.elapsed();
        self.last = Instant::now();
        self.recording.scenes.push(Scene {
            pause: read + took,
            lines,
        });
    }

    fn remark(&mut self, line: &str) {
        self.show(BEFORE, vec![remark(line)]);
    }

    /// Types a line, and shows what it prints.
    async fn type_line(&mut self, line: &str) -> anyhow::Result<()> {
        self.show(BEFORE, vec![typed(line)]);
        let printed = self.printed(line).await?;
        let read = FOR_A_LINE * u32::try_from(printed.len())?;
        self.show(Duration::ZERO, printed);
        // Whoever reads needs the time before the next thing comes.
        if let Some(next) = self.last.checked_sub(read) {
            self.last = next;
        }
        Ok(())
    }

    /// Keeps a line and what it prints for docs/demo.md.
    async fn block(&mut self, name: &'static str, line: &str) -> anyhow::Result<()> {
        let mut lines = vec![typed(line)];
        lines.extend(self.printed(line).await?);
        self.recording.blocks.push(Block { name, lines });
        // It was not seen: it took no time.
        self.last = Instant::now();
        Ok(())
    }

    /// Output of a line, by the program that it calls.
    async fn printed(&self, line: &str) -> anyhow::Result<Vec<String>> {
        let lines = if let Some(words) = line.strip_prefix("cargo ") {
            self.demo(words).await
        } else if line.starts_with("tributary ") {
            self.hub(line).await
        } else if let Some(words) = line.strip_prefix("hub ") {
            self.grpcurl(words).await
        } else {
            bail!("nobody carries this out")
        };
        let lines = lines.with_context(|| format!("`{line}`"))?;
        let (place, typed) = (self.place.path().to_string_lossy(), TYPED_DIRECTORY);
        Ok(lines.iter().map(|line| line.replace(&*place, typed)).collect())
    }

    async fn demo(&self, words: &str) -> anyhow::Result<Vec<String>> {
        let arguments = Arguments::try_parse_from(words.split_whitespace())?;
        let mut command = arguments.command.context("a sub-command")?;
        if let Typed::Apply { file, .. } = &mut command {
            // It was typed in the root of the repository, wherever this runs.
            *file = charts::root().join(&*file);
        }
        command::lines(&self.place, command).await
    }

    /// As if the variables of its flags were set for this demo.
    async fn hub(&self, line: &str) -> anyhow::Result<Vec<String>> {
        let address = std::fs::read_to_string(self.place.file("hub.addr"))?;
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        words.push(format!("--hub=https://{}", address.trim()));
        for (flag, file) in TLS_FLAGS {
            words.push(format!("{flag}={}", self.place.file(file).display()));
        }
        let command = Cli::try_parse_from(words)?.command;
        // It has a runtime of its own, as the program has.
        let run = move || match command {
            command @ (Asked::Member(_) | Asked::Events(_)) => cli::program::text(command),
            _ => bail!("this is no question"),
        };
        let printed = tokio::task::spawn_blocking(run).await??;
        Ok(printed.lines().map(str::to_owned).collect())
    }

    /// In a shell, for such a line may name files and other programs.
    async fn grpcurl(&self, words: &str) -> anyhow::Result<Vec<String>> {
        let place = self.place.path().display();
        let line = format!("{ALIAS_BODY} {words}").replace(TYPED_DIRECTORY, &place.to_string());
        let mut shell = Command::new("/bin/sh");
        shell.arg("-ec").arg(line.replacen("grpcurl", &self.grpcurl, 1));
        let printed = tokio::task::spawn_blocking(move || printed(&mut shell)).await??;
        ensure!(!printed.is_empty(), "nothing was printed");
        Ok(printed.lines().map(str::to_owned).collect())
    }

    /// Waits until the hub knows that every member has applied everything that is recorded.
    async fn calm(&self) -> anyhow::Result<()> {
        let address = std::fs::read_to_string(self.place.file("hub.addr"))?;
        let [cert, key, ca] = ["operator.crt", "operator.key", "ca.crt"].map(|name| self.place.file(name));
        let mut hub = Inspection::at(address.trim(), &TlsFiles { cert, key, ca }).await?;
        let began = Instant::now();
        loop {
            let answer = hub
                .membership
                .list(ListMembersRequest::default())
                .await?
                .into_inner();
            let calm = answer.members.iter().all(|member| {
                let applied = member.applied.as_ref();
                let waits = applied.is_some_and(|applied| applied.waits_millis.is_some());
                member.listed
                    && member.connected
                    && !waits
                    && applied.and_then(|applied| applied.revision) == Some(answer.revision)
            });
            if calm && answer.members.len() == self.clients.len() {
                return Ok(());
            }
            ensure!(began.elapsed() < CALM_WAIT, "the members do not come to rest");
            tokio::time::sleep(CALM_POLL).await;
        }
    }
}

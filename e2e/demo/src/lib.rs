//! `cargo demo`: a hub and three clusters on this machine, a live table of what crosses between them, and the same
//! played unattended as a check.
//!
//! * `args.rs`, `command.rs`: the command line, and the commands that act on a running demo.
//! * `play.rs`: the demo; `check.rs`: the check; `story.rs`: what both do with the clusters.
//! * `observe.rs` → `kept.rs` → `picture.rs` → `table.rs`, `news.rs` → `screen.rs`: watches of the clusters' APIs
//!   become the table. `stage.rs` holds them together.
//! * `topology`: another demo, of a class and two Clusters.
//! * `record.rs` plays a story for docs/demo.md; `recording.rs` and `film.rs` are what comes of it.
//! * `directory.rs`, `kubeconfig.rs`, `control.rs`, `keeper.rs`: the files, the control channel, the programs.
//!
//! The table and the check know what the clusters' APIs say and nothing else.

mod args;
mod check;
mod command;
mod control;
mod directory;
mod film;
mod get;
mod hints;
mod keeper;
mod kept;
mod kubeconfig;
mod news;
mod objects;
mod observe;
mod picture;
mod play;
mod record;
mod recording;
mod screen;
mod setting;
mod stage;
mod story;
mod table;
mod topology;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use shared::{
    process::{Shutdown, Threads, block_on, exit_code},
    tls::install_crypto_provider,
};

use self::{args::Arguments, directory::DemoDirectory, setting::Setting};
pub use self::{hints::suggestions, record::compare};

/// The demo's command line.
pub fn command_line() -> clap::Command {
    Arguments::command()
}

/// Runs what the command line says.
pub fn main() -> ExitCode {
    exit_code(run(Arguments::parse()))
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    install_crypto_provider()?;
    let Arguments {
        real,
        nodes,
        topology,
        check,
        record,
        directory,
        command,
    } = arguments;
    if nodes {
        anyhow::ensure!(
            command.is_none(),
            "with --nodes there are no sub-commands; see `cargo nodes --help`"
        );
        return nodes::demo(check);
    }
    let place = DemoDirectory::new(match directory {
        Some(directory) => std::path::absolute(directory)?,
        None => args::default_directory(),
    });
    if let Some(command) = command {
        return block_on(Threads::One, command::run(&place, command));
    }
    if record {
        return block_on(Threads::Cores, async {
            let shutdown = Shutdown::default();
            tokio::spawn(shutdown.listen()?);
            record::write(&shutdown).await
        });
    }
    if topology {
        return block_on(Threads::Cores, async move {
            let shutdown = Shutdown::default();
            tokio::spawn(shutdown.listen()?);
            topology::run(check, place, &shutdown).await
        });
    }
    let setting = Setting::new(real)?;
    block_on(Threads::Cores, async move {
        let shutdown = Shutdown::default();
        tokio::spawn(shutdown.listen()?);
        if check {
            check::run(setting, &shutdown).await
        } else {
            play::run(setting, place, &shutdown).await
        }
    })
}

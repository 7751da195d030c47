//! The commands that make a clusterset, add clusters to it, verify its traffic, and remove it.
//!
//! * `init/`, `join/`: make a hub, and a member. `export.rs`: exports a Service. `leave/`, `uninstall/`: undo both.
//! * `args.rs`, `image.rs`: the flags. `plan.rs`: steps, and waiting. `progress.rs`: one line for each step.
//! * `cluster.rs`: a cluster, with the rights of a person. `helm.rs`, `values.rs`: the user's Helm, charts, values.
//! * `hub.rs`: calls to the hub. `home.rs`: keys and what later commands need, on this machine. `dns.rs`: CoreDNS.
//! * `verify/`: looks from pods if clusters reach each other.
//! * `gitops.rs`: what would be applied, as files.
//!
//! Each command first looks, then plans as a pure function of what it saw, and only then writes. Run again, it continues.

mod args;
mod cluster;
mod dns;
mod export;
mod gitops;
mod helm;
mod home;
mod hub;
mod image;
mod init;
mod join;
mod leave;
mod plan;
mod progress;
mod uninstall;
mod values;
mod verify;

pub use args::Command;
pub(crate) use verify::run as run_verify;
pub use verify::{VerifyArgs, verify};

use std::path::PathBuf;

use progress::Progress;

/// Called with the name of each finished step. An error ends the command there.
pub type AfterStep = Box<dyn FnMut(&str) -> anyhow::Result<()>>;

/// The surroundings of a command, where they are not those of the user.
#[derive(Default)]
pub struct Surroundings {
    /// The file of the contexts; keys are kept beside it.
    pub config: Option<PathBuf>,
    /// Called with each step.
    pub after_step: Option<AfterStep>,
}

/// Runs a command and returns what to print.
pub(crate) async fn run(command: Command) -> anyhow::Result<String> {
    run_in(command, Surroundings::default()).await
}

/// Runs a command in these surroundings and returns what to print.
pub async fn run_in(command: Command, surroundings: Surroundings) -> anyhow::Result<String> {
    let Surroundings { config, after_step } = surroundings;
    let mut progress = Progress::new(after_step);
    let home = |clusterset: &str| home::Home::of(config.clone(), clusterset);
    match command {
        Command::Init(args) => init::run(&args, &home(&args.clusterset)?, &mut progress).await,
        Command::Join(args) => join::run(&args, &home(&args.clusterset)?, &mut progress).await,
        Command::Export(args) => export::run(&args, &home(&args.clusterset)?, &mut progress).await,
        Command::Leave(args) => leave::run(&args, &home(&args.clusterset)?, &mut progress).await,
        Command::Uninstall(args) => uninstall::run(&args, &home(&args.clusterset)?, &mut progress).await,
    }
}

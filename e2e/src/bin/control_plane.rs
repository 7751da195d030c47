//! Owns: the command that provides real control planes, and compares with upstream on them: build, install grpcurl, kubectl, Helm,
//! Lua and the manager of Cluster API, render manifests, take rights away, run clusters by hand.
//! Never: is called by a test to build.

use clap::Parser;
use cluster::charts::Charts;
use cluster::clusterset::child;
use cluster::real::args::{Arguments, Command};
use cluster::real::module::Module;
use cluster::real::{Fleet, Options, ServiceFamilies, build};
use shared::{process::exit_code, tls::install_crypto_provider};
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tributary_e2e::permissions::red;
use tributary_e2e::verify::{
    templates,
    topology::{self, Told},
};

/// Interval of checking running clusters: a component that ended ends the command with its log.
const CHECK_EVERY: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // The programs whose rights are taken away are this binary again.
    if let Some(code) = child::run_if_child() {
        return code;
    }
    exit_code(provide(Arguments::parse().command))
}

fn provide(command: Command) -> anyhow::Result<()> {
    let module = Module::of_this_workspace();
    match command {
        Command::Build { kubernetes } => match (build::assets(), kubernetes) {
            (Some(directory), _) => eprintln!(
                "KUBEBUILDER_ASSETS is set to {}: nothing to build",
                directory.display()
            ),
            (None, Some(minor)) => println!("{}", build::control_plane(&module.older(&minor)?)?.display()),
            (None, None) => println!("{}", build::control_plane(&module)?.display()),
        },
        Command::Path => println!("{}", module.built()?.display()),
        Command::Grpcurl => println!("{}", build::grpcurl(&module)?.display()),
        Command::Kubectl => println!("{}", build::kubectl(&module)?.display()),
        Command::Helm => println!("{}", build::helm(&module)?.display()),
        Command::Lua => println!("{}", build::lua(&module)?.display()),
        Command::ClusterApi => println!("{}", build::cluster_api(&module)?.display()),
        Command::Manifests => {
            for path in Charts::new()?.write_manifests()? {
                println!("{}", path.display());
            }
        }
        Command::Permissions { only, list, seconds } => red::run(&red::Told {
            only,
            list,
            deadline: Duration::from_secs(seconds),
        })?,
        Command::Topology { seeds, first, edits } => println!("{}", compare(Told { first, seeds, edits })?),
        Command::Templates { seeds, first, cases } => {
            println!(
                "{}",
                templates::compare(&module, templates::Told { first, seeds, cases })?
            );
        }
        Command::Run {
            names,
            dual_stack,
            sync_to_disk,
        } => {
            let service_families = if dual_stack {
                ServiceFamilies::DualStack
            } else {
                ServiceFamilies::Ipv4
            };
            run(
                &names,
                Options {
                    service_families,
                    sync_to_disk,
                    ..Options::default()
                },
            )?;
        }
    }
    Ok(())
}

#[tokio::main]
async fn compare(told: Told) -> anyhow::Result<String> {
    install_crypto_provider()?;
    topology::compare(told).await
}

#[tokio::main]
async fn run(names: &[String], options: Options) -> anyhow::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let stop = async {
        tokio::select! { _ = terminated.recv() => {}, _ = interrupted.recv() => {} }
    };
    // Whatever is unfinished when the signal comes is dropped, and with it every process and file.
    tokio::select! {
        served = serve(names, options) => served,
        () = stop => Ok(()),
    }
}

async fn serve(names: &[String], options: Options) -> anyhow::Result<()> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fleet = Fleet::start(&names, options).await?;
    for cluster in fleet.clusters() {
        let (name, version) = (cluster.name(), cluster.git_version());
        println!(
            "{name}\t{version}\t{}\t{}",
            cluster.url(),
            cluster.kubeconfig_path().display()
        );
    }
    println!(
        "ready after {:.1} s; Ctrl-C stops the clusters",
        fleet.start_took().as_secs_f64()
    );
    std::io::stdout().flush()?;
    let mut poll = tokio::time::interval(CHECK_EVERY);
    loop {
        poll.tick().await;
        fleet.check()?;
    }
}

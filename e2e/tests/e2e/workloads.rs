//! Owns: the command lines in the plain manifests: the programs' own definitions take them, they fit what stands around
//! them there, and hub and agent start with them and meet.
//! Never: asks an API server (`manifests` does).

use std::{collections::BTreeSet, ffi::OsString, path::Path};

use anyhow::{Context, bail, ensure};
use clap::{CommandFactory, Parser};
use cluster::{
    clusterset::{Backend, LocalClusterset, Program, Role, questions::listed},
    deploy,
};
use libtest_mimic::Trial;
use serde_json::Value;
use tributary_e2e::suite::{plain_test, sim_test};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        plain_test("workloads::the_hubs_command_line_fits_its_manifest", hub_fits),
        plain_test("workloads::the_agents_command_line_fits_its_manifest", agent_fits),
        sim_test("sim::workloads_start_as_deployed", start_as_deployed),
    ]
}

/// The container of the one workload in a directory of manifests.
fn container(directory: &str) -> anyhow::Result<Value> {
    let objects = deploy::read_directory(&deploy::directory(directory))?;
    let mut templates = objects
        .iter()
        .filter_map(|object| object.data.pointer("/spec/template/spec"));
    let template = templates.next().context("there is a workload")?;
    ensure!(templates.next().is_none(), "{directory} has two workloads");
    let containers = template["containers"].as_array().context("containers")?;
    ensure!(
        containers.len() == 1,
        "{directory} has {} containers",
        containers.len()
    );
    Ok(containers[0].clone())
}

/// The container's command line, with `$(NAME)` replaced as the kubelet would, by what `value` says of the variable.
pub(crate) fn command_line(container: &Value, value: impl Fn(&str) -> String) -> anyhow::Result<Vec<String>> {
    let words = |field: &str| -> anyhow::Result<Vec<String>> {
        let words = container[field].as_array().context("a list of words")?;
        words
            .iter()
            .map(|word| Ok(word.as_str().context("a word")?.to_owned()))
            .collect()
    };
    let mut line = words("command")?;
    line.extend(words("args")?);
    for variable in variables(container) {
        let reference = format!("$({variable})");
        line.iter_mut()
            .for_each(|word| *word = word.replace(&reference, &value(&variable)));
    }
    let open = line.iter().find(|word| word.contains("$("));
    ensure!(
        open.is_none(),
        "{open:?} names a variable that the container does not have"
    );
    Ok(line)
}

/// The names in the container's environment.
fn variables(container: &Value) -> Vec<String> {
    let all = container["env"].as_array().into_iter().flatten();
    all.filter_map(|variable| variable["name"].as_str().map(str::to_owned))
        .collect()
}

/// Every variable of the container is one that the program reads.
fn reads_its_variables(container: &Value, command: clap::Command, subcommand: &str) -> anyhow::Result<()> {
    let subcommand = command
        .find_subcommand(subcommand)
        .context("there is such a command")?;
    let read: BTreeSet<&str> = subcommand
        .get_arguments()
        .filter_map(|argument| argument.get_env()?.to_str())
        .collect();
    for variable in variables(container) {
        ensure!(read.contains(&*variable), "nobody reads {variable}");
    }
    Ok(())
}

/// Ports and files of a command line are those that the container declares and mounts.
fn fits(container: &Value, ports: &[(&str, u16)], files: &[&Path]) -> anyhow::Result<()> {
    let declared: BTreeSet<_> = container["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|port| {
            (
                port["name"].as_str().unwrap_or_default(),
                port["containerPort"].as_u64(),
            )
        })
        .collect();
    let wanted = ports
        .iter()
        .map(|&(name, port)| (name, Some(u64::from(port))))
        .collect();
    ensure!(
        declared == wanted,
        "declared are {declared:?}, served are {wanted:?}"
    );
    let mounts: Vec<&str> = container["volumeMounts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|mount| mount["mountPath"].as_str())
        .collect();
    for file in files {
        let mounted = mounts.iter().any(|mount| file.starts_with(mount));
        ensure!(mounted, "{} is on none of {mounts:?}", file.display());
    }
    Ok(())
}

fn hub_fits() -> anyhow::Result<()> {
    let container = container("hub")?;
    reads_its_variables(&container, hub::args::Cli::command(), "serve")?;
    let parsed = hub::args::Cli::try_parse_from(command_line(&container, |_| String::new())?)?;
    let hub::args::Command::Serve(serve) = parsed.command else {
        anyhow::bail!("the manifest does not serve: {:?}", parsed.command)
    };
    let set = serve.set.0.as_ref().context("one clusterset is served")?;
    let files = [&*set.data, &set.tls.cert, &set.tls.key, &set.tls.ca];
    fits(
        &container,
        &[("sync", set.listen.port()), ("admin", serve.admin.port())],
        &files,
    )?;
    ensure!(
        set.listen.ip().is_unspecified() && serve.admin.ip().is_unspecified(),
        "others than the pod itself must reach both ports"
    );
    Ok(())
}

/// The agent's arguments in its container, with these hubs in its ConfigMap.
pub(crate) fn agent_run(container: &Value, hubs: &str) -> anyhow::Result<Box<agent::run::args::RunArgs>> {
    let line = command_line(container, |_| hubs.to_owned())?;
    match agent::args::Cli::try_parse_from(line)?.command {
        agent::args::Command::Run(run) => Ok(run),
        other => bail!("the Deployment runs another command: {other:?}"),
    }
}

fn agent_fits() -> anyhow::Result<()> {
    let container = container("agent")?;
    reads_its_variables(&container, agent::args::Cli::command(), "run")?;
    let run = agent_run(&container, "https://one:8443,https://two:8443")?;
    ensure!(
        run.hubs.len() == 2,
        "the ConfigMap may name several hubs: {:?}",
        run.hubs
    );
    let files = [&*run.tls.cert, &run.tls.key, &run.tls.ca];
    fits(&container, &[("admin", run.admin.port())], &files)?;
    ensure!(
        run.admin.ip().is_unspecified(),
        "the kubelet must reach the admin port"
    );
    Ok(())
}

/// The arguments of a command line with other values where this machine is not the pod.
fn here(line: &[String], values: &[(&str, OsString)]) -> anyhow::Result<Vec<OsString>> {
    let mut arguments = Vec::new();
    for word in &line[1..] {
        let flag = word.split_once('=').map_or(&**word, |(flag, _)| flag);
        match values.iter().find(|(name, _)| *name == flag) {
            Some((_, value)) => arguments.extend([flag.into(), value.clone()]),
            None => arguments.push(word.into()),
        }
    }
    for (flag, _) in values {
        ensure!(
            line.iter().any(|word| word.starts_with(&format!("{flag}="))),
            "no {flag} in {line:?}"
        );
    }
    Ok(arguments)
}

/// Differences from a pod: the places of files, and ports as they come.
fn files(clusterset: &LocalClusterset, name: &str) -> [(&'static str, OsString); 4] {
    let file = |file: String| clusterset.certificate(&file).into();
    [
        ("--admin", "127.0.0.1:0".into()),
        ("--tls-cert", file(format!("{name}.crt"))),
        ("--tls-key", file(format!("{name}.key"))),
        ("--tls-ca", file("ca.crt".into())),
    ]
}

async fn start_as_deployed() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    clusterset.stop_hub().await?;
    let line = command_line(&container("hub")?, |_| String::new())?;
    let mut values = files(&clusterset, "hub").to_vec();
    values.push(("--data", clusterset.data().into()));
    values.push(("--listen", clusterset.hub_address.to_string().into()));
    let hub = Program::start(Role::Hub, here(&line, &values)?, &clusterset.log("hub"))?;
    clusterset.adopt_hub(hub).await?;

    let line = command_line(&container("agent")?, |_| {
        format!("https://{}", clusterset.hub_address)
    })?;
    let mut arguments = here(&line, &files(&clusterset, "east"))?;
    // In a pod the account's own credentials take its place.
    let kubeconfig = clusterset.cluster("east")?.agent_kubeconfig.clone();
    arguments.extend(["--kubeconfig".into(), kubeconfig.into()]);
    let agent = Program::start(Role::Agent, arguments, &clusterset.log("east"))?;
    listed(&clusterset, &["east"]).await?;
    agent.stop().await?;
    clusterset.end().await
}

//! Owns: that docs/reference says what the programs do: their flags, their metrics and what they depend on;
//! `alerts.rs`: that the charts' alerts ask for those; `samples.rs`: that they fire when they should; `health.rs`: what
//! Argo CD makes of objects; `commands.rs`: that every command can be typed, by the definitions that `programs.rs` knows; `links.rs`: that no document, source or manifest points at what is not there;
//! `workflows.rs`: that the forge calls what there is; `recording.rs`: that docs/demo.md shows what the demo does;
//! `threats.rs`: that the threat model's tests are there; `dependencies.rs`: that each dependency has its reason;
//! `lengths.rs`: that pages stay short.
//! Never: judges prose.

mod alerts;
mod commands;
mod dependencies;
mod health;
mod lengths;
mod links;
mod programs;
mod recording;
mod samples;
mod threats;
mod workflows;

use anyhow::{Context, ensure};
use clap::CommandFactory;
use libtest_mimic::Trial;
use regex::Regex;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};
use tributary_e2e::{
    reference,
    suite::{plain_test, sim_test},
};

/// Flags that make a command do what it else only shows.
const CONFIRMING: [&str; 2] = ["confirm", "apply"];
/// Sources that register metrics, and the prefix of their names by program.
const REGISTERED: &[(&str, &[&str])] = &[
    ("hub/src", &["tributary_hub_"]),
    ("hub/core/src", &["tributary_hub_"]),
    ("hub/log/src", &["tributary_hub_"]),
    ("hub/topology/controller/src", &["tributary_hub_"]),
    ("shared/api-client/src", &["tributary_hub_", "tributary_agent_"]),
    ("agent/src", &["tributary_agent_"]),
    ("agent/engine/src", &["tributary_agent_"]),
    ("shared/src", &["tributary_hub_", "tributary_agent_"]),
    ("shared/api/src", &["tributary_hub_", "tributary_agent_"]),
];
/// Suffixes of the format: counters, units, infos.
const SUFFIXES: [&str; 6] = ["", "_total", "_info", "_bytes", "_seconds", "_bytes_total"];

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        plain_test("documents::generated_pages_are_of_today", generated),
        plain_test("documents::pages_stay_short", lengths::are_kept),
        plain_test("documents::every_registered_metric_is_in_the_reference", metrics),
        plain_test(
            "documents::every_dependency_has_its_reason",
            dependencies::have_reasons,
        ),
        plain_test("documents::no_variable_confirms_anything", confirmations),
        plain_test(
            "documents::links_lead_to_files_and_headings",
            links::lead_somewhere,
        ),
        plain_test(
            "documents::every_command_is_understood_by_its_program",
            commands::in_documents,
        ),
        plain_test(
            "documents::every_hint_is_understood_by_its_program",
            commands::in_hints,
        ),
        plain_test("documents::named_tests_exist", threats::named_tests_exist),
        plain_test("documents::a_misspelt_command_is_seen", commands::misspelt),
        plain_test(
            "documents::alerts_ask_for_what_there_is_and_say_what_to_do",
            alerts::are_of_use,
        ),
        plain_test(
            "documents::useless_alerts_are_seen",
            alerts::useless_ones_are_seen,
        ),
        sim_test(
            "sim::documents_alerts_and_dashboards_ask_for_what_is_served",
            alerts::are_served,
        ),
        sim_test(
            "documents::alerts_fire_when_they_should_and_not_before",
            || async { samples::play() },
        ),
        sim_test("documents::argo_cd_tells_what_is_healthy", || async {
            health::of_samples()
        }),
        sim_test(
            "sim::documents_argo_cd_judges_what_the_programs_write",
            health::of_the_programs,
        ),
        sim_test(
            "sim::documents_the_recording_is_what_the_demo_does_today",
            recording::is_of_today,
        ),
        plain_test(
            "documents::cited_sections_of_the_design_exist",
            links::cited_sections_exist,
        ),
        plain_test("documents::cited_decisions_exist", links::cited_decisions_exist),
        plain_test(
            "documents::workflows_call_what_there_is",
            workflows::call_what_there_is,
        ),
        plain_test(
            "documents::wrong_workflows_are_seen",
            workflows::wrong_ones_are_seen,
        ),
    ]
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn generated() -> anyhow::Result<()> {
    for page in reference::pages(&root())? {
        let file = std::fs::read_to_string(root().join(&page.path))
            .with_context(|| page.path.display().to_string())?;
        ensure!(
            file == page.text,
            "{} is not what the programs say: run `cargo reference`",
            page.path.display()
        );
    }
    Ok(())
}

/// Every registration that a plain search finds is in the reference too: so its reader of syntax misses nothing.
fn metrics() -> anyhow::Result<()> {
    let mut registered = BTreeSet::new();
    for (directory, prefixes) in REGISTERED {
        for name in names_in(&root().join(directory))? {
            registered.extend(prefixes.iter().map(|prefix| format!("{prefix}{name}")));
        }
    }
    ensure!(registered.len() > 20, "the sources were not read: {registered:?}");
    let documented: BTreeSet<String> = reference::metrics(&root())?
        .into_iter()
        .map(|metric| metric.name)
        .collect();
    let is = |name: &str, documented: &str| {
        SUFFIXES
            .iter()
            .any(|suffix| *documented == format!("{name}{suffix}"))
    };
    let missing: Vec<_> = registered
        .iter()
        .filter(|name| !documented.iter().any(|other| is(name, other)))
        .collect();
    ensure!(missing.is_empty(), "not in the reference: {missing:?}");
    let invented: Vec<_> = documented
        .iter()
        .filter(|other| !registered.iter().any(|name| is(name, other)))
        .collect();
    ensure!(
        invented.is_empty(),
        "in the reference, but nowhere registered: {invented:?}"
    );
    Ok(())
}

/// Every name that the sources below a directory register, with the prefix of their sub-registry.
fn names_in(directory: &Path) -> anyhow::Result<BTreeSet<String>> {
    let register = Regex::new(r#"\.register(?:_with_unit)?\(\s*"([a-z_]+)""#)?;
    let collected =
        Regex::new(r#"let name = "([a-z_]+)";\s*\n\s*\w+\.encode\(encoder\.encode_descriptor\(name"#)?;
    let described = Regex::new(r#"encode_descriptor\(\s*"([a-z_]+)""#)?;
    let prefix = Regex::new(r#"sub_registry_with_prefix\("([a-z_]+)"\)"#)?;
    let mut names = BTreeSet::new();
    for path in sources(directory)? {
        let text = std::fs::read_to_string(&path)?;
        let prefix = prefix
            .captures(&text)
            .map_or(String::new(), |captured| format!("{}_", &captured[1]));
        for pattern in [&register, &collected, &described] {
            names.extend(
                pattern
                    .captures_iter(&text)
                    .map(|captured| format!("{prefix}{}", &captured[1])),
            );
        }
    }
    Ok(names)
}

fn sources(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

/// A variable that stays in somebody's shell must not turn every dry run into the deed.
fn confirmations() -> anyhow::Result<()> {
    fn confirming(command: &clap::Command, found: &mut Vec<(String, bool)>) {
        for argument in command.get_arguments() {
            let flag = argument.get_long().unwrap_or_default();
            if CONFIRMING.contains(&flag) {
                let name = format!("{} --{flag}", command.get_name());
                found.push((name, argument.get_env().is_some()));
            }
        }
        for sub in command.get_subcommands() {
            confirming(sub, found);
        }
    }
    let mut found = Vec::new();
    let programs = [
        cli::command::Cli::command(),
        hub::args::Cli::command(),
        agent::args::Cli::command(),
        clusterclass_program::command::Cli::command(),
    ];
    for program in programs {
        confirming(&program, &mut found);
    }
    ensure!(found.len() > 10, "{found:?}");
    let by_variable: Vec<_> = found.iter().filter(|(_, variable)| *variable).collect();
    ensure!(by_variable.is_empty(), "confirmed by a variable: {by_variable:?}");
    Ok(())
}

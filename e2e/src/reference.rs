//! Owns: the generated pages of docs/reference: the flags of the programs from their command lines, their metrics from
//! where sources register them, and the values of the charts from their values.yaml.
//! Never: judges their words.

mod metrics;
mod values;

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use clap::{Arg, Command, CommandFactory};
use shared::process::PROCESS_METRICS;

pub use metrics::{Metric, metrics};
pub use values::{ChartValue, values};

/// The command that writes the pages.
const COMMAND: &str = "cargo reference";
/// Flags that every command has and that clap explains.
const OF_CLAP: [&str; 2] = ["help", "version"];

/// A generated page: its path in the repository, and its text.
#[derive(Debug)]
pub struct Page {
    /// The path in the repository.
    pub path: PathBuf,
    /// The whole text.
    pub text: String,
}

/// Every generated page; an error if a source below the root cannot be read.
pub fn pages(root: &Path) -> anyhow::Result<Vec<Page>> {
    let directory = Path::new("docs/reference");
    Ok(vec![
        Page {
            path: directory.join("flags.md"),
            text: flags_page(),
        },
        Page {
            path: directory.join("metrics.md"),
            text: metrics_page(&metrics(root)?),
        },
        Page {
            path: directory.join("values.md"),
            text: values_page(root)?,
        },
    ])
}

fn flags_page() -> String {
    let mut text = format!(
        "# Flags\n\n`{COMMAND}` writes this page from the command lines of the programs; do not edit it.\nEvery flag can be \
         given as the environment variable beside it, except those that confirm a change.\n"
    );
    let programs = [
        cli::command::Cli::command(),
        hub::args::Cli::command(),
        agent::args::Cli::command(),
        clusterclass_program::command::Cli::command(),
    ];
    for program in programs {
        let name = program.get_name().to_owned();
        section(&mut text, &name, &program);
    }
    text
}

/// A command, then its subcommands.
fn section(text: &mut String, name: &str, command: &Command) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "\n## {name}\n\n{}\n", cell(&about));
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && !OF_CLAP.contains(&argument.get_id().as_str()))
        .collect();
    if !arguments.is_empty() {
        text.push_str("\n| flag | variable | default | meaning |\n|---|---|---|---|\n");
        for argument in arguments {
            text.push_str(&row(argument));
        }
    }
    for subcommand in command.get_subcommands() {
        if subcommand.get_name() != "help" {
            section(text, &format!("{name} {}", subcommand.get_name()), subcommand);
        }
    }
}

fn row(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
    let takes = argument.get_action().takes_values();
    let mut flag = String::new();
    if let Some(short) = argument.get_short() {
        let _ = write!(flag, "-{short}, ");
    }
    if let Some(long) = argument.get_long() {
        let _ = write!(flag, "--{long} ");
    }
    if takes {
        flag.push_str(&values.join(" "));
    }
    let variable = argument.get_env().and_then(|name| name.to_str());
    let defaults = argument.get_default_values().iter();
    let defaults: Vec<String> = defaults
        .filter(|_| takes)
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    let help = argument.get_long_help().or(argument.get_help());
    let mut meaning = help.map(ToString::to_string).unwrap_or_default();
    let choices = argument.get_possible_values();
    if takes && !choices.is_empty() {
        let choices: Vec<String> = choices
            .iter()
            .map(|choice| format!("`{}`", choice.get_name()))
            .collect();
        let _ = write!(meaning, "; one of {}", choices.join(", "));
    }
    if argument.is_required_set() {
        meaning.push_str("; required");
    }
    format!(
        "| `{}` | {} | {} | {} |\n",
        flag.trim(),
        variable.map(|name| format!("`{name}`")).unwrap_or_default(),
        defaults.join(", "),
        cell(&meaning)
    )
}

fn metrics_page(metrics: &[Metric]) -> String {
    let mut text = format!(
        "# Metrics\n\n`{COMMAND}` writes this page from where the programs register their metrics; do not edit it.\nA hub of \
         several clustersets adds the label `clusterset` to all but `tributary_hub_build_info`.\n"
    );
    text.push_str("\n## Both\n\n| name | kind | meaning |\n|---|---|---|\n");
    for metric in PROCESS_METRICS {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} |",
            metric.name,
            metric.kind,
            cell(metric.help)
        );
    }
    for (title, prefix) in [("Hub", "tributary_hub_"), ("Agent", "tributary_agent_")] {
        let _ = write!(
            text,
            "\n## {title}\n\n| name | kind | labels | meaning |\n|---|---|---|---|\n"
        );
        for metric in metrics.iter().filter(|metric| metric.name.starts_with(prefix)) {
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} |",
                metric.name,
                metric.kind,
                labels.join(", "),
                cell(&metric.help)
            );
        }
    }
    text
}

fn values_page(root: &Path) -> anyhow::Result<String> {
    let mut text = format!(
        "# Values of the charts\n\n`{COMMAND}` writes this page from `deploy/charts/*/values.yaml`; do not edit it.\n"
    );
    for chart in ["hub", "agent"] {
        let _ = write!(
            text,
            "\n## {chart}\n\n| value | default | meaning |\n|---|---|---|\n"
        );
        for value in values(root, chart)? {
            let default = value.default.as_deref().unwrap_or_default();
            let default = match default {
                "" => String::new(),
                default => format!("`{default}`"),
            };
            let _ = writeln!(
                text,
                "| `{}` | {default} | {} |",
                value.path,
                cell(&value.meaning)
            );
        }
    }
    Ok(text)
}

/// One line that a table can hold.
fn cell(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace('|', "\\|").replace('<', "&lt;")
}

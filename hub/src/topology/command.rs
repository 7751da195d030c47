//! `tributary-hub topology`: the flags, the files that are read, a line for each case or finding.

use std::{
    fmt::Write,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};

use super::{
    model::World,
    template::{cases, render},
    validation::validate,
};

/// Largest file that is read, bytes.
const FILE_MAX: u64 = 64 << 20;

/// Try what a ClusterClass says.
#[derive(Debug, Args)]
pub struct TopologyArgs {
    #[command(subcommand)]
    command: TopologyCommand,
}

#[derive(Debug, Subcommand)]
enum TopologyCommand {
    /// Render a template of a ClusterClass's patch
    #[command(
        long_about = "Render a template of a ClusterClass's patch, as Cluster API does: Go's text/template with sprig's \
        functions, the text read as YAML 1.1. No hub and no cluster is asked.\n\n\
        A line of JSON says for each case what came of it: `rendered` (the text), `value` (what it means), `enabledIf`; \
        or `error` (parse, execute, yaml) and `message`; and `findings`, where it is right and probably not meant, as \
        where `<no value>` is written. Exit code 0 in all these cases, 1 if a file cannot be read.\n\n\
        Example:\n  tributary-hub topology render --template '{{ .name | upper }}' --variables variables.json"
    )]
    Render(RenderArgs),
    /// Check ClusterClasses and Clusters by the rules of topologies
    #[command(
        long_about = "Check ClusterClasses and Clusters by the rules that Cluster API's admission has, and by the \
        proposal's own: variables in use stay. Both spellings (v1beta1, v1beta2) are read, objects of other kinds are \
        passed over. No hub and no cluster is asked.\n\n\
        A line says for each finding where it is (the file, the object, the field), the rule, and what is wrong. With \
        --old the change from those objects to these is checked too; what is in --old only is taken as deleted. Exit code \
        0 if nothing is found, 1 if something is, or if a file cannot be read.\n\n\
        Example:\n  tributary-hub topology validate -f class.yaml -f clusters.yaml --old class-before.yaml"
    )]
    Validate(ValidateArgs),
}

/// Classes and clusters, and what they were.
#[derive(Debug, Args)]
struct ValidateArgs {
    /// File (YAML or JSON) with ClusterClasses and Clusters; may be repeated
    #[arg(
        short = 'f',
        long = "file",
        env = "TRIBUTARY_FILE",
        value_name = "FILE",
        required = true,
        value_delimiter = ','
    )]
    files: Vec<PathBuf>,
    /// File with the objects as they were before; may be repeated
    #[arg(
        long = "old",
        env = "TRIBUTARY_OLD",
        value_name = "FILE",
        value_delimiter = ','
    )]
    old: Vec<PathBuf>,
}

/// A template, or a file of them.
#[derive(Debug, Args)]
struct RenderArgs {
    /// The template
    #[arg(
        long,
        env = "TRIBUTARY_TEMPLATE",
        value_name = "TEXT",
        allow_hyphen_values = true,
        required_unless_present = "cases",
        conflicts_with = "cases"
    )]
    template: Option<String>,
    /// File with the variables, a JSON object; none unless given
    #[arg(
        long,
        env = "TRIBUTARY_VARIABLES",
        value_name = "FILE",
        conflicts_with = "cases"
    )]
    variables: Option<PathBuf>,
    /// File with cases: JSON objects with `template`, `variables` and perhaps `name`, as a list, as `cases` of an
    /// object, or one a line
    #[arg(long, env = "TRIBUTARY_CASES", value_name = "FILE")]
    cases: Option<PathBuf>,
}

/// Runs `tributary-hub topology …` and returns what to print.
pub fn run(args: TopologyArgs) -> anyhow::Result<String> {
    match args.command {
        TopologyCommand::Render(args) => run_render(args),
        TopologyCommand::Validate(args) => run_validate(&args),
    }
}

/// Nothing is said if nothing is found; findings are printed even though the command fails.
fn run_validate(args: &ValidateArgs) -> anyhow::Result<String> {
    let new = read_world(&args.files)?;
    let old = read_world(&args.old)?;
    let findings = validate(&new, (!args.old.is_empty()).then_some(&old));
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(String::new()),
        1 => bail!("1 finding is printed above: correct the object"),
        count => bail!("{count} findings are printed above: correct the objects"),
    }
}

fn read_world(files: &[PathBuf]) -> anyhow::Result<World> {
    let mut world = World::default();
    for file in files {
        let shown = file.display().to_string();
        let text = String::from_utf8(read(file)?)
            .with_context(|| format!("{shown} is no text in UTF-8: give YAML or JSON"))?;
        world.add(&shown, &text);
    }
    Ok(world)
}

fn run_render(args: RenderArgs) -> anyhow::Result<String> {
    let RenderArgs {
        template,
        variables,
        cases: file,
    } = args;
    let mut said = String::new();
    if let Some(file) = file {
        let shown = file.display();
        let cases = cases::read(&read(&file)?).map_err(|message| {
            anyhow::anyhow!(
                "{shown} has no cases: {message}; give JSON objects with `template` and `variables`"
            )
        })?;
        for case in cases {
            let outcome = render(&case.template, &case.variables).to_json();
            match case.name {
                Some(name) => {
                    let name = serde_json::to_string(&name)?;
                    writeln!(said, "{{\"name\":{name},{}", &outcome[1..])?;
                }
                None => writeln!(said, "{outcome}")?,
            }
        }
        return Ok(said);
    }
    let variables = match variables {
        Some(file) => {
            let text = read(&file)?;
            let object: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_slice(&text);
            object.with_context(|| format!("{} is no JSON object of variables", file.display()))?;
            text
        }
        None => b"{}".to_vec(),
    };
    writeln!(
        said,
        "{}",
        render(&template.unwrap_or_default(), &variables).to_json()
    )?;
    Ok(said)
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let mut text = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    file.take(FILE_MAX + 1)
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read {shown}"))?;
    ensure!(
        text.len() as u64 <= FILE_MAX,
        "{shown} has more than {FILE_MAX} bytes: give a smaller file"
    );
    Ok(text)
}

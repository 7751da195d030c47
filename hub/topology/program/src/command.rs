//! The command line: the flags, the files that are read, a line for each case or finding.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clusterclass::{
    desired::{
        change::Changes,
        explain::explained,
        table::{documents, table},
    },
    model::Estate,
    patch::{document, offline},
    template::{cases, render},
    validation::validate,
};
use completion::{CompletionArgs, ManArgs};
use topology_reader as live;

use crate::{
    files::{Files, Old, contents, read},
    plan::{Asks, PlanArgs, block_on, run_plan, told},
    rebase::{self, RebaseArgs},
};
/// Try, check and preview ClusterClasses
#[derive(Debug, Parser)]
#[command(
    name = "clusterclass",
    version,
    long_about = "Try, check and preview ClusterClasses and the topologies of Clusters (Cluster API), before they are applied.\n\n\
        Every command but `rebase` works on files; `plan`, `diff` and `explain` can also read a management cluster. Only \
        `rebase` writes to one. No hub is needed.\n\n\
        Exit codes: 0 nothing is wrong and nothing would change, 2 something would change, 1 something is wrong, the \
        arguments included.\n\n\
        Examples:\n  clusterclass validate -f class.yaml -f clusters.yaml\n  \
        clusterclass diff --kubeconfig management.kubeconfig -f class.yaml"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Render a template of a ClusterClass's patch
    #[command(
        long_about = "Render a template of a ClusterClass's patch, as Cluster API does: Go's text/template with sprig's \
        functions, the text read as YAML 1.1. No hub and no cluster is asked.\n\n\
        The output is a line of JSON for each case: `rendered` (the text), `value` (its value as YAML), `enabledIf`; \
        or `error` (parse, execute, yaml) and `message`; and `findings`, which are probable mistakes such as a \
        written `<no value>`. Exit code 0, or 1 if the template has an `error` or a file \
        cannot be read; with --cases an error is an outcome as any other.\n\n\
        Example:\n  clusterclass render --template '{{ .name | upper }}' --variables variables.json"
    )]
    Render(RenderArgs),
    /// Apply the patches of a ClusterClass to its templates
    #[command(
        long_about = "Apply the patches of a ClusterClass to its templates, as Cluster API does for a Cluster. No hub and \
        no cluster is asked.\n\n\
        The output is YAML: each template with the patches applied to it, then as comments the faults and doubts, \
        each with the rule, the patch, its field and the reason. A definition that fails is left out, and the others \
        are applied. Exit code 0, or 1 if something is wrong.\n\n\
        Example:\n  clusterclass patch -f class.yaml -f templates.yaml --variables variables.json \\\n    \
        --target control-plane"
    )]
    Patch(PatchArgs),
    /// Check ClusterClasses and Clusters by the rules of topologies
    #[command(
        long_about = "Check ClusterClasses and Clusters by the rules of Cluster API's admission, and by one of its \
            proposal: variables in use stay. Both versions (v1beta1, v1beta2) are read; objects of other kinds are \
            ignored. No hub and no cluster is asked.\n\n\
        Each finding is a line: file, object, field, rule, and the fault. With --old the change from those objects \
        to these is checked too; an object in --old only counts as deleted. Exit code 0 if nothing is found, 1 if \
        something is, or if a file cannot be read.\n\n\
        Example:\n  clusterclass validate -f class.yaml -f clusters.yaml --old class-before.yaml"
    )]
    Validate(ValidateArgs),
    /// Show the planned objects of Clusters
    #[command(
        long_about = "Show the planned objects of Clusters, as YAML, in the order of writing: each with its action \
            (create, update, rotate, keep), and as comments the objects that are deleted or wait for an upgrade. \
            Nothing is written, and no hub is asked.\n\n\
        Existing objects are read from the files, as `kubectl get -o yaml` writes them; with --old they are the objects \
        that those files would have made. With --kubeconfig they are read from a management cluster, and every object \
        that would be written is dry-run there. External patches are applied if --extension gives the address of their \
        extension; otherwise the output names them.\n\n\
        Exit code 0 if nothing changes, 2 if something does, 1 if something is wrong.\n\n\
        Example:\n  clusterclass plan -f class.yaml -f templates.yaml -f cluster.yaml"
    )]
    Plan(PlanArgs),
    /// Show what an edit of a ClusterClass or Cluster would change
    #[command(
        long_about = "Show what an edit of a ClusterClass or Cluster would create, change, rotate (another template takes \
        the place of one, and machines are replaced) and delete: a row for each object, with the fields, old and new, then \
        the sum. Nothing is written, and no hub is asked.\n\n\
        Existing objects are read from the files, as `kubectl get -o yaml` writes them; with --old they are the objects \
        that those files would have made. With --kubeconfig they are read from a management cluster, and every object \
        that would be written is dry-run there. External patches are applied if --extension gives the address of their \
        extension; otherwise the output names them.\n\n\
        Exit code 0 if nothing changes, 2 if something does, 1 if something is wrong.\n\n\
        Examples:\n  clusterclass diff --old before.yaml -f after.yaml\n  \
        clusterclass diff --kubeconfig management.kubeconfig -f class.yaml"
    )]
    Diff(PlanArgs),
    /// Explain the planned objects of Clusters
    #[command(
        long_about = "Explain the planned objects of Clusters: the class, the values of variables, and for each \
            object the patches that changed it, in their order, with the index of the definition. Nothing is \
            written, and no hub is asked.\n\n\
        Existing objects are read as by `plan`. Exit code 0 if nothing would be written, 2 if something would, 1 if \
        something is wrong.\n\n\
        Example:\n  clusterclass explain --kubeconfig management.kubeconfig -n default"
    )]
    Explain(PlanArgs),
    /// Give Clusters another ClusterClass, some at once
    #[command(
        long_about = "Give Clusters another ClusterClass, some at once, where Cluster API's own controller keeps topologies: \
        only the Clusters' reference to their class is written.\n\n\
        Everything is previewed first: the changes of every Cluster, and the server's word on each new reference. Without \
        --confirm nothing is written. With it, a wave of Clusters is edited, and the next one follows once they are \
        healthy: their topology is reconciled, and no machine is being replaced. A Cluster that fails ends it. Ctrl-C ends \
        it after the write that goes on. The same command goes on where it ended; nothing is stored.\n\n\
        Exit code 0 if all Clusters have the class, 2 if a preview changes something, 1 if something is wrong.\n\n\
        Example:\n  clusterclass rebase --kubeconfig management.kubeconfig --from small-v1 --to small-v2 --clusters team=shop"
    )]
    Rebase(RebaseArgs),
    /// Print the completions of a shell
    #[command(long_about = "Print the completions of a shell.\n\n\
        Example:\n  clusterclass completion bash")]
    Completion(CompletionArgs),
    /// Write the manual pages into a directory
    #[command(
        long_about = "Write the manual pages into a directory, one for each command.\n\n\
        Example:\n  clusterclass man --out man1"
    )]
    Man(ManArgs),
}

/// A class, its templates, and what a cluster would say.
#[derive(Debug, Args)]
struct PatchArgs {
    #[command(flatten)]
    files: Files,
    /// File with variables, a JSON object; they override those of the Cluster, and within `builtin` single fields
    #[arg(long, env = "TRIBUTARY_VARIABLES", value_name = "FILE")]
    variables: Option<PathBuf>,
    /// Patch this template only, as `control-plane` or `machine-deployment/NAME/bootstrap`; may be repeated
    #[arg(
        long = "target",
        env = "TRIBUTARY_TARGET",
        value_name = "NAME",
        value_delimiter = ','
    )]
    targets: Vec<String>,
}

/// Classes and clusters, and what they were.
#[derive(Debug, Args)]
struct ValidateArgs {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    before: Old,
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

/// Runs a command: what to print, and whether something would change.
///
/// # Errors
///
/// One line: what is wrong. The findings may have been printed.
pub fn run(cli: Cli) -> anyhow::Result<(String, Changes)> {
    let nothing = |said| (said, Changes::Nothing);
    match cli.command {
        Command::Render(args) => run_render(args).map(nothing),
        Command::Patch(args) => run_patch(&args).map(nothing),
        Command::Validate(args) => run_validate(&args).map(nothing),
        Command::Plan(args) => run_plan(&args, Asks::DryRuns, documents),
        Command::Diff(args) => run_plan(&args, Asks::DryRuns, table),
        Command::Explain(args) => run_plan(&args, Asks::Nothing, explained),
        Command::Rebase(args) => run_rebase(&args),
        Command::Completion(args) => completion::completion(&args, Cli::command()).map(nothing),
        Command::Man(args) => completion::man(&args, Cli::command()).map(nothing),
    }
}

fn run_rebase(args: &RebaseArgs) -> anyhow::Result<(String, Changes)> {
    block_on(async {
        let client = live::client(&args.kubeconfig, args.context.as_deref()).await?;
        rebase::run(args, client, &mut |line| println!("{line}")).await
    })
}

/// Prints what there is even where something is wrong with it.
fn run_patch(args: &PatchArgs) -> anyhow::Result<String> {
    let files = contents(&args.files.named)?;
    let variables = match &args.variables {
        Some(file) => read_variables(file)?.1,
        None => serde_json::Map::new(),
    };
    let report = offline::patch(&files, &variables, &args.targets).map_err(anyhow::Error::msg)?;
    if report.errors > 0 {
        print!("{}", report.text);
        let (errors, are) = match report.errors {
            1 => ("1 error".to_owned(), "is"),
            errors => (format!("{errors} errors"), "are"),
        };
        bail!("{errors} {are} named at the end of what was printed: correct the class, or the variables");
    }
    Ok(report.text)
}

/// Prints nothing without findings; prints findings although the command fails.
fn run_validate(args: &ValidateArgs) -> anyhow::Result<String> {
    let new = read_estate(&args.files.named)?;
    let old = read_estate(&args.before.old)?;
    let findings = validate(&new, (!args.before.old.is_empty()).then_some(&old));
    match findings.len() {
        0 => Ok(String::new()),
        _ => Err(told(&findings, "")),
    }
}

fn read_estate(files: &[PathBuf]) -> anyhow::Result<Estate> {
    let files = contents(files)?;
    let mut estate = Estate::with_extensions();
    // The YAML of plans, which is that of kubectl.
    for (file, object) in document::objects(&files).map_err(anyhow::Error::msg)? {
        estate.add_sent(file, &object);
    }
    Ok(estate)
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
        Some(file) => read_variables(&file)?.0,
        None => b"{}".to_vec(),
    };
    let outcome = render(&template.unwrap_or_default(), &variables);
    writeln!(said, "{}", outcome.to_json())?;
    if let Some(problem) = outcome.problem {
        print!("{said}");
        bail!(
            "the template has no value ({}): {}",
            problem.stage.name(),
            problem.message
        );
    }
    Ok(said)
}

/// A file with a JSON object, as it is written and as it is meant.
fn read_variables(file: &Path) -> anyhow::Result<(Vec<u8>, serde_json::Map<String, serde_json::Value>)> {
    let text = read(file)?;
    let object = serde_json::from_slice(&text)
        .with_context(|| format!("{} is no JSON object of variables", file.display()))?;
    Ok((text, object))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: &str = r#"{
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "ClusterClass",
        "metadata": {"name": "c"},
        "spec": {
            "controlPlane": {"templateRef": {"apiVersion": "g/v1", "kind": "KTemplate", "name": "k"}},
            "variables": [{"name": "tag"}],
            "patches": [{"name": "tag", "definitions": [{
                "selector": {"apiVersion": "g/v1", "kind": "KTemplate", "matchResources": {"controlPlane": true}},
                "jsonPatches": [{"op": "add", "path": "/spec/template/spec/tag", "valueFrom": {"variable": "tag"}}]
            }]}]
        }
    }"#;
    const TEMPLATE: &str =
        "apiVersion: g/v1\nkind: KTemplate\nmetadata: {name: k}\nspec: {template: {spec: {}}}\n";

    #[test]
    fn templates_of_files_are_patched() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path.display().to_string()
        };
        let (class, template) = (file("class.json", CLASS), file("templates.yaml", TEMPLATE));
        let variables = file("variables.json", r#"{"tag": "v1"}"#);
        let said = |words: &[&str]| {
            let words = ["clusterclass", "patch", "-f", &class, "--file", &template]
                .into_iter()
                .chain(words.iter().copied());
            run(Cli::try_parse_from(words).expect("its words")).map(|(said, _)| said)
        };
        let text = said(&["--variables", &variables, "--target", "control-plane"]).expect("all is well");
        assert!(
            text.ends_with("spec:\n  template:\n    spec:\n      tag: v1\n"),
            "{text}"
        );
        let error = said(&[]).expect_err("the variable has no value").to_string();
        assert!(error.starts_with("1 error is named"), "{error}");
        let error = said(&["--target", "workers"])
            .expect_err("no such target")
            .to_string();
        assert!(error.contains("there is no target \"workers\""), "{error}");
        let error = said(&["--variables", &template])
            .expect_err("no JSON")
            .to_string();
        assert!(error.ends_with("is no JSON object of variables"), "{error}");
    }
}

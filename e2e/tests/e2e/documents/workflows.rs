//! Owns: that the workflows of the forge call what there is: commands, paths, each other, actions of others at one
//! commit; and that nothing may write but the job that makes a draft.
//! Never: runs one.

use super::{programs, root};
use anyhow::{Context, ensure};
use regex::Regex;
use serde_norway::Value;
use shared::testing::advice::words;
use std::{
    fs,
    process::{Command, Stdio},
};

/// Directory of the workflows.
const FOLDER: &str = ".github/workflows";
/// Each, and what it must not go without.
const WORKFLOWS: [(&str, &[&str]); 2] = [
    (
        "check.yaml",
        &[
            "GATE: ${{ inputs.gate || '.ci/run' }}\n",
            "run: '\"$GATE\" $PART'\n",
            "pull_request:\n",
        ],
    ),
    (
        "release.yaml",
        &[
            "uses: ./.github/workflows/check.yaml\n    with:\n      gate: .ci/release\n",
            "cargo image build",
            "cargo control-plane helm\n",
            "gh release create \"$TAG\" --draft ",
            "needs: [check, build]\n",
        ],
    ),
];
/// Rights of every workflow, and the one job with more.
const READS: &str = "contents: read";
const WRITES: (&str, &str) = ("draft", "contents: write");
/// Commands of cargo's own.
const OF_CARGO: [&str; 1] = ["fetch"];
/// Names of files and folders of this workspace in a script.
const PATHS: &str = r#"(?m)(?:^|[\s"'])((?:\.ci|deploy|docs|e2e)/[\w./-]*|[A-Z][\w-]*\.(?:md|toml))"#;
/// An action at a commit: a tag can be moved.
const ACTION: &str = r"^[\w-]+/[\w./-]+@[0-9a-f]{40}$";

pub(super) fn call_what_there_is() -> anyhow::Result<()> {
    let files = fs::read_dir(root().join(FOLDER)).context(FOLDER)?.count();
    ensure!(files == WORKFLOWS.len(), "{FOLDER} has {files} files");
    let mut wrong = Vec::new();
    for (name, needed) in WORKFLOWS {
        let text = text_of(name)?;
        let missing = needed.iter().filter(|needed| !text.contains(**needed));
        wrong.extend(missing.map(|missing| format!("{name}: no {missing:?}")));
        wrong.extend(wrong_in(name, &text)?);
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

pub(super) fn wrong_ones_are_seen() -> anyhow::Result<()> {
    let right = text_of("release.yaml")?;
    for (from, to) in [
        ("contents: read", "contents: write"),
        ("contents: write", "packages: write"),
        ("    steps:", "    permissions: write-all\n    steps:"),
        ("    timeout-minutes: 180\n", ""),
        ("workflows/check.yaml", "workflows/chek.yaml"),
        ("actions/checkout@", "actions/checkout@v7 # "),
        ("cargo image build", "cargo image bild"),
        ("cargo fetch", "cargo fetsh"),
        ("deploy/charts/hub", "deploy/charts/hubb"),
        ("          fi\n", ""),
    ] {
        ensure!(right.contains(from), "release.yaml has no {from:?} any more");
        let wrong = wrong_in("release.yaml", &right.replacen(from, to, 1))?;
        ensure!(wrong.len() == 1, "{to:?} instead of {from:?}: {wrong:?}");
    }
    Ok(())
}

fn text_of(name: &str) -> anyhow::Result<String> {
    fs::read_to_string(root().join(FOLDER).join(name)).with_context(|| name.to_owned())
}

fn wrong_in(name: &str, text: &str) -> anyhow::Result<Vec<String>> {
    let workflow: Value = serde_norway::from_str(text).with_context(|| name.to_owned())?;
    let reads: Value = serde_norway::from_str(READS)?;
    let writes: Value = serde_norway::from_str(WRITES.1)?;
    let mut wrong = Vec::new();
    if workflow.get("permissions") != Some(&reads) {
        wrong.push(format!("{name}: may do other things than `{READS}`"));
    }
    let jobs = workflow.get("jobs").and_then(Value::as_mapping);
    for (job, of_job) in jobs.with_context(|| format!("{name} has no jobs"))? {
        let place = format!("{name}: {}", job.as_str().unwrap_or_default());
        if let Some(permissions) = of_job.get("permissions")
            && (job.as_str() != Some(WRITES.0) || *permissions != writes)
        {
            wrong.push(format!("{place}: has permissions that are not expected"));
        }
        if of_job.get("uses").is_none() && of_job.get("timeout-minutes").is_none() {
            wrong.push(format!("{place}: may run for ever: no timeout-minutes"));
        }
        let steps = of_job.get("steps").and_then(Value::as_sequence);
        for part in std::iter::once(of_job).chain(steps.into_iter().flatten()) {
            if let Some(called) = part.get("uses").and_then(Value::as_str)
                && !is_there(called)?
            {
                wrong.push(format!("{place}: {called}: neither ours nor at a commit"));
            }
            if let Some(script) = part.get("run").and_then(Value::as_str) {
                let of_script = wrong_in_script(script)?;
                wrong.extend(of_script.into_iter().map(|what| format!("{place}: {what}")));
            }
        }
    }
    Ok(wrong)
}

fn is_there(called: &str) -> anyhow::Result<bool> {
    Ok(match called.strip_prefix("./") {
        Some(path) => root().join(path).is_file(),
        None => Regex::new(ACTION)?.is_match(called),
    })
}

fn wrong_in_script(script: &str) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mut bash = Command::new("bash");
    bash.args(["-n", "-c", script]).stderr(Stdio::null());
    if !bash.status().context("cannot run bash")?.success() {
        wrong.push(format!("bash does not understand: {script}"));
    }
    for captured in Regex::new(PATHS)?.captures_iter(script) {
        if !root().join(&captured[1]).exists() {
            wrong.push(format!("{}: is not there", &captured[1]));
        }
    }
    let lines = script.lines().map(str::trim);
    for line in lines.filter(|line| line.starts_with("cargo ")) {
        let words = words(line);
        match programs::read(&words) {
            Some(Ok(())) => {}
            Some(Err(error)) => wrong.push(format!("{line}: {error}")),
            None if words.get(1).is_some_and(|word| OF_CARGO.contains(&word.as_str())) => {}
            None => wrong.push(format!("{line}: of no program of ours")),
        }
    }
    Ok(wrong)
}

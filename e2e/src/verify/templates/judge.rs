//! Owns: Go's own engine with sprig, as a process that is built from `e2e/templates` and answers case after case.
//! Never: says what an answer is worth.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::draw::Case;
use cluster::real::{build, command::printed, module::Module};

/// Exit code of a program that does not understand a case, or cannot write its answer.
const FAILED: i32 = 1;

/// Go's answer to a case.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Said {
    /// The text.
    pub(super) rendered: Option<String>,
    /// The text as YAML; `null` is none, too.
    pub(super) value: Option<Value>,
    /// The stage that failed.
    pub(super) error: Option<String>,
    /// Why.
    pub(super) message: Option<String>,
}

/// The program.
pub(super) struct Judge(PathBuf);

impl Judge {
    /// Builds it, if that is not done.
    pub(super) fn built(module: &Module) -> anyhow::Result<Self> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
        let tools = module.tools();
        std::fs::create_dir_all(&tools).with_context(|| format!("cannot create {}", tools.display()))?;
        let program = tools.join("templates");
        build::go_program(&sources, ".", &program)?;
        Ok(Self(program))
    }

    /// The functions of sprig, in no order.
    pub(super) fn functions(&self) -> anyhow::Result<Vec<String>> {
        let printed = printed(Command::new(&self.0).arg("functions"))?;
        Ok(printed.lines().map(str::to_owned).collect())
    }

    /// Answers to each; none for a case in which Go ended the process, or did not come to an end.
    pub(super) fn judge(&self, cases: &[Case]) -> anyhow::Result<Vec<Option<Said>>> {
        let mut said = Vec::with_capacity(cases.len());
        while said.len() < cases.len() {
            let left = cases.get(said.len()..).unwrap_or_default();
            said.extend(self.judged(left)?.into_iter().map(Some));
            if said.len() < cases.len() {
                said.push(None);
            }
        }
        Ok(said)
    }

    /// Answers of one process until it ends.
    fn judged(&self, cases: &[Case]) -> anyhow::Result<Vec<Said>> {
        let mut child = Command::new(&self.0)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", self.0.display()))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (mut input, output) = (input.context("its input")?, output.context("its output")?);
        let lines: Vec<String> = cases.iter().map(line).collect();
        let read = std::thread::scope(|scope| {
            scope.spawn(move || {
                // It may end before it has read all: then there are fewer answers.
                for line in lines {
                    if writeln!(input, "{line}").is_err() {
                        return;
                    }
                }
            });
            let answers = BufReader::new(output).lines();
            let read = answers.map(|line| serde_json::from_str(&line?).context("an answer in JSON"));
            read.collect::<anyhow::Result<Vec<Said>>>()
        });
        let status = child.wait().context("its end")?;
        // Go's own ends have other codes.
        ensure!(status.code() != Some(FAILED), "{} failed", self.0.display());
        read
    }
}

fn line(case: &Case) -> String {
    json!({"template": case.template, "variables": case.variables}).to_string()
}

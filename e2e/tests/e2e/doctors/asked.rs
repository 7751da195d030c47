//! Owns: what an agent's doctor is told about a member, and what doctors found.
//! Never: plants anything.

use std::{ffi::OsString, path::PathBuf};

use anyhow::{bail, ensure};
use clap::Parser;
use cluster::clusterset::{LocalClusterset, Program, Role};
use shared::doctor::Report;

/// A member whose agent's doctor is asked.
#[derive(Clone)]
pub(super) struct Patient {
    /// HOST:PORT.
    pub(super) hub: String,
    /// The certificate's name.
    pub(super) certificate: String,
    /// By which it speaks to the cluster.
    pub(super) kubeconfig: PathBuf,
    /// Further flags.
    pub(super) flags: Vec<&'static str>,
}

impl Patient {
    /// A member as it should be, with a person's account in its cluster.
    pub(super) fn of(clusterset: &LocalClusterset, member: &str) -> anyhow::Result<Self> {
        Ok(Self {
            hub: clusterset.hub_address.to_string(),
            certificate: member.to_owned(),
            kubeconfig: clusterset.cluster(member)?.kubeconfig.clone(),
            flags: Vec::new(),
        })
    }

    fn words(&self, clusterset: &LocalClusterset) -> Vec<OsString> {
        let mut words = vec![OsString::from("doctor")];
        words.extend(clusterset.access_to_the_hub(&self.hub, &self.certificate));
        words.extend(["--kubeconfig".into(), self.kubeconfig.clone().into()]);
        words.extend(self.flags.iter().map(OsString::from));
        words
    }

    /// Findings of `tributary-agent doctor`.
    pub(super) async fn examined(&self, clusterset: &LocalClusterset) -> anyhow::Result<Report> {
        let words = [vec!["tributary-agent".into()], self.words(clusterset)].concat();
        let agent::args::Command::Doctor(args) = agent::args::Cli::try_parse_from(words)?.command else {
            bail!("another command");
        };
        Ok(agent::doctor::examine(&args.look).await)
    }

    /// The exit code of `tributary-agent doctor` as a program.
    pub(super) async fn exit_code(&self, clusterset: &LocalClusterset) -> anyhow::Result<Option<i32>> {
        let log = clusterset.log("doctor");
        let program = Program::start(Role::Agent, self.words(clusterset), &log)?;
        Ok(program.ended().await?.0.code())
    }
}

/// The names of what is wrong.
pub(super) fn faults(report: &Report) -> Vec<&'static str> {
    report.faults().map(|check| check.name).collect()
}

/// A report has these faults and no other, a word of what each is, and a fix for each; with one the exit code is 1, and
/// without any 0: everything was looked at.
pub(super) fn found(report: &Report, wanted: &[(&str, &str)]) -> anyhow::Result<()> {
    let text = report.text();
    let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
    ensure!(faults(report) == names, "{names:?}: {text}");
    ensure!(report.exit_code() == u8::from(!wanted.is_empty()), "{text}");
    for (check, (name, word)) in report.faults().zip(wanted) {
        let (what, fix) = check.verdict.words();
        ensure!(what.contains(word), "{name} does not say {word}: {what}");
        ensure!(
            fix.is_some_and(|fix| !fix.is_empty()),
            "{name} has no fix: {text}"
        );
    }
    Ok(())
}

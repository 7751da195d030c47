//! Owns: typing the command of a page: a reader's own words are put in the place of those that stand for them, a command
//! of the client that names no hub is told of this one, and what was printed is returned.

use std::{ffi::OsString, path::PathBuf};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use cli::command::Cli as Client;
use cluster::{
    clusterset::{LocalClusterset, Program, Role},
    real::kubectl::Kubectl,
};
use hub::args::{Cli, Command};
use shared::testing::advice::words;

/// Name of the certificate for a command that names none.
const OPERATOR: &str = "operator";

/// Somebody with a terminal.
#[derive(Default)]
pub(crate) struct Player {
    /// Words of the page, and what this reader types for each; `certs` also stands in `certs/ca.crt`.
    words: Vec<(&'static str, String)>,
    /// Kubeconfig of a page's `kubectl`.
    pub(crate) kubeconfig: Option<PathBuf>,
}

impl Player {
    /// With the words that most pages have: where certificates are, and the hub.
    pub(crate) fn at(clusterset: &LocalClusterset) -> Self {
        let directory = clusterset.certificate("").display().to_string();
        Self {
            words: vec![
                ("certs", directory.trim_end_matches('/').to_owned()),
                ("https://HOST:8443", format!("https://{}", clusterset.hub_address)),
            ],
            kubeconfig: None,
        }
    }

    /// A further word.
    pub(crate) fn with(mut self, word: &'static str, typed: impl Into<String>) -> Self {
        self.words.retain(|(other, _)| *other != word);
        self.words.push((word, typed.into()));
        self
    }

    /// The words that are typed for a command of ours.
    pub(crate) fn typed(&self, command: &str) -> Vec<String> {
        let typed = words(command).into_iter().enumerate();
        // The command and its sub-command mean themselves.
        typed
            .map(|(place, word)| if place < 2 { word } else { self.instead(&word) })
            .collect()
    }

    fn instead(&self, word: &str) -> String {
        for (stands, typed) in &self.words {
            if word == *stands {
                return typed.clone();
            }
            if let Some(rest) = word.strip_prefix(stands).filter(|rest| rest.starts_with('/')) {
                return format!("{typed}{rest}");
            }
        }
        word.to_owned()
    }

    /// Types it and waits for its end; what it printed. An error when it failed.
    pub(crate) async fn play(&self, clusterset: &LocalClusterset, command: &str) -> anyhow::Result<String> {
        self.play_with(clusterset, command, &[]).await
    }

    /// The same with words behind it that the page leaves to the reader.
    pub(crate) async fn play_with(
        &self,
        clusterset: &LocalClusterset,
        command: &str,
        further: &[&str],
    ) -> anyhow::Result<String> {
        if !command.starts_with("tributary") {
            return self.in_a_shell(clusterset, command).await;
        }
        let mut typed = self.typed(command);
        typed.extend(further.iter().map(|word| (*word).to_owned()));
        println!("$ {}", typed.join(" "));
        if typed[0] == "tributary-agent" {
            return agent(clusterset, typed).await;
        }
        let names_a_hub = typed.iter().any(|word| word == "--hub");
        let calls_the_hub = typed[0] == "tributary" || typed.get(2).is_some_and(|word| word == "backup");
        let mut typed: Vec<OsString> = typed.into_iter().map(OsString::from).collect();
        // A person has these in the environment or in a context.
        if calls_the_hub && !names_a_hub {
            typed.extend(clusterset.access_to_the_hub(&clusterset.hub_address.to_string(), OPERATOR));
        }
        let ended = if typed[0] == "tributary" {
            client(Client::try_parse_from(typed)?.command).await
        } else {
            hub(Cli::try_parse_from(typed)?.command).await
        };
        ended.with_context(|| command.to_owned())
    }

    /// Types the command that a dry run printed as the one that does it.
    pub(crate) async fn confirm(&self, clusterset: &LocalClusterset, said: &str) -> anyhow::Result<String> {
        let (_, confirm) = said
            .split_once("To do it:\n")
            .with_context(|| format!("no command that does it: {said}"))?;
        self.play(clusterset, confirm.trim()).await
    }

    async fn in_a_shell(&self, clusterset: &LocalClusterset, command: &str) -> anyhow::Result<String> {
        let mut line: Vec<String> = command.split(' ').map(|word| self.instead(word)).collect();
        let mut shell = tokio::process::Command::new("sh");
        if line[0] == "kubectl" {
            line[0] = Kubectl::of_today()?.path.display().to_string();
            shell.env(
                "KUBECONFIG",
                self.kubeconfig.as_ref().context("kubectl of which cluster")?,
            );
        }
        let line = line.join(" ");
        println!("$ {line}");
        let directory = clusterset.certificate("");
        let output = shell.args(["-c", &line]).current_dir(directory).output().await?;
        ensure!(output.status.success(), "{line}: {output:?}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// As in its own process: each makes a runtime for itself.
async fn hub(command: Command) -> anyhow::Result<String> {
    tokio::task::spawn_blocking(|| match command {
        Command::Certs(args) => hub::certs::command::run(args),
        Command::Log(args) => hub::maintain::command::run(args).map(|()| String::new()),
        _ => bail!("a command that nobody plays yet"),
    })
    .await?
}

/// As in its own process: each command makes a runtime for itself.
async fn client(command: cli::command::Command) -> anyhow::Result<String> {
    tokio::task::spawn_blocking(|| cli::program::text(command)).await?
}

async fn agent(clusterset: &LocalClusterset, typed: Vec<String>) -> anyhow::Result<String> {
    let arguments: Vec<OsString> = typed.into_iter().skip(1).map(OsString::from).collect();
    let log = clusterset.log("typed");
    let (status, tail) = Program::start(Role::Agent, arguments, &log)?.ended().await?;
    ensure!(status.success(), "ended with {status}: {tail}");
    Ok(tail)
}

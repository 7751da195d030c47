//! Owns: the commands of a page or section below docs, in their order, and which of them were played.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, ensure};

/// Beginnings of commands that people type.
const PROGRAMS: [&str; 8] = [
    "clusterclass ",
    "tributary-hub ",
    "tributary ",
    "tributary-agent ",
    "kubectl ",
    "helm ",
    "cat ",
    "cp ",
];

/// One section, by its heading.
pub(super) struct Page {
    heading: &'static str,
    commands: Vec<String>,
    played: BTreeSet<String>,
}

impl Page {
    /// The section of a file below docs, up to the next heading that is not below its own; an error when there is none, or
    /// no command in it.
    pub(super) fn of(file: &str, heading: &'static str) -> anyhow::Result<Self> {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(file);
        let text = fs::read_to_string(page).with_context(|| file.to_owned())?;
        let level = |line: &str| line.bytes().take_while(|byte| *byte == b'#').count();
        let mut lines = text.lines();
        let begin = lines
            .find(|line| level(line) > 0 && line.trim_start_matches('#').trim() == heading)
            .with_context(|| format!("{file} has no heading {heading:?}"))?;
        let below = |line: &&str| level(line) == 0 || level(line) > level(begin);
        let section = lines.take_while(below).collect::<Vec<_>>().join("\n");
        let commands = commands(&section);
        ensure!(!commands.is_empty(), "there is no command in {heading:?}");
        Ok(Self {
            heading,
            commands,
            played: BTreeSet::new(),
        })
    }

    /// All of them.
    pub(super) fn commands(&self) -> &[String] {
        &self.commands
    }

    /// A command that is about to be played, as it stands there; an error when it does not.
    pub(super) fn take<'a>(&mut self, command: &'a str) -> anyhow::Result<&'a str> {
        ensure!(
            self.commands.iter().any(|one| one == command),
            "{:?} does not say `{command}`, but {:#?}",
            self.heading,
            self.commands
        );
        self.played.insert(command.to_owned());
        Ok(command)
    }

    /// Every command was played, but for those of `left`, each with its reason.
    pub(super) fn all_played(self, left: &[(&str, &str)]) -> anyhow::Result<()> {
        for (command, reason) in left {
            let there = self.commands.iter().any(|one| one == command);
            ensure!(
                there && !self.played.contains(*command),
                "`{command}` ({reason}): not left out"
            );
        }
        let forgotten: Vec<&String> = self
            .commands
            .iter()
            .filter(|one| !self.played.contains(*one) && !left.iter().any(|(command, _)| command == one))
            .collect();
        ensure!(
            forgotten.is_empty(),
            "never played, of {:?}: {forgotten:#?}",
            self.heading
        );
        Ok(())
    }
}

/// The lines of listings for a shell, and what stands between backticks.
fn commands(section: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut listing = None;
    for line in section.lines().map(str::trim) {
        if let Some(language) = line.strip_prefix("```") {
            listing = match listing {
                None => Some(language == "sh"),
                Some(_) => None,
            };
            continue;
        }
        let spans: Vec<&str> = match listing {
            Some(true) => vec![line],
            Some(false) => Vec::new(),
            None => line.split('`').skip(1).step_by(2).collect(),
        };
        let typed = spans
            .into_iter()
            .filter(|span| PROGRAMS.iter().any(|program| span.starts_with(program)));
        commands.extend(typed.map(str::to_owned));
    }
    commands
}

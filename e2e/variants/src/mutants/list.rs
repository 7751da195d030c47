//! Owns: which mutants there are, as cargo-mutants lists them, and which of them are asked for.
//! Never: builds or runs one.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use serde::Deserialize;

use crate::edit::{Edit, LineColumn};
use advice::LIST_MUTANTS;

/// The release whose list is read.
const VERSION: &str = "27.1.0";
/// Most mutants that are listed: more is a mistake.
const MUTANTS_MAX: usize = 20_000;

/// A change of one place.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Mutant {
    /// Its place, and what is changed.
    pub(super) name: String,
    /// The package whose tests must see it.
    pub(super) package: String,
    /// Its file.
    pub(super) file: PathBuf,
    span: Span,
    replacement: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Span {
    start: LineColumn,
    end: LineColumn,
}

impl Mutant {
    /// Its edit in a workspace.
    pub(super) fn edit(&self, workspace: &Path) -> anyhow::Result<Edit> {
        let text = fs::read_to_string(workspace.join(&self.file))?;
        Edit::of_span(&text, self.span.start, self.span.end, &self.replacement)
            .with_context(|| format!("{}: its file has no such place", self.name))
    }

    /// The room it is in: the module of its crate, and where that lies.
    pub(super) fn room(&self) -> (String, String) {
        let parts: Vec<String> = self
            .file
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        let sources = parts.iter().position(|part| part == "src").unwrap_or_default();
        let room = &parts[..parts.len().min(sources + 2)];
        let module = room.last().map_or("", |last| last.trim_end_matches(".rs"));
        (room.join("/"), module.to_owned())
    }
}

/// All mutants of a workspace, by its `.cargo/mutants.toml`.
pub(super) fn all(workspace: &Path) -> anyhow::Result<Vec<Mutant>> {
    let tool = installed(&workspace.join("target").join("tools"))?;
    let listed = Command::new(&tool)
        .args(["mutants", "--list", "--json", "--colors", "never"])
        .current_dir(workspace)
        .output()
        .with_context(|| format!("cannot run {}", tool.display()))?;
    let said = String::from_utf8_lossy(&listed.stderr);
    ensure!(
        listed.status.success(),
        "cargo-mutants cannot list its mutants: {said}"
    );
    let mutants: Vec<Mutant> =
        serde_json::from_slice(&listed.stdout).context("cargo-mutants lists in another form")?;
    ensure!(
        !mutants.is_empty(),
        "cargo-mutants lists no mutant: look at .cargo/mutants.toml"
    );
    ensure!(
        mutants.len() <= MUTANTS_MAX,
        "{} mutants are listed",
        mutants.len()
    );
    Ok(mutants)
}

/// cargo-mutants, which is built at the first run.
fn installed(tools: &Path) -> anyhow::Result<PathBuf> {
    let tool = tools.join("bin").join("cargo-mutants");
    let known = Command::new(&tool).args(["mutants", "--version"]).output();
    let wanted = format!("cargo-mutants {VERSION}");
    if known.is_ok_and(|known| String::from_utf8_lossy(&known.stdout).trim() == wanted) {
        return Ok(tool);
    }
    eprintln!("installing {wanted} below {}", tools.display());
    let package = format!("cargo-mutants@{VERSION}");
    // Unoptimised: it only lists, and builds in a third of the time.
    let installed = Command::new("cargo")
        .args([
            "install", "--quiet", "--debug", "--locked", "--force", &package, "--root",
        ])
        .arg(tools)
        .status()
        .context("cannot run cargo")?;
    ensure!(
        installed.success(),
        "cargo cannot install {package}; with a registry in reach: cargo install --locked {package} --root {}",
        tools.display()
    );
    Ok(tool)
}

/// Those below the paths, or all of them; and if only so many are wanted, a part that the seed decides.
pub(super) fn chosen(
    mut mutants: Vec<Mutant>,
    rooms: &[String],
    sample: Option<usize>,
    seed: u64,
) -> anyhow::Result<Vec<Mutant>> {
    for room in rooms {
        ensure!(
            mutants.iter().any(|mutant| mutant.file.starts_with(room)),
            "there is no mutant below {room:?}: `{LIST_MUTANTS}` names them all"
        );
    }
    mutants.retain(|mutant| rooms.is_empty() || rooms.iter().any(|room| mutant.file.starts_with(room)));
    if let Some(sample) = sample {
        let drawn = |mutant: &Mutant| *blake3::hash(format!("{seed} {}", mutant.name).as_bytes()).as_bytes();
        mutants.sort_by_key(drawn);
        mutants.truncate(sample);
        mutants.sort_by(|one, other| one.name.cmp(&other.name));
    }
    Ok(mutants)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(file: &str, line: usize) -> Mutant {
        let text = format!(
            "{{\"name\":\"{file}:{line}\",\"package\":\"p\",\"file\":\"{file}\",\"function\":null,\"span\":{{\"start\":\
             {{\"line\":{line},\"column\":1}},\"end\":{{\"line\":{line},\"column\":2}}}},\"replacement\":\"x\",\
             \"genre\":\"FnValue\"}}"
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_room_is_a_module_of_its_crate() {
        let room = |file| mutant(file, 1).room();
        assert_eq!(
            room("hub/fold/src/a/b.rs"),
            ("hub/fold/src/a".to_owned(), "a".to_owned())
        );
        assert_eq!(
            room("agent/core/src/outbox.rs"),
            ("agent/core/src/outbox.rs".to_owned(), "outbox".to_owned())
        );
    }

    #[test]
    fn a_seed_decides_which_mutants_a_sample_has() {
        let all: Vec<Mutant> = (1..=50)
            .map(|line| mutant(["a/b.rs", "a/c.rs"][line % 2], line))
            .collect();
        let names = |rooms: &[&str], sample, seed| {
            let rooms: Vec<String> = rooms.iter().map(ToString::to_string).collect();
            let chosen = chosen(all.clone(), &rooms, sample, seed)?;
            anyhow::Ok(chosen.into_iter().map(|mutant| mutant.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[], None, 1).unwrap().len(), 50);
        assert_eq!(names(&["a/c.rs"], None, 1).unwrap().len(), 25);
        let (once, again) = (names(&[], Some(10), 7).unwrap(), names(&[], Some(10), 7).unwrap());
        assert_eq!((once.len(), &once), (10, &again));
        assert_ne!(once, names(&[], Some(10), 8).unwrap());
        assert!(names(&["d"], None, 1).is_err());
    }
}

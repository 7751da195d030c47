//! Owns: building the copy with as many variants as compile, and where the programs are.
//! Never: runs them.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use tokio::{process::Command, time::timeout};

use super::{
    Number,
    copy::Copy,
    plan::{Plan, Variant},
    program::TestProgram,
};

/// The longest build; the first one builds every dependency.
const BUILD_TIME_MAX: Duration = Duration::from_secs(45 * 60);
/// Number of builds without the parts that did not compile: each stage of the compiler finds errors of its own.
const ROUNDS_MAX: usize = 20;

/// Unit tests of a package, or one of its integration tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TestTarget {
    /// The package.
    pub package: String,
    /// The integration test; absent: the tests in the library.
    pub target: Option<String>,
}

impl fmt::Display for TestTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            None => write!(f, "the unit tests of {}", self.package),
            Some(target) => write!(f, "the tests {target} of {}", self.package),
        }
    }
}

/// The wanted build.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Test programs.
    pub tests: Vec<TestTarget>,
    /// Programs of the package of simulations.
    pub simulations: Vec<&'static str>,
}

/// The finished build.
#[derive(Debug, Default)]
pub struct Built {
    /// Test programs.
    pub tests: BTreeMap<TestTarget, TestProgram>,
    /// Simulations by name.
    pub simulations: BTreeMap<&'static str, PathBuf>,
    /// Why these variants are not in it: they fit into no build with others.
    pub unfit: BTreeMap<Number, String>,
    /// Why these are not: the compiler refuses them.
    pub refused: BTreeMap<Number, String>,
}

/// The compiler's errors in the copy.
#[derive(Debug, Default)]
struct Errors {
    /// Each with every place that it names, the main ones first.
    found: Vec<(String, Vec<(PathBuf, usize)>)>,
    rendered: String,
}

/// Builds the copy with these variants in it, and again without those that the compiler refuses.
pub async fn build(copy: &Copy, mut variants: Vec<Variant>, wanted: &Wanted) -> anyhow::Result<Built> {
    let mut built = Built::default();
    for _ in 0..ROUNDS_MAX {
        let plan = Plan::of(copy.workspace(), &variants)?;
        copy.fill(&plan.texts())?;
        built.unfit.extend(plan.unfit.clone());
        let errors = match programs(copy, wanted, &mut built).await? {
            None => return Ok(built),
            Some(errors) => errors,
        };
        let blamed = blamed(&plan, &errors);
        ensure!(
            !blamed.is_empty(),
            "the copy does not build, and no variant is to blame:\n{}",
            errors.rendered
        );
        eprintln!(
            "{} variants do not compile; building again without them",
            blamed.len()
        );
        variants.retain(|variant| !blamed.contains_key(&variant.number));
        built.refused.extend(blamed);
    }
    bail!("after {ROUNDS_MAX} builds there are still variants that do not compile")
}

/// Builds the copy as it is with one variant that cannot be chosen when it runs.
pub async fn build_alone(
    copy: &Copy,
    variant: &Variant,
    wanted: &Wanted,
) -> anyhow::Result<Result<Built, String>> {
    copy.fill(&variant.texts(copy.workspace())?)?;
    let mut built = Built::default();
    Ok(match programs(copy, wanted, &mut built).await? {
        None => Ok(built),
        Some(errors) => Err(errors.rendered),
    })
}

/// The variants whose copies the errors are in, with what is said.
fn blamed(plan: &Plan, errors: &Errors) -> BTreeMap<Number, String> {
    let found = errors.found.iter().filter_map(|(said, places)| {
        let number = places.iter().find_map(|(file, line)| plan.whose(file, *line))?;
        Some((number, said.clone()))
    });
    found.collect()
}

/// Builds the programs; returns the compiler's errors if it fails.
async fn programs(copy: &Copy, wanted: &Wanted, built: &mut Built) -> anyhow::Result<Option<Errors>> {
    // Without a test that is named, cargo would build all of them.
    if !wanted.tests.is_empty()
        && let Some(errors) = note_all(copy, &tests(wanted), wanted, built).await?
    {
        return Ok(Some(errors));
    }
    for test in &wanted.tests {
        ensure!(built.tests.contains_key(test), "cargo names no program of {test}");
    }
    // Beside integration tests of their package they are built already.
    if built.simulations.len() < wanted.simulations.len() {
        let mut arguments = vec!["build", "--workspace"];
        arguments.extend(wanted.simulations.iter().flat_map(|name| ["--bin", name]));
        if let Some(errors) = note_all(copy, &arguments, wanted, built).await? {
            return Ok(Some(errors));
        }
    }
    ensure!(
        built.simulations.len() == wanted.simulations.len(),
        "cargo does not name all of {}",
        wanted.simulations.join(", ")
    );
    Ok(None)
}

/// Arguments that build all wanted tests. The whole workspace is named, so that dependencies are built once: for fewer
/// packages they would have other features.
fn tests(wanted: &Wanted) -> Vec<&str> {
    let mut arguments = vec!["test", "--no-run", "--no-fail-fast", "--workspace"];
    if wanted.tests.iter().any(|test| test.target.is_none()) {
        arguments.push("--lib");
    }
    let targets = wanted.tests.iter().filter_map(|test| test.target.as_deref());
    arguments.extend(targets.flat_map(|target| ["--test", target]));
    arguments
}

async fn note_all(
    copy: &Copy,
    arguments: &[&str],
    wanted: &Wanted,
    built: &mut Built,
) -> anyhow::Result<Option<Errors>> {
    let (artifacts, errors) = cargo(copy, arguments).await?;
    artifacts
        .into_iter()
        .for_each(|artifact| artifact.note(wanted, built));
    Ok(errors)
}

async fn cargo(copy: &Copy, arguments: &[&str]) -> anyhow::Result<(Vec<Artifact>, Option<Errors>)> {
    let mut cargo = Command::new("cargo");
    cargo.args(arguments);
    cargo.args(["--quiet", "--profile", "sim", "--message-format", "json"]);
    cargo
        .current_dir(copy.root())
        .env("CARGO_TARGET_DIR", copy.target());
    cargo.kill_on_drop(true).stdin(Stdio::null());
    let output = timeout(BUILD_TIME_MAX, cargo.output()).await;
    let output = output
        .with_context(|| format!("the build did not end within {} s", BUILD_TIME_MAX.as_secs()))?
        .context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Ok((messages(&said).filter_map(Message::artifact).collect(), None));
    }
    let mut errors = Errors::default();
    messages(&said).for_each(|message| message.blame(&mut errors));
    if errors.found.is_empty() {
        errors.rendered = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    Ok((Vec::new(), Some(errors)))
}

fn messages(said: &str) -> impl Iterator<Item = Message> {
    said.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// A message of cargo's, as far as it matters here.
#[derive(Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-artifact")]
    Built(Artifact),
    #[serde(rename = "compiler-message")]
    Said { message: Diagnostic },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Artifact {
    package_id: String,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    message: String,
    rendered: Option<String>,
    spans: Vec<Span>,
    #[serde(default)]
    children: Vec<Diagnostic>,
}

#[derive(Deserialize)]
struct Span {
    file_name: PathBuf,
    line_start: usize,
    is_primary: bool,
    expansion: Option<Box<Expansion>>,
}

#[derive(Deserialize)]
struct Expansion {
    span: Span,
}

impl Message {
    fn artifact(self) -> Option<Artifact> {
        match self {
            Self::Built(artifact) => Some(artifact),
            _ => None,
        }
    }

    fn blame(self, errors: &mut Errors) {
        let Self::Said { message } = self else {
            return;
        };
        if message.level != "error" || message.spans.is_empty() {
            return;
        }
        errors
            .rendered
            .push_str(message.rendered.as_deref().unwrap_or(&message.message));
        let mut places = Vec::new();
        message.places(&mut places);
        errors.found.push((message.message, places));
    }
}

impl Diagnostic {
    fn places(&self, places: &mut Vec<(PathBuf, usize)>) {
        let (main, others): (Vec<&Span>, Vec<&Span>) = self.spans.iter().partition(|span| span.is_primary);
        main.into_iter()
            .chain(others)
            .for_each(|span| span.places(places));
        self.children.iter().for_each(|child| child.places(places));
    }
}

impl Span {
    /// Its place, and that of the macro call that it comes from.
    fn places(&self, places: &mut Vec<(PathBuf, usize)>) {
        places.push((self.file_name.clone(), self.line_start));
        if let Some(expansion) = &self.expansion {
            expansion.span.places(places);
        }
    }
}

impl Artifact {
    fn note(self, wanted: &Wanted, built: &mut Built) {
        let Some(path) = self.executable else {
            return;
        };
        let is = |kind: &str| self.target.kind.iter().any(|known| known == kind);
        if !self.profile.test {
            if let Some(name) = wanted
                .simulations
                .iter()
                .find(|name| **name == self.target.name && is("bin"))
            {
                built.simulations.insert(name, path);
            }
            return;
        }
        let directory = self.manifest_path.parent().unwrap_or(Path::new("")).to_owned();
        let test = TestTarget {
            package: package_of(&self.package_id).to_owned(),
            target: is("test").then_some(self.target.name),
        };
        built.tests.insert(test, TestProgram { path, directory });
    }
}

/// The name in the id of a package: `path+file:///w/hub/core#tributary-hub-core@0.1.0`, or without a name if the directory has it:
/// `path+file:///w/tributary-hub#0.1.0`.
fn package_of(id: &str) -> &str {
    let (source, package) = id.rsplit_once('#').unwrap_or((id, ""));
    let directory = source.rsplit('/').next().unwrap_or(source);
    package.split_once('@').map_or(directory, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_errors_are_found_in_what_cargo_says() {
        let artifact = |test: bool, kind: &str, name: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"package_id\":\"path+file:///w/hub/core#tributary-hub-core@0.1.0\",\"manifest_path\":\"/w/hub/core/Cargo.toml\",\"target\":{{\"name\":\
                 \"{name}\",\"kind\":[\"{kind}\"]}},\"profile\":{{\"test\":{test}}},\"executable\":\"/{name}\"}}\n"
            )
        };
        let said = artifact(true, "lib", "a") + &artifact(true, "test", "b") + &artifact(false, "bin", "sim");
        let wanted = Wanted {
            simulations: vec!["sim"],
            ..Wanted::default()
        };
        let mut built = Built::default();
        let artifacts = messages(&said).filter_map(Message::artifact);
        artifacts.for_each(|artifact| artifact.note(&wanted, &mut built));
        let test = |target: Option<&str>| TestTarget {
            package: "tributary-hub-core".to_owned(),
            target: target.map(str::to_owned),
        };
        assert_eq!(built.tests[&test(None)].path, Path::new("/a"));
        assert_eq!(built.tests[&test(Some("b"))].directory, Path::new("/w/hub/core"));
        assert_eq!(built.simulations["sim"], Path::new("/sim"));

        assert_eq!(package_of("path+file:///w/tributary-hub#0.1.0"), "tributary-hub");

        let span = |file: &str, line: usize, main: bool| {
            format!(
                "{{\"file_name\":\"{file}\",\"line_start\":{line},\"is_primary\":{main},\"expansion\":null}}"
            )
        };
        let said = format!(
            "{{\"reason\":\"compiler-message\",\"message\":{{\"level\":\"error\",\"message\":\"no\",\"rendered\":null,\
             \"spans\":[{},{}]}}}}\n{{\"reason\":\"build-finished\"}}\n",
            span("a.rs", 1, false),
            span("b.rs", 2, true)
        );
        let mut errors = Errors::default();
        messages(&said).for_each(|message| message.blame(&mut errors));
        assert_eq!(
            errors.found,
            [("no".to_owned(), vec![("b.rs".into(), 2), ("a.rs".into(), 1)])]
        );
    }
}

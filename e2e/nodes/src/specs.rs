//! Owns: what of the upstream conformance suite is text: the images that its sources name, the report that its run
//! leaves, and the verdict. Pure.
//! Never: runs it.

use std::{collections::BTreeSet, fmt};

use anyhow::{Context, ensure};
use regex::Regex;
use serde::Deserialize;

/// The registry of a name that has none.
const REGISTRY: &str = "docker.io";
/// The folder, in that registry, of a name that has none.
const LIBRARY: &str = "library";
/// The suite framework's name for a part with assertions, as opposed to what goes before and after.
const SPEC: &str = "It";
/// The labels by which the suite says whether the specification demands a thing.
const REQUIRED: &str = "Required";

/// The outcome of a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Passed,
    Skipped,
    Failed,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Passed => "passed",
            Self::Skipped => "skipped",
            Self::Failed => "FAILED",
        })
    }
}

/// One spec of the suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) outcome: Outcome,
    /// The specification demands it; else the suite calls it optional.
    pub(super) required: bool,
    pub(super) name: String,
    /// Why it failed or was skipped.
    pub(super) why: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Suite {
    spec_reports: Option<Vec<Node>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    container_hierarchy_texts: Option<Vec<String>>,
    container_hierarchy_labels: Option<Vec<Option<Vec<String>>>>,
    leaf_node_type: String,
    leaf_node_labels: Option<Vec<String>>,
    leaf_node_text: String,
    state: String,
    failure: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    message: Option<String>,
}

impl Node {
    fn outcome(&self) -> Outcome {
        match &*self.state {
            "passed" => Outcome::Passed,
            "skipped" | "pending" => Outcome::Skipped,
            // Whatever else there is (failed, panicked, timedout, interrupted, aborted, invalid) shows nothing good.
            _ => Outcome::Failed,
        }
    }

    fn spec(self) -> Spec {
        let outcome = self.outcome();
        let labels = self.container_hierarchy_labels.into_iter().flatten();
        let mut labels = labels.flatten().flatten();
        let own = self.leaf_node_labels.into_iter().flatten();
        let required = labels.by_ref().chain(own).any(|label| label == REQUIRED);
        let texts = self.container_hierarchy_texts.into_iter().flatten();
        let texts = texts.chain([self.leaf_node_text]).filter(|text| !text.is_empty());
        let name = texts.collect::<Vec<_>>().join(" ");
        let why = self.failure.and_then(|failure| failure.message);
        let why = why.and_then(|why| why.lines().next().map(str::to_owned));
        Spec {
            outcome,
            required,
            name: name.split_whitespace().collect::<Vec<_>>().join(" "),
            why: why.filter(|why| !why.is_empty()),
        }
    }
}

/// The specs of a report; one whose preparation failed is an error, for then none of them says anything.
pub(super) fn read(report: &str) -> anyhow::Result<Vec<Spec>> {
    let suites: Vec<Suite> = serde_json::from_str(report).context("the suite's report is not as expected")?;
    let nodes = suites.into_iter().flat_map(|suite| suite.spec_reports).flatten();
    let (specs, around): (Vec<Node>, Vec<Node>) = nodes.partition(|node| node.leaf_node_type == SPEC);
    let broken = around.into_iter().find(|node| node.outcome() == Outcome::Failed);
    if let Some(broken) = broken {
        let kind = broken.leaf_node_type.clone();
        let why = broken.failure.and_then(|failure| failure.message);
        anyhow::bail!("the suite's {kind} failed: {}", why.unwrap_or_default());
    }
    let mut specs: Vec<Spec> = specs.into_iter().map(Node::spec).collect();
    specs.sort_by(|one, other| (!one.required, &one.name).cmp(&(!other.required, &other.name)));
    Ok(specs)
}

/// Numbers of specs by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Counts {
    pub(super) fn of(specs: &[Spec]) -> Self {
        let count = |outcome| specs.iter().filter(|spec| spec.outcome == outcome).count();
        Self {
            passed: count(Outcome::Passed),
            failed: count(Outcome::Failed),
            skipped: count(Outcome::Skipped),
        }
    }

    /// An error unless something passed and nothing failed.
    pub(super) fn verdict(self) -> anyhow::Result<()> {
        ensure!(self.failed == 0, "{} specs failed", self.failed);
        ensure!(self.passed > 0, "no spec ran to its end: this shows nothing");
        Ok(())
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// The images that the suite's sources name, as a node knows them.
pub(super) fn images(sources: &[String]) -> anyhow::Result<BTreeSet<String>> {
    let image = Regex::new(r#"\bImage:\s*"([^"]+)""#)?;
    let named = sources.iter().flat_map(|source| image.captures_iter(source));
    let images: BTreeSet<String> = named.map(|found| full_name(&found[1])).collect();
    ensure!(
        !images.is_empty(),
        "its sources name no image: this is a suite that this command does not know"
    );
    Ok(images)
}

/// An image's name with what it leaves to be guessed.
fn full_name(name: &str) -> String {
    match name.split_once('/') {
        None => format!("{REGISTRY}/{LIBRARY}/{name}"),
        Some((first, _)) if first.contains(['.', ':']) || first == "localhost" => name.to_owned(),
        Some(_) => format!("{REGISTRY}/{name}"),
    }
}

/// The lines of a page or a terminal: one for each spec, then the counts.
pub(super) fn lines(specs: &[Spec]) -> Vec<String> {
    let line = |spec: &Spec| {
        let demanded = if spec.required { "required" } else { "optional" };
        let why = spec.why.as_ref().map(|why| format!(": {why}"));
        format!(
            "{:<7}  {demanded}  {}{}",
            spec.outcome,
            spec.name,
            why.unwrap_or_default()
        )
    };
    let counts = Counts::of(specs).to_string();
    specs.iter().map(line).chain([counts]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(kind: &str, state: &str, labels: Value, message: &str) -> Value {
        json!({
            "ContainerHierarchyTexts": ["", " A service"], "ContainerHierarchyLabels": [null, labels],
            "LeafNodeType": kind, "LeafNodeLabels": null, "LeafNodeText": "should  work ", "State": state,
            "Failure": {"Message": message},
        })
    }

    fn report(nodes: &[Value]) -> String {
        json!([{"SuiteSucceeded": true, "SpecReports": nodes}]).to_string()
    }

    #[test]
    fn a_report_is_read_as_far_as_it_decides() {
        let nodes = [
            node("BeforeSuite", "passed", json!([]), ""),
            node("It", "passed", json!(["Optional"]), ""),
            node("It", "skipped", json!(["Optional"]), "two clusters\nare needed"),
            node("It", "timedout", json!(["Required"]), "too late"),
        ];
        let specs = read(&report(&nodes)).expect("it is a report");
        assert_eq!(
            lines(&specs),
            [
                "FAILED   required  A service should work: too late",
                "passed   optional  A service should work",
                "skipped  optional  A service should work: two clusters",
                "1 passed, 1 failed, 1 skipped",
            ]
        );
        assert!(Counts::of(&specs).verdict().is_err());
        assert!(Counts::of(&specs[1..]).verdict().is_ok());
    }

    #[test]
    fn what_shows_nothing_is_no_success() {
        let skipped = read(&report(&[node("It", "skipped", json!([]), "")])).expect("it is a report");
        assert!(Counts::of(&skipped).verdict().is_err());
        assert!(Counts::of(&[]).verdict().is_err());
        let broken = read(&report(&[node("BeforeSuite", "failed", json!([]), "no cluster")]));
        let said = broken.expect_err("nothing was prepared").to_string();
        assert_eq!(said, "the suite's BeforeSuite failed: no cluster");
        assert!(read("{}").is_err());
    }

    #[test]
    fn images_are_found_in_sources_and_named_in_full() {
        let source = r#"
            Image: "alpine/socat:1", Image:   "nginx"
            Image: "registry.k8s.io/e2e/agnhost:2", Image: "alpine/socat:1", Command: "Image"
        "#;
        let found = images(&[source.to_owned()]).expect("there are some");
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(
            found,
            [
                "docker.io/alpine/socat:1",
                "docker.io/library/nginx",
                "registry.k8s.io/e2e/agnhost:2"
            ]
        );
        assert!(images(&["no image".to_owned()]).is_err());
    }
}

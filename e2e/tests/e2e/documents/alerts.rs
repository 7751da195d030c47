//! Owns: that the charts' alerts and dashboards ask for metrics that there are, that each alert says what to do, and
//! that its page is below docs/runbooks and names it; and that running programs serve what is asked for.
//! Never: judges whether a threshold is a good one.

use anyhow::{Context, ensure};
use cluster::clusterset::{Backend, LocalClusterset, admin, shop::Shop};
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};
use tributary_e2e::reference;

use super::root;

/// Files of the rules, and the prefix of every metric in them.
const RULES: [(&str, &str); 2] = [
    ("deploy/charts/hub/files/alerts.yaml", "tributary_hub_"),
    ("deploy/charts/agent/files/alerts.yaml", "tributary_agent_"),
];
/// Files of the dashboards.
const DASHBOARDS: [&str; 2] = [
    "deploy/charts/hub/files/dashboard.json",
    "deploy/charts/agent/files/dashboard.json",
];
/// Metrics that programs serve only after the first event, or if told to do their task.
const FROM_THE_FIRST_TIME_ON: [&str; 9] = [
    "tributary_hub_clusterset_serving",
    "tributary_hub_join_certificate_expires_in_seconds",
    "tributary_hub_profiles_failing",
    "tributary_hub_topology_enrolment_failing",
    "tributary_hub_topology_own_clusters",
    "tributary_hub_topology_own_failing",
    "tributary_hub_topology_own_fell_back",
    "tributary_hub_topology_own_refused",
    "tributary_hub_topology_webhook_certificate_expires_in_seconds",
];
/// Stands for the address of the runbook until a chart is rendered.
const RUNBOOK: &str = "RUNBOOK/";
/// The runbooks.
const PAGES: &str = "docs/runbooks";

#[derive(Deserialize)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    alert: String,
    expr: String,
    labels: Labels,
    annotations: Annotations,
}

#[derive(Deserialize)]
struct Labels {
    severity: String,
}

#[derive(Deserialize)]
struct Annotations {
    summary: String,
    runbook_url: String,
}

/// Names that alerts may use.
struct Known {
    metrics: BTreeSet<String>,
    /// The texts of the runbooks, by their files.
    pages: BTreeMap<String, String>,
}

pub(super) fn are_of_use() -> anyhow::Result<()> {
    let metrics = reference::metrics(&root())?;
    let known = Known {
        metrics: metrics.into_iter().map(|metric| metric.name).collect(),
        pages: pages()?,
    };
    let mut alerts = BTreeSet::new();
    for (path, prefix) in RULES {
        let rules = rules(&root().join(path))?;
        ensure!(rules.len() > 5, "{path} holds {} rules", rules.len());
        for rule in rules {
            let metrics = metrics_in(&rule.expr)?;
            ensure!(
                metrics.iter().all(|metric| metric.starts_with(prefix)),
                "{}: {metrics:?} are scraped elsewhere",
                rule.alert
            );
            known.check(&rule, &metrics)?;
            alerts.insert(rule.alert);
        }
    }
    let named = Regex::new("`(Tributary[A-Za-z]+)`")?;
    let gone: Vec<_> = known
        .pages
        .values()
        .flat_map(|page| named.captures_iter(page))
        .map(|found| found[1].to_owned())
        .filter(|alert| !alerts.contains(alert))
        .collect();
    ensure!(
        gone.is_empty(),
        "runbooks name alerts that are not there: {gone:?}"
    );
    let shown = shown()?;
    ensure!(
        shown.is_subset(&known.metrics),
        "a dashboard asks for what nobody registers: {:?}",
        Vec::from_iter(shown.difference(&known.metrics))
    );
    Ok(())
}

/// A hub and agents that have done something serve every metric that alerts and dashboards ask for.
pub(super) async fn are_served() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    clusterset.stop_hub().await?;
    clusterset.start_hub_with(&["--member-metrics", "10"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let mut served = BTreeSet::new();
    for port in [
        clusterset.hub()?.admin().await?,
        clusterset.agent("west")?.admin().await?,
    ] {
        let (_, text) = admin::get(port, "/metrics").await?;
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let names = samples.map(|line| line.split(['{', ' ']).next().unwrap_or_default());
        served.extend(names.map(|name| name.trim_end_matches("_bucket").to_owned()));
    }
    let mut asked = shown()?;
    for (path, _) in RULES {
        for rule in rules(&root().join(path))? {
            asked.extend(metrics_in(&rule.expr)?);
        }
    }
    let late = |metric: &&String| FROM_THE_FIRST_TIME_ON.contains(&metric.as_str());
    let missing: Vec<_> = asked.difference(&served).filter(|metric| !late(metric)).collect();
    ensure!(asked.len() > 30, "alerts and dashboards were not read: {asked:?}");
    ensure!(missing.is_empty(), "asked for, and not served: {missing:?}");
    shop.close(&clusterset).await?;
    clusterset.end().await
}

/// A rule that asks for what nobody registers, or leads nowhere, is seen.
pub(super) fn useless_ones_are_seen() -> anyhow::Result<()> {
    let known = Known {
        metrics: BTreeSet::from(["tributary_hub_sessions".to_owned()]),
        pages: BTreeMap::from([("member-lost.md".to_owned(), "Alert: `TributaryTest`.".to_owned())]),
    };
    let rule = |alert: &str, expr: &str, page: &str| Rule {
        alert: alert.to_owned(),
        expr: expr.to_owned(),
        labels: Labels {
            severity: "warning".to_owned(),
        },
        annotations: Annotations {
            summary: "Something.".to_owned(),
            runbook_url: format!("RUNBOOK/{page}"),
        },
    };
    let check = |rule: Rule| known.check(&rule, &metrics_in(&rule.expr)?);
    check(rule(
        "TributaryTest",
        "tributary_hub_sessions == 0",
        "member-lost.md",
    ))?;
    for (alert, expr, page) in [
        ("TributaryTest", "tributary_hub_session == 0", "member-lost.md"),
        ("TributaryTest", "up == 0", "member-lost.md"),
        ("TributaryTest", "tributary_hub_sessions == 0", "member-gone.md"),
        ("TributaryOther", "tributary_hub_sessions == 0", "member-lost.md"),
    ] {
        ensure!(
            check(rule(alert, expr, page)).is_err(),
            "{alert}, {expr}, {page} passed"
        );
    }
    Ok(())
}

impl Known {
    fn check(&self, rule: &Rule, metrics: &BTreeSet<String>) -> anyhow::Result<()> {
        let Rule {
            alert,
            labels,
            annotations,
            ..
        } = rule;
        ensure!(alert.starts_with("Tributary"), "{alert} does not say whose it is");
        ensure!(
            !metrics.is_empty() && metrics.is_subset(&self.metrics),
            "{alert}: nobody registers all of {metrics:?}"
        );
        ensure!(
            ["warning", "critical"].contains(&labels.severity.as_str()),
            "{alert}: severity {}",
            labels.severity
        );
        ensure!(!annotations.summary.is_empty(), "{alert} says nothing");
        let page = annotations.runbook_url.strip_prefix(RUNBOOK);
        ensure!(
            page.and_then(|page| self.pages.get(page))
                .is_some_and(|text| text.contains(&format!("`{alert}`"))),
            "{alert}: {} is no page of {PAGES} that names it",
            annotations.runbook_url
        );
        Ok(())
    }
}

fn pages() -> anyhow::Result<BTreeMap<String, String>> {
    let mut pages = BTreeMap::new();
    for entry in std::fs::read_dir(root().join(PAGES)).context(PAGES)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        pages.insert(name, std::fs::read_to_string(entry.path())?);
    }
    Ok(pages)
}

fn rules(path: &Path) -> anyhow::Result<Vec<Rule>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let rules: Rules = serde_norway::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(rules.groups.into_iter().flat_map(|group| group.rules).collect())
}

/// The metrics that dashboards show.
fn shown() -> anyhow::Result<BTreeSet<String>> {
    let mut metrics = BTreeSet::new();
    for path in DASHBOARDS {
        let text = std::fs::read_to_string(root().join(path)).context(path)?;
        let board: Value = serde_json::from_str(&text).context(path)?;
        let panels = board["panels"].as_array().into_iter().flatten();
        let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
        let queries: Vec<&str> = targets.filter_map(|target| target["expr"].as_str()).collect();
        ensure!(queries.len() > 5, "{path} asks {} questions", queries.len());
        for query in queries {
            let asked = metrics_in(query)?;
            ensure!(!asked.is_empty(), "{path}: {query} asks for nothing of ours");
            metrics.extend(asked);
        }
    }
    Ok(metrics)
}

/// Names of metrics, a histogram's as its own.
fn metrics_in(text: &str) -> anyhow::Result<BTreeSet<String>> {
    let metric = Regex::new("tributary_(?:hub|agent)_[a-z_]+")?;
    let names = metric
        .find_iter(text)
        .map(|found| found.as_str().trim_end_matches("_bucket"));
    Ok(names.map(str::to_owned).collect())
}

//! Owns: that each of the charts' alerts fires over samples that ask for it, with the words that it should say, and
//! keeps silent over others; and that these samples would notice an alert that never or always fires.
//! Never: knows what a program serves (`alerts.rs` does).

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, ensure};
use cluster::real::promtool::Promtool;
use serde_json::{Value, json};

use super::root;

/// Charts with alerts; the samples of each lie in `e2e/fixtures/alerts` under its name.
const CHARTS: [&str; 2] = ["hub", "agent"];
/// Expressions that never and always fire, whatever is scraped.
const WRONG: [&str; 2] = ["vector(1) > 2", "vector(1)"];

pub(super) fn play() -> anyhow::Result<()> {
    let promtool = Promtool::find()?;
    for chart in CHARTS {
        let text = |path: String| std::fs::read_to_string(root().join(&path)).context(path);
        let rules = text(format!("deploy/charts/{chart}/files/alerts.yaml"))?;
        let samples = text(format!("e2e/fixtures/alerts/{chart}.yaml"))?;
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("samples.yaml"), &samples)?;
        let given = |rules: &str| given(&promtool, directory.path(), rules);
        given(&rules).with_context(|| format!("{chart}: the samples do not lead to the alerts"))?;
        let mut rules: Value = serde_norway::from_str(&rules)?;
        let (alerts, tried) = (names(&rules)?, tried(&serde_norway::from_str(&samples)?)?);
        for alert in &alerts {
            ensure!(
                tried.get(alert) == Some(&(true, true)),
                "{alert}: no sample shows both, when it fires and when it does not"
            );
        }
        // All are wrong at once: promtool plays every sample on, and names each that does not come out.
        for wrong in WRONG {
            for index in 0..alerts.len() {
                let place = format!("/groups/0/rules/{index}/expr");
                *rules.pointer_mut(&place).context("an expression")? = json!(wrong);
            }
            let told = match given(&serde_norway::to_string(&rules)?) {
                Ok(()) => String::new(),
                Err(error) => format!("{error:#}"),
            };
            for alert in &alerts {
                let seen = told.contains(&format!("alertname: {alert},"));
                ensure!(seen, "{alert}: the samples do not notice that it is `{wrong}`");
            }
        }
        ensure!(alerts.len() > 5, "{chart} has {} alerts", alerts.len());
    }
    Ok(())
}

/// Checks that promtool takes these rules, and the samples in the directory lead to the alerts they name.
fn given(promtool: &Promtool, directory: &Path, rules: &str) -> anyhow::Result<()> {
    std::fs::write(directory.join("alerts.yaml"), rules)?;
    promtool.run(directory, &["check", "rules", "alerts.yaml"])?;
    promtool.run(directory, &["test", "rules", "samples.yaml"])?;
    Ok(())
}

/// The alerts of the only group, in their order.
fn names(rules: &Value) -> anyhow::Result<Vec<String>> {
    let groups = rules["groups"].as_array().context("groups")?;
    ensure!(groups.len() == 1, "{} groups", groups.len());
    let rules = groups[0]["rules"].as_array().context("rules")?;
    let names = rules.iter().filter_map(|rule| rule["alert"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// Of each alert, whether some sample expects it to fire, and some that it does not.
fn tried(samples: &Value) -> anyhow::Result<BTreeMap<String, (bool, bool)>> {
    let mut tried: BTreeMap<String, (bool, bool)> = BTreeMap::new();
    let tests = samples["tests"].as_array().context("tests")?;
    let expected = |test: &Value| test["alert_rule_test"].as_array().cloned();
    for one in tests.iter().filter_map(expected).flatten() {
        let name = one["alertname"].as_str().context("a name")?;
        let fires = one["exp_alerts"]
            .as_array()
            .is_some_and(|alerts| !alerts.is_empty());
        let entry = tried.entry(name.to_owned()).or_default();
        if fires {
            entry.0 = true;
        } else {
            entry.1 = true;
        }
    }
    Ok(tried)
}

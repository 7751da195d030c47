//! Owns: shape preview: an edit of one class is planned for all its clusters, from files, on one core.
//! Never: asks a cluster.

use std::{fmt::Write, time::Instant};

use anyhow::ensure;
use hub::topology::desired::{
    change::Action,
    offline::{Files, plans},
    table::table,
};

use super::{figure::Aim, report::Section};

/// Machine deployments of a cluster.
const DEPLOYMENTS: usize = 3;
/// Aim for a thousand clusters.
const SECONDS_AIM: f64 = 10.0;

/// The class, its templates, a patch for each kind of template, and variables.
const CLASS: &str = include_str!("preview.yaml");

/// Measures what an edit of a template comes to for so many clusters.
pub(super) fn measure(clusters: usize) -> anyhow::Result<Section> {
    let mut section = Section::begin(format!("preview, {clusters} clusters of one class"));
    let edited = CLASS.replace("size: 1", "size: 2");
    ensure!(edited != CLASS, "the edit changes nothing");
    let mut all = String::new();
    for cluster in 0..clusters {
        one(&mut all, cluster)?;
    }
    let files = |class: &str| {
        let named = [("class.yaml", class), ("clusters.yaml", &all)];
        named.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
    };
    let (old, new) = (files(CLASS), files(&edited));
    let (old, new): (&Files, &Files) = (&old, &new);
    let began = Instant::now();
    let planned = plans(new, None).map_err(anyhow::Error::msg)?;
    let plan = began.elapsed().as_secs_f64();
    ensure!(
        planned.findings.is_empty() && planned.plans.len() == clusters,
        "not all clusters are planned: {}",
        planned
            .findings
            .first()
            .map(ToString::to_string)
            .unwrap_or_default()
    );
    section.aimed(
        "all objects of all clusters planned",
        plan,
        "s",
        Aim::Below(SECONDS_AIM),
    );
    let objects: usize = planned.plans.iter().map(|plan| plan.objects().count()).sum();
    section.figure("objects", objects as f64, "");
    let began = Instant::now();
    let planned = plans(new, Some(old)).map_err(anyhow::Error::msg)?;
    let text = table(&planned.plans);
    section.aimed(
        "an edit compared, and its table",
        began.elapsed().as_secs_f64(),
        "s",
        Aim::Below(2.0 * SECONDS_AIM),
    );
    let changes = planned.plans.iter().flat_map(|plan| &plan.changes);
    let rotated = changes.filter(|change| change.action == Action::Rotate).count();
    ensure!(
        rotated == clusters * (DEPLOYMENTS + 1),
        "{rotated} templates are rotated, and all of machines should be"
    );
    section.figure("templates that it rotates", rotated as f64, "");
    section.figure("lines of the table", text.lines().count() as f64, "");
    section.note("read from text, checked and planned by one thread; a compared edit is planned twice");
    Ok(section)
}

/// A Cluster with what differs from one to the other.
fn one(text: &mut String, number: usize) -> anyhow::Result<()> {
    write!(
        text,
        "---\napiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {{name: c-{number:04}, uid: u-{number}}}\nspec:\n  \
         topology:\n    classRef: {{name: k}}\n    version: v1.31.0\n    controlPlane: {{replicas: 3}}\n    variables:\n    \
         - {{name: image, value: image-{number}}}\n    - {{name: zones, value: [a, b, c]}}\n    workers:\n      \
         machineDeployments:\n"
    )?;
    for deployment in 0..DEPLOYMENTS {
        writeln!(
            text,
            "      - {{class: linux, name: md-{deployment}, replicas: 5}}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_fleet_is_planned() {
        measure(3).expect("all are planned, and all templates of machines rotate");
    }
}

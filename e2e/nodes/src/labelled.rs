//! Owns: an edit of the labels and annotations of an export that is imported, while it is asked: what cannot be exported
//! is left out and named, and nothing else changes.
//! Never: judges which pods answer before and after it.

use anyhow::{Context, ensure};

use super::{
    client::{Asking, export},
    control::wait_for,
    pair::Asker,
    row::{Asked, Wrong},
    unbroken::{Asks, unbroken},
};

/// The Service, which the first cluster exports.
pub(super) const SERVICE: &str = "labelled";
/// A label that every import carries, and its value.
const CARRIED: (&str, &str) = ("app.kubernetes.io/part-of", "shop");
/// A label that nobody may export.
const RESERVED: &str = "kubernetes.io/hostname";
/// An annotation that is longer than all of what may be exported.
const LONG: &str = "example.org/long";
const LONG_BYTES: usize = 33 * 1024;
/// Status and message of an export's validity.
const VALID: &str = ".status.conditions[?(@.type==\"Valid\")]['status','message']";

/// Edits the export under requests from the last cluster.
pub(super) fn edit(clusters: &[Asking<'_>], asked: Asked) -> anyhow::Result<()> {
    let (exporter, importer) = clusters
        .first()
        .zip(clusters.last())
        .context("there are clusters")?;
    let before = imports(clusters)?;
    let address = before.last().and_then(|import| import.split_whitespace().next());
    let client = importer.pods("client")?.into_iter().next();
    let asker = Asker {
        cluster: importer,
        client: client.context("no client runs")?,
    };
    let asks = Asks {
        asker: &asker,
        service: SERVICE,
        address: address.context("it has an address")?,
        by: &exporter.plane.name,
    };
    unbroken(&[asks], || {
        exporter.plane.apply(&edited(exporter), "labelled.yaml")?;
        names_what_is_left_out(exporter, asked)?;
        clusters.iter().try_for_each(|cluster| carries(cluster, asked))
    })?;
    for (before, after) in before.iter().zip(imports(clusters)?) {
        ensure!(
            after == *before,
            Wrong(format!(
                "an import was {before} and is {after} after an edit of metadata"
            ))
        );
    }
    println!("an edit of metadata leaves every import and its addresses as they were");
    Ok(())
}

/// Takes the labels and annotations away again.
pub(super) fn undo(clusters: &[Asking<'_>]) -> anyhow::Result<()> {
    let exporter = clusters.first().context("there are clusters")?;
    export(exporter, SERVICE)?;
    wait_for("nothing is left out any more", &exporter.plane.directory, || {
        let said = exporter.field(&format!("serviceexport/{SERVICE}"), VALID);
        said.is_ok_and(|said| said == ["True"])
    })
}

fn edited(exporter: &Asking<'_>) -> String {
    let (key, value) = CARRIED;
    format!(
        "{{apiVersion: multicluster.x-k8s.io/v1beta1, kind: ServiceExport, \
         metadata: {{name: {SERVICE}, namespace: {}}}, \
         spec: {{exportedLabels: {{{key}: {value}, {RESERVED}: x}}, \
         exportedAnnotations: {{{LONG}: {}}}}}}}",
        exporter.namespace,
        "x".repeat(LONG_BYTES)
    )
}

fn names_what_is_left_out(exporter: &Asking<'_>, asked: Asked) -> anyhow::Result<()> {
    let what = "an export names what is left out of it";
    asked.until(what, &exporter.plane.directory, || {
        let said = exporter
            .field(&format!("serviceexport/{SERVICE}"), VALID)?
            .join(" ");
        let named = [RESERVED, LONG].iter().all(|key| said.contains(key));
        if named && said.starts_with("True") {
            Ok(Ok(()))
        } else {
            Ok(Err(format!("Valid is `{said}`")))
        }
    })
}

fn carries(cluster: &Asking<'_>, asked: Asked) -> anyhow::Result<()> {
    let what = format!("the import in {} carries what is exported", cluster.plane.name);
    asked.until(&what, &cluster.plane.directory, || {
        let import = cluster.kubectl(&[
            "get",
            &format!("serviceimport/{SERVICE}"),
            "--ignore-not-found",
            "--output=jsonpath={.metadata['labels','annotations']}",
        ])?;
        let (key, value) = CARRIED;
        let carried = import.contains(&format!("\"{key}\":\"{value}\""));
        if carried && ![RESERVED, LONG].iter().any(|key| import.contains(key)) {
            Ok(Ok(()))
        } else {
            Ok(Err(format!("it has `{import}`")))
        }
    })
}

/// In each cluster the addresses of the import, and its uid.
fn imports(clusters: &[Asking<'_>]) -> anyhow::Result<Vec<String>> {
    let import = format!("serviceimport/{SERVICE}");
    let import = |cluster: &Asking<'_>| {
        let mut fields = cluster.field(&import, ".spec.ips[*]")?;
        fields.extend(cluster.field(&import, ".metadata.uid")?);
        Ok(fields.join(" "))
    };
    clusters.iter().map(import).collect()
}

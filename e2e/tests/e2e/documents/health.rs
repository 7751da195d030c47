//! Owns: that Argo CD, given `deploy/argocd/health.yaml`, tells what is healthy, what takes time and what a person has
//! to mend: of samples, and of what agents wrote. The checks run in the Lua that Argo CD runs them in.
//! Never: asks an Argo CD.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tributary_e2e::{
    clusterset::{Backend, LocalClusterset, shop::Shop},
    real::lua::Lua,
};

use super::root;

const EXPORT: &str = "ServiceExport";
const IMPORT: &str = "ServiceImport";
const PROFILE: &str = "ClusterProfile";

/// A kind, its conditions as type, status and reason, and the health with a part of its message.
type Sample = (
    &'static str,
    &'static [(&'static str, &'static str, &'static str)],
    (&'static str, &'static str),
);

const SAMPLES: &[Sample] = &[
    (EXPORT, &[], ("Progressing", "no agent")),
    (
        EXPORT,
        &[("Valid", "True", "Valid")],
        ("Progressing", "the hub has not committed it"),
    ),
    (
        EXPORT,
        &[("Valid", "True", "Valid"), ("Ready", "Unknown", "Pending")],
        ("Progressing", "Ready: Pending: because"),
    ),
    (
        EXPORT,
        &[("Valid", "False", "NoService"), ("Ready", "False", "Pending")],
        ("Degraded", "Valid: NoService: because"),
    ),
    (
        EXPORT,
        &[("Valid", "True", "Valid"), ("Ready", "False", "Failed")],
        ("Degraded", "Ready: Failed: because"),
    ),
    (
        EXPORT,
        &[
            ("Valid", "True", "Valid"),
            ("Ready", "True", "Exported"),
            ("Conflict", "True", "PortConflict"),
        ],
        ("Degraded", "Conflict: PortConflict: because"),
    ),
    (
        EXPORT,
        &[
            ("Valid", "True", "Valid"),
            ("Ready", "True", "Exported"),
            ("Conflict", "False", "NoConflicts"),
        ],
        ("Healthy", "exported"),
    ),
    (IMPORT, &[], ("Progressing", "no agent")),
    (IMPORT, &[("Ready", "True", "Ready")], ("Healthy", "can be used")),
    (
        IMPORT,
        &[("Ready", "False", "Pending")],
        ("Progressing", "Pending: because"),
    ),
    (
        IMPORT,
        &[("Ready", "False", "IPFamilyNotSupported")],
        ("Degraded", "IPFamilyNotSupported: because"),
    ),
    (PROFILE, &[], ("Progressing", "not reported")),
    (
        PROFILE,
        &[("ControlPlaneHealthy", "True", "AsExpected")],
        ("Healthy", "control plane"),
    ),
    (
        PROFILE,
        &[("ControlPlaneHealthy", "False", "ChecksFailed")],
        ("Degraded", "ChecksFailed: because"),
    ),
    (
        PROFILE,
        &[("ControlPlaneHealthy", "Unknown", "MemberLost")],
        ("Degraded", "MemberLost: because"),
    ),
    (
        PROFILE,
        &[("ControlPlaneHealthy", "Unknown", "NotReported")],
        ("Progressing", "NotReported: because"),
    ),
];

pub(super) fn of_samples() -> anyhow::Result<()> {
    let argo = Argo::new()?;
    for (kind, conditions, wanted) in SAMPLES {
        let conditions = conditions.iter().map(|(kind, status, reason)| {
            json!({"type": kind, "status": status, "reason": reason, "message": "because", "observedGeneration": 2})
        });
        let object = json!({
            "metadata": {"name": "cart", "generation": 2},
            "status": {"conditions": conditions.collect::<Vec<_>>()},
        });
        argo.expect(kind, &object, *wanted)?;
        let mut changed = object.clone();
        changed["metadata"]["generation"] = json!(3);
        if *kind == EXPORT && object["status"]["conditions"] != json!([]) {
            argo.expect(kind, &changed, ("Progressing", "judged anew"))?;
        }
        if *kind != PROFILE {
            changed["metadata"]["deletionTimestamp"] = json!("2026-11-23T00:00:00Z");
            argo.expect(kind, &changed, ("Progressing", "being deleted"))?;
        }
    }
    // As it is before anybody has written a status.
    for kind in [EXPORT, IMPORT, PROFILE] {
        let object = json!({"metadata": {"name": "a \"quoted\"\nname"}});
        argo.expect(kind, &object, ("Progressing", ""))?;
    }
    Ok(())
}

/// What has arrived is healthy, where it was exported and where it is imported.
pub(super) async fn of_the_programs() -> anyhow::Result<()> {
    let argo = Argo::new()?;
    let dir = tempfile::tempdir()?;
    let clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let mut judged = 0;
    for (cluster, kind) in [("east", EXPORT), ("east", IMPORT), ("west", IMPORT)] {
        for object in clusterset
            .cluster(cluster)?
            .sim()
            .context("simulated")?
            .objects(kind)
        {
            argo.expect(kind, &object, ("Healthy", ""))?;
            judged += 1;
        }
    }
    ensure!(judged == 3, "an export and two imports, not {judged}");
    shop.close(&clusterset).await?;
    clusterset.end().await
}

/// Argo CD, as far as it judges health.
struct Argo {
    lua: Lua,
    checks: Value,
}

impl Argo {
    fn new() -> anyhow::Result<Self> {
        let lua = Lua::find()?;
        let path = root().join("deploy/argocd/health.yaml");
        let checks = serde_norway::from_str(&std::fs::read_to_string(&path)?)?;
        Ok(Self { lua, checks })
    }

    /// Runs the check of a kind as Argo CD does: the object is the global `obj`, and the script returns a table.
    fn judge(&self, kind: &str, object: &Value) -> anyhow::Result<String> {
        let name = format!("resource.customizations.health.multicluster.x-k8s.io_{kind}");
        let script = self.checks["data"][&name].as_str();
        let script = script.with_context(|| format!("no check of {kind}"))?;
        let program = format!(
            "obj = {}\nlocal function check()\n{script}\nend\nlocal health = check()\n\
             print(health.status .. \": \" .. health.message)\n",
            literal(object)
        );
        self.lua.run(&program)
    }

    fn expect(&self, kind: &str, object: &Value, (status, message): (&str, &str)) -> anyhow::Result<()> {
        let said = self
            .judge(kind, object)
            .with_context(|| format!("{kind}: {object}"))?;
        let right = said.strip_prefix(&format!("{status}: "));
        ensure!(
            right.is_some_and(|said| said.contains(message)),
            "{kind}: {said} and not {status}: …{message}…: {object:#}"
        );
        Ok(())
    }
}

/// A value as Lua writes it.
fn literal(value: &Value) -> String {
    let fields = |fields: Vec<String>| format!("{{{}}}", fields.join(", "));
    match value {
        Value::Null => "nil".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(items) => fields(items.iter().map(literal).collect()),
        Value::Object(entries) => fields(
            entries
                .iter()
                .map(|(name, value)| format!("[{}] = {}", quoted(name), literal(value)))
                .collect(),
        ),
    }
}

/// Every byte by its number, so that none ends the text.
fn quoted(text: &str) -> String {
    let bytes: String = text.bytes().map(|byte| format!("\\{byte:03}")).collect();
    format!("\"{bytes}\"")
}

//! Owns: that Argo CD, given `deploy/argocd/health.yaml`, tells what is healthy, what takes time and what a person has
//! to mend: of samples, of every reason that a hub gives, and of what agents wrote. The checks run in the Lua that Argo CD runs them in.
//! Never: asks an Argo CD.

use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use cluster::{
    clusterset::{Backend, LocalClusterset, shop::Shop},
    real::lua::Lua,
};
use hub::fold::{ConditionType, DerivedContent, DerivedKey, State, apply};
use serde_json::{Value, json};
use shared::{
    model::{
        ClusterId, ControlPlane, ControlPlaneReason, ControlPlaneVerdict, Event, Fact, Health,
        KeyFingerprint, KeyTerms, Revision, SessionId, UnixMillis,
    },
    wire,
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
    for (condition, wanted) in profiles()? {
        let object = json!({"metadata": {"name": "east"}, "status": {"conditions": [condition]}});
        argo.expect(PROFILE, &object, (wanted, ""))?;
    }
    // As it is before anybody has written a status.
    for kind in [EXPORT, IMPORT, PROFILE] {
        let object = json!({"metadata": {"name": "a \"quoted\"\nname"}});
        argo.expect(kind, &object, ("Progressing", ""))?;
    }
    Ok(())
}

/// Every ControlPlaneHealthy that the hub derives, with what a person makes of it: of a member that has reported nothing,
/// of one for each reason that an agent has, and of one that is lost.
fn profiles() -> anyhow::Result<Vec<(Value, &'static str)>> {
    let mut state = State::new();
    let joined = Fact::MemberJoined {
        key: KeyFingerprint([7; 32]),
        cluster_fingerprint: "uid".into(),
        terms: KeyTerms::default(),
    };
    let mut judged = vec![(after(&mut state, &joined)?, "Progressing")];
    for reason in ControlPlaneReason::ALL {
        let reported = Fact::HealthReported(Arc::new(Health {
            kubernetes_version: "v1.36.3".into(),
            control_plane: ControlPlane::Ready,
            failed_checks: Vec::new(),
            verdict: Some(ControlPlaneVerdict {
                reason,
                api_servers_fresh: 1,
                api_servers_expected: 1,
                api_servers: Vec::new(),
            }),
            nodes: None,
        }));
        let wanted = match reason.is_healthy() {
            Some(true) => "Healthy",
            None if reason == ControlPlaneReason::Starting => "Progressing",
            Some(false) | None => "Degraded",
        };
        let condition = after(&mut state, &reported)?;
        ensure!(condition["reason"] == json!(reason.as_str()), "{condition}");
        judged.push((condition, wanted));
    }
    judged.push((after(&mut state, &Fact::MemberLost)?, "Degraded"));
    Ok(judged)
}

/// The condition ControlPlaneHealthy of the member east after another fact of it.
fn after(state: &mut State, fact: &Fact) -> anyhow::Result<Value> {
    let east = ClusterId::new("east")?;
    let event = Event {
        revision: state.revision().next(),
        recorded_at: UnixMillis(1_000),
        cluster: Some(east.clone()),
        incarnation: Revision(1),
        session: SessionId(1),
        member_sequence: 0,
        fact: wire::encode_fact(fact),
        changed_by: None,
    };
    apply(state, &event);
    let derived = state.derived(&DerivedKey::Profile(east)).context("a profile")?;
    let DerivedContent::Profile(profile) = &derived.content else {
        bail!("no profile");
    };
    let mut conditions = profile.conditions.iter();
    let condition =
        conditions.find(|condition| condition.condition_type == ConditionType::ControlPlaneHealthy);
    let condition = condition.context("its health")?;
    Ok(json!({
        "type": condition.condition_type.as_str(),
        "status": condition.status.as_str(),
        "reason": condition.reason,
        "message": condition.message.to_string(),
    }))
}

/// An arrived service is healthy, where it was exported and where it is imported.
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

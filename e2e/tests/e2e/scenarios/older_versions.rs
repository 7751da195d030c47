//! A cluster whose mcs-api is older and serves v1alpha1 only: it exports and imports like any other, says which version
//! it is, and its definitions stay as they are until a person replaces them.

use anyhow::{Context, ensure};
use cluster::{clusterset::admin, deploy};
use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use sim::Crd;

use super::{
    definitions::{EXPORTS, IMPORTS, install_again, remove},
    story::{
        Kind, Story,
        expect::{complete, exported, from_clusters, has_condition, same},
        objects::{export, plain, with},
        seen::Seen,
    },
};

/// The cluster with the older definitions.
const OLDER: &str = "west";
/// The version that they serve.
const SERVED: &str = "v1alpha1";

/// mcs-api v0.4.1: of what is written, only `status.endpointSliceObjects` is not there.
pub(super) async fn only_v1alpha1_is_used(story: &mut Story) -> anyhow::Result<()> {
    let lacking = ["/status/endpointSliceObjects"];
    under(story, "v0.4.1", &lacking).await
}

/// mcs-api v0.3.0: neither families, policies nor conditions are there.
pub(super) async fn only_v1alpha1_with_few_fields_is_used(story: &mut Story) -> anyhow::Result<()> {
    let lacking = [
        "/spec/ipFamilies",
        "/spec/internalTrafficPolicy",
        "/status/conditions",
        "/status/endpointSliceObjects",
    ];
    under(story, "v0.3.0", &lacking).await
}

/// mcs-api v0.1.0: besides, an import has one IP, and the conditions of an export no generation.
pub(super) async fn the_first_release_is_used(story: &mut Story) -> anyhow::Result<()> {
    let lacking = [
        "/spec/ipFamilies",
        "/spec/internalTrafficPolicy",
        "/status/conditions",
        "/status/endpointSliceObjects",
    ];
    replace(story, "v0.1.0").await?;
    story.start().await?;
    let dual = with(
        plain(),
        json!({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}),
    );
    story.export("east", "cart", &dual).await?;
    export_from_the_older(story, "till").await?;
    story
        .until("east", |seen| complete(seen, "till").map(drop))
        .await?;
    story
        .until(OLDER, |seen| {
            stands(seen, "till", OLDER, &lacking)?;
            let ips = &the_import(seen, "cart")?["spec"]["ips"];
            let both = &seen.derived("cart")?["spec"]["clusterIPs"];
            ensure!(both[1].is_string(), "the derived Service has {both}");
            same(ips, &json!([both[0]]), "the one IP that fits")?;
            let export = seen.export("till")?;
            has_condition(export, "Valid", "True", "Valid")?;
            has_condition(export, "Ready", "True", "Exported")?;
            has_condition(export, "Conflict", "False", "NoConflicts")
        })
        .await?;
    for name in [EXPORTS, IMPORTS] {
        install_again(story, OLDER, name).await?;
    }
    story
        .until(OLDER, |seen| {
            complete(seen, "cart")?;
            exported(seen, "till", "")
        })
        .await
}

/// Exports from and into a cluster with the definitions of this release, whose ServiceImport lacks these fields; then
/// a restart, and then current definitions.
async fn under(story: &mut Story, release: &str, lacking: &[&str]) -> anyhow::Result<()> {
    let installed = replace(story, release).await?;
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    export_from_the_older(story, "till").await?;
    for cluster in ["east", "north"] {
        story
            .until(cluster, |seen| {
                from_clusters(complete(seen, "cart")?, &["east"])?;
                from_clusters(complete(seen, "till")?, &[OLDER])
            })
            .await?;
    }
    let held = |seen: &Seen| {
        stands(seen, "cart", "east", lacking)?;
        stands(seen, "till", OLDER, lacking)?;
        exported(seen, "till", "")
    };
    story.until(OLDER, held).await?;
    is_said(story).await?;
    story
        .until(OLDER, |seen| oracle::arrival_is_said(seen.export("till")?))
        .await?;
    a_restart_writes_nothing(story, lacking).await?;
    for definition in installed {
        let now = story
            .get(OLDER, Kind::CustomResourceDefinition, &definition.0)
            .await?;
        same(
            &now["metadata"]["uid"],
            &definition.1["metadata"]["uid"],
            "the uid of a definition",
        )?;
        same(&now["spec"], &definition.1["spec"], "what a definition says")?;
    }
    let before = the_import(&story.look(OLDER).await?, "cart")?["spec"]["ips"].clone();
    for name in [EXPORTS, IMPORTS] {
        install_again(story, OLDER, name).await?;
    }
    let after = story
        .until(OLDER, |seen| {
            complete(seen, "till")?;
            Ok(complete(seen, "cart")?["spec"]["ips"].clone())
        })
        .await?;
    same(&after, &before, "the clusterset IPs")?;
    story.pass("east").await
}

/// Puts the definitions of a release in place of those that the cluster has; as they then stand, where definitions are
/// objects.
async fn replace(story: &Story, release: &str) -> anyhow::Result<Vec<(String, Value)>> {
    let mut definitions: Vec<DynamicObject> = Vec::new();
    for name in [EXPORTS, IMPORTS] {
        let plural = name.split('.').next().unwrap_or_default();
        let file = format!("upstream/mcs-api/{release}/multicluster.x-k8s.io_{plural}.yaml");
        definitions.extend(deploy::read_file(&deploy::fixture(&file))?);
    }
    let cluster = story.clusterset.cluster(OLDER)?;
    if let Some(simulated) = cluster.sim() {
        for definition in definitions {
            simulated.install_crd(&Crd::read(serde_json::to_value(definition)?)?);
        }
        return Ok(Vec::new());
    }
    for name in [EXPORTS, IMPORTS] {
        remove(story, OLDER, name).await?;
    }
    deploy::install_objects(&cluster.client, &definitions).await?;
    let mut installed = Vec::new();
    for name in [EXPORTS, IMPORTS] {
        let object = story.get(OLDER, Kind::CustomResourceDefinition, name).await?;
        installed.push((name.to_owned(), object));
    }
    Ok(installed)
}

/// A user of the older cluster knows its version only.
async fn export_from_the_older(story: &Story, name: &str) -> anyhow::Result<()> {
    story.back(OLDER, name, &plain()).await?;
    let mut object = export(name);
    object["apiVersion"] = json!(format!("multicluster.x-k8s.io/{SERVED}"));
    Kind::ServiceExport
        .old_api(&story.clusterset.cluster(OLDER)?.client, &story.namespace)
        .create(&PostParams::default(), &serde_json::from_value(object)?)
        .await
        .with_context(|| format!("cannot export {name} from {OLDER}"))?;
    Ok(())
}

fn the_import<'a>(seen: &'a Seen, name: &str) -> anyhow::Result<&'a Value> {
    let import = seen.import(name)?;
    let version = import["apiVersion"].as_str().unwrap_or_default();
    ensure!(version.ends_with(SERVED), "{name} was read in {version}");
    Ok(import)
}

/// The import is what the older schema can say, and traffic has all it needs.
fn stands(seen: &Seen, name: &str, source: &str, lacking: &[&str]) -> anyhow::Result<()> {
    let import = the_import(seen, name)?;
    from_clusters(import, &[source])?;
    let derived = seen.derived(name)?;
    same(&import["spec"]["ips"], &derived["spec"]["clusterIPs"], "ips")?;
    ensure!(seen.imported_from(name, source).len() == 1, "no slice of {name}");
    for field in lacking {
        ensure!(
            import.pointer(field).is_none(),
            "{field} is not in the schema, and was written"
        );
    }
    if !lacking.contains(&"/status/conditions") {
        has_condition(import, "Ready", "True", "Ready")?;
    }
    Ok(())
}

/// The agent is ready, and its log and metrics name the version.
async fn is_said(story: &mut Story) -> anyhow::Result<()> {
    let log = std::fs::read_to_string(story.clusterset.log(OLDER))?;
    let agent = story.clusterset.agent(OLDER)?;
    for kind in ["ServiceExport", "ServiceImport"] {
        let line = log
            .lines()
            .find(|line| line.contains(kind) && line.contains("older mcs-api"));
        let line = line.with_context(|| format!("the agent's log does not say that {kind} is older"))?;
        ensure!(line.contains(SERVED), "{line}");
        for (version, wanted) in [(SERVED, 1.0), ("v1beta1", 0.0)] {
            let labels = format!("kind=\"{kind}\",version=\"{version}\"");
            let shown = admin::metric(agent, "tributary_agent_served_version", &labels).await?;
            ensure!(
                shown == wanted,
                "tributary_agent_served_version{{{labels}}} is {shown}"
            );
        }
    }
    let (code, text) = admin::get(agent.admin().await?, "/readyz").await?;
    ensure!(code == 200, "the agent of {OLDER} is not ready: {text}");
    Ok(())
}

/// The objects were written in full: a new agent that has compared everything has written none of them.
async fn a_restart_writes_nothing(story: &mut Story, lacking: &[&str]) -> anyhow::Result<()> {
    let versions = |seen: &Seen| -> anyhow::Result<Vec<Value>> {
        let mut objects = vec![
            seen.export("till")?,
            seen.derived("cart")?,
            the_import(seen, "cart")?,
        ];
        objects.extend(seen.imported("cart"));
        let version = |object: &&Value| object["metadata"]["resourceVersion"].clone();
        Ok(objects.iter().map(version).collect())
    };
    let before = versions(&story.look(OLDER).await?)?;
    story.clusterset.kill_agent(OLDER).await?;
    story.clusterset.start_agent(OLDER).await?;
    // Names are planned in their order: what comes last was planned after all else.
    story.export("east", "zz-later", &plain()).await?;
    story
        .until(OLDER, |seen| stands(seen, "zz-later", "east", lacking))
        .await?;
    let after = versions(&story.look(OLDER).await?)?;
    ensure!(before == after, "a restart turned {before:?} into {after:?}");
    Ok(())
}

//! A member that leaves: its endpoints first, wherever others answer, its exports later; one word takes it back until then.
//! In its own cluster nothing of ours is left, with the hub or without it, but for what was asked to stay.

use anyhow::ensure;
use cluster::clusterset::{
    admin,
    eventually::eventually,
    questions::{events, kinds, said, state},
};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, api::ListParams};
use serde_json::Value;
use shared::api::names::{
    AGENT_MANAGER, LABEL_MANAGED_BY, PROPERTY_CLUSTER_ID, PROPERTY_CLUSTERSET, TRIBUTARY_NAMESPACE,
};

use super::story::{
    Kind, Story,
    expect::{complete, from_clusters, gone},
    objects::plain,
};

/// The importer, whose own exports are not looked at.
const IMPORTER: &str = "north";

/// West exports `cart` before east does, and `till` alone.
async fn both_export(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export_in_order(&["west", "east"], "cart", &plain()).await?;
    story.export("west", "till", &plain()).await?;
    slices(story, 2).await
}

/// North imports both, from both, and has so many slices of `cart`.
async fn slices(story: &Story, wanted: usize) -> anyhow::Result<()> {
    story
        .until(IMPORTER, |seen| {
            complete(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["east", "west"])?;
            let slices = seen.imported("cart").count();
            ensure!(slices == wanted, "{slices} slices of cart instead of {wanted}");
            Ok(())
        })
        .await
}

/// Drained, taken back, drained for a moment: then everything of it is gone, and what is wrong is told in a line.
pub(super) async fn endpoints_go_first_exports_later_and_a_word_takes_it_back(
    story: &mut Story,
) -> anyhow::Result<()> {
    both_export(story).await?;
    let before = decisions(story).await?;
    let clusterset = &story.clusterset;
    for wrong in [
        &["drain", "south"][..],
        &["evict", "south", "--now"],
        &["stay", "south"],
    ] {
        let refused = reason(clusterset.member_command(wrong).await);
        ensure!(refused.contains("is not a member"), "{wrong:?}: {refused}");
    }
    let after = decisions(story).await?;
    ensure!(after == before, "{after:?} were recorded, before it {before:?}");

    story.clusterset.member_command(&["drain", "west"]).await?;
    slices(story, 1).await?;
    let seen = story.look(IMPORTER).await?;
    ensure!(
        seen.imported("till").count() == 1,
        "nobody else answers for till, and its endpoints went"
    );
    let members = state(&story.clusterset).await?.members;
    let leaving = members.iter().find(|member| member.cluster == "west");
    ensure!(
        leaving.is_some_and(|member| member.leaving.is_some()),
        "nobody is told that west leaves"
    );
    story.clusterset.member_command(&["stay", "west"]).await?;
    slices(story, 2).await?;

    story
        .clusterset
        .member_command(&["drain", "west", "--after", "1s"])
        .await?;
    story
        .until(IMPORTER, |seen| {
            gone(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["east"])?;
            ensure!(seen.imported_from("cart", "west").is_empty(), "a ghost of west");
            Ok(())
        })
        .await?;
    let late = reason(story.clusterset.member_command(&["stay", "west"]).await);
    ensure!(late.contains("too late for west to stay"), "{late}");
    let told = kinds(&story.clusterset, "west").await?;
    let told: Vec<&str> = told
        .iter()
        .map(String::as_str)
        .filter(|kind| ["member_leaving", "member_stays", "member_left"].contains(kind))
        .collect();
    ensure!(
        told == ["member_leaving", "member_stays", "member_leaving", "member_left"],
        "{told:?}"
    );
    said(
        &story.clusterset.log("west"),
        "belongs to a membership of cluster id west that ended",
    )
    .await?;
    says_that_it_is_no_member(story, "west").await
}

/// A cluster whose membership has ended says so, to people and to tools: no clusterset, exports that are not ready, an agent
/// that is not ready and names the command that cleans up. Its id stays its own.
async fn says_that_it_is_no_member(story: &mut Story, cluster: &str) -> anyhow::Result<()> {
    let properties = story.api(cluster, Kind::ClusterProperty)?;
    eventually("a cluster that is no member says no clusterset", async || {
        let found = properties.get_opt(PROPERTY_CLUSTERSET).await?;
        Ok(found.is_none().then_some(()))
    })
    .await?;
    ensure!(
        properties.get_opt(PROPERTY_CLUSTER_ID).await?.is_some(),
        "{cluster} lost its id"
    );
    for export in ["cart", "till"] {
        eventually("an export that nobody imports is not ready", async || {
            let found = story.get(cluster, Kind::ServiceExport, export).await?;
            let conditions = found["status"]["conditions"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let ready = conditions.iter().find(|one| one["type"] == "Ready");
            let told =
                ready.is_some_and(|ready| ready["status"] == "False" && ready["reason"] == "MembershipEnded");
            Ok((told && conditions.iter().all(|one| one["type"] != "Conflict")).then_some(()))
        })
        .await?;
    }
    let admin = story.clusterset.agent(cluster)?.admin().await?;
    let (status, told) = admin::get(admin, "/readyz").await?;
    ensure!(status == 503 && told.contains("membership"), "{status}: {told}");
    said(
        &story.clusterset.log(cluster),
        "tributary-agent leave --without-hub",
    )
    .await
    .map(drop)
}

/// The cluster takes itself out: the others let go, and nothing of ours is left in it.
pub(super) async fn a_cluster_takes_itself_out(story: &mut Story) -> anyhow::Result<()> {
    both_export(story).await?;
    story
        .until("west", |seen| complete(seen, "cart").map(drop))
        .await?;
    let at_once = ["--wait", "0", "--confirm"];
    let running = reason(story.clusterset.leave("west", &at_once).await);
    ensure!(running.contains("an agent runs here"), "{running}");
    story.clusterset.stop_agent("west").await?;
    let before = ours(story, "west").await?;
    story.clusterset.leave("west", &[]).await?;
    ensure!(
        ours(story, "west").await? == before,
        "a dry run changed something"
    );

    story.clusterset.leave("west", &["--confirm"]).await?;
    nothing_is_left(story, "west").await?;
    story
        .until(IMPORTER, |seen| {
            gone(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["east"])
        })
        .await?;
    ensure!(
        kinds(&story.clusterset, "west")
            .await?
            .iter()
            .any(|kind| kind == "member_left"),
        "the hub has not recorded it"
    );
    // Whoever lost the answer says it again.
    story.clusterset.leave("west", &["--confirm"]).await?;
    nothing_is_left(story, "west").await
}

/// Without a hub the cluster is cleaned all the same, and imports stay when that was asked.
pub(super) async fn a_cluster_leaves_without_a_hub_and_keeps_what_is_asked(
    story: &mut Story,
) -> anyhow::Result<()> {
    both_export(story).await?;
    story
        .until("west", |seen| complete(seen, "cart").map(drop))
        .await?;
    story.clusterset.stop_agent("west").await?;
    story.clusterset.kill_hub().await?;
    let refused = reason(story.clusterset.leave("west", &["--confirm"]).await);
    ensure!(refused.contains("--without-hub"), "{refused}");
    let before = ours(story, "west").await?;
    let keep = ["--without-hub", "--keep", "imports", "--confirm"];
    story.clusterset.leave("west", &keep).await?;
    let after = ours(story, "west").await?;
    let imports: Vec<String> = before
        .into_iter()
        .filter(|name| !name.starts_with("ClusterProperty") && !name.starts_with("Lease"))
        .collect();
    ensure!(
        !imports.is_empty() && after == imports,
        "{after:?} instead of {imports:?}"
    );
    story
        .clusterset
        .leave("west", &["--without-hub", "--confirm"])
        .await?;
    nothing_is_left(story, "west").await?;
    story.clusterset.start_hub().await
}

/// Records of leaving members: other events come at any time.
async fn decisions(story: &Story) -> anyhow::Result<Vec<(String, String)>> {
    let events = events(&story.clusterset).await?;
    let decisions = events.into_iter().map(|event| (event.kind, event.cluster));
    let of_leaving = ["member_leaving", "member_stays", "member_left", "member_evicted"];
    Ok(decisions
        .filter(|(kind, _)| of_leaving.contains(&kind.as_str()))
        .collect())
}

/// The line in which a command said why it did nothing; empty: it did something.
fn reason(ended: anyhow::Result<()>) -> String {
    let said = ended.err().map(|error| error.to_string()).unwrap_or_default();
    said.lines().last().unwrap_or_default().to_owned()
}

/// Everything in a cluster that bears the agent's label, and the Leases of its namespace, by kind and name.
async fn ours(story: &Story, cluster: &str) -> anyhow::Result<Vec<String>> {
    let client = &story.clusterset.cluster(cluster)?.client;
    let labelled = ListParams::default().labels(&format!("{LABEL_MANAGED_BY}={AGENT_MANAGER}"));
    let mut ours = Vec::new();
    for kind in [Kind::ServiceImport, Kind::Service, Kind::EndpointSlice] {
        let found = kind.api(client, &story.namespace).list(&labelled).await?;
        let names = found.items.into_iter().filter_map(|object| object.metadata.name);
        ours.extend(names.map(|name| format!("{kind:?} {name}")));
    }
    let properties = Kind::ClusterProperty.api(client, "").list(&labelled).await?;
    let names = properties
        .items
        .into_iter()
        .filter_map(|object| object.metadata.name);
    ours.extend(names.map(|name| format!("ClusterProperty {name}")));
    let leases: Api<Lease> = Api::namespaced(client.clone(), TRIBUTARY_NAMESPACE);
    // Nobody else has a Lease in the agent's namespace.
    let found = leases.list(&ListParams::default()).await?.items.into_iter();
    ours.extend(found.filter_map(|lease| Some(format!("Lease {}", lease.metadata.name?))));
    ours.sort();
    Ok(ours)
}

/// No object, no condition, no clusterset; the cluster's id is its own.
async fn nothing_is_left(story: &Story, cluster: &str) -> anyhow::Result<()> {
    let left = ours(story, cluster).await?;
    ensure!(left.is_empty(), "left in {cluster}: {left:?}");
    for name in ["cart", "till"] {
        let export = story.get(cluster, Kind::ServiceExport, name).await?;
        let conditions = export["status"]["conditions"].as_array().map_or(0, Vec::len);
        ensure!(conditions == 0, "{conditions} conditions are left of {name}");
    }
    let properties = story.api(cluster, Kind::ClusterProperty)?;
    ensure!(
        properties.get_opt(PROPERTY_CLUSTERSET).await?.is_none(),
        "{cluster} still says which clusterset it is of"
    );
    eventually("its id stays", async || {
        let id: Value = serde_json::to_value(properties.get_opt(PROPERTY_CLUSTER_ID).await?)?;
        Ok((id["spec"]["value"] == cluster).then_some(()))
    })
    .await
}

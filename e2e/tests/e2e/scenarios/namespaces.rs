//! An import is exactly where its namespace is.

use anyhow::{Context, ensure};
use cluster::clusterset::shop::unique_name;
use kube::api::DeleteParams;
use serde_json::json;

use super::story::{
    Kind, Story,
    expect::{backends_are, complete, exported, from_clusters, gone},
    objects::{address, export, plain, service},
};

/// No namespace, no import; it comes with the namespace, goes with it, and comes again.
pub(super) async fn an_import_follows_its_namespace(story: &mut Story) -> anyhow::Result<()> {
    for cluster in ["east", "west"] {
        story.create_namespace(cluster, &story.namespace).await?;
    }
    story.start_agents().await?;
    story.export("east", "cart", &plain()).await?;
    let behind = [("east", &*address("east", 1))];
    let arrived = |seen: &_| {
        from_clusters(complete(seen, "cart")?, &["east"])?;
        backends_are(seen, "cart", &behind)
    };
    for cluster in ["east", "west"] {
        story.until(cluster, arrived).await?;
    }
    let namespaces = story.api("north", Kind::Namespace)?;
    ensure!(
        namespaces.get_opt(&story.namespace).await?.is_none(),
        "somebody created the namespace in north"
    );
    for _ in 0..2 {
        story.create_namespace("north", &story.namespace).await?;
        story.until("north", arrived).await?;
        delete_namespace(story, "north").await?;
        for cluster in ["east", "west"] {
            story.until(cluster, arrived).await?;
        }
    }
    Ok(())
}

/// An exporter whose namespace goes has nothing to export; the others keep what they have.
pub(super) async fn an_exporter_loses_its_namespace(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export_in_order(&["east", "west"], "cart", &plain()).await?;
    story
        .everywhere(|seen| from_clusters(complete(seen, "cart")?, &["east", "west"]))
        .await?;
    delete_namespace(story, "east").await?;
    for cluster in ["west", "north"] {
        let left = [("west", &*address("west", 1))];
        story
            .until(cluster, |seen| {
                from_clusters(complete(seen, "cart")?, &["west"])?;
                backends_are(seen, "cart", &left)
            })
            .await?;
    }
    // It comes back as the youngest.
    story.create_namespace("east", &story.namespace).await?;
    story
        .until("east", |seen| complete(seen, "cart").map(drop))
        .await?;
    story.export("east", "cart", &plain()).await?;
    story
        .everywhere(|seen| from_clusters(complete(seen, "cart")?, &["east", "west"]))
        .await?;
    story.until("east", |seen| exported(seen, "cart", "")).await
}

/// While a namespace terminates, the API server takes nothing new into it; that holds nothing else up.
pub(super) async fn a_terminating_namespace_holds_nothing_up(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    // A finalizer on somebody's object keeps the namespace in the state of terminating.
    let mut held = service("held", &plain());
    held["metadata"]["finalizers"] = json!(["e2e.tributary.dev/hold"]);
    story.apply("north", held).await?;
    let namespaces = story.api("north", Kind::Namespace)?;
    namespaces
        .delete(&story.namespace, &DeleteParams::default())
        .await?;
    story.export("east", "cart", &plain()).await?;
    for cluster in ["east", "west"] {
        story
            .until(cluster, |seen| complete(seen, "cart").map(drop))
            .await?;
    }
    // Other namespaces of the same cluster are served meanwhile.
    let other = unique_name("story");
    for cluster in ["east", "north"] {
        story.create_namespace(cluster, &other).await?;
    }
    for mut object in [service("till", &plain()), export("till")] {
        object["metadata"]["namespace"] = json!(other);
        story.apply("east", object).await?;
    }
    story
        .until_in("north", &other, |seen| complete(seen, "till").map(drop))
        .await?;
    gone(&story.look("north").await?, "cart")?;
    let release = json!({"metadata": {"finalizers": null}});
    story.patch("north", Kind::Service, "held", release).await?;
    wait_without_namespace(story, "north").await?;
    story.create_namespace("north", &story.namespace).await?;
    story
        .until("north", |seen| complete(seen, "cart").map(drop))
        .await
}

/// Deletes the story's namespace in a cluster and waits until it is gone.
async fn delete_namespace(story: &Story, cluster: &str) -> anyhow::Result<()> {
    let namespaces = story.api(cluster, Kind::Namespace)?;
    namespaces
        .delete(&story.namespace, &DeleteParams::default())
        .await
        .context("cannot delete the namespace")?;
    wait_without_namespace(story, cluster).await
}

async fn wait_without_namespace(story: &Story, cluster: &str) -> anyhow::Result<()> {
    let namespaces = story.api(cluster, Kind::Namespace)?;
    let gone = kube::runtime::wait::await_condition(
        namespaces,
        &story.namespace,
        |namespace: Option<&kube::api::DynamicObject>| namespace.is_none(),
    );
    tokio::time::timeout(super::story::EVENTUALLY_WAIT, gone)
        .await
        .with_context(|| format!("the namespace does not go from {cluster}"))??;
    Ok(())
}

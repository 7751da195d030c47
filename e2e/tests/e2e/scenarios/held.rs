//! A member whose definition of ServiceExports is deleted: the others go on answering, on the very objects that they had, and
//! with its endpoints only where nobody else answers; what it exported comes back, or an operator lets it go.

use anyhow::ensure;
use cluster::clusterset::{
    eventually::eventually,
    questions::{kinds, state},
};
use serde_json::Value;

use super::{
    definitions::{EXPORTS, install_again, remove},
    story::{
        Kind, Story,
        expect::{complete, from_clusters, gone, same},
        objects::{export, plain},
    },
};

/// Whoever takes anything back is held: nobody may see the first of many go.
const CAREFUL: &str = "
apiVersion: tributary.dev/v1alpha1
kind: ClustersetPolicy
spec:
  brake:
    exports: 1
    percent: 1
";
/// The importer, whose own exports are not looked at.
const IMPORTER: &str = "north";

/// East exports `cart` beside west, and `till` alone; its definition goes.
async fn without_its_definition(story: &mut Story) -> anyhow::Result<Vec<Value>> {
    story.start().await?;
    story.export_in_order(&["east", "west"], "cart", &plain()).await?;
    story.export("east", "till", &plain()).await?;
    story.clusterset.apply_policy(CAREFUL).await?;
    story
        .until(IMPORTER, |seen| {
            complete(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["east", "west"])
        })
        .await?;
    let before = imports(story).await?;
    remove(story, "east", EXPORTS).await?;
    eventually("the hub holds both exports of east", async || {
        let state = state(&story.clusterset).await?;
        let mut east = state.members.iter().filter(|member| member.cluster == "east");
        Ok(east
            .any(|member| member.brake_since.is_some() && member.held_exports == 2 && member.exports == 0)
            .then_some(()))
    })
    .await?;
    Ok(before)
}

/// Both imports as they stand in north.
async fn imports(story: &Story) -> anyhow::Result<Vec<Value>> {
    let mut imports = Vec::new();
    for name in ["cart", "till"] {
        imports.push(story.get(IMPORTER, Kind::ServiceImport, name).await?);
    }
    Ok(imports)
}

/// Nothing of them went and came again, and so many slices are behind cart; behind till, which east exports alone, there is one.
async fn they_stand(story: &Story, before: &[Value], of_cart: usize) -> anyhow::Result<()> {
    eventually("cart and till have their slices", async || {
        let seen = story.look(IMPORTER).await?;
        let slices = ["cart", "till"].map(|name| seen.imported(name).count());
        ensure!(slices[1] == 1, "{} slices of till", slices[1]);
        Ok((slices[0] == of_cart).then_some(()))
    })
    .await?;
    let seen = story.look(IMPORTER).await?;
    complete(&seen, "till")?;
    from_clusters(complete(&seen, "cart")?, &["east", "west"])?;
    for (now, before) in imports(story).await?.iter().zip(before) {
        same(&now["metadata"]["uid"], &before["metadata"]["uid"], "the import")?;
        same(&now["spec"]["ips"], &before["spec"]["ips"], "the clusterset IPs")?;
    }
    Ok(())
}

/// The others go on answering, whoever starts again, until an operator lets it go.
pub(super) async fn others_go_on_without_a_definition_until_it_is_let_go(
    story: &mut Story,
) -> anyhow::Result<()> {
    let before = without_its_definition(story).await?;
    story.pass("west").await?;
    they_stand(story, &before, 1).await?;
    story.clusterset.kill_hub().await?;
    story.clusterset.start_hub().await?;
    story.pass("west").await?;
    they_stand(story, &before, 1).await?;

    story.clusterset.release_member("east").await?;
    story
        .until(IMPORTER, |seen| {
            gone(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["west"])
        })
        .await?;
    let kinds = kinds(&story.clusterset, "east").await?;
    let told: Vec<&str> = kinds
        .iter()
        .map(String::as_str)
        .filter(|kind| kind.starts_with("brake_"))
        .collect();
    ensure!(told == ["brake_engaged", "brake_released"], "{told:?}");
    // Whoever uses the cluster next wants it.
    install_again(story, "east", EXPORTS).await
}

/// The definition is installed again and the exports are made anew: nothing is held any more, and nothing ever went.
pub(super) async fn what_comes_back_with_its_definition_is_not_held(story: &mut Story) -> anyhow::Result<()> {
    let before = without_its_definition(story).await?;
    install_again(story, "east", EXPORTS).await?;
    for name in ["cart", "till"] {
        story.apply("east", export(name)).await?;
    }
    eventually("nothing of east is held", async || {
        let state = state(&story.clusterset).await?;
        let mut east = state.members.iter().filter(|member| member.cluster == "east");
        Ok(east
            .any(|member| member.brake_since.is_none() && member.exports == 2)
            .then_some(()))
    })
    .await?;
    story
        .until(IMPORTER, |seen| {
            complete(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["east", "west"])
        })
        .await?;
    they_stand(story, &before, 2).await
}

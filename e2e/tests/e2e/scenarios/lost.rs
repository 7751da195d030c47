//! A member that stays lost: its endpoints go where another one answers, and stay where none does; its export keeps its
//! place, and everything comes back with it.

use anyhow::ensure;

use super::story::{
    Story,
    expect::{complete, from_clusters},
    objects::plain,
    seen::condition,
};

/// A loss is noticed within ten seconds, and nothing is withdrawn before.
const SOON: &str = "
apiVersion: tributary.dev/v1alpha1
kind: ClustersetPolicy
spec:
  loss:
    after: 10s
";

/// West exports `cart` before east does, and `till` alone.
pub(super) async fn endpoints_of_who_stays_lost_go_and_come(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export_in_order(&["west", "east"], "cart", &plain()).await?;
    story.export("west", "till", &plain()).await?;
    story.clusterset.apply_policy(SOON).await?;
    slices_in_north(story, 2).await?;

    story.clusterset.kill_agent("west").await?;
    slices_in_north(story, 1).await?;
    let seen = story.look("north").await?;
    from_clusters(complete(&seen, "cart")?, &["east", "west"])?;
    ensure!(
        seen.imported("till").count() == 1,
        "nobody else answers for till, and its endpoints went"
    );

    story.clusterset.start_agent("west").await?;
    slices_in_north(story, 2).await?;
    story.all_is_right().await
}

/// The exporter reads in its own cluster where its service arrived: west is away when `cart` is exported.
pub(super) async fn an_export_says_where_it_did_not_arrive(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "till", &plain()).await?;
    says(story, "till", "in 3 of 3 clusters").await?;
    story.clusterset.kill_agent("west").await?;
    story.export("east", "cart", &plain()).await?;
    says(story, "cart", "in 2 of 3 clusters; not yet in west").await?;
    says(story, "till", "in 3 of 3 clusters").await?;
    story.clusterset.start_agent("west").await?;
    says(story, "cart", "in 3 of 3 clusters").await?;
    story.all_is_right().await
}

/// East's export says this of where it arrived.
async fn says(story: &Story, name: &str, wanted: &str) -> anyhow::Result<()> {
    story
        .until("east", |seen| {
            let arrived = condition(seen.export(name)?, oracle::ARRIVED)?;
            let message = &arrived["message"];
            ensure!(message == wanted, "{name} says {message} instead of {wanted}");
            Ok(())
        })
        .await
}

/// So many slices of `cart` are imported into north, which exports nothing.
async fn slices_in_north(story: &Story, wanted: usize) -> anyhow::Result<()> {
    story
        .until("north", |seen| {
            complete(seen, "till")?;
            from_clusters(complete(seen, "cart")?, &["east", "west"])?;
            let slices = seen.imported("cart").count();
            ensure!(slices == wanted, "{slices} slices of cart instead of {wanted}");
            Ok(())
        })
        .await
}

//! Owns: what a hub says once old history is gone: readers are told what is left, members get what they need.
//! Never: looks into the hub's directory.

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{
        Backend, LocalClusterset,
        eventually::eventually,
        questions::{epoch_and_events, state},
    },
    member::{Member, connect, hello},
};
use crash::facts;
use proto::v1;
use shared::model::{ChainHash, Cursor, Revision, sync::Hello};

use super::account::account;

/// Facts that are recorded before history goes.
const FACTS: u32 = 20;
/// Old is what happened a second ago.
const SHORT: [&str; 2] = ["--retention-age", "1s"];

pub(super) async fn history_goes_and_nothing_that_follows_from_it() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    let mut member = Member::open(&clusterset, "east", hello("uid-of-east")).await?;
    member.report([facts::export()?]).await?;
    for number in 1..=FACTS {
        member.report([facts::change(number)?]).await?;
    }
    member.settled().await?;
    let (epoch, events) = epoch_and_events(&clusterset, 1).await?;
    let early = cursor(&epoch, events.first().context("something was recorded")?)?;
    let told = account(&[], &state(&clusterset).await?);
    drop(member);
    clusterset.stop_hub().await?;
    clusterset.start_hub_with(&SHORT).await?;

    let refused = eventually("the first event is gone", async || {
        Ok(list(&clusterset, 1)
            .await?
            .err()
            .map(|status| status.message().to_owned()))
    })
    .await?;
    let kept = list(&clusterset, 0).await??;
    let oldest = kept
        .events
        .first()
        .map_or(kept.head_revision + 1, |event| event.revision);
    let named = format!("oldest kept revision is {oldest}");
    ensure!(refused.contains(&named), "it says {refused:?}, not {named:?}");
    ensure!(oldest > u64::from(FACTS), "only {oldest} is the oldest");
    ensure!(kept.epoch == epoch, "an epoch began");

    ensure!(
        account(&[], &state(&clusterset).await?) == told,
        "the state is another"
    );
    let away = Hello {
        cursor: Some(early),
        ..hello("uid-of-east")
    };
    let (_member, welcome) = Member::introduce(connect(&clusterset, "east").await?, away).await?;
    ensure!(!welcome.resume, "a position that is gone was resumed");
    ensure!(welcome.epoch == early.epoch, "it was taken for a log set back");
    clusterset.kill_hub().await?;
    let report = hub::log::verify(&clusterset.data(), &mut |_| {})?;
    ensure!(report.is_good(), "the chain does not hold: {report:?}");
    Ok(())
}

async fn list(
    clusterset: &LocalClusterset,
    from_revision: u64,
) -> anyhow::Result<Result<v1::ListEventsResponse, tonic::Status>> {
    let request = v1::ListEventsRequest {
        from_revision,
        ..Default::default()
    };
    let listed = clusterset.inspect().await?.log.list(request).await;
    Ok(listed.map(tonic::Response::into_inner))
}

fn cursor(epoch: &str, event: &v1::Event) -> anyhow::Result<Cursor> {
    let mut hash = ChainHash::default();
    for (index, byte) in hash.0.iter_mut().enumerate() {
        let digits = event
            .hash
            .get(2 * index..2 * index + 2)
            .context("a hash has 32 digits")?;
        *byte = u8::from_str_radix(digits, 16)?;
    }
    Ok(Cursor {
        epoch: epoch.parse()?,
        revision: Revision(event.revision),
        hash,
    })
}

//! Disks that do not keep their word: a damaged log, and a volume that takes no more.

use std::{ffi::OsString, fs, path::Path};

use anyhow::{Context, bail, ensure};
use cluster::{
    clusterset::{Backend, LocalClusterset, admin, eventually::eventually},
    member::{Member, hello},
};
use proto::v1;
use shared::model::Epoch;

use super::{
    facts::{encoded, slice},
    guard::Guard,
    hub::{events, listed, state},
    shop::Shop,
};

/// A hub may write files of this many blocks of 512 bytes; the log's file grows by 8 MiB at a time.
const FILE_BLOCKS: u32 = 24 * 1024 * 2;
/// Endpoints of a slice that fills the disk.
const ENDPOINTS: usize = 900;
/// Slices after which a full disk must have been noticed.
const SLICES_MAX: u32 = 20_000;

/// A damaged log is refused at the start, with the place and with what to do.
pub(super) async fn a_corrupt_log_is_refused_at_start() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east"]).await?;
    listed(&clusterset, &["east"]).await?;
    // The store writes an index of its file when it opens.
    clusterset.stop_hub().await?;
    clusterset.start_hub().await?;
    listed(&clusterset, &["east"]).await?;
    clusterset.stop_agent("east").await?;
    clusterset.stop_hub().await?;
    let index = fs::read_dir(clusterset.data().join("log"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("snap."))
        })
        .context("the store has no index")?;
    let mut bytes = fs::read(&index)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x01;
    fs::write(&index, bytes)?;

    // It improvises nothing: the second start is refused as the first was.
    for _ in 0..2 {
        let hub = clusterset.spawn_hub(&[], clusterset.data(), &[])?;
        let (status, tail) = hub.ended().await?;
        ensure!(!status.success(), "a damaged log was served: {status}");
        let data = clusterset.data().display().to_string();
        for told in [
            "corrupt at",
            data.as_str(),
            "move it aside",
            "tributary-hub log verify",
        ] {
            ensure!(tail.contains(told), "nothing of {told:?} in\n{tail}");
        }
    }
    // The advice is good: with the directory moved aside the hub starts and the member lists again.
    fs::rename(clusterset.data(), dir.path().join("aside"))?;
    clusterset.start_hub().await?;
    clusterset.start_agent("east").await?;
    listed(&clusterset, &["east"]).await?;
    clusterset.end().await
}

/// Damage at the end of the log's file is taken by the store for a write that was not finished: the log is shorter
/// and does not know it. The members' cursors do.
pub(super) async fn a_log_that_was_cut_shows_in_the_cursors() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    let mut shop = Shop::open(&clusterset).await?;
    shop.export(&clusterset, "east", "cart", &["10.1.0.1"]).await?;
    shop.export(&clusterset, "west", "lamp", &["10.2.0.1"]).await?;
    shop.arrived(&clusterset).await?;
    let before = state(&clusterset).await?;
    let guard = Guard::set(&clusterset, &shop.namespace).await?;
    clusterset.stop_hub().await?;
    let fingerprint = &before.members[0].cluster_fingerprint;
    let damaged = damage(&clusterset.data(), fingerprint.as_bytes())?;
    ensure!(
        damaged > 0,
        "the log does not hold what it should: no place to damage"
    );

    clusterset.start_hub().await?;
    listed(&clusterset, &["east", "west"]).await?;
    shop.arrived(&clusterset).await?;
    guard.nothing_lost_of(&["cart", "lamp"])?;
    let (old, new): (Epoch, Epoch) = (before.epoch.parse()?, state(&clusterset).await?.epoch.parse()?);
    ensure!(
        new > old,
        "cursors that the log does not know lead to a new epoch: {old}, {new}"
    );
    clusterset.end().await
}

/// Flips a bit in every copy of some bytes below a directory, and counts them.
fn damage(directory: &Path, wanted: &[u8]) -> anyhow::Result<usize> {
    let mut flipped = 0;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            flipped += damage(&path, wanted)?;
            continue;
        }
        let mut bytes = fs::read(&path)?;
        let places: Vec<usize> = bytes
            .windows(wanted.len())
            .enumerate()
            .filter(|(_, window)| *window == wanted)
            .map(|(place, _)| place)
            .collect();
        for place in &places {
            bytes[*place] ^= 0x01;
        }
        if !places.is_empty() {
            fs::write(&path, bytes)?;
        }
        flipped += places.len();
    }
    Ok(flipped)
}

/// The log's file cannot grow: the hub acknowledges no more, ends and says why; nothing acknowledged is lost.
pub(super) async fn a_disk_that_refuses_to_grow_ends_the_hub() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    clusterset.stop_hub().await?;
    let hub = clusterset.spawn_hub(&limited(), clusterset.data(), &[])?;
    clusterset.adopt_hub(hub).await?;
    let admin_port = clusterset.hub()?.admin().await?;
    let acknowledged = fill(&clusterset, "east").await?;
    eventually("a hub that fails is not ready any more, or gone", async || {
        let ready = matches!(admin::get(admin_port, "/readyz").await, Ok((200, _)));
        Ok((!ready).then_some(()))
    })
    .await?;
    let Some(hub) = clusterset.take_hub() else {
        bail!("the hub was lost")
    };
    let (status, tail) = hub.ended().await?;
    ensure!(
        status.code().is_some_and(|code| code != 0),
        "it must end by itself and not with 0: {status}"
    );
    ensure!(tail.contains("event log failed"), "it does not say why:\n{tail}");

    clusterset
        .start_hub()
        .await
        .context("with room again it starts")?;
    let kept = events(&clusterset).await?;
    let last = kept.iter().map(|event| event.member_sequence).max().unwrap_or(0);
    ensure!(last >= acknowledged, "acknowledged {acknowledged}, kept {last}");
    clusterset.end().await
}

/// Prefix of a program whose files cannot grow beyond [`FILE_BLOCKS`]: a write beyond that fails as one to a full
/// volume does, once its signal is ignored.
pub(super) fn limited() -> Vec<OsString> {
    let limited = format!("trap '' XFSZ; ulimit -f {FILE_BLOCKS}; exec \"$0\" \"$@\"");
    vec!["sh".into(), "-c".into(), limited.into()]
}

/// A member reports until nothing is acknowledged any more; the last sequence number that was.
pub(super) async fn fill(clusterset: &LocalClusterset, cluster: &str) -> anyhow::Result<u64> {
    let mut member = Member::open(clusterset, cluster, hello(&format!("uid-of-{cluster}"))).await?;
    for number in 0..SLICES_MAX {
        if member.report([large(number)]).await.is_err() || member.settled().await.is_err() {
            break;
        }
    }
    ensure!(member.acknowledged > 0, "it never began");
    ensure!(
        member.acknowledged < u64::from(SLICES_MAX),
        "the limit was never met"
    );
    Ok(member.acknowledged)
}

/// A slice of many endpoints, another one for every number: of one that replaces another the log keeps a difference.
fn large(number: u32) -> Vec<u8> {
    let mut value = slice("large", &format!("slice-{number}"), &["10.0.0.1"]);
    value.endpoints = (0..ENDPOINTS)
        .map(|index| {
            let [_, high, middle, low] = (number.wrapping_mul(1_000) + index as u32).to_be_bytes();
            v1::Endpoint {
                addresses: vec![format!("10.{high}.{middle}.{low}")],
                zone: Some(format!("zone-{index}")),
                ..value.endpoints[0].clone()
            }
        })
        .collect();
    encoded(v1::fact::Fact::EndpointSliceUpserted(value))
}

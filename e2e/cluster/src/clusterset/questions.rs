//! Questions to a hub that several stories ask. They ask; the stories judge.

use std::{collections::BTreeSet, fs, path::Path};

use super::{LocalClusterset, eventually::eventually};
use anyhow::Context;
use proto::v1;

/// Events in one page.
const PAGE: u32 = 1_000;

/// The epoch, and every event from a revision on, as an operator reads them.
pub async fn epoch_and_events(
    clusterset: &LocalClusterset,
    from_revision: u64,
) -> anyhow::Result<(String, Vec<v1::Event>)> {
    let mut log = clusterset.inspect().await?.log;
    let mut next = from_revision.max(1);
    let mut events = Vec::new();
    loop {
        let request = v1::ListEventsRequest {
            from_revision: next,
            limit: PAGE,
            ..Default::default()
        };
        let page = log.list(request).await?.into_inner();
        events.extend(page.events);
        match page.next_revision {
            0 => return Ok((page.epoch, events)),
            further => next = further,
        }
    }
}

/// Every event from a revision on.
pub async fn events_from(clusterset: &LocalClusterset, from_revision: u64) -> anyhow::Result<Vec<v1::Event>> {
    Ok(epoch_and_events(clusterset, from_revision).await?.1)
}

/// Every event.
pub async fn events(clusterset: &LocalClusterset) -> anyhow::Result<Vec<v1::Event>> {
    events_from(clusterset, 1).await
}

/// The kinds of a cluster's events, in order.
pub async fn kinds(clusterset: &LocalClusterset, cluster: &str) -> anyhow::Result<Vec<String>> {
    let events = events(clusterset).await?;
    let of = events.into_iter().filter(|event| event.cluster == cluster);
    Ok(of.map(|event| event.kind).collect())
}

/// The whole state, all of its pages.
pub async fn state(clusterset: &LocalClusterset) -> anyhow::Result<v1::GetStateResponse> {
    let mut inspection = clusterset.inspect().await?;
    let mut all = v1::GetStateResponse::default();
    loop {
        let asked = v1::GetStateRequest {
            page_token: all.next_page_token.clone(),
            ..Default::default()
        };
        let mut page = inspection.state.get(asked).await?.into_inner();
        all.members.append(&mut page.members);
        all.exports.append(&mut page.exports);
        all.imports.append(&mut page.imports);
        all.profiles.append(&mut page.profiles);
        let v1::GetStateResponse {
            members,
            exports,
            imports,
            profiles,
            ..
        } = all;
        all = v1::GetStateResponse {
            members,
            exports,
            imports,
            profiles,
            ..page
        };
        if all.next_page_token.is_empty() {
            return Ok(all);
        }
    }
}

/// Waits until these clusters are connected and have listed.
pub async fn listed(clusterset: &LocalClusterset, clusters: &[&str]) -> anyhow::Result<()> {
    eventually(
        &format!("{} are connected and listed", clusters.join(", ")),
        async || {
            let state = state(clusterset).await?;
            let ready: BTreeSet<&str> = state
                .members
                .iter()
                .filter(|member| member.listed && member.connected)
                .map(|member| member.cluster.as_str())
                .collect();
            Ok(clusters
                .iter()
                .all(|cluster| ready.contains(cluster))
                .then_some(()))
        },
    )
    .await
}

/// Copies a directory that nobody writes to.
pub fn copy_directory(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Waits until a program's log holds a text, and returns the line.
pub async fn said(log: &Path, text: &str) -> anyhow::Result<String> {
    eventually(&format!("{} says {text:?}", log.display()), async || {
        let log = fs::read_to_string(log)?;
        Ok(log
            .lines()
            .rev()
            .find(|line| line.contains(text))
            .map(str::to_owned))
    })
    .await
}

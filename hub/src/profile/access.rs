//! Owns: the access providers that an operator names for members (KEP-4322): reading the file of `--access-providers`,
//! what is refused in it, and which of them a member has. An accepted one fits the stricter of both versions of
//! ClusterProfile.
//! Never: makes up one, holds a secret, or asks whether anything answers there.

mod document;
mod rules;

use std::{path::Path, sync::Arc};

use anyhow::{Context, bail, ensure};
use shared::{
    api::cluster_profile::AccessProvider,
    model::{ClusterId, policy::Pattern},
};

/// Longest file that is read, in bytes: a thousand members with a certificate each.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most groups in a file.
const GROUPS_MAX: usize = 10_000;
/// Most providers of one member.
const PROVIDERS_MAX: usize = 64;

/// Access providers in members' profiles. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct AccessProviders(Arc<[Group]>);

/// Members that have the same providers.
#[derive(Debug)]
struct Group {
    clusters: Vec<Pattern>,
    providers: Arc<[AccessProvider]>,
}

impl AccessProviders {
    /// Reads a file; nothing of one that holds a mistake is taken.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let about = || format!("--access-providers {}", path.display());
        let size = std::fs::metadata(path).with_context(|| format!("{} cannot be read", about()))?;
        if size.len() > FILE_BYTES_MAX {
            bail!("{} is longer than {FILE_BYTES_MAX} bytes", about());
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", about()))?;
        Self::parse(&text).with_context(about)
    }

    /// Reads a document, YAML or JSON.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let document = document::read(text)?;
        ensure!(
            document.clusters.len() <= GROUPS_MAX,
            "clusters has {} entries, more than {GROUPS_MAX}",
            document.clusters.len()
        );
        let mut groups = Vec::new();
        for (place, group) in document.clusters.into_iter().enumerate() {
            let group = rules::group(group).with_context(|| format!("clusters[{place}]"))?;
            groups.push(group);
        }
        Ok(Self(groups.into()))
    }

    /// The access providers of a member: the first group that names it counts, by its id or by a pattern.
    pub(super) fn of(&self, cluster: &ClusterId) -> Arc<[AccessProvider]> {
        let named = |group: &&Group| {
            let mut patterns = group.clusters.iter();
            patterns.any(|pattern| pattern.matches(cluster.as_str()))
        };
        let group = self.0.iter().find(named);
        group.map(|group| group.providers.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;

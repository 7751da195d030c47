//! Owns: which clustersets a process serves, by the file of `--clustersets`, and what two of them cannot share.
//! Never: opens what the file names, but to tell two directories from one.

mod document;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::SocketAddr,
    path::{Component, Path, PathBuf, absolute},
};

use anyhow::{Context, bail, ensure};
use shared::model::Clusterset;

use crate::{args::SetArgs, profile};

/// Most clustersets of one process: each takes four threads, a log and a share of the sockets.
pub const SETS_MAX: usize = 16;
/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// For checking a name before any certificate is read, which alone names the trust domain.
const ANY_TRUST_DOMAIN: &str = "any.tributary.dev";

/// The clustersets of a process, at least one, by the names that their certificates must have.
#[derive(Debug)]
pub(super) struct Layout {
    /// The file.
    pub(super) file: PathBuf,
    pub(super) sets: Vec<(String, SetArgs)>,
}

impl Layout {
    /// Reads a file for a process whose admin port is this one; nothing of a file that holds a mistake is served.
    pub(super) fn read(file: &Path, admin: SocketAddr) -> anyhow::Result<Self> {
        let about = || format!("--clustersets {}", file.display());
        let size = fs::metadata(file).with_context(|| format!("{} cannot be read", about()))?;
        if size.len() > FILE_BYTES_MAX {
            bail!("{} is longer than {FILE_BYTES_MAX} bytes", about());
        }
        let text = fs::read_to_string(file).with_context(|| format!("{} cannot be read", about()))?;
        Ok(Self {
            file: file.to_owned(),
            sets: parse(&text, admin).with_context(about)?,
        })
    }
}

fn parse(text: &str, admin: SocketAddr) -> anyhow::Result<Vec<(String, SetArgs)>> {
    let entries = document::read(text)?.clustersets;
    ensure!(!entries.is_empty(), "clustersets names none: name at least one");
    ensure!(
        entries.len() <= SETS_MAX,
        "clustersets names {}, more than the {SETS_MAX} that one process serves: start another one for the rest",
        entries.len()
    );
    let mut taken = Taken::by_the_process(admin);
    let mut sets = Vec::new();
    for (place, entry) in entries.into_iter().enumerate() {
        let about = format!("clustersets[{place}], {:?}", entry.name);
        let name = entry.name.clone();
        let flags = entry.flags().with_context(|| about.clone())?;
        taken.take(&name, &flags).context(about)?;
        sets.push((name, flags));
    }
    Ok(sets)
}

/// Resources that only one clusterset can have, with their owner.
struct Taken {
    names: BTreeSet<String>,
    data: Vec<(PathBuf, String)>,
    ports: Vec<(SocketAddr, String)>,
    inventories: BTreeMap<String, String>,
    enrols: Option<String>,
}

impl Taken {
    fn by_the_process(admin: SocketAddr) -> Self {
        Self {
            names: BTreeSet::new(),
            data: Vec::new(),
            ports: vec![(admin, "the admin port (--admin)".into())],
            inventories: BTreeMap::new(),
            enrols: None,
        }
    }

    /// Everything that a clusterset wants for itself, or an error that says who has it.
    fn take(&mut self, name: &str, flags: &SetArgs) -> anyhow::Result<()> {
        let clusterset = Clusterset::new(ANY_TRUST_DOMAIN, name)?;
        if !self.names.insert(name.to_owned()) {
            bail!("name: another clusterset of the file has it; each needs a name of its own");
        }
        let data = place(&flags.data)?;
        if let Some((_, owner)) = self.data.iter().find(|(other, _)| overlap(other, &data)) {
            let data = flags.data.display();
            bail!(
                "data: {data} is, holds or lies in the data directory of {owner}; each needs one of its own"
            );
        }
        self.data.push((data, name.to_owned()));
        let ports = [
            ("listen", Some(flags.listen)),
            ("join.listen", flags.join.join_listen),
        ];
        for (field, port) in ports {
            let Some(port) = port else { continue };
            if let Some((_, owner)) = self.ports.iter().find(|(other, _)| same_port(*other, port)) {
                bail!("{field}: {port} is the port of {owner}; each needs one of its own");
            }
            self.ports.push((port, format!("{name} ({field})")));
        }
        let default = || profile::default_namespace(&clusterset);
        let inventory = flags.inventory_namespace.clone().unwrap_or_else(default);
        // Each would delete the profiles of the other's members there.
        if let Some(owner) = self.inventories.insert(inventory.clone(), name.to_owned()) {
            bail!("inventoryNamespace: {inventory} is that of {owner}; each needs one of its own");
        }
        if flags.enrolment.topology_enrolment.is_some()
            && let Some(owner) = self.enrols.replace(name.to_owned())
        {
            bail!(
                "topologyEnrolment: the Clusters here become members of {owner}, and a cluster is a member of one: take it \
                 out of one of both"
            );
        }
        Ok(())
    }
}

/// The real path of a directory: two ways to it are one place.
fn place(path: &Path) -> anyhow::Result<PathBuf> {
    let path = absolute(path).with_context(|| format!("data: {:?} is no path", path.display()))?;
    if let Ok(found) = path.canonicalize() {
        return Ok(found);
    }
    let path = path.components().fold(PathBuf::new(), |mut at, component| {
        match component {
            Component::ParentDir => drop(at.pop()),
            component => at.push(component),
        }
        at
    });
    let mut missing = Vec::new();
    let mut existing = path.as_path();
    loop {
        if let Ok(found) = existing.canonicalize() {
            return Ok(missing.iter().rev().fold(found, |at, name| at.join(name)));
        }
        let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else {
            return Ok(path);
        };
        missing.push(name);
        existing = parent;
    }
}

fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Returns true if two sockets cannot listen at both. Port 0 is a different one each time.
fn same_port(one: SocketAddr, other: SocketAddr) -> bool {
    let everywhere = one.ip().is_unspecified() || other.ip().is_unspecified();
    one.port() != 0 && one.port() == other.port() && (everywhere || one.ip() == other.ip())
}

#[cfg(test)]
mod tests;

//! The keys of a log in its engine. They are frozen, and sort as positions do.

use model::{Clusterset, Epoch, Revision};

use super::{
    names::Replica,
    text::{from_hex, hex},
};

/// Which log of a clusterset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogName {
    /// The events of the clusterset.
    Events,
    /// The decisions about topologies.
    Topology,
}

impl LogName {
    /// The word for it in keys.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Topology => "topology",
        }
    }
}

/// Keys from one until before another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// The first key.
    pub from: String,
    /// The first key behind.
    pub to: String,
}

/// The keys of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys(String);

impl Keys {
    /// Those of a log of a clusterset.
    pub fn new(clusterset: &Clusterset, log: LogName) -> Self {
        let (domain, set) = (clusterset.trust_domain(), clusterset.name());
        Self(format!("/tributary/1/{domain}/{set}/{}/", log.as_str()))
    }

    /// All of them.
    pub fn all(&self) -> KeyRange {
        below(self.0.clone())
    }

    /// The head's key.
    pub fn head(&self) -> String {
        self.key("head")
    }

    /// The pulse's key.
    pub fn pulse(&self) -> String {
        self.key("pulse")
    }

    /// The key of the batch with this first event.
    pub fn batch(&self, epoch: Epoch, first: Revision) -> String {
        self.key(&format!("batch/{}/{:016x}", hex(&epoch.to_bytes()), first.0))
    }

    /// The batches from a position on, those of later epochs included.
    pub fn batches_from(&self, epoch: Epoch, first: Revision) -> KeyRange {
        KeyRange {
            from: self.batch(epoch, first),
            ..below(self.key("batch/"))
        }
    }

    /// The batches before a position, those of earlier epochs included.
    pub fn batches_below(&self, epoch: Epoch, first: Revision) -> KeyRange {
        KeyRange {
            to: self.batch(epoch, first),
            ..below(self.key("batch/"))
        }
    }

    /// Reads the key of a batch.
    pub fn parse_batch(&self, key: &str) -> Option<(Epoch, Revision)> {
        let rest = key.strip_prefix(&self.0)?.strip_prefix("batch/")?;
        let (epoch, first) = rest.split_once('/')?;
        let first = Revision(u64::from_be_bytes(from_hex(first)?));
        Some((Epoch::from_bytes(from_hex(epoch)?), first))
    }

    /// The key of an epoch's base.
    pub fn base(&self, epoch: Epoch) -> String {
        self.key(&format!("base/{}", hex(&epoch.to_bytes())))
    }

    /// The bases of all epochs.
    pub fn bases(&self) -> KeyRange {
        below(self.key("base/"))
    }

    /// Reads the key of a base.
    pub fn parse_base(&self, key: &str) -> Option<Epoch> {
        let epoch = key.strip_prefix(&self.0)?.strip_prefix("base/")?;
        from_hex(epoch).map(Epoch::from_bytes)
    }

    /// The key of an announced hub.
    pub fn hub(&self, replica: &Replica) -> String {
        self.key(&format!("hubs/{replica}"))
    }

    /// All announced hubs.
    pub fn hubs(&self) -> KeyRange {
        below(self.key("hubs/"))
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.0)
    }
}

/// All keys that begin with a text that ends with a slash.
fn below(from: String) -> KeyRange {
    // The byte behind the slash.
    let to = format!("{}0", from.trim_end_matches('/'));
    KeyRange { from, to }
}

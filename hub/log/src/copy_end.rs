//! Owns: the file that says up to where a copy of a log is to reach, so that one that was cut short afterwards is not taken
//! for the log of a moment before.
//! Never: reads a log. A copy of a stopped hub's directory has no such file, and is what its chain says.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
};

use model::{Clusterset, Cursor};
use serde::{Deserialize, Serialize};

use super::verify::{LogReport, Report};

/// The name of the file, beside the segments.
const FILE: &str = "backup-end.json";

/// The last event of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyEnd {
    /// The clusterset, as the log names it.
    pub clusterset: String,
    /// The epoch, as cursors print it.
    pub epoch: String,
    /// The revision in it.
    pub revision: u64,
}

impl CopyEnd {
    /// The end of a copy of this clusterset's log at a position.
    pub fn at(clusterset: &Clusterset, position: Cursor) -> Self {
        Self {
            clusterset: clusterset.to_string(),
            epoch: position.epoch.to_string(),
            revision: position.revision.0,
        }
    }

    pub(super) fn write(&self, copy: &Path) -> io::Result<()> {
        let mut file = File::create_new(copy.join(FILE))?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        File::open(copy)?.sync_all()
    }

    /// The one of a copy, if it was made by a running hub.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or says something else.
    pub fn read(copy: &Path) -> io::Result<Option<Self>> {
        match fs::read(copy.join(FILE)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if the copy reaches it; it may have more since, from a hub that was started over it.
    pub fn is_reached(&self, found: &Report) -> bool {
        let of = |log: &&LogReport| log.clusterset == self.clusterset;
        let epochs = found.logs.iter().filter(of).flat_map(|log| &log.epochs);
        epochs
            .filter(|epoch| epoch.epoch.to_string() == self.epoch)
            .any(|epoch| epoch.first.0 + epoch.events > self.revision)
    }
}

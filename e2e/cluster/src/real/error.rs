//! Owns: what can go wrong with real clusters, in words that say what to do.
//! Never: decides whether a test is ignored or failed (`suite` does).

use std::path::{Path, PathBuf};

/// Real clusters cannot run on this machine as it stands; one line says why and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unavailable {
    /// One line: what is missing and which command provides it.
    pub reason: String,
}

/// A failure of the harness for real clusters.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The programs are not there: nothing was tried.
    #[error("real clusters are unavailable: {0}")]
    Unavailable(#[from] Unavailable),
    /// A component ended, or did not become ready.
    #[error("{component} {why}; end of {log}:\n{tail}", log = log.display())]
    Component {
        /// The component and its cluster.
        component: String,
        /// Its failure.
        why: String,
        /// Its complete log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// The file system or a process refused.
    #[error("cannot {action}: {source}")]
    Io {
        /// The attempted action.
        action: String,
        /// The reason.
        source: std::io::Error,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The API server answered with an error, or not at all.
    #[error("the API server refused: {0}")]
    Api(#[from] kube::Error),
    /// The caller asked for something the harness does not do.
    #[error("{0}")]
    Usage(String),
}

impl Error {
    /// An error of the file system at `path`.
    pub(super) fn io(verb: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let action = format!("{verb} {}", path.display());
        move |source| Error::Io { action, source }
    }
}

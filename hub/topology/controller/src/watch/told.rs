//! Owns: why an API server does not show something, in its own words, and what to do.

use kube::{core::Status, runtime::watcher::Error};

/// The next step for a failing watch; `rights` are the settings of the chart that give them.
pub(crate) fn told(error: &Error, rights: &str) -> String {
    match error {
        Error::InitialListFailed(error) | Error::WatchStartFailed(error) | Error::WatchFailed(error) => {
            refused(error, rights)
        }
        Error::WatchError(status) => words(status, rights),
        Error::NoResourceVersion => "the API server says no version of what it listed".to_owned(),
    }
}

/// The API server's refusal, in words.
pub(super) fn refused(error: &kube::Error, rights: &str) -> String {
    match error {
        kube::Error::Api(status) => words(status, rights),
        other => other.to_string(),
    }
}

fn words(status: &Status, rights: &str) -> String {
    let Status { message, code, .. } = status;
    match code {
        403 => format!("{message}: give the hub its rights, --set {rights} of its chart"),
        _ => format!("{message} (HTTP {code})"),
    }
}

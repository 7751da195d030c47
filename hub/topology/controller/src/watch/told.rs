//! Owns: why an API server does not show something, in its own words, and what to do.

use kube::{core::Status, runtime::watcher::Error};

/// The next step for a failing watch.
pub(super) fn told(error: &Error) -> String {
    match error {
        Error::InitialListFailed(error) | Error::WatchStartFailed(error) | Error::WatchFailed(error) => {
            refused(error)
        }
        Error::WatchError(status) => words(status),
        Error::NoResourceVersion => "the API server says no version of what it listed".to_owned(),
    }
}

/// The API server's refusal, in words.
pub(super) fn refused(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => words(status),
        other => other.to_string(),
    }
}

fn words(status: &Status) -> String {
    let Status { message, code, .. } = status;
    match code {
        403 => format!("{message}: give the hub its rights, --set topology=observe of its chart"),
        _ => format!("{message} (HTTP {code})"),
    }
}

//! Requests about members in the words of the domain. A wrong word is refused with the valid ones.

use shared::{
    identity::Role,
    model::{ClusterId, KeyFingerprint, advice, fact::IDENTITY_STRING_BYTES_MAX},
};
use tonic::Status;

/// A cluster id.
pub(super) fn cluster(text: &str) -> Result<ClusterId, Status> {
    ClusterId::new(text).map_err(|error| {
        Status::invalid_argument(format!(
            "{error}; `{}` shows the members' ids",
            advice::member_list()
        ))
    })
}

/// A key fingerprint in a request: 64 hexadecimal digits, with or without colons; empty: none.
pub(super) fn key_fingerprint(text: &str) -> Result<Option<KeyFingerprint>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    KeyFingerprint::read(text)
        .map(Some)
        .map_err(Status::invalid_argument)
}

/// A cluster fingerprint in a request; empty: none.
pub(super) fn cluster_fingerprint(text: &str) -> Result<Option<Box<str>>, Status> {
    match text {
        "" => Ok(None),
        text if text.len() <= IDENTITY_STRING_BYTES_MAX && text.chars().all(|c| c.is_ascii_graphic()) => {
            Ok(Some(text.into()))
        }
        _ => Err(Status::invalid_argument(format!(
            "a cluster fingerprint is the uid of the namespace kube-system, at most {IDENTITY_STRING_BYTES_MAX} \
             characters without spaces: kubectl get namespace kube-system -o jsonpath='{{.metadata.uid}}'"
        ))),
    }
}

/// The key fingerprint of a revocation: there must be one.
pub(super) fn revoked_key(text: &str) -> Result<KeyFingerprint, Status> {
    KeyFingerprint::read(text).map_err(Status::invalid_argument)
}

/// The name in an operator's certificate.
pub(super) fn operator_name(text: &str) -> Result<Box<str>, Status> {
    let Ok(Role::Operator(name)) = Role::operator(text) else {
        return Err(Status::invalid_argument(
            "an operator's name is the last word of the URI in its certificate, a DNS label",
        ));
    };
    Ok(name)
}

/// The name in a reader's certificate.
pub(super) fn reader_name(text: &str) -> Result<Box<str>, Status> {
    let Ok(Role::Reader(name)) = Role::reader(text) else {
        return Err(Status::invalid_argument(
            "a reader's name is the last word of the URI in its certificate, a DNS label",
        ));
    };
    Ok(name)
}

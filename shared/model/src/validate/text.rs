//! Rules of plain text: identities, free strings, application protocols, DNS labels.
//! It knows forms and lengths; what a text means is for others.

use super::{InvalidValue, shown};
use crate::{
    fact::IDENTITY_STRING_BYTES_MAX, name::DNS_LABEL_BYTES_MAX, name::is_dns_label, name::is_dns_subdomain,
    service::SERVICE_STRING_BYTES_MAX,
};

/// A text of 1 to `bytes_max` bytes without control characters.
pub fn bounded_text(field: &str, value: &str, bytes_max: usize) -> Result<(), InvalidValue> {
    if value.is_empty() {
        return Err(InvalidValue::new(
            field,
            "is empty; leave it out or give it a value",
        ));
    }
    if value.len() > bytes_max {
        let problem = format!("has {} bytes; at most {bytes_max} are taken", value.len());
        return Err(InvalidValue::new(field, problem));
    }
    if value.chars().any(char::is_control) {
        let problem = format!("{} holds a control character; remove it", shown(value));
        return Err(InvalidValue::new(field, problem));
    }
    Ok(())
}

/// A uid, fingerprint or version: 1 to 128 bytes of visible ASCII.
pub fn identity(field: &str, value: &str) -> Result<(), InvalidValue> {
    bounded_text(field, value, IDENTITY_STRING_BYTES_MAX)?;
    if value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let problem = format!(
        "{} holds a character that is not visible ASCII; send it as the API server states it",
        shown(value)
    );
    Err(InvalidValue::new(field, problem))
}

/// A DNS label, as port names and hostnames are.
pub(super) fn dns_label(field: &str, value: &str) -> Result<(), InvalidValue> {
    if is_dns_label(value) {
        return Ok(());
    }
    let problem = format!(
        "{} is not a DNS label; use 1 to 63 of a-z, 0-9 and '-', alphanumeric at both ends",
        shown(value)
    );
    Err(InvalidValue::new(field, problem))
}

/// A DNS subdomain, as names of objects are.
pub(super) fn dns_subdomain(field: &str, value: &str) -> Result<(), InvalidValue> {
    if is_dns_subdomain(value) {
        return Ok(());
    }
    let problem = format!(
        "{} is not a DNS subdomain; use at most 253 of a-z, 0-9, '-' and '.', alphanumeric around each dot",
        shown(value)
    );
    Err(InvalidValue::new(field, problem))
}

/// True for the name part of a qualified name: 1 to 63 of `A-Za-z0-9-_.`, alphanumeric at both ends.
pub(super) fn is_qualified_part(value: &str) -> bool {
    let bytes = value.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            bytes.len() <= DNS_LABEL_BYTES_MAX
                && first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes
                    .iter()
                    .all(|&b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        }
        _ => false,
    }
}

/// True for a qualified name of Kubernetes: a name, or a DNS subdomain, a slash and a name.
pub(super) fn is_qualified_name(value: &str) -> bool {
    match value.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_qualified_part(name),
        None => is_qualified_part(value),
    }
}

/// An application protocol: a qualified name, for example `http` or `kubernetes.io/h2c`.
pub(super) fn app_protocol(value: Option<&str>) -> Result<(), InvalidValue> {
    match value {
        Some(value) if !is_qualified_name(value) => {
            let problem = format!(
                "{} is not a qualified name; use one such as \"http\" or \"example.org/protocol\"",
                shown(value)
            );
            Err(InvalidValue::new("appProtocol", problem))
        }
        _ => Ok(()),
    }
}

/// A policy of a Service. Its values are not enumerated here: a newer Kubernetes may have more of them.
pub(super) fn policy(field: &str, value: Option<&str>) -> Result<(), InvalidValue> {
    value.map_or(Ok(()), |value| {
        bounded_text(field, value, SERVICE_STRING_BYTES_MAX)
    })
}

/// A port number: anything but 0.
pub(super) fn port_number(value: u16) -> Result<(), InvalidValue> {
    match value {
        0 => Err(InvalidValue::new("port", "is 0; use 1 to 65535")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_are_visible_ascii_of_bounded_length() {
        for good in [
            "5d1c6c4e-6a52-4a0f-9d0a-0b8f8b9a2c11",
            "v1.36.3+k3s1",
            &"x".repeat(128),
        ] {
            assert_eq!(identity("uid", good), Ok(()), "{good}");
        }
        for (bad, problem) in [
            ("", "is empty"),
            ("a b", "visible ASCII"),
            ("a\u{7}", "control character"),
            ("ü", "visible ASCII"),
            (&"x".repeat(129), "at most 128"),
        ] {
            let message = identity("uid", bad).unwrap_err().to_string();
            assert!(
                message.starts_with("uid: ") && message.contains(problem),
                "{message}"
            );
        }
    }

    #[test]
    fn qualified_names_are_those_of_kubernetes() {
        for good in [
            "http",
            "HTTP",
            "a_b.c",
            "kubernetes.io/h2c",
            "x.y/Z",
            &format!("{}/n", "a".repeat(253)),
        ] {
            assert!(is_qualified_name(good), "{good}");
        }
        for bad in [
            "",
            "/",
            "a/",
            "/a",
            "a/b/c",
            "A.b/c",
            "-a",
            "a-",
            "a b",
            &"a".repeat(64),
            &format!("{}/n", "a".repeat(254)),
        ] {
            assert!(!is_qualified_name(bad), "{bad}");
        }
    }
}

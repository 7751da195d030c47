//! Rules of exported labels and annotations: Kubernetes' syntax, reserved keys, size.
//! They guard importing clusters: an exporter must not be able to forge what programs read from objects there.

use super::{
    InvalidValue, shown,
    text::{is_qualified_name, is_qualified_part},
};
use crate::model::{Metadata, service::EXPORTED_METADATA_BYTES_MAX};

/// Domains whose keys, and those of all their subdomains, nobody may export.
const RESERVED_DOMAINS: [&str; 3] = ["kubernetes.io", "k8s.io", "tributary.dev"];

/// True for keys whose prefix is a reserved domain or one of its subdomains.
pub fn is_reserved_key(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    // Annotation keys compare without case in the API server's syntax check, so a capital must not help.
    let prefix = prefix.to_ascii_lowercase();
    RESERVED_DOMAINS
        .iter()
        .any(|domain| match prefix.strip_suffix(domain) {
            Some(rest) => rest.is_empty() || rest.ends_with('.'),
            None => false,
        })
}

/// A key of an exported label.
pub fn label_key(key: &str) -> Result<(), InvalidValue> {
    check_key("exportedLabels", key, is_qualified_name(key))
}

/// A key of an exported annotation: as a label's, but the prefix may have capitals, as in the API server.
pub fn annotation_key(key: &str) -> Result<(), InvalidValue> {
    check_key(
        "exportedAnnotations",
        key,
        is_qualified_name(&key.to_ascii_lowercase()),
    )
}

fn check_key(field: &str, key: &str, well_formed: bool) -> Result<(), InvalidValue> {
    let field = format!("{field}[{}]", shown(key));
    if !well_formed {
        let problem = "is no key that Kubernetes takes; use a name of 1 to 63 of A-Z, a-z, 0-9, '-', '_' and '.', \
                       optionally after a DNS subdomain and a slash";
        return Err(InvalidValue::new(field, problem));
    }
    if is_reserved_key(key) {
        let problem = "is reserved (kubernetes.io, k8s.io, tributary.dev and their subdomains); \
                       use a key of a domain of your own";
        return Err(InvalidValue::new(field, problem));
    }
    Ok(())
}

/// The value of an exported label.
pub fn label_value(key: &str, value: &str) -> Result<(), InvalidValue> {
    if value.is_empty() || is_qualified_part(value) {
        return Ok(());
    }
    let field = format!("exportedLabels[{}]", shown(key));
    let problem = format!(
        "{} is no label value; use at most 63 of A-Z, a-z, 0-9, '-', '_' and '.', alphanumeric at both ends",
        shown(value)
    );
    Err(InvalidValue::new(field, problem))
}

/// Everything that an export carries along: syntax, reserved keys, and the size of both maps together.
pub fn metadata(labels: &Metadata, annotations: &Metadata) -> Result<(), InvalidValue> {
    let bytes: usize = labels
        .iter()
        .chain(annotations)
        .map(|(key, value)| key.len() + value.len())
        .sum();
    if bytes > EXPORTED_METADATA_BYTES_MAX {
        let problem = format!(
            "with exportedAnnotations have {bytes} bytes; at most {EXPORTED_METADATA_BYTES_MAX} are taken: \
             export fewer or shorter ones"
        );
        return Err(InvalidValue::new("exportedLabels", problem));
    }
    for (key, value) in labels {
        label_key(key)?;
        label_value(key, value)?;
    }
    annotations.keys().try_for_each(|key| annotation_key(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_are_the_domains_and_their_subdomains_only() {
        for reserved in [
            "kubernetes.io/x",
            "k8s.io/x",
            "app.kubernetes.io/name",
            "multicluster.kubernetes.io/derived-service",
            "a.b.k8s.io/x",
            "tributary.dev/revision",
            "x.tributary.dev/y",
            "Kubernetes.IO/x",
        ] {
            assert!(is_reserved_key(reserved), "{reserved}");
        }
        for free in [
            "app",
            "kubernetes.io",
            "x-k8s.io/y",
            "mykubernetes.io/x",
            "k8s.io.example/x",
            "a/k8s.io",
        ] {
            assert!(!is_reserved_key(free), "{free}");
        }
    }

    #[test]
    fn labels_have_kubernetes_syntax() {
        for (key, value) in [
            ("app", ""),
            ("example.org/Tier", "Front_end.1"),
            ("a", &"v".repeat(63)),
        ] {
            assert_eq!(
                label_key(key).and(label_value(key, value)),
                Ok(()),
                "{key}={value}"
            );
        }
        for (key, value, problem) in [
            ("", "x", "is no key"),
            ("a b", "x", "is no key"),
            ("Example.org/x", "x", "is no key"),
            ("a", "-x", "is no label value"),
            ("a", "x y", "is no label value"),
            ("a", &"v".repeat(64), "is no label value"),
            ("k8s.io/x", "x", "is reserved"),
        ] {
            let message = label_key(key)
                .and(label_value(key, value))
                .unwrap_err()
                .to_string();
            assert!(
                message.starts_with("exportedLabels[") && message.contains(problem),
                "{message}"
            );
        }
    }

    #[test]
    fn annotations_take_any_value_and_a_capital_prefix() {
        let annotations = Metadata::from([("Example.org/Note".into(), "two\nlines ü".into())]);
        assert_eq!(metadata(&Metadata::new(), &annotations), Ok(()));
        assert!(annotation_key("a b").is_err() && annotation_key("K8S.io/x").is_err());
    }

    #[test]
    fn both_maps_count_towards_one_size() {
        let value = "v".repeat(EXPORTED_METADATA_BYTES_MAX - 2);
        let annotations = Metadata::from([("a".into(), value.into())]);
        assert_eq!(
            metadata(&Metadata::from([("b".into(), "".into())]), &annotations),
            Ok(())
        );
        let message = metadata(&Metadata::from([("b".into(), "x".into())]), &annotations)
            .unwrap_err()
            .to_string();
        assert!(message.contains("at most 32768"), "{message}");
    }
}

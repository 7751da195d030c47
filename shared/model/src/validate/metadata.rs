//! Rules of exported labels and annotations: Kubernetes' syntax, reserved keys, size.
//! They guard importing clusters: an exporter must not be able to forge what programs read from objects there.

use super::{
    InvalidValue, shown,
    text::{is_qualified_name, is_qualified_part},
};
use crate::{Metadata, service::EXPORTED_METADATA_BYTES_MAX};

/// Prefixes of keys that Kubernetes' own programs read from imported objects. Subdomains are not reserved:
/// `app.kubernetes.io/name` and `service.kubernetes.io/topology-mode` are what exporting metadata is for.
const RESERVED_PREFIXES: [&str; 2] = ["kubernetes.io", "multicluster.kubernetes.io"];
/// Our own domain: nobody exports its keys, nor those of its subdomains.
const OWN_DOMAIN: &str = "tributary.dev";
/// The label by which the agent finds the objects that it made.
const OWNER_KEY: &str = "app.kubernetes.io/managed-by";
/// Labels with which kube-proxy leaves a Service alone: on a derived Service they would end its clusterset IP in every
/// cluster.
const UNSERVED_KEYS: [&str; 2] = [
    "service.kubernetes.io/headless",
    "service.kubernetes.io/service-proxy-name",
];
/// Keys by which controllers know whose EndpointSlice it is.
const SLICE_PREFIX: &str = "endpointslice.kubernetes.io/";
/// The reserved keys, for messages.
const RESERVED_IN_WORDS: &str = "kubernetes.io/, multicluster.kubernetes.io/, tributary.dev/, app.kubernetes.io/managed-by, and headless and \
     service-proxy-name of service.kubernetes.io/";
/// Domains of labels and annotations by which other controllers act on the object that carries them: they delete it,
/// adopt it, or route by it. An importing cluster carries none of them, nor of their subdomains, unless told to.
const OTHER_CONTROLLERS: [&str; 8] = [
    "argoproj.io",
    "cilium.io",
    "fluxcd.io",
    "helm.sh",
    "istio.io",
    "knative.dev",
    "linkerd.io",
    "openshift.io",
];

/// True for keys that nobody may export.
pub fn is_reserved_key(key: &str) -> bool {
    // Annotation keys compare without case in the API server's syntax check, so a capital must not help.
    let key = key.to_ascii_lowercase();
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    key == OWNER_KEY
        || UNSERVED_KEYS.contains(&&*key)
        || RESERVED_PREFIXES.contains(&prefix)
        || is_within(prefix, OWN_DOMAIN)
}

/// True for keys that importing clusters leave out by default, because other controllers act on them.
pub fn is_another_controllers_key(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    let prefix = prefix.to_ascii_lowercase();
    OTHER_CONTROLLERS.iter().any(|domain| is_within(&prefix, domain))
}

fn is_within(prefix: &str, domain: &str) -> bool {
    let rest = prefix.strip_suffix(domain);
    rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
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
        let problem = format!("is reserved ({RESERVED_IN_WORDS}); use a key of a domain of your own");
        return Err(InvalidValue::new(field, problem));
    }
    Ok(())
}

/// A label that a cluster puts on every object that an agent makes. By the labels of an EndpointSlice's domain other
/// controllers know their own slices.
pub fn object_label(key: &str, value: &str) -> Result<(), InvalidValue> {
    label_key(key)?;
    label_value(key, value)?;
    if key.starts_with(SLICE_PREFIX) {
        let problem = format!("is reserved ({SLICE_PREFIX}); use a key of a domain of your own");
        return Err(InvalidValue::new(format!("label[{}]", shown(key)), problem));
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

/// Takes out of both maps what an export cannot carry, and returns each key that went with the reason. Labels come
/// first, then annotations, each in the order of their keys; one that does not fit into the rest of
/// [`EXPORTED_METADATA_BYTES_MAX`] goes, and smaller ones behind it stay. So an edit of metadata leaves the export valid.
pub fn leave_out_metadata(labels: &mut Metadata, annotations: &mut Metadata) -> Vec<InvalidValue> {
    let bytes = size(labels, annotations);
    let mut room = EXPORTED_METADATA_BYTES_MAX;
    let mut left_out = Vec::new();
    let mut keep = |field: &str, key: &str, value: &str, verdict: Result<(), InvalidValue>| {
        let verdict = verdict.and_then(|()| match room.checked_sub(key.len() + value.len()) {
            Some(rest) => {
                room = rest;
                Ok(())
            }
            None => Err(InvalidValue::new(
                format!("{field}[{}]", shown(key)),
                format!(
                    "does not fit: exportedLabels and exportedAnnotations have {bytes} bytes, and at most \
                     {EXPORTED_METADATA_BYTES_MAX} are exported; export fewer or shorter ones"
                ),
            )),
        });
        verdict.map_err(|problem| left_out.push(problem)).is_ok()
    };
    labels.retain(|key, value| {
        let verdict = label_key(key).and_then(|()| label_value(key, value));
        keep("exportedLabels", key, value, verdict)
    });
    annotations.retain(|key, value| keep("exportedAnnotations", key, value, annotation_key(key)));
    left_out
}

fn size(labels: &Metadata, annotations: &Metadata) -> usize {
    let all = labels.iter().chain(annotations);
    all.map(|(key, value)| key.len() + value.len()).sum()
}

/// Everything that an export carries along: syntax, reserved keys, and the size of both maps together.
pub fn metadata(labels: &Metadata, annotations: &Metadata) -> Result<(), InvalidValue> {
    let bytes = size(labels, annotations);
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
    fn reserved_are_the_keys_that_kubernetes_and_tributary_read_on_imports() {
        for reserved in [
            "kubernetes.io/x",
            "multicluster.kubernetes.io/derived-service",
            "app.kubernetes.io/managed-by",
            "service.kubernetes.io/headless",
            "service.kubernetes.io/service-proxy-name",
            "tributary.dev/revision",
            "x.tributary.dev/y",
            "Kubernetes.IO/x",
            "App.Kubernetes.io/Managed-By",
        ] {
            assert!(is_reserved_key(reserved), "{reserved}");
        }
        for free in [
            "app",
            "kubernetes.io",
            "app.kubernetes.io/name",
            "app.kubernetes.io/part-of",
            "service.kubernetes.io/topology-mode",
            "external-dns.alpha.kubernetes.io/hostname",
            "node.k8s.io/zone",
            "x-k8s.io/y",
            "mykubernetes.io/x",
            "k8s.io.example/x",
            "a/k8s.io",
            "nottributary.dev/x",
        ] {
            assert!(!is_reserved_key(free), "{free}");
        }
    }

    #[test]
    fn keys_of_other_controllers_are_known_by_their_domains() {
        for key in [
            "service.cilium.io/affinity",
            "Meta.Helm.sh/release-name",
            "istio.io/rev",
        ] {
            assert!(is_another_controllers_key(key), "{key}");
        }
        for key in ["cilium.io", "notistio.io/rev", "team", "app.kubernetes.io/name"] {
            assert!(!is_another_controllers_key(key), "{key}");
        }
    }

    fn map(pairs: &[(&str, &str)]) -> Metadata {
        let pairs = pairs.iter();
        pairs.map(|&(key, value)| (key.into(), value.into())).collect()
    }

    #[test]
    fn what_cannot_be_exported_is_left_out_and_named() {
        let mut labels = map(&[
            ("a b", "x"),
            ("app.kubernetes.io/name", "db"),
            ("kubernetes.io/hostname", "x"),
            ("team", "a team"),
            ("tier", "web"),
        ]);
        let mut annotations = map(&[("note", "two\nlines"), ("tributary.dev/revision", "7")]);
        let left_out = leave_out_metadata(&mut labels, &mut annotations);
        assert_eq!(labels, map(&[("app.kubernetes.io/name", "db"), ("tier", "web")]));
        assert_eq!(annotations, map(&[("note", "two\nlines")]));
        let fields: Vec<&str> = left_out.iter().map(|problem| &*problem.field).collect();
        assert_eq!(
            fields,
            [
                "exportedLabels[\"a b\"]",
                "exportedLabels[\"kubernetes.io/hostname\"]",
                "exportedLabels[\"team\"]",
                "exportedAnnotations[\"tributary.dev/revision\"]"
            ]
        );
        assert_eq!(metadata(&labels, &annotations), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_left_out_in_the_order_of_the_keys() {
        let half = "v".repeat(EXPORTED_METADATA_BYTES_MAX / 2);
        let mut labels = map(&[("tier", "web")]);
        let mut annotations = map(&[("a", &half), ("b", &half), ("c", "small")]);
        let left_out = leave_out_metadata(&mut labels, &mut annotations);
        let kept: Vec<&str> = annotations.keys().map(|key| &**key).collect();
        assert_eq!((labels.len(), &kept[..]), (1, &["a", "c"][..]));
        let words: Vec<String> = left_out.iter().map(ToString::to_string).collect();
        assert_eq!(words.len(), 1);
        assert!(
            words[0].starts_with("exportedAnnotations[\"b\"]: does not fit") && words[0].contains("32768"),
            "{words:?}"
        );
        assert_eq!(metadata(&labels, &annotations), Ok(()));
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
            ("kubernetes.io/x", "x", "is reserved"),
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
        assert!(annotation_key("a b").is_err() && annotation_key("Kubernetes.io/x").is_err());
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

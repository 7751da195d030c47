//! Owns: the names of a topology's objects: the same for the same cluster and place, at every call.
//! Never: draws one. An object made before a crash has the name that is looked for after it.

use serde_json::json;
use sha2::{Digest, Sha256};

use crate::{
    model::{Cluster, WorkerKind},
    template,
};

/// Workers by their kind and their name in the topology.
pub(super) type Of<'a> = Option<(WorkerKind, &'a str)>;

/// The letters of a suffix: those of Kubernetes' own, without what makes words.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Letters of a suffix.
const SUFFIX: usize = 5;
/// Longest name, characters.
const MAX_NAME: usize = 63;

/// Names of one cluster's objects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    cluster: &'a Cluster,
}

impl<'a> Names<'a> {
    /// Those of a cluster.
    pub(super) fn of(cluster: &'a Cluster) -> Self {
        Self { cluster }
    }

    /// The name of the object of a place, which it keeps while it lives. `naming` is the class's template of it.
    ///
    /// # Errors
    ///
    /// One line: the template makes no name.
    pub(super) fn object(self, place: &str, workers: Of<'_>, naming: Option<&str>) -> Result<String, String> {
        let random = self.suffix(place, "", "");
        let Some(naming) = naming else {
            return Ok(joined(&self.base(workers), &random));
        };
        let mut variables = json!({"cluster": {"name": self.cluster.name}, "random": random});
        if let Some((kind, name)) = workers {
            variables[kind.builtin()] = json!({"topologyName": name});
        }
        let outcome = template::render(naming, variables.to_string().as_bytes());
        let made = outcome.rendered.and_then(|made| String::from_utf8(made).ok());
        let made = made.filter(|made| !made.is_empty() && outcome.findings.is_empty());
        let made = made.ok_or_else(|| format!("the template {naming} makes no name"))?;
        Ok(match made.len() {
            ..=MAX_NAME => made,
            _ => format!("{}{random}", front(&made)),
        })
    }

    /// The name of a place's template, or of an object of a machine pool. `before` is the name of the one that it takes the place of, and `spec` is what it
    /// has; the first one of a place has neither.
    pub(super) fn template(self, place: &str, workers: Of<'_>, before: &str, spec: &str) -> String {
        joined(&self.base(workers), &self.suffix(place, before, spec))
    }

    fn base(self, workers: Of<'_>) -> String {
        let cluster = &self.cluster.name;
        workers.map_or_else(|| cluster.clone(), |(_, name)| format!("{cluster}-{name}"))
    }

    fn suffix(self, place: &str, before: &str, spec: &str) -> String {
        let Cluster {
            namespace, name, uid, ..
        } = self.cluster;
        let mut hash = Sha256::new();
        for part in [
            namespace,
            name,
            uid.as_deref().unwrap_or_default(),
            place,
            before,
            spec,
        ] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize();
        // Eight bytes for five letters: none is likelier than another by more than one in 2^36.
        let mut number = digest
            .iter()
            .take(8)
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let mut suffix = String::new();
        for _ in 0..SUFFIX {
            suffix.push(char::from(LETTERS[(number % 27) as usize]));
            number /= 27;
        }
        suffix
    }
}

fn joined(base: &str, suffix: &str) -> String {
    let base = format!("{base}-");
    match base.len() + suffix.len() {
        ..=MAX_NAME => format!("{base}{suffix}"),
        _ => format!("{}{suffix}", front(&base)),
    }
}

/// As much of a name as leaves room for a suffix.
fn front(name: &str) -> &str {
    let mut end = MAX_NAME - SUFFIX;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// A Cluster with nothing but its name, for tests.
#[cfg(test)]
pub(super) fn a_cluster(uid: &str) -> Cluster {
    let object = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "Cluster",
        "metadata": {"name": "foo", "namespace": "ns", "uid": uid},
        "spec": {},
    });
    let mut estate = crate::model::Estate::default();
    estate.add_objects([("f", &object)]);
    estate.clusters.into_values().next().expect("a cluster")
}

#[cfg(test)]
mod tests {
    use super::{a_cluster as cluster, *};

    const fn deployment(name: &str) -> Of<'_> {
        Some((WorkerKind::MachineDeployment, name))
    }

    #[test]
    fn the_same_place_has_the_same_name() {
        let one = cluster("u");
        let names = Names::of(&one);
        let name = names.object("control-plane", None, None).unwrap();
        assert_eq!(names.object("control-plane", None, None).unwrap(), name);
        let (base, suffix) = name.rsplit_once('-').unwrap();
        assert_eq!((base, suffix.len()), ("foo", SUFFIX));
        assert!(suffix.bytes().all(|letter| LETTERS.contains(&letter)), "{suffix}");
        assert_ne!(names.object("infrastructure-cluster", None, None).unwrap(), name);
        assert_ne!(
            Names::of(&cluster("v"))
                .object("control-plane", None, None)
                .unwrap(),
            name
        );
        let of_workers = names
            .object("machine-deployment/md-0", deployment("md-0"), None)
            .unwrap();
        assert!(of_workers.starts_with("foo-md-0-"), "{of_workers}");
    }

    #[test]
    fn a_template_that_comes_back_has_another_name_than_before() {
        let cluster = cluster("u");
        let name = |before: &str, spec: &str| Names::of(&cluster).template("p", None, before, spec);
        let first = name("", "");
        let second = name(&first, "b");
        let third = name(&second, "a");
        assert!(first != second && second != third && first != third);
        assert_eq!(
            name(&first, "b"),
            second,
            "a crash between two writes makes no third"
        );
        assert_ne!(
            name(&first, "c"),
            second,
            "what was left by it is not taken for another"
        );
    }

    #[test]
    fn names_are_made_as_the_class_says_and_are_not_too_long() {
        let cluster = cluster("u");
        let names = Names::of(&cluster);
        let naming = "{{ .cluster.name }}-x-{{ .machineDeployment.topologyName }}";
        assert_eq!(
            names.object("p", deployment("md"), Some(naming)).unwrap(),
            "foo-x-md"
        );
        let pool = Some((WorkerKind::MachinePool, "mp"));
        assert!(
            names.object("p", pool, Some(naming)).is_err(),
            "it is no deployment"
        );
        let naming = naming.replace("machineDeployment", "machinePool");
        assert_eq!(names.object("p", pool, Some(&naming)).unwrap(), "foo-x-mp");
        assert!(names.object("p", None, Some("{{ .nothing }}")).is_err());
        assert!(names.object("p", None, Some("{{")).is_err());
        let long = "a".repeat(70);
        for made in [
            names.object("p", None, Some(&long)).unwrap(),
            names.object("p", deployment(&long), None).unwrap(),
            names.template("p", deployment(&long), "", ""),
        ] {
            assert_eq!(made.len(), MAX_NAME, "{made}");
        }
    }
}

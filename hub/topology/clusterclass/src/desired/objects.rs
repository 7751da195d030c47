//! Owns: objects by what they are called, and those of one cluster by its label.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::patch::owned::CLUSTER_NAME;

/// Group, kind, namespace, name.
type Name = (String, String, String, String);

/// Kinds of objects that a server did not list, by version and kind, and why. Nothing is known of such objects; it is an
/// error of the classes and Clusters that name them, and of no others.
pub type Unread = BTreeMap<(String, String), String>;

/// The objects of a server, as far as they could be read.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// Objects.
    pub objects: Vec<Value>,
    /// Kinds that could not be read.
    pub unread: Unread,
}

impl From<Vec<Value>> for Listed {
    fn from(objects: Vec<Value>) -> Self {
        Self {
            objects,
            unread: Unread::new(),
        }
    }
}

/// Objects that were read together.
#[derive(Debug, Clone, Default)]
pub struct Objects<'a> {
    unread: Unread,
    named: BTreeMap<Name, &'a Value>,
    /// The same by version too: a server that serves two versions of a kind was asked for both.
    versions: BTreeMap<(String, Name), &'a Value>,
    of_clusters: BTreeMap<(String, String), Vec<&'a Value>>,
}

impl<'a> Objects<'a> {
    /// Takes objects in; of two of one name the later one counts, unless somebody asks for a version.
    pub fn of(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut all = Self::default();
        for object in objects {
            if let Some(name) = name(object) {
                let version = text(object, "/apiVersion").unwrap_or_default().to_owned();
                all.versions.insert((version, name.clone()), object);
                all.named.insert(name, object);
            }
        }
        for ((_, _, namespace, _), object) in &all.named {
            if let Some(cluster) = label(object, CLUSTER_NAME) {
                let key = (namespace.clone(), cluster.to_owned());
                all.of_clusters.entry(key).or_default().push(object);
            }
        }
        all
    }

    /// The same, for a server whose objects of these kinds could not be read.
    pub fn without(mut self, unread: Unread) -> Self {
        self.unread = unread;
        self
    }

    /// Why objects of a kind could not be read, if so.
    pub(super) fn unread(&self, group_of_kind: &str, kind: &str) -> Option<&str> {
        let mut unread = self.unread.iter();
        let found = unread.find(|((version, one), _)| group(version) == group_of_kind && one == kind);
        found.map(|(_, why)| why.as_str())
    }

    /// Why objects of a kind could not be read in a version, if so.
    pub(super) fn unread_in(&self, api_version: &str, kind: &str) -> Option<&str> {
        let key = (api_version.to_owned(), kind.to_owned());
        self.unread.get(&key).map(String::as_str)
    }

    /// An object by its name, as this version of its API has it.
    pub fn get_in(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Option<&'a Value> {
        let key = [group(api_version), kind, namespace, name].map(str::to_owned);
        let key = (api_version.to_owned(), <Name>::from(key));
        self.versions.get(&key).copied()
    }

    /// An object by its name, in whatever version it was read.
    pub fn get(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<&'a Value> {
        let key = [group, kind, namespace, name].map(str::to_owned);
        self.named.get(&<Name>::from(key)).copied()
    }

    /// The definition of a kind of objects.
    pub(super) fn definition(&self, group: &str, kind: &str) -> Option<&'a Value> {
        let all = self.named.iter();
        let mut definitions = all
            .filter(|(name, _)| name.1 == "CustomResourceDefinition")
            .map(|(_, one)| *one);
        definitions.find(|one| {
            text(one, "/spec/group") == Some(group) && text(one, "/spec/names/kind") == Some(kind)
        })
    }

    /// The objects of a kind, of any owner.
    pub fn of_kind(&self, group: &str, kind: &str) -> impl Iterator<Item = &'a Value> {
        let all = self.named.iter();
        all.filter(move |(name, _)| (name.0.as_str(), name.1.as_str()) == (group, kind))
            .map(|(_, object)| *object)
    }

    /// The objects with a cluster's label.
    pub fn labelled(&self, namespace: &str, cluster: &str) -> impl Iterator<Item = &'a Value> {
        let key = (namespace.to_owned(), cluster.to_owned());
        self.of_clusters.get(&key).into_iter().flatten().copied()
    }

    /// The objects with a cluster's label, of one kind of Cluster API.
    pub(super) fn of_cluster(&self, namespace: &str, cluster: &str, kind: &str) -> Vec<&'a Value> {
        self.labelled(namespace, cluster)
            .filter(|object| group_kind(object) == ("cluster.x-k8s.io", kind))
            .collect()
    }
}

/// The identity of an object; none if it has no kind or no name.
pub fn name(object: &Value) -> Option<(String, String, String, String)> {
    let (group, kind) = group_kind(object);
    let name = text(object, "/metadata/name")?;
    let namespace = text(object, "/metadata/namespace").filter(|namespace| !namespace.is_empty());
    let namespace = namespace.unwrap_or("default");
    (!kind.is_empty()).then(|| <Name>::from([group, kind, namespace, name].map(str::to_owned)))
}

/// API group and kind.
pub fn group_kind(object: &Value) -> (&str, &str) {
    let api_version = text(object, "/apiVersion").unwrap_or_default();
    (group(api_version), text(object, "/kind").unwrap_or_default())
}

/// The group of a group and version.
pub(super) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// API group and kind of what a reference in either spelling refers to.
pub(super) fn refers_to(reference: &Value) -> (&str, &str) {
    let of = |name: &str| reference.get(name).and_then(Value::as_str).unwrap_or_default();
    let group = match of("apiGroup") {
        "" => group(of("apiVersion")),
        group => group,
    };
    (group, of("kind"))
}

/// A text of an object.
pub fn text<'a>(object: &'a Value, place: &str) -> Option<&'a str> {
    object.pointer(place)?.as_str()
}

/// A label of an object.
pub fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.pointer("/metadata/labels")?.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_found_by_name_and_by_cluster() {
        let labelled = |name: &str, cluster: &str| {
            json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "MachineDeployment",
                "metadata": {"name": name, "labels": {CLUSTER_NAME: cluster}},
            })
        };
        let all = [
            labelled("a", "foo"),
            labelled("b", "bar"),
            json!({"kind": "X"}),
            json!({"metadata": {"name": "x"}}),
        ];
        let objects = Objects::of(&all);
        let found = objects.get("cluster.x-k8s.io", "MachineDeployment", "default", "b");
        assert_eq!(found, Some(&all[1]));
        assert_eq!(
            objects.get("cluster.x-k8s.io", "MachineDeployment", "other", "b"),
            None
        );
        assert_eq!(
            objects.of_cluster("default", "foo", "MachineDeployment"),
            [&all[0]]
        );
        assert_eq!(
            objects.of_cluster("default", "foo", "Machine"),
            Vec::<&Value>::new()
        );
        assert_eq!(objects.named.len(), 2);
    }

    #[test]
    fn an_object_is_found_in_each_version_that_was_read() {
        let of = |version: &str| json!({"apiVersion": format!("p.x/{version}"), "kind": "T", "metadata": {"name": "t"}});
        let all = [of("v1"), of("v2")];
        let objects = Objects::of(&all);
        let get = |version: &str| objects.get_in(version, "T", "default", "t");
        assert_eq!((get("p.x/v1"), get("p.x/v2")), (Some(&all[0]), Some(&all[1])));
        assert_eq!(get("p.x/v3"), None);
        assert_eq!(objects.get("p.x", "T", "default", "t"), Some(&all[1]));
        assert_eq!(objects.of_kind("p.x", "T").count(), 1, "it is one object");
    }
}

//! Reads objects one by one: one that cannot be decoded is an answer of its own, with its metadata and what is wrong with
//! it, and does not take the list or the watch with it.
//! Costs a second look at each object, so that it is only used while a kind has one that cannot be decoded.

use std::borrow::Cow;

use kube_core::{DynamicResourceScope, ObjectMeta, Resource};
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use super::Head;

/// Deepest level of an object at which its fault is looked for. An object is no deeper in what the agent reads of it.
const PATH_PARTS_MAX: usize = 12;
/// Most members of an object or list that are tried one by one. With more the place of the fault is less exact.
const MEMBERS_TRIED_MAX: usize = 64;
/// Longest text of a fault, in characters.
const PROBLEM_CHARACTERS_MAX: usize = 300;

/// An object, or what is known of one that cannot be decoded.
#[derive(Debug, Clone)]
pub struct Guarded<K>(
    /// The object as it was read.
    pub Read<K>,
);

/// An object, or the reason why it cannot be decoded.
pub type Read<K> = Result<K, Unreadable>;

/// An object that cannot be decoded.
#[derive(Debug, Clone)]
pub struct Unreadable {
    metadata: Box<ObjectMeta>,
    /// The place of the fault, and what is wrong there.
    problem: Box<str>,
}

impl Unreadable {
    /// The object's identity.
    pub fn head(&self) -> Head {
        Head::of(&self.metadata)
    }

    /// The place of the fault, and what is wrong there.
    pub fn problem(&self) -> &str {
        &self.problem
    }
}

impl<'de, K: Resource + DeserializeOwned> Deserialize<'de> for Guarded<K> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let stored = Value::deserialize(from)?;
        let error = match K::deserialize(&stored) {
            Ok(object) => return Ok(Self(Ok(object))),
            Err(error) => error,
        };
        // Without a name nobody can be told which it is.
        let metadata = ObjectMeta::deserialize(&stored["metadata"]).map_err(serde::de::Error::custom)?;
        let problem = format!("{}: {error}", place_of_the_fault::<K>(stored));
        Ok(Self(Err(Unreadable {
            metadata: Box::new(metadata),
            problem: problem
                .chars()
                .take(PROBLEM_CHARACTERS_MAX)
                .collect::<String>()
                .into(),
        })))
    }
}

/// The smallest part of an object without which another fault, or none, is found.
fn place_of_the_fault<K: DeserializeOwned>(object: Value) -> String {
    let fault = |object: &Value| K::deserialize(object).err().map(|error| error.to_string());
    let (whole, mut path) = (fault(&object), String::new());
    for _ in 0..PATH_PARTS_MAX {
        let part = match &object.pointer(&path) {
            Some(Value::Object(members)) => members.keys().cloned().collect::<Vec<_>>(),
            Some(Value::Array(items)) => (0..items.len()).map(|index| index.to_string()).collect(),
            _ => break,
        };
        let members = part.into_iter().take(MEMBERS_TRIED_MAX);
        let mut places =
            members.map(|member| format!("{path}/{}", member.replace('~', "~0").replace('/', "~1")));
        let guilty = places.find(|place| {
            let mut without = object.clone();
            remove(&mut without, place);
            fault(&without) != whole
        });
        match guilty {
            Some(place) => path = place,
            None => break,
        }
    }
    match path.trim_start_matches('/') {
        "" => "the object".to_owned(),
        place => place.replace('/', "."),
    }
}

/// Takes the member at a JSON pointer out of the object or list that holds it.
fn remove(from: &mut Value, place: &str) {
    let Some((parent, member)) = place.rsplit_once('/') else {
        return;
    };
    match from.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&member.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            let index = member.parse().ok().filter(|index| *index < items.len());
            index.map(|index: usize| items.remove(index));
        }
        _ => {}
    }
}

impl<K: Resource> Resource for Guarded<K> {
    type DynamicType = K::DynamicType;
    /// Known only where it is asked for: an `Api` of either scope is made from one of the kind itself.
    type Scope = DynamicResourceScope;

    fn kind(of: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &Self::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &Self::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn meta(&self) -> &ObjectMeta {
        match &self.0 {
            Ok(object) => object.meta(),
            Err(unreadable) => &unreadable.metadata,
        }
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        match &mut self.0 {
            Ok(object) => object.meta_mut(),
            Err(unreadable) => &mut unreadable.metadata,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use api::ServiceExport;
    use k8s_openapi::api::discovery::v1::EndpointSlice;
    use serde_json::json;

    use super::*;

    fn read<K: Resource + DeserializeOwned>(object: Value) -> Read<K> {
        serde_json::from_value::<Guarded<K>>(object).unwrap().0
    }

    fn problem<K: Resource + DeserializeOwned + Debug>(object: Value) -> String {
        let unreadable = read::<K>(object).unwrap_err();
        assert_eq!(&*unreadable.head().name, "web");
        unreadable.problem().to_owned()
    }

    #[test]
    fn a_fault_is_told_with_its_place() {
        let metadata = json!({"namespace": "shop", "name": "web", "uid": "u"});
        let port = problem::<EndpointSlice>(
            json!({"metadata": metadata, "addressType": "IPv4", "endpoints": [],
            "ports": [{"port": 80}, {"port": "eighty"}]}),
        );
        assert!(port.starts_with("ports.1"), "{port}");
        let label =
            problem::<ServiceExport>(json!({"metadata": metadata, "spec": {"exportedLabels": {"a/b": 7}}}));
        assert!(label.starts_with("spec.exportedLabels"), "{label}");
        assert!(label.contains("invalid type"), "{label}");
        let good = read::<ServiceExport>(json!({"metadata": metadata, "spec": {}}));
        assert!(good.is_ok());
    }

    #[test]
    fn an_object_without_a_name_is_no_object() {
        assert!(serde_json::from_value::<Guarded<ServiceExport>>(json!({"metadata": 7})).is_err());
        assert!(serde_json::from_value::<Guarded<ServiceExport>>(json!([1])).is_err());
    }

    #[test]
    fn what_is_said_of_a_fault_is_bounded() {
        let long = "x".repeat(10_000);
        let object = json!({"metadata": {"name": "web"}, "spec": {"exportedLabels": long}});
        assert!(problem::<ServiceExport>(object).chars().count() <= PROBLEM_CHARACTERS_MAX);
    }
}

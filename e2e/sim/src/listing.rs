//! The answer to a list: it holds the objects as they are kept, and copies none of them that can be sent as it is.
//! Never chooses what belongs to it.

use std::sync::Arc;

use serde::{
    Serialize, Serializer,
    ser::{SerializeMap, SerializeSeq},
};
use serde_json::Value;

use super::{
    kinds::Kind,
    versions::{is_kept_as, presented},
};

/// A list of objects of one kind in one version.
#[derive(Debug)]
pub struct Listing {
    kind: Arc<Kind>,
    version: String,
    metadata: Value,
    objects: Vec<Arc<Value>>,
}

impl Listing {
    pub(super) fn new(kind: Arc<Kind>, version: String, metadata: Value, objects: Vec<Arc<Value>>) -> Self {
        Self {
            kind,
            version,
            metadata,
            objects,
        }
    }

    /// Its metadata: where a watch goes on from, and where the next page begins.
    pub fn metadata(&self) -> &Value {
        &self.metadata
    }

    /// Its objects in its version.
    pub fn items(&self) -> impl ExactSizeIterator<Item = Value> {
        let presented = |object: &Arc<Value>| presented(&self.kind, &self.version, object);
        self.objects.iter().map(presented)
    }
}

impl Serialize for Listing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("kind", &format!("{}List", self.kind.kind))?;
        map.serialize_entry("apiVersion", &self.kind.api_version(&self.version))?;
        map.serialize_entry("metadata", &self.metadata)?;
        map.serialize_entry("items", &Items(self))?;
        map.end()
    }
}

struct Items<'a>(&'a Listing);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Listing {
            kind,
            version,
            objects,
            ..
        } = self.0;
        let mut items = serializer.serialize_seq(Some(objects.len()))?;
        for object in objects {
            if is_kept_as(kind, version, object) {
                items.serialize_element(&**object)?;
            } else {
                items.serialize_element(&presented(kind, version, object))?;
            }
        }
        items.end()
    }
}

//! Owns: what is asked: the object as it is to be and as it was, what is done to it, and what passes whatever it says.
//! Never: judges what it says.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::model::{Estate, Key};

/// The version of reviews that is read and written.
pub(super) const API_VERSION: &str = "admission.k8s.io/v1";
/// The kind of both.
pub(super) const KIND: &str = "AdmissionReview";
/// The group of classes and clusters.
const GROUP: &str = "cluster.x-k8s.io";
/// Its versions that are known here.
const VERSIONS: [&str; 2] = ["v1beta1", "v1beta2"];
/// Longest name of an object, characters.
const NAME_LENGTH_MAX: usize = 253;

/// A question.
#[derive(Debug)]
pub struct Review {
    /// Uid that the answer must name.
    pub(super) uid: String,
    pub(super) act: Act,
    pub(super) subject: Subject,
    /// The version of the API in which it is asked, if it is known.
    version: Option<&'static str>,
    /// The object as it is to be; nothing if it is deleted.
    pub(super) new: Estate,
    /// The object as it was; nothing if it is made.
    pub(super) old: Estate,
    /// True if there is nothing to judge.
    passes: bool,
}

/// The operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Create,
    Update,
    Delete,
    Other,
}

/// To what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    Class,
    Cluster,
    Other,
}

/// The objects to read from the API server before an answer, and their version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// These classes, those of them that are there.
    Classes(&'static str, BTreeSet<Key>),
    /// The Clusters of this class, and whether Cluster API's own controller is alive.
    UsersOf(&'static str, Key),
}

/// A review as it is sent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    api_version: String,
    kind: String,
    request: Option<Request>,
}

/// The parts of the request that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    uid: String,
    kind: Kind,
    operation: String,
    #[serde(default)]
    sub_resource: String,
    object: Option<Value>,
    old_object: Option<Value>,
}

#[derive(Deserialize)]
struct Kind {
    group: String,
    version: String,
    kind: String,
}

impl Review {
    /// Reads a question. An error is one line for who sent it.
    ///
    /// # Errors
    ///
    /// It is no review, or lacks an object that it must have.
    pub fn read(body: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(body)
            .map_err(|error| format!("is no {KIND} of {API_VERSION} in JSON: {error}"))?;
        if document.api_version != API_VERSION || document.kind != KIND {
            return Err(format!("must be an {KIND} of {API_VERSION}"));
        }
        let request = document.request.ok_or("has no request")?;
        let act = match request.operation.as_str() {
            "CREATE" => Act::Create,
            "UPDATE" => Act::Update,
            "DELETE" => Act::Delete,
            _ => Act::Other,
        };
        let subject = match (request.kind.group.as_str(), request.kind.kind.as_str()) {
            (GROUP, "ClusterClass") => Subject::Class,
            (GROUP, "Cluster") => Subject::Cluster,
            _ => Subject::Other,
        };
        let judged = subject != Subject::Other && act != Act::Other && request.sub_resource.is_empty();
        if judged && act != Act::Delete && request.object.is_none() {
            return Err("has no object".to_owned());
        }
        if judged && act != Act::Create && request.old_object.is_none() {
            return Err("has no oldObject".to_owned());
        }
        let passes = !judged || passes(act, subject, request.object.as_ref(), request.old_object.as_ref());
        let read = |object: Option<Value>| {
            let mut estate = Estate::default();
            if let Some(object) = object.filter(|_| !passes) {
                estate.add_sent("request", &object);
            }
            estate
        };
        Ok(Self {
            uid: request.uid,
            act,
            subject,
            version: VERSIONS.into_iter().find(|known| *known == request.kind.version),
            new: read(request.object),
            old: read(request.old_object),
            passes,
        })
    }

    /// Returns true if there is nothing to judge.
    pub(super) fn passes(&self) -> bool {
        self.passes
    }

    /// The objects needed for an answer. The caller may be somebody else than an API server: only valid names are used.
    pub fn needs(&self) -> Needs {
        let (Some(version), false) = (self.version, self.passes) else {
            return Needs::Nothing;
        };
        match self.subject {
            Subject::Cluster => {
                let clusters = self.new.clusters.values().chain(self.old.clusters.values());
                let named = clusters.filter_map(|cluster| {
                    let topology = cluster.topology.as_ref()?;
                    let key = (topology.class_namespace.clone(), topology.class.value.clone());
                    (is_name(&key.0) && is_name(&key.1)).then_some(key)
                });
                Needs::Classes(version, named.collect())
            }
            Subject::Class if self.act == Act::Create => Needs::Nothing,
            Subject::Class => {
                let class = self.old.classes.keys().next();
                class.map_or(Needs::Nothing, |class| Needs::UsersOf(version, class.clone()))
            }
            Subject::Other => Needs::Nothing,
        }
    }
}

/// Returns true if a namespace or an object may have this name.
fn is_name(text: &str) -> bool {
    let is_of_names = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let starts = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    starts && text.len() <= NAME_LENGTH_MAX && text.bytes().all(is_of_names)
}

/// Returns true if nothing is to be judged: there is no topology, or it does not change. An object that is being
/// deleted is never held up, so that its finalizers can go.
fn passes(act: Act, subject: Subject, object: Option<&Value>, old: Option<&Value>) -> bool {
    let of = |object: Option<&Value>, path: &str| -> Option<Value> {
        let value = object?.pointer(path)?;
        (!value.is_null()).then(|| value.clone())
    };
    if subject == Subject::Cluster {
        let has_topology = |object: Option<&Value>| of(object, "/spec/topology").is_some();
        if act == Act::Delete || !(has_topology(object) || has_topology(old)) {
            return true;
        }
    }
    let same = |path: &str| of(object, path) == of(old, path);
    let is_going = of(object, "/metadata/deletionTimestamp").is_some();
    // Of the metadata only a Cluster's annotations are judged.
    let metadata = subject == Subject::Class || is_going || same("/metadata/annotations");
    act == Act::Update && same("/spec") && metadata
}

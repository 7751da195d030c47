//! Owns: what is asked of the API server that has the topologies.
//! Never: decides what is asked.

use serde_json::Value;

use super::rules::{event::ObjectName, rival::Signs, told::Told};
use crate::desired::{change::Defaulted, objects::Listed};

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// The server says that the object may not change in this way: nothing but another object can have the content.
    Immutable(String),
    /// The server answered, and does not take it: asking again soon is of no use.
    Refused(String),
    /// Nothing is known of its fate.
    Unknown(String),
}

impl Failed {
    /// The reason in words.
    pub fn why(self) -> String {
        match self {
            Self::Immutable(why) | Self::Refused(why) | Self::Unknown(why) => why,
        }
    }
}

/// The API server that has the topologies.
pub trait Server: Send + Sync {
    /// All objects of topologies, and the kinds that could not be read.
    fn read(&self) -> impl Future<Output = anyhow::Result<Listed>> + Send;

    /// Reads the signs of another controller that keeps topologies.
    fn signs(&self) -> impl Future<Output = anyhow::Result<Signs>> + Send;

    /// Server-side apply under our manager, over others'. In a dry run nothing is written. The object as it is then.
    fn apply(
        &self,
        namespace: &str,
        content: &Value,
        dry: bool,
    ) -> impl Future<Output = Result<Value, Failed>> + Send;

    /// The object that is called so; none if nothing is.
    fn get(
        &self,
        namespace: &str,
        object: &ObjectName,
        api_version: &str,
    ) -> impl Future<Output = Result<Option<Value>, Failed>> + Send;

    /// Deletes the object of this identity; one that is gone is no failure.
    fn delete(
        &self,
        namespace: &str,
        object: &ObjectName,
        api_version: &str,
        uid: &str,
    ) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Writes variables into a Cluster of this identity, if its `spec` is of this generation.
    fn set_defaults(
        &self,
        namespace: &str,
        cluster: &str,
        of: (&str, i64),
        defaults: &[Defaulted],
    ) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Writes our condition of a Cluster.
    fn say(
        &self,
        namespace: &str,
        cluster: &str,
        condition: &Value,
    ) -> impl Future<Output = Result<(), Failed>> + Send;

    /// Writes an Event of Kubernetes, if it may and can: nothing depends on it.
    fn tell(&self, told: &Told) -> impl Future<Output = ()> + Send;
}

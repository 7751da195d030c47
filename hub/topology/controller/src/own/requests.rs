//! Owns: the parts of a topology's request: the check of its name, the object with the identity of the existing one,
//! and the condition of a Cluster.
//! Never: asks twice, or records.

use std::time::Duration;

use serde_json::Value;
use shared::model::UnixMillis;
use tokio::time::timeout;

use super::{
    rules::{
        condition::{Condition, news},
        event::ClusterName,
        seen::is_of,
        steps::Step,
    },
    server::{Failed, Server},
};
use crate::desired::objects::text;

/// Checks the name of an object to make: an existing object is taken over only if it is this Cluster's; returns its
/// identity then.
pub(super) async fn is_free<S: Server>(
    server: &S,
    (cluster, uid): (&ClusterName, &str),
    step: &Step,
) -> Result<Option<String>, String> {
    match server
        .get(&cluster.namespace, &step.object, &step.api_version)
        .await
    {
        Ok(None) => Ok(None),
        Ok(Some(there)) if is_of(&there, uid) => Ok(text(&there, "/metadata/uid").map(str::to_owned)),
        Ok(Some(_)) => Err(format!(
            "{} is there, and does not belong to the Cluster: delete it, or have the class name it otherwise",
            step.object
        )),
        Err(failed) => Err(format!("{}: {}", step.object, failed.why())),
    }
}

/// Bounds a write as a whole, of however many requests it is made: another hub may write some time later.
pub(super) async fn bounded(
    patience: Duration,
    write: impl Future<Output = Result<(), Failed>>,
) -> Result<(), Failed> {
    let late = |_| {
        let seconds = patience.as_secs();
        Err(Failed::Unknown(format!(
            "the API server does not answer within {seconds} s"
        )))
    };
    timeout(patience, write).await.unwrap_or_else(late)
}

/// Makes a request of the object of this identity, or of none.
pub(super) async fn make<S: Server>(
    server: &S,
    namespace: &str,
    step: &Step,
    uid: Option<String>,
) -> Result<(), Failed> {
    let (object, api_version) = (&step.object, &step.api_version);
    match (&step.content, uid) {
        (Some(content), uid) => {
            let mut content: Value = content.clone();
            if let Some(uid) = uid {
                // One that was deleted meanwhile is not made again as something else.
                content["metadata"]["uid"] = Value::from(uid);
            }
            server.apply(namespace, &content, false).await.map(drop)
        }
        (None, Some(uid)) => server.delete(namespace, object, api_version, &uid).await,
        (None, None) => Ok(()),
    }
}

/// Writes the condition of a Cluster, if it changed. A failure is no news: it is tried again at the next look.
pub(super) async fn say<S: Server>(
    server: &S,
    cluster: &ClusterName,
    (document, said): (&Value, &Condition),
    now: UnixMillis,
) {
    let now = jiff::Timestamp::from_millisecond(i64::try_from(now.0).unwrap_or(0)).unwrap_or_default();
    let now = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    if let Some(condition) = news(document, said, &now)
        && let Err(failed) = server.say(&cluster.namespace, &cluster.name, &condition).await
    {
        tracing::debug!(%cluster, why = failed.why(), "the condition of a Cluster is not written");
    }
}

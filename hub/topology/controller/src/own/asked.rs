//! Owns: dry runs, and their results as long as neither the existing nor the wanted object changes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    rules::event::{ClusterName, ObjectName},
    server::{Failed, Server},
};
use crate::desired::{
    dry::{Changed, asked, changed},
    objects::text,
};

/// Answers by Cluster and object.
#[derive(Debug, Default)]
pub(super) struct Asked {
    known: BTreeMap<ClusterName, BTreeMap<ObjectName, Answer>>,
}

#[derive(Debug)]
struct Answer {
    version: String,
    content: Value,
    changed: Changed,
}

impl Asked {
    /// Asks the server which changes a write of this content would make.
    pub(super) async fn ask<S: Server>(
        &mut self,
        server: &S,
        cluster: &ClusterName,
        (content, name): (&Value, &str),
        there: &Value,
    ) -> Result<Changed, Failed> {
        let object = ObjectName::of(there);
        let version = text(there, "/metadata/resourceVersion").unwrap_or_default();
        let of_cluster = self.known.entry(cluster.clone()).or_default();
        if let Some(answer) = of_cluster.get(&object)
            && answer.version == version
            && answer.content == *content
        {
            return Ok(answer.changed);
        }
        let mut wanted = asked(content, name);
        wanted["metadata"]["uid"] = there["metadata"]["uid"].clone();
        let answered = server.apply(&cluster.namespace, &wanted, true).await?;
        let changed = changed(there, &answered);
        let answer = Answer {
            version: version.to_owned(),
            content: content.clone(),
            changed,
        };
        of_cluster.insert(object, answer);
        Ok(changed)
    }

    /// Nothing of a Cluster is of use any more.
    pub(super) fn forget(&mut self, cluster: &ClusterName) {
        self.known.remove(cluster);
    }
}

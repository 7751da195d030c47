//! Owns: `State/Explain` of a topology: the right to ask, and the answer of the reader of topologies.
//! Never: reads one, or shows a value of a variable that its class does not publish.

use std::{sync::Arc, time::Duration};

use proto::v1;
use tonic::{Request, Status};

use topology_controller::{ExplainsTopologies, NotExplained};

use super::{Inspection, access::Need, convert};

/// Topologies that are explained at the same time: each reads much of the hub's own cluster.
pub const TOPOLOGIES_EXPLAINED_MAX: usize = 2;
/// Longest time for one.
const EXPLAINED_WITHIN: Duration = Duration::from_secs(60);

impl Inspection {
    /// The same services, which explain topologies with this.
    pub fn explaining(mut self, topologies: Option<Arc<dyn ExplainsTopologies>>) -> Self {
        self.topologies = topologies;
        self
    }

    pub(super) async fn explain_topology(
        &self,
        request: &Request<v1::ExplainRequest>,
    ) -> Result<v1::ExplainResponse, Status> {
        let asked = request.get_ref();
        self.admit(request, &asked.clusterset, Need::ReadAll)?;
        let Some(topologies) = &self.topologies else {
            return Err(Status::failed_precondition(
                "this hub does not read what topologies are made of: start it with --topology shadow or own, or ask the \
                 management cluster with clusterclass explain --kubeconfig FILE",
            ));
        };
        if asked.namespace.is_empty() || asked.name.is_empty() {
            return Err(Status::invalid_argument(
                "name the namespace and the name of a Cluster",
            ));
        }
        let Ok(_turn) = self.explaining.try_acquire() else {
            return Err(Status::resource_exhausted(format!(
                "{TOPOLOGIES_EXPLAINED_MAX} topologies are being explained: ask again in a moment"
            )));
        };
        let explained = topologies.explain(asked.namespace.clone(), asked.name.clone());
        let explained = tokio::time::timeout(EXPLAINED_WITHIN, explained).await;
        let explained = explained.map_err(|_| {
            Status::deadline_exceeded(format!(
                "the hub's own cluster does not say within {} s what topologies are made of",
                EXPLAINED_WITHIN.as_secs()
            ))
        })?;
        let cluster = format!("{}/{}", asked.namespace, asked.name);
        let cluster: String = cluster.chars().take(600).collect();
        let explained = explained.map_err(|why| match why {
            NotExplained::NoTopology => Status::not_found(format!(
                "there is no Cluster {cluster} with a topology in the hub's own cluster"
            )),
            NotExplained::Unread(why) => Status::unavailable(format!("topologies cannot be read: {why}")),
        })?;
        let mut response = convert::topology(&cluster, explained);
        response.answered_by = self.answered_by(self.present()?.head.revision);
        Ok(response)
    }
}

//! The requests to the hub's own Kubernetes cluster: one action in, one outcome out.
//! Every write is a server-side apply by one field manager; writes to what is there carry its uid.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use serde_json::Value;
use shared::{
    api::{
        cluster_profile::{AccessProvider, ClusterProfile},
        names::HUB_MANAGER,
    },
    model::{ClusterId, Clusterset},
};

use super::{
    inventory::{Action, Outcome},
    namespace::{self, NoNamespace},
    object::{Heading, empty_body, has_other_managers, metadata_body, status_body},
};
use crate::fold::Profile;

/// Longest time for one action.
const ACTION_TIMEOUT: Duration = Duration::from_secs(20);

/// Why an action failed, for people.
pub(super) type Reason = String;

/// Performs actions in one namespace.
#[derive(Clone)]
pub(super) struct Performer {
    client: Client,
    profiles: Api<ClusterProfile>,
    namespace: String,
    clusterset: Clusterset,
}

impl Action {
    /// The cluster it is about.
    pub(super) fn cluster(&self) -> &ClusterId {
        match self {
            Self::Apply { profile, .. } => &profile.cluster,
            Self::Delete { cluster, .. } => cluster,
        }
    }

    /// The word that metrics use.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Apply { .. } => "apply",
            Self::Delete { .. } => "delete",
        }
    }
}

impl Performer {
    pub(super) fn new(client: Client, namespace: String, clusterset: Clusterset) -> Self {
        let profiles = Api::namespaced(client.clone(), &namespace);
        Self {
            client,
            profiles,
            namespace,
            clusterset,
        }
    }

    /// The API of the profiles.
    pub(super) fn profiles(&self) -> &Api<ClusterProfile> {
        &self.profiles
    }

    /// Sees to it that the inventory namespace is there.
    pub(super) async fn ensure_namespace(&self) -> Result<(), Reason> {
        let ensured = namespace::ensure(&self.client, &self.namespace, &self.clusterset).await;
        ensured.map_err(|error| NoNamespace::new(&self.namespace, &self.clusterset, &error).to_string())
    }

    /// Performs an action.
    pub(super) async fn perform(&self, action: &Action) -> (Outcome, Option<Reason>) {
        let performed = async {
            match action {
                Action::Delete { cluster, uid } => self.delete(cluster, uid).await,
                Action::Apply {
                    profile,
                    access,
                    uid,
                    heading,
                    status,
                } => {
                    let status = status.then_some(&**access);
                    self.apply(profile, uid.as_deref(), heading.as_ref(), status)
                        .await
                }
            }
        };
        let reason = match tokio::time::timeout(ACTION_TIMEOUT, performed).await {
            Ok(Ok(outcome)) => return (outcome, None),
            Ok(Err(reason)) => reason,
            Err(_) => format!("no answer within {} s", ACTION_TIMEOUT.as_secs()),
        };
        let reason = format!("ClusterProfile {}/{}: {reason}", self.namespace, action.cluster());
        (
            Outcome::Failed {
                random: rand::random(),
            },
            Some(reason),
        )
    }

    async fn delete(&self, cluster: &ClusterId, uid: &str) -> Result<Outcome, Reason> {
        let preconditions = Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        };
        let only_that = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match self.profiles.delete(cluster.as_str(), &only_that).await {
            Ok(_) => Ok(Outcome::Deleted),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Outcome::Deleted),
            Err(error) => Err(in_words(error)),
        }
    }

    async fn apply(
        &self,
        profile: &Profile,
        uid: Option<&str>,
        heading: Option<&Heading>,
        status: Option<&[AccessProvider]>,
    ) -> Result<Outcome, Reason> {
        let name = profile.cluster.as_str();
        let mut uid = uid.map(str::to_owned);
        let mut written = None;
        if let Some(heading) = heading {
            let body = metadata_body(profile, heading, uid.as_deref());
            let object = match self.patch(name, &body).await {
                Err(kube::Error::Api(status)) if uid.is_none() && status.is_not_found() => {
                    self.make_namespace().await?;
                    self.patch(name, &body).await
                }
                patched => patched,
            };
            let object = object.map_err(in_words)?;
            if uid.is_none() && has_other_managers(&object) {
                let empty = empty_body(name, object.uid().as_deref());
                let theirs = self.patch(name, &empty).await.map_err(in_words)?;
                return Ok(Outcome::NotOurs(Box::new(theirs)));
            }
            uid = object.uid();
            written = Some(object);
        }
        if let Some(access) = status {
            let body = status_body(profile, access, uid.as_deref());
            let object = self
                .profiles
                .patch_status(name, &by_us(), &Patch::Apply(&body))
                .await;
            written = Some(object.map_err(in_words)?);
        }
        match written {
            Some(object) => Ok(Outcome::Written(Box::new(object))),
            None => Err("there was nothing to write".to_owned()),
        }
    }

    async fn patch(&self, name: &str, body: &Value) -> Result<ClusterProfile, kube::Error> {
        self.profiles.patch(name, &by_us(), &Patch::Apply(body)).await
    }

    /// A new object that was not found: its namespace is missing, or the kind is.
    async fn make_namespace(&self) -> Result<(), Reason> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let made = namespace::create(&namespaces, &self.namespace, &self.clusterset).await;
        made.map_err(|error| NoNamespace::new(&self.namespace, &self.clusterset, &error).to_string())
    }
}

fn in_words(error: kube::Error) -> Reason {
    super::told(&error)
}

fn by_us() -> PatchParams {
    PatchParams::apply(HUB_MANAGER).force()
}

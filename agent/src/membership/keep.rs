//! Owns: making and restoring the two ClusterProperties of a member: by the agent that leads, from when a hub admitted
//! the cluster, hub or no hub; and deleting `clusterset.k8s.io` once a hub said that the membership has ended.
//! Never: touches one that somebody else made, or writes where nothing differs.

use std::{
    collections::BTreeSet,
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    time::Duration,
};

use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions, ValidationDirective},
};
use shared::{
    api::{ClusterProperty, names::AGENT_MANAGER},
    process::{Backoff, random},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{
    Membership, agree,
    decide::{Decision, Wanted},
    object,
};
use crate::{
    apply::{Contention, ONLY_IF_ABSENT},
    lease::{AgentLease, WritePermit},
    watch::{Kept, Watched, Whole},
};

/// First wait after a write failed.
const RETRY_FIRST: Duration = Duration::from_millis(500);
/// Longest wait after that.
const RETRY_LONGEST: Duration = Duration::from_secs(60);

/// Keeps them.
pub struct Keeper {
    api: Api<ClusterProperty>,
    properties: Watched<Whole<ClusterProperty>>,
    membership: Membership,
    permit: WritePermit,
    contention: Contention<&'static str>,
    backoff: Backoff,
    /// The properties for which people were told that they cannot be written.
    told: BTreeSet<&'static str>,
}

impl Keeper {
    /// The ones of `membership`, as they are in `properties`; nothing is written without the permit.
    pub fn new(
        client: Client,
        properties: Watched<Whole<ClusterProperty>>,
        membership: Membership,
        permit: WritePermit,
    ) -> Self {
        Self {
            api: Api::all(client),
            properties,
            membership,
            permit,
            contention: Contention::default(),
            backoff: Backoff::new(RETRY_FIRST, RETRY_LONGEST),
            told: BTreeSet::new(),
        }
    }

    /// Keeps them until `drain`, from a hub's admission of this cluster on, for as long as it is a member.
    pub async fn run(mut self, lease: AgentLease, drain: CancellationToken) -> anyhow::Result<()> {
        let changed = agree::changes(&self.properties);
        let mut listed = self.properties.listed();
        let mut ended = lease.end_changes();
        if drain.run_until_cancelled(lease.epoch_known()).await.is_none() {
            return Ok(());
        }
        loop {
            let is_member = ended.borrow_and_update().is_none();
            let turn = async {
                self.permit.given().await;
                self.turn(is_member).await
            };
            let Some(again) = drain.run_until_cancelled(turn).await else {
                return Ok(());
            };
            tokio::select! {
                biased;
                () = drain.cancelled() => return Ok(()),
                _ = changed.taken() => {}
                Ok(()) = listed.changed() => {}
                Ok(()) = ended.changed() => {}
                () = tokio::time::sleep_until(again.unwrap_or_else(Instant::now)), if again.is_some() => {}
            }
        }
    }

    /// Looks at both and does what follows. When to look again though nothing changes.
    async fn turn(&mut self, is_member: bool) -> Option<Instant> {
        if !self.properties.is_listed() {
            return None; // unknown is not absent: the watch says why, and when it is known
        }
        let (membership, mut again) = (self.membership.clone(), None);
        for wanted in membership.properties() {
            let found = self.properties.get("", wanted.name);
            let standing = found.as_ref().map(|found| object::standing(&found.object));
            let decision = if is_member {
                wanted.decide(standing.as_ref())
            } else {
                wanted.decide_after_the_end(standing.as_ref())
            };
            let due = match (decision, found) {
                (Decision::Leave | Decision::Contradicts, _) | (Decision::Remove, None) => continue,
                (Decision::Make, _) => self.make(&wanted, None).await,
                (Decision::Restore, found) => self.make(&wanted, found.as_deref()).await,
                (Decision::Remove, Some(found)) => self.remove(wanted.name, &found).await,
            };
            again = match (again, due) {
                (Some(one), Some(other)) => Some(std::cmp::min::<Instant>(one, other)),
                (one, other) => one.or(other),
            };
        }
        again
    }

    /// Writes one over what was found, unless it is to wait because somebody else changes it again and again. When to look
    /// again.
    async fn make(&mut self, wanted: &Wanted<'_>, found: Option<&Whole<ClusterProperty>>) -> Option<Instant> {
        let hash = hash_of(wanted.value);
        let held = self
            .contention
            .part_held_until(&wanted.name, hash, Instant::now());
        match held {
            Some(until) => Some(until),
            None => self.write(wanted, found, hash).await,
        }
    }

    /// Deletes one that was found. When to try again, if that did not do.
    async fn remove(&mut self, name: &'static str, found: &Whole<ClusterProperty>) -> Option<Instant> {
        if !self.permit.holds() {
            return Some(Instant::now()); // the next turn begins with waiting for it
        }
        let only_this = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(found.head().uid.to_string()),
                resource_version: Some(found.head().version.to_string()),
            }),
            ..DeleteParams::default()
        };
        match self.api.delete(name, &only_this).await {
            Ok(_) => {
                self.backoff.succeeded();
                self.told.remove(name);
                info!(
                    property = name,
                    "deleted this ClusterProperty: the cluster is no member any more"
                );
                None
            }
            // It is gone, or another one by now: the watch says which.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {
                Some(Instant::now() + self.backoff.failed(random()))
            }
            Err(error) => {
                if self.told.insert(name) {
                    warn!(
                        property = name,
                        %error,
                        "cannot delete this ClusterProperty, which says that the cluster is in a clusterset; trying again. \
                         Its membership has ended"
                    );
                }
                Some(Instant::now() + self.backoff.failed(random()))
            }
        }
    }

    /// Writes one over what was found. When to try again, if that did not do.
    async fn write(
        &mut self,
        wanted: &Wanted<'_>,
        found: Option<&Whole<ClusterProperty>>,
        hash: u64,
    ) -> Option<Instant> {
        if !self.permit.holds() {
            return Some(Instant::now()); // the next turn begins with waiting for it
        }
        let mut body = object::body(wanted);
        match found {
            // Refused if any object exists: an unmanaged one is not taken over.
            None => body["metadata"]["resourceVersion"] = ONLY_IF_ABSENT.into(),
            Some(found) => {
                body["metadata"]["uid"] = (*found.head().uid).into();
                body["metadata"]["resourceVersion"] = found.head().version.to_string().into();
            }
        }
        let params = PatchParams::apply(AGENT_MANAGER)
            .force()
            .validation(ValidationDirective::Ignore);
        let ticket = self.properties.begin_write();
        let error = match self.api.patch(wanted.name, &params, &Patch::Apply(&body)).await {
            Ok(written) => {
                self.properties.written(ticket, written);
                self.written(wanted, found.is_some(), hash);
                return None;
            }
            Err(error) => error,
        };
        let wait = self.backoff.failed(random());
        if matches!(&error, kube::Error::Api(status) if status.code == 409) {
            self.look_again(wanted.name).await;
        } else if self.told.insert(wanted.name) {
            warn!(
                property = wanted.name,
                %error,
                "cannot write this ClusterProperty, by which a member's cluster shows which it is; trying again"
            );
        }
        Some(Instant::now() + wait)
    }

    fn written(&mut self, wanted: &Wanted<'_>, again: bool, hash: u64) {
        self.backoff.succeeded();
        self.told.remove(wanted.name);
        let (property, value) = (wanted.name, wanted.value);
        if again {
            warn!(
                property,
                value, "somebody changed this ClusterProperty: it is restored"
            );
        } else {
            info!(property, value, "made this ClusterProperty");
        }
        let now = Instant::now();
        if let Some(times) = self.contention.part_written(&wanted.name, hash, now, random()) {
            warn!(
                property,
                times,
                "somebody else changes or deletes this ClusterProperty again and again: from now on it is written at \
                 growing intervals; `kubectl get --show-managed-fields -o yaml` names who writes it"
            );
        }
    }

    /// The object differs from the watch's: the next turn decides from that.
    async fn look_again(&self, name: &str) {
        let ticket = self.properties.begin_write();
        if let Ok(Some(found)) = self.api.get_opt(name).await {
            self.properties.written(ticket, found);
        }
    }
}

fn hash_of(value: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(value)
}

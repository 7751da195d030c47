//! Performs the actions of a plan, one after the other, and shows their answers to the stores at once. Every write is a
//! forced server-side apply. A creating one is refused if any object exists, any other if the object is not the one, in
//! the version, that the plan was made from. None begins without a permit. It never decides what to write.

use api::{
    names::{AGENT_MANAGER, MULTICLUSTER_API_VERSION},
    server::{Api, Client},
};
use jiff::Timestamp;
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Service};
use kube_core::{
    Resource,
    params::{DeleteParams, Patch, PatchParams, Preconditions, ValidationDirective},
};
use model::ServiceKey;
use serde_json::Value;
use tracing::warn;

use super::{
    contention::Part,
    event::{self, Note},
    failure::Failure,
    seen::{self, Seen},
};
use crate::{
    convert::{derived, export, import, slice},
    lease::WritePermit,
    plan::{Action, Kind, REASON_WITHDRAWAL_HELD, content::ImportStatus, view::Unwritten},
    watch::{Kept, KeptService, Watched, Watches},
};

/// The resourceVersion of an apply that may only create. No object has it, because the first revision of a store is
/// that of the empty one; so an API server refuses the apply with a conflict if an object exists, and creates one
/// otherwise (ADR 0024).
pub const ONLY_IF_ABSENT: &str = "1";

/// Writes to one cluster.
#[derive(Clone)]
pub(crate) struct Performer {
    client: Client,
    watches: Watches,
    permit: WritePermit,
}

/// One object to write: its place, its uid if known, and its version.
struct Target<'a> {
    namespace: &'a str,
    name: &'a str,
    /// Absent: it is to be created.
    uid: Option<&'a str>,
    version: &'a mut u64,
}

impl Performer {
    pub(crate) fn new(client: Client, watches: Watches, permit: WritePermit) -> Self {
        Self {
            client,
            watches,
            permit,
        }
    }

    /// Asked before every request that writes: another agent may lead by now.
    fn permitted(&self) -> Result<(), Failure> {
        if self.permit.holds() {
            Ok(())
        } else {
            Err(Failure::Suspended)
        }
    }

    /// Performs one action on the objects of `service`, as they were `seen`, and takes note of what became of them.
    pub(super) async fn perform(
        &self,
        service: &ServiceKey,
        action: &Action,
        seen: &mut Seen,
    ) -> Result<(), Failure> {
        self.permitted()?;
        let namespace = &service.namespace;
        match action {
            Action::ApplyImport {
                uid,
                content,
                revision,
            } => {
                let body = import::import_json(service, uid.as_deref(), content, *revision);
                let target = Target {
                    namespace,
                    name: &service.name,
                    uid: uid.as_deref(),
                    version: &mut seen.import,
                };
                self.apply(&self.watches.imports, target, body, |_| ()).await
            }
            Action::ApplyImportStatus { uid, status } => {
                self.apply_import_status(service, uid.as_deref(), status, &mut seen.import)
                    .await
            }
            Action::ApplyDerived {
                name,
                uid,
                content,
                cluster_ips,
            } => {
                let found = self
                    .watches
                    .services
                    .get(namespace, name)
                    .filter(|_| uid.is_some());
                let uid = uid.as_deref();
                let found = found.as_deref().and_then(KeptService::derived);
                let body = derived::derived_json(service, name, uid, content, cluster_ips, found);
                let target = Target {
                    namespace,
                    name,
                    uid,
                    version: &mut seen.derived,
                };
                self.apply_derived(target, body, found).await
            }
            Action::ApplySlice {
                name,
                uid,
                content,
                revision,
            } => {
                let body = slice::slice_json(namespace, name, uid.as_deref(), content, *revision);
                let target = Target {
                    namespace,
                    name,
                    uid: uid.as_deref(),
                    version: seen.of(Kind::Slice, name),
                };
                self.apply(&self.watches.slices, target, body, |_| ()).await
            }
            Action::Delete { kind, name, uid } => {
                let target = Target {
                    namespace,
                    name,
                    uid: Some(uid),
                    version: seen.of(*kind, name),
                };
                self.delete(*kind, target).await
            }
            Action::ApplyExportStatus { uid, conditions } => {
                let found = self.watches.exports.get(namespace, &service.name);
                let (before, now) = (found.as_ref().map(|found| found.transitions()), Timestamp::now());
                let body = export::export_status_json(service, uid, conditions, before, now);
                let target = Target {
                    namespace,
                    name: &service.name,
                    uid: Some(uid),
                    version: &mut seen.export,
                };
                // The watch shows if it has been replaced: exports are not read one by one.
                self.apply_status(&self.watches.exports, target, body).await
            }
            Action::ExportEvent {
                export_uid,
                reason,
                message,
            } => {
                self.export_event(service, export_uid, reason, message).await;
                Ok(())
            }
        }
    }

    /// The uid of an import that this very plan created is in the store by now.
    async fn apply_import_status(
        &self,
        service: &ServiceKey,
        uid: Option<&str>,
        status: &ImportStatus,
        version: &mut u64,
    ) -> Result<(), Failure> {
        let imports = &self.watches.imports;
        let found = imports.get(&service.namespace, &service.name);
        let created = found.as_ref().map(|found| &*found.head().uid);
        let (before, now) = (found.as_ref().map(|found| found.transitions()), Timestamp::now());
        let (namespace, name, uid) = (&service.namespace, &service.name, uid.or(created));
        let body = import::import_status_json(service, uid, status, before, now);
        let target = Target {
            namespace,
            name,
            uid,
            version,
        };
        let written = self.apply_status(imports, target, body).await;
        if let Err(Failure::Stale(_)) = written {
            let api = Api::namespaced(self.client.clone(), namespace);
            self.look_again(imports, &api, name).await?;
        }
        written
    }

    /// Ports that somebody else put into a derived Service, and names that they gave to ours, stay in it when ours
    /// are applied: then they are removed. Such ports may collide with ours, so that the API server takes neither:
    /// then theirs are set aside first.
    async fn apply_derived(
        &self,
        target: Target<'_>,
        mut body: Value,
        found: Option<&derived::Derived>,
    ) -> Result<(), Failure> {
        let services = &self.watches.services;
        let Target {
            namespace,
            name,
            uid,
            version,
        } = target;
        if uid.is_some() {
            seen::state(&mut body, *version);
        }
        let mixed = |written: &Service| derived::has_parts_of_others(&body, written).then(|| written.clone());
        let same = Target {
            namespace,
            name,
            uid,
            version: &mut *version,
        };
        match self.apply(services, same, body.clone(), mixed).await {
            Ok(Some(mixed)) => self.remove_others(name, namespace, &body, &mixed, version).await,
            Ok(None) => Ok(()),
            Err(refused @ Failure::Refused { .. }) => {
                let Some(aside) = found.and_then(|found| derived::with_others_set_aside(&body, found)) else {
                    return Err(refused);
                };
                self.permitted()?;
                let api: Api<Service> = Api::namespaced(self.client.clone(), namespace);
                let both = api.patch(name, &force(), &Patch::Apply(&aside)).await?;
                self.remove_others(name, namespace, &body, &both, version).await
            }
            Err(failure) => Err(failure),
        }
    }

    /// Leaves of the ports of a derived Service what `body` says of them.
    async fn remove_others(
        &self,
        name: &str,
        namespace: &str,
        body: &Value,
        both: &Service,
        version: &mut u64,
    ) -> Result<(), Failure> {
        self.permitted()?;
        let services = &self.watches.services;
        let api: Api<Service> = Api::namespaced(self.client.clone(), namespace);
        let removal = derived::removal_of_others(body, both);
        // A removal leaves no fields of its own: the apply stays the only entry of ours.
        let plainly = PatchParams {
            field_manager: Some(AGENT_MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let ticket = services.begin_write();
        let left = api.patch(name, &plainly, &Patch::Merge(&removal)).await?;
        warn!(name, "removed what somebody else had put into a derived Service");
        *version = seen::version_of(&left);
        services.written(ticket, left);
        Ok(())
    }

    /// `read` is shown the answer.
    async fn apply<K, T>(
        &self,
        store: &Watched<K>,
        target: Target<'_>,
        mut body: Value,
        read: impl FnOnce(&K::Object) -> T,
    ) -> Result<T, Failure>
    where
        K: Kept<Object: Resource<Scope = NamespaceResourceScope>>,
    {
        let api: Api<K::Object> = Api::namespaced(self.client.clone(), target.namespace);
        match target.uid {
            Some(_) => seen::state(&mut body, *target.version),
            // If an object exists after all, it is not touched: it is ours, after an answer that was lost, or
            // unmanaged, and the next plan sees which.
            None => body["metadata"]["resourceVersion"] = ONLY_IF_ABSENT.into(),
        }
        let ticket = store.begin_write();
        match api.patch(target.name, &force(), &Patch::Apply(&body)).await {
            Err(api::server::Error::Api(status)) if status.code == 409 => {
                self.look_again(store, &api, target.name).await?;
                Err(Failure::Stale(status.message))
            }
            answer => {
                let written = answer?;
                *target.version = seen::version_of(&written);
                let answer = read(&written);
                store.written(ticket, written);
                Ok(answer)
            }
        }
    }

    /// Plans again from the object as it is now, since it differs from the one that the plan was made from. Writes
    /// nothing unless the new plan says so.
    async fn look_again<K: Kept>(
        &self,
        store: &Watched<K>,
        api: &Api<K::Object>,
        name: &str,
    ) -> Result<(), Failure> {
        let ticket = store.begin_write();
        if let Some(found) = api.get_opt(name).await? {
            store.written(ticket, found);
        }
        Ok(())
    }

    async fn apply_status<K>(
        &self,
        store: &Watched<K>,
        target: Target<'_>,
        mut body: Value,
    ) -> Result<(), Failure>
    where
        K: Kept<Object: Resource<Scope = NamespaceResourceScope>>,
    {
        let api: Api<K::Object> = Api::namespaced(self.client.clone(), target.namespace);
        seen::state(&mut body, *target.version);
        let ticket = store.begin_write();
        let written = api
            .patch_status(target.name, &force(), &Patch::Apply(&body))
            .await?;
        *target.version = seen::version_of(&written);
        store.written(ticket, written);
        Ok(())
    }

    async fn delete(&self, kind: Kind, target: Target<'_>) -> Result<(), Failure> {
        let watches = &self.watches;
        match kind {
            Kind::Import => self.delete_from(&watches.imports, target).await,
            Kind::Derived => self.delete_from(&watches.services, target).await,
            Kind::Slice => self.delete_from(&watches.slices, target).await,
        }
    }

    async fn delete_from<K>(&self, store: &Watched<K>, target: Target<'_>) -> Result<(), Failure>
    where
        K: Kept<Object: Resource<Scope = NamespaceResourceScope>>,
    {
        let Target {
            namespace,
            name,
            uid,
            version,
        } = target;
        let uid = uid.unwrap_or_default();
        let api: Api<K::Object> = Api::namespaced(self.client.clone(), namespace);
        let ticket = store.begin_write();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: (*version > 0).then(|| version.to_string()),
            }),
            ..DeleteParams::default()
        };
        match api.delete(name, &params).await {
            // with a finalizer of somebody else the object lives on for a while
            Ok(shown) => match shown {
                Some(object) if object.meta().finalizers.iter().flatten().next().is_some() => {
                    *version = seen::version_of(&object);
                    store.written(ticket, object);
                }
                _ => store.deleted(namespace, name, uid),
            },
            Err(api::server::Error::Api(status)) if status.code == 404 => store.deleted(namespace, name, uid),
            Err(api::server::Error::Api(status)) if status.code == 409 => {
                self.look_again(store, &api, name).await?;
                return Err(Failure::Stale(status.message));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn export_event(&self, service: &ServiceKey, uid: &str, reason: &str, message: &str) {
        let note = Note {
            namespace: &service.namespace,
            api_version: MULTICLUSTER_API_VERSION,
            kind: "ServiceExport",
            name: &service.name,
            uid: Some(uid),
            reason,
            text: message,
        };
        let _ = event::write(&self.client, &note).await; // one that is lost is no error
    }

    /// Tells people that an object that is not ours has a name that we need. False: not told, and worth another try.
    pub(crate) async fn stranger_event(&self, service: &ServiceKey, kind: Kind, name: &str) -> bool {
        let text = format!(
            "Tributary needs the name of this {} for the service {service} and does not touch what is not its own: \
             delete or rename it.",
            kind.as_str()
        );
        self.event(service, kind.as_str(), name, "NameTaken", &text).await
    }

    /// Tells people that an object of a service can be neither written nor deleted.
    pub(super) async fn unwritten_event(&self, service: &ServiceKey, unwritten: &Unwritten) {
        let text = format!("Tributary {unwritten}. It goes on trying.");
        let kind = if unwritten.kind.is_some() {
            Kind::Import.as_str()
        } else {
            "ServiceExport"
        };
        self.event(service, kind, &service.name, "CannotWrite", &text)
            .await;
    }

    /// Tells people that an import stays although the hub took it away.
    pub(super) async fn withdrawal_event(&self, service: &ServiceKey) {
        let text = "The hub took away most imports of this cluster at once, this one with them. Tributary keeps them until \
                    the hub has them again, an operator confirms that they may go, or the time of the hold is over; \
                    the agent's doctor says how.";
        self.event(
            service,
            Kind::Import.as_str(),
            &service.name,
            REASON_WITHDRAWAL_HELD,
            text,
        )
        .await;
    }

    /// Tells people that somebody else changes an object of ours back again and again.
    pub(super) async fn contended_event(&self, service: &ServiceKey, part: &Part) {
        let what = if part.status { "the status of this" } else { "this" };
        let text = format!(
            "Somebody else changes {what} {} back again and again; Tributary writes it at growing intervals. \
             `kubectl get --show-managed-fields -o yaml` names who writes it: keep that controller away from it.",
            part.kind
        );
        self.event(service, part.kind, &part.name, "Contended", &text)
            .await;
    }

    async fn event(&self, service: &ServiceKey, kind: &str, name: &str, reason: &str, text: &str) -> bool {
        if self.permitted().is_err() {
            return false;
        }
        let note = Note {
            namespace: &service.namespace,
            api_version: match kind {
                "Service" => "v1",
                "EndpointSlice" => "discovery.k8s.io/v1",
                _ => MULTICLUSTER_API_VERSION,
            },
            kind,
            name,
            uid: None,
            reason,
            text,
        };
        event::write(&self.client, &note).await
    }
}

/// An apply with a field that is not declared fails whatever is asked for here. To warn of fields beside, which is what
/// it does unless told, an API server reads the whole body a second time; nobody would see the warning.
fn force() -> PatchParams {
    PatchParams::apply(AGENT_MANAGER)
        .force()
        .validation(ValidationDirective::Ignore)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_apply_asks_for_warnings_that_nobody_reads() {
        let asked = force().field_validation;
        assert!(matches!(asked, Some(ValidationDirective::Ignore)), "{asked:?}");
    }
}

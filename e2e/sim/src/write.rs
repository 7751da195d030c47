//! The write path of the simulated API server: create, update, patch, apply and delete of one object.
//! Every way to write ends in `admit`, which prunes, defaults, counts owners, allocates, validates and commits.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    clock::timestamp,
    kinds::Kind,
    managers::{Managers, Subresource, Writer},
    patch, schema, service,
    status::{Cause, Refusal},
    store::{ObjectKey, Store, place_of},
    validate, workload,
};

/// The way in which an object is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum How {
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH with RFC 7386.
    MergePatch,
    /// PATCH by the merge keys of built-in kinds.
    StrategicPatch,
    /// Server-side apply, forced or not.
    Apply {
        /// Takes fields from other managers.
        force: bool,
    },
}

/// One write request.
pub(crate) struct Write {
    pub(crate) kind: Arc<Kind>,
    pub(crate) version: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) subresource: Subresource,
    pub(crate) how: How,
    pub(crate) manager: String,
    pub(crate) strict: bool,
    pub(crate) body: Value,
}

impl Write {
    fn is_status(&self) -> bool {
        self.subresource == Subresource::Status
    }
}

impl Store {
    /// Performs a write and returns the object and whether it is new.
    pub(crate) fn write(&mut self, mut write: Write) -> Result<(bool, Arc<Value>), Refusal> {
        self.settle_names(&mut write)?;
        let place = (
            write.kind.key().to_owned(),
            write.namespace.clone(),
            write.name.clone(),
        );
        let old = self.get(&place.0, &place.1, &place.2);
        match (&old, &write.how) {
            (Some(_), How::Create) => return Err(Refusal::exists(&write.kind, &write.name)),
            (None, How::Apply { .. }) if !write.is_status() => self.check_absent(&write)?,
            (None, How::Create) => self.check_namespace(&write)?,
            (None, _) => return Err(Refusal::not_found(&write.kind, &write.name)),
            (Some(old), _) => check_preconditions(&write, old)?,
        }
        let (object, managers) = self.proposed(&write, old.as_deref())?;
        self.admit(&write, place, old, object, managers)
    }

    fn settle_names(&mut self, write: &mut Write) -> Result<(), Refusal> {
        let Write { body, kind, .. } = write;
        if !body.is_object() {
            return Err(Refusal::bad_request("the body is not a JSON object"));
        }
        if body["metadata"].is_null() {
            body["metadata"] = json!({});
        }
        if matches!(write.how, How::Create | How::Update | How::Apply { .. }) {
            let wanted = kind.api_version(&write.version);
            if body["kind"] != json!(kind.kind) || body["apiVersion"] != json!(wanted) {
                let message = format!(
                    "the body is {} {}, expected {wanted} {}",
                    body["apiVersion"], body["kind"], kind.kind
                );
                return Err(Refusal::bad_request(message));
            }
        }
        let metadata = &mut body["metadata"];
        if write.name.is_empty() {
            let prefix = metadata["generateName"].as_str().unwrap_or_default();
            write.name = match metadata["name"].as_str().filter(|name| !name.is_empty()) {
                Some(name) => name.to_owned(),
                None if prefix.is_empty() => {
                    let cause = Cause::required(
                        "metadata.name",
                        "Required value: name or generateName is required",
                    );
                    return Err(Refusal::invalid(kind, "", &[cause]));
                }
                None => format!("{prefix}{}", self.random.name_suffix()),
            };
        }
        for (field, asked) in [("name", &write.name), ("namespace", &write.namespace)] {
            let stated = metadata[field].as_str().filter(|stated| !stated.is_empty());
            if let Some(stated) = stated.filter(|stated| stated != asked) {
                let message = format!(
                    "the {field} of the object ({stated}) does not match the one on the URL ({asked})"
                );
                return Err(Refusal::bad_request(message));
            }
            if !asked.is_empty() {
                metadata[field] = json!(asked);
            }
        }
        Ok(())
    }

    fn check_namespace(&self, write: &Write) -> Result<(), Refusal> {
        if !write.kind.namespaced {
            return Ok(());
        }
        let Some(namespace) = self.get("namespaces", "", &write.namespace) else {
            let namespaces = self.kinds.named("Namespace").ok_or_else(Refusal::no_such_path)?;
            return Err(Refusal::not_found(&namespaces, &write.namespace));
        };
        if namespace["metadata"]["deletionTimestamp"].is_null() {
            return Ok(());
        }
        Err(Refusal::terminating(&write.kind, &write.name, &write.namespace))
    }

    /// An apply to an absent object creates it, unless it names a uid.
    fn check_absent(&self, write: &Write) -> Result<(), Refusal> {
        if let Some(uid) = write.body["metadata"]["uid"]
            .as_str()
            .filter(|uid| !uid.is_empty())
        {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Refusal::conflict(&write.kind, &write.name, &why));
        }
        self.check_namespace(write)
    }

    /// The object as the request would have it, defaults included, with the owners of its fields.
    fn proposed(&self, write: &Write, old: Option<&Value>) -> Result<(Value, Managers), Refusal> {
        let kind = &write.kind;
        let schema = kind.schema(&write.version);
        let live = old.cloned().unwrap_or_else(|| kind.blank.clone());
        let managers = Managers::of(&live);
        let writer = Writer {
            manager: write.manager.clone(),
            api_version: kind.api_version(&write.version),
            subresource: write.subresource,
            time: timestamp(self.clock.now_ms()),
        };
        let confine = |object: &mut Value| confine(write, old, object);
        if let How::Apply { force } = write.how {
            let applied = applied_part(write)?;
            let finish = |object: &mut Value| {
                confine(object);
                default(kind, object);
            };
            let applied = managers.after_apply(&live, &applied, &schema, &writer, force, &finish);
            let applied = applied.map_err(|causes| Refusal::managers(kind, &write.name, &causes))?;
            return Ok((applied.object, applied.managers));
        }
        let mut object = match write.how {
            How::MergePatch => patched(&live, |object| patch::merge(object, &write.body)),
            How::StrategicPatch => patched(&live, |object| patch::strategic(object, &write.body)),
            _ => write.body.clone(),
        };
        if kind.custom {
            let unknown = schema::prune(&mut object, &schema, "");
            if let Some(first) = unknown.first().filter(|_| write.strict) {
                let field = first.trim_start_matches('.');
                return Err(Refusal::bad_request(format!(
                    "strict decoding error: unknown field {field:?}"
                )));
            }
        }
        // Whoever states owners of fields in a write decides them, as tools that take over from others do.
        let stated = object["metadata"]["managedFields"].as_array();
        let managers = if stated.is_some_and(|stated| !stated.is_empty()) && !write.is_status() {
            Managers::of(&object)
        } else {
            managers
        };
        confine(&mut object);
        default(kind, &mut object);
        let managers = managers.after_update(&live, &object, &schema, &writer);
        Ok((object, managers))
    }

    fn admit(
        &mut self,
        write: &Write,
        place: ObjectKey,
        old: Option<Arc<Value>>,
        mut object: Value,
        managers: Managers,
    ) -> Result<(bool, Arc<Value>), Refusal> {
        let kind = &write.kind;
        let before = old.as_deref();
        let mut causes = self.system_metadata(write, before, &mut object);
        schema::validate(&object, before, &kind.schema(&write.version), "", &mut causes);
        validate::object(kind, &object, before, &mut causes);
        if kind.kind == "Service" && causes.is_empty() && !write.is_status() {
            let taken = self.taken_addresses();
            causes.extend(service::allocate(&mut object, before, &self.ranges, &taken));
        }
        if !causes.is_empty() {
            return Err(Refusal::invalid(kind, &write.name, &causes));
        }
        let same = |old: &Value| {
            equal_without(old, &object, &["metadata"])
                && equal_without(&old["metadata"], &object["metadata"], &["managedFields"])
        };
        if let Some(old) = old
            .as_ref()
            .filter(|old| same(old) && managers.same_as(&Managers::of(old)))
        {
            return Ok((false, old.clone()));
        }
        object["metadata"]["managedFields"] = managers.to_json();
        let finished = !object["metadata"]["deletionTimestamp"].is_null()
            && kind.kind != "Namespace"
            && object["metadata"]["finalizers"]
                .as_array()
                .is_none_or(Vec::is_empty);
        let committed = self.commit(place, (!finished).then_some(object));
        self.run_controllers();
        Ok((old.is_none(), committed))
    }

    /// Sets what only the server sets; a request that contradicts it is refused.
    fn system_metadata(&mut self, write: &Write, old: Option<&Value>, object: &mut Value) -> Vec<Cause> {
        let kind = &write.kind;
        let mut causes = Vec::new();
        object["apiVersion"] = json!(kind.api_version(&kind.versions[0]));
        object["kind"] = json!(kind.kind);
        let Some(old) = old else {
            let metadata = &mut object["metadata"];
            metadata["uid"] = json!(self.random.uid());
            metadata["creationTimestamp"] = json!(timestamp(self.clock.now_ms()));
            if kind.has_generation {
                metadata["generation"] = json!(1);
            }
            metadata
                .as_object_mut()
                .map(|metadata| metadata.remove("resourceVersion"));
            if kind.kind == "Namespace" {
                object["spec"] = json!({"finalizers": ["kubernetes"]});
                object["status"] = json!({"phase": "Active"});
            }
            return causes;
        };
        let uid = object["metadata"]["uid"].clone();
        if !uid.is_null() && uid != old["metadata"]["uid"] {
            causes.push(Cause::invalid(
                "metadata.uid",
                format!("Invalid value: {uid}: field is immutable"),
            ));
        }
        for name in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "generation",
            "resourceVersion",
        ] {
            match &old["metadata"][name] {
                Value::Null => drop(
                    object["metadata"]
                        .as_object_mut()
                        .map(|metadata| metadata.remove(name)),
                ),
                value => object["metadata"][name] = value.clone(),
            }
        }
        let same = equal_without(old, object, &["metadata", "status"])
            && (kind.custom || old["metadata"]["labels"] == object["metadata"]["labels"]);
        if kind.has_generation && !same {
            object["metadata"]["generation"] = json!(old["metadata"]["generation"].as_u64().unwrap_or(0) + 1);
        }
        causes
    }

    /// Deletes an object under the preconditions of the request's DeleteOptions.
    pub(crate) fn remove(
        &mut self,
        kind: &Kind,
        place: ObjectKey,
        options: &Value,
    ) -> Result<Arc<Value>, Refusal> {
        let object = self
            .get(&place.0, &place.1, &place.2)
            .ok_or_else(|| Refusal::not_found(kind, &place.2))?;
        for (name, label) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let (wanted, is) = (&options["preconditions"][name], &object["metadata"][name]);
            if !wanted.is_null() && wanted != is {
                let why = format!(
                    "Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {is}"
                );
                return Err(Refusal::conflict(kind, &place.2, &why));
            }
        }
        let orphan = options["propagationPolicy"] == json!("Orphan");
        let last = self.delete(kind, place_of(&place.0, &object), orphan);
        self.run_controllers();
        Ok(last)
    }
}

/// Returns true if two objects are equal, whatever stands in some of their fields.
fn equal_without(one: &Value, other: &Value, left_out: &[&str]) -> bool {
    fn fields<'a>(value: &'a Value, left_out: &[&str]) -> BTreeMap<&'a str, &'a Value> {
        let all = value.as_object().into_iter().flatten();
        all.map(|(name, value)| (name.as_str(), value))
            .filter(|(name, _)| !left_out.contains(name))
            .collect()
    }
    fields(one, left_out) == fields(other, left_out)
}

fn patched(live: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut object = live.clone();
    change(&mut object);
    object
}

/// The part of an applied configuration that this endpoint takes; refuses what the schema does not know.
fn applied_part(write: &Write) -> Result<Value, Refusal> {
    let mut applied = write.body.clone();
    if !applied["metadata"]["managedFields"].is_null() {
        return Err(Refusal::bad_request("metadata.managedFields must be nil"));
    }
    if let Some(map) = applied.as_object_mut() {
        map.retain(|name, value| {
            !value.is_null()
                && match (name.as_str(), write.is_status()) {
                    ("apiVersion" | "kind" | "metadata", _) => true,
                    ("status", status) => status || !write.kind.has_status,
                    (_, status) => !status,
                }
        });
    }
    if write.kind.custom {
        let unknown = schema::prune(&mut applied.clone(), &write.kind.schema(&write.version), "");
        if let Some(field) = unknown.first() {
            let message = format!(
                "failed to create typed patch object ({}/{}; {}): {field}: field not declared in schema",
                write.namespace,
                write.name,
                write.kind.api_version(&write.version)
            );
            return Err(Refusal::new(500, "", message));
        }
    }
    Ok(applied)
}

/// Writes through /status touch nothing but the status; others leave it alone.
fn confine(write: &Write, old: Option<&Value>, object: &mut Value) {
    if write.is_status() {
        let status = object["status"].take();
        let (metadata, uid) = (
            old.cloned().unwrap_or_default(),
            object["metadata"]["uid"].clone(),
        );
        *object = metadata;
        if !uid.is_null() {
            object["metadata"]["uid"] = uid;
        }
        if let Some(map) = object.as_object_mut() {
            map.insert("status".into(), status);
            map.retain(|_, value| !value.is_null());
        }
    } else if write.kind.has_status
        && let Some(map) = object.as_object_mut()
    {
        match old.and_then(|old| old.get("status")) {
            Some(status) => map.insert("status".into(), status.clone()),
            None => map.remove("status"),
        };
    }
}

fn default(kind: &Kind, object: &mut Value) {
    match kind.kind.as_str() {
        "Service" => service::default(object),
        "EndpointSlice" => service::default_slice(object),
        "Deployment" => workload::default(object),
        "Namespace" => {
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        _ => {}
    }
}

fn check_preconditions(write: &Write, old: &Value) -> Result<(), Refusal> {
    let stated = write.body["metadata"]["resourceVersion"]
        .as_str()
        .filter(|stated| !stated.is_empty());
    if stated.is_some_and(|stated| old["metadata"]["resourceVersion"] != json!(stated)) {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(&write.kind, &write.name, why));
    }
    let conditional = write.kind.custom || matches!(write.kind.kind.as_str(), "Lease" | "Namespace");
    if write.how == How::Update && stated.is_none() && conditional {
        let message = "Invalid value: 0: must be specified for an update";
        let cause = Cause::invalid("metadata.resourceVersion", message);
        return Err(Refusal::invalid(&write.kind, &write.name, &[cause]));
    }
    let (uid, is) = (&write.body["metadata"]["uid"], &old["metadata"]["uid"]);
    if write.how == How::Update && uid.as_str().is_some_and(|uid| !uid.is_empty()) && uid != is {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {is}");
        return Err(Refusal::conflict(&write.kind, &write.name, &why));
    }
    Ok(())
}

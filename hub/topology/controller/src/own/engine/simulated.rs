//! Owns: an API server in memory as far as topologies need one: server-side apply of one manager, identities, templates whose
//! content stays, and a provider that takes its time; it may end between any two writes.
//! Never: takes what a real one would not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value, json};

use super::super::{
    rules::{event::ObjectName, rival::Signs, told::Told},
    server::{Failed, Server},
};
use crate::desired::{
    change::Defaulted,
    compare::MANAGER,
    objects::{Listed, Unread, label, text},
};
use event_log::{Faults, MemoryDisk};

/// Namespace, kind, name.
pub(super) type Key = (String, String, String);

/// The end of the simulated process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// After so many writes.
    pub(super) writes: usize,
    /// True if the last one is still carried out.
    pub(super) carried_out: bool,
}

#[derive(Default)]
pub(super) struct Management {
    pub(super) objects: BTreeMap<Key, Value>,
    /// Every object that was made, in order.
    pub(super) made: Vec<Key>,
    /// Number of writes.
    pub(super) writes: usize,
    /// Time at which the process ends.
    pub(super) end: Option<End>,
    /// Kinds that are refused, in a namespace and of a Cluster of this label.
    pub(super) refused: Option<(String, String)>,
    pub(super) signs: Signs,
    /// Reports of finished requests.
    pub(super) told: Vec<Told>,
    /// The disk of the process, which refuses writes once the process has ended.
    pub(super) disk: MemoryDisk,
    /// True if texts are trimmed, so that a value read differs from the one written.
    pub(super) trims: bool,
    /// Kinds that cannot be read.
    pub(super) unread: Unread,
    /// The answer to every dry run, if none is carried out.
    pub(super) dry: Option<Failed>,
    /// True if no defaults are written, since somebody else writes meanwhile.
    pub(super) conflicts: bool,
    /// True if writes are never answered.
    pub(super) hangs: bool,
    /// True if not even a dry run may change the content of a template.
    pub(super) immutable: bool,
    /// Templates whose dry run showed that their content changes, or may not.
    confirmed: BTreeSet<Key>,
    /// Templates that another one took the place of without that.
    pub(super) unconfirmed: Vec<Key>,
    /// Number of template rotations.
    pub(super) rotations: usize,
    ended: bool,
    number: u64,
}

/// A handle of it.
#[derive(Clone, Default)]
pub(super) struct Simulated(Arc<Mutex<Management>>);

impl Simulated {
    pub(super) fn world(&self) -> MutexGuard<'_, Management> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new process asks.
    pub(super) fn begin(&self, end: Option<End>) {
        let mut world = self.world();
        (world.ended, world.writes, world.end) = (false, 0, end);
        world.disk.set_faults(Faults::default());
    }

    pub(super) fn has_ended(&self) -> bool {
        self.world().ended
    }

    /// Somebody makes an object.
    pub(super) fn put(&self, object: &Value) {
        self.world().put(object.clone());
    }

    /// Somebody changes an object.
    pub(super) fn edit(&self, namespace: &str, kind: &str, name: &str, edit: impl FnOnce(&mut Value)) {
        let mut world = self.world();
        let key = (namespace.to_owned(), kind.to_owned(), name.to_owned());
        let mut object = world.objects[&key].clone();
        let before = object["spec"].clone();
        edit(&mut object);
        if object["spec"] != before {
            object["metadata"]["generation"] =
                json!(object["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        world.store(key, object);
    }

    /// Takes the next step of a provider; returns true if there was one.
    pub(super) fn provide(&self) -> bool {
        self.world().provide()
    }
}

impl Management {
    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn store(&mut self, key: Key, mut object: Value) {
        object["metadata"]["resourceVersion"] = json!(self.next().to_string());
        self.objects.insert(key, object);
    }

    fn put(&mut self, mut object: Value) {
        let of = |place: &str| text(&object, place).unwrap_or_default().to_owned();
        let key = (of("/metadata/namespace"), of("/kind"), of("/metadata/name"));
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{}", self.next()));
        }
        object["metadata"]["generation"] = json!(1);
        self.made.push(key.clone());
        self.store(key, object);
    }

    /// The next write, if the process lives to see its answer.
    fn write(&mut self, effect: impl FnOnce(&mut Self)) -> Result<(), Failed> {
        if let Some(end) = self.end
            && self.writes == end.writes
        {
            self.ended = true;
            self.disk.set_faults(Faults {
                writes_before_full: Some(0),
                ..Faults::default()
            });
            if end.carried_out {
                effect(self);
            }
            return Err(Failed::Unknown("the process ended".to_owned()));
        }
        self.writes += 1;
        effect(self);
        Ok(())
    }

    /// The answer to a dry run of an object.
    fn dry_run(&mut self, key: Key, existing: Option<&Value>, object: Value) -> Result<Value, Failed> {
        if let Some(failed) = &self.dry {
            return Err(failed.clone());
        }
        let changes = existing.is_some_and(|one| one["spec"] != object["spec"]);
        if changes && key.1.ends_with("Template") {
            self.confirmed.insert(key);
            if self.immutable {
                let why = "spec.template.spec: field is immutable (HTTP 422)";
                return Err(Failed::Immutable(why.to_owned()));
            }
        }
        Ok(object)
    }

    /// Counts templates that are not referred to any more because another one of their kind is.
    fn rotated(&mut self, namespace: &str, before: &Value, after: &Value) {
        let (mut old, mut new) = (BTreeSet::new(), BTreeSet::new());
        templates(before, &mut old);
        templates(after, &mut new);
        for (kind, name) in old.difference(&new) {
            if new.difference(&old).any(|(other, _)| other == kind) {
                self.rotations += 1;
                let key = (namespace.to_owned(), kind.clone(), name.clone());
                if !self.confirmed.contains(&key) {
                    self.unconfirmed.push(key);
                }
            }
        }
    }

    /// Machines are replaced in two steps: what is wanted is seen, then it is there and what was is gone.
    fn provide(&mut self) -> bool {
        let keys: Vec<Key> = self.objects.keys().cloned().collect();
        let mut news = false;
        for key in keys
            .iter()
            .filter(|(_, kind, _)| kind == "Plane" || kind == "MachineDeployment" || kind == "MachinePool")
        {
            let mut object = self.objects[key].clone();
            let wanted = match key.1.as_str() {
                "Plane" => json!([object["spec"]["version"], object["spec"]["machineTemplate"]]),
                "MachinePool" => self.machines_of(&key.0, &object),
                _ => object["spec"]["template"]["spec"].clone(),
            };
            let status = object["status"].clone();
            let replicas = object["spec"]["replicas"].as_i64().unwrap_or(0);
            let observed = status["observedGeneration"] == object["metadata"]["generation"];
            if status["done"] == wanted && status["replicas"] == replicas && observed {
                continue;
            }
            news = true;
            let done = status["seen"] == wanted;
            let up_to_date = if done { replicas } else { 0 };
            object["status"] = json!({
                "seen": wanted, "done": if done { wanted.clone() } else { status["done"].clone() },
                "observedGeneration": object["metadata"]["generation"],
                "replicas": replicas, "readyReplicas": replicas, "upToDateReplicas": up_to_date,
                "version": if done { object["spec"]["version"].clone() } else { status["version"].clone() },
            });
            if key.1 == "MachineDeployment" {
                self.machine_sets(key, &object, done);
            }
            if key.1 == "MachinePool" {
                object["status"]["nodeRefs"] = json!([{"name": "node"}]);
            }
            self.store(key.clone(), object);
        }
        news
    }

    /// The content of a pool's machines: its own, and that of the objects that it refers to.
    fn machines_of(&self, namespace: &str, pool: &Value) -> Value {
        let machine = &pool["spec"]["template"]["spec"];
        let content = |reference: &Value| {
            let of = |name: &str| reference[name].as_str().unwrap_or_default().to_owned();
            let key = (namespace.to_owned(), of("kind"), of("name"));
            self.objects.get(&key).map(|object| object["spec"].clone())
        };
        json!([
            machine,
            content(&machine["infrastructureRef"]),
            content(&machine["bootstrap"]["configRef"])
        ])
    }

    fn machine_sets(&mut self, key: &Key, deployment: &Value, done: bool) {
        if done {
            let wanted = &deployment["spec"]["template"]["spec"];
            self.objects.retain(|(_, kind, _), object| {
                let of = object["metadata"]["labels"]["of"] == json!(key.2);
                kind != "MachineSet" || !of || object["spec"]["template"]["spec"] == *wanted
            });
        } else {
            let number = self.next();
            self.put(json!({
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineSet",
                "metadata": {
                    "name": format!("{}-{number}", key.2), "namespace": key.0,
                    "labels": {
                        "of": key.2,
                        "cluster.x-k8s.io/cluster-name": label(deployment, "cluster.x-k8s.io/cluster-name"),
                    },
                },
                "spec": {"template": {"spec": deployment["spec"]["template"]["spec"]}},
            }));
        }
    }

    fn applied(&self, existing: Option<&Value>, content: &Value) -> Value {
        let mut object = existing.cloned().unwrap_or_else(|| json!({"metadata": {}}));
        if let Some(owned) = existing.and_then(|one| one.pointer("/metadata/managedFields/0/fieldsV1")) {
            take_away(&mut object, owned, content);
        }
        let mut content = content.clone();
        if self.trims {
            trim(&mut content);
        }
        merge(&mut object, &content);
        let mut said = content.clone();
        for name in ["name", "namespace", "uid"] {
            said["metadata"].as_object_mut().map(|about| about.remove(name));
        }
        object["metadata"]["managedFields"] =
            json!([{"manager": MANAGER, "operation": "Apply", "fieldsV1": tree(&said)}]);
        object
    }
}

/// Fields that were said, and are not any more.
fn take_away(object: &mut Value, owned: &Value, content: &Value) {
    let (Some(fields), Some(owned)) = (object.as_object_mut(), owned.as_object()) else {
        return;
    };
    for (name, below) in owned {
        let name = name.trim_start_matches("f:");
        match content.get(name) {
            None => drop(fields.remove(name)),
            Some(content) => {
                if let Some(field) = fields.get_mut(name) {
                    take_away(field, below, content);
                }
            }
        }
    }
}

/// Templates that are referred to, by kind and name.
fn templates(value: &Value, found: &mut BTreeSet<(String, String)>) {
    let of = |name: &str| value.get(name).and_then(Value::as_str);
    if let (Some(kind), Some(name)) = (of("kind").filter(|kind| kind.ends_with("Template")), of("name")) {
        found.insert((kind.to_owned(), name.to_owned()));
    }
    for value in value.as_object().into_iter().flatten().map(|(_, value)| value) {
        templates(value, found);
    }
}

fn merge(object: &mut Value, content: &Value) {
    match (object, content) {
        (Value::Object(fields), Value::Object(content)) => {
            for (name, value) in content {
                merge(fields.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (object, content) => *object = content.clone(),
    }
}

fn tree(value: &Value) -> Value {
    let fields = value.as_object().into_iter().flatten();
    Value::Object(
        fields
            .map(|(name, value)| (format!("f:{name}"), tree(value)))
            .collect::<Map<_, _>>(),
    )
}

fn trim(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.trim().to_owned(),
        Value::Array(items) => items.iter_mut().for_each(trim),
        Value::Object(fields) => fields.values_mut().for_each(trim),
        _ => {}
    }
}

impl Server for Simulated {
    async fn read(&self) -> anyhow::Result<Listed> {
        let world = self.world();
        let unread = |object: &Value| world.unread.keys().any(|(_, kind)| object["kind"] == *kind);
        let objects = world.objects.values().filter(|object| !unread(object));
        Ok(Listed {
            objects: objects.cloned().collect(),
            unread: world.unread.clone(),
        })
    }

    async fn signs(&self) -> anyhow::Result<Signs> {
        Ok(self.world().signs.clone())
    }

    async fn apply(&self, namespace: &str, content: &Value, dry: bool) -> Result<Value, Failed> {
        let hangs = self.world().hangs && !dry;
        if hangs {
            std::future::pending::<()>().await;
        }
        let mut world = self.world();
        let of = |place: &str| text(content, place).unwrap_or_default().to_owned();
        let key = (namespace.to_owned(), of("/kind"), of("/metadata/name"));
        let existing = world.objects.get(&key).cloned();
        let uid = content.pointer("/metadata/uid").filter(|uid| !uid.is_null());
        if uid.is_some() && uid != existing.as_ref().and_then(|one| one.pointer("/metadata/uid")) {
            return Err(Failed::Unknown("uid mismatch (HTTP 409)".to_owned()));
        }
        let cluster = label(content, "cluster.x-k8s.io/cluster-name")
            .unwrap_or_default()
            .to_owned();
        if !dry && world.refused == Some((key.1.clone(), cluster)) {
            return Err(Failed::Refused("no more of these".to_owned()));
        }
        let mut object = world.applied(existing.as_ref(), content);
        let annotated = content
            .pointer("/metadata/annotations/topology.cluster.x-k8s.io~1dry-run")
            .is_some();
        assert_eq!(dry, annotated, "the annotation of dry runs is theirs alone");
        let changes = existing.as_ref().is_some_and(|one| one["spec"] != object["spec"]);
        if changes && key.1.ends_with("Template") && !dry {
            return Err(Failed::Refused("the content of a template stays".to_owned()));
        }
        if dry {
            return world.dry_run(key, existing.as_ref(), object);
        }
        if existing.as_ref() == Some(&object) {
            return Ok(object);
        }
        if changes {
            object["metadata"]["generation"] =
                json!(object["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        }
        let answer = object.clone();
        world.write(|world| match existing {
            Some(before) => {
                world.rotated(&key.0, &before["spec"], &object["spec"]);
                world.store(key, object);
            }
            None => {
                object["metadata"]["namespace"] = json!(key.0);
                world.put(object);
            }
        })?;
        Ok(answer)
    }

    async fn get(&self, namespace: &str, object: &ObjectName, _: &str) -> Result<Option<Value>, Failed> {
        let key = (namespace.to_owned(), object.kind.clone(), object.name.clone());
        Ok(self.world().objects.get(&key).cloned())
    }

    async fn delete(&self, namespace: &str, object: &ObjectName, _: &str, uid: &str) -> Result<(), Failed> {
        let key = (namespace.to_owned(), object.kind.clone(), object.name.clone());
        let mut world = self.world();
        let there = world.objects.get(&key);
        if there.is_some_and(|there| there["metadata"]["uid"] != uid) {
            return Err(Failed::Unknown("uid mismatch (HTTP 409)".to_owned()));
        }
        world.write(|world| {
            let gone = world.objects.remove(&key).unwrap_or_default();
            if key.1 == "MachinePool" {
                // Its provider and the garbage collector take along what it refers to.
                let machine = &gone["spec"]["template"]["spec"];
                for reference in [&machine["infrastructureRef"], &machine["bootstrap"]["configRef"]] {
                    let of = |name: &str| reference[name].as_str().unwrap_or_default().to_owned();
                    world.objects.remove(&(key.0.clone(), of("kind"), of("name")));
                }
            }
        })
    }

    async fn set_defaults(
        &self,
        namespace: &str,
        cluster: &str,
        (uid, generation): (&str, i64),
        defaults: &[Defaulted],
    ) -> Result<(), Failed> {
        let key = (namespace.to_owned(), "Cluster".to_owned(), cluster.to_owned());
        let mut world = self.world();
        let mut object = world.objects[&key].clone();
        let about = &object["metadata"];
        if world.conflicts || about["uid"] != uid || about["generation"] != generation {
            return Err(Failed::Unknown("it was changed meanwhile (HTTP 409)".to_owned()));
        }
        for default in defaults {
            default.write(&mut object);
        }
        object["metadata"]["generation"] = json!(object["metadata"]["generation"].as_i64().unwrap_or(0) + 1);
        world.write(|world| world.store(key, object))
    }

    async fn say(&self, namespace: &str, cluster: &str, condition: &Value) -> Result<(), Failed> {
        let key = (namespace.to_owned(), "Cluster".to_owned(), cluster.to_owned());
        let mut world = self.world();
        if let Some(mut object) = world.objects.get(&key).cloned() {
            object["status"]["conditions"] = json!([condition]);
            world.store(key, object);
        }
        Ok(())
    }

    async fn tell(&self, told: &Told) {
        self.world().told.push(told.clone());
    }
}

//! Owns: the variables that patches are given for one cluster: the user's, overrides, and `builtin` as far as it follows
//! from the Cluster and its class.
//! Never: invents the names of objects that a server has yet to make; a person may give them.

use serde_json::{Map, Value, json};

use super::{
    finding::shown,
    owned,
    target::{Role, Workers, is_bookkeeping},
    values::{self, BUILTIN},
};
use crate::model::{self, Class, Metadata, Reference, Topology, Variable, WorkerKind, WorkerTopology};

/// A cluster's values for patches.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Values for every template.
    pub global: Map<String, Value>,
    /// Further values for templates of the control plane and its machines.
    pub control_plane: Map<String, Value>,
    /// The machine deployments and pools, and what their templates are given above the first.
    pub workers: Vec<(Workers, Map<String, Value>)>,
}

/// Reads a Cluster. Its version is used as the version of everything.
///
/// # Errors
///
/// One line: the field and what would do.
pub fn read(cluster: &model::Cluster, class: &Class) -> Result<Cluster, String> {
    let topology = cluster
        .topology
        .as_ref()
        .ok_or("the Cluster has no spec.topology")?;
    let named = topology.class.value.as_str();
    if named != class.name {
        return Err(format!(
            "the Cluster's class is {}, and the files have {}: give those that belong together",
            shown(if named.is_empty() { "not said" } else { named }),
            shown(&class.name)
        ));
    }
    let mut global = variables(&topology.variables, class)?;
    let about = of_cluster(cluster, topology);
    global.insert(BUILTIN.to_owned(), json!({ "cluster": about }));
    let mut control_plane = variables(&topology.control_plane.overrides, class)?;
    let about = of_control_plane(cluster, topology, class);
    control_plane.insert(BUILTIN.to_owned(), json!({ "controlPlane": about }));
    let workers = topology.workers.iter();
    let workers = workers.map(|one| of_workers(cluster, topology, class, one));
    Ok(Cluster {
        global,
        control_plane,
        workers: workers.collect::<Result<_, _>>()?,
    })
}

/// The variables without a Cluster: each class of machine deployments or pools may have one, called as the class.
pub fn of_class(class: &Class) -> Cluster {
    let workers = class.workers.iter().map(|one| {
        let workers = Workers {
            kind: one.kind,
            class: one.class.clone(),
            name: one.class.clone(),
        };
        let about = json!({"class": one.class, "topologyName": one.class});
        let mut variables = Map::new();
        variables.insert(BUILTIN.to_owned(), json!({ one.kind.builtin(): about }));
        (workers, variables)
    });
    Cluster {
        global: Map::new(),
        control_plane: Map::new(),
        workers: workers.collect(),
    }
}

impl Cluster {
    /// The places of the cluster's templates, in the order in which objects are made, each with the template that the
    /// class names and the variables of the place.
    pub fn places<'a>(&self, class: &'a Class) -> Vec<(Role, &'a Reference, Map<String, Value>)> {
        let plane = &class.control_plane;
        let of_plane = |role, reference| (role, reference, self.control_plane.clone());
        let mut places = vec![(Role::InfrastructureCluster, &class.infrastructure, Map::new())];
        places.push(of_plane(Role::ControlPlane, &plane.template));
        places.extend(
            plane
                .machines
                .as_ref()
                .map(|one| of_plane(Role::ControlPlaneMachines, one)),
        );
        for (workers, variables) in &self.workers {
            if let Some(class) = class.worker(workers.kind, &workers.class) {
                places.push((
                    Role::Bootstrap(workers.clone()),
                    &class.bootstrap,
                    variables.clone(),
                ));
                places.push((
                    Role::Infrastructure(workers.clone()),
                    &class.machines,
                    variables.clone(),
                ));
            }
        }
        places
    }

    /// Puts variables over those of the cluster. Of `builtin`, what is about the control plane and workers is for their
    /// templates only; workers keep their class and their name.
    ///
    /// # Errors
    ///
    /// A variable that the class does not define.
    pub fn give(&mut self, variables: &Map<String, Value>, class: &Class) -> Result<(), String> {
        for (name, value) in variables.iter().filter(|(name, _)| *name != BUILTIN) {
            defined(name, class)?;
            self.global.insert(name.clone(), value.clone());
        }
        let part = |part: &str| {
            let value = variables.get(BUILTIN)?.get(part)?.clone();
            Some(Map::from_iter([(part.to_owned(), value)]))
        };
        put(&mut self.global, part("cluster"));
        put(&mut self.control_plane, part("controlPlane"));
        for (workers, variables) in &mut self.workers {
            let of_kind = workers.kind.builtin();
            put(variables, part(of_kind));
            let own = json!({"class": workers.class, "topologyName": workers.name});
            put(variables, Some(Map::from_iter([(of_kind.to_owned(), own)])));
        }
        Ok(())
    }

    /// Adds the values of the control plane once it has a name, for its templates.
    pub fn know_control_plane(&mut self, about: &Value) {
        let about = Map::from_iter([("controlPlane".to_owned(), about.clone())]);
        put(&mut self.control_plane, Some(about));
    }

    /// Adds what is known of workers once they have a name, for their templates; `name` is the topology's.
    pub fn know_workers(&mut self, kind: WorkerKind, name: &str, about: &Value) {
        for (workers, variables) in &mut self.workers {
            if workers.kind == kind && workers.name == name {
                let about = Map::from_iter([(kind.builtin().to_owned(), about.clone())]);
                put(variables, Some(about));
            }
        }
    }
}

fn put(variables: &mut Map<String, Value>, builtin: Option<Map<String, Value>>) {
    if let Some(builtin) = builtin {
        let below = variables.entry(BUILTIN).or_insert_with(|| json!({}));
        values::merge(below, &Value::Object(builtin));
    }
}

fn of_workers(
    cluster: &model::Cluster,
    topology: &Topology,
    class: &Class,
    one: &WorkerTopology,
) -> Result<(Workers, Map<String, Value>), String> {
    let place = &one.field;
    for (name, said) in [("class", &one.class), ("name", &one.name)] {
        if said.is_empty() {
            return Err(format!("{place}.{name} is missing"));
        }
    }
    let workers = Workers {
        kind: one.kind,
        class: one.class.clone(),
        name: one.name.clone(),
    };
    let known = class.worker(one.kind, &workers.class).ok_or_else(|| {
        let (said, words) = (shown(&workers.class), one.kind.words());
        format!("{place}.class: the class has no {words}s of class {said}")
    })?;
    let mut own = variables(&one.overrides, class)?;
    let mut about = json!({"class": workers.class, "topologyName": workers.name});
    set(&mut about, "version", text(&topology.version.value));
    set(
        &mut about,
        "replicas",
        one.replicas.as_ref().map(|replicas| json!(replicas.value)),
    );
    let said = metadata(owned::of_worker(cluster, known, one));
    set(&mut about, "metadata", Some(said));
    own.insert(BUILTIN.to_owned(), json!({ one.kind.builtin(): about }));
    Ok((workers, own))
}

fn of_cluster(cluster: &model::Cluster, topology: &Topology) -> Value {
    let mut about = json!({"name": cluster.name, "namespace": cluster.namespace});
    set(&mut about, "uid", cluster.uid.as_deref().and_then(text));
    let mut own = cluster.metadata.clone();
    own.annotations.retain(|name, _| !is_bookkeeping(name));
    let own = metadata(own);
    if own != json!({}) {
        set(&mut about, "metadata", Some(own));
    }
    let (class, namespace) = (&topology.class.value, &topology.class_namespace);
    let mut said = json!({
        "class": class,
        "classNamespace": namespace,
        "classRef": {"name": class, "namespace": namespace},
    });
    set(&mut said, "version", text(&topology.version.value));
    set(&mut about, "topology", Some(said));
    let mut network = json!({});
    set(
        &mut network,
        "serviceDomain",
        text(&cluster.network.service_domain),
    );
    for (name, blocks) in [
        ("services", &cluster.network.services),
        ("pods", &cluster.network.pods),
    ] {
        let listed: Vec<&str> = blocks.iter().map(|block| block.value.as_str()).collect();
        set(&mut network, name, (!listed.is_empty()).then(|| json!(listed)));
    }
    if network != json!({}) {
        set(&mut about, "network", Some(network));
    }
    about
}

fn of_control_plane(cluster: &model::Cluster, topology: &Topology, class: &Class) -> Value {
    let mut about = json!({});
    set(&mut about, "version", text(&topology.version.value));
    set(
        &mut about,
        "replicas",
        topology.control_plane.replicas.map(Value::from),
    );
    let (of_class, said) = (&class.control_plane, &topology.control_plane);
    let mut all = owned::of_control_plane(cluster, &of_class.metadata, &said.metadata);
    if !of_class.template.name.is_empty() {
        all.annotations.extend(owned::cloned_from(&of_class.template));
    }
    set(&mut about, "metadata", Some(metadata(all)));
    about
}

/// Labels and annotations as patches see them.
pub fn metadata(said: Metadata) -> Value {
    let mut all = json!({});
    for (name, map) in [("labels", said.labels), ("annotations", said.annotations)] {
        set(&mut all, name, (!map.is_empty()).then(|| json!(map)));
    }
    all
}

/// Names and values. One that is called `builtin` is not given to patches, as upstream has it.
fn variables(listed: &[Variable], class: &Class) -> Result<Map<String, Value>, String> {
    let mut all = Map::new();
    for Variable { field, name, value } in listed {
        if name.is_empty() {
            return Err(format!("{field}.name is missing"));
        }
        if name == BUILTIN {
            continue;
        }
        defined(name, class).map_err(|why| format!("{field}: {why}"))?;
        if all.insert(name.clone(), value.clone()).is_some() {
            return Err(format!("{field}: variable {} is there twice", shown(name)));
        }
    }
    Ok(all)
}

fn defined(name: &str, class: &Class) -> Result<(), String> {
    if class.may_have(name) {
        return Ok(());
    }
    Err(format!(
        "the class defines no variable {}; correct the name, or leave it out",
        shown(name)
    ))
}

fn set(object: &mut Value, name: &str, value: Option<Value>) {
    if let (Some(fields), Some(value)) = (object.as_object_mut(), value.filter(|value| !value.is_null())) {
        fields.insert(name.to_owned(), value);
    }
}

fn text(said: &str) -> Option<Value> {
    (!said.is_empty()).then(|| Value::from(said))
}

#[cfg(test)]
mod tests;

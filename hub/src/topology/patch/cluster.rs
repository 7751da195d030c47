//! Owns: the variables that patches are given for one cluster: the user's, overrides, and `builtin` as far as it follows
//! from the Cluster and its class.
//! Never: invents the names of objects that a server has yet to make; a person may give them.

use serde_json::{Map, Value, json};

use super::{
    class::{Class, Reference},
    finding::shown,
    target::{Workers, is_bookkeeping},
    values::{self, BUILTIN},
};

/// What patches are told of a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// What every template is given.
    pub global: Map<String, Value>,
    /// What templates of the control plane and its machines are given above that.
    pub control_plane: Map<String, Value>,
    /// The machine deployments, and what their templates are given above the first.
    pub workers: Vec<(Workers, Map<String, Value>)>,
}

/// Reads a document of kind Cluster, in both spellings of the API. Its version is taken for the version of everything.
///
/// # Errors
///
/// One line: the field and what would do. Machine pools are refused.
pub fn read(document: &Value, class: &Class) -> Result<Cluster, String> {
    let topology = document
        .pointer("/spec/topology")
        .filter(|topology| topology.is_object())
        .ok_or("the Cluster has no spec.topology")?;
    let named = text(topology, "/classRef/name").or_else(|| text(topology, "/class"));
    if named != Some(class.name.as_str()) {
        return Err(format!(
            "the Cluster's class is {}, and the files have {}: give those that belong together",
            shown(named.unwrap_or("not said")),
            shown(&class.name)
        ));
    }
    if !list(topology, "/workers/machinePools").is_empty() {
        return Err("spec.topology.workers.machinePools: machine pools are not supported here".to_owned());
    }
    let mut global = variables(topology.get("variables"), class, "spec.topology.variables")?;
    let about = of_cluster(document, topology, class);
    global.insert(BUILTIN.to_owned(), json!({ "cluster": about }));
    let place = "spec.topology.controlPlane.variables.overrides";
    let mut control_plane = variables(
        topology.pointer("/controlPlane/variables/overrides"),
        class,
        place,
    )?;
    let about = of_control_plane(document, topology, class);
    control_plane.insert(BUILTIN.to_owned(), json!({ "controlPlane": about }));
    let mut workers = Vec::new();
    for (index, one) in list(topology, "/workers/machineDeployments").iter().enumerate() {
        let place = format!("spec.topology.workers.machineDeployments[{index}]");
        workers.push(machine_deployment(document, topology, class, one, &place)?);
    }
    Ok(Cluster {
        global,
        control_plane,
        workers,
    })
}

/// What is known without a Cluster: that each class of machine deployments may have one, called as the class.
pub fn of_class(class: &Class) -> Cluster {
    let workers = class.machine_deployments.iter().map(|one| {
        let workers = Workers {
            class: one.class.clone(),
            name: one.class.clone(),
        };
        let about = json!({"class": one.class, "topologyName": one.class});
        let mut variables = Map::new();
        variables.insert(BUILTIN.to_owned(), json!({ "machineDeployment": about }));
        (workers, variables)
    });
    Cluster {
        global: Map::new(),
        control_plane: Map::new(),
        workers: workers.collect(),
    }
}

impl Cluster {
    /// Puts variables over those of the cluster. Of `builtin`, what is about the control plane and machine deployments
    /// is for their templates only; a deployment keeps its class and its name.
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
            put(variables, part("machineDeployment"));
            let own = json!({"class": workers.class, "topologyName": workers.name});
            put(
                variables,
                Some(Map::from_iter([("machineDeployment".to_owned(), own)])),
            );
        }
        Ok(())
    }
}

fn put(variables: &mut Map<String, Value>, builtin: Option<Map<String, Value>>) {
    if let Some(builtin) = builtin {
        let below = variables.entry(BUILTIN).or_insert_with(|| json!({}));
        values::merge(below, &Value::Object(builtin));
    }
}

fn machine_deployment(
    document: &Value,
    topology: &Value,
    class: &Class,
    one: &Value,
    place: &str,
) -> Result<(Workers, Map<String, Value>), String> {
    let field = |name: &str| {
        let said = text(one, &format!("/{name}")).filter(|said| !said.is_empty());
        said.ok_or_else(|| format!("{place}.{name} is missing"))
    };
    let workers = Workers {
        class: field("class")?.to_owned(),
        name: field("name")?.to_owned(),
    };
    let known = class
        .machine_deployments
        .iter()
        .find(|known| known.class == workers.class)
        .ok_or_else(|| {
            let said = shown(&workers.class);
            format!("{place}.class: the class has no machine deployments of class {said}")
        })?;
    let overrides = format!("{place}.variables.overrides");
    let mut own = variables(one.pointer("/variables/overrides"), class, &overrides)?;
    let mut about = json!({"class": workers.class, "topologyName": workers.name});
    set(&mut about, "version", topology.get("version").cloned());
    set(&mut about, "replicas", one.get("replicas").cloned());
    let mut labels = of_owned(document);
    labels.insert(
        "topology.cluster.x-k8s.io/deployment-name".to_owned(),
        json!(workers.name),
    );
    let said = [known.metadata.clone(), value(one, "metadata")].map(without_steering);
    let metadata = metadata([&said[0], &said[1]], labels, Map::new());
    set(&mut about, "metadata", Some(metadata));
    own.insert(BUILTIN.to_owned(), json!({ "machineDeployment": about }));
    Ok((workers, own))
}

fn of_cluster(document: &Value, topology: &Value, class: &Class) -> Value {
    let mut about = json!({});
    for name in ["name", "namespace", "uid"] {
        set(&mut about, name, value(document, "metadata").get(name).cloned());
    }
    let own = metadata([&value(document, "metadata")], Map::new(), Map::new());
    if own != json!({}) {
        set(&mut about, "metadata", Some(own));
    }
    let namespace = text(topology, "/classRef/namespace")
        .or_else(|| text(topology, "/classNamespace"))
        .or_else(|| text(document, "/metadata/namespace"));
    let mut said = json!({
        "class": class.name,
        "classRef": {"name": class.name, "namespace": namespace.unwrap_or_default()},
    });
    set(&mut said, "version", topology.get("version").cloned());
    set(&mut said, "classNamespace", namespace.map(Value::from));
    set(&mut about, "topology", Some(said));
    let mut network = json!({});
    for (name, place) in [
        ("serviceDomain", "/spec/clusterNetwork/serviceDomain"),
        ("services", "/spec/clusterNetwork/services/cidrBlocks"),
        ("pods", "/spec/clusterNetwork/pods/cidrBlocks"),
    ] {
        set(&mut network, name, document.pointer(place).cloned());
    }
    if network != json!({}) {
        set(&mut about, "network", Some(network));
    }
    about
}

fn of_control_plane(document: &Value, topology: &Value, class: &Class) -> Value {
    let mut about = json!({});
    let said = value(topology, "controlPlane");
    set(&mut about, "version", topology.get("version").cloned());
    set(&mut about, "replicas", said.get("replicas").cloned());
    let from = class.control_plane.as_ref().map(cloned_from);
    let metadata = metadata(
        [&class.control_plane_metadata, &value(&said, "metadata")],
        of_owned(document),
        from.unwrap_or_default(),
    );
    set(&mut about, "metadata", Some(metadata));
    about
}

/// Metadata without the annotations that steer upgrades, which are the topology's alone.
fn without_steering(mut metadata: Value) -> Value {
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.remove("topology.cluster.x-k8s.io/hold-upgrade-sequence");
        annotations.remove("topology.cluster.x-k8s.io/defer-upgrade");
    }
    metadata
}

/// Labels of all that belongs to a topology.
fn of_owned(document: &Value) -> Map<String, Value> {
    let name = text(document, "/metadata/name").unwrap_or_default();
    Map::from_iter([
        ("cluster.x-k8s.io/cluster-name".to_owned(), json!(name)),
        ("topology.cluster.x-k8s.io/owned".to_owned(), json!("")),
    ])
}

/// Annotations of an object that is made from a template.
fn cloned_from(reference: &Reference) -> Map<String, Value> {
    let group = reference.api_version.split('/').next().unwrap_or_default();
    let kind = format!("{}.{group}", reference.kind);
    Map::from_iter([
        (
            "cluster.x-k8s.io/cloned-from-name".to_owned(),
            json!(reference.name),
        ),
        ("cluster.x-k8s.io/cloned-from-groupkind".to_owned(), json!(kind)),
    ])
}

/// Labels and annotations of several, the later ones over the earlier, and ours over all.
fn metadata<const N: usize>(
    said: [&Value; N],
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
) -> Value {
    let mut all = json!({});
    for (name, ours) in [("labels", labels), ("annotations", annotations)] {
        let mut merged = Map::new();
        for said in said {
            merged.extend(
                said.get(name)
                    .and_then(Value::as_object)
                    .cloned()
                    .unwrap_or_default(),
            );
        }
        merged.extend(ours);
        merged.retain(|name, _| !is_bookkeeping(name));
        if !merged.is_empty() {
            set(&mut all, name, Some(Value::Object(merged)));
        }
    }
    all
}

/// A list of names and values. One that is called `builtin` is not given to patches, as upstream has it.
fn variables(listed: Option<&Value>, class: &Class, place: &str) -> Result<Map<String, Value>, String> {
    let listed = listed.and_then(Value::as_array).map(Vec::as_slice);
    let mut all = Map::new();
    for (index, one) in listed.unwrap_or_default().iter().enumerate() {
        let name = text(one, "/name").ok_or_else(|| format!("{place}[{index}].name is missing"))?;
        if name == BUILTIN {
            continue;
        }
        defined(name, class).map_err(|why| format!("{place}[{index}]: {why}"))?;
        if all.insert(name.to_owned(), value(one, "value")).is_some() {
            return Err(format!(
                "{place}[{index}]: variable {} is there twice",
                shown(name)
            ));
        }
    }
    Ok(all)
}

fn defined(name: &str, class: &Class) -> Result<(), String> {
    if class.variables.contains(name) {
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

fn value(document: &Value, name: &str) -> Value {
    document.get(name).cloned().unwrap_or_default()
}

fn text<'a>(document: &'a Value, place: &str) -> Option<&'a str> {
    document.pointer(place).and_then(Value::as_str)
}

fn list<'a>(document: &'a Value, place: &str) -> &'a [Value] {
    let list = document.pointer(place).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests;

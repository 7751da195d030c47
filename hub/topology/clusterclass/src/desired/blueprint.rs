//! Owns: a class with all that it names, read once for all its clusters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::objects::{Objects, group, label};
use crate::{
    model::{Class, Reference, Report, WorkerKind},
    patch::{
        definition::{Change, Patch},
        external::Extensions,
        read,
    },
    variables::Variables,
};

/// The parts that clusters of a class are made of.
#[derive(Debug)]
pub struct Blueprint<'a> {
    /// The class.
    pub class: &'a Class,
    pub(super) variables: Variables,
    pub(super) patches: Vec<Patch>,
    /// The contract version of the control plane's provider, which says where it reads its input.
    pub(super) contract: Contract,
    templates: BTreeMap<(String, String, String), &'a Value>,
    /// All objects that were given.
    pub(super) objects: &'a Objects<'a>,
    /// The way to the extensions of the class; none if classes with extensions are refused.
    pub(super) extensions: Option<&'a dyn Extensions>,
}

/// A contract between Cluster API and its providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contract {
    /// `v1beta1`: the settings of machines are in `spec.machineTemplate`.
    V1Beta1,
    /// `v1beta2`: they are in `spec.machineTemplate.spec`.
    V1Beta2,
}

impl Contract {
    /// The contract version of a provider: by the labels of its definition, if that is among the objects, or else by
    /// the name of its version.
    fn of(reference: &Reference, objects: &Objects<'_>) -> Self {
        let version = reference.api_version.rsplit('/').next().unwrap_or_default();
        let kind = reference.kind.strip_suffix("Template").unwrap_or(&reference.kind);
        let definition = objects.definition(group(&reference.api_version), kind);
        let names = |contract: &str| {
            let named = definition.and_then(|one| label(one, &format!("cluster.x-k8s.io/{contract}")));
            named.is_some_and(|named| named.split('_').any(|one| one == version))
        };
        if names("v1beta2") {
            Self::V1Beta2
        } else if names("v1beta1") || version == "v1beta1" || version.starts_with("v1alpha") {
            Self::V1Beta1
        } else {
            Self::V1Beta2
        }
    }
}

impl<'a> Blueprint<'a> {
    /// Reads a class that keeps the rules, and finds its templates; one that is not among the objects is told. Those of
    /// machine pools are needed of the classes in `pools` alone.
    pub fn read(
        class: &'a Class,
        pools: &BTreeSet<&str>,
        objects: &'a Objects<'a>,
        extensions: Option<&'a dyn Extensions>,
        report: &mut Report,
    ) -> Self {
        let (patches, _) = read::patches(class.spec.get("patches"));
        let mut templates = BTreeMap::new();
        let plane = &class.control_plane;
        let workers = class.workers.iter();
        let workers = workers
            .filter(|one| one.kind == WorkerKind::MachineDeployment || pools.contains(one.class.as_str()))
            .flat_map(|one| [&one.bootstrap, &one.machines]);
        let of_cluster = [&class.infrastructure, &plane.template].into_iter();
        for reference in of_cluster.chain(&plane.machines).chain(workers) {
            let Reference {
                field,
                api_version,
                kind,
                name,
                ..
            } = reference;
            // A server that moves on to another version of a kind still serves the former one.
            match objects.get_in(api_version, kind, &class.namespace, name) {
                None => match objects.unread_in(api_version, kind) {
                    Some(why) => {
                        report.say(
                            "template-unread",
                            field,
                            format!("cannot read {kind} {name}: {why}"),
                        );
                    }
                    None => report.say(
                        "template-missing",
                        field,
                        format!("there is no {kind} {name} of {api_version}: give it too"),
                    ),
                },
                Some(found) if !has_content(found) && !is_added(class, &patches, reference) => report.say(
                    "template-empty",
                    field,
                    format!("{kind} {name} has no spec.template: correct it, or add it by a patch"),
                ),
                Some(found) => {
                    templates.insert(key(reference), found);
                }
            }
        }
        Self {
            class,
            variables: Variables::read(class, &mut Report::new("", "")),
            patches,
            contract: Contract::of(&class.control_plane.template, objects),
            templates,
            objects,
            extensions,
        }
    }

    /// A template that the class names.
    pub(super) fn template(&self, reference: &Reference) -> Option<&'a Value> {
        self.templates.get(&key(reference)).copied()
    }
}

/// Returns true if a template has the content for objects.
pub(super) fn has_content(template: &Value) -> bool {
    template.pointer("/spec/template").is_some_and(Value::is_object)
}

/// Returns true if a patch may give templates of this kind what they lack; the plan of each cluster says if it does.
fn is_added(class: &Class, patches: &[Patch], reference: &Reference) -> bool {
    if class.external.iter().any(|one| !one.generate.is_empty()) {
        return true;
    }
    let mut definitions = patches.iter().flat_map(|patch| &patch.definitions);
    definitions.any(|definition| {
        let selector = &definition.selector;
        let mut operations = definition.operations.iter();
        reference.is(&selector.api_version, &selector.kind)
            && operations.any(|one| {
                matches!(one.change, Change::Add(_)) && ["/spec", "/spec/template"].contains(&&*one.path)
            })
    })
}

fn key(reference: &Reference) -> (String, String, String) {
    let Reference {
        api_version,
        kind,
        name,
        ..
    } = reference;
    (api_version.clone(), kind.clone(), name.clone())
}

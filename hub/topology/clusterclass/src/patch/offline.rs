//! Owns: what `clusterclass patch` says for files: templates as the patches of a class leave them, and findings.
//! Never: reads a file; the command line does.

use serde_json::{Map, Value};

use super::{
    apply::{self, Patched},
    check, cluster,
    definition::Patch,
    document,
    finding::{Finding, shown},
    print, read,
    target::{Role, Target},
    values::BUILTIN,
};
use crate::model::{Estate, Reference};

/// The output, and the number of faults in it.
#[derive(Debug)]
pub struct Report {
    /// Documents of YAML, with comments.
    pub text: String,
    /// Number of findings that are errors.
    pub errors: usize,
}

/// Patches the templates of files, each a name and its bytes: one ClusterClass, its templates, and perhaps a Cluster.
/// `variables` are put over those of the Cluster. If `wanted` names templates, only those are patched.
///
/// # Errors
///
/// One line: what of the files cannot be used, and what would do.
pub fn patch(
    files: &[(String, Vec<u8>)],
    variables: &Map<String, Value>,
    wanted: &[String],
) -> Result<Report, String> {
    let objects: Vec<Value> = document::objects(files)?
        .into_iter()
        .map(|(_, object)| object)
        .collect();
    let document = only(&objects, "ClusterClass")?.ok_or("the files have no ClusterClass: give its file")?;
    let of_cluster = only(&objects, "Cluster")?;
    let mut estate = Estate::with_extensions();
    estate.add_objects([document].into_iter().chain(of_cluster).map(|one| ("files", one)));
    let unread = |kind: &str| format!("the {kind} cannot be read: {}", of_form(&estate));
    let class = estate
        .classes
        .values()
        .next()
        .ok_or_else(|| unread("ClusterClass"))?;
    let (patches, mut findings) = read::patches(class.spec.get("patches"));
    findings.extend(check::check(class, &patches));
    let mut cluster = match of_cluster {
        Some(_) => {
            let cluster = estate.clusters.values().next().ok_or_else(|| unread("Cluster"))?;
            cluster::read(cluster, class)?
        }
        None => cluster::of_class(class),
    };
    cluster.give(variables, class)?;
    let mut places = cluster.places(class);
    places.retain(|(_, reference, _)| !reference.name.is_empty());
    let namespace = text(document, "/metadata/namespace");
    let mut targets = targets(places, namespace, &objects, wanted)?;
    // Inline patches get what the class itself defines.
    let inline =
        |all: &mut Map<String, Value>| all.retain(|name, _| name == BUILTIN || class.defines_inline(name));
    inline(&mut cluster.global);
    for target in &mut targets {
        inline(&mut target.variables);
    }
    let applied = apply::apply(&patches, &targets, &cluster.global);
    findings.extend(applied.findings);
    let errors = findings.iter().filter(|finding| finding.rule.is_error()).count();
    let mut text = printed(&applied.patched, &patches, &findings);
    for external in &class.external {
        let (name, by) = (shown(&external.patch), shown(&external.generate));
        text += &format!("# not applied: patch {name} of extension {by}; `plan --extension` asks it\n");
    }
    // Parts of the class or the Cluster that the model left out are never printed.
    for finding in &estate.findings {
        text += &format!("# error {finding}\n");
    }
    Ok(Report {
        text,
        errors: errors + estate.findings.len(),
    })
}

/// Why an object is not among those that were read.
fn of_form(estate: &Estate) -> String {
    let finding = estate.findings.iter().find(|finding| finding.rule == "document");
    finding.map_or_else(String::new, |finding| {
        shown(&format!("{}: {}", finding.field, finding.message))
    })
}

/// The one object of a kind of Cluster API.
fn only<'a>(objects: &'a [Value], kind: &str) -> Result<Option<&'a Value>, String> {
    let mut found = objects.iter().filter(|object| {
        let group = text(object, "/apiVersion").is_some_and(|one| one.starts_with("cluster.x-k8s.io/"));
        group && text(object, "/kind") == Some(kind)
    });
    let one = found.next();
    if found.next().is_some() {
        return Err(format!("the files have more than one {kind}: give one"));
    }
    Ok(one)
}

/// The templates for places, those that are wanted.
fn targets(
    places: Vec<(Role, &Reference, Map<String, Value>)>,
    namespace: Option<&str>,
    objects: &[Value],
    wanted: &[String],
) -> Result<Vec<Target>, String> {
    let names: Vec<String> = places.iter().map(|(role, ..)| role.name()).collect();
    if let Some(unknown) = wanted.iter().find(|name| !names.contains(name)) {
        return Err(format!(
            "there is no target {unknown:?}; there are {}",
            shown(&names.join(", "))
        ));
    }
    let mut targets = Vec::new();
    for (role, reference, variables) in places {
        if wanted.is_empty() || wanted.contains(&role.name()) {
            let template = template(reference, namespace, objects)?;
            targets.push(Target::new(role, template, variables));
        }
    }
    Ok(targets)
}

/// The object that a class names.
fn template<'a>(
    reference: &Reference,
    namespace: Option<&str>,
    objects: &'a [Value],
) -> Result<&'a Value, String> {
    let is = |object: &Value, place: &str, wanted: &str| text(object, place) == Some(wanted);
    let found = objects.iter().find(|object| {
        let elsewhere = match (text(object, "/metadata/namespace"), namespace) {
            (Some(namespace), Some(wanted)) => namespace != wanted,
            _ => false,
        };
        !elsewhere
            && is(object, "/apiVersion", &reference.api_version)
            && is(object, "/kind", &reference.kind)
            && is(object, "/metadata/name", &reference.name)
    });
    found.ok_or_else(|| {
        format!(
            "the files have no {} {} of {}, which the class names: give its file, or the targets that you want",
            shown(&reference.kind),
            shown(&reference.name),
            shown(&reference.api_version)
        )
    })
}

fn printed(patched: &[Patched], patches: &[Patch], findings: &[Finding]) -> String {
    let mut said = String::new();
    for one in patched {
        said += &format!("---\n# {}\n", shown(&one.target));
        for step in &one.steps {
            let (name, index) = (shown(&step.name), step.definition);
            let effect = if step.changed {
                "changed it"
            } else {
                "changed nothing"
            };
            said += &format!("# patch {name:?}, definition {index}, {effect}");
            let patch = patches.iter().find(|patch| patch.index == step.patch);
            let description = patch.map(|patch| shown(patch.description.trim()));
            if let Some(description) = description.filter(|description| !description.is_empty()) {
                said += &format!(": {description}");
            }
            said.push('\n');
        }
        said += &print::yaml(&one.template);
    }
    for finding in findings {
        said += &format!("# {finding}\n");
    }
    said
}

fn text<'a>(object: &'a Value, place: &str) -> Option<&'a str> {
    object.pointer(place).and_then(Value::as_str)
}

#[cfg(test)]
mod tests;

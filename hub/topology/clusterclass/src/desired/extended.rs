//! Owns: what extensions make of a plan: the requests of its external patches in their places among the inline ones, the
//! judgement of the result, and what is missing where no extension was asked.
//! Never: calls lifecycle hooks, or the extension that plans upgrades; they are named.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::{
    blueprint::{Blueprint, Contract},
    change::LeftOut,
    current::CORE,
    named::Named,
    objects::{Objects, text},
};
use crate::{
    model::{Class, Cluster, External, is_hook},
    patch::{
        apply::{Applied, Patched, Step, apply_with},
        cluster::Cluster as Told,
        definition::Patch,
        external::{
            Hook, answer, parts,
            request::{Holder, Item, of_templates},
        },
        finding::{Finding, Rule},
        target::{Role, Target, Workers},
    },
};

/// Hooks that plans call or name otherwise.
const NOT_LIFECYCLE: &[&str] = &[
    "GeneratePatches",
    "ValidateTopology",
    "DiscoverVariables",
    "GenerateUpgradePlan",
];

/// Templates with all patches.
#[derive(Debug)]
pub(super) struct Extended {
    pub(super) applied: Applied,
    /// Parts of the class that the result lacks.
    pub(super) left_out: Vec<LeftOut>,
    /// True if an external patch is missing in it.
    pub(super) incomplete: bool,
    /// An extension that failed or refused: the field, and why.
    pub(super) refused: Option<(String, String)>,
}

/// Applies all patches of a class.
pub(super) fn patched(
    blueprint: &Blueprint<'_>,
    cluster: &Cluster,
    named: &Named,
    told: &Told,
    targets: &[Target],
) -> Extended {
    let class = blueprint.class;
    let mut asking = Asking {
        blueprint,
        told,
        targets,
        holders: targets
            .iter()
            .map(|one| holder(blueprint, cluster, named, &one.role))
            .collect(),
        left_out: known_missing(blueprint, cluster, told),
        missing: None,
        refused: None,
    };
    let of_inline = |all: &Map<String, Value>| only(all, |name| class.defines_inline(name));
    let inline: Vec<Target> = targets
        .iter()
        .map(|target| Target {
            variables: of_inline(&target.variables),
            ..target.clone()
        })
        .collect();
    let mut applied = apply_with(
        &blueprint.patches,
        &inline,
        &of_inline(&told.global),
        |patch, patched| asking.generate(patch, patched),
    );
    asking.pass_over(&mut applied);
    let broken = applied.findings.iter().any(|finding| finding.rule.is_error());
    if !broken && asking.refused.is_none() {
        asking.validate(&applied.patched);
    }
    Extended {
        left_out: asking.left_out,
        incomplete: asking.missing.is_some(),
        refused: asking.refused,
        applied,
    }
}

/// Settings of a request: those of the extension's ExtensionConfig, if that is among the objects, below the patch's own.
pub(super) fn settings(objects: &Objects<'_>, named: &str, external: &External) -> BTreeMap<String, String> {
    let (_, extension) = parts(named);
    let mut configs = configs(objects);
    let config = configs.find(|config| text(config, "/metadata/name") == Some(extension));
    let of_config = config.and_then(|config| config.pointer("/spec/settings"));
    let of_config = of_config.and_then(Value::as_object).into_iter().flatten();
    let mut all: BTreeMap<String, String> = of_config
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    all.extend(external.settings.clone());
    all
}

fn configs<'a>(objects: &Objects<'a>) -> impl Iterator<Item = &'a Value> {
    objects.of_kind("runtime.cluster.x-k8s.io", "ExtensionConfig")
}

/// Names parts that no plan has, and variables that nobody could check.
fn known_missing(blueprint: &Blueprint<'_>, cluster: &Cluster, told: &Told) -> Vec<LeftOut> {
    let class = blueprint.class;
    let mut missing = Vec::new();
    for external in class.undiscovered() {
        let named = &external.discover;
        let carried: Vec<&str> = values(told).filter(|name| !class.defines(name)).collect();
        let carried = if carried.is_empty() {
            "the Cluster has none of them".to_owned()
        } else {
            format!("carried as they are: {}", carried.join(", "))
        };
        let patch = &external.patch;
        let what =
            format!("variables that extension {named} defines for patch {patch} are not checked; {carried}");
        missing.push(LeftOut::of_extension(named, what));
    }
    if let Some(plan) = &class.upgrade_plan {
        missing.push(LeftOut::never(format!(
            "upgrades are planned without extension {}, which is never called",
            plan.value
        )));
    }
    for annotation in cluster.metadata.annotations.keys().filter(|one| is_hook(one)) {
        missing.push(LeftOut::never(format!(
            "annotation {annotation} holds upgrades until it is removed; they are planned as if it were"
        )));
    }
    let hooks = lifecycle_hooks(blueprint.objects);
    if !hooks.is_empty() {
        let hooks: Vec<String> = hooks.into_iter().collect();
        missing.push(LeftOut::never(format!(
            "lifecycle hooks are never called: {}",
            hooks.join(", ")
        )));
    }
    missing
}

/// The names of a Cluster's variables, once each.
fn values(told: &Told) -> impl Iterator<Item = &str> {
    let workers = told.workers.iter().map(|(_, variables)| variables);
    let all = [&told.global, &told.control_plane].into_iter().chain(workers);
    let names: BTreeSet<&str> = all
        .flat_map(Map::keys)
        .map(String::as_str)
        .filter(|name| *name != "builtin")
        .collect();
    names.into_iter()
}

/// Handlers that extensions have registered for the life of clusters.
fn lifecycle_hooks(objects: &Objects<'_>) -> BTreeSet<String> {
    let mut hooks = BTreeSet::new();
    for config in configs(objects) {
        let handlers = config.pointer("/status/handlers").and_then(Value::as_array);
        for handler in handlers.into_iter().flatten() {
            let hook = text(handler, "/requestHook/hook").unwrap_or_default();
            if !NOT_LIFECYCLE.contains(&hook) {
                let name = text(handler, "/name").unwrap_or_default();
                hooks.insert(format!("{hook} of {name}"));
            }
        }
    }
    hooks
}

/// The variables for one patch, with what is built in.
fn only(all: &Map<String, Value>, takes: impl Fn(&str) -> bool) -> Map<String, Value> {
    let all = all.iter().filter(|(name, _)| *name == "builtin" || takes(name));
    all.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The object that will hold what a template becomes.
fn holder(blueprint: &Blueprint<'_>, cluster: &Cluster, named: &Named, role: &Role) -> Holder {
    let plane = &blueprint.class.control_plane.template;
    let of_workers = |workers: &Workers, field: &'static str| {
        let mut all = named.workers.iter();
        let found = all.find(|one| one.kind == workers.kind && one.name == workers.name);
        let name = found.map_or("", |one| one.object.as_str());
        (CORE, workers.kind.kind(), name, field)
    };
    let (api_version, kind, name, field) = match role {
        Role::InfrastructureCluster => (CORE, "Cluster", cluster.name.as_str(), "spec.infrastructureRef"),
        Role::ControlPlane => (CORE, "Cluster", cluster.name.as_str(), "spec.controlPlaneRef"),
        Role::ControlPlaneMachines => {
            let kind = plane.kind.strip_suffix("Template").unwrap_or(&plane.kind);
            let field = match blueprint.contract {
                Contract::V1Beta1 => "spec.machineTemplate.infrastructureRef",
                Contract::V1Beta2 => "spec.machineTemplate.spec.infrastructureRef",
            };
            (
                plane.api_version.as_str(),
                kind,
                named.control_plane.as_str(),
                field,
            )
        }
        Role::Bootstrap(workers) => of_workers(workers, "spec.template.spec.bootstrap.configRef"),
        Role::Infrastructure(workers) => of_workers(workers, "spec.template.spec.infrastructureRef"),
    };
    Holder {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: cluster.namespace.clone(),
        name: name.to_owned(),
        field: field.to_owned(),
    }
}

struct Asking<'a> {
    blueprint: &'a Blueprint<'a>,
    told: &'a Told,
    targets: &'a [Target],
    holders: Vec<Holder>,
    left_out: Vec<LeftOut>,
    /// The first external patch that is missing: its index, and its extension.
    missing: Option<(usize, String)>,
    refused: Option<(String, String)>,
}

impl Asking<'_> {
    /// Applies an external patch; false if the plan ends with it.
    fn generate(&mut self, patch: &Patch, patched: &mut [Patched]) -> bool {
        let class = self.blueprint.class;
        let Some(external) = class.external.iter().find(|one| one.index == patch.index) else {
            return true;
        };
        if external.generate.is_empty() {
            let why = "Cluster API gives up Clusters of a class with an external patch that has no generatePatchesExtension";
            return self.refuse(&external.field, why.to_owned());
        }
        let named = &external.generate;
        let answer = {
            let templates: Vec<&Value> = patched.iter().map(|one| &one.template).collect();
            self.ask(Hook::GeneratePatches, named, external, Some(external), &templates)
        };
        let answer = match answer {
            None => {
                let what = format!(
                    "patch {} is not applied: extension {named} was not asked",
                    patch.name
                );
                self.left_out.push(LeftOut::of_extension(named, what));
                self.missing.get_or_insert_with(|| (patch.index, named.clone()));
                return true;
            }
            Some(Err(why)) => return self.refuse(&external.field, format!("extension {named}: {why}")),
            Some(Ok(answer)) => answer,
        };
        let before: Vec<Value> = patched.iter().map(|one| one.template.clone()).collect();
        let mut templates: Vec<&mut Value> = patched.iter_mut().map(|one| &mut one.template).collect();
        let effects = match answer::patch(&answer, &mut templates) {
            Ok(effects) => effects,
            Err(why) => return self.refuse(&external.field, format!("extension {named}: {why}")),
        };
        let touched: BTreeSet<usize> = effects.iter().map(|effect| effect.index).collect();
        for at in touched {
            patched[at].steps.push(Step {
                patch: patch.index,
                name: patch.name.clone(),
                definition: 0,
                changed: before[at] != patched[at].template,
            });
        }
        for effect in effects.iter().filter(|effect| effect.beyond_spec) {
            let place = &patched[effect.index].target;
            let what =
                format!("extension {named} patches more than spec of {place}, which no object takes over");
            self.left_out.push(LeftOut::never(what));
        }
        true
    }

    /// Passes over inline patches that lack what a missing external one before them may make.
    fn pass_over(&mut self, applied: &mut Applied) {
        let Some((index, named)) = &self.missing else {
            return;
        };
        let left_out = &mut self.left_out;
        applied.findings.retain(|finding| {
            let Finding { place, target, why, .. } = finding;
            let needs = finding.rule == Rule::NotApplicable && place.patch > Some(*index);
            if needs {
                let target = target.as_deref().unwrap_or_default();
                let what = format!(
                    "patch {} is not applied to {target}: {why}; extension {named}, which was not asked, may add it",
                    place.name
                );
                left_out.push(LeftOut::of_extension(named, what));
            }
            !needs
        });
    }

    /// Asks what the extensions of patches say to the result.
    fn validate(&mut self, patched: &[Patched]) {
        let class = self.blueprint.class;
        // Upstream keeps the variables of the last patch.
        let last = self.blueprint.patches.last().map(|patch| patch.index);
        let last = class.external.iter().find(|one| Some(one.index) == last);
        for external in class.external.iter().filter(|one| !one.validate.is_empty()) {
            let named = &external.validate;
            let templates: Vec<&Value> = patched.iter().map(|one| &one.template).collect();
            // Half of a topology is nothing to judge.
            let answer = match self.missing {
                None => self.ask(Hook::ValidateTopology, named, external, last, &templates),
                Some(_) => None,
            };
            match answer {
                None => {
                    let what = format!(
                        "the result is not validated: extension {named} of patch {} was not asked",
                        external.patch
                    );
                    self.left_out.push(LeftOut::of_extension(named, what));
                }
                Some(answer) => {
                    let said = answer.and_then(|answer| answer::success(&answer).map(|_| ()));
                    if let Err(why) = said {
                        self.refuse(&external.field, format!("extension {named}: {why}"));
                        return;
                    }
                }
            }
        }
    }

    /// The answer to a request about templates, with the variables of a patch, or of inline ones.
    fn ask(
        &self,
        hook: Hook,
        named: &str,
        external: &External,
        variables_of: Option<&External>,
        templates: &[&Value],
    ) -> Option<Result<Value, String>> {
        let class: &Class = self.blueprint.class;
        let takes = |name: &str| match variables_of {
            Some(external) => class.is_for(name, external),
            None => class.defines_inline(name),
        };
        let own: Vec<Map<String, Value>> = self
            .targets
            .iter()
            .map(|one| only(&one.variables, takes))
            .collect();
        let items: Vec<Item<'_>> = (self.holders.iter().zip(templates).zip(&own))
            .map(|((holder, template), variables)| Item {
                holder,
                template,
                variables,
            })
            .collect();
        let settings = settings(self.blueprint.objects, named, external);
        let request = of_templates(hook, &settings, &only(&self.told.global, takes), &items);
        self.blueprint.extensions?.ask(hook, named, &request)
    }

    fn refuse(&mut self, field: &str, why: String) -> bool {
        self.refused = Some((field.to_owned(), why));
        false
    }
}

#[cfg(test)]
mod tests;

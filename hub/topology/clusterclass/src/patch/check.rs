//! Owns: the rules that the patches of a class keep whatever a cluster says, beyond the form that `read` refuses.
//! Never: needs a template or a variable's value.

use std::collections::BTreeSet;

use super::{
    builtins,
    definition::{Change, Operation, Patch, Selector, Source},
    finding::{Finding, Findings, Place, Rule, shown},
    lookup, select,
    values::BUILTIN,
};
use crate::{
    model::{Class, Reference, WorkerKind},
    template::{Problem, examine},
};

/// Checks the patches of a class, in their order.
pub fn check(class: &Class, patches: &[Patch]) -> Vec<Finding> {
    let mut checker = Checker {
        class,
        findings: Findings::default(),
    };
    let mut names = BTreeSet::new();
    for patch in patches {
        let place = Place::of(patch.index, &patch.name);
        if patch.external {
            checker.external(patch, &place);
        }
        checker.name(patch, &place, !names.insert(patch.name.as_str()));
        if !patch.enabled_if.is_empty() {
            let examined = examine(&patch.enabled_if);
            checker.template(examined, &place, "enabledIf", Rule::EnabledIf);
        }
        for (index, definition) in patch.definitions.iter().enumerate() {
            let place = place.definition(index);
            checker.selector(&definition.selector, &place);
            if definition.operations.is_empty() && patch.whole {
                let why = "it does nothing; write operations";
                checker.add(Rule::NoOperations, &place, "jsonPatches", why);
            }
            for operation in &definition.operations {
                checker.operation(operation, &place.operation(operation.index));
            }
        }
    }
    checker.findings.done()
}

struct Checker<'a> {
    class: &'a Class,
    findings: Findings,
}

impl Checker<'_> {
    fn add(&mut self, rule: Rule, place: &Place, field: &str, why: impl std::fmt::Display) {
        self.findings.add(rule, place, field, None, why);
    }

    fn name(&mut self, patch: &Patch, place: &Place, again: bool) {
        if patch.name.is_empty() {
            self.add(Rule::NameMissing, place, "name", "give it a name");
        } else if patch.name == "inline" {
            let why = "the name inline is taken by the class's own variables; give another";
            self.add(Rule::NameReserved, place, "name", why);
        } else if again {
            let why = "an earlier patch has this name; give another";
            self.add(Rule::NameTwice, place, "name", why);
        }
    }

    fn external(&mut self, patch: &Patch, place: &Place) {
        let mut all = self.class.external.iter();
        let named =
            all.any(|one| one.index == patch.index && !(one.generate.is_empty() && one.validate.is_empty()));
        if !named {
            let why = "give an extension that generates patches or validates the topology";
            self.add(Rule::External, place, "external", why);
        }
    }

    fn template(
        &mut self,
        examined: Result<Vec<&'static str>, Problem>,
        place: &Place,
        field: &str,
        rule: Rule,
    ) {
        match examined {
            Err(problem) => self.add(rule, place, field, shown(&problem.message)),
            Ok(refused) => {
                for name in refused {
                    let why = format!(
                        "function {name:?} gives another result each time: templates would never rest"
                    );
                    self.add(Rule::NotRepeatable, place, field, why);
                }
            }
        }
    }

    fn selector(&mut self, selector: &Selector, place: &Place) {
        for (field, text) in [
            ("selector.apiVersion", &selector.api_version),
            ("selector.kind", &selector.kind),
        ] {
            if text.is_empty() {
                let why = "give that of a template of the class";
                self.add(Rule::SelectorIncomplete, place, field, why);
            }
        }
        let of_workers = |kind: WorkerKind| !selector.classes(kind).is_empty();
        let of_cluster = selector.infrastructure_cluster || selector.control_plane;
        if !of_cluster && !WorkerKind::ALL.into_iter().any(of_workers) {
            let why = "it selects nothing; give controlPlane, infrastructureCluster, machineDeploymentClass or \
                       machinePoolClass";
            self.add(Rule::SelectorEmpty, place, "selector.matchResources", why);
            return;
        }
        let class = self.class;
        let is = |reference: &Reference| reference.is(&selector.api_version, &selector.kind);
        let plane = &class.control_plane;
        if selector.infrastructure_cluster && !is(&class.infrastructure) {
            let why = "the template of the infrastructure has another apiVersion or kind";
            self.unmatched(place, "infrastructureCluster", why);
        }
        if selector.control_plane && !is(&plane.template) && !plane.machines.as_ref().is_some_and(is) {
            let why =
                "neither the control plane nor its machines have a template of this apiVersion and kind";
            self.unmatched(place, "controlPlane", why);
        }
        for kind in WorkerKind::ALL {
            self.selector_of_workers(kind, selector, place);
        }
    }

    fn selector_of_workers(&mut self, kind: WorkerKind, selector: &Selector, place: &Place) {
        let class = self.class;
        let is = |reference: &Reference| reference.is(&selector.api_version, &selector.kind);
        for (index, name) in selector.classes(kind).iter().enumerate() {
            let field = format!("{}Class.names[{index}]", kind.builtin());
            if !is_name(name) {
                let field = format!("selector.matchResources.{field}");
                let why = "it is no name of a class, or one with a single * at its start or its end";
                self.add(Rule::SelectorName, place, &field, why);
                continue;
            }
            let mut workers = class.workers.iter().filter(|one| one.kind == kind);
            let found = workers
                .any(|one| select::names(name, &one.class) && (is(&one.bootstrap) || is(&one.machines)));
            if !found {
                let why = format!(
                    "no {}s of such a class have a template of this apiVersion and kind",
                    kind.words()
                );
                self.unmatched(place, &field, &why);
            }
        }
    }

    fn unmatched(&mut self, place: &Place, field: &str, why: &str) {
        let field = format!("selector.matchResources.{field}");
        let why = format!("{why}; correct the selector, or leave this out");
        self.add(Rule::SelectorUnmatched, place, &field, why);
    }

    fn operation(&mut self, operation: &Operation, place: &Place) {
        self.path(operation, place);
        match operation.change.source() {
            Some(Source::Variable(variable)) => {
                let known = match lookup::base(variable) {
                    BUILTIN => builtins::exists(variable),
                    base => self.class.defines_inline(base),
                };
                if !known {
                    let why = format!(
                        "the class defines no variable {}, and none is built in",
                        shown(variable)
                    );
                    self.add(Rule::VariableUnknown, place, "valueFrom.variable", why);
                }
            }
            Some(Source::Template(template)) => {
                self.template(examine(template), place, "valueFrom.template", Rule::Template);
            }
            Some(Source::Value(_)) | None => {}
        }
    }

    fn path(&mut self, operation: &Operation, place: &Place) {
        let path = operation.path.as_str();
        if !path.starts_with("/spec") {
            let why = format!("{} does not begin with /spec", shown(path));
            self.add(Rule::PathOutsideSpec, place, "path", why);
            return;
        }
        let indices: Vec<i64> = path.split('/').filter_map(|part| part.parse().ok()).collect();
        match operation.change {
            Change::Add(_) if indices.iter().any(|index| *index != 0) => {
                let why = "an element of a list is added as 0, before all others, or as -, behind them";
                self.add(Rule::PathIndex, place, "path", why);
            }
            Change::Replace(_) | Change::Remove if !indices.is_empty() => {
                let why = "elements of a list have no fixed place; replace the whole list";
                self.add(Rule::PathIndex, place, "path", why);
            }
            _ => {}
        }
        if !is_taken(path) {
            let why = "objects take over spec.template.spec, and labels and annotations of spec.template.metadata, \
                       and nothing else";
            self.add(Rule::NotTaken, place, "path", why);
        }
    }
}

/// Returns true if objects take over a value at or below a path.
fn is_taken(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match parts.as_slice() {
        ["spec"] | ["spec", "template"] | ["spec", "template", "metadata"] => true,
        ["spec", "template", "spec", ..] => true,
        ["spec", "template", "metadata", part, ..] => ["labels", "annotations"].contains(part),
        _ => false,
    }
}

/// Returns true if a selector may have this name. Kubernetes checks only names with `*`, as qualified names; without a
/// slash that is: at most 63 letters, digits, `-`, `_` and `.`, the first and the last a letter or a digit.
fn is_name(name: &str) -> bool {
    if !name.contains('*') {
        return true;
    }
    let stars = name.matches('*').count();
    let inner = name.replace('*', "a");
    let plain = |character: char| character.is_ascii_alphanumeric();
    stars == 1
        && (name.starts_with('*') || name.ends_with('*'))
        && inner.len() <= 63
        && inner.starts_with(plain)
        && inner.ends_with(plain)
        && inner
            .chars()
            .all(|character| plain(character) || "-_.".contains(character))
}

#[cfg(test)]
mod tests;

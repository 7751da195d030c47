//! Owns: patches applied to the templates of one cluster, in order, and what each did.
//! Never: a template that half of a definition changed. Where upstream gives up a whole cluster, the definition or the
//! patch is left out for that template, a finding has the reason, and the others are applied: a program that writes
//! objects must not while there are errors.

use serde_json::{Map, Value};

use super::{
    definition::{Change, Definition, Operation, Patch, Source},
    finding::{Finding, Findings, Place, Rule, shown},
    limits::{BYTES_PER_STEP, MAX_RESULT, MAX_TARGETS, MAX_VALUE, MAX_VALUES, MAX_WORK},
    lookup, numbers, operation, select,
    target::Target,
    values,
};
use crate::template::{Outcome, render};

/// A definition that was applied to a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Index of the class's patch, from 0.
    pub patch: usize,
    /// The patch's name.
    pub name: String,
    /// Index of its definition, from 0.
    pub definition: usize,
    /// True if the template differs afterwards.
    pub changed: bool,
}

/// A template after all patches.
#[derive(Debug, Clone, PartialEq)]
pub struct Patched {
    /// The place it is for, by its name.
    pub target: String,
    /// The template.
    pub template: Value,
    /// The definitions applied to it, in this order.
    pub steps: Vec<Step>,
}

/// The result of all patches and templates.
#[derive(Debug, Clone, PartialEq)]
pub struct Applied {
    /// The templates, in the order in which they were given.
    pub patched: Vec<Patched>,
    /// Omissions with reasons, and probable mistakes.
    pub findings: Vec<Finding>,
}

/// Applies patches, in their order, to templates. `global` has the variables of the cluster.
///
/// The result follows from the arguments alone.
pub fn apply(patches: &[Patch], targets: &[Target], global: &Map<String, Value>) -> Applied {
    apply_with(patches, targets, global, |_, _| true)
}

/// Applies patches of which some are external: in their places `external` gets the patch, and the templates as the ones
/// before left them. It ends the work by returning false.
pub fn apply_with(
    patches: &[Patch],
    targets: &[Target],
    global: &Map<String, Value>,
    mut external: impl FnMut(&Patch, &mut [Patched]) -> bool,
) -> Applied {
    let mut run = Run {
        findings: Findings::default(),
        work: 0,
    };
    if targets.len() > MAX_TARGETS {
        let why = format!("a cluster has at most {MAX_TARGETS} templates; the others are left out");
        run.findings.add(Rule::Limit, &Place::default(), "", None, why);
    }
    let targets = targets.get(..MAX_TARGETS).unwrap_or(targets);
    let mut patched: Vec<Patched> = targets.iter().map(start).collect();
    for some in patches.split_inclusive(|patch| patch.external) {
        for (target, patched) in targets.iter().zip(&mut patched) {
            run.target(some, &Way::new(target, global), patched);
        }
        let last = some.last().filter(|patch| patch.external && patch.whole);
        if last.is_some_and(|last| !external(last, &mut patched)) {
            break;
        }
    }
    Applied {
        patched,
        findings: run.findings.done(),
    }
}

/// Why a definition or a patch is left out: the rule, the field and the reason.
type Refusal = (Rule, &'static str, String);

struct Run {
    findings: Findings,
    work: u64,
}

/// One template on its way.
struct Way<'a> {
    target: &'a Target,
    name: String,
    variables: Map<String, Value>,
    /// The same as JSON, which is what templates are given.
    json: Vec<u8>,
}

impl<'a> Way<'a> {
    fn new(target: &'a Target, global: &Map<String, Value>) -> Self {
        let variables = values::merged(global, &target.variables);
        Self {
            target,
            name: target.role.name(),
            json: Value::Object(variables.clone()).to_string().into_bytes(),
            variables,
        }
    }
}

/// A template before all patches.
fn start(target: &Target) -> Patched {
    Patched {
        target: target.role.name(),
        template: target.template.clone(),
        steps: Vec::new(),
    }
}

impl Run {
    fn target(&mut self, patches: &[Patch], way: &Way<'_>, patched: &mut Patched) {
        for patch in patches.iter().filter(|patch| patch.whole) {
            if self.is_spent() {
                break;
            }
            let place = Place::of(patch.index, &patch.name);
            if let Err((rule, field, why)) = self.patch(patch, &place, way, patched) {
                self.findings.add(rule, &place, field, Some(&way.name), why);
            }
        }
    }

    fn patch(
        &mut self,
        patch: &Patch,
        place: &Place,
        way: &Way<'_>,
        patched: &mut Patched,
    ) -> Result<(), Refusal> {
        self.spend(patch.definitions.len(), 0)?;
        let selected = |definition: &Definition| select::matches(&definition.selector, way.target);
        if !patch.definitions.iter().any(selected) {
            return Ok(());
        }
        if !patch.enabled_if.is_empty() {
            let outcome = self.render(&patch.enabled_if, way)?;
            self.doubts(&outcome, place, "enabledIf", way);
            if let Some(problem) = outcome.problem {
                return Err((Rule::EnabledIf, "enabledIf", shown(&problem.message)));
            }
            if !outcome.enabled_if {
                return Ok(());
            }
        }
        for (index, definition) in patch.definitions.iter().enumerate() {
            if !selected(definition) || self.is_spent() {
                continue;
            }
            let mut place = place.definition(index);
            match self.definition(definition, &mut place, way, &patched.template) {
                Ok(template) => {
                    patched.steps.push(Step {
                        patch: patch.index,
                        name: patch.name.clone(),
                        definition: index,
                        changed: template != patched.template,
                    });
                    patched.template = template;
                }
                Err((rule, field, why)) => {
                    self.findings.add(rule, &place, field, Some(&way.name), why);
                }
            }
        }
        Ok(())
    }

    /// The template after a definition; `place` is left where it failed.
    fn definition(
        &mut self,
        definition: &Definition,
        place: &mut Place,
        way: &Way<'_>,
        before: &Value,
    ) -> Result<Value, Refusal> {
        let size = before.to_string().len();
        self.spend(1, size)?;
        let at = place.clone();
        let mut after = before.clone();
        let mut bytes = 0;
        for operation in &definition.operations {
            *place = at.operation(operation.index);
            let value = self.value(operation, place, way)?;
            bytes += value.as_ref().map_or(0, |value| value.to_string().len());
            self.spend(1, bytes)?;
            if bytes > MAX_VALUES {
                let why = format!("the values of this definition have more than {MAX_VALUES} bytes");
                return Err((Rule::Limit, "", why));
            }
            carry_out(operation, value, &mut after)?;
        }
        *place = at;
        let content = |template: &Value| template.pointer("/spec/template/spec").map(Value::is_object);
        if content(before) == Some(true) && content(&after) != Some(true) {
            let why = "it leaves the template without spec.template.spec; replace what is in it".to_owned();
            return Err((Rule::Emptied, "jsonPatches", why));
        }
        if size + bytes > MAX_RESULT && after.to_string().len() > MAX_RESULT {
            let why = format!("the template would have more than {MAX_RESULT} bytes");
            return Err((Rule::Limit, "jsonPatches", why));
        }
        Ok(taken(before, after))
    }

    fn value(
        &mut self,
        operation: &Operation,
        place: &Place,
        way: &Way<'_>,
    ) -> Result<Option<Value>, Refusal> {
        let (value, field) = match operation.change.source() {
            None => return Ok(None),
            Some(Source::Value(value)) => return Ok(Some(value.clone())),
            Some(Source::Variable(path)) => {
                let field = "valueFrom.variable";
                let value =
                    lookup::value(&way.variables, path).map_err(|why| (Rule::VariableMissing, field, why))?;
                (value.clone(), field)
            }
            Some(Source::Template(template)) => {
                let field = "valueFrom.template";
                let outcome = self.render(template, way)?;
                self.doubts(&outcome, place, field, way);
                let text = match (outcome.value, outcome.problem) {
                    (Some(text), None) => text,
                    (_, problem) => {
                        let why = problem.map(|problem| shown(&problem.message));
                        return Err((Rule::Template, field, why.unwrap_or_default()));
                    }
                };
                let value = serde_json::from_str(&text)
                    .map_err(|error| (Rule::Template, field, shown(&error.to_string())))?;
                (value, field)
            }
        };
        if value.to_string().len() > MAX_VALUE {
            let why = format!("the value has more than {MAX_VALUE} bytes");
            return Err((Rule::Limit, field, why));
        }
        Ok(Some(numbers::kept(value)))
    }

    fn render(&mut self, template: &str, way: &Way<'_>) -> Result<Outcome, Refusal> {
        self.spend(1, template.len() + way.json.len())?;
        let outcome = render(template, &way.json);
        let written = outcome.rendered.as_ref().map_or(0, Vec::len);
        self.work = self.work.saturating_add(outcome.steps);
        self.spend(1, written)?;
        Ok(outcome)
    }

    /// Reports probable mistakes of a template.
    fn doubts(&mut self, outcome: &Outcome, place: &Place, field: &str, way: &Way<'_>) {
        let doubts = outcome.findings.iter();
        for finding in doubts.filter(|finding| finding.ends_with("<no value>")) {
            self.findings
                .add(Rule::NoValue, place, field, Some(&way.name), shown(finding));
        }
    }

    fn spend(&mut self, steps: usize, bytes: usize) -> Result<(), Refusal> {
        let steps = steps.saturating_add(bytes / BYTES_PER_STEP) as u64;
        self.work = self.work.saturating_add(steps);
        if self.work > MAX_WORK {
            let why = format!(
                "the patches of the class take more than {MAX_WORK} steps for this cluster; what follows, here and of \
                 other templates, is left out"
            );
            return Err((Rule::Limit, "", why));
        }
        Ok(())
    }

    fn is_spent(&self) -> bool {
        self.work > MAX_WORK
    }
}

fn carry_out(operation: &Operation, value: Option<Value>, template: &mut Value) -> Result<(), Refusal> {
    let path = operation.path.as_str();
    if !path.starts_with("/spec") {
        let why = format!("{} does not begin with /spec", shown(path));
        return Err((Rule::PathOutsideSpec, "path", why));
    }
    let done = match (&operation.change, value) {
        (Change::Add(_), Some(value)) => operation::add(template, path, value),
        (Change::Replace(_), Some(value)) => operation::replace(template, path, value),
        (Change::Remove, _) => operation::remove(template, path),
        (_, None) => Err("it has no value".to_owned()),
    };
    done.map_err(|why| {
        (
            Rule::NotApplicable,
            "path",
            format!("{}: {why}", operation.change.name()),
        )
    })
}

/// The template with the other one's `spec`; where that is gone it stays. The rest of a template is not taken over.
fn taken(before: &Value, mut after: Value) -> Value {
    let mut template = before.clone();
    if let (Some(fields), Some(spec)) = (template.as_object_mut(), after.get_mut("spec")) {
        fields.insert("spec".to_owned(), spec.take());
    }
    template
}

#[cfg(test)]
mod tests;

//! Owns: what is wrong or doubtful with a patch: the rule, the place, and why.
//! Never: more than [`MAX_FINDINGS`] of them.

use std::fmt::{Display, Formatter};

use super::limits::{MAX_FINDINGS, MAX_SHOWN};

/// A broken rule. Each has a name that does not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// More than one class may have or take.
    Limit,
    /// A field that has another type than the API says.
    Malformed,
    /// A field that the API does not have; a server would drop it silently.
    UnknownField,
    /// A patch without a name.
    NameMissing,
    /// A patch named `inline`, which is where variables come from that no patch defines.
    NameReserved,
    /// Two patches of one name.
    NameTwice,
    /// `enabledIf` that is no template, or one that cannot be carried out.
    EnabledIf,
    /// Neither `definitions` nor `external`.
    NothingDefined,
    /// An external patch that has definitions too, or no extension that does something.
    External,
    /// A selector without `apiVersion` or `kind`.
    SelectorIncomplete,
    /// A selector that selects nothing.
    SelectorEmpty,
    /// A name with `*` at another place than its start or its end.
    SelectorName,
    /// A part of a selector that no template of the class answers.
    SelectorUnmatched,
    /// A definition without operations.
    NoOperations,
    /// An operation other than `add`, `replace` and `remove`.
    OperationUnknown,
    /// A path outside the object's `spec`.
    PathOutsideSpec,
    /// An element of a list, other than the new first or last one.
    PathIndex,
    /// Neither `value` nor `valueFrom`, or `valueFrom` without a source.
    ValueMissing,
    /// Two sources of one value.
    ValueTwice,
    /// A value for `remove`.
    ValueOfRemove,
    /// A template that is none, or that cannot be carried out.
    Template,
    /// A template whose functions give another result each time.
    NotRepeatable,
    /// A variable that the class does not define, or a builtin one that does not exist.
    VariableUnknown,
    /// A variable that has no value here.
    VariableMissing,
    /// An operation that the template has no place for.
    NotApplicable,
    /// Operations that leave a template without its content.
    Emptied,
    /// A change that no object takes over.
    NotTaken,
    /// `<no value>` is written.
    NoValue,
}

impl Rule {
    /// The rule's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Malformed => "malformed",
            Self::UnknownField => "unknown-field",
            Self::NameMissing => "name-missing",
            Self::NameReserved => "name-reserved",
            Self::NameTwice => "name-twice",
            Self::EnabledIf => "enabled-if",
            Self::NothingDefined => "nothing-defined",
            Self::External => "external",
            Self::SelectorIncomplete => "selector-incomplete",
            Self::SelectorEmpty => "selector-empty",
            Self::SelectorName => "selector-name",
            Self::SelectorUnmatched => "selector-unmatched",
            Self::NoOperations => "no-operations",
            Self::OperationUnknown => "operation-unknown",
            Self::PathOutsideSpec => "path-outside-spec",
            Self::PathIndex => "path-index",
            Self::ValueMissing => "value-missing",
            Self::ValueTwice => "value-twice",
            Self::ValueOfRemove => "value-of-remove",
            Self::Template => "template",
            Self::NotRepeatable => "not-repeatable",
            Self::VariableUnknown => "variable-unknown",
            Self::VariableMissing => "variable-missing",
            Self::NotApplicable => "not-applicable",
            Self::Emptied => "emptied",
            Self::NotTaken => "not-taken",
            Self::NoValue => "no-value",
        }
    }

    /// Returns true if the finding disables the patch; otherwise the patch is valid and probably a mistake.
    pub fn is_error(self) -> bool {
        !matches!(self, Self::NotTaken | Self::NoValue)
    }
}

/// A place in a class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Index of the patch, from 0; none for all of them.
    pub patch: Option<usize>,
    /// The patch's name; empty if it has none.
    pub name: String,
    /// Index of the patch's definition, from 0.
    pub definition: Option<usize>,
    /// Index of the definition's operation, from 0.
    pub operation: Option<usize>,
}

impl Place {
    /// A patch.
    pub(super) fn of(patch: usize, name: &str) -> Self {
        Self {
            patch: Some(patch),
            name: shown(name),
            ..Self::default()
        }
    }

    /// A definition of it.
    pub(super) fn definition(&self, definition: usize) -> Self {
        Self {
            definition: Some(definition),
            ..self.clone()
        }
    }

    /// An operation of the definition.
    pub(super) fn operation(&self, operation: usize) -> Self {
        Self {
            operation: Some(operation),
            ..self.clone()
        }
    }
}

impl Display for Place {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str("spec.patches")?;
        for (field, index) in [
            ("", self.patch),
            (".definitions", self.definition),
            (".jsonPatches", self.operation),
        ] {
            if let Some(index) = index {
                write!(to, "{field}[{index}]")?;
            }
        }
        Ok(())
    }
}

/// One thing that is wrong or doubtful.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The broken rule.
    pub rule: Rule,
    /// Its place.
    pub place: Place,
    /// The field below the place; empty for the place itself.
    pub field: String,
    /// The template that was patched, if one was.
    pub target: Option<String>,
    /// One line: what is wrong, and what would do.
    pub why: String,
}

impl Display for Finding {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        let weight = if self.rule.is_error() { "error" } else { "warning" };
        write!(to, "{weight} {}: {}", self.rule.name(), self.place)?;
        if !self.field.is_empty() {
            write!(to, ".{}", self.field)?;
        }
        if self.place.patch.is_some() {
            let name = &self.place.name;
            write!(to, " (patch {name:?}")?;
            if let Some(target) = &self.target {
                write!(to, ", {target}")?;
            }
            to.write_str(")")?;
        }
        write!(to, ": {}", self.why)
    }
}

/// Findings in the order in which they were made, up to [`MAX_FINDINGS`].
#[derive(Debug, Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
    more: usize,
}

impl Findings {
    /// Adds one.
    pub(super) fn add(
        &mut self,
        rule: Rule,
        place: &Place,
        field: &str,
        target: Option<&str>,
        why: impl Display,
    ) {
        if self.list.len() >= MAX_FINDINGS {
            self.more += 1;
            return;
        }
        self.list.push(Finding {
            rule,
            place: place.clone(),
            field: field.to_owned(),
            target: target.map(str::to_owned),
            why: why.to_string(),
        });
    }

    /// All of them; the last one says how many more there were.
    pub(super) fn done(mut self) -> Vec<Finding> {
        if self.more > 0 {
            self.list.push(Finding {
                rule: Rule::Limit,
                place: Place::default(),
                field: String::new(),
                target: None,
                why: format!("{} more findings are not shown: correct these first", self.more),
            });
        }
        self.list
    }
}

/// A foreign text on one line, cut after [`MAX_SHOWN`] characters.
pub fn shown(text: &str) -> String {
    let mut kept: String = text.chars().take(MAX_SHOWN).map(printable).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        kept.push('…');
    }
    kept
}

/// A character, or a space for one that might end a line.
fn printable(character: char) -> char {
    let ends = character.is_control() || ['\u{2028}', '\u{2029}'].contains(&character);
    if ends { ' ' } else { character }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_names_its_place() {
        let place = Place::of(2, "image\n").definition(1).operation(0);
        let mut findings = Findings::default();
        findings.add(Rule::PathIndex, &place, "path", Some("control-plane"), "no");
        let line = findings.done()[0].to_string();
        assert_eq!(
            line,
            "error path-index: spec.patches[2].definitions[1].jsonPatches[0].path (patch \"image \", control-plane): no"
        );
    }

    #[test]
    fn findings_end() {
        let mut findings = Findings::default();
        for _ in 0..MAX_FINDINGS + 7 {
            findings.add(Rule::NoValue, &Place::default(), "", None, "x");
        }
        let list = findings.done();
        assert_eq!(list.len(), MAX_FINDINGS + 1);
        assert!(list[MAX_FINDINGS].why.starts_with("7 more"));
        assert!(shown(&"é".repeat(MAX_SHOWN + 1)).ends_with('…'));
    }
}

//! Owns: the `patches` of a class as its document has them, made into values; what is refused here is their form.
//! Never: ignores a field: a server would drop what it does not know, and the author would not learn of it.

use serde_json::{Map, Value};

use super::{
    definition::{Change, Definition, Operation, Patch, Selector, Source},
    finding::{Finding, Findings, Place, Rule, shown},
    limits::{MAX_ITEMS, MAX_OPERATIONS, MAX_PATCHES, MAX_PATH, MAX_VALUE},
    numbers,
};

/// Reads the list `spec.patches`. A patch that could not be read as a whole says so.
pub fn patches(list: Option<&Value>) -> (Vec<Patch>, Vec<Finding>) {
    let mut reader = Reader::default();
    let place = Place::default();
    let mut patches = Vec::new();
    for (index, patch) in reader.list(list, MAX_PATCHES, &place, "").iter().enumerate() {
        reader.refused = false;
        let name = patch.get("name").and_then(Value::as_str).unwrap_or_default();
        let place = Place::of(index, name);
        patches.push(reader.patch(patch, index, &place));
    }
    (patches, reader.findings.done())
}

/// Fields of an object; `null` is as good as none.
#[derive(Clone, Copy)]
struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    fn get(self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }
}

#[derive(Default)]
struct Reader {
    findings: Findings,
    /// Something of the patch that is being read was refused.
    refused: bool,
    operations: usize,
}

impl Reader {
    fn refuse(&mut self, rule: Rule, place: &Place, field: &str, why: impl std::fmt::Display) {
        self.refused = true;
        self.findings.add(rule, place, field, None, why);
    }

    fn patch(&mut self, document: &Value, index: usize, place: &Place) -> Patch {
        let known = ["name", "description", "enabledIf", "definitions", "external"];
        let fields = self.object(Some(document), &known, place, "");
        let name = self.text(fields, "name", place, "name");
        let description = self.text(fields, "description", place, "description");
        let enabled_if = self.text(fields, "enabledIf", place, "enabledIf");
        let list = self.list(fields.get("definitions"), MAX_ITEMS, place, "definitions");
        let external = fields.get("external").is_some();
        if external && !list.is_empty() {
            let why = "it has definitions too; keep one of them";
            self.refuse(Rule::External, place, "external", why);
        } else if !external && list.is_empty() {
            let why = "it has no definitions; write some";
            self.refuse(Rule::NothingDefined, place, "", why);
        }
        let mut definitions = Vec::new();
        for (index, definition) in list.iter().enumerate() {
            definitions.push(self.definition(definition, &place.definition(index)));
        }
        Patch {
            index,
            name,
            description,
            enabled_if,
            definitions,
            external,
            whole: !self.refused,
        }
    }

    fn definition(&mut self, document: &Value, place: &Place) -> Definition {
        let fields = self.object(Some(document), &["selector", "jsonPatches"], place, "");
        let selector = self.selector(fields.get("selector"), place);
        let list = self.list(fields.get("jsonPatches"), MAX_ITEMS, place, "jsonPatches");
        self.operations += list.len();
        if self.operations > MAX_OPERATIONS {
            let why = format!("a class has at most {MAX_OPERATIONS} operations; what follows is left out");
            self.refuse(Rule::Limit, place, "jsonPatches", why);
            return Definition {
                selector,
                operations: Vec::new(),
            };
        }
        let mut operations = Vec::new();
        for (index, operation) in list.iter().enumerate() {
            operations.extend(self.operation(operation, index, &place.operation(index)));
        }
        Definition { selector, operations }
    }

    fn selector(&mut self, document: Option<&Value>, place: &Place) -> Selector {
        let known = ["apiVersion", "kind", "matchResources"];
        let fields = self.object(document, &known, place, "selector");
        let api_version = self.text(fields, "apiVersion", place, "selector.apiVersion");
        let kind = self.text(fields, "kind", place, "selector.kind");
        let known = [
            "controlPlane",
            "infrastructureCluster",
            "machineDeploymentClass",
            "machinePoolClass",
        ];
        let within = "selector.matchResources";
        let resources = self.object(fields.get("matchResources"), &known, place, within);
        Selector {
            api_version,
            kind,
            control_plane: self.truth(resources, "controlPlane", place),
            infrastructure_cluster: self.truth(resources, "infrastructureCluster", place),
            machine_deployment_classes: self.class_names(resources, "machineDeploymentClass", place),
            machine_pool_classes: self.class_names(resources, "machinePoolClass", place),
        }
    }

    fn class_names(&mut self, resources: Fields<'_>, field: &str, place: &Place) -> Vec<String> {
        let within = format!("selector.matchResources.{field}");
        let names = self.object(resources.get(field), &["names"], place, &within);
        let within = format!("{within}.names");
        let mut all = Vec::new();
        for name in self.list(names.get("names"), MAX_ITEMS, place, &within) {
            match name.as_str() {
                Some(name) => all.push(name.to_owned()),
                None => self.refuse(Rule::Malformed, place, &within, "a name is no text"),
            }
        }
        all
    }

    fn operation(&mut self, document: &Value, index: usize, place: &Place) -> Option<Operation> {
        let fields = self.object(Some(document), &["op", "path", "value", "valueFrom"], place, "");
        let path = self.text(fields, "path", place, "path");
        if path.len() > MAX_PATH {
            self.refuse(
                Rule::Limit,
                place,
                "path",
                format!("it has more than {MAX_PATH} bytes"),
            );
            return None;
        }
        let op = self.text(fields, "op", place, "op");
        let (value, from) = (fields.get("value"), fields.get("valueFrom"));
        let change = match op.as_str() {
            "add" => Change::Add(self.source(value, from, place)?),
            "replace" => Change::Replace(self.source(value, from, place)?),
            "remove" => {
                if value.is_some() || from.is_some() {
                    self.refuse(
                        Rule::ValueOfRemove,
                        place,
                        "",
                        "remove takes no value; leave it out",
                    );
                }
                Change::Remove
            }
            _ => {
                let text = shown(&op);
                let why = format!("{text:?} is none of add, replace and remove");
                self.refuse(Rule::OperationUnknown, place, "op", why);
                return None;
            }
        };
        Some(Operation { index, path, change })
    }

    fn source(&mut self, value: Option<&Value>, from: Option<&Value>, place: &Place) -> Option<Source> {
        match (value, from) {
            (None, None) => {
                self.refuse(Rule::ValueMissing, place, "", "give one of value and valueFrom");
                None
            }
            (Some(_), Some(_)) => {
                self.refuse(
                    Rule::ValueTwice,
                    place,
                    "",
                    "give only one of value and valueFrom",
                );
                None
            }
            (Some(value), None) if value.to_string().len() > MAX_VALUE => {
                let why = format!("it has more than {MAX_VALUE} bytes");
                self.refuse(Rule::Limit, place, "value", why);
                None
            }
            (Some(value), None) => Some(Source::Value(numbers::kept(value.clone()))),
            (None, Some(from)) => {
                let fields = self.object(Some(from), &["variable", "template"], place, "valueFrom");
                let variable = self.text(fields, "variable", place, "valueFrom.variable");
                let template = self.text(fields, "template", place, "valueFrom.template");
                match (variable.is_empty(), template.is_empty()) {
                    (true, true) => {
                        let why = "give one of variable and template";
                        self.refuse(Rule::ValueMissing, place, "valueFrom", why);
                        None
                    }
                    (false, false) => {
                        let why = "give only one of variable and template";
                        self.refuse(Rule::ValueTwice, place, "valueFrom", why);
                        None
                    }
                    (false, true) => Some(Source::Variable(variable)),
                    (true, false) => Some(Source::Template(template)),
                }
            }
        }
    }

    /// The fields of an object, none where there is no object; what it may not have is refused.
    fn object<'a>(
        &mut self,
        value: Option<&'a Value>,
        known: &[&str],
        place: &Place,
        field: &str,
    ) -> Fields<'a> {
        let fields = match value {
            None | Some(Value::Null) => return Fields(None),
            Some(Value::Object(fields)) => fields,
            Some(_) => {
                self.refuse(Rule::Malformed, place, field, "it is no object");
                return Fields(None);
            }
        };
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let name = shown(name);
            let why = format!("there is no field {name:?} here; known are {}", known.join(", "));
            self.refuse(Rule::UnknownField, place, field, why);
        }
        Fields(Some(fields))
    }

    /// The elements of a list; none where there is no list.
    fn list<'a>(&mut self, value: Option<&'a Value>, most: usize, place: &Place, field: &str) -> &'a [Value] {
        match value {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) if items.len() > most => {
                let why = format!("it has {} elements, and at most {most} are taken", items.len());
                self.refuse(Rule::Limit, place, field, why);
                &items[..most]
            }
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.refuse(Rule::Malformed, place, field, "it is no list");
                &[]
            }
        }
    }

    /// A field's text; empty where there is none.
    fn text(&mut self, fields: Fields<'_>, name: &str, place: &Place, field: &str) -> String {
        match fields.get(name) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => {
                self.refuse(
                    Rule::Malformed,
                    place,
                    field,
                    "it is no text; put it in quotation marks",
                );
                String::new()
            }
        }
    }

    fn truth(&mut self, fields: Fields<'_>, name: &str, place: &Place) -> bool {
        match fields.get(name) {
            None => false,
            Some(Value::Bool(truth)) => *truth,
            Some(_) => {
                let field = format!("selector.matchResources.{name}");
                self.refuse(Rule::Malformed, place, &field, "it is neither true nor false");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_patch_is_what_its_document_says() {
        let list = json!([{
            "name": "image",
            "description": "Sets it",
            "enabledIf": "{{ .on }}",
            "definitions": [{
                "selector": {
                    "apiVersion": "g/v1",
                    "kind": "KTemplate",
                    "matchResources": {
                        "controlPlane": true,
                        "infrastructureCluster": false,
                        "machineDeploymentClass": {"names": ["linux-*"]},
                    },
                },
                "jsonPatches": [
                    {"op": "add", "path": "/spec/a", "value": {"x": 1.0}},
                    {"op": "replace", "path": "/spec/b", "valueFrom": {"variable": "v.w"}},
                    {"op": "add", "path": "/spec/c", "valueFrom": {"template": "{{ .v }}"}, "value": null},
                    {"op": "remove", "path": "/spec/d"},
                ],
            }],
            "external": null,
        }]);
        let (patches, findings) = patches(Some(&list));
        assert_eq!(findings, []);
        let changes = [
            ("/spec/a", Change::Add(Source::Value(json!({"x": 1})))),
            ("/spec/b", Change::Replace(Source::Variable("v.w".to_owned()))),
            ("/spec/c", Change::Add(Source::Template("{{ .v }}".to_owned()))),
            ("/spec/d", Change::Remove),
        ];
        let operation = |(index, (path, change)): (usize, (&str, Change))| Operation {
            index,
            path: path.to_owned(),
            change,
        };
        let expected = Patch {
            index: 0,
            name: "image".to_owned(),
            description: "Sets it".to_owned(),
            enabled_if: "{{ .on }}".to_owned(),
            definitions: vec![Definition {
                selector: Selector {
                    api_version: "g/v1".to_owned(),
                    kind: "KTemplate".to_owned(),
                    control_plane: true,
                    infrastructure_cluster: false,
                    machine_deployment_classes: vec!["linux-*".to_owned()],
                    machine_pool_classes: Vec::new(),
                },
                operations: changes.into_iter().enumerate().map(operation).collect(),
            }],
            external: false,
            whole: true,
        };
        assert_eq!(patches, [expected]);
    }

    #[test]
    fn what_cannot_be_read_keeps_its_place_and_is_not_whole() {
        let list = json!([
            {"name": "a", "definitions": [{"jsonPatches": [{"op": "move"}, {"op": "remove", "path": "/spec/x"}]}]},
            "no patch",
            {"name": "c", "definitions": [{"jsonPatches": []}]},
        ]);
        let (patches, findings) = patches(Some(&list));
        let whole: Vec<bool> = patches.iter().map(|patch| patch.whole).collect();
        assert_eq!(whole, [false, false, true]);
        assert_eq!(patches[0].definitions[0].operations[0].index, 1);
        let rules: Vec<Rule> = findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(
            rules,
            [Rule::OperationUnknown, Rule::Malformed, Rule::NothingDefined]
        );
        assert_eq!(
            findings[0].to_string(),
            "error operation-unknown: spec.patches[0].definitions[0].jsonPatches[0].op (patch \"a\"): \
             \"move\" is none of add, replace and remove"
        );
    }

    #[test]
    fn lists_and_texts_are_bounded() {
        let (read, findings) = patches(Some(&Value::from(vec![json!({}); MAX_PATCHES + 1])));
        assert_eq!(read.len(), MAX_PATCHES);
        assert_eq!(findings[0].rule, Rule::Limit);
        let remove = json!({"op": "remove", "path": "/spec/x"});
        let definition = json!({ "jsonPatches": vec![remove; MAX_ITEMS] });
        let patch = json!({"name": "p", "definitions": vec![definition; MAX_ITEMS]});
        let (read, findings) = patches(Some(&Value::from(vec![patch; 3])));
        let operations: usize = (read.iter().flat_map(|patch| &patch.definitions))
            .map(|definition| definition.operations.len())
            .sum();
        assert_eq!(operations, MAX_OPERATIONS);
        assert_eq!(findings[0].rule, Rule::Limit);
        assert!(!read[2].whole);
    }
}

//! Owns: how a parsed template is carried out: blocks, pipelines, fields, calls, as Go's `text/template` does it.
//! Never: continues beyond a limit, and never panics: where upstream's functions panic there is an error here.

use super::{
    functions,
    limits::{Failure, MAX_DEPTH, MAX_OUTPUT},
    meter::Meter,
    methods,
    node::{Choice, Command, Node, Number, Operand, Pipe, ROOT, Range, Set, Term},
    print,
    signature::{Signature, Type},
    value::Value,
};

/// The text shown for a missing value.
const NO_VALUE: &[u8] = b"<no value>";

/// The result of a template.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// The text, or why there is none.
    pub(crate) text: Result<Vec<u8>, Failure>,
    /// The place where it ended, if it failed, bytes.
    pub(crate) at: usize,
    /// Places where `<no value>` was written, bytes, each once.
    pub(crate) missing: Vec<usize>,
}

/// Most places of `<no value>` that are kept.
const MAX_MISSING: usize = 16;

/// Carries out the template [`ROOT`].
pub(crate) fn render(set: &Set, meter: &mut Meter, variables: Value) -> Rendered {
    let mut run = Run {
        set,
        meter,
        out: Vec::new(),
        variables: vec![("$".to_owned(), variables.clone())],
        depth: 0,
        at: 0,
        missing: Vec::new(),
    };
    let result = match set.get(ROOT) {
        Some(nodes) => run.nodes(nodes, &variables).map(|_| ()),
        None => Ok(()),
    };
    Rendered {
        text: result.map(|()| std::mem::take(&mut run.out)),
        at: run.at,
        missing: run.missing,
    }
}

/// The end of a list of nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Run<'a> {
    set: &'a Set,
    meter: &'a mut Meter,
    out: Vec<u8>,
    /// The innermost last.
    variables: Vec<(String, Value)>,
    depth: usize,
    at: usize,
    missing: Vec<usize>,
}

type Done<T> = Result<T, Failure>;

fn fail<T>(message: impl Into<String>) -> Done<T> {
    Err(Failure::new(message))
}

impl<'a> Run<'a> {
    fn deeper(&mut self) -> Done<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return fail(format!("exceeded maximum template depth ({MAX_DEPTH})"));
        }
        Ok(())
    }

    fn write(&mut self, text: &[u8]) -> Done<()> {
        self.meter.read(text.len())?;
        if self.out.len() + text.len() > MAX_OUTPUT {
            return fail(format!("renders more than {MAX_OUTPUT} bytes"));
        }
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn nodes(&mut self, nodes: &'a [Node], dot: &Value) -> Done<Flow> {
        self.deeper()?;
        for node in nodes {
            self.meter.step(1)?;
            let flow = match node {
                Node::Text(text) => {
                    self.write(text)?;
                    Flow::Next
                }
                Node::Action(pipe) => {
                    let value = self.pipeline(pipe, dot)?;
                    if pipe.variables.is_empty() {
                        self.at = pipe.at;
                        self.show(&value)?;
                    }
                    Flow::Next
                }
                Node::Choice(choice) => self.choice(choice, dot)?,
                Node::Range(range) => self.range(range, dot)?,
                Node::Call { at, name, pipe } => {
                    self.call(*at, name, pipe.as_ref(), dot)?;
                    Flow::Next
                }
                Node::Break => Flow::Break,
                Node::Continue => Flow::Continue,
            };
            if flow != Flow::Next {
                self.depth -= 1;
                return Ok(flow);
            }
        }
        self.depth -= 1;
        Ok(Flow::Next)
    }

    fn show(&mut self, value: &Value) -> Done<()> {
        if value.is_none() {
            if self.missing.len() < MAX_MISSING && !self.missing.contains(&self.at) {
                self.missing.push(self.at);
            }
            return self.write(NO_VALUE);
        }
        let text = print::sprint(self.meter, std::slice::from_ref(value))?;
        self.write(&text)
    }

    fn choice(&mut self, choice: &'a Choice, dot: &Value) -> Done<Flow> {
        let known = self.variables.len();
        let mut flow = None;
        for (pipe, body) in &choice.arms {
            let value = self.pipeline(pipe, dot)?;
            if value.truth() {
                flow = Some(self.nodes(body, if choice.with { &value } else { dot })?);
                break;
            }
        }
        let flow = match flow {
            Some(flow) => flow,
            None => self.nodes(&choice.otherwise, dot)?,
        };
        self.variables.truncate(known);
        Ok(flow)
    }

    fn range(&mut self, range: &'a Range, dot: &Value) -> Done<Flow> {
        let known = self.variables.len();
        let value = self.pipeline(&range.pipe, dot)?;
        let ran = match &value {
            Value::Int(count) | Value::Int64(count) | Value::Named(_, count, _) => {
                self.count(range, &value, *count)?
            }
            Value::Uint64(count) => self.count(range, &value, i64::try_from(*count).unwrap_or(i64::MAX))?,
            Value::Byte(count) => self.count(range, &value, i64::from(*count))?,
            Value::List(list) => {
                for (at, item) in list.items.iter().enumerate() {
                    let index = Value::Int(i64::try_from(at).unwrap_or(i64::MAX));
                    if !self.iteration(range, index, item.clone())? {
                        break;
                    }
                }
                !list.items.is_empty()
            }
            Value::Dict(dict) => {
                let entries = dict.snapshot();
                self.meter.items(entries.len())?;
                let some = !entries.is_empty();
                for (key, item) in entries {
                    if !self.iteration(range, Value::Text(key), item)? {
                        break;
                    }
                }
                some
            }
            Value::Missing | Value::Nil => false,
            _ => {
                let shown = print::plain(self.meter, &value)?;
                return fail(format!(
                    "range can't iterate over {}",
                    String::from_utf8_lossy(&shown)
                ));
            }
        };
        let mut flow = Flow::Next;
        if !ran {
            flow = self.nodes(&range.otherwise, dot)?;
        }
        self.variables.truncate(known);
        Ok(flow)
    }

    /// `range` over a number; whether there was anything.
    fn count(&mut self, range: &'a Range, value: &Value, count: i64) -> Done<bool> {
        if range.pipe.variables.len() > 1 {
            return fail(format!(
                "can't use {count} to iterate over more than one variable"
            ));
        }
        for at in 0..count {
            let item = match value {
                Value::Int64(_) => Value::Int64(at),
                Value::Uint64(_) => Value::Uint64(at.unsigned_abs()),
                Value::Byte(_) => Value::Byte(u8::try_from(at).unwrap_or(u8::MAX)),
                Value::Named(name, ..) => Value::Named(name, at, methods::month(at)),
                _ => Value::Int(at),
            };
            if !self.iteration(range, Value::Missing, item)? {
                break;
            }
        }
        Ok(count > 0)
    }

    /// Renders the body for one element; whether the next one is wanted.
    fn iteration(&mut self, range: &'a Range, index: Value, item: Value) -> Done<bool> {
        self.meter.step(1)?;
        let names = &range.pipe.variables;
        match (names.as_slice(), range.pipe.assigns) {
            ([], _) => {}
            ([one], true) => self.assign(one, item.clone())?,
            ([first, second], true) => {
                self.assign(first, index)?;
                self.assign(second, item.clone())?;
            }
            (names, _) => {
                let top = self.variables.len();
                for (from_top, value) in [item.clone(), index].into_iter().enumerate().take(names.len()) {
                    if let Some(slot) = top
                        .checked_sub(from_top + 1)
                        .and_then(|at| self.variables.get_mut(at))
                    {
                        slot.1 = value;
                    }
                }
            }
        }
        let known = self.variables.len();
        let flow = self.nodes(&range.body, &item)?;
        self.variables.truncate(known);
        Ok(flow != Flow::Break)
    }

    fn call(&mut self, at: usize, name: &[u8], pipe: Option<&'a Pipe>, dot: &Value) -> Done<()> {
        self.at = at;
        let Some(nodes) = self.set.get(name) else {
            let name = String::from_utf8_lossy(name).into_owned();
            return fail(format!("template {name:?} not defined"));
        };
        let dot = match pipe {
            Some(pipe) => self.pipeline(pipe, dot)?,
            None => Value::Missing,
        };
        let outer = std::mem::replace(&mut self.variables, vec![("$".to_owned(), dot.clone())]);
        self.nodes(nodes, &dot)?;
        self.variables = outer;
        Ok(())
    }

    fn assign(&mut self, name: &str, value: Value) -> Done<()> {
        match self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            Some(slot) => {
                slot.1 = value;
                Ok(())
            }
            None => fail(format!("undefined variable: {name}")),
        }
    }

    fn pipeline(&mut self, pipe: &'a Pipe, dot: &Value) -> Done<Value> {
        self.at = pipe.at;
        let mut last = None;
        for command in &pipe.commands {
            let value = self.command(command, dot, last.take())?;
            last = Some(match value {
                Value::Nil => Value::Missing,
                other => other,
            });
        }
        let value = last.unwrap_or(Value::Missing);
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(name, value.clone())?;
            } else {
                self.variables.push((name.clone(), value.clone()));
            }
        }
        Ok(value)
    }

    /// One command; `last` is the value of the one before.
    fn command(&mut self, command: &'a Command, dot: &Value, last: Option<Value>) -> Done<Value> {
        self.meter.step(1)?;
        let Some((first, arguments)) = command.terms.split_first() else {
            return Ok(Value::Missing);
        };
        match &first.operand {
            Operand::Field(_) | Operand::Chain(..) | Operand::Function(_) => {
                return self.evaluate(first, arguments, dot, last);
            }
            Operand::Variable(_, fields) if !fields.is_empty() => {
                return self.evaluate(first, arguments, dot, last);
            }
            _ => {}
        }
        if !arguments.is_empty() || last.is_some() {
            self.at = first.at;
            return fail("can't give argument to non-function");
        }
        match &first.operand {
            Operand::Nil => fail("nil is not a command"),
            _ => self.evaluate(first, &[], dot, None),
        }
    }

    /// Evaluates a term, with arguments if it is called.
    fn evaluate(
        &mut self,
        term: &'a Term,
        arguments: &'a [Term],
        dot: &Value,
        last: Option<Value>,
    ) -> Done<Value> {
        self.at = term.at;
        match &term.operand {
            Operand::Dot => Ok(dot.clone()),
            Operand::Nil => fail("nil is not a value"),
            Operand::Bool(value) => Ok(Value::Bool(*value)),
            Operand::Text(text) => Ok(Value::Text(text.clone())),
            Operand::Number(number) => constant(number),
            Operand::Pipe(pipe) => self.pipeline(pipe, dot),
            Operand::Function(name) => self.function(name, arguments, dot, last),
            Operand::Field(fields) => self.fields(dot.clone(), fields, term, arguments, dot, last),
            Operand::Variable(name, fields) => {
                let found = self.variables.iter().rev().find(|(known, _)| known == name);
                let Some((_, value)) = found else {
                    return fail(format!("undefined variable: {name}"));
                };
                let value = value.clone();
                self.fields(value, fields, term, arguments, dot, last)
            }
            Operand::Chain(inner, fields) => {
                if matches!(inner.operand, Operand::Nil) {
                    return fail("indirection through explicit nil");
                }
                let value = self.evaluate(inner, &[], dot, None)?;
                self.fields(value, fields, term, arguments, dot, last)
            }
        }
    }

    /// Field after field; the last one takes the arguments.
    fn fields(
        &mut self,
        mut value: Value,
        fields: &'a [String],
        term: &'a Term,
        arguments: &'a [Term],
        dot: &Value,
        last: Option<Value>,
    ) -> Done<Value> {
        self.at = term.at;
        let Some((end, before)) = fields.split_last() else {
            return Ok(value);
        };
        for name in before {
            value = self.field(&value, name, &[], dot, None)?;
        }
        self.field(&value, end, arguments, dot, last)
    }

    fn field(
        &mut self,
        value: &Value,
        name: &str,
        arguments: &'a [Term],
        dot: &Value,
        last: Option<Value>,
    ) -> Done<Value> {
        self.meter.step(1)?;
        match value {
            Value::Missing => return Ok(Value::Missing),
            Value::Nil => return fail(format!("nil pointer evaluating interface {{}}.{name}")),
            _ => {}
        }
        if let Some(method) = methods::find(value, name) {
            let mut given = vec![value.clone()];
            given.extend(self.arguments(name, &method, arguments, dot, last)?);
            return self.run(name, &method, &given);
        }
        let Value::Dict(dict) = value else {
            let kind = value.type_name();
            return fail(format!("can't evaluate field {name} in type {kind}"));
        };
        if !arguments.is_empty() || last.is_some() {
            return fail(format!("{name} is not a method but has arguments"));
        }
        Ok(dict.get(name.as_bytes()).unwrap_or(Value::Missing))
    }

    fn function(
        &mut self,
        name: &str,
        arguments: &'a [Term],
        dot: &Value,
        last: Option<Value>,
    ) -> Done<Value> {
        let at = self.at;
        if let Some(refused) = functions::refused(name) {
            return Err(Failure::refused(refused));
        }
        let Some(signature) = functions::find(name) else {
            return fail(format!("{name:?} is not a defined function"));
        };
        if matches!(name, "and" | "or") {
            return self.short_circuit(name, arguments, dot, last);
        }
        let given = self.arguments(name, &signature, arguments, dot, last)?;
        self.at = at;
        self.run(name, &signature, &given)
    }

    fn run(&mut self, name: &str, signature: &Signature, given: &[Value]) -> Done<Value> {
        (signature.body)(self.meter, given).map_err(|mut failure| {
            failure.message = format!("error calling {name}: {}", failure.message);
            failure
        })
    }

    /// `and` and `or` stop at the first argument that decides.
    fn short_circuit(
        &mut self,
        name: &str,
        arguments: &'a [Term],
        dot: &Value,
        last: Option<Value>,
    ) -> Done<Value> {
        if arguments.is_empty() && last.is_none() {
            return fail(format!("wrong number of args for {name}: want at least 1 got 0"));
        }
        let mut value = Value::Missing;
        for argument in arguments {
            value = self.argument(argument, Type::Raw, dot)?;
            if value.truth() == (name == "or") {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    fn arguments(
        &mut self,
        name: &str,
        signature: &Signature,
        arguments: &'a [Term],
        dot: &Value,
        last: Option<Value>,
    ) -> Done<Vec<Value>> {
        let count = arguments.len() + usize::from(last.is_some());
        let wanted = signature.fixed.len();
        if signature.rest.is_some() && count < wanted {
            return fail(format!(
                "wrong number of args for {name}: want at least {wanted} got {count}"
            ));
        }
        if signature.rest.is_none() && count != wanted {
            return fail(format!(
                "wrong number of args for {name}: want {wanted} got {count}"
            ));
        }
        let kind = |at: usize| {
            signature
                .fixed
                .get(at)
                .copied()
                .or(signature.rest)
                .unwrap_or(Type::Any)
        };
        let mut given = Vec::with_capacity(count);
        for (at, argument) in arguments.iter().enumerate() {
            given.push(self.argument(argument, kind(at), dot)?);
        }
        if let Some(last) = last {
            given.push(checked(last, kind(arguments.len()))?);
        }
        Ok(given)
    }

    fn argument(&mut self, term: &'a Term, kind: Type, dot: &Value) -> Done<Value> {
        self.meter.step(1)?;
        self.at = term.at;
        let literal = match (&term.operand, kind) {
            (Operand::Nil, kind) => {
                return match kind.none() {
                    Some(none) => Ok(none),
                    None => fail(format!("cannot assign nil to {}", kind.name())),
                };
            }
            (Operand::Bool(_) | Operand::Text(_) | Operand::Number(_), Type::Any | Type::Raw) => {
                return self.evaluate(term, &[], dot, None);
            }
            (Operand::Bool(value), Type::Bool) => Some(Value::Bool(*value)),
            (Operand::Text(text), Type::Text) => Some(Value::Text(text.clone())),
            (Operand::Number(number), Type::Int) => number.int.map(Value::Int),
            (Operand::Number(number), Type::Float) => number.float.map(Value::Float),
            (Operand::Number(number), Type::Uint32) => {
                number.uint.map(|uint| Value::Uint64(u64::from(uint as u32)))
            }
            (Operand::Bool(_) | Operand::Text(_) | Operand::Number(_), _) => None,
            _ => {
                let value = self.evaluate(term, &[], dot, None)?;
                self.at = term.at;
                return checked(value, kind);
            }
        };
        match literal {
            Some(value) => Ok(value),
            None => fail(format!("expected {}", kind.name())),
        }
    }
}

/// A value as an argument of that type.
fn checked(value: Value, kind: Type) -> Done<Value> {
    if matches!(value, Value::Missing) {
        return match kind.none() {
            Some(none) => Ok(none),
            None => fail(format!("invalid value; expected {}", kind.name())),
        };
    }
    if kind.takes(&value) {
        return Ok(value);
    }
    let found = match value {
        Value::Nil => "interface {}".to_owned(),
        other => other.type_name(),
    };
    fail(format!(
        "wrong type for value; expected {}; got {found}",
        kind.name()
    ))
}

/// The value of a literal number where no type is asked for.
fn constant(number: &Number) -> Done<Value> {
    let text = number.text.as_str();
    if let Some((real, imaginary)) = number.complex {
        return Ok(Value::Complex(real, imaginary));
    }
    let hex =
        text.len() > 2 && (text.starts_with("0x") || text.starts_with("0X")) && !text.contains(['p', 'P']);
    let rune = text.starts_with('\'');
    match (number.float, number.int) {
        (Some(float), _) if !hex && !rune && text.contains(['.', 'e', 'E', 'p', 'P']) => {
            Ok(Value::Float(float))
        }
        (_, Some(int)) => Ok(Value::Int(int)),
        _ => fail(format!("{text} overflows int")),
    }
}

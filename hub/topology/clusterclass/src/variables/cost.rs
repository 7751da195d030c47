//! Owns: what an expression in CEL may name, and an upper bound of how often it goes through a value.
//! Never: evaluates one.

use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue};
use serde_json::Value;

/// The most that all rules of a variable may cost for one value, in visits of an expression's parts. An API server
/// has the same limit for one call, in units of its own.
pub(super) const COST_MAX: u64 = 10_000_000;

/// Names that expressions may use outside of their own loops.
const VARIABLES: &[&str] = &["self", "oldSelf"];

/// The functions of CEL and of Kubernetes that there are, but those whose result has a size that a number says
/// (`lists.range`), and those that only an API server can answer (`authorizer`).
const FUNCTIONS: &[&str] = &[
    "add",
    "asApproximateFloat",
    "asInteger",
    "base64.decode",
    "base64.encode",
    "bytes",
    "charAt",
    "cidr",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "distinct",
    "double",
    "duration",
    "endsWith",
    "family",
    "find",
    "findAll",
    "first",
    "flatten",
    "format",
    "format.byte",
    "format.date",
    "format.datetime",
    "format.dns1035Label",
    "format.dns1035LabelPrefix",
    "format.dns1123Label",
    "format.dns1123LabelPrefix",
    "format.dns1123Subdomain",
    "format.dns1123SubdomainPrefix",
    "format.labelValue",
    "format.named",
    "format.qualifiedName",
    "format.uri",
    "format.uuid",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "hasValue",
    "indexOf",
    "int",
    "ip",
    "ip.isCanonical",
    "isCIDR",
    "isGlobalUnicast",
    "isGreaterThan",
    "isIP",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isQuantity",
    "isSemver",
    "isSorted",
    "isURL",
    "isUnspecified",
    "join",
    "jsonpatch.escapeKey",
    "last",
    "lastIndexOf",
    "lowerAscii",
    "major",
    "masked",
    "matches",
    "math.abs",
    "math.bitAnd",
    "math.bitNot",
    "math.bitOr",
    "math.bitShiftLeft",
    "math.bitShiftRight",
    "math.bitXor",
    "math.ceil",
    "math.floor",
    "math.greatest",
    "math.isFinite",
    "math.isInf",
    "math.isNaN",
    "math.least",
    "math.round",
    "math.sign",
    "math.sqrt",
    "math.trunc",
    "max",
    "min",
    "minor",
    "optional.none",
    "optional.of",
    "or",
    "orValue",
    "patch",
    "prefixLength",
    "quantity",
    "replace",
    "reverse",
    "semver",
    "sets.contains",
    "sets.equivalent",
    "sets.intersects",
    "sign",
    "size",
    "slice",
    "sort",
    "split",
    "startsWith",
    "string",
    "strings.quote",
    "sub",
    "substring",
    "sum",
    "timestamp",
    "trim",
    "uint",
    "upperAscii",
    "url",
    "validate",
    "value",
];

/// Functions whose result may be larger than what they are given, by as much as that is large.
const GROWING: &[&str] = &[
    "base64.encode",
    "format",
    "join",
    "jsonpatch.escapeKey",
    "replace",
    "split",
    "strings.quote",
];

/// Functions that go through what they are given, and how many times its size that may be: in a loop, once for each turn.
const WALKING: &[(&str, u32)] = &[
    ("@in", 1),
    ("_==_", 1),
    ("_!=_", 1),
    ("contains", 1),
    ("distinct", 2),
    ("endsWith", 1),
    ("find", 1),
    ("findAll", 1),
    ("flatten", 1),
    ("indexOf", 1),
    ("isSorted", 1),
    ("lastIndexOf", 1),
    ("lowerAscii", 1),
    ("matches", 1),
    ("max", 1),
    ("min", 1),
    ("reverse", 1),
    ("sets.contains", 2),
    ("sets.equivalent", 2),
    ("sets.intersects", 2),
    ("size", 1),
    ("slice", 1),
    ("sort", 2),
    ("substring", 1),
    ("sum", 1),
    ("trim", 1),
    ("upperAscii", 1),
];

/// Prefixes of function names, before the point.
const LIBRARIES: &[&str] = &[
    "base64",
    "format",
    "ip",
    "jsonpatch",
    "lists",
    "math",
    "optional",
    "sets",
    "strings",
];

/// The cost of one expression: a product of the value's size with itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Parts of the expression.
    parts: u64,
    /// Number of `+` operations, each of which may double its operands.
    sums: u64,
    /// Loops and functions that make more of something, as many as are within or behind one another.
    power: u32,
    /// True if the bytes of texts count, and not their number.
    texts: bool,
    /// True if it names the value before.
    pub(super) compares: bool,
}

/// The cost of an expression; an error names an unknown or unsupported part.
pub(super) fn of(expression: &IdedExpr) -> Result<Cost, String> {
    let mut walk = Walk::default();
    let power = walk.expression(expression)?;
    let mut cost = Cost { power, ..walk.cost };
    if cost.sums > 0 {
        // Texts that are put together are copied each time.
        (cost.texts, cost.power) = (true, power.max(1));
    }
    Ok(cost)
}

/// Returns true if a value can be judged by all of them.
pub(super) fn affordable(costs: &[Cost], value: &Value, old: Option<&Value>) -> bool {
    let sum = costs.iter().fold(0_u64, |sum, cost| {
        let size = |value| size(value, cost.texts);
        let base = (size(value) + old.map_or(0, size) + cost.parts).saturating_mul(cost.sums + 1);
        let times = base.saturating_pow(cost.power);
        sum.saturating_add(times.saturating_mul(cost.parts))
    });
    sum <= COST_MAX
}

/// The values in a value, itself among them; with the bytes of its texts if those count.
fn size(value: &Value, texts: bool) -> u64 {
    1 + match value {
        Value::String(text) if texts => text.len() as u64,
        Value::Array(items) => items.iter().map(|item| size(item, texts)).sum(),
        Value::Object(fields) => {
            let name = |name: &String| if texts { name.len() as u64 } else { 0 };
            fields
                .iter()
                .map(|(key, value)| name(key) + size(value, texts))
                .sum()
        }
        _ => 0,
    }
}

#[derive(Default)]
struct Walk<'e> {
    cost: Cost,
    /// Names of the loops that are gone through now.
    loops: Vec<&'e str>,
}

impl<'e> Walk<'e> {
    /// Goes through an expression; its power.
    fn expression(&mut self, expression: &'e IdedExpr) -> Result<u32, String> {
        self.cost.parts += 1;
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => Ok(0),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.expression(&select.operand),
            Expr::List(list) => self.most(&list.elements),
            Expr::Call(call) => self.call(call),
            Expr::Map(map) => self.entries(map.entries.iter().map(|entry| &entry.expr)),
            Expr::Struct(made) => Err(format!("names the type {}, which there is not", made.type_name)),
            Expr::Comprehension(made) => {
                let range = self.expression(&made.iter_range)?;
                let before = self.loops.len();
                self.loops
                    .extend([made.iter_var.as_str(), made.accu_var.as_str()]);
                self.loops.extend(made.iter_var2.as_deref());
                let mut body = 0;
                for part in [&made.accu_init, &made.loop_cond, &made.loop_step, &made.result] {
                    body = self.expression(part)?.max(body);
                }
                self.loops.truncate(before);
                Ok(1 + range + body)
            }
        }
    }

    fn name(&mut self, name: &str) -> Result<u32, String> {
        self.cost.compares |= name == "oldSelf";
        if self.loops.contains(&name) || VARIABLES.contains(&name) {
            return Ok(0);
        }
        Err(format!(
            "names {name}, and only {} are there",
            VARIABLES.join(" and ")
        ))
    }

    fn most(&mut self, expressions: &'e [IdedExpr]) -> Result<u32, String> {
        let mut most = 0;
        for expression in expressions {
            most = self.expression(expression)?.max(most);
        }
        Ok(most)
    }

    fn entries(&mut self, entries: impl Iterator<Item = &'e EntryExpr>) -> Result<u32, String> {
        let mut most = 0;
        for entry in entries {
            if let EntryExpr::MapEntry(entry) = entry {
                most = self
                    .expression(&entry.key)?
                    .max(self.expression(&entry.value)?)
                    .max(most);
            }
        }
        Ok(most)
    }

    fn call(&mut self, call: &'e CallExpr) -> Result<u32, String> {
        let mut name = call.func_name.clone();
        let mut target = call.target.as_deref();
        if let Some(Expr::Ident(library)) = target.map(|target| &target.expr)
            && LIBRARIES.contains(&library.as_str())
        {
            name = format!("{library}.{name}");
            target = None;
        }
        if is_word(&name) && !FUNCTIONS.contains(&name.as_str()) {
            return Err(format!("names the function {name}, which there is not"));
        }
        if name == "format" && !has_plain_format(target) {
            return Err("formats with what is no text without a precision (%.2f): write the text out".into());
        }
        self.cost.sums += u64::from(name == "_+_");
        let mut power = self.most(&call.args)?;
        if let Some(target) = target {
            power = if GROWING.contains(&name.as_str()) {
                power + self.expression(target)?
            } else {
                power.max(self.expression(target)?)
            };
        }
        if GROWING.contains(&name.as_str()) {
            self.cost.texts = true;
            power += 1;
        }
        let walks = WALKING.iter().find(|(walking, _)| *walking == name);
        if let Some((_, times)) = walks {
            let mut given = call.args.iter().chain(target);
            let compares = name == "_==_" || name == "_!=_";
            let whole = if compares {
                given.all(|one| self.is_whole(one))
            } else {
                given.any(|one| self.is_whole(one))
            };
            if whole {
                self.cost.texts |= is_word(&name);
                power += times;
            }
        }
        Ok(power)
    }

    /// Returns true if the operand can be the whole value, and is not just an element of a loop, whose cost the loop
    /// has counted.
    fn is_whole(&self, expression: &IdedExpr) -> bool {
        match &expression.expr {
            Expr::Ident(name) => !self.loops.contains(&name.as_str()),
            Expr::Select(select) => self.is_whole(&select.operand),
            Expr::Call(call) if call.func_name == "_[_]" => {
                call.args.first().is_some_and(|of| self.is_whole(of))
            }
            Expr::Call(_) | Expr::Comprehension(_) => true,
            _ => false,
        }
    }
}

/// Returns true if it is called by a word, and no operator.
fn is_word(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// Returns true if the receiver of `format` has no widths without a bound.
fn has_plain_format(target: Option<&IdedExpr>) -> bool {
    match target.map(|target| &target.expr) {
        Some(Expr::Literal(LiteralValue::String(text))) => !text.inner().contains("%."),
        _ => false,
    }
}

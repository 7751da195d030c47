//! Owns: which metrics the sources of the programs register, read from their syntax: name, kind, labels and help.
//! Never: runs a program.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use syn::visit::{self, Visit};

/// Directories that register metrics, and the prefixes of the programs that serve them.
const REGISTERED: [(&str, &[&str]); 9] = [
    ("hub/src", &["tributary_hub_"]),
    ("hub/core/src", &["tributary_hub_"]),
    ("hub/topology/controller/src", &["tributary_hub_"]),
    ("shared/api-client/src", &["tributary_hub_", "tributary_agent_"]),
    ("hub/log/src", &["tributary_hub_"]),
    ("agent/src", &["tributary_agent_"]),
    ("agent/engine/src", &["tributary_agent_"]),
    ("shared/src", &["tributary_hub_", "tributary_agent_"]),
    ("shared/api/src", &["tributary_hub_", "tributary_agent_"]),
];

/// The fewest metrics that there are.
const METRICS_MIN: usize = 100;

/// A metric of a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Metric {
    /// The name as it is scraped, without `_bucket` and the like.
    pub name: String,
    /// `counter`, `gauge`, `histogram` or `info`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// The program's description of it.
    pub help: String,
}

/// Every metric that the programs register, by name; an error if one cannot be read.
pub fn metrics(root: &Path) -> anyhow::Result<Vec<Metric>> {
    let mut files = Vec::new();
    for (directory, prefixes) in REGISTERED {
        for path in sources(&root.join(directory))? {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let file = syn::parse_file(&text).with_context(|| path.display().to_string())?;
            files.push((path, prefixes, file));
        }
    }
    let mut known = Known::default();
    for (_, _, file) in &files {
        known.visit_file(file);
    }
    let mut metrics = BTreeSet::new();
    for (path, prefixes, file) in &files {
        let mut own = Known::default();
        own.visit_file(file);
        let mut functions = Functions::default();
        functions.visit_file(file);
        let mut found = Vec::new();
        for function in functions.0 {
            let mut registrations = Registrations::default();
            registrations.visit_block(function);
            found.push(registrations);
        }
        // A collector is described elsewhere than where its registry gets a prefix: a file has one at most.
        let prefix: String = found.iter().map(|one| one.prefix.as_str()).collect();
        for registrations in found {
            for one in &registrations.found {
                let (kind, labels) = kind_and_labels(one.metric, &registrations.lets, [&own, &known])
                    .with_context(|| format!("{}: the kind of {}", path.display(), one.name))?;
                let ending = match kind {
                    "counter" => "_total",
                    "info" => "_info",
                    _ => "",
                };
                let name = format!("{prefix}{}{}{ending}", one.name, one.unit);
                let help = one.help.as_ref();
                let help = help.with_context(|| format!("{}: the help of {}", path.display(), one.name))?;
                metrics.extend(prefixes.iter().map(|prefix| Metric {
                    name: format!("{prefix}{name}"),
                    kind,
                    labels: labels.clone(),
                    help: help.clone(),
                }));
            }
        }
    }
    if metrics.len() < METRICS_MIN {
        bail!(
            "only {} metrics were found: correct how they are read",
            metrics.len()
        );
    }
    Ok(Vec::from_iter(metrics))
}

/// Sources that are no tests.
fn sources(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default();
        if name == "tests" || name == "testing" {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Types by the names of fields and functions, and the fields of structs.
#[derive(Default)]
struct Known<'a> {
    types: BTreeMap<String, Vec<&'a syn::Type>>,
    fields: BTreeMap<String, Vec<String>>,
}

impl<'a> Visit<'a> for Known<'a> {
    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        let mut named = Vec::new();
        for (index, field) in item.fields.iter().enumerate() {
            let name = field
                .ident
                .as_ref()
                .map_or(index.to_string(), ToString::to_string);
            self.types.entry(name.clone()).or_default().push(&field.ty);
            named.push(name.trim_start_matches("r#").to_owned());
        }
        self.fields.insert(item.ident.to_string(), named);
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        if let syn::ReturnType::Type(_, returned) = &signature.output {
            let name = signature.ident.to_string();
            self.types.entry(name).or_default().push(returned);
        }
    }
}

/// The bodies of functions that are no tests.
#[derive(Default)]
struct Functions<'a>(Vec<&'a syn::Block>);

impl<'a> Visit<'a> for Functions<'a> {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_block(&mut self, block: &'a syn::Block) {
        self.0.push(block);
    }
}

/// A call that registers or describes a metric.
struct Registration<'a> {
    name: String,
    /// Absent if it cannot be read here.
    help: Option<String>,
    unit: &'static str,
    /// The metric; absent for a gauge that is made at each scrape.
    metric: Option<&'a syn::Expr>,
}

/// The values to which the names of a function are bound.
type Lets<'a> = BTreeMap<String, &'a syn::Expr>;

/// The registrations of one function.
#[derive(Default)]
struct Registrations<'a> {
    found: Vec<Registration<'a>>,
    lets: Lets<'a>,
    prefix: String,
}

impl<'a> Visit<'a> for Registrations<'a> {
    fn visit_local(&mut self, local: &'a syn::Local) {
        if let (syn::Pat::Ident(bound), Some(init)) = (&local.pat, &local.init) {
            self.lets.insert(bound.ident.to_string(), &init.expr);
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let arguments: Vec<&'a syn::Expr> = call.args.iter().collect();
        match (call.method.to_string().as_str(), &arguments[..]) {
            ("sub_registry_with_prefix", [prefix]) => {
                self.prefix =
                    text(prefix, &self.lets).map_or_else(String::new, |prefix| format!("{prefix}_"));
            }
            ("register", [name, help, metric]) => self.keep(name, help, "", Some(metric)),
            ("register_with_unit", [name, help, unit, metric]) => {
                self.keep(name, help, suffix(unit, &self.lets), Some(metric));
            }
            ("encode_descriptor", [name, help, unit, kind]) => {
                let metric = described(kind, &self.lets);
                self.keep(name, help, suffix(unit, &self.lets), metric);
            }
            _ => {}
        }
        visit::visit_expr_method_call(self, call);
    }
}

impl<'a> Registrations<'a> {
    /// Keeps a registration whose name can be read here; another one is a helper that is given the name.
    fn keep(
        &mut self,
        name: &'a syn::Expr,
        help: &'a syn::Expr,
        unit: &'static str,
        metric: Option<&'a syn::Expr>,
    ) {
        if let Some(name) = text(name, &self.lets) {
            self.found.push(Registration {
                name,
                help: text(help, &self.lets),
                unit,
                metric,
            });
        }
    }
}

/// The field whose type is described, as in `self.members.metric_type()`; `None`: a gauge that is made on the spot.
fn described<'a>(kind: &'a syn::Expr, lets: &Lets<'a>) -> Option<&'a syn::Expr> {
    match resolve(kind, lets) {
        syn::Expr::MethodCall(call) if matches!(&*call.receiver, syn::Expr::Field(_)) => Some(&call.receiver),
        _ => None,
    }
}

/// The suffixes that units add to a name.
fn suffix<'a>(unit: &'a syn::Expr, lets: &Lets<'a>) -> &'static str {
    let mut unit = resolve(unit, lets);
    if let syn::Expr::Call(some) = unit
        && let Some(argument) = some.args.first()
    {
        unit = argument;
    }
    if let syn::Expr::Reference(reference) = unit {
        unit = &reference.expr;
    }
    let syn::Expr::Path(path) = unit else { return "" };
    match path.path.segments.last() {
        Some(last) if last.ident == "Bytes" => "_bytes",
        Some(last) if last.ident == "Seconds" => "_seconds",
        _ => "",
    }
}

/// Follows names to what they are bound to.
fn resolve<'a>(expression: &'a syn::Expr, lets: &Lets<'a>) -> &'a syn::Expr {
    match expression {
        syn::Expr::Path(path) => match path.path.get_ident().and_then(|name| lets.get(&name.to_string())) {
            Some(bound) => bound,
            None => expression,
        },
        _ => expression,
    }
}

fn text<'a>(expression: &'a syn::Expr, lets: &Lets<'a>) -> Option<String> {
    match resolve(expression, lets) {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Str(text),
            ..
        }) => Some(text.value()),
        // Of a text that is put together, what stands before the first value.
        syn::Expr::Macro(made) if made.mac.path.is_ident("format") => {
            let first = made.mac.tokens.clone().into_iter().next()?;
            let whole = syn::parse_str::<syn::LitStr>(&first.to_string()).ok()?.value();
            let before = whole.split('{').next().unwrap_or_default();
            Some(before.trim_end_matches([' ', ':', '(']).to_owned())
        }
        _ => None,
    }
}

/// The kind of a metric and its labels, by the type of what is registered: first as this file knows it, then as all do.
fn kind_and_labels<'a>(
    metric: Option<&'a syn::Expr>,
    lets: &Lets<'a>,
    known: [&Known<'a>; 2],
) -> Option<(&'static str, Vec<String>)> {
    let Some(metric) = metric else {
        return Some(("gauge", Vec::new()));
    };
    let mut expression = resolve(metric, lets);
    while let syn::Expr::MethodCall(call) = expression
        && call.method == "clone"
    {
        expression = resolve(&call.receiver, lets);
    }
    let name = match expression {
        syn::Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(index) => index.index.to_string(),
        },
        syn::Expr::MethodCall(call) => call.method.to_string(),
        syn::Expr::Call(call) => {
            let syn::Expr::Path(path) = &*call.func else {
                return None;
            };
            return Some((kind(&path.path.segments)?, Vec::new()));
        }
        _ => return None,
    };
    let types = known.iter().filter_map(|known| known.types.get(&name)).flatten();
    let (segments, kind) = types
        .filter_map(|one| match one {
            syn::Type::Path(path) => Some(&path.path.segments),
            _ => None,
        })
        .find_map(|segments| Some((segments, kind(segments)?)))?;
    let segment = segments.last()?;
    let labels = match arguments(segment).first() {
        Some(syn::Type::Path(labels)) if segment.ident == "Family" => {
            let name = labels.path.segments.last()?.ident.to_string();
            known
                .iter()
                .find_map(|known| known.fields.get(&name))
                .cloned()
                .unwrap_or_default()
        }
        _ => Vec::new(),
    };
    Some((kind, labels))
}

/// The types that a generic one is made of.
fn arguments(segment: &syn::PathSegment) -> Vec<&syn::Type> {
    let syn::PathArguments::AngleBracketed(generic) = &segment.arguments else {
        return Vec::new();
    };
    let types = generic.args.iter().filter_map(|argument| match argument {
        syn::GenericArgument::Type(one) => Some(one),
        _ => None,
    });
    types.collect()
}

fn kind(segments: &syn::punctuated::Punctuated<syn::PathSegment, syn::Token![::]>) -> Option<&'static str> {
    for segment in segments {
        match segment.ident.to_string().as_str() {
            "Counter" => return Some("counter"),
            "Gauge" => return Some("gauge"),
            "Histogram" => return Some("histogram"),
            "Info" => return Some("info"),
            "Family" => {
                let of_arguments = |one: &syn::Type| match one {
                    syn::Type::Path(path) => kind(&path.path.segments),
                    _ => None,
                };
                return arguments(segment).into_iter().find_map(of_arguments);
            }
            _ => {}
        }
    }
    None
}

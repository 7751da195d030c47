//! Owns: the tree of a parsed template.

use std::{collections::BTreeMap, sync::Arc};

/// All templates of one text by name; [`ROOT`] is the text itself.
pub(crate) type Set = BTreeMap<Vec<u8>, Arc<Vec<Node>>>;

/// The name of the text itself, as upstream calls it.
pub(crate) const ROOT: &[u8] = b"tpl";

/// One part of a template.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// Text as it is.
    Text(Arc<[u8]>),
    /// A pipeline, printed unless it declares something.
    Action(Pipe),
    /// `if`, `with`, and what else is tried.
    Choice(Choice),
    /// `range`.
    Range(Range),
    /// `template` and `block`.
    Call {
        /// Position in bytes.
        at: usize,
        /// Name of the template.
        name: Vec<u8>,
        /// Its dot.
        pipe: Option<Pipe>,
    },
    /// `break`.
    Break,
    /// `continue`.
    Continue,
}

/// `if … else if … else`, or the same with `with`.
#[derive(Debug, Clone)]
pub(crate) struct Choice {
    /// True if the value becomes `.`.
    pub(crate) with: bool,
    /// Conditions in order, each with what is rendered if it holds.
    pub(crate) arms: Vec<(Pipe, Vec<Node>)>,
    /// Rendered if no condition holds.
    pub(crate) otherwise: Vec<Node>,
}

/// `range`.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    /// The value to iterate over.
    pub(crate) pipe: Pipe,
    /// Rendered for each element.
    pub(crate) body: Vec<Node>,
    /// Rendered if there is no element.
    pub(crate) otherwise: Vec<Node>,
}

/// Commands, each with the result of the one before as its last argument.
#[derive(Debug, Clone)]
pub(crate) struct Pipe {
    /// Position in bytes.
    pub(crate) at: usize,
    /// Variables that it declares or sets.
    pub(crate) variables: Vec<String>,
    /// True if they exist already.
    pub(crate) assigns: bool,
    /// At least one.
    pub(crate) commands: Vec<Command>,
}

/// A function or a value, and arguments.
#[derive(Debug, Clone)]
pub(crate) struct Command {
    /// At least one: the first is called or taken.
    pub(crate) terms: Vec<Term>,
}

/// One operand.
#[derive(Debug, Clone)]
pub(crate) struct Term {
    /// Position in bytes.
    pub(crate) at: usize,
    /// The operand.
    pub(crate) operand: Operand,
}

/// An operand.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    /// `.`
    Dot,
    /// `nil`
    Nil,
    /// `true` or `false`
    Bool(bool),
    /// A literal number.
    Number(Number),
    /// A literal string.
    Text(Arc<[u8]>),
    /// `.a.b`
    Field(Vec<String>),
    /// `$x.a.b`
    Variable(String, Vec<String>),
    /// A function by name, which exists.
    Function(String),
    /// In parentheses.
    Pipe(Box<Pipe>),
    /// `(…).a.b`
    Chain(Box<Term>, Vec<String>),
}

/// A literal number with everything that it may stand for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Number {
    /// As it is written.
    pub(crate) text: String,
    /// As `int`.
    pub(crate) int: Option<i64>,
    /// As `uint`.
    pub(crate) uint: Option<u64>,
    /// As `float64`.
    pub(crate) float: Option<f64>,
    /// As `complex128`.
    pub(crate) complex: Option<(f64, f64)>,
}

/// Returns true if it renders nothing: such a definition does not replace another one.
pub(crate) fn is_blank(nodes: &[Node]) -> bool {
    nodes.iter().all(|node| match node {
        Node::Text(text) => std::str::from_utf8(text).is_ok_and(|text| text.trim().is_empty()),
        _ => false,
    })
}

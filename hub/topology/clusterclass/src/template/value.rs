//! Owns: the values of a template and their Go types: what variables decode to, what functions return.
//! Never: walks a value deeper than [`super::limits::MAX_NESTING`].

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, sync::Arc};

use super::{
    limits::{Failure, nested},
    moment::Moment,
    version::Version,
};

/// A Go string: bytes, UTF-8 or not.
pub(crate) type Text = Arc<[u8]>;

/// A value, or none.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// No value at all: what a missing key gives. Printed `<no value>`.
    Missing,
    /// An explicit null.
    Nil,
    /// `bool`.
    Bool(bool),
    /// `int`.
    Int(i64),
    /// `int64`.
    Int64(i64),
    /// `uint64`.
    Uint64(u64),
    /// `uint8`: an element of a string.
    Byte(u8),
    /// `float64`: every number of the variables.
    Float(f64),
    /// `complex128`, from a literal.
    Complex(f64, f64),
    /// `string`.
    Text(Text),
    /// A slice.
    List(List),
    /// A map by string.
    Dict(Dict),
    /// `*semver.Version`.
    Version(Rc<Version>),
    /// `semver.Version`.
    Release(Rc<Version>),
    /// `time.Time`.
    Time(Moment),
    /// `time.Month` and `time.Weekday`, with the name of the type.
    Named(&'static str, i64, &'static str),
}

/// The elements of a slice or a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    /// `interface {}`.
    Any,
    /// `string`.
    Text,
    /// `int`.
    Int,
    /// `[]interface {}`.
    List,
}

impl Element {
    fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Text => "string",
            Self::Int => "int",
            Self::List => "[]interface {}",
        }
    }
}

/// A slice; no function of a template changes one.
#[derive(Debug, Clone)]
pub(crate) struct List {
    /// The elements.
    pub(crate) items: Rc<Vec<Value>>,
    /// Their type.
    pub(crate) element: Element,
    /// True if it is Go's nil slice.
    pub(crate) nil: bool,
    depth: usize,
}

impl List {
    /// A slice of values of one type; an error if it would be nested too deep.
    pub(crate) fn new(items: Vec<Value>, element: Element) -> Result<Self, Failure> {
        let depth = items.iter().map(Value::depth).max().unwrap_or(0) + 1;
        nested(depth)?;
        Ok(Self {
            items: Rc::new(items),
            element,
            nil: false,
            depth,
        })
    }

    /// A nil slice.
    pub(crate) fn nil(element: Element) -> Self {
        Self {
            items: Rc::default(),
            element,
            nil: true,
            depth: 1,
        }
    }
}

/// The entries of a map, shared by all that hold it: `set` changes it for everybody.
pub(crate) type Entries = Rc<RefCell<BTreeMap<Text, Value>>>;

/// A map.
#[derive(Debug, Clone)]
pub(crate) struct Dict {
    /// The entries.
    pub(crate) entries: Entries,
    /// Their type.
    pub(crate) element: Element,
    /// True if it is Go's nil map.
    pub(crate) nil: bool,
}

impl Dict {
    /// Go's nil map.
    pub(crate) fn nil() -> Self {
        Self {
            entries: Entries::default(),
            element: Element::Any,
            nil: true,
        }
    }

    /// A copy of the entries.
    pub(crate) fn snapshot(&self) -> BTreeMap<Text, Value> {
        self.entries.borrow().clone()
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Value> {
        self.entries.borrow().get(key).cloned()
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
    }
}

impl Value {
    /// A string.
    pub(crate) fn text(bytes: impl AsRef<[u8]>) -> Self {
        Self::Text(Arc::from(bytes.as_ref()))
    }

    /// Depth of nested lists. A map counts once, since its content changes.
    fn depth(&self) -> usize {
        match self {
            Self::List(list) => list.depth,
            _ => 0,
        }
    }

    /// Null and missing alike are none, as behind Go's interfaces.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::Missing | Self::Nil)
    }

    /// Returns true if `if` takes it.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Missing | Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) | Self::Int64(value) | Self::Named(_, value, _) => *value != 0,
            Self::Uint64(value) => *value != 0,
            Self::Byte(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Dict(dict) => dict.len() != 0,
            Self::Version(_) | Self::Release(_) | Self::Time(_) => true,
        }
    }

    /// The name of the Go type, as `%T` writes it.
    pub(crate) fn type_name(&self) -> String {
        match self {
            Self::Missing | Self::Nil => "<nil>".to_owned(),
            Self::List(list) => format!("[]{}", list.element.name()),
            Self::Dict(dict) => format!("map[string]{}", dict.element.name()),
            Self::Version(_) => "*semver.Version".to_owned(),
            Self::Release(_) => "semver.Version".to_owned(),
            Self::Time(_) => "time.Time".to_owned(),
            Self::Named(name, _, _) => (*name).to_owned(),
            other => other.kind().to_owned(),
        }
    }

    /// The name of the Go kind.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Missing | Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Named(..) => "int",
            Self::Int64(_) => "int64",
            Self::Uint64(_) => "uint64",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::Text(_) => "string",
            Self::List(_) => "slice",
            Self::Dict(_) => "map",
            Self::Version(_) => "ptr",
            Self::Release(_) | Self::Time(_) => "struct",
        }
    }

    /// The result of its `String` method, for the types that have one.
    pub(crate) fn stringer(&self) -> Option<String> {
        match self {
            Self::Version(version) | Self::Release(version) => Some(version.to_string()),
            Self::Time(time) => Some(time.to_string()),
            Self::Named(_, _, name) => Some((*name).to_owned()),
            _ => None,
        }
    }
}

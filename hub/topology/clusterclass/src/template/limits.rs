//! Owns: the limits of one template: steps, bytes, nesting, and the messages about them.
//! Never: a clock; a limit is a count, so that the same template ends at the same place everywhere.

/// Longest template text, bytes. A class of 1 MB may consist of one.
pub const MAX_SOURCE: usize = 1 << 20;
/// Deepest nesting of blocks and parentheses while a template is parsed.
pub const MAX_PARSE_DEPTH: usize = 100;
/// Deepest nesting of blocks, parentheses and template calls while one is rendered.
pub const MAX_DEPTH: usize = 200;
/// Nodes walked, commands run, elements compared and blocks of bytes read.
pub const MAX_STEPS: u64 = 1_000_000;
/// Longest rendered text, bytes: no object that an API server takes is longer.
pub const MAX_OUTPUT: usize = 1 << 20;
/// Longest text that a function may return, bytes.
pub const MAX_TEXT: usize = 1 << 20;
/// Longest list that a function may return.
pub const MAX_ITEMS: usize = 100_000;
/// Deepest nesting of lists and maps in one value.
pub const MAX_NESTING: usize = 128;
/// Bytes of all texts and lists that functions returned, together.
pub const MAX_BYTES: usize = 64 << 20;
/// Why a template could not be rendered, without the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One line, as upstream's engine would say it where it has such an error.
    pub(crate) message: String,
    /// The function that a class may not use, when that is the reason.
    pub(crate) refused: Option<&'static str>,
}

impl Failure {
    /// A failure of the template itself.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            refused: None,
        }
    }

    /// A function was reached that gives another result each time.
    pub(crate) fn refused(name: &'static str) -> Self {
        Self {
            message: format!("function {name:?} is refused: it does not give the same result twice"),
            refused: Some(name),
        }
    }
}

/// Refuses what is nested deeper than one value may be.
pub(crate) fn nested(depth: usize) -> Result<(), Failure> {
    if depth > MAX_NESTING {
        return Err(Failure::new(format!(
            "a value is nested deeper than {MAX_NESTING} levels"
        )));
    }
    Ok(())
}

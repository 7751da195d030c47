//! Sentences about many things, one by one and up to a bound. Pure.

/// Most exports, imports, members or patterns that are named one by one; the others are counted.
const NAMED_MAX: usize = 20;

/// Effects of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Effects {
    /// If it leads to an event.
    pub(super) expected: Vec<String>,
    /// If there is nothing to do, where that can be.
    pub(super) nothing: Option<String>,
}

/// A sentence for each, up to a bound.
pub(super) fn named<T>(all: &[T], sentence: impl Fn(&T) -> String) -> Vec<String> {
    let mut sentences: Vec<String> = all.iter().take(NAMED_MAX).map(&sentence).collect();
    if let Some(more @ 1..) = all.len().checked_sub(NAMED_MAX) {
        sentences.push(format!("and so for {more} more"));
    }
    sentences
}

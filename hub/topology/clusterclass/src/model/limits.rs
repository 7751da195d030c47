//! Owns: the bounds of what is read as classes and clusters. A value over a limit is a finding with its place, and the
//! rest is read.

/// Largest text of one document, bytes: what an API server stores, with room for what it adds.
pub const MAX_DOCUMENT: usize = 512 << 10;
/// Most documents of one file.
pub const MAX_DOCUMENTS: usize = 10_000;
/// Deepest nesting of one document, levels.
pub const MAX_DEPTH: usize = 64;
/// Most values of one document, after its aliases were followed.
pub const MAX_VALUES: usize = 200_000;
/// Most variables of a class, or of one list of a cluster.
pub const MAX_VARIABLES: usize = 1_000;
/// Most patches of a class.
pub const MAX_PATCHES: usize = 1_000;
/// Most classes of workers of a class, and workers of a cluster.
pub const MAX_WORKERS: usize = 2_000;
/// Most findings of one object.
pub const MAX_FINDINGS: usize = 100;
/// Longest field or message of a finding that is shown, characters.
pub const MAX_SHOWN: usize = 400;

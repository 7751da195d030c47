//! Owns: how much the patches of one class may be and take.
//! Never: a clock; a limit is a count, so that the same class ends at the same place everywhere.

/// Most patches of a class, as its definition in the API has it.
pub const MAX_PATCHES: usize = 1000;
/// Most definitions of a patch, operations of a definition and names of a selector, as the API has it.
pub const MAX_ITEMS: usize = 100;
/// Most operations of a class, over all patches.
pub const MAX_OPERATIONS: usize = 20_000;
/// Longest path of an operation, bytes, as the API has it. It bounds how deep a template can become, too.
pub const MAX_PATH: usize = 512;
/// Largest value of one operation, bytes of JSON.
pub const MAX_VALUE: usize = 1 << 20;
/// Largest values of one definition, together, bytes of JSON.
pub const MAX_VALUES: usize = 4 << 20;
/// Largest template that may come of patches, bytes of JSON: no API server keeps a larger object.
pub const MAX_RESULT: usize = 3 << 19;
/// Most templates of one cluster.
pub const MAX_TARGETS: usize = 4096;
/// Longest work of a class's patches for one cluster: steps of templates, operations, and a step for each
/// [`BYTES_PER_STEP`] bytes read or copied.
pub const MAX_WORK: u64 = 20_000_000;
/// Bytes for one step of [`MAX_WORK`].
pub const BYTES_PER_STEP: usize = 64;
/// Most findings that are reported one by one.
pub const MAX_FINDINGS: usize = 1000;
/// Longest foreign text that a finding repeats, characters.
pub const MAX_SHOWN: usize = 200;

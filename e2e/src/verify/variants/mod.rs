//! Many wrong variants of the product in one build: an environment variable chooses which one a process is.
//!
//! * `edit.rs`: a piece of a file that becomes another; `lines.rs`: as people write it. `functions.rs`: where a file's functions begin and end.
//! * `weave.rs`: each function that an edit changes becomes a choice between copies of its body.
//! * `plan.rs`: all files of a build, and which variants did not fit into it.
//! * `copy.rs`: the copy of the working tree that is built. `build.rs`: building it, without what does not compile.
//! * `program.rs`: running what was built as one variant. `record.rs`: results on disk, so that a run can go on.
//!
//! The choice exists in the copy only; the product knows nothing of it, and the working tree is never changed.

pub(crate) mod build;
pub(crate) mod copy;
pub(crate) mod edit;
mod functions;
pub(crate) mod lines;
pub(crate) mod plan;
pub(super) mod program;
pub(super) mod record;
mod weave;

use std::path::{Path, PathBuf};

/// The environment variable that chooses.
pub(crate) use crate::clusterset::child::VARIANT_VARIABLE as VARIABLE;

/// The number of a variant, from one on.
pub(crate) type Number = u32;
/// The product as it is.
pub(crate) const UNCHANGED: Number = 0;

/// The root of the workspace.
pub(crate) fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

//! Many wrong variants of the product in one build: an environment variable chooses which one a process is.
//!
//! * `edit.rs`: a piece of a file that becomes another; `lines.rs`: as people write it. `functions.rs`: where a file's functions begin and end.
//! * `weave.rs`: each function that an edit changes becomes a choice between copies of its body.
//! * `plan.rs`: all files of a build, and which variants did not fit into it.
//! * `copy.rs`: the copy of the working tree that is built. `build.rs`: building it, without what does not compile.
//! * `program.rs`: running what was built as one variant. `record.rs`: results on disk, so that a run can go on.
//!
//! * [`planted`]: bugs that the rings of tests must see. [`mutants`]: every small change of the pure rooms, which unit tests must see.
//!
//! The choice exists in the copy only; the product knows nothing of it, and the working tree is never changed.

pub mod build;
pub mod copy;
pub mod edit;
mod functions;
pub mod lines;
pub mod mutants;
pub mod plan;
pub mod planted;
pub mod program;
pub mod record;
mod weave;

use std::path::{Path, PathBuf};

/// Tells a process which variant it is; absent or 0: the product as it is.
pub const VARIABLE: &str = "TRIBUTARY_VARIANT";

/// The number of a variant, from one on.
pub type Number = u32;
/// The product as it is.
pub const UNCHANGED: Number = 0;

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap_or(root)
}

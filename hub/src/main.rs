//! `tributary-hub`. Everything is in the library.

use std::process::ExitCode;

/// A hub is mostly small allocations: keys, facts, messages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    hub::program::run()
}

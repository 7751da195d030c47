//! `tributary-agent`. Everything is in the library.

use std::process::ExitCode;

/// An agent is mostly small allocations: JSON, keys, messages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    agent::program::run()
}

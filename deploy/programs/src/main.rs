//! `tributary`: hub and agent in one file, as images and archives have them, so that what both are made of is there
//! once. Which of them it is says the name that it is called by, `tributary-hub` or `tributary-agent`, a link to it.
//!
//! Owns: the choice between them.
//! Never: does anything else, or has flags of its own.

use std::{ffi::OsStr, path::Path, process::ExitCode};

/// Both are mostly small allocations: keys, facts, messages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A program, to be run with the arguments of this process.
type Program = fn() -> ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().next().as_deref().and_then(called) {
        Some(program) => program(),
        None => {
            eprintln!(
                "this is tributary-hub and tributary-agent: run it by one of these names, which are links to it"
            );
            ExitCode::from(2)
        }
    }
}

/// The program of the name that something is called by.
fn called(path: &OsStr) -> Option<Program> {
    match Path::new(path).file_name()?.to_str()? {
        "tributary-hub" => Some(hub::program::run),
        "tributary-agent" => Some(agent::program::run),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_which_program_it_is() {
        let named = |path: &str| called(OsStr::new(path));
        assert!(
            named("tributary-hub")
                .is_some_and(|program| std::ptr::fn_addr_eq(program, hub::program::run as Program))
        );
        let agent = named("/usr/local/bin/tributary-agent");
        assert!(agent.is_some_and(|program| std::ptr::fn_addr_eq(program, agent::program::run as Program)));
        for other in ["tributary", "/usr/local/bin/tributary", "tributary-hub/", "", "/"] {
            assert_eq!(named(other).is_some(), other == "tributary-hub/", "{other}");
        }
    }
}

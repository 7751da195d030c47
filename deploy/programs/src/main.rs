//! Hub, agent, client and `clusterclass` in one file, as images and archives have them, so that what they share is there once. The name
//! that the file is called by, a link to it, chooses the program.
//!
//! Owns: the choice between them.
//! Never: does anything else, or has flags of its own.

use std::{ffi::OsStr, path::Path, process::ExitCode};

/// All of them make mostly small allocations: keys, facts, messages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A program, to be run with the arguments of this process.
type Program = fn() -> ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().next().as_deref().and_then(called) {
        Some(program) => program(),
        None => {
            eprintln!(
                "this is tributary-hub, tributary-agent, tributary and clusterclass: run it by one of these names, which are links to it"
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
        "tributary" | "kubectl-tributary" => Some(cli::program::run),
        "clusterclass" => Some(clusterclass_program::run),
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
        for client in ["tributary", "/usr/local/bin/kubectl-tributary"] {
            let program = named(client);
            assert!(
                program.is_some_and(|program| std::ptr::fn_addr_eq(program, cli::program::run as Program))
            );
        }
        let previews = named("clusterclass");
        assert!(
            previews
                .is_some_and(|program| std::ptr::fn_addr_eq(program, clusterclass_program::run as Program))
        );
        for other in [
            "tributary-programs",
            "/usr/local/bin/tributary-programs",
            "tributary-hub/",
            "",
            "/",
        ] {
            assert_eq!(named(other).is_some(), other == "tributary-hub/", "{other}");
        }
    }
}

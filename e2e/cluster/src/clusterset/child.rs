//! The programs as children of a test or the demo: the same binary again, told by its environment to be the hub, an
//! agent or the client. So a scenario runs the real programs, which can be killed, and needs nothing but this binary.

use std::{
    env,
    io::Read,
    process::{self, ExitCode},
    thread,
};

use clap::Parser;

/// Tells this binary to be a program.
pub const ROLE_VARIABLE: &str = "TRIBUTARY_E2E_ROLE";

/// The program of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `tributary-hub`.
    Hub,
    /// `tributary-agent`.
    Agent,
    /// `tributary`.
    Client,
}

impl Role {
    /// As it stands in the environment.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hub => "hub",
            Self::Agent => "agent",
            Self::Client => "client",
        }
    }
}

/// Call this first in `main`: when this process is such a child, it runs the program and says how it ended.
pub fn run_if_child() -> Option<ExitCode> {
    let role = env::var(ROLE_VARIABLE).ok()?;
    end_with_parent();
    let code = match role.as_str() {
        "hub" => {
            let hub::args::Cli { log, command } = hub::args::Cli::parse();
            match command {
                hub::args::Command::Serve(args) => shared::process::exit_code(hub::run::serve(&log, *args)),
                hub::args::Command::Log(args) => {
                    shared::process::exit_code(hub::maintain::command::run(args))
                }
                hub::args::Command::Doctor(args) => hub::doctor::run(&log, &args),
                _ => ExitCode::from(2),
            }
        }
        "agent" => {
            let agent::args::Cli { log, command } = agent::args::Cli::parse();
            match command {
                agent::args::Command::Run(args) => shared::process::exit_code(agent::run::run(&log, *args)),
                agent::args::Command::Leave(args) => {
                    shared::process::exit_code(agent::leave::run(&log, &args))
                }
                agent::args::Command::Doctor(args) => agent::doctor::run(&log, &args),
                _ => ExitCode::from(2),
            }
        }
        "client" => cli::program::run(),
        _ => ExitCode::from(2),
    };
    Some(code)
}

/// A child must not outlive whoever started it: its standard input closes when the parent is gone.
fn end_with_parent() {
    thread::spawn(|| {
        let mut rest = Vec::new();
        // An error means the same as the end.
        let _ = std::io::stdin().read_to_end(&mut rest);
        process::abort();
    });
}

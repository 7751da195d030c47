//! The program `tributary`: its command line in, its exit code out.

use std::process::ExitCode;

use clap::Parser;

use crate::{
    command::{Cli, Command},
    setup,
};

/// Runs the command that the arguments of this process name; returns 0 on success and 1 on failure, whose reason is the
/// last line on standard error. Wrong arguments end the process with 2.
pub fn run() -> ExitCode {
    let Cli { command } = Cli::parse();
    shared::process::exit_code(match command {
        Command::Setup(command) => block_on(setup::run(command)),
    })
}

/// Runs a command on a runtime of its own and prints its result.
fn block_on(command: impl Future<Output = anyhow::Result<String>>) -> anyhow::Result<()> {
    shared::tls::install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    print!("{}", runtime.block_on(command)?);
    Ok(())
}

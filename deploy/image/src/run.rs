//! Owns: running a program to its end.
//! Never: hides what it said when it failed.

use std::{
    env,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, bail};

/// The cargo that built this program, in a checkout.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    cargo
}

/// Runs a program whose words the person sees.
pub(crate) fn shown(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !status.success() {
        bail!("{} failed: {status}", command.get_program().display());
    }
    Ok(())
}

/// Returns a program's output, without the space around it.
pub(crate) fn printed(command: &mut Command) -> anyhow::Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {}", command.get_program().display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} failed: {}", command.get_program().display(), said.trim());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

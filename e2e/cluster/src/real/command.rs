//! Owns: running a program to its end, for what it prints.
//! Never: runs one that stays.

use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The program's output; if it fails, the error has all of it.
pub fn printed(command: &mut Command) -> anyhow::Result<String> {
    let program = command.get_program().to_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        let said = [output.stderr, output.stdout].concat();
        bail!("{}", String::from_utf8_lossy(&said).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{} prints no text", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_is_returned_and_of_one_that_fails_it_is_the_error() {
        let shell = |script: &str| printed(Command::new("/bin/sh").args(["-c", script]));
        assert_eq!(shell("echo done; echo more >&2").expect("it ends well"), "done\n");
        let error = shell("echo out; echo err >&2; exit 3").expect_err("it fails");
        assert_eq!(error.to_string(), "err\nout");
        let absent = printed(&mut Command::new("/absent/program")).expect_err("there is none");
        assert_eq!(absent.to_string(), "cannot run /absent/program");
    }
}

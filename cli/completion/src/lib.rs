//! Completions of shells and manual pages, made from a command line's own description: for every program with commands that
//! people type. It knows no program.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_complete::Shell;

/// A shell.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// Shell that reads the completions
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// A directory.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory of the pages; made if missing
    #[arg(long, env = "TRIBUTARY_OUT", value_name = "DIR")]
    out: PathBuf,
}

/// Returns the completions.
///
/// # Errors
///
/// The script is no UTF-8, which none is.
pub fn completion(args: &CompletionArgs, mut program: Command) -> anyhow::Result<String> {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, name, &mut script);
    Ok(String::from_utf8(script)?)
}

/// Writes a page for each command, and returns a line that names the first one.
///
/// # Errors
///
/// The directory cannot be made or written.
pub fn man(args: &ManArgs, program: Command) -> anyhow::Result<String> {
    let out = args.out.display();
    let name = program.get_name().to_owned();
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot make {out}"))?;
    clap_mangen::generate_to(program, &args.out).with_context(|| format!("cannot write into {out}"))?;
    Ok(format!("{out}: manual pages, beginning with {name}.1\n"))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    fn program() -> Command {
        let cut = Command::new("cut").arg(Arg::new("length").long("length"));
        Command::new("timber").subcommand(cut)
    }

    #[test]
    fn each_shell_completes_commands_and_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = completion(&CompletionArgs { shell }, program()).expect("a script");
            for word in ["timber", "cut", "length"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }

    #[test]
    fn each_command_has_a_page() {
        let out = tempfile::tempdir().expect("a directory");
        let args = ManArgs {
            out: out.path().join("man1"),
        };
        let said = man(&args, program()).expect("written");
        assert!(said.ends_with("beginning with timber.1\n"), "{said}");
        for page in ["timber.1", "timber-cut.1"] {
            let page = out.path().join("man1").join(page);
            assert!(page.exists(), "{}", page.display());
        }
    }
}

//! Completions of shells and manual pages, made from the command line's own description.

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
pub(crate) fn completion(args: &CompletionArgs, program: &mut Command) -> anyhow::Result<String> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, program, "clusterclass", &mut script);
    Ok(String::from_utf8(script)?)
}

/// Writes a page for each command, and returns how many.
pub(crate) fn man(args: &ManArgs, program: Command) -> anyhow::Result<String> {
    let out = args.out.display();
    std::fs::create_dir_all(&args.out).with_context(|| format!("cannot make {out}"))?;
    clap_mangen::generate_to(program, &args.out).with_context(|| format!("cannot write into {out}"))?;
    Ok(format!("{out}: manual pages, beginning with clusterclass.1\n"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::command::Cli;

    #[test]
    fn each_shell_completes_commands_and_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = completion(&CompletionArgs { shell }, &mut Cli::command()).expect("a script");
            for word in ["diff", "kubeconfig", "validate"] {
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
        man(&args, Cli::command()).expect("written");
        for page in ["clusterclass.1", "clusterclass-diff.1", "clusterclass-render.1"] {
            let page = out.path().join("man1").join(page);
            assert!(page.exists(), "{}", page.display());
        }
    }
}

//! `cargo reference`: writes the generated pages of docs/reference, or says which of them are not what it would write.
//! It owns no page; `tributary_e2e::reference` does.

use std::{fs, path::Path, process::ExitCode};

use anyhow::{Context, bail};
use clap::Parser;
use tributary_e2e::reference;

/// Generate the reference of flags and metrics.
#[derive(Parser)]
#[command(name = "cargo reference", version)]
struct Args {
    /// Compare with the files and exit 1 if one differs; write nothing
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("reference: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut stale = Vec::new();
    for page in reference::pages(&root)? {
        let path = root.join(&page.path);
        if !args.check {
            fs::write(&path, &page.text).with_context(|| path.display().to_string())?;
            println!("{}", page.path.display());
        } else if fs::read_to_string(&path).ok().as_deref() != Some(page.text.as_str()) {
            stale.push(page.path.display().to_string());
        }
    }
    if !stale.is_empty() {
        bail!(
            "not what the programs say: {}; run `cargo reference`",
            stale.join(", ")
        );
    }
    Ok(())
}

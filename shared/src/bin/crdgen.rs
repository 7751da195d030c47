//! `cargo crdgen`: writes the CustomResourceDefinitions into `deploy/charts/crds/files`, prints them, or checks for drift.
//! It owns no schema; the types in `shared::api` do.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use clap::Parser;
use tributary_shared::api::crd;

/// Generate the CustomResourceDefinitions from the Rust types.
#[derive(Parser)]
#[command(name = "cargo crdgen", version)]
struct Args {
    /// Compare with the files and exit 1 if one differs; write nothing
    #[arg(long, conflicts_with = "print")]
    check: bool,
    /// Print to standard output, ready for `kubectl apply -f -`; write nothing
    #[arg(long)]
    print: bool,
    /// The directory of the files
    #[arg(long, value_name = "DIR", default_value_os_t = default_directory())]
    dir: PathBuf,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("crdgen: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let mut drifted = Vec::new();
    for crd in crd::all() {
        let text = crd::file_text(&crd)?;
        let path = args.dir.join(crd::file_name(&crd));
        if args.print {
            print!("---\n{text}");
        } else if args.check {
            if fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
                drifted.push(path.display().to_string());
            }
        } else {
            write(&path, &text)?;
        }
    }
    if !drifted.is_empty() {
        bail!(
            "these files are not what the types in shared/api/src say: {}\n\
             Run `cargo crdgen` and commit the result. Never edit the files by hand.",
            drifted.join(", ")
        );
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
    }
    fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// `deploy/charts/crds/files` of the repository this was built from, wherever cargo is called.
fn default_directory() -> PathBuf {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR"));
    shared.parent().unwrap_or(shared).join("deploy/charts/crds/files")
}

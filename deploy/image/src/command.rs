//! Owns: the command that builds images: which architectures, where to, and the order of its steps.
//! Never: runs an image, or pushes one.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Parser, Subcommand};

use crate::{architecture::Architecture, package, reproduce, source::Source};

/// Builds Tributary's image: both programs, static, in a layer of their own over nothing.
///
/// No container engine and no registry is needed. The image is an OCI layout, and an archive of it that `skopeo`,
/// `podman load` or `ctr images import` read; beside it are the programs as archives, lists of their parts (CycloneDX),
/// and SHA256SUMS.
#[derive(Parser)]
#[command(name = "cargo image", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  cargo image build                     both architectures, into target/images
  cargo image build --architecture amd64
  cargo image build --quick --architecture amd64
                                        for tests: the programs as tests compile them, in seconds after those
  cargo image reproduce                 builds a second checkout elsewhere, and compares the digests

The first build takes about 15 minutes for each architecture on two cores. It needs python3 with pip, from which comes the
C compiler (zig), and rustup, from which comes Rust's standard library for musl; or ZIG names a zig.";

#[derive(Subcommand)]
enum Command {
    /// Builds the image, archives, and what goes with them.
    Build {
        #[command(flatten)]
        built: Built,
        /// Takes the programs as tests compile them, with this machine's C library: for tests, never to be published.
        #[arg(long)]
        quick: bool,
    },
    /// Builds them in this checkout and in a second one, and compares every file's digest.
    Reproduce(Built),
}

#[derive(clap::Args)]
struct Built {
    /// Architectures; all of them by default.
    #[arg(long = "architecture", value_enum, value_delimiter = ',', default_values_t = Architecture::ALL)]
    architectures: Vec<Architecture>,
    /// Output directory; existing content is replaced
    #[arg(long, value_name = "DIR", default_value = "target/images")]
    out: PathBuf,
}

/// Does what was asked for.
pub fn carry_out(arguments: &Arguments) -> anyhow::Result<()> {
    let (Command::Build { built, .. } | Command::Reproduce(built)) = &arguments.command;
    let source = Source::of_this_workspace()?;
    let out = source.root.join(&built.out);
    let packaged = match arguments.command {
        Command::Build { quick: true, .. } => package::for_tests(&source, &built.architectures, &out),
        _ => package::published(&source, &built.architectures, &out),
    };
    let sums = packaged.with_context(|| format!("no image in {}", out.display()))?;
    if matches!(arguments.command, Command::Reproduce(_)) {
        return reproduce::reproduce(&source, &built.architectures, &sums);
    }
    print!("{sums}");
    Ok(())
}

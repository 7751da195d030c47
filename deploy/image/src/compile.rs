//! Owns: compiling the programs for one architecture, so that equal sources give equal bytes wherever they lie.
//! Never: decides what an image has in it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;

use crate::{
    architecture::Architecture,
    inspect, run,
    source::{PROGRAMS, Source},
    zig::{self, Compiler},
};

/// The profile of Cargo.toml that images are built with: small and fast programs, which take minutes of link-time
/// optimisation.
const PROFILE: &str = "image";

/// The path of sources and crates that a program's debug information states.
const SOURCES_AS: &str = "/tributary";
const CRATES_AS: &str = "/cargo";
/// The time that compilers see, whatever the commit: with its own, everything would be compiled anew for each.
const COMPILED_AT: &str = "0";

/// Compiles the file that is both programs, and looks whether it is what an image needs; where it is.
pub(crate) fn compile(source: &Source, architecture: Architecture) -> anyhow::Result<PathBuf> {
    let target = architecture.rust_target();
    add_target(source, target)?;
    let compiler = zig::compiler(source, architecture)?;
    eprintln!("compiling for {architecture}");
    let mut cargo = run::cargo(&source.root);
    cargo.args(["build", "--locked", "--profile", PROFILE, "--target", target]);
    cargo.args(["--package", PROGRAMS]);
    environment(&mut cargo, source, architecture, &compiler)?;
    run::shown(&mut cargo).with_context(|| format!("cannot compile for {architecture}"))?;
    let programs = source.target.join(target).join(PROFILE).join(PROGRAMS);
    inspect::program(&programs, architecture)?;
    Ok(programs)
}

/// Rust's standard library of a target, if rustup has it not yet.
fn add_target(source: &Source, target: &str) -> anyhow::Result<()> {
    let mut rustup = Command::new("rustup");
    rustup.current_dir(&source.root).args(["target", "add", target]);
    run::shown(&mut rustup).with_context(|| format!("Rust's standard library for {target} comes from rustup"))
}

/// Sets or removes everything that a program must not depend on: flags and compilers of the machine, its paths, the
/// time.
fn environment(
    cargo: &mut Command,
    source: &Source,
    architecture: Architecture,
    compiler: &Compiler,
) -> anyhow::Result<()> {
    let target = architecture.rust_target().replace('-', "_");
    let crates = crates_home()?;
    let mapped = |option: &str| {
        [(&source.root, SOURCES_AS), (&crates, CRATES_AS)]
            .map(|(from, to)| format!("{option}={}={to}", from.display()))
    };
    let rust = [
        "-Clinker=rust-lld",
        "-Clink-self-contained=yes",
        "-Ctarget-feature=+crt-static",
        "-Clink-arg=--build-id=none",
    ];
    let rust: Vec<String> = rust
        .map(String::from)
        .into_iter()
        .chain(mapped("--remap-path-prefix"))
        .collect();
    let c = [
        mapped("-ffile-prefix-map").join(" "),
        "-g0 -fno-sanitize=all".to_owned(),
    ]
    .join(" ");
    cargo
        .env_remove("RUSTFLAGS")
        // A caller that lints while it builds must not change what is shipped.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"))
        .env("CARGO_INCREMENTAL", "0")
        .env("SOURCE_DATE_EPOCH", COMPILED_AT)
        .env(format!("CC_{target}"), &compiler.cc)
        .env(format!("AR_{target}"), &compiler.ar)
        .env(format!("CFLAGS_{target}"), c)
        // Its own list of files and flags, and not CMake's.
        .env("AWS_LC_SYS_CMAKE_BUILDER", "0");
    Ok(())
}

fn crates_home() -> anyhow::Result<PathBuf> {
    if let Some(home) = env::var_os("CARGO_HOME") {
        return Ok(PathBuf::from(home));
    }
    let home = env::var_os("HOME").context("HOME is not set, below which cargo keeps its crates")?;
    Ok(Path::new(&home).join(".cargo"))
}

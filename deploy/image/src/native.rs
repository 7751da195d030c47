//! Owns: an image for tests: the programs as this machine's tests have them, with the C library that they ask for.
//! Never: makes anything to be published; `compile` does.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, ensure};

use crate::{
    architecture::Architecture,
    layer::File,
    run,
    source::{PROGRAMS, Source},
};

/// The program of this machine, and the libraries that it asks for, each where its loader looks.
pub(crate) struct Native {
    pub(crate) program: Vec<u8>,
    pub(crate) libraries: Vec<File>,
}

/// Links the file that is both programs out of what tests have compiled already.
pub(crate) fn build(source: &Source, architecture: Architecture) -> anyhow::Result<Native> {
    ensure!(
        Architecture::of_this_machine()? == architecture,
        "--quick takes the programs of this machine, which are not of {architecture}"
    );
    let mut cargo = run::cargo(&source.root);
    // Of the whole workspace, so that it shares everything that tests have compiled.
    cargo.args(["build", "--locked", "--workspace"]);
    run::shown(cargo.args(["--bin", PROGRAMS]))?;
    let built = source.target.join("debug").join(PROGRAMS);
    let stripped = source.target.join("debug").join(format!("{PROGRAMS}.stripped"));
    let mut strip = Command::new("strip");
    run::shown(strip.arg("--strip-debug").arg("-o").arg(&stripped).arg(&built))
        .context("strip comes with the C compiler (binutils)")?;
    let program = fs::read(&stripped).with_context(|| format!("cannot read {}", stripped.display()))?;
    let asked = run::printed(Command::new("ldd").arg(&built))?;
    let libraries = libraries(&asked).map(library).collect::<anyhow::Result<_>>()?;
    Ok(Native { program, libraries })
}

/// Paths among the lines of `ldd`: of libraries that were found, and of the loader itself.
fn libraries(asked: &str) -> impl Iterator<Item = &str> {
    asked.split_whitespace().filter(|word| word.starts_with('/'))
}

fn library(path: &str) -> anyhow::Result<File> {
    Ok(File {
        path: path.trim_start_matches('/').to_owned(),
        mode: 0o555,
        bytes: fs::read(Path::new(path)).with_context(|| format!("cannot read {path}"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_the_loader_are_found_and_what_the_kernel_maps_is_not() {
        let asked = "\tlinux-vdso.so.1 (0x00007ffe)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f7)\n\
                     \t/lib64/ld-linux-x86-64.so.2 (0x00007f8)\n";
        let found: Vec<_> = libraries(asked).collect();
        assert_eq!(
            found,
            ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"]
        );
    }
}

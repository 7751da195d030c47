//! Owns: whether a program is what an image without anything else in it can run.
//! Never: runs it: it may be of another architecture.

use std::{fs, path::Path};

use anyhow::{Context, bail, ensure};
use object::{
    Endianness, Object,
    elf::{FileHeader64, PT_DYNAMIC, PT_INTERP},
    read::elf::{ElfFile64, FileHeader, ProgramHeader},
};

use crate::architecture::Architecture;

/// It must be of its architecture, ask for no loader and no library, and say nothing of where it was built.
pub(crate) fn program(path: &Path, architecture: Architecture) -> anyhow::Result<()> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    check(&bytes, architecture).with_context(|| format!("{} cannot go into an image", path.display()))
}

fn check(bytes: &[u8], architecture: Architecture) -> anyhow::Result<()> {
    let elf = ElfFile64::<Endianness>::parse(bytes).context("it is no 64-bit ELF file")?;
    ensure!(
        elf.architecture() == architecture.elf(),
        "it is not of {architecture}"
    );
    let endian = elf.endian();
    for header in FileHeader64::parse(bytes)?.program_headers(endian, bytes)? {
        let kind = header.p_type(endian);
        if kind == PT_INTERP {
            bail!("it asks for a loader, which an image without anything else does not have");
        }
        if kind == PT_DYNAMIC && !elf.imports()?.is_empty() {
            bail!("it asks for a library, which an image without anything else does not have");
        }
    }
    let home = std::env::var("HOME").unwrap_or_default();
    if home.len() > 1 {
        let needle = home.as_bytes();
        let found = bytes.windows(needle.len()).any(|window| window == needle);
        ensure!(
            !found,
            "it names {home}, a directory of the machine that built it"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_program_of_an_image_is_refused() {
        let error = check(b"#!/bin/sh\n", Architecture::Amd64).unwrap_err();
        assert_eq!(error.to_string(), "it is no 64-bit ELF file");
        // The test itself was built for the machine, with its loader.
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let native = match std::env::consts::ARCH {
            "aarch64" => [Architecture::Arm64, Architecture::Amd64],
            _ => [Architecture::Amd64, Architecture::Arm64],
        };
        let error = check(&own, native[0]).unwrap_err();
        assert!(error.to_string().contains("asks for a loader"), "{error}");
        let error = check(&own, native[1]).unwrap_err();
        assert_eq!(error.to_string(), format!("it is not of {}", native[1]));
    }
}

//! Owns: the architectures of images, and what Rust, zig, ELF and OCI call them.
//! Never: builds anything.

use std::fmt;

/// An architecture that there are images for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Architecture {
    /// x86-64.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// The one of the machine that this runs on.
    pub fn of_this_machine() -> anyhow::Result<Self> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Self::Amd64),
            "aarch64" => Ok(Self::Arm64),
            other => anyhow::bail!("there are no images for {other}"),
        }
    }

    /// As OCI and Debian call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Rust's target: musl, so that a program needs nothing of its image.
    pub(crate) fn rust_target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-musl",
            Self::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// The same in zig's words.
    pub(crate) fn zig_target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-linux-musl",
            Self::Arm64 => "aarch64-linux-musl",
        }
    }

    /// The machine type in its ELF files.
    pub(crate) fn elf(self) -> object::Architecture {
        match self {
            Self::Amd64 => object::Architecture::X86_64,
            Self::Arm64 => object::Architecture::Aarch64,
        }
    }

    /// In the manifest of an image.
    pub(crate) fn oci(self) -> oci_spec::image::Arch {
        match self {
            Self::Amd64 => oci_spec::image::Arch::Amd64,
            Self::Arm64 => oci_spec::image::Arch::ARM64,
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

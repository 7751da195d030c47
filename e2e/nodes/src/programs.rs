//! Owns: the programs and images that nodes run: where they are, and building those that are not there.
//! Never: builds inside a test.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, bail};
use tributary_image::{
    architecture::Architecture,
    layer::{self, Effort, File},
    layout::{Layout, Runs},
};

use super::{
    configuration::{COREDNS_IMAGE, PAUSE_IMAGE, TOOLS_IMAGE},
    host,
};
use advice::BUILD_NODES;
use cluster::real::{build, module::Module};

/// A Go module below `nodes`, and a program that it builds.
struct GoProgram {
    module: &'static str,
    package: &'static str,
    name: &'static str,
}

const GO_PROGRAMS: [GoProgram; 5] = [
    GoProgram {
        module: "containerd",
        package: "github.com/containerd/containerd/v2/cmd/containerd",
        name: "containerd",
    },
    GoProgram {
        module: "containerd",
        package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        name: "containerd-shim-runc-v2",
    },
    GoProgram {
        module: "containerd",
        package: "github.com/containerd/containerd/v2/cmd/ctr",
        name: "ctr",
    },
    GoProgram {
        module: "coredns",
        package: ".",
        name: "coredns",
    },
    GoProgram {
        module: "pause",
        package: ".",
        name: "pause",
    },
];
/// The release of Debian whose tools the checks use in pods.
const DEBIAN: &str = "bookworm";
/// Those tools, by package.
const TOOLS: &str = "socat,netcat-openbsd,bind9-dnsutils,curl,iproute2,ca-certificates";
/// Parts of Debian that nobody in a pod needs.
const UNNEEDED: [&str; 6] = [
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/lib/x86_64-linux-gnu/gconv",
];

/// Everything that nodes are started from.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    module: Module,
    directory: PathBuf,
}

impl Programs {
    /// Below cargo's target directory.
    pub(super) fn of_this_workspace() -> Self {
        let module = Module::of_this_workspace();
        let directory = module.tools().join("nodes");
        Self { module, directory }
    }

    /// All of Kubernetes in one program: the first argument names the component.
    pub(super) fn kubernetes(&self) -> PathBuf {
        self.module.binary()
    }

    /// A kubectl of the same version.
    pub(super) fn kubectl(&self) -> PathBuf {
        self.module.tools().join("kubectl")
    }

    /// One of those that are built from Go.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The directory of those.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The archives of the images that every node has.
    pub(super) fn images(&self) -> [PathBuf; 3] {
        [PAUSE_IMAGE, COREDNS_IMAGE, TOOLS_IMAGE].map(|name| self.archive(name))
    }

    fn archive(&self, image: &str) -> PathBuf {
        let name = image.rsplit('/').next().unwrap_or(image);
        self.directory.join(format!("{}.oci.tar", name.replace(':', "-")))
    }

    /// Reports the programs that are not built yet, if there are any.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        self.module.built()?;
        let go = GO_PROGRAMS.iter().map(|program| self.path(program.name));
        let needed = go.chain(self.images()).chain([self.kubectl()]);
        let missing: Vec<PathBuf> = needed.filter(|path| !path.is_file()).collect();
        match missing.first() {
            Some(path) => bail!("there is no {}; run `{BUILD_NODES}`", path.display()),
            None => Ok(()),
        }
    }

    /// Builds what is not there, each thing once.
    pub(super) fn build(&self) -> anyhow::Result<()> {
        // Before minutes of building, not after them.
        host::check()?;
        build::control_plane(&self.module)?;
        build::kubectl(&self.module)?;
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
        let sources = self.module.sources().with_file_name("nodes");
        for program in &GO_PROGRAMS {
            let GoProgram {
                module,
                package,
                name,
            } = program;
            build::go_program(&sources.join(module), package, &self.path(name))?;
        }
        for (image, program) in [(PAUSE_IMAGE, "pause"), (COREDNS_IMAGE, "coredns")] {
            self.image_of_program(image, program)?;
        }
        self.image_of_tools()
    }

    fn image_of_program(&self, image: &str, name: &str) -> anyhow::Result<()> {
        let path = self.path(name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = File {
            path: name.to_owned(),
            mode: 0o755,
            bytes,
        };
        let runs = Runs {
            entrypoint: vec![format!("/{name}")],
            ..Runs::default()
        };
        self.image(image, &layer::archive(&[file], 0)?, &runs)
    }

    /// Debian's smallest system with the tools; once, for it takes a minute.
    fn image_of_tools(&self) -> anyhow::Result<()> {
        if self.archive(TOOLS_IMAGE).is_file() {
            return Ok(());
        }
        eprintln!("making the image of tools from Debian {DEBIAN}: about a minute");
        let place = tempfile::tempdir_in(&self.directory)?;
        let system = place.path().join("system");
        let mut debootstrap = Command::new("debootstrap");
        debootstrap
            .env("PATH", host::PATH)
            .args(["--variant=minbase", &format!("--include={TOOLS}"), DEBIAN])
            .arg(&system);
        let log = place.path().join("debootstrap.log");
        let output = fs::File::create(&log)?;
        let status = debootstrap.stdin(Stdio::null()).stdout(output).status();
        if !status.context("cannot run debootstrap")?.success() {
            let said = fs::read_to_string(&log).unwrap_or_default();
            bail!(
                "debootstrap failed: {}",
                said.lines().last().unwrap_or("it said nothing")
            );
        }
        for path in UNNEEDED {
            let path = system.join(path);
            if path.exists() {
                fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        let mut tar = Command::new("tar");
        tar.args([
            "--numeric-owner",
            "--sort=name",
            "--mtime=@0",
            "--exclude=./dev/*",
        ])
        .arg("-C")
        .arg(&system)
        .args(["-cf", "-", "."]);
        let output = tar.stdin(Stdio::null()).output().context("cannot run tar")?;
        if !output.status.success() {
            bail!("tar failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let runs = Runs {
            command: vec!["/bin/sh".into()],
            ..Runs::default()
        };
        self.image(TOOLS_IMAGE, &output.stdout, &runs)
    }

    fn image(&self, name: &str, archive: &[u8], runs: &Runs) -> anyhow::Result<()> {
        let mut layout = Layout::new(name, Effort::Fast);
        layout.add(Architecture::of_this_machine()?, archive, runs)?;
        let archive = layer::archive(&layout.into_files()?, 0)?;
        let path = self.archive(name);
        fs::write(&path, archive).with_context(|| format!("cannot write {}", path.display()))
    }
}

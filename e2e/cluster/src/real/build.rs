//! Owns: building the Go module and installing Go tools, with progress that a person can watch.
//! Never: runs inside a test.

use super::Unavailable;
use super::kept::{self, Kept};
use super::module::Module;
use super::programs::ASSETS_VARIABLE;
use advice::{BUILD_CLUSTER_API, BUILD_HELM, BUILD_LUA};
use anyhow::{Context, bail};
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The release of grpcurl that our checks use (MIT licence).
const GRPCURL: Release = Release {
    name: "grpcurl",
    package: "github.com/fullstorydev/grpcurl/cmd/grpcurl",
    version: "v1.9.3",
};
/// The release of Helm that renders and installs our charts (Apache-2.0).
const HELM: Release = Release {
    name: "helm",
    package: "helm.sh/helm/v4/cmd/helm",
    version: "v4.3.1",
};
/// The release of the Lua in which Argo CD runs health checks (MIT licence).
const LUA: Release = Release {
    name: "glua",
    package: "github.com/yuin/gopher-lua/cmd/glua",
    version: "v1.1.1",
};
/// The release of Cluster API whose topologies ours are held against (Apache-2.0). The next one's module cannot be installed
/// from outside.
const CLUSTER_API: Release = Release {
    name: "cluster-api",
    package: "sigs.k8s.io/cluster-api",
    version: "v1.13.6",
};
/// Directory of the kinds' definitions in its module.
const CLUSTER_API_DEFINITIONS: &str = "config/crd/bases";
/// Ours as a tool of the Go module, so that one version is pinned for it and the control plane.
const KUBECTL_PACKAGE: &str = "k8s.io/kubernetes/cmd/kubectl";
/// Nothing of this machine is in a program that is installed.
const INSTALL_FLAGS: [&str; 2] = ["-trimpath", "-buildvcs=false"];
/// The same for programs of our own modules, without what a debugger reads.
const PROGRAM_FLAGS: [&str; 4] = ["-trimpath", "-buildvcs=false", "-ldflags", "-s -w"];
/// Interval of showing progress: in place on a terminal, as a line elsewhere.
const PROGRESS_TERMINAL: Duration = Duration::from_secs(1);
const PROGRESS_LINE: Duration = Duration::from_secs(10);
/// Lines of a failed Go command that are shown.
const ERROR_LINES_MAX: usize = 30;
/// Lines of Go that may wait for us to count them.
const LINES_WAITING_MAX: usize = 1024;
/// The package with a server's version, written at link time.
const VERSION_PACKAGE: &str = "k8s.io/component-base/version";

/// Builds the control plane unless it is built already; the path of the binary.
pub fn control_plane(module: &Module) -> anyhow::Result<PathBuf> {
    if let Ok(binary) = module.built() {
        eprintln!("the control plane is built from these sources already");
        return Ok(binary);
    }
    let go = require_go(module)?;
    let hash = module
        .hash()
        .with_context(|| format!("cannot read {}", module.sources().display()))?;
    let flags = build_flags(module)?;
    let binary = module.binary();
    let directory = binary.parent().context("the binary has a directory")?;
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let toolchain = kept::toolchain(module.sources())?;
    Kept::of_this_user().program(&binary, &[&hash, &flags.join(" "), &toolchain], || {
        eprintln!("building the control plane with {go}: about four minutes on two cores");
        compile_control_plane(module, &flags, &binary)
    })?;
    module
        .record(&hash)
        .context("cannot record what the control plane was built from")?;
    Ok(binary)
}

fn compile_control_plane(module: &Module, flags: &[String], binary: &Path) -> anyhow::Result<()> {
    let mut list = go_command(module.sources());
    list.args(["list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}"])
        .args(module.flag())
        .args(flags)
        .arg(module.package());
    let stale = run(&mut list, "listing packages", &Counted::Downloads)?;
    // Built beside its place and moved: a build cut off never leaves half a binary where tests look.
    let fresh = binary.with_extension(std::process::id().to_string());
    let mut build = go_command(module.sources());
    build
        .args(["build", "-v"])
        .args(module.flag())
        .args(flags)
        .arg("-o")
        .arg(&fresh)
        .arg(module.package());
    let total = stale.lines().filter(|line| !line.is_empty()).count();
    run(&mut build, "compiling", &Counted::Packages { total })?;
    std::fs::rename(&fresh, binary).with_context(|| format!("cannot create {}", binary.display()))
}

/// Installs grpcurl unless it is installed already; the path of the binary.
pub fn grpcurl(module: &Module) -> anyhow::Result<PathBuf> {
    install(module, &GRPCURL)
}

/// Builds Helm unless it is built already; the path of the binary.
pub fn helm(module: &Module) -> anyhow::Result<PathBuf> {
    install(module, &HELM)
}

/// Builds the Lua of Argo CD unless it is built already; the path of the binary.
pub fn lua(module: &Module) -> anyhow::Result<PathBuf> {
    install(module, &LUA)
}

/// Builds the manager of Cluster API and copies its definitions unless that is done already; the path of the binary.
pub fn cluster_api(module: &Module) -> anyhow::Result<PathBuf> {
    let binary = install(module, &CLUSTER_API)?;
    let definitions = cluster_api_definitions(module);
    if definitions.is_dir() {
        return Ok(binary);
    }
    let Release { package, version, .. } = CLUSTER_API;
    let mut download = go_command(&module.tools());
    download.args(["mod", "download", "-json", &format!("{package}@{version}")]);
    let said = run(&mut download, "finding the definitions", &Counted::Downloads)?;
    let said: serde_json::Value = serde_json::from_str(&said).context("go says where a module is")?;
    let sources = said["Dir"].as_str().context("go says where a module is")?;
    let sources = Path::new(sources).join(CLUSTER_API_DEFINITIONS);
    // Copied beside their place and moved: a copy cut off is none.
    let fresh = definitions.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(&fresh).with_context(|| format!("cannot create {}", fresh.display()))?;
    for file in std::fs::read_dir(&sources).with_context(|| format!("cannot read {}", sources.display()))? {
        let file = file?;
        // Read and written, since a copy would take over that nobody may write it.
        std::fs::write(fresh.join(file.file_name()), std::fs::read(file.path())?)?;
    }
    std::fs::rename(&fresh, &definitions)
        .with_context(|| format!("cannot create {}", definitions.display()))?;
    Ok(binary)
}

fn cluster_api_definitions(module: &Module) -> PathBuf {
    module
        .tools()
        .join(format!("cluster-api-{}", CLUSTER_API.version))
}

/// The manager of Cluster API and the directory of its definitions.
pub(super) fn built_cluster_api(module: &Module) -> Result<(PathBuf, PathBuf), Unavailable> {
    let program = built(module, &CLUSTER_API, BUILD_CLUSTER_API)?;
    let definitions = cluster_api_definitions(module);
    if definitions.is_dir() {
        return Ok((program, definitions));
    }
    Err(Unavailable {
        reason: format!("there are no definitions of Cluster API; run `{BUILD_CLUSTER_API}`"),
    })
}

/// The Helm that is built, if it is of the version that is wanted; else the reason, with the command to type.
pub(super) fn built_helm(module: &Module) -> Result<PathBuf, Unavailable> {
    built(module, &HELM, BUILD_HELM)
}

/// The same of Lua.
pub(super) fn built_lua(module: &Module) -> Result<PathBuf, Unavailable> {
    built(module, &LUA, BUILD_LUA)
}

fn built(module: &Module, release: &Release, command: &str) -> Result<PathBuf, Unavailable> {
    let Release { name, version, .. } = release;
    let tool = Tool::new(module, name, version);
    if tool.is_built() {
        return Ok(tool.binary);
    }
    Err(Unavailable {
        reason: format!("there is no {name} {version}; run `{command}`"),
    })
}

/// A program that its own Go module builds as it is, at one version; Go verifies what it downloads.
struct Release {
    name: &'static str,
    package: &'static str,
    version: &'static str,
}

fn install(module: &Module, release: &Release) -> anyhow::Result<PathBuf> {
    let Release {
        name,
        package,
        version,
    } = release;
    let tool = Tool::new(module, name, version);
    if tool.is_built() {
        return Ok(tool.binary);
    }
    let go = require_go(module)?;
    let tools = module.tools();
    std::fs::create_dir_all(&tools).with_context(|| format!("cannot create {}", tools.display()))?;
    let pinned = format!("{package}@{version}");
    let toolchain = kept::toolchain(&tools)?;
    Kept::of_this_user().program(
        &tool.binary,
        &[&pinned, INSTALL_FLAGS.concat().as_str(), &toolchain],
        || {
            eprintln!("installing {name} {version} with {go}");
            let mut install = go_command(&tools);
            install
                .env("GOBIN", &tools)
                .args(["install", "-v"])
                .args(INSTALL_FLAGS)
                .arg(&pinned);
            let doing = format!("installing {name}");
            run(&mut install, &doing, &Counted::Packages { total: 0 }).map(drop)
        },
    )?;
    tool.record()
}

/// Builds the kubectl of the control plane's version unless it is built already; the path of the binary.
pub fn kubectl(module: &Module) -> anyhow::Result<PathBuf> {
    let version = kubernetes_version(module)?;
    let tool = Tool::new(module, "kubectl", &version);
    if tool.is_built() {
        return Ok(tool.binary);
    }
    let go = require_go(module)?;
    let tools = module.tools();
    std::fs::create_dir_all(&tools).with_context(|| format!("cannot create {}", tools.display()))?;
    let flags = build_flags(module)?;
    let sources = kept::sources_hash(module.sources())?;
    let toolchain = kept::toolchain(module.sources())?;
    Kept::of_this_user().program(&tool.binary, &[&sources, &flags.join(" "), &toolchain], || {
        eprintln!("building kubectl {version} with {go}");
        // Built beside its place and moved, as the control plane is.
        let fresh = tools.join(format!("kubectl.{}", std::process::id()));
        let mut build = go_command(module.sources());
        build
            .args(["build", "-v"])
            .args(&flags)
            .arg("-o")
            .arg(&fresh)
            .arg(KUBECTL_PACKAGE);
        run(&mut build, "building kubectl", &Counted::Packages { total: 0 })?;
        std::fs::rename(&fresh, &tool.binary)
            .with_context(|| format!("cannot create {}", tool.binary.display()))
    })?;
    tool.record()
}

/// Builds a program of a Go module of ours, unless it was built from the same sources before.
pub fn go_program(sources: &Path, package: &str, binary: &Path) -> anyhow::Result<()> {
    let hash = kept::sources_hash(sources)?;
    let toolchain = kept::toolchain(sources)?;
    let flags = PROGRAM_FLAGS.join(" ");
    Kept::of_this_user().program(binary, &[&hash, package, &flags, &toolchain], || {
        go_binary(sources, &["build", "-v"], package, binary)
    })
}

/// Builds the tests of a Go package that somebody has as a program, to be run elsewhere.
pub fn go_test(package: &Path, binary: &Path) -> anyhow::Result<()> {
    go_binary(package, &["test", "-v", "-c"], ".", binary)
}

fn go_binary(sources: &Path, verb: &[&str], package: &str, binary: &Path) -> anyhow::Result<()> {
    let name = binary.file_name().unwrap_or_default().display();
    // Built beside its place and moved, as the control plane is.
    let fresh = binary.with_extension(std::process::id().to_string());
    let mut build = go_command(sources);
    build
        .args(verb)
        .args(PROGRAM_FLAGS)
        .arg("-o")
        .arg(&fresh)
        .arg(package);
    run(
        &mut build,
        &format!("building {name}"),
        &Counted::Packages { total: 0 },
    )?;
    std::fs::rename(&fresh, binary).with_context(|| format!("cannot create {}", binary.display()))
}

/// A program in the directory of tools, and the file that says which version it is.
struct Tool {
    binary: PathBuf,
    stamp: PathBuf,
    version: String,
}

impl Tool {
    fn new(module: &Module, name: &str, version: &str) -> Self {
        Self {
            binary: module.tools().join(name),
            stamp: module.tools().join(format!("{name}.version")),
            version: version.to_owned(),
        }
    }

    fn is_built(&self) -> bool {
        let stated = std::fs::read_to_string(&self.stamp).unwrap_or_default();
        self.binary.is_file() && stated == self.version
    }

    fn record(self) -> anyhow::Result<PathBuf> {
        std::fs::write(&self.stamp, &self.version)
            .with_context(|| format!("cannot write {}", self.stamp.display()))?;
        Ok(self.binary)
    }
}

/// The directory in `KUBEBUILDER_ASSETS`, in which case nothing needs to be built.
pub fn assets() -> Option<PathBuf> {
    std::env::var_os(ASSETS_VARIABLE)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn kubernetes_version(module: &Module) -> anyhow::Result<String> {
    let sources = module.sources().display();
    let version = module.kubernetes_version();
    version.with_context(|| format!("{sources}/go.mod requires no k8s.io/kubernetes"))
}

fn build_flags(module: &Module) -> anyhow::Result<[String; 4]> {
    let version = kubernetes_version(module)?;
    let mut numbers = version.trim_start_matches('v').split('.');
    let (major, minor) = (
        numbers.next().unwrap_or_default(),
        numbers.next().unwrap_or_default(),
    );
    let stamp = format!(
        "-s -w -X {VERSION_PACKAGE}.gitVersion={version} -X {VERSION_PACKAGE}.gitMajor={major} \
         -X {VERSION_PACKAGE}.gitMinor={minor}"
    );
    Ok([
        "-trimpath".to_owned(),
        "-buildvcs=false".to_owned(),
        "-ldflags".to_owned(),
        stamp,
    ])
}

fn go_command(directory: &Path) -> Command {
    let mut command = Command::new("go");
    // A workspace file above us, or a C compiler that is not there, must not change the build.
    command
        .current_dir(directory)
        .env("GOWORK", "off")
        .env("CGO_ENABLED", "0");
    command
}

/// The version of Go, or one line that says what is missing.
fn require_go(module: &Module) -> anyhow::Result<String> {
    let version = Command::new("go").args(["env", "GOVERSION"]).output();
    match version {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(_) | Err(_) => {
            let text = std::fs::read_to_string(module.sources().join("go.mod")).unwrap_or_default();
            let needed = text
                .lines()
                .find_map(|line| line.strip_prefix("go "))
                .unwrap_or("1.26")
                .to_owned();
            bail!(
                "Go is missing: install Go {needed} or newer (https://go.dev/dl/), or set {ASSETS_VARIABLE} to a \
                 directory with etcd and kube-apiserver"
            )
        }
    }
}

/// The meaning of Go's lines during a build.
enum Counted {
    Downloads,
    Packages { total: usize },
}

/// Runs a Go command, shows progress, and returns what it printed to its standard output.
fn run(command: &mut Command, doing: &str, counted: &Counted) -> anyhow::Result<String> {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start go")?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let output = std::thread::spawn(move || stdout.map(std::io::read_to_string));
    let (sender, lines) = mpsc::sync_channel(LINES_WAITING_MAX);
    let reader = std::thread::spawn(move || {
        for line in stderr
            .map(BufReader::new)
            .into_iter()
            .flat_map(BufRead::lines)
            .map_while(Result::ok)
        {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let said = follow(&lines, began, doing, counted);
    let status = child.wait().context("cannot wait for go")?;
    reader.join().ok();
    if !status.success() {
        let shown = &said[said.len().saturating_sub(ERROR_LINES_MAX)..];
        bail!("{doing} failed ({status}):\n{}", shown.join("\n"));
    }
    eprintln!("{doing}: done in {} s", began.elapsed().as_secs());
    match output.join() {
        Ok(Some(Ok(text))) => Ok(text),
        _ => bail!("{doing}: the output of go could not be read"),
    }
}

/// Counts Go's lines until it closes its output; what it said besides is returned.
fn follow(lines: &mpsc::Receiver<String>, began: Instant, doing: &str, counted: &Counted) -> Vec<String> {
    let terminal = std::io::stderr().is_terminal();
    let every = if terminal {
        PROGRESS_TERMINAL
    } else {
        PROGRESS_LINE
    };
    let (mut downloads, mut packages, mut said) = (0_usize, 0_usize, Vec::new());
    let mut next = began + every;
    loop {
        match lines.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(line) if line.starts_with("go: downloading ") => downloads += 1,
            Ok(line) if is_package(&line) => packages += 1,
            Ok(line) => said.push(line),
            Err(RecvTimeoutError::Timeout) => {
                let count = progress(counted, downloads, packages);
                let elapsed = began.elapsed().as_secs();
                let (before, after) = if terminal { ("\r\x1b[2K", "") } else { ("", "\n") };
                eprint!("{before}{doing}: {elapsed} s, {count}{after}");
                std::io::stderr().flush().ok();
                next += every;
            }
            Err(RecvTimeoutError::Disconnected) => {
                if terminal {
                    eprint!("\r\x1b[2K");
                }
                return said;
            }
        }
    }
}

fn progress(counted: &Counted, downloads: usize, packages: usize) -> String {
    match counted {
        Counted::Downloads => format!("{downloads} modules downloaded"),
        Counted::Packages { .. } if packages == 0 && downloads > 0 => {
            format!("{downloads} modules downloaded")
        }
        Counted::Packages { total: 0 } => format!("{packages} packages"),
        // Go prints a package when it begins; the last ones and the linking are still to come at the end.
        Counted::Packages { total } if packages >= *total => {
            format!("all {total} packages begun, then linking")
        }
        Counted::Packages { total } => format!("{packages} of {total} packages"),
    }
}

/// `go build -v` prints one import path per line; everything else that it says has spaces or a `#` before it.
fn is_package(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#') && !line.contains([' ', '\t', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_told_from_errors() {
        assert!(is_package("k8s.io/api/core/v1"));
        for other in [
            "",
            "# example",
            "main.go:3:1: syntax error",
            "go: finding x",
            "\tfound",
        ] {
            assert!(!is_package(other), "{other}");
        }
    }

    #[test]
    fn a_failing_command_shows_what_it_said() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo net/http >&2; echo 'main.go:1:1: wrong' >&2; exit 1"]);
        let error = run(&mut command, "compiling", &Counted::Packages { total: 1 }).expect_err("it fails");
        let message = error.to_string();
        assert!(
            message.contains("main.go:1:1: wrong") && !message.contains("net/http"),
            "{message}"
        );
    }

    #[test]
    fn the_version_is_stamped_from_go_mod() {
        let flags = build_flags(&Module::of_this_workspace()).expect("our go.mod");
        assert!(
            flags[3].contains(".gitVersion=v1.") && flags[3].contains(".gitMajor=1 "),
            "{}",
            flags[3]
        );
    }
}

//! Owns: the C compiler of the images: zig, at one version, for every architecture alike.
//! Never: compiles Rust, or links.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Context;

use crate::{architecture::Architecture, run, source::Source};

/// The version and the digests of what is installed.
const REQUIREMENTS: &str = include_str!("../zig.txt");
/// Names a zig that is there already.
const VARIABLE: &str = "ZIG";

/// The wrapper that cargo calls to compile C for one architecture.
pub(crate) struct Compiler {
    /// In the place of cc.
    pub(crate) cc: PathBuf,
    /// In the place of ar.
    pub(crate) ar: PathBuf,
}

/// Installs zig unless it is installed already, and writes the two programs that cargo calls.
pub(crate) fn compiler(source: &Source, architecture: Architecture) -> anyhow::Result<Compiler> {
    let home = source.target.join("tools/zig");
    let zig = match std::env::var_os(VARIABLE) {
        Some(zig) => PathBuf::from(zig),
        None => installed(&home)?,
    };
    fs::create_dir_all(&home)?;
    let (zig, target) = (zig.display(), architecture.zig_target());
    let cache = home.join("cache");
    let cache = cache.display();
    // zig names targets in its own way, and refuses what the build scripts of crates call them.
    let cc = format!(
        "#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR='{cache}' ZIG_LOCAL_CACHE_DIR='{cache}'\nfor argument; do\n  shift\n  case \
         $argument in\n    --target=*) ;;\n    *) set -- \"$@\" \"$argument\" ;;\n  esac\ndone\nexec '{zig}' cc -target \
         {target} \"$@\"\n"
    );
    let ar = format!("#!/bin/sh\nexec '{zig}' ar \"$@\"\n");
    let script = |name: &str, text: String| {
        let path = home.join(format!("{name}-{architecture}"));
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))?;
        anyhow::Ok(path)
    };
    Ok(Compiler {
        cc: script("cc", cc)?,
        ar: script("ar", ar)?,
    })
}

/// The zig below `home`, which pip puts there after it has compared the digest.
fn installed(home: &Path) -> anyhow::Result<PathBuf> {
    let (zig, stamp) = (home.join("ziglang/zig"), home.join("installed.txt"));
    if zig.is_file() && fs::read_to_string(&stamp).is_ok_and(|is| is == REQUIREMENTS) {
        return Ok(zig);
    }
    eprintln!("installing zig into {}", home.display());
    fs::create_dir_all(home)?;
    let requirements = home.join("requirements.txt");
    fs::write(&requirements, REQUIREMENTS)?;
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--upgrade",
    ])
    .args(["--no-deps", "--only-binary=:all:", "--require-hashes"])
    .arg("--target")
    .arg(home)
    .arg("--requirement")
    .arg(&requirements);
    run::shown(&mut pip).with_context(|| {
        format!("zig compiles the C of the images: install python3 with pip, or set {VARIABLE} to a zig")
    })?;
    fs::write(&stamp, REQUIREMENTS)?;
    Ok(zig)
}

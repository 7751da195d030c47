//! Owns: where the kubectls are that people may have: the one of the control plane's version, and one of 2020.
//! Never: builds or installs one; a missing one is an answer (`Unavailable`).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Unavailable;
use super::module::Module;
use advice::BUILD_KUBECTL;

/// The release that Debian 12 ships as `kubernetes-client`.
const OF_2020: &str = "v1.20.";
/// Path of that package's kubectl as `.ci/run` unpacks it, below the directory of tools.
const OF_2020_UNPACKED: &str = "kubernetes-client/usr/bin/kubectl";

/// A kubectl that runs here.
#[derive(Debug, Clone)]
pub struct Kubectl {
    /// The program.
    pub path: PathBuf,
    /// Its version.
    pub version: String,
}

impl Kubectl {
    /// The kubectl of the control plane's own version, as `cargo control-plane kubectl` builds it.
    pub fn of_today() -> Result<Self, Unavailable> {
        let module = Module::of_this_workspace();
        let wanted = module.kubernetes_version().unwrap_or_default();
        let places = [module.tools().join("kubectl")];
        find(&places, &wanted, &format!("run `{BUILD_KUBECTL}`"))
    }

    /// A kubectl of 2020: unpacked from Debian's package, or the one in the path.
    pub fn of_2020() -> Result<Self, Unavailable> {
        let module = Module::of_this_workspace();
        let mut places = vec![module.tools().join(OF_2020_UNPACKED)];
        let path = std::env::var_os("PATH").unwrap_or_default();
        places.extend(std::env::split_paths(&path).map(|directory| directory.join("kubectl")));
        let hint = format!(
            "unpack Debian 12's package kubernetes-client: `apt-get download kubernetes-client && dpkg-deb --extract \
             kubernetes-client_*.deb {}/kubernetes-client`",
            module.tools().display()
        );
        find(&places, OF_2020, &hint)
    }
}

fn find(places: &[PathBuf], wanted: &str, hint: &str) -> Result<Kubectl, Unavailable> {
    for path in places.iter().filter(|path| path.is_file()) {
        if let Some(version) = version(path).filter(|version| version.starts_with(wanted)) {
            return Ok(Kubectl {
                path: path.clone(),
                version,
            });
        }
    }
    Err(Unavailable {
        reason: format!("there is no kubectl {wanted}; {hint}"),
    })
}

/// Its `gitVersion`.
fn version(path: &Path) -> Option<String> {
    let output = Command::new(path)
        .args(["version", "--client", "-o", "json"])
        .output()
        .ok()?;
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    said["clientVersion"]["gitVersion"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubectl_of_another_version_is_none_and_the_message_says_what_to_do() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("kubectl");
        let script = "#!/bin/sh\necho '{\"clientVersion\": {\"gitVersion\": \"v1.20.2\"}}'\n";
        std::fs::write(&path, script).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("executable");
        let places = [directory.path().join("absent"), path.clone()];
        assert_eq!(find(&places, "v1.20.", "install it").expect("found").path, path);
        let missing = find(&places, "v1.36.3", "install it").expect_err("another version");
        assert_eq!(missing.reason, "there is no kubectl v1.36.3; install it");
    }
}

//! Owns: where the control plane's programs come from: our own built binaries of the Kubernetes that the environment
//! names, `KUBEBUILDER_ASSETS`, else our own of the newest.
//! Never: builds anything; a missing program is an answer (`Unavailable`), not a reason to compile.

use super::Unavailable;
use super::module;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The directory that other Kubernetes test suites use too; it wins when it is set.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The programs of one control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Programs {
    /// Our own binary, whose first argument names the component.
    Module(PathBuf),
    /// The same of an older Kubernetes, and of the newest for etcd.
    Older { older: PathBuf, newest: PathBuf },
    /// Separate programs as upstream ships them.
    Assets { directory: PathBuf, controllers: bool },
}

/// Gives the namespace it runs in a host's name, and becomes the program behind it.
const NAMED_HOST_SCRIPT: &str = r#"hostname "$1" && shift && exec "$@""#;

/// The start of one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) leading_arguments: Vec<String>,
    /// It ends by itself when its standard input closes; others need a guard around them.
    pub(super) ends_with_stdin: bool,
}

impl Program {
    /// A component of a binary that has several.
    fn of_ours(binary: &Path, component: &str) -> Self {
        Self {
            path: binary.to_path_buf(),
            leading_arguments: vec![component.to_owned()],
            ends_with_stdin: true,
        }
    }

    /// The same on a host of this name, as far as it can see.
    pub(super) fn on_host(&self, host: &str) -> Self {
        let leading = ["--uts", "/bin/sh", "-c", NAMED_HOST_SCRIPT, "host", host];
        let mut leading: Vec<String> = leading.map(str::to_owned).to_vec();
        leading.push(self.path.display().to_string());
        leading.extend(self.leading_arguments.iter().cloned());
        Self {
            path: PathBuf::from("unshare"),
            leading_arguments: leading,
            ends_with_stdin: self.ends_with_stdin,
        }
    }
}

impl Programs {
    /// Finds the programs as the environment and the target directory have them.
    pub(super) fn find() -> Result<Self, Unavailable> {
        let newest = module::Module::of_this_workspace();
        let older = newest.clone().of_environment()?;
        if older.is_older() {
            return Ok(Self::Older {
                older: older.built()?,
                newest: newest.built()?,
            });
        }
        Self::find_in(std::env::var_os(ASSETS_VARIABLE), &newest)
    }

    fn find_in(assets: Option<OsString>, module: &module::Module) -> Result<Self, Unavailable> {
        match assets.filter(|value| !value.is_empty()) {
            Some(directory) => Self::in_assets(Path::new(&directory)),
            None => module.built().map(Self::Module),
        }
    }

    fn in_assets(directory: &Path) -> Result<Self, Unavailable> {
        for needed in ["etcd", "kube-apiserver"] {
            if !directory.join(needed).is_file() {
                let reason = format!(
                    "{ASSETS_VARIABLE} is set, but {} is not there; complete it or unset the variable",
                    directory.join(needed).display()
                );
                return Err(Unavailable { reason });
            }
        }
        let controllers = directory.join("kube-controller-manager").is_file();
        Ok(Self::Assets {
            directory: directory.to_path_buf(),
            controllers,
        })
    }

    /// True when a kube-controller-manager is among them.
    pub(super) fn have_controllers(&self) -> bool {
        match self {
            Self::Module(_) | Self::Older { .. } => true,
            Self::Assets { controllers, .. } => *controllers,
        }
    }

    /// The program that runs `component`.
    pub(super) fn program(&self, component: &str) -> Program {
        match self {
            Self::Module(binary) => Program::of_ours(binary, component),
            Self::Older { newest, .. } if component == "etcd" => Program::of_ours(newest, component),
            Self::Older { older, .. } => Program::of_ours(older, component),
            Self::Assets { directory, .. } => Program {
                path: directory.join(component),
                leading_arguments: Vec::new(),
                ends_with_stdin: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(directory: &Path, names: &[&str]) {
        for name in names {
            std::fs::write(directory.join(name), "").expect("a file in a fresh directory");
        }
    }

    #[test]
    fn assets_win_over_the_module_and_may_lack_the_controllers() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        touch(directory.path(), &["etcd", "kube-apiserver"]);
        let absent = module::Module::at(directory.path(), directory.path());
        let found = Programs::find_in(Some(directory.path().into()), &absent).expect("both are there");
        assert!(!found.have_controllers());
        assert_eq!(found.program("etcd").path, directory.path().join("etcd"));
        touch(directory.path(), &["kube-controller-manager"]);
        let found = Programs::find_in(Some(directory.path().into()), &absent).expect("all are there");
        assert!(found.have_controllers());
    }

    #[test]
    fn incomplete_assets_name_the_missing_program_in_one_line() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        touch(directory.path(), &["etcd"]);
        let absent = module::Module::at(directory.path(), directory.path());
        let refused = Programs::find_in(Some(directory.path().into()), &absent).expect_err("no apiserver");
        assert!(refused.reason.contains("kube-apiserver"), "{refused}");
        assert_eq!(refused.reason.lines().count(), 1);
    }

    #[test]
    fn nothing_built_names_the_command_that_builds() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let absent = module::Module::at(directory.path(), directory.path());
        let refused = Programs::find_in(None, &absent).expect_err("nothing is built");
        assert!(refused.reason.contains("cargo control-plane build"), "{refused}");
        assert_eq!(refused.reason.lines().count(), 1);
    }
}

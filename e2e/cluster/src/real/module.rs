//! Owns: our Go module with the control plane: where its sources and its binary are, and whether they agree.
//! Never: runs Go (`build` does).

use super::Unavailable;
use advice::{BUILD_CONTROL_PLANE, build_older_control_plane};
use std::path::{Path, PathBuf};

/// A source file larger than this is not ours.
const SOURCE_BYTES_MAX: u64 = 4 << 20;
/// The binary, and its directory in the target directory.
const CONTROL_PLANE: &str = "control-plane";
/// Directory of the program for older minor versions of Kubernetes, and of the files that require each, from the
/// module's sources.
const OLDER: &str = "older";
/// Names the minor version whose control plane runs, as 1.33; not set: the one of go.mod.
pub const KUBERNETES_VARIABLE: &str = "TRIBUTARY_KUBERNETES";

/// The Go module and the place of what is built from it.
#[derive(Debug, Clone)]
pub struct Module {
    sources: PathBuf,
    target: PathBuf,
    /// An older minor version of Kubernetes, as 1.33.
    older: Option<String>,
}

impl Module {
    /// The module of this workspace, with cargo's own target directory.
    pub fn of_this_workspace() -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let e2e = manifest.parent().unwrap_or(manifest);
        Self::at(&e2e.join("control-plane"), &target_directory(e2e))
    }

    /// A module whose sources are in `sources`, built below `target`.
    pub fn at(sources: &Path, target: &Path) -> Self {
        Self {
            sources: sources.to_path_buf(),
            target: target.to_path_buf(),
            older: None,
        }
    }

    /// The same with an older minor version of Kubernetes.
    ///
    /// # Errors
    ///
    /// There is no file that requires it.
    pub fn older(self, minor: &str) -> Result<Self, Unavailable> {
        let known = self.older_versions();
        if known.iter().any(|one| one == minor) {
            return Ok(Self {
                older: Some(minor.to_owned()),
                ..self
            });
        }
        Err(Unavailable {
            reason: format!(
                "there is no control plane of Kubernetes {minor}: there are {} and the newest, which no version names",
                known.join(", ")
            ),
        })
    }

    /// The same with the version that the environment names.
    pub(super) fn of_environment(self) -> Result<Self, Unavailable> {
        match std::env::var(KUBERNETES_VARIABLE) {
            Ok(minor) if !minor.is_empty() => self.older(&minor),
            _ => Ok(self),
        }
    }

    /// The older minor versions that there are.
    fn older_versions(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.sources.join(OLDER)).into_iter().flatten();
        let mut found: Vec<String> = files
            .filter_map(|file| Some(file.ok()?.file_name().to_str()?.strip_suffix(".mod")?.to_owned()))
            .collect();
        found.sort();
        found
    }

    /// The file that requires Kubernetes, and what Go has to be told of it.
    fn requirements(&self) -> PathBuf {
        match &self.older {
            Some(minor) => self.sources.join(OLDER).join(format!("{minor}.mod")),
            None => self.sources.join("go.mod"),
        }
    }

    /// The flag by which Go takes the requirements, if they are not those of go.mod.
    pub(super) fn flag(&self) -> Option<String> {
        let older = self.older.as_ref();
        older.map(|_| format!("-modfile={}", self.requirements().display()))
    }

    /// The package of the program, as Go names it.
    pub(super) fn package(&self) -> String {
        match self.older {
            Some(_) => format!("./{OLDER}"),
            None => ".".to_owned(),
        }
    }

    /// Returns true if it is the control plane of an older Kubernetes, which has no etcd.
    pub(super) fn is_older(&self) -> bool {
        self.older.is_some()
    }

    /// The directory of the Go sources.
    pub fn sources(&self) -> &Path {
        &self.sources
    }

    /// Path of the binary.
    pub fn binary(&self) -> PathBuf {
        let older = self.older.as_ref().map(|minor| format!("-{minor}"));
        let name = format!("{CONTROL_PLANE}{}", older.unwrap_or_default());
        self.target.join(CONTROL_PLANE).join(name)
    }

    /// The command that builds it.
    fn command(&self) -> String {
        match &self.older {
            Some(minor) => build_older_control_plane(minor),
            None => BUILD_CONTROL_PLANE.to_owned(),
        }
    }

    /// Cargo's target directory.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Directory of the tools beside it.
    pub fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    fn stamp(&self) -> PathBuf {
        let mut stamp = self.binary().into_os_string();
        stamp.push(".hash");
        stamp.into()
    }

    /// The binary, when it is there and was built from the present sources.
    pub fn built(&self) -> Result<PathBuf, Unavailable> {
        let binary = self.binary();
        if !binary.is_file() {
            return Err(Unavailable {
                reason: format!("no control plane is built; run `{}`", self.command()),
            });
        }
        let stamped = std::fs::read_to_string(self.stamp()).unwrap_or_default();
        match self.hash() {
            Ok(hash) if hash == stamped.trim() => Ok(binary),
            Ok(_) => Err(Unavailable {
                reason: format!(
                    "the control plane is older than its sources; run `{}`",
                    self.command()
                ),
            }),
            Err(error) => Err(Unavailable {
                reason: format!("cannot read {}: {error}", self.sources.display()),
            }),
        }
    }

    /// Records that the binary was built from sources with this hash.
    pub(super) fn record(&self, hash: &str) -> std::io::Result<()> {
        std::fs::write(self.stamp(), hash)
    }

    /// One hash over everything the binary is made from, in the order of the file names.
    pub(super) fn hash(&self) -> std::io::Result<String> {
        let directory = match self.older {
            Some(_) => self.sources.join(OLDER),
            None => self.sources.clone(),
        };
        let mut files: Vec<PathBuf> = std::fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.retain(|path| is_source(path));
        if self.older.is_some() {
            let requirements = self.requirements();
            files.retain(|path| path.extension().is_some_and(|extension| extension == "go"));
            files.extend([requirements.with_extension("sum"), requirements]);
        }
        files.sort();
        let mut hasher = blake3::Hasher::new();
        for path in files {
            let length = std::fs::metadata(&path)?.len();
            if length > SOURCE_BYTES_MAX {
                let what = format!("{} is larger than {SOURCE_BYTES_MAX} bytes", path.display());
                return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, what));
            }
            hasher.update(path.file_name().unwrap_or_default().as_encoded_bytes());
            hasher.update(&length.to_be_bytes());
            hasher.update(&std::fs::read(&path)?);
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// The Kubernetes version the module links, as its go.mod requires it.
    pub fn kubernetes_version(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.requirements()).ok()?;
        required_version(&text, "k8s.io/kubernetes")
    }
}

fn is_source(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("go" | "mod" | "sum"))
}

fn required_version(go_mod: &str, module: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        (words.next() == Some(module))
            .then(|| words.next().map(str::to_owned))
            .flatten()
    })
}

/// Cargo marks its target directory; the running program lies somewhere below it, wherever it was put. The copy of the
/// workspace that has variants in it is built in a directory of its own below that one (`verify::variants`), where
/// nothing but what cargo builds is: of several marked ones the first counts that has a control plane.
fn target_directory(manifest: &Path) -> PathBuf {
    let running = std::env::current_exe().unwrap_or_default();
    // The manifest's parent, and not `..` behind it: people read these paths.
    let workspace = manifest.parent().unwrap_or(manifest);
    marked_above(&running).unwrap_or_else(|| workspace.join("target"))
}

fn marked_above(running: &Path) -> Option<PathBuf> {
    let is_marked = |directory: &&Path| directory.join("CACHEDIR.TAG").is_file();
    let marked: Vec<&Path> = running.ancestors().filter(is_marked).collect();
    let built = marked
        .iter()
        .find(|directory| directory.join(CONTROL_PLANE).is_dir());
    built.or(marked.first()).map(|directory| directory.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module_with_binary() -> (tempfile::TempDir, Module) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let module = Module::at(
            &directory.path().join("sources"),
            &directory.path().join("target"),
        );
        std::fs::create_dir_all(module.sources()).expect("sources");
        std::fs::create_dir_all(module.binary().parent().expect("a parent")).expect("target");
        std::fs::write(module.sources().join("main.go"), "package main").expect("a source");
        std::fs::write(module.binary(), "binary").expect("a binary");
        (directory, module)
    }

    #[test]
    fn a_binary_counts_only_with_the_hash_of_its_sources() {
        let (_directory, module) = module_with_binary();
        module.built().expect_err("no hash is recorded");
        module.record(&module.hash().expect("a hash")).expect("recorded");
        assert_eq!(module.built().expect("it is current"), module.binary());
        std::fs::write(module.sources().join("main.go"), "package other").expect("a change");
        let refused = module.built().expect_err("the sources changed");
        assert!(refused.reason.contains("older than its sources"), "{refused}");
    }

    #[test]
    fn files_that_are_no_sources_do_not_change_the_hash() {
        let (_directory, module) = module_with_binary();
        let before = module.hash().expect("a hash");
        std::fs::write(module.sources().join("notes.md"), "words").expect("a note");
        assert_eq!(module.hash().expect("a hash"), before);
    }

    #[test]
    fn a_copy_below_the_target_directory_has_its_control_plane() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let outer = directory.path().join("target");
        let inner = outer.join("variants").join("target");
        let running = inner.join("sim").join("deps").join("e2e");
        std::fs::create_dir_all(running.parent().expect("a parent")).expect("directories");
        assert_eq!(marked_above(&running), None);
        for target in [&outer, &inner] {
            std::fs::write(target.join("CACHEDIR.TAG"), "").expect("a mark");
        }
        assert_eq!(marked_above(&running), Some(inner), "there is no control plane");
        std::fs::create_dir(outer.join(CONTROL_PLANE)).expect("a directory");
        assert_eq!(marked_above(&running), Some(outer));
    }

    #[test]
    fn an_older_version_has_a_binary_and_a_hash_of_its_own() {
        let (_directory, module) = module_with_binary();
        module.record(&module.hash().expect("a hash")).expect("recorded");
        let refused = module.clone().older("1.33").expect_err("nothing requires it");
        assert!(refused.reason.contains("1.33"), "{refused}");
        let folder = module.sources().join(OLDER);
        std::fs::create_dir(&folder).expect("a directory");
        for (file, text) in [
            ("1.33.mod", "require k8s.io/kubernetes v1.33.9\n"),
            ("1.33.sum", ""),
        ] {
            std::fs::write(folder.join(file), text).expect("a file");
        }
        module.built().expect("the newest is as it was");
        let older = module.clone().older("1.33").expect("it is required");
        assert_eq!(older.kubernetes_version().as_deref(), Some("v1.33.9"));
        assert_ne!(older.binary(), module.binary());
        let refused = older.built().expect_err("it is not built");
        assert!(refused.reason.ends_with("build --kubernetes 1.33`"), "{refused}");
        std::fs::write(older.binary(), "binary").expect("a binary");
        older.record(&older.hash().expect("a hash")).expect("recorded");
        older.built().expect("it is built");
        std::fs::write(module.sources().join("go.mod"), "module x").expect("a change");
        older.built().expect("go.mod is not its own");
        std::fs::write(folder.join("1.33.sum"), "other").expect("a change");
        older.built().expect_err("its sources changed");
    }

    #[test]
    fn the_kubernetes_version_is_read_from_go_mod() {
        let go_mod = "module x\n\nrequire (\n\tk8s.io/component-base v0.1.2\n\tk8s.io/kubernetes v1.2.3\n)\n";
        assert_eq!(
            required_version(go_mod, "k8s.io/kubernetes").as_deref(),
            Some("v1.2.3")
        );
        assert_eq!(required_version(go_mod, "k8s.io/absent"), None);
    }
}

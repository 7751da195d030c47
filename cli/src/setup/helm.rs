//! The user's own Helm, and the charts: those of this client, of a directory, or of a registry.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, anyhow, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use serde::Deserialize;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use super::{
    args::ChartArgs,
    cluster::Cluster,
    progress::Progress,
    values::{DEFINITIONS, Definition, Release, definitions, newer_than_client, release_needs},
};

/// The oldest Helm that has all flags that are used: `--reset-then-reuse-values`.
const OLDEST: (u32, u32) = (3, 14);
/// The page that says how Helm is installed.
const INSTALL: &str = "https://helm.sh/docs/intro/install";
/// The release of the definitions.
pub(super) const DEFINITIONS_RELEASE: &str = "tributary-crds";
/// By which Helm marks what a release owns.
const OWNER: &str = "meta.helm.sh/release-name";
/// By which Helm marks the namespace of that release.
const OWNER_NAMESPACE: &str = "meta.helm.sh/release-namespace";
/// Helm's words for a missing release. Other errors have the words "not found" too.
const NO_RELEASE: &str = "release: not found";

/// Helm, as the user has it.
pub(super) struct Helm {
    program: PathBuf,
}

/// A chart: where Helm finds it, and flags for that.
struct Chart {
    place: OsString,
    flags: Vec<OsString>,
}

/// The charts.
pub(super) struct Charts {
    place: Place,
    args: ChartArgs,
}

enum Place {
    Embedded(TempDir),
    Directory(PathBuf),
    Registry(String),
}

/// The output of `helm get metadata`.
#[derive(Deserialize)]
struct Metadata {
    version: String,
    status: String,
}

impl Helm {
    /// Finds it and checks its version.
    pub(super) async fn find(program: &Path) -> anyhow::Result<Self> {
        let shown = program.display();
        let output = Command::new(program)
            .args(["version", "--template", "{{.Version}}"])
            .stdin(Stdio::null())
            .output()
            .await;
        let output = match output {
            Ok(output) => output,
            Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
                "{shown} was not found. Install Helm {}.{} or newer ({INSTALL}), or name it with --helm",
                OLDEST.0,
                OLDEST.1
            ),
            Err(error) => return Err(error).with_context(|| format!("cannot run {shown}")),
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let version =
            version(&text).with_context(|| format!("`{shown} version` prints no version: {text}"))?;
        ensure!(
            version >= OLDEST,
            "{shown} is Helm {}.{}, and {}.{} or newer is needed: {INSTALL}",
            version.0,
            version.1,
            OLDEST.0,
            OLDEST.1
        );
        Ok(Self {
            program: program.to_owned(),
        })
    }

    async fn run(&self, cluster: &Cluster, arguments: &[OsString]) -> anyhow::Result<String> {
        let mut helm = Command::new(&self.program);
        helm.args(arguments)
            .arg("--kube-context")
            .arg(&cluster.args.context);
        helm.arg("--namespace").arg(cluster.namespace());
        if let Some(path) = &cluster.args.kubeconfig {
            helm.arg("--kubeconfig").arg(path);
        }
        let output = helm.stdin(Stdio::null()).output().await;
        let output = output.with_context(|| format!("cannot run {}", self.program.display()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().trim_start_matches("Error: ").to_owned();
        Err(anyhow!(said))
    }

    /// A release of this name; `None` if there is none.
    pub(super) async fn release(&self, cluster: &Cluster, name: &str) -> anyhow::Result<Option<Release>> {
        let get = |what: &str| ["get", what, name, "--output", "json"].map(OsString::from);
        let metadata = match self.run(cluster, &get("metadata")).await {
            Ok(metadata) => metadata,
            Err(error) if says_no_release(&error) => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("Helm cannot show the release {name}")),
        };
        let values = self.run(cluster, &get("values")).await?;
        let unreadable = || format!("Helm's output about the release {name} cannot be read");
        let metadata: Metadata = serde_json::from_str(&metadata).with_context(unreadable)?;
        Ok(Some(Release {
            version: metadata.version,
            status: metadata.status,
            values: serde_json::from_str(&values).with_context(unreadable)?,
        }))
    }

    /// Installs or updates a release. One that was interrupted is repaired first: nobody else works on it.
    pub(super) async fn apply(
        &self,
        cluster: &Cluster,
        charts: &Charts,
        (chart, before): (&str, Option<&Release>),
        values: &Value,
    ) -> anyhow::Result<()> {
        let name = format!("tributary-{chart}");
        let failed = || format!("Helm cannot install {name}");
        let status = before.map(|release| release.status.as_str()).unwrap_or_default();
        match status {
            "pending-install" | "uninstalling" => self.uninstall(cluster, &name).await.map(drop)?,
            "pending-upgrade" | "pending-rollback" => {
                let rollback = ["rollback", &name].map(OsString::from);
                self.run(cluster, &rollback)
                    .await
                    .map(drop)
                    .with_context(failed)?;
            }
            _ => {}
        }
        let mut file = tempfile::NamedTempFile::new().context("cannot write values for Helm")?;
        io::Write::write_all(&mut file, values.to_string().as_bytes())?;
        let Chart { place, flags } = charts.chart(chart);
        let mut arguments = ["upgrade", "--install", &name].map(OsString::from).to_vec();
        arguments.push(place);
        arguments.extend(flags);
        arguments.extend(["--reset-then-reuse-values", "--values"].map(OsString::from));
        arguments.push(file.path().into());
        if chart != "crds" {
            for file in &charts.args.values {
                arguments.extend(["--values".into(), file.into()]);
            }
            for set in &charts.args.set {
                arguments.extend(["--set".into(), set.into()]);
            }
        }
        self.run(cluster, &arguments).await.map(drop).with_context(failed)
    }

    /// Uninstalls a release; true if there was one.
    pub(super) async fn uninstall(&self, cluster: &Cluster, name: &str) -> anyhow::Result<bool> {
        let arguments = ["uninstall", name, "--wait"].map(OsString::from);
        match self.run(cluster, &arguments).await {
            Ok(_) => Ok(true),
            Err(error) if says_no_release(&error) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("Helm cannot uninstall {name}")),
        }
    }
}

impl Charts {
    /// The charts that the flags name; those of this client unless they name others.
    pub(super) fn of(args: &ChartArgs) -> anyhow::Result<Self> {
        let place = match args.charts.as_deref() {
            Some(registry) if registry.starts_with("oci://") => {
                Place::Registry(registry.trim_end_matches('/').to_owned())
            }
            Some(directory) => {
                let directory = PathBuf::from(directory);
                let found = directory.join("hub/Chart.yaml").is_file()
                    && directory.join("agent/Chart.yaml").is_file();
                ensure!(
                    found,
                    "--charts {} has no charts: it needs the directories crds, hub and agent",
                    directory.display()
                );
                Place::Directory(directory)
            }
            None => {
                let directory = tempfile::tempdir().context("cannot make a directory for the charts")?;
                charts::unpack(directory.path()).context("cannot unpack the charts")?;
                Place::Embedded(directory)
            }
        };
        Ok(Self {
            place,
            args: args.clone(),
        })
    }

    /// True if the user gave values or charts that only Helm can compare with those of a release.
    pub(super) fn given(&self) -> bool {
        !matches!(self.place, Place::Embedded(_)) || !self.args.set.is_empty() || !self.args.values.is_empty()
    }

    /// A release that these charts are to install or update.
    ///
    /// # Errors
    ///
    /// It is newer than this client: an update would go back to an older version.
    pub(super) async fn release(
        &self,
        (cluster, helm): (&Cluster, &Helm),
        name: &str,
    ) -> anyhow::Result<Option<Release>> {
        let release = helm.release(cluster, name).await?;
        let newer = release.as_ref().and_then(newer_than_client);
        match newer.filter(|_| !matches!(self.place, Place::Directory(_))) {
            Some(why) => bail!("nothing was changed: {name} in {}: {why}", cluster.namespace()),
            None => Ok(release),
        }
    }

    fn chart(&self, name: &str) -> Chart {
        let at = |directory: &Path| Chart {
            place: directory.join(name).into(),
            flags: Vec::new(),
        };
        match &self.place {
            Place::Embedded(directory) => at(&directory.path().join("charts")),
            Place::Directory(directory) => at(directory),
            Place::Registry(registry) => Chart {
                place: format!("{registry}/tributary-{name}").into(),
                flags: ["--version", env!("CARGO_PKG_VERSION")]
                    .map(OsString::from)
                    .to_vec(),
            },
        }
    }
}

/// The definitions in a cluster, and the release of their chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Definitions {
    pub(super) seen: [Definition; 4],
    pub(super) release: Option<Release>,
    /// Only Helm can compare.
    pub(super) given: bool,
}

impl Definitions {
    /// Looks at them.
    pub(super) async fn look(cluster: &Cluster, helm: &Helm, charts: &Charts) -> anyhow::Result<Self> {
        let definitions = Api::<CustomResourceDefinition>::all(cluster.client.clone());
        let mut seen = [Definition::Missing; 4];
        for (seen, (name, _)) in seen.iter_mut().zip(DEFINITIONS) {
            let found = definitions
                .get_opt(name)
                .await
                .map_err(|error| cluster.failed(error))?;
            *seen = definition(found.as_ref(), cluster.namespace());
        }
        Ok(Self {
            seen,
            release: charts.release((cluster, helm), DEFINITIONS_RELEASE).await?,
            given: matches!(charts.place, Place::Directory(_) | Place::Registry(_)),
        })
    }

    /// The reason to call Helm; `None`: all are there.
    pub(super) fn needs(&self) -> Option<String> {
        let values = definitions(self.seen)?;
        if self.seen.contains(&Definition::Missing) {
            return Some("definitions are missing".to_owned());
        }
        release_needs(self.release.as_ref(), &values, self.given)
    }

    /// Installs those that are missing.
    pub(super) async fn install(
        &self,
        (cluster, helm, charts): (&Cluster, &Helm, &Charts),
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        if let Some(values) = definitions(self.seen) {
            helm.apply(cluster, charts, ("crds", self.release.as_ref()), &values)
                .await?;
        }
        progress.done("definitions", "the definitions (Helm release tributary-crds)")
    }
}

/// True if Helm says that there is no such release.
fn says_no_release(error: &anyhow::Error) -> bool {
    error.to_string().contains(NO_RELEASE)
}

/// Tells whose a definition is: a release of the same name in another namespace belongs to somebody else.
fn definition(found: Option<&CustomResourceDefinition>, namespace: &str) -> Definition {
    let Some(found) = found else {
        return Definition::Missing;
    };
    let annotation = |name: &str| found.metadata.annotations.as_ref()?.get(name).map(String::as_str);
    if (annotation(OWNER), annotation(OWNER_NAMESPACE)) == (Some(DEFINITIONS_RELEASE), Some(namespace)) {
        return Definition::Ours;
    }
    Definition::Foreign
}

/// Major and minor version of `v3.14.2` or `v4.3`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().trim_start_matches('v').split(['.', '-', '+']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("v3.14.2"), Some((3, 14)));
        assert_eq!(version("v4.3\n"), Some((4, 3)));
        assert!(version("v3.9.0").is_some_and(|old| old < OLDEST));
        assert!(version("v4.0.0-rc.1").is_some_and(|new| new >= OLDEST));
        assert_eq!(version("dev"), None);
    }

    #[test]
    fn only_a_missing_release_counts_as_none() {
        let missing = |said: &str| says_no_release(&anyhow!(said.to_owned()));
        assert!(missing("release: not found"));
        assert!(missing(
            "uninstall: Release not loaded: tributary-hub: release: not found"
        ));
        for other in [
            "Kubernetes cluster unreachable: executable aws not found",
            "namespaces \"x\" not found",
            "context \"hub\" not found",
        ] {
            assert!(!missing(other), "{other}");
        }
    }

    #[test]
    fn a_definition_of_a_release_in_another_namespace_is_foreign() {
        let of = |annotations: &[(&str, &str)]| {
            let mut found = CustomResourceDefinition::default();
            let pairs = annotations.iter();
            let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            found.metadata.annotations = Some(pairs.collect());
            definition(Some(&found), "ours")
        };
        assert_eq!(definition(None, "ours"), Definition::Missing);
        assert_eq!(of(&[]), Definition::Foreign);
        assert_eq!(of(&[(OWNER, DEFINITIONS_RELEASE)]), Definition::Foreign);
        assert_eq!(
            of(&[(OWNER, DEFINITIONS_RELEASE), (OWNER_NAMESPACE, "theirs")]),
            Definition::Foreign
        );
        assert_eq!(
            of(&[(OWNER, "another"), (OWNER_NAMESPACE, "ours")]),
            Definition::Foreign
        );
        assert_eq!(
            of(&[(OWNER, DEFINITIONS_RELEASE), (OWNER_NAMESPACE, "ours")]),
            Definition::Ours
        );
    }

    #[tokio::test]
    async fn a_machine_without_helm_is_told_where_it_comes_from() {
        let error = Helm::find(Path::new("/nonexistent/helm"))
            .await
            .err()
            .expect("none");
        assert!(error.to_string().contains(INSTALL), "{error}");
    }
}

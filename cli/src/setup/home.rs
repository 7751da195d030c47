//! What is kept on this machine: the keys of a clusterset, and what later commands need, in a directory beside the contexts.
//! A key is readable by its owner only, and is never made anew.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail, ensure};
use certs::{CertificateAuthority, Directory, Subject, Validity, read_authority};
use serde::{Deserialize, Serialize};
use shared::{
    model::{Clusterset, advice},
    tls::Pem,
};

use super::args::{ClusterArgs, ServiceType};
use crate::context::{Context as ClientContext, Pem as ContextPem, Store};

/// The file that remembers clusters.
const REMEMBERED: &str = "setup.json";

/// The directory of a clusterset.
pub(super) struct Home {
    pub(super) directory: PathBuf,
    pub(super) clusterset: String,
    store: Store,
}

/// What later commands need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Remembered {
    /// The hub, once its address is known.
    pub(super) hub: Option<HubPlace>,
    /// The clusters that joined, by id.
    pub(super) members: BTreeMap<String, MemberPlace>,
}

/// Where the hub is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct HubPlace {
    /// Its addresses, as `https://HOST:PORT`. Empty until `init` knows them.
    pub(super) hubs: Vec<String>,
    /// Where clusters join.
    pub(super) joins: Vec<String>,
    /// The operator whose certificate is here.
    pub(super) operator: String,
    /// The type of its Service.
    pub(super) service_type: ServiceType,
    /// The address that the user gave, as `https://HOST:PORT`.
    pub(super) given: Option<String>,
    /// Where clusters join, as the user gave it.
    pub(super) given_join: Option<String>,
    /// UID of the kube-system namespace of its cluster. `None` if `init --print` or an older client wrote this.
    pub(super) cluster: Option<String>,
    /// Its namespace.
    pub(super) namespace: Option<String>,
    /// It has answered its operator once, so that clusters may have joined.
    pub(super) served: bool,
}

/// A member's cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MemberPlace {
    context: String,
    kubeconfig: Option<PathBuf>,
    namespace: String,
}

impl From<&ClusterArgs> for MemberPlace {
    fn from(args: &ClusterArgs) -> Self {
        Self {
            context: args.context.clone(),
            kubeconfig: args
                .kubeconfig
                .clone()
                .map(|path| std::path::absolute(&path).unwrap_or(path)),
            namespace: args.namespace.clone(),
        }
    }
}

impl MemberPlace {
    /// The cluster, as flags name it.
    pub(super) fn args(&self) -> ClusterArgs {
        ClusterArgs {
            context: self.context.clone(),
            kubeconfig: self.kubeconfig.clone(),
            namespace: self.namespace.clone(),
        }
    }
}

/// A pair of files of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pair {
    /// Both are there.
    Whole,
    /// The certificate is missing: nothing was made with the key yet.
    Missing,
    /// The key is missing.
    WithoutKey,
}

impl Home {
    /// The directory of a clusterset, beside this file of contexts or the user's.
    pub(super) fn of(config: Option<PathBuf>, clusterset: &str) -> anyhow::Result<Self> {
        let store = config.map_or_else(Store::of_user, |path| Ok(Store::at(path)))?;
        let directory = store.path().parent().unwrap_or(Path::new(".")).join(clusterset);
        Ok(Self {
            directory,
            clusterset: clusterset.to_owned(),
            store,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A text of the directory; `None` if the file is not there.
    pub(super) fn text(&self, name: &str) -> anyhow::Result<Option<String>> {
        let path = self.file(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// A text that must be there.
    pub(super) fn need(&self, name: &str) -> anyhow::Result<String> {
        let text = self.text(name)?;
        text.with_context(|| {
            format!(
                "{} is missing: run `{}`, or copy the directory from the machine where it ran",
                self.file(name).display(),
                advice::init()
            )
        })
    }

    /// Looks at `NAME.crt` and `NAME.key`.
    pub(super) fn pair(&self, name: &str) -> anyhow::Result<Pair> {
        let is_there = |ending: &str| anyhow::Ok(self.text(&format!("{name}.{ending}"))?.is_some());
        Ok(match (is_there("crt")?, is_there("key")?) {
            (true, true) => Pair::Whole,
            (true, false) => Pair::WithoutKey,
            (false, _) => Pair::Missing,
        })
    }

    fn open(&self) -> anyhow::Result<Directory> {
        // A key without its certificate was left by a command that was interrupted: it is replaced.
        let directory = Directory::open(&self.directory, true)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let private = fs::set_permissions(&self.directory, fs::Permissions::from_mode(0o700));
            private.with_context(|| format!("cannot protect {}", self.directory.display()))?;
        }
        Ok(directory)
    }

    /// Makes the authority of the clusterset.
    pub(super) fn make_authority(&self) -> anyhow::Result<()> {
        ensure!(
            self.pair("ca")? == Pair::Missing,
            "there is an authority in {}",
            self.directory.display()
        );
        let trust_domain = format!("tributary-{:016x}.internal", rand::random::<u64>());
        let clusterset = Clusterset::new(&trust_domain, &self.clusterset)?;
        let days = Validity::days_from_now(Validity::AUTHORITY_DAYS);
        let authority = CertificateAuthority::generate(&clusterset, days)?;
        self.open()?.write_authority(&authority).map(drop)
    }

    fn authority(&self) -> anyhow::Result<CertificateAuthority> {
        read_authority(&self.directory, None, None)
    }

    /// Makes the authority with which clusters join.
    pub(super) fn make_joining(&self) -> anyhow::Result<()> {
        let joining = self
            .authority()?
            .members_only(Validity::days_from_now(Validity::LEAF_DAYS))?;
        self.open()?.write_joining(&joining).map(drop)
    }

    /// Issues a certificate.
    pub(super) fn issue(&self, subject: &Subject) -> anyhow::Result<()> {
        let issued = self
            .authority()?
            .issue(subject, Validity::days_from_now(Validity::LEAF_DAYS))?;
        self.open()?.write_issued(&issued).map(drop)
    }

    /// What an operator needs for TLS.
    pub(super) fn operator(&self, name: &str) -> anyhow::Result<Pem> {
        Ok(Pem {
            cert: self.need(&format!("{name}.crt"))?.into_bytes(),
            key: self.need(&format!("{name}.key"))?.into_bytes(),
            ca: self.need("ca.crt")?.into_bytes(),
        })
    }

    /// What earlier commands remembered.
    pub(super) fn remembered(&self) -> anyhow::Result<Remembered> {
        let Some(text) = self.text(REMEMBERED)? else {
            return Ok(Remembered::default());
        };
        serde_json::from_str(&text)
            .with_context(|| format!("{} cannot be read", self.file(REMEMBERED).display()))
    }

    /// The hub that `init` made.
    pub(super) fn hub(&self) -> anyhow::Result<HubPlace> {
        match self.remembered()?.hub {
            Some(hub) => Ok(hub),
            None => bail!(
                "clusterset {} has no hub yet: run `{}` first, or copy {} from the machine where it ran",
                self.clusterset,
                advice::init(),
                self.directory.display()
            ),
        }
    }

    /// Changes what is remembered; true if that was a change.
    pub(super) fn remember(&self, change: impl FnOnce(&mut Remembered)) -> anyhow::Result<bool> {
        let before = self.remembered()?;
        let mut after = before.clone();
        change(&mut after);
        if before == after {
            return Ok(false);
        }
        self.open()?;
        let path = self.file(REMEMBERED);
        let cannot = || format!("cannot write {}", path.display());
        let mut file = tempfile::NamedTempFile::new_in(&self.directory).with_context(cannot)?;
        io::Write::write_all(&mut file, &serde_json::to_vec_pretty(&after)?).with_context(cannot)?;
        file.persist(&path).with_context(cannot)?;
        Ok(true)
    }

    /// The context for the hub as it should be in the file of the contexts.
    fn wanted_context(&self, hub: &HubPlace) -> anyhow::Result<ClientContext> {
        let addresses: Result<Vec<_>, _> = hub.hubs.iter().map(|text| text.parse()).collect();
        let file = |name: String| ContextPem::File(self.file(&name));
        Ok(ClientContext {
            name: self.clusterset.clone(),
            clusterset: Some(self.authority()?.clusterset().to_string()),
            hub: addresses?,
            ca: file("ca.crt".to_owned()),
            certificate: file(format!("{}.crt", hub.operator)),
            key: file(format!("{}.key", hub.operator)),
        })
    }

    /// True if the file of the contexts has the hub.
    pub(super) fn has_context(&self, hub: &HubPlace) -> anyhow::Result<bool> {
        let wanted = self.wanted_context(hub)?;
        Ok(self.store.read()?.get(&self.clusterset) == Some(&wanted))
    }

    /// Puts the hub into the file of the contexts.
    pub(super) fn put_context(&self, hub: &HubPlace) -> anyhow::Result<()> {
        self.store.put(self.wanted_context(hub)?)
    }

    /// Takes the hub out of the file of the contexts.
    pub(super) fn remove_context(&self) -> anyhow::Result<bool> {
        self.store
            .change(|contexts| Ok(contexts.remove(&self.clusterset)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(directory: &Path) -> Home {
        Home::of(Some(directory.join("config.yaml")), "default").expect("a home")
    }

    #[test]
    fn keys_are_made_once_and_a_key_alone_is_made_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = home(directory.path());
        assert_eq!(home.pair("ca").expect("looked"), Pair::Missing);
        fs::create_dir_all(&home.directory).expect("made");
        fs::write(home.file("ca.key"), "half").expect("written");
        home.make_authority().expect("made");
        assert_eq!(home.pair("ca").expect("looked"), Pair::Whole);
        home.make_authority().expect_err("never twice");
        home.make_joining().expect("made");
        home.issue(&Subject::Operator("admin".to_owned()))
            .expect("issued");
        home.operator("admin").expect("whole");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            for name in ["ca.key", "joining.ca.key", "admin.key"] {
                let mode = fs::metadata(home.file(name)).expect("there").permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{name}");
            }
        }
        fs::remove_file(home.file("ca.key")).expect("removed");
        assert_eq!(home.pair("ca").expect("looked"), Pair::WithoutKey);
    }

    #[test]
    fn a_change_is_remembered_and_the_context_leads_to_the_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let home = home(directory.path());
        home.hub().expect_err("no hub yet");
        home.make_authority().expect("made");
        let hub = HubPlace {
            hubs: vec!["https://192.0.2.1:8443".to_owned()],
            operator: "admin".to_owned(),
            service_type: ServiceType::NodePort,
            ..HubPlace::default()
        };
        assert!(home.remember(|all| all.hub = Some(hub.clone())).expect("written"));
        assert!(
            !home
                .remember(|all| all.hub = Some(hub.clone()))
                .expect("the same")
        );
        assert_eq!(home.hub().expect("remembered"), hub);
        assert!(!home.has_context(&hub).expect("looked"));
        home.put_context(&hub).expect("put");
        assert!(home.has_context(&hub).expect("looked"));
        assert!(home.remove_context().expect("removed"));
    }
}

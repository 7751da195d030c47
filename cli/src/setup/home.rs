//! The client's directory on this machine, beside the contexts: the keys of a clusterset, and what later commands need
//! (`remembered.rs`). A key is readable by its owner only, and is never made anew.

mod remembered;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf, absolute},
};

use anyhow::{Context, bail, ensure};
use certs::{CertificateAuthority, Directory, Subject, Validity, read_authority};
use shared::{
    identity::CertificateFacts,
    model::{Clusterset, advice},
    tls::{Pem, certificates_in},
};

use crate::context::{Context as ClientContext, Pem as ContextPem, Store, lock};

pub(super) use remembered::{HubPlace, MemberPlace, Remembered};

/// The file that remembers clusters.
const REMEMBERED: &str = "setup.json";
/// Locked while a command changes the directory.
const LOCK: &str = ".lock";
/// The files of the authority.
const AUTHORITY: &str = "ca";
/// Once one of these is there, the authority was used.
const AFTER_AUTHORITY: [&str; 3] = ["joining.ca.crt", "hub.crt", REMEMBERED];

/// The directory of a clusterset.
pub(super) struct Home {
    pub(super) directory: PathBuf,
    pub(super) clusterset: String,
    store: Store,
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
    /// The certificate is missing, and something was made with the key.
    WithoutCertificate,
}

impl Pair {
    /// The state of a pair with these parts; `used` if something was made with its key.
    fn of(has_certificate: bool, has_key: bool, used: bool) -> Self {
        match (has_certificate, has_key) {
            (true, true) => Self::Whole,
            (true, false) => Self::WithoutKey,
            (false, true) if used => Self::WithoutCertificate,
            (false, _) => Self::Missing,
        }
    }
}

impl Home {
    /// The directory of a clusterset, beside this file of contexts or the user's.
    pub(super) fn of(config: Option<PathBuf>, clusterset: &str) -> anyhow::Result<Self> {
        let store = config.map_or_else(Store::of_user, |path| Ok(Store::at(path)))?;
        // A context holds the paths of keys: they must not depend on the working directory.
        let path = absolute(store.path());
        let path = path.with_context(|| format!("cannot find {}", store.path().display()))?;
        let store = Store::at(path);
        let directory = store.path().parent().unwrap_or(Path::new("/")).join(clusterset);
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
        let has = |name: &str| anyhow::Ok(self.text(name)?.is_some());
        let (certificate, key) = (has(&format!("{name}.crt"))?, has(&format!("{name}.key"))?);
        let mut used = false;
        if name == AUTHORITY {
            for later in AFTER_AUTHORITY {
                used |= has(later)?;
            }
        }
        Ok(Pair::of(certificate, key, used))
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

    /// Opens the directory for changes, one command at a time.
    fn open_alone(&self) -> anyhow::Result<(Directory, File)> {
        let directory = self.open()?;
        Ok((directory, lock(&self.file(LOCK))?))
    }

    /// Makes the authority of the clusterset.
    pub(super) fn make_authority(&self) -> anyhow::Result<()> {
        let (directory, _lock) = self.open_alone()?;
        ensure!(
            self.pair(AUTHORITY)? == Pair::Missing,
            "{} has files of an authority, which another command made meanwhile: run this command again",
            self.directory.display()
        );
        self.put_aside(&format!("{AUTHORITY}.key"))?;
        let trust_domain = format!("tributary-{:016x}.internal", rand::random::<u64>());
        let clusterset = Clusterset::new(&trust_domain, &self.clusterset)?;
        let days = Validity::days_from_now(Validity::AUTHORITY_DAYS);
        let authority = CertificateAuthority::generate(&clusterset, days)?;
        directory.write_authority(&authority).map(drop)
    }

    /// Renames a key that an interrupted command left: nothing was made with it, and still it is not overwritten.
    fn put_aside(&self, name: &str) -> anyhow::Result<()> {
        let path = self.file(name);
        let free = (1_u32..)
            .map(|number| self.file(&format!("{name}.old{number}")))
            .find(|aside| !aside.exists());
        match free.map_or(Ok(()), |aside| fs::rename(&path, aside)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot rename {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    fn authority(&self) -> anyhow::Result<CertificateAuthority> {
        read_authority(&self.directory, None, None)
    }

    /// Makes the authority with which clusters join, unless it is there by now.
    pub(super) fn make_joining(&self) -> anyhow::Result<()> {
        let (directory, _lock) = self.open_alone()?;
        if self.pair("joining.ca")? == Pair::Whole {
            return Ok(());
        }
        let joining = self
            .authority()?
            .members_only(Validity::days_from_now(Validity::LEAF_DAYS))?;
        directory.write_joining(&joining).map(drop)
    }

    /// Issues a certificate, unless it is there by now.
    pub(super) fn issue(&self, subject: &Subject) -> anyhow::Result<()> {
        let (directory, _lock) = self.open_alone()?;
        let name = match subject {
            Subject::Member(id) => id.as_str(),
            Subject::Hub { name, .. } | Subject::Operator(name) | Subject::Reader(name) => name,
        };
        if self.pair(name)? == Pair::Whole {
            return Ok(());
        }
        let issued = self
            .authority()?
            .issue(subject, Validity::days_from_now(Validity::LEAF_DAYS))?;
        directory.write_issued(&issued).map(drop)
    }

    /// The operator's TLS credentials.
    pub(super) fn operator(&self, name: &str) -> anyhow::Result<Pem> {
        Ok(Pem {
            cert: self.need(&format!("{name}.crt"))?.into_bytes(),
            key: self.need(&format!("{name}.key"))?.into_bytes(),
            ca: self.need("ca.crt")?.into_bytes(),
        })
    }

    /// The clusterset of an operator's certificate.
    pub(super) fn clusterset_of(&self, operator: &str) -> anyhow::Result<Clusterset> {
        let name = format!("{operator}.crt");
        let cannot = || format!("{} is no certificate", self.file(&name).display());
        let certificates = certificates_in("operator.crt", self.need(&name)?.as_bytes())?;
        let facts = CertificateFacts::read(certificates.first().with_context(cannot)?);
        Ok(facts.with_context(cannot)?.identity.clusterset)
    }

    /// Everything that earlier commands remembered.
    pub(super) fn remembered(&self) -> anyhow::Result<Remembered> {
        let Some(text) = self.text(REMEMBERED)? else {
            return Ok(Remembered::default());
        };
        serde_json::from_str(&text)
            .with_context(|| format!("{} cannot be read", self.file(REMEMBERED).display()))
    }

    /// The hub that `init` made, once its address is known.
    pub(super) fn hub(&self) -> anyhow::Result<HubPlace> {
        match self.remembered()?.hub {
            Some(hub) if !hub.hubs.is_empty() => Ok(hub),
            _ => bail!(
                "clusterset {} has no hub yet: run `{}` first, or copy {} from the machine where it ran",
                self.clusterset,
                advice::init(),
                self.directory.display()
            ),
        }
    }

    /// Fails if the hub of the clusterset is not in this cluster (UID of its kube-system) and namespace, but elsewhere.
    pub(super) fn check_place(&self, cluster: &str, namespace: &str) -> anyhow::Result<()> {
        let hub = self.remembered()?.hub;
        match hub.and_then(|hub| hub.is_elsewhere(&self.clusterset, cluster, namespace)) {
            Some(why) => bail!("nothing was changed: {why}"),
            None => Ok(()),
        }
    }

    /// Changes what is remembered; true if that was a change.
    pub(super) fn remember(&self, change: impl FnOnce(&mut Remembered)) -> anyhow::Result<bool> {
        let (directory, _lock) = self.open_alone()?;
        let before = self.remembered()?;
        let mut after = before.clone();
        change(&mut after);
        if before == after {
            return Ok(false);
        }
        directory.write_private(REMEMBERED, &serde_json::to_string_pretty(&after)?)?;
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

    /// True if `init` made this context: its key is a file of the directory.
    fn is_ours(&self, context: &ClientContext) -> bool {
        let beside = self.store.path().parent().unwrap_or(Path::new("/"));
        let ContextPem::File(key) = context.key.clone().below(beside) else {
            return false;
        };
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        key.parent().map(real) == Some(real(&self.directory))
    }

    /// Fails if the user has a context of this name that `init` did not make.
    pub(super) fn check_context(&self) -> anyhow::Result<()> {
        let contexts = self.store.read()?;
        match contexts.get(&self.clusterset) {
            Some(context) if !self.is_ours(context) => bail!(
                "nothing was changed: {} has a context {} that init did not make. Rename or remove it, or choose another \
                 --clusterset",
                self.store.path().display(),
                self.clusterset
            ),
            _ => Ok(()),
        }
    }

    /// Takes the hub out of the file of the contexts; true if it was there. A context that `init` did not make stays.
    pub(super) fn remove_context(&self) -> anyhow::Result<bool> {
        self.store.change(|contexts| {
            let ours = contexts
                .get(&self.clusterset)
                .is_some_and(|context| self.is_ours(context));
            Ok(ours && contexts.remove(&self.clusterset))
        })
    }
}

#[cfg(test)]
mod tests;

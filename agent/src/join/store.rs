//! Owns: where key, certificate and roots of a cluster that joined are kept: in the files of the flags, and in a Secret
//! that every pod reads. The Secret's content counts; it is changed only in the version that was read.
//! Never: makes a Secret; the agent has no right to.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, bail};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client, api::PostParams};
use shared::{
    model::KeyFingerprint,
    tls::{TlsFiles, fingerprint_of, keys_in},
};

/// Keys of the Secret: those of the type kubernetes.io/tls, with the roots as cert-manager names them.
const KEY: &str = "tls.key";
const CERTIFICATE: &str = "tls.crt";
const AUTHORITIES: &str = "ca.crt";
/// Attempts to read a Secret again that others change.
const ATTEMPTS_MAX: u32 = 5;

/// Stored credentials, as PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The private key.
    pub key: Option<String>,
    /// The certificate with what it leads over.
    pub certificate: Option<String>,
    /// The roots.
    pub authorities: Option<String>,
}

/// The place of the stored credentials.
pub(crate) struct Store<'a> {
    files: &'a TlsFiles,
    secret: Option<(Api<Secret>, &'a str)>,
}

impl Kept {
    /// Returns true if an agent can run with it.
    pub(crate) fn is_complete(&self) -> bool {
        self.key.is_some() && self.certificate.is_some() && self.authorities.is_some()
    }
}

impl<'a> Store<'a> {
    /// These files, and this Secret.
    pub(crate) fn new(files: &'a TlsFiles, secret: Option<(Client, &str, &'a str)>) -> Self {
        Self {
            files,
            secret: secret.map(|(client, namespace, name)| (Api::namespaced(client, namespace), name)),
        }
    }

    /// Reads the stored credentials.
    pub(crate) async fn read(&self) -> anyhow::Result<Kept> {
        if let Some((secrets, name)) = &self.secret {
            return Ok(from_secret(&read_secret(secrets, name).await?));
        }
        Ok(Kept {
            key: read_file(&self.files.key)?,
            certificate: read_file(&self.files.cert)?,
            authorities: read_file(&self.files.ca)?,
        })
    }

    /// Stores a key before anybody learns of it, and returns the stored one: another pod may have been faster.
    pub(crate) async fn keep_key(&self, key: String) -> anyhow::Result<String> {
        let Some((secrets, name)) = &self.secret else {
            write(&self.files.key, &key, Readers::Owner)?;
            return Ok(key);
        };
        for _ in 0..ATTEMPTS_MAX {
            let secret = read_secret(secrets, name).await?;
            if let Some(kept) = from_secret(&secret).key {
                return Ok(kept);
            }
            if replace(secrets, secret, &[(KEY, &key)]).await? {
                return Ok(key);
            }
        }
        bail!("Secret {name} is changed by others all the time: find out who does")
    }

    /// Keeps everything, the Secret first: files may be gone with the pod.
    pub(crate) async fn keep(&self, kept: &Kept) -> anyhow::Result<()> {
        let Kept {
            key: Some(key),
            certificate: Some(certificate),
            authorities: Some(authorities),
        } = kept
        else {
            bail!("there is nothing to keep");
        };
        if let Some((secrets, name)) = &self.secret {
            self.keep_in(secrets, name, (key, certificate, authorities))
                .await?;
        }
        self.write_files(kept)
    }

    async fn keep_in(
        &self,
        secrets: &Api<Secret>,
        name: &str,
        (key, certificate, authorities): (&str, &str, &str),
    ) -> anyhow::Result<()> {
        for _ in 0..ATTEMPTS_MAX {
            let secret = read_secret(secrets, name).await?;
            if from_secret(&secret).key.as_deref() != Some(key) {
                bail!("somebody replaced the key in Secret {name} meanwhile: start again");
            }
            if replace(
                secrets,
                secret,
                &[(CERTIFICATE, certificate), (AUTHORITIES, authorities)],
            )
            .await?
            {
                return Ok(());
            }
        }
        bail!("Secret {name} is changed by others all the time: find out who does")
    }

    /// Stores another key beside the one in use, before anybody learns of it, and returns the stored one: another pod
    /// may have been faster. `kept`: what was read before.
    pub(crate) async fn keep_next_key(
        &self,
        kept: &Kept,
        current: KeyFingerprint,
        made: String,
    ) -> anyhow::Result<String> {
        let keys = |kept: &Kept| keys_in(kept.key.as_deref().unwrap_or_default());
        let is_current = |key: &String| fingerprint_of(key).is_ok_and(|key| key == current);
        let in_force = keys(kept).into_iter().find(is_current);
        let in_force = in_force.context("the key in force is not the one that is kept")?;
        let both = format!("{in_force}{made}");
        let Some((secrets, name)) = &self.secret else {
            write(&self.files.key, &both, Readers::Owner)?;
            return Ok(made);
        };
        for _ in 0..ATTEMPTS_MAX {
            let secret = read_secret(secrets, name).await?;
            let now = from_secret(&secret);
            if now.key != kept.key
                && let Some(other) = keys(&now).into_iter().find(|key| !is_current(key))
            {
                return Ok(other);
            }
            if replace(secrets, secret, &[(KEY, &both)]).await? {
                return Ok(made);
            }
        }
        bail!("Secret {name} is changed by others all the time: find out who does")
    }

    /// Sees to it that the file of the key has this one, beside what it has.
    pub(crate) fn write_key_beside(&self, key: &str) -> anyhow::Result<()> {
        let text = read_file(&self.files.key)?.unwrap_or_default();
        if keys_in(&text).iter().any(|known| known == key) {
            return Ok(());
        }
        write(&self.files.key, &format!("{text}{key}"), Readers::Owner)
    }

    /// Replaces the certificate and key in use: in the Secret in one write, in the files by writing the certificate,
    /// because the key is there already.
    pub(crate) async fn switch(&self, kept: &Kept, current: KeyFingerprint) -> anyhow::Result<()> {
        let Kept {
            key: Some(key),
            certificate: Some(certificate),
            authorities: Some(authorities),
        } = kept
        else {
            bail!("there is nothing to keep");
        };
        if let Some((secrets, name)) = &self.secret {
            let values = [
                (KEY, &**key),
                (CERTIFICATE, certificate),
                (AUTHORITIES, authorities),
            ];
            self.switch_secret(secrets, name, &values, current).await?;
        }
        self.write_files(kept)
    }

    async fn switch_secret(
        &self,
        secrets: &Api<Secret>,
        name: &str,
        values: &[(&str, &str)],
        current: KeyFingerprint,
    ) -> anyhow::Result<()> {
        for _ in 0..ATTEMPTS_MAX {
            let secret = read_secret(secrets, name).await?;
            let known = keys_in(from_secret(&secret).key.as_deref().unwrap_or_default());
            if !known
                .iter()
                .any(|key| fingerprint_of(key).is_ok_and(|key| key == current))
            {
                bail!("somebody replaced the key in Secret {name} meanwhile");
            }
            if replace(secrets, secret, values).await? {
                return Ok(());
            }
        }
        bail!("Secret {name} is changed by others all the time: find out who does")
    }

    /// Puts what is kept into the files. The certificate comes when everything that it needs is there; whichever write
    /// was the last before a crash, the files fit together.
    pub(crate) fn write_files(&self, kept: &Kept) -> anyhow::Result<()> {
        for (path, text, readers) in self.writes(kept, read_file(&self.files.key)?) {
            if read_file(path)?.as_ref() != Some(&text) {
                write(path, &text, readers)?;
            }
        }
        Ok(())
    }

    /// Writes to the files, in this order, if the key's file has `before`.
    fn writes(&self, kept: &Kept, before: Option<String>) -> Vec<(&'a Path, String, Readers)> {
        let mut writes = Vec::new();
        if let (Some(before), Some(key)) = (&before, &kept.key) {
            let known = keys_in(before);
            let missing: String = keys_in(key)
                .into_iter()
                .filter(|key| !known.contains(key))
                .collect();
            writes.push((&*self.files.key, format!("{before}{missing}"), Readers::Owner));
        } else if let Some(key) = &kept.key {
            writes.push((&*self.files.key, key.clone(), Readers::Owner));
        }
        for (path, text) in [
            (&self.files.ca, &kept.authorities),
            (&self.files.cert, &kept.certificate),
        ] {
            writes.extend(text.clone().map(|text| (&**path, text, Readers::Everybody)));
        }
        if let Some(key) = &kept.key {
            writes.push((&*self.files.key, key.clone(), Readers::Owner));
        }
        writes
    }
}

fn from_secret(secret: &Secret) -> Kept {
    let text = |key: &str| {
        let bytes = secret.data.as_ref().and_then(|data| data.get(key))?;
        let text = String::from_utf8(bytes.0.clone()).ok()?;
        (!text.is_empty()).then_some(text)
    };
    Kept {
        key: text(KEY),
        certificate: text(CERTIFICATE),
        authorities: text(AUTHORITIES),
    }
}

async fn read_secret(secrets: &Api<Secret>, name: &str) -> anyhow::Result<Secret> {
    match secrets.get(name).await {
        Ok(secret) => Ok(secret),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            bail!(
                "there is no Secret {name} to keep key and certificate in: make an empty one (the chart does)"
            )
        }
        Err(error) => Err(error).with_context(|| format!("cannot read Secret {name}")),
    }
}

/// Writes over the version that was read; false if it has changed since.
async fn replace(secrets: &Api<Secret>, mut secret: Secret, values: &[(&str, &str)]) -> anyhow::Result<bool> {
    let name = secret.metadata.name.clone().unwrap_or_default();
    let data = secret.data.get_or_insert_default();
    for (key, value) in values {
        data.insert((*key).to_owned(), ByteString(value.as_bytes().to_vec()));
    }
    match secrets.replace(&name, &PostParams::default(), &secret).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot write Secret {name}")),
    }
}

/// The users who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    Everybody,
    Owner,
}

fn read_file(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok((!text.is_empty()).then_some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Writes beside the file, to the disk, and renames: a reader never sees half of it.
fn write(path: &Path, text: &str, readers: Readers) -> anyhow::Result<()> {
    let cannot = || {
        format!(
            "cannot write {}: the agent keeps its key and certificate there",
            path.display()
        )
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(directory) = directory {
        fs::create_dir_all(directory).with_context(cannot)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    match fs::remove_file(beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).with_context(cannot),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(
        &mut options,
        match readers {
            Readers::Everybody => 0o644,
            Readers::Owner => 0o600,
        },
    );
    #[cfg(not(unix))]
    let _ = readers;
    let mut file = options.open(beside).with_context(cannot)?;
    file.write_all(text.as_bytes()).with_context(cannot)?;
    file.sync_all().with_context(cannot)?;
    fs::rename(beside, path).with_context(cannot)?;
    // The name has to be on the disk too, before the key reaches a hub.
    if let Some(directory) = directory {
        fs::File::open(directory)
            .and_then(|directory| directory.sync_all())
            .with_context(cannot)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
    use shared::tls::Credentials;

    use super::*;

    #[tokio::test]
    async fn a_key_is_kept_before_there_is_a_certificate_and_found_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = |name: &str| directory.path().join("below").join(name);
        let files = TlsFiles {
            cert: file("agent.crt"),
            key: file("agent.key"),
            ca: file("ca.crt"),
        };
        let store = Store::new(&files, None);
        assert!(!store.read().await.expect("nothing is there").is_complete());
        store.keep_key("KEY".to_owned()).await.expect("kept");
        let kept = store.read().await.expect("it is there");
        assert_eq!(kept.key.as_deref(), Some("KEY"));
        assert!(!kept.is_complete());
        let whole = Kept {
            certificate: Some("CERT".to_owned()),
            authorities: Some("CA".to_owned()),
            ..kept
        };
        store.keep(&whole).await.expect("kept");
        assert!(store.read().await.expect("it is there") == whole);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&files.key).expect("a key").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{mode:o}");
        }
    }

    type Authority = CertifiedIssuer<'static, KeyPair>;

    fn authority() -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        CertifiedIssuer::self_signed(params, key).expect("signed")
    }

    /// A key with its certificate.
    fn pair(authority: &Authority) -> Kept {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        let uri = "spiffe://example.org/clusterset/default/cluster/east";
        params.subject_alt_names = vec![SanType::URI(uri.try_into().expect("ASCII"))];
        let certificate = params.signed_by(&key, authority).expect("signed");
        Kept {
            key: Some(key.serialize_pem()),
            certificate: Some(certificate.pem()),
            authorities: Some(authority.pem()),
        }
    }

    fn key_in_force(files: &TlsFiles) -> KeyFingerprint {
        let credentials = Credentials::from_pem(&files.read().expect("readable"));
        credentials
            .expect("the files fit together")
            .facts()
            .key_fingerprint
    }

    /// The agent may end between any two writes: it starts with the old pair or with the new one, and with no half of one.
    #[tokio::test]
    async fn a_crash_between_any_two_steps_of_a_renewal_leaves_a_pair_that_fits() {
        let authority = authority();
        let (old, new) = (pair(&authority), pair(&authority));
        let fingerprint = |kept: &Kept| fingerprint_of(kept.key.as_deref().expect("a key")).expect("a key");
        let new_key = new.key.clone().expect("a key");
        let mut cut = 0;
        loop {
            let directory = tempfile::tempdir().expect("a directory");
            let file = |name: &str| directory.path().join(name);
            let files = TlsFiles {
                cert: file("agent.crt"),
                key: file("agent.key"),
                ca: file("ca.crt"),
            };
            let store = Store::new(&files, None);
            store.write_files(&old).expect("written");
            store
                .keep_next_key(&old, fingerprint(&old), new_key.clone())
                .await
                .expect("kept");
            assert_eq!(key_in_force(&files), fingerprint(&old), "before the hub is asked");
            let writes = store.writes(&new, read_file(&files.key).expect("readable"));
            let whole = writes.len();
            for (path, text, readers) in writes.into_iter().take(cut) {
                write(path, &text, readers).expect("written");
            }
            let in_force = key_in_force(&files);
            let certificate = fs::read_to_string(&files.cert).expect("a certificate");
            let switched = Some(certificate) == new.certificate;
            let expected = if switched { &new } else { &old };
            assert_eq!(in_force, fingerprint(expected), "cut after {cut}");
            // A restart continues, and ends with one key.
            store.switch(&new, fingerprint(&old)).await.expect("switched");
            assert_eq!(key_in_force(&files), fingerprint(&new));
            assert_eq!(fs::read_to_string(&files.key).expect("a key"), new_key);
            if cut == whole {
                break;
            }
            cut += 1;
        }
        assert!(cut >= 4, "{cut}");
    }

    #[tokio::test]
    async fn a_key_that_waits_for_its_certificate_stays_beside_the_one_in_force() {
        let (directory, old) = (tempfile::tempdir().expect("a directory"), pair(&authority()));
        let file = |name: &str| directory.path().join(name);
        let files = TlsFiles {
            cert: file("agent.crt"),
            key: file("agent.key"),
            ca: file("ca.crt"),
        };
        let store = Store::new(&files, None);
        store.write_files(&old).expect("written");
        let current = key_in_force(&files);
        let made = shared::tls::new_key().expect("made");
        store
            .keep_next_key(&old, current, made.clone())
            .await
            .expect("kept");
        let kept = store.read().await.expect("readable");
        assert_eq!(
            keys_in(kept.key.as_deref().expect("keys")),
            [old.key.expect("a key"), made.clone()]
        );
        store.write_key_beside(&made).expect("it is there");
        assert_eq!(store.read().await.expect("readable").key, kept.key);
        // Another one in its place, such as after a refusal.
        let other = shared::tls::new_key().expect("made");
        store
            .keep_next_key(&kept, current, other.clone())
            .await
            .expect("kept");
        let keys = store.read().await.expect("readable").key.expect("keys");
        assert!(keys.contains(&other) && !keys.contains(&made));
        assert_eq!(key_in_force(&files), current);
    }
}

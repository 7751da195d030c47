//! Owns: where key, certificate and roots of a cluster that joined are kept: in the files of the flags, and in a Secret that
//! every pod reads. What the Secret has counts; it is changed only in the version that was read.
//! Never: makes a Secret; the agent has no right to.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use anyhow::{Context, bail};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client, api::PostParams};
use shared::tls::TlsFiles;

/// Keys of the Secret: those of the type kubernetes.io/tls, with the roots as cert-manager names them.
const KEY: &str = "tls.key";
const CERTIFICATE: &str = "tls.crt";
const AUTHORITIES: &str = "ca.crt";
/// How often a Secret that others change is read again.
const ATTEMPTS_MAX: u32 = 5;

/// What is kept, as PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// The private key.
    pub key: Option<String>,
    /// The certificate with what it leads over.
    pub certificate: Option<String>,
    /// The roots.
    pub authorities: Option<String>,
}

/// Where it is kept.
pub(super) struct Store<'a> {
    files: &'a TlsFiles,
    secret: Option<(Api<Secret>, &'a str)>,
}

impl Kept {
    /// Whether an agent can run with it.
    pub(super) fn is_complete(&self) -> bool {
        self.key.is_some() && self.certificate.is_some() && self.authorities.is_some()
    }
}

impl<'a> Store<'a> {
    /// These files, and this Secret.
    pub(super) fn new(files: &'a TlsFiles, secret: Option<(Client, &str, &'a str)>) -> Self {
        Self {
            files,
            secret: secret.map(|(client, namespace, name)| (Api::namespaced(client, namespace), name)),
        }
    }

    /// What is there.
    pub(super) async fn read(&self) -> anyhow::Result<Kept> {
        if let Some((secrets, name)) = &self.secret {
            return Ok(from_secret(&read_secret(secrets, name).await?));
        }
        Ok(Kept {
            key: read_file(&self.files.key)?,
            certificate: read_file(&self.files.cert)?,
            authorities: read_file(&self.files.ca)?,
        })
    }

    /// Keeps a key before anybody hears of it, and says which one is kept: another pod may have been faster.
    pub(super) async fn keep_key(&self, key: String) -> anyhow::Result<String> {
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
    pub(super) async fn keep(&self, kept: &Kept) -> anyhow::Result<()> {
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

    /// Puts what is kept into the files, the certificate last: with it they are complete.
    pub(super) fn write_files(&self, kept: &Kept) -> anyhow::Result<()> {
        for (path, text, readers) in [
            (&self.files.key, &kept.key, Readers::Owner),
            (&self.files.ca, &kept.authorities, Readers::Everybody),
            (&self.files.cert, &kept.certificate, Readers::Everybody),
        ] {
            let Some(text) = text else { continue };
            if read_file(path)?.as_ref() != Some(text) {
                write(path, text, readers)?;
            }
        }
        Ok(())
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

/// Writes over the version that was read; false if it is another one by now.
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

/// Who may read a file.
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

/// Writes beside the file, to the disk, and renames: whoever looks never reads half of it.
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
    // The name has to be on the disk too, before a hub hears of the key.
    if let Some(directory) = directory {
        fs::File::open(directory)
            .and_then(|directory| directory.sync_all())
            .with_context(cannot)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
}

//! Certificates on disk: `ca.crt`, `ca.key`, `<name>.crt`, `<name>.key`.
//! A key is readable by its owner only, from its first byte on; an existing file is never replaced unasked.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use shared::model::advice;

use super::{
    authority::{CertificateAuthority, Issued, MembersOnlyPem},
    validity::Validity,
};

const CA_CERT: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
/// No label has a dot, so no cluster, operator or hub has files of these names.
const JOINING_CERT: &str = "joining.ca.crt";
const JOINING_KEY: &str = "joining.ca.key";

/// The users who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readers {
    Everybody,
    Owner,
}

/// A directory that certificates are written to.
pub struct Directory {
    path: PathBuf,
    replace: bool,
}

impl Directory {
    /// Makes the directory if it is missing. `replace` allows existing files to be replaced.
    pub fn open(path: &Path, replace: bool) -> anyhow::Result<Self> {
        fs::create_dir_all(path).with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            replace,
        })
    }

    /// Writes an authority.
    pub fn write_authority(&self, authority: &CertificateAuthority) -> anyhow::Result<[PathBuf; 2]> {
        self.write_pair(CA_CERT, authority.certificate_pem(), CA_KEY, &authority.key_pem())
    }

    /// Writes a certificate and its key.
    pub fn write_issued(&self, issued: &Issued) -> anyhow::Result<[PathBuf; 2]> {
        let role = &issued.identity.role;
        // A cluster may well be called `ca`; its files must not be taken for the authority's.
        let stem = match role.name() {
            "ca" => format!("{}-ca", role.word()),
            name => name.to_owned(),
        };
        let (cert, key) = (format!("{stem}.crt"), format!("{stem}.key"));
        self.write_pair(&cert, &issued.certificate_pem, &key, &issued.key_pem)
    }

    /// Writes the authority with which a hub lets clusters join.
    pub fn write_joining(&self, joining: &MembersOnlyPem) -> anyhow::Result<[PathBuf; 2]> {
        self.write_pair(
            JOINING_CERT,
            &joining.certificate_pem,
            JOINING_KEY,
            &joining.key_pem,
        )
    }

    /// Writes a text that only its owner may read, as `name`.
    pub fn write_private(&self, name: &str, text: &str) -> anyhow::Result<()> {
        self.write(&self.path.join(name), text, Readers::Owner)
    }

    /// Puts the authority's certificate beside what it issued, so that the directory is complete. A file that has it among
    /// others stays as it is: while an authority is replaced the others are trusted, too.
    pub fn ensure_ca(&self, authority: &CertificateAuthority) -> anyhow::Result<PathBuf> {
        let path = self.path.join(CA_CERT);
        match fs::read_to_string(&path) {
            Ok(present) if present.contains(authority.certificate_pem().trim_end()) => {}
            Ok(_) if !self.replace => bail!(
                "{} is another authority's certificate: choose another --out, or replace it with --force",
                path.display()
            ),
            _ => self.write(&path, authority.certificate_pem(), Readers::Everybody)?,
        }
        Ok(path)
    }

    fn write_pair(
        &self,
        cert: &str,
        cert_pem: &str,
        key: &str,
        key_pem: &str,
    ) -> anyhow::Result<[PathBuf; 2]> {
        let (cert, key) = (self.path.join(cert), self.path.join(key));
        if !self.replace {
            for path in [&cert, &key] {
                if path.exists() {
                    bail!(
                        "{} exists: choose another --out, or replace it with --force",
                        path.display()
                    );
                }
            }
        }
        self.write(&key, key_pem, Readers::Owner)?;
        self.write(&cert, cert_pem, Readers::Everybody)?;
        Ok([cert, key])
    }

    fn write(&self, path: &Path, text: &str, readers: Readers) -> anyhow::Result<()> {
        let write = if self.replace { replace } else { create };
        let written = write(path, text, readers).and_then(|()| sync_directory(&self.path));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Reads the authority in a directory.
pub fn read_authority(
    directory: &Path,
    trust_domain: Option<&str>,
    clusterset: Option<&str>,
) -> anyhow::Result<CertificateAuthority> {
    let read = |name: &str| {
        let path = directory.join(name);
        let text = fs::read_to_string(&path);
        text.with_context(|| {
            let path = path.display();
            let made = advice::certs_ca();
            format!("cannot read {path}: give the directory that `{made}` filled")
        })
    };
    let authority = CertificateAuthority::from_pem(&read(CA_CERT)?, &read(CA_KEY)?, trust_domain, clusterset);
    let authority = authority.with_context(|| format!("the authority in {}", directory.display()))?;
    let now = Validity::days_from_now(0).not_after;
    if authority.validity().not_after <= now {
        let day = authority.validity().last_day();
        bail!(
            "the authority in {} expired on {day}: make a new one",
            directory.display()
        );
    }
    Ok(authority)
}

fn create(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
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
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Writes beside the old file and renames, so that a process that watches it never reads half of it.
fn replace(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    create(Path::new(&beside), text, readers)?;
    fs::rename(&beside, path)
}

/// Makes new names in a directory last, should the machine stop now.
fn sync_directory(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    fs::File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

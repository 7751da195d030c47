//! The three PEM files a process is given, and the flags that name them.
//! It reads bytes and looks at permissions; it parses nothing.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::pem::{CredentialsError, Pem};
use crate::process::FileError;

/// Largest PEM file that is read, in bytes. A bundle of a hundred roots has a quarter of it.
const PEM_BYTES_MAX: u64 = 1024 * 1024;

/// Certificate, private key and trust roots of this process, as PEM files. They are looked at again every ten
/// seconds: replace them and new connections use the new ones, without a restart.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct TlsFiles {
    /// Certificate of this process, with its intermediates (PEM). `tributary-hub certs` issues it
    #[arg(long = "tls-cert", env = "TRIBUTARY_TLS_CERT", value_name = "FILE")]
    pub cert: PathBuf,
    /// Private key of that certificate (PEM, PKCS#8); of several keys in the file the one that fits it counts. Nobody
    /// else should be able to read the file
    #[arg(long = "tls-key", env = "TRIBUTARY_TLS_KEY", value_name = "FILE")]
    pub key: PathBuf,
    /// Certificates of the trusted authorities (PEM; several while an authority is replaced)
    #[arg(long = "tls-ca", env = "TRIBUTARY_TLS_CA", value_name = "FILE")]
    pub ca: PathBuf,
}

impl TlsFiles {
    /// Reads the three files.
    pub fn read(&self) -> Result<Pem, CredentialsError> {
        Ok(Pem {
            cert: read("--tls-cert", &self.cert)?,
            key: read("--tls-key", &self.key)?,
            ca: read("--tls-ca", &self.ca)?,
        })
    }

    /// True when everybody on the machine may read the private key.
    #[cfg(unix)]
    pub fn key_is_world_readable(&self) -> bool {
        use std::os::unix::fs::PermissionsExt;
        const OTHERS_MAY_READ: u32 = 0o004;
        std::fs::metadata(&self.key).is_ok_and(|file| file.permissions().mode() & OTHERS_MAY_READ != 0)
    }

    /// True when everybody on the machine may read the private key: never known on this platform.
    #[cfg(not(unix))]
    pub fn key_is_world_readable(&self) -> bool {
        false
    }
}

/// Reads the file that `flag` names.
pub(super) fn read(flag: &str, path: &Path) -> Result<Vec<u8>, CredentialsError> {
    let unreadable = |error: io::Error| CredentialsError::Unreadable(FileError::new(flag, path, &error));
    let file = File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    let read = file.take(PEM_BYTES_MAX + 1).read_to_end(&mut bytes);
    if read.map_err(unreadable)? as u64 > PEM_BYTES_MAX {
        let reason = format!("it is larger than {PEM_BYTES_MAX} bytes");
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidData, reason)));
    }
    Ok(bytes)
}

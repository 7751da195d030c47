//! A certificate for clients that have none: it is shown by its name, replaced while connections stay up, and refused with
//! the file that is wrong.

use std::{path::PathBuf, sync::Arc};

use rcgen::{CertificateParams, KeyPair};
use rustls::{ClientConfig, RootCertStore, version::TLS13};
use rustls_pki_types::{CertificateDer, ServerName, pem::PemObject};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::pki::Authority;
use crate::tls::{ServedCertificate, ServedFiles, provider::provider};

const NAME: &str = "tributary-hub-webhook.tributary-system.svc";

struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
        }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    }

    /// Writes a certificate of this authority with its key.
    fn issue(&self, authority: &Authority) -> ServedFiles {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new([NAME.to_owned()]).expect("a name");
        let certificate = params.signed_by(&key, authority.issuer()).expect("signed");
        ServedFiles {
            cert: self.write("tls.crt", &certificate.pem()),
            cert_flag: "--some-cert",
            key: self.write("tls.key", &key.serialize_pem()),
            key_flag: "--some-key",
        }
    }
}

/// Somebody who trusts this authority connects by that name.
async fn connect(
    served: &Arc<ServedCertificate>,
    authority: &Authority,
    name: &'static str,
) -> Option<(TlsStream<DuplexStream>, impl AsyncReadExt + AsyncWriteExt + Unpin)> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_slice(authority.ca().as_bytes()).expect("a certificate");
    roots.add(ca).expect("a root");
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let (near, far) = duplex(16 * 1024);
    let name = ServerName::try_from(name).expect("a name");
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, near);
    let (connected, greeted) = tokio::join!(connecting, served.clone().greet(far));
    Some((connected.ok()?, greeted?))
}

#[tokio::test]
async fn it_is_shown_to_whoever_comes_and_knows_the_authority() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let served = ServedCertificate::load(files.issue(&authority)).expect("loaded");
    let (near, mut far) = connect(&served, &authority, NAME).await.expect("connected");
    assert_eq!(near.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    far.write_u8(7).await.expect("sent");
    assert!(
        connect(&served, &authority, "other.svc").await.is_none(),
        "it has another name"
    );
    let other = Authority::new("other");
    assert!(
        connect(&served, &other, NAME).await.is_none(),
        "it is of another authority"
    );
    assert!(served.expires_in_seconds() > 0);
}

#[tokio::test]
async fn new_files_take_effect_while_connections_stay_up() {
    let (files, old, new) = (Files::new(), Authority::new("old"), Authority::new("new"));
    let served = ServedCertificate::load(files.issue(&old)).expect("loaded");
    assert!(!served.check().expect("the same"));
    let (mut near, mut far) = connect(&served, &old, NAME).await.expect("connected");
    let half = files.issue(&new);
    let key = std::fs::read_to_string(&half.key).expect("a key");
    files.write("tls.key", "nothing");
    let problem = served.check().expect_err("half of it").to_string();
    assert!(
        problem.starts_with("--some-key holds no usable private key"),
        "{problem}"
    );
    assert!(
        connect(&served, &old, NAME).await.is_some(),
        "the old one stays in force"
    );
    files.write("tls.key", &key);
    assert!(served.check().expect("both"));
    assert!(connect(&served, &new, NAME).await.is_some());
    assert!(connect(&served, &old, NAME).await.is_none());
    far.write_u8(7).await.expect("sent");
    far.flush().await.expect("sent");
    assert_eq!(near.read_u8().await.expect("it is open still"), 7);
}

#[test]
fn what_cannot_be_used_is_told_with_its_flag() {
    let (files, authority) = (Files::new(), Authority::new("ca"));
    let good = files.issue(&authority);
    let told = |change: &dyn Fn(&mut ServedFiles)| {
        let mut files = good.clone();
        change(&mut files);
        let problem = ServedCertificate::load(files).err().expect("it is refused");
        problem.to_string()
    };
    let absent = told(&|files| files.cert = "absent.crt".into());
    assert!(
        absent.starts_with("--some-cert: cannot read absent.crt: "),
        "{absent}"
    );
    let none = files.write("none", "");
    assert!(told(&|files| files.cert = none.clone()).starts_with("--some-cert holds no usable certificate"));
    assert!(told(&|files| files.key = none.clone()).starts_with("--some-key holds no usable private key"));
    let other = KeyPair::generate().expect("a key").serialize_pem();
    let other = files.write("other.key", &other);
    let unfit = told(&|files| files.key = other.clone());
    assert!(
        unfit.starts_with("--some-key holds no usable private key of that certificate: "),
        "{unfit}"
    );
}

//! New files: what they change and what they leave alone.

use std::{fs, path::Path, sync::Arc};

use prometheus_client::registry::Registry;
use tempfile::TempDir;

use super::{
    ends::{Hub, dialled, refusal},
    pki::{Authority, EAST, HUB},
};
use crate::tls::{CredentialsError, LiveCredentials, Pem, Reload, Reloader, TlsFiles, TlsMetrics};

struct Disk {
    dir: TempDir,
    files: TlsFiles,
}

impl Disk {
    fn new(pem: &Pem) -> Self {
        let dir = tempfile::tempdir().expect("directory");
        let path = |name: &str| dir.path().join(name);
        let files = TlsFiles {
            cert: path("tls.crt"),
            key: path("tls.key"),
            ca: path("ca.crt"),
        };
        let disk = Self { dir, files };
        disk.write(pem);
        disk
    }

    fn write(&self, pem: &Pem) {
        let write = |path: &Path, bytes: &[u8]| fs::write(path, bytes).expect("written");
        write(&self.files.cert, &pem.cert);
        write(&self.files.key, &pem.key);
        write(&self.files.ca, &pem.ca);
    }

    fn load(&self) -> (Reloader, Arc<LiveCredentials>) {
        Reloader::load(self.files.clone(), TlsMetrics::default()).expect("loaded")
    }
}

#[tokio::test]
async fn a_new_certificate_is_used_for_new_connections_and_old_ones_stay() {
    let ca = Authority::new("ca");
    let disk = Disk::new(&ca.issue_for(HUB));
    let (mut reloader, live) = disk.load();
    let mut hub = Hub::new(live);
    let member = ca.live(EAST);
    let mut old = hub.join(&member).await;
    assert!(matches!(reloader.check(), Reload::Unchanged));
    disk.write(&ca.issue_for(HUB));
    assert!(matches!(reloader.check(), Reload::Loaded));
    let mut new = hub.join(&member).await;
    let shown = |client: &tokio_rustls::client::TlsStream<crate::tls::BoxedIo>| {
        client.get_ref().1.peer_certificates().expect("certificate")[0].to_vec()
    };
    assert_ne!(shown(&old.client), shown(&new.client));
    old.works().await;
    new.works().await;
}

#[tokio::test]
async fn new_roots_let_new_members_in_and_keep_old_ones_out() {
    let (old_ca, new_ca) = (Authority::new("old"), Authority::new("new"));
    let mut pem = old_ca.issue_for(HUB);
    let disk = Disk::new(&pem);
    let (mut reloader, live) = disk.load();
    let mut hub = Hub::new(live);
    let bundle = [old_ca.ca(), new_ca.ca()].concat();
    let member = |ca: &Authority| {
        let pem = Pem {
            ca: bundle.clone().into(),
            ..ca.issue_for(EAST)
        };
        super::pki::live(&pem)
    };
    let (old_member, new_member) = (member(&old_ca), member(&new_ca));
    let mut connector = hub.connector(new_member.clone(), &["https://hub:7443"]);
    let mut early = dialled(&mut connector).await.expect("dialled");
    assert!(refusal(&mut early).await.contains("issue it with the hub's CA"));
    pem.ca = bundle.clone().into();
    disk.write(&pem);
    assert!(matches!(reloader.check(), Reload::Loaded));
    let mut connected = hub.join(&old_member).await;
    hub.join(&new_member).await.works().await;
    disk.write(&new_ca.issue_for(HUB));
    assert!(matches!(reloader.check(), Reload::Loaded));
    let mut connector = hub.connector(old_member, &["https://hub:7443"]);
    let mut late = dialled(&mut connector).await.expect("dialled");
    assert!(refusal(&mut late).await.contains("issue it with the hub's CA"));
    // It gets the reason, and then it is cut.
    connected.works().await;
    let told = connected.server.peer().lifetime.ended().await;
    assert!(told.message().contains("no root of this hub any more"), "{told}");
}

#[tokio::test]
async fn files_that_cannot_be_used_leave_the_old_ones_in_force() {
    let ca = Authority::new("ca");
    let good = ca.issue_for(HUB);
    let disk = Disk::new(&good);
    let (mut reloader, live) = disk.load();
    let mut hub = Hub::new(live.clone());
    let (fingerprint, member) = (live.facts().key_fingerprint, ca.live(EAST));
    let with = |change: fn(&mut Pem)| {
        let mut pem = good.clone();
        change(&mut pem);
        pem
    };
    let mut mixed = ca.issue_for(HUB);
    mixed.key.clone_from(&good.key);
    let cases = [
        (
            "garbage",
            with(|pem| pem.cert = b"garbage".to_vec()),
            "--tls-cert holds no usable certificate",
        ),
        (
            "no key",
            with(|pem| pem.key.clear()),
            "--tls-key holds no usable private key",
        ),
        (
            "no roots",
            with(|pem| pem.ca.clear()),
            "--tls-ca holds no usable certificate",
        ),
        (
            "half written",
            with(|pem| pem.cert.truncate(200)),
            "--tls-cert holds no usable certificate",
        ),
        ("a foreign key", mixed, "is not the key of the certificate"),
        (
            "somebody else",
            ca.issue_for(EAST),
            "restart it to change who it is",
        ),
    ];
    for (case, pem, told) in cases {
        disk.write(&pem);
        match reloader.check() {
            Reload::Refused(error) => assert!(error.to_string().contains(told), "{case}: {error}"),
            other => panic!("{case}: {other:?}"),
        }
        assert!(matches!(reloader.check(), Reload::Unchanged), "{case}: told once");
        assert_eq!(live.facts().key_fingerprint, fingerprint, "{case}");
        hub.join(&member).await.works().await;
    }
    fs::remove_file(&disk.files.key).expect("removed");
    assert!(matches!(
        reloader.check(),
        Reload::Refused(CredentialsError::Unreadable(_))
    ));
    disk.write(&ca.issue_for(HUB));
    assert!(matches!(reloader.check(), Reload::Loaded));
    assert_ne!(live.facts().key_fingerprint, fingerprint);
}

#[test]
fn a_first_load_that_fails_says_which_file() {
    let disk = Disk::new(&Authority::new("ca").issue_for(HUB));
    fs::remove_file(&disk.files.ca).expect("removed");
    let error = Reloader::load(disk.files.clone(), TlsMetrics::default())
        .err()
        .expect("unreadable");
    assert!(error.to_string().contains("ca.crt"), "{error}");
    let huge = vec![b'#'; 2 * 1024 * 1024];
    fs::write(&disk.files.ca, huge).expect("written");
    let error = Reloader::load(disk.files, TlsMetrics::default())
        .err()
        .expect("huge");
    assert!(error.to_string().contains("larger than"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_key_that_everybody_can_read_is_noticed() {
    use std::os::unix::fs::PermissionsExt;
    let disk = Disk::new(&Authority::new("ca").issue_for(HUB));
    for (mode, expected) in [(0o600, false), (0o640, false), (0o644, true)] {
        fs::set_permissions(&disk.files.key, fs::Permissions::from_mode(mode)).expect("changed");
        assert_eq!(disk.files.key_is_world_readable(), expected, "{mode:o}");
    }
    drop(disk.dir);
}

#[test]
fn metrics_show_reloads_and_the_time_that_is_left() {
    let ca = Authority::new("ca");
    let disk = Disk::new(&ca.issue_for(HUB));
    let metrics = TlsMetrics::default();
    let (mut reloader, live) = Reloader::load(disk.files.clone(), metrics.clone()).expect("loaded");
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    TlsMetrics::register_expiry(&mut registry, live);
    disk.write(&ca.issue_for(HUB));
    reloader.check();
    disk.write(&ca.issue_for(EAST));
    reloader.check();
    let text = crate::process::encode_metrics(&registry).expect("text");
    for line in [
        "tls_reloads_total{outcome=\"loaded\"} 1",
        "tls_reloads_total{outcome=\"refused\"} 1",
        "tls_handshakes_total{outcome=\"timed_out\"} 0",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let left = text
        .lines()
        .find_map(|line| line.strip_prefix("tls_certificate_expires_in_seconds "))
        .expect("expiry");
    let left: i64 = left.parse().expect("number");
    assert!((24 * 60 * 60 - 60..=24 * 60 * 60).contains(&left), "{left}");
}

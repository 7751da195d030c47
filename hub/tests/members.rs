//! `tributary-hub member` as it is typed, against a hub over real mutual TLS: dry run, the command that confirms,
//! the decision, and what is said to those who may not or cannot.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Parser;
use hub::{
    args::{Cli, Command},
    certs::{CertificateAuthority, Subject, Validity},
    clock::Clock,
    hub::{Hub, HubMetrics},
    log::{MemoryDisk, MemoryLog},
    writer::Options,
};
use prometheus_client::registry::Registry;
use shared::{
    model::{ClusterId, Clusterset, Epoch, UnixMillis},
    process::Shutdown,
    tls::{Credentials, LiveCredentials, TlsMetrics, accept, tcp_connections},
};
use tempfile::TempDir;
use tokio::{net::TcpListener, runtime::Runtime};

struct World {
    files: TempDir,
    address: String,
    _runtime: Runtime,
}

impl World {
    /// A hub on loopback, and certificates in files: alice's (operator), east's (member), mallory's (another CA).
    fn new() -> Self {
        let files = TempDir::new().expect("a directory");
        let clusterset = Clusterset::new("example.org", "default").expect("valid");
        let authority = authority(&clusterset);
        let alice = Subject::Operator("alice".to_owned());
        issue(files.path(), &authority, "alice", &alice);
        issue(
            files.path(),
            &authority,
            "east",
            &Subject::Member(ClusterId::new("east").expect("valid")),
        );
        issue(files.path(), &self::authority(&clusterset), "mallory", &alice);
        fs::write(files.path().join("ca.crt"), authority.certificate_pem()).expect("written");

        let runtime = Runtime::new().expect("a runtime");
        let port = runtime.block_on(serve(&authority, &clusterset));
        Self {
            files,
            address: format!("https://127.0.0.1:{port}"),
            _runtime: runtime,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// Runs `tributary-hub member WORDS` with somebody's certificate.
    fn member(&self, who: &str, words: &[&str]) -> Result<String, String> {
        let file = |name: &str| self.path(name).display().to_string();
        let (cert, key, ca) = (
            file(&format!("{who}.crt")),
            file(&format!("{who}.key")),
            file("ca.crt"),
        );
        let flags = [
            "--hub",
            &self.address,
            "--tls-cert",
            &cert,
            "--tls-key",
            &key,
            "--tls-ca",
            &ca,
        ]
        .map(str::to_owned);
        let words = words.iter().map(|word| (*word).to_owned());
        run(["tributary-hub".to_owned(), "member".to_owned()]
            .into_iter()
            .chain(words)
            .chain(flags))
    }
}

fn run(words: impl IntoIterator<Item = String>) -> Result<String, String> {
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let Command::Member(args) = cli.command else {
        panic!("another command")
    };
    hub::operate::run_member(args).map_err(|error| format!("{error:#}"))
}

fn authority(clusterset: &Clusterset) -> CertificateAuthority {
    CertificateAuthority::generate(clusterset, Validity::days_from_now(2)).expect("made")
}

fn issue(directory: &Path, authority: &CertificateAuthority, name: &str, subject: &Subject) {
    let issued = authority
        .issue(subject, Validity::days_from_now(1))
        .expect("issued");
    fs::write(directory.join(format!("{name}.crt")), &issued.certificate_pem).expect("written");
    fs::write(directory.join(format!("{name}.key")), &issued.key_pem).expect("written");
}

async fn serve(authority: &CertificateAuthority, clusterset: &Clusterset) -> u16 {
    let subject = Subject::Hub {
        name: "hub".to_owned(),
        dns_names: Vec::new(),
        ips: Vec::new(),
    };
    let issued = authority
        .issue(&subject, Validity::days_from_now(1))
        .expect("issued");
    let credentials = LiveCredentials::new(Credentials::from_pem(&authority.tls(&issued)).expect("usable"));
    let epoch = Epoch::default().next(UnixMillis(1_000), 7);
    let log = MemoryLog::open(&MemoryDisk::default(), clusterset, epoch).expect("opened");
    let options = Options {
        hub: "hub".into(),
        hub_version: "test".into(),
        adopt_epoch: false,
    };
    let metrics = HubMetrics::register(&mut Registry::default());
    let hub = Hub::start(Box::new(log), options, Clock::start(), metrics).expect("started");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let incoming = accept(tcp_connections(listener), credentials, TlsMetrics::default());
    let server = tonic::transport::Server::builder().add_routes(hub.routes(&Shutdown::default()));
    tokio::spawn(async move {
        // It keeps the hub for as long as it serves.
        let _hub = hub;
        server.serve_with_incoming(incoming).await
    });
    port
}

#[test]
fn a_decision_is_tried_and_then_taken_by_the_printed_command() {
    let world = World::new();
    let empty = world.member("alice", &["list"]).expect("listed");
    assert!(
        empty.starts_with("CLUSTER") && empty.contains("0 members at revision 0"),
        "{empty}"
    );

    let dry = world.member("alice", &["forget", "gone"]).expect("tried");
    assert!(dry.starts_with("Nothing has changed yet"), "{dry}");
    let command = dry.lines().last().expect("a command").trim();
    assert!(command.ends_with("--confirm"), "{command}");
    let done = run(command.split_whitespace().map(str::to_owned)).expect("done");
    assert!(done.starts_with("Done, recorded at revision 1:"), "{done}");

    let listed = world.member("alice", &["list"]).expect("listed");
    let row: Vec<&str> = listed.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(
        (row[0], row[1], row[3], row[4]),
        ("gone", "forgotten", "no", "no"),
        "{listed}"
    );

    let json = world
        .member("alice", &["list", "--output", "json"])
        .expect("listed");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["members"][0]["cluster"], "gone");
    assert_eq!(json["revision"], 1);
    let again = world
        .member("alice", &["forget", "gone", "--confirm", "--output", "json"])
        .expect("answered");
    let again: serde_json::Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!((&again["done"], &again["revision"]), (&true.into(), &0.into()));
}

#[test]
fn who_may_not_and_what_cannot_be_is_told_what_to_do() {
    let world = World::new();
    assert!(world.member("east", &["list"]).is_ok(), "a member may read");
    for (who, words, said) in [
        ("east", &["evict", "east"][..], "only an operator decides"),
        (
            "alice",
            &["evict", "nobody"],
            "`tributary-hub member list` shows who is",
        ),
        ("alice", &["evict", "Not-A-Label"], "RFC 1123"),
        ("alice", &["rekey", "east"], "not a member"),
        (
            "alice",
            &["rekey", "east", "--key-fingerprint", "12"],
            "64 hexadecimal digits",
        ),
        (
            "mallory",
            &["list"],
            "does not know the authority of our certificate",
        ),
        ("nobody", &["list"], "cannot read"),
    ] {
        let error = world.member(who, words).expect_err(said);
        assert!(error.contains(said), "{who} {words:?}: {error}");
    }
}

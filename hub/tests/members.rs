//! The client as it is typed, against a hub over real mutual TLS: dry run, the command that confirms, the decision, and
//! the refusals.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Parser;
use cli::command::Cli;
use hub::certs::{CertificateAuthority, Subject, Validity};
use shared::{
    model::ClusterId,
    tls::{Credentials, TlsFiles},
};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A hub on loopback, and certificates to ask it with.
struct RunningHub {
    files: TempDir,
    address: String,
    _runtime: Runtime,
}

impl RunningHub {
    /// A hub on loopback, and certificates in files: alice's and bob's (operators), dashboard's (reader), east's (member),
    /// mallory's (another CA).
    fn new() -> Self {
        let files = TempDir::new().expect("a directory");
        let authority = support::authority();
        let alice = Subject::Operator("alice".to_owned());
        issue(files.path(), &authority, "alice", &alice);
        issue(
            files.path(),
            &authority,
            "east",
            &Subject::Member(ClusterId::new("east").expect("valid")),
        );
        let bob = Subject::Operator("bob".to_owned());
        issue(files.path(), &authority, "bob", &bob);
        let dashboard = Subject::Reader("dashboard".to_owned());
        issue(files.path(), &authority, "dashboard", &dashboard);
        issue(files.path(), &support::authority(), "mallory", &alice);
        fs::write(files.path().join("ca.crt"), authority.certificate_pem()).expect("written");

        let runtime = Runtime::new().expect("a runtime");
        let port = runtime.block_on(support::serve(&authority));
        Self {
            files,
            address: format!("https://127.0.0.1:{port}"),
            _runtime: runtime,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// The fingerprint of somebody's key.
    fn key(&self, who: &str) -> String {
        let files = TlsFiles {
            cert: self.path(&format!("{who}.crt")),
            key: self.path(&format!("{who}.key")),
            ca: self.path("ca.crt"),
        };
        let credentials = Credentials::from_pem(&files.read().expect("read")).expect("usable");
        credentials.facts().key_fingerprint.to_string()
    }

    /// Runs `tributary member WORDS` with somebody's certificate.
    fn member(&self, who: &str, words: &[&str]) -> Result<String, String> {
        self.hub("member", who, words)
    }

    /// Runs `tributary COMMAND WORDS` with somebody's certificate.
    fn hub(&self, command: &str, who: &str, words: &[&str]) -> Result<String, String> {
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
        run(["tributary".to_owned(), command.to_owned()]
            .into_iter()
            .chain(words)
            .chain(flags))
    }
}

fn run(words: impl IntoIterator<Item = String>) -> Result<String, String> {
    let parsed = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let said = cli::program::text(parsed.command);
    said.map_err(|error| format!("{error:#}"))
}

fn issue(directory: &Path, authority: &CertificateAuthority, name: &str, subject: &Subject) {
    let issued = authority
        .issue(subject, Validity::days_from_now(1))
        .expect("issued");
    fs::write(directory.join(format!("{name}.crt")), &issued.certificate_pem).expect("written");
    fs::write(directory.join(format!("{name}.key")), &issued.key_pem).expect("written");
}

#[test]
fn a_decision_is_tried_and_then_taken_by_the_printed_command() {
    let running = RunningHub::new();
    let empty = running.member("alice", &["list"]).expect("listed");
    assert!(
        empty.starts_with("CLUSTER") && empty.contains("0 members at revision 1"),
        "{empty}"
    );

    let dry = running.member("alice", &["forget", "gone"]).expect("tried");
    assert!(dry.starts_with("Nothing has changed yet"), "{dry}");
    let command = dry.lines().last().expect("a command").trim();
    assert!(command.ends_with("--confirm"), "{command}");
    let done = run(command.split_whitespace().map(str::to_owned)).expect("done");
    assert!(done.starts_with("Done, recorded at revision 2:"), "{done}");

    let listed = running.member("alice", &["list"]).expect("listed");
    let row: Vec<&str> = listed.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!(
        (row[0], row[1], row[3], row[4]),
        ("gone", "forgotten", "no", "no"),
        "{listed}"
    );

    let json = running
        .member("alice", &["list", "--output", "json"])
        .expect("listed");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["members"][0]["cluster"], "gone");
    assert_eq!(json["revision"], 2);
    let again = running
        .member("alice", &["forget", "gone", "--confirm", "--output", "json"])
        .expect("answered");
    let again: serde_json::Value = serde_json::from_str(&again).expect("JSON");
    assert_eq!(
        (&again["done"], &again["revision"]),
        (&true.into(), &3.into()),
        "it counts each time"
    );
}

#[test]
fn who_may_not_and_what_cannot_be_is_told_what_to_do() {
    let running = RunningHub::new();
    assert!(running.member("east", &["list"]).is_ok(), "a member may read");
    for (who, words, said) in [
        ("east", &["evict", "east"][..], "only an operator decides"),
        (
            "alice",
            &["evict", "nobody"],
            "--tls-key operator.key` shows who is",
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
        (
            "alice",
            &["wait", "east", "--timeout", "1s"],
            "after 1 s not every member is live: east is not a member yet",
        ),
        // A fault in a file does not heal: nobody waits for it.
        ("nobody", &["wait", "east", "--timeout", "7d"], "cannot read"),
    ] {
        let error = running.member(who, words).expect_err(said);
        assert!(error.contains(said), "{who} {words:?}: {error}");
    }
}

#[test]
fn a_reader_reads_with_every_command_decides_with_none_and_is_revoked() {
    let running = RunningHub::new();
    for (command, words) in [("member", "list"), ("policy", "get")] {
        running.hub(command, "dashboard", &[words]).expect("read");
    }
    running.hub("events", "dashboard", &[]).expect("read");
    let key = running.key("dashboard");
    for (command, words) in [
        ("member", ["evict", "east"].as_slice()),
        ("member", ["forget", "east", "--confirm"].as_slice()),
        ("reader", ["revoke", "dashboard", &key, "--confirm"].as_slice()),
        ("operator", ["revoke", "alice", &key].as_slice()),
    ] {
        let refused = running.hub(command, "dashboard", words).expect_err("refused");
        assert!(
            refused.contains("a reader's certificate: only an operator decides"),
            "{refused}"
        );
    }
    let dry = running
        .hub("reader", "alice", &["revoke", "dashboard", &key])
        .expect("tried");
    assert!(
        dry.contains("reader dashboard needs a certificate with a new key"),
        "{dry}"
    );
    running
        .member("dashboard", &["list"])
        .expect("nothing has changed");
    let command = dry.lines().last().expect("a command").trim();
    run(command.split_whitespace().map(str::to_owned)).expect("done");
    let refused = running.member("dashboard", &["list"]).expect_err("revoked");
    assert!(refused.contains("was revoked by an operator"), "{refused}");
    let events = running.hub("events", "alice", &[]).expect("read");
    assert!(events.contains("of reader dashboard  operator alice"), "{events}");
}

#[test]
fn a_revoked_key_is_refused_in_every_role_and_nobody_locks_itself_out() {
    let running = RunningHub::new();
    let (alice, bob, east) = (running.key("alice"), running.key("bob"), running.key("east"));
    let own = running.hub("operator", "alice", &["revoke", "alice", &alice, "--confirm"]);
    assert!(
        own.as_ref()
            .is_err_and(|error| error.contains("the one that you came with")),
        "{own:?}"
    );

    let dry = running
        .hub("operator", "alice", &["revoke", "bob", &bob])
        .expect("tried");
    assert!(dry.starts_with("Nothing has changed yet"), "{dry}");
    assert!(running.member("bob", &["list"]).is_ok());
    let command = dry.lines().last().expect("a command").trim();
    run(command.split_whitespace().map(str::to_owned)).expect("done");
    let refused = running.member("bob", &["list"]).expect_err("revoked");
    assert!(refused.contains("was revoked by an operator"), "{refused}");

    for (command, whose) in [("member", "revoke-key"), ("reader", "revoke")] {
        let own = running.hub(command, "alice", &[whose, "east", &alice, "--confirm"]);
        assert!(
            own.is_err_and(|error| error.contains("the one that you came with")),
            "whoever's it is said to be"
        );
    }
    running
        .member("alice", &["revoke-key", "east", &east, "--confirm"])
        .expect("a key that never came is revoked too");
    let refused = running.member("east", &["list"]).expect_err("revoked");
    assert!(refused.contains("was revoked by an operator"), "{refused}");
    let listed = running
        .member("alice", &["list", "--output", "json"])
        .expect("listed");
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let mut holders: Vec<String> = listed["revokedKeys"]
        .as_array()
        .expect("two")
        .iter()
        .map(|key| {
            format!(
                "{}{}",
                key["cluster"].as_str().unwrap_or_default(),
                key["operator"].as_str().unwrap_or_default()
            )
        })
        .collect();
    holders.sort();
    assert_eq!(holders, ["bob", "east"]);
    let again = running
        .member("alice", &["revoke-key", "east", &east, "--confirm"])
        .expect("answered");
    assert!(again.contains("nothing to do"), "{again}");
    let tried = running
        .member("alice", &["revoke-key", "east", &east])
        .expect("answered");
    assert!(
        tried.contains("nothing to do") && !tried.contains("To do it"),
        "a command that does nothing is advised: {tried}"
    );
}

//! The command as a user types it, in a directory of its own.

use std::fs;

use clap::Parser;
use shared::tls::{Credentials, TlsFiles};

use super::*;

#[derive(Parser)]
struct Typed {
    #[command(flatten)]
    certs: CertsArgs,
}

fn certs(line: &str, directory: &Path) -> anyhow::Result<String> {
    let line = line.replace("DIR", &directory.display().to_string());
    let typed = Typed::try_parse_from(["certs"].into_iter().chain(line.split_whitespace()))?;
    run(typed.certs)
}

fn credentials(directory: &Path, name: &str) -> Credentials {
    let files = TlsFiles {
        cert: directory.join(format!("{name}.crt")),
        key: directory.join(format!("{name}.key")),
        ca: directory.join("ca.crt"),
    };
    Credentials::from_pem(&files.read().expect("readable")).expect("usable")
}

#[test]
fn an_authority_and_every_kind_of_certificate() {
    let directory = tempfile::tempdir().expect("directory");
    let dir = directory.path();
    let said = certs(
        "ca --out DIR/new --clusterset prod --trust-domain example.org",
        dir,
    )
    .expect("made");
    assert!(
        said.contains("prod in trust domain example.org") && said.contains("certs member"),
        "{said}"
    );
    let cases = [
        (
            "hub --ca DIR/new --dns-name a.example,b.example --ip 192.0.2.1",
            "hub",
            "hub/hub",
        ),
        ("member --ca DIR/new --cluster-id east", "east", "cluster/east"),
        ("operator --ca DIR/new --name alice", "alice", "operator/alice"),
        (
            "reader --ca DIR/new --name dashboard",
            "dashboard",
            "reader/dashboard",
        ),
        ("member --ca DIR/new --cluster-id ca", "cluster-ca", "cluster/ca"),
    ];
    for (line, file, identity) in cases {
        let said = certs(line, dir).expect(line);
        let expected = format!("spiffe://example.org/clusterset/prod/{identity}");
        assert!(said.contains(&expected) && said.contains("Next:"), "{said}");
        let credentials = credentials(&dir.join("new"), file);
        assert_eq!(credentials.facts().identity.to_string(), expected);
    }
}

#[test]
fn an_authority_that_replaces_another_says_how_to_go_on() {
    let directory = tempfile::tempdir().expect("directory");
    let dir = directory.path();
    certs(
        "ca --out DIR/old --clusterset prod --trust-domain example.org",
        dir,
    )
    .expect("made");
    let said = certs("ca --out DIR/new --replaces DIR/old", dir).expect("made");
    assert!(said.contains("prod in trust domain example.org"), "{said}");
    assert!(
        said.contains("vouches for it") && said.contains("certs joining --ca"),
        "{said}"
    );
    let refused = certs("ca --out DIR/newer --replaces DIR/nowhere", dir).expect_err("no authority");
    assert!(format!("{refused:#}").contains("nowhere/ca.crt"), "{refused:#}");
    assert!(!dir.join("newer").exists());
}

#[test]
fn two_authorities_never_share_a_trust_domain_unasked() {
    let directory = tempfile::tempdir().expect("directory");
    let dir = directory.path();
    let domain = |name: &str| {
        certs(&format!("ca --out DIR/{name}"), dir).expect("made");
        certs(&format!("hub --ca DIR/{name}"), dir).expect("issued");
        let identity = credentials(&dir.join(name), "hub").facts().identity.clone();
        assert_eq!(identity.clusterset.name(), "default");
        identity.clusterset.trust_domain().to_owned()
    };
    assert_ne!(domain("one"), domain("two"));
}

#[test]
fn nothing_is_replaced_unless_asked() {
    let directory = tempfile::tempdir().expect("directory");
    let dir = directory.path();
    certs("ca --out DIR", dir).expect("made");
    certs("member --ca DIR --cluster-id east", dir).expect("issued");
    let before = fs::read(dir.join("east.crt")).expect("readable");
    for line in ["ca --out DIR", "member --ca DIR --cluster-id east"] {
        let error = certs(line, dir).expect_err(line).to_string();
        assert!(error.contains("exists") && error.contains("--force"), "{error}");
    }
    assert_eq!(fs::read(dir.join("east.crt")).expect("readable"), before);
    fs::remove_file(dir.join("east.crt")).expect("removed");
    assert!(
        certs("member --ca DIR --cluster-id east", dir).is_err(),
        "the key alone protects too"
    );
    certs("member --ca DIR --cluster-id east --force", dir).expect("replaced");
    assert_ne!(fs::read(dir.join("east.crt")).expect("readable"), before);
    credentials(dir, "east");
}

#[test]
fn another_directory_is_filled_completely_and_never_mixed() {
    let directory = tempfile::tempdir().expect("directory");
    let dir = directory.path();
    certs("ca --out DIR/one", dir).expect("made");
    certs("ca --out DIR/two", dir).expect("made");
    certs("member --ca DIR/one --cluster-id east --out DIR/east", dir).expect("issued");
    credentials(&dir.join("east"), "east");
    assert!(!dir.join("east/ca.key").exists());
    let error = certs("member --ca DIR/two --cluster-id west --out DIR/east", dir).expect_err("mixed");
    assert!(error.to_string().contains("another authority"), "{error}");
}

/// While an authority is replaced the file has both, and issuing into it removes neither.
#[test]
fn a_file_with_several_authorities_stays_as_it_is() {
    let directory = tempfile::tempdir().expect("directory");
    let dir = directory.path();
    certs("ca --out DIR/one", dir).expect("made");
    certs("ca --out DIR/two", dir).expect("made");
    let ca = dir.join("one/ca.crt");
    let read = |path: &Path| std::fs::read_to_string(path).expect("read");
    let both = read(&ca) + &read(&dir.join("two/ca.crt"));
    std::fs::write(&ca, &both).expect("written");
    certs("joining --ca DIR/two --out DIR/one", dir).expect("made");
    certs("hub --ca DIR/two --out DIR/one --force", dir).expect("issued");
    assert_eq!(read(&ca), both);
}

#[test]
fn mistakes_are_explained() {
    let directory = tempfile::tempdir().expect("directory");
    let dir = directory.path();
    certs("ca --out DIR", dir).expect("made");
    let cases = [
        ("member --ca DIR/nowhere --cluster-id east", "certs ca --out"),
        ("member --ca DIR --cluster-id East", "RFC 1123"),
        ("operator --ca DIR --name alice --days 0", "0 is not in 1..=36500"),
        (
            "operator --ca DIR --name alice --trust-domain other.example",
            "one authority serves one",
        ),
        ("ca --out DIR/x --clusterset de.fault", "RFC 1123"),
    ];
    for (line, told) in cases {
        let error = format!("{:#}", certs(line, dir).expect_err(line));
        assert!(error.contains(told), "{line}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn keys_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("directory");
    let dir = directory.path();
    certs("ca --out DIR", dir).expect("made");
    certs("hub --ca DIR", dir).expect("issued");
    certs("hub --ca DIR --force", dir).expect("replaced");
    for key in ["ca.key", "hub.key"] {
        let mode = fs::metadata(dir.join(key)).expect("present").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{key}");
    }
}

//! The doctor at real files, disks and ports: no fault where there is none, and planted ones found.

use std::{fs, net::SocketAddr, path::Path};

use clap::Parser;
use shared::doctor::Report;

use super::examine;
use crate::{
    args::{Cli, Command},
    certs::{CertificateAuthority, Subject, Validity},
};

/// A hub's place, with certificates and free ports.
struct Place {
    directory: tempfile::TempDir,
    ports: [SocketAddr; 2],
}

fn free_port() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    listener.local_addr().expect("an address")
}

impl Place {
    fn new(days: u32) -> Self {
        let clusterset = shared::model::Clusterset::new("example.org", "default").expect("valid");
        let authority =
            CertificateAuthority::generate(&clusterset, Validity::days_from_now(100)).expect("made");
        let subject = Subject::Hub {
            name: "hub".to_owned(),
            dns_names: Vec::new(),
            ips: Vec::new(),
        };
        let issued = authority
            .issue(&subject, Validity::days_from_now(days))
            .expect("issued");
        let tls = authority.tls(&issued);
        let place = Self {
            directory: tempfile::tempdir().expect("a directory"),
            ports: [free_port(), free_port()],
        };
        for (name, bytes) in [("hub.crt", &tls.cert), ("hub.key", &tls.key), ("ca.crt", &tls.ca)] {
            fs::write(place.path().join(name), bytes).expect("written");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let private = fs::Permissions::from_mode(0o600);
            fs::set_permissions(place.path().join("hub.key"), private).expect("changed");
        }
        fs::create_dir(place.path().join("data")).expect("made");
        place
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    async fn examine(&self, more: &[&str]) -> Report {
        let at = |name: &str| self.path().join(name).display().to_string();
        let mut line = vec!["tributary-hub".to_owned(), "doctor".to_owned()];
        let flags = [
            ("--data", at("data")),
            ("--tls-cert", at("hub.crt")),
            ("--tls-key", at("hub.key")),
            ("--tls-ca", at("ca.crt")),
            ("--listen", self.ports[0].to_string()),
            ("--admin", self.ports[1].to_string()),
            // The findings about the machine that runs the tests say nothing about the product.
            ("--disk-alarm", "0%".to_owned()),
            ("--disk-reserve", "0%".to_owned()),
            ("--state-memory", "1MiB".to_owned()),
        ];
        line.extend(
            flags
                .into_iter()
                .flat_map(|(flag, value)| [flag.to_owned(), value]),
        );
        line.extend(more.iter().map(|word| (*word).to_owned()));
        let Command::Doctor(args) = Cli::try_parse_from(line).expect("understood").command else {
            panic!("another command");
        };
        let set = args.serve.set.0.as_ref().expect("one clusterset");
        examine(&args.serve, set).await
    }
}

fn faults(report: &Report) -> Vec<&'static str> {
    report.faults().map(|check| check.name).collect()
}

#[tokio::test]
async fn a_good_place_has_nothing_wrong() {
    let report = Place::new(90).examine(&[]).await;
    assert_eq!(report.exit_code(), 0, "{}", report.text());
}

#[tokio::test]
async fn a_directory_that_holds_damage_or_is_none_is_a_fault() {
    let place = Place::new(90);
    fs::remove_dir(place.path().join("data")).expect("removed");
    fs::write(place.path().join("data"), "a file").expect("written");
    assert_eq!(faults(&place.examine(&[]).await), ["data-directory"]);
}

#[tokio::test]
async fn a_port_that_somebody_else_has_is_a_fault() {
    let place = Place::new(90);
    let _taken = std::net::TcpListener::bind(place.ports[0]).expect("bound");
    let report = place.examine(&[]).await;
    assert_eq!(faults(&report), ["port"], "{}", report.text());
}

#[tokio::test]
async fn a_file_that_is_no_certificate_is_a_fault() {
    let place = Place::new(90);
    fs::write(place.path().join("hub.crt"), "nothing").expect("written");
    assert_eq!(faults(&place.examine(&[]).await), ["certificate-files"]);
}

//! `init --print`: its files, their modes, and what it never replaces.

use std::fs;

use clap::Parser;

use super::*;
use crate::{
    command::{Cli, Command},
    setup,
};

/// `tributary init --print`, with these flags.
fn prints(home: &Home, flags: &[&str]) -> anyhow::Result<String> {
    let line = ["tributary", "init", "--context", "hub", "--print", "unused"];
    let typed = Cli::try_parse_from(line.iter().chain(flags)).expect("understood");
    let Command::Setup(setup::Command::Init(args)) = typed.command else {
        panic!("another command");
    };
    let wish = wish(&args, home.remembered()?.hub.as_ref());
    print(&args, &wish, home, &home.directory.with_file_name("out"))
}

#[test]
fn what_is_printed_is_private_and_can_be_joined() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = Home::of(Some(directory.path().join("config.yaml")), "default").expect("a home");
    let out = directory.path().join("out");
    let why = prints(&home, &[]).expect_err("nobody knows where").to_string();
    assert!(why.contains("--print needs --address HOST:PORT"), "{why}");
    assert!(!home.directory.exists() && !out.exists(), "something was made");

    prints(&home, &["--address", "hub.example.org:443"]).expect("printed");
    let mut names: Vec<_> = fs::read_dir(&out)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "namespace.yaml",
            "secret-tributary-hub-joining.yaml",
            "secret-tributary-hub-tls.yaml",
            "values-hub.yaml"
        ]
    );
    #[cfg(unix)]
    for name in &names {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(out.join(name)).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", name.display());
    }
    let hub = home.hub().expect("join finds it");
    assert_eq!(hub.hubs, ["https://hub.example.org:443"]);
    assert_eq!(hub.joins, ["https://hub.example.org:8444"]);
    assert!(home.has_context(&hub).expect("looked"));

    // The address of the run before counts, and the keys are those of before.
    let key = fs::read(home.directory.join("ca.key")).expect("a key");
    prints(&home, &[]).expect("printed again");
    assert_eq!(fs::read(home.directory.join("ca.key")).expect("a key"), key);
    let sealed = out.join("secret-tributary-hub-tls.yaml");
    fs::write(&sealed, "sealed").expect("written");
    let why = prints(&home, &[]).expect_err("it is sealed").to_string();
    assert!(why.contains("perhaps sealed"), "{why}");
    assert_eq!(fs::read_to_string(&sealed).expect("read"), "sealed");
}

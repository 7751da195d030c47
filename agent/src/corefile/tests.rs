//! The command with a file, and what its flags refuse.

use std::path::PathBuf;

use clap::Parser;

use super::*;
use crate::args::{Cli, Command};

const COREFILE: &str = ". {\n\tkubernetes a.b\n\timport c/*\n}\n";
const WITH_ZONE: &str = ". {\n\tkubernetes a.b set.x {\n\t\tmulticluster set.x\n\t}\n\timport c/*\n}\n";

fn parse(words: &[&str]) -> Result<CorefileCommand, String> {
    let words = ["tributary-agent", "corefile"].iter().chain(words);
    match Cli::try_parse_from(words)
        .map_err(|error| error.to_string())?
        .command
    {
        Command::Corefile(command) => Ok(command),
        other => panic!("{other:?}"),
    }
}

/// Runs a command on a file.
fn run_on(path: &Path, words: &[&str]) -> Result<Shown, String> {
    let path = path.to_str().expect("a text");
    let words: Vec<&str> = words.iter().copied().chain(["--file", path]).collect();
    let (wanted, args) = match parse(&words)? {
        CorefileCommand::Add(args) => (Wanted::Zone, args),
        CorefileCommand::Remove(args) => (Wanted::NoZone, args),
    };
    let file = args.file.clone().expect("given");
    in_file(wanted, &args, &file).map_err(|error| format!("{error:#}"))
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("my Corefile");
    std::fs::write(&path, text).expect("written");
    (directory, path)
}

#[test]
fn a_file_is_shown_changed_and_written_when_told() {
    let (_directory, path) = written(COREFILE);
    let read = || std::fs::read_to_string(&path).expect("read");
    let shown = run_on(&path, &["add", "--zone", "set.x"]).expect("decided");
    assert_eq!((shown.corefile.as_str(), read().as_str()), (WITH_ZONE, COREFILE));
    for told in [
        "+ \tkubernetes a.b set.x {",
        "What it imports was not looked at: c/*",
        "  tributary-agent corefile add --apply --zone set.x --file '",
    ] {
        assert!(shown.report.contains(told), "{}", shown.report);
    }
    let shown = run_on(&path, &["add", "--zone", "set.x", "--apply"]).expect("done");
    assert_eq!((shown.corefile.as_str(), read().as_str()), ("", WITH_ZONE));
    assert!(shown.report.contains("given this file"), "{}", shown.report);
    // A program that reads the output gets the Corefile, changed or not.
    let shown = run_on(&path, &["add", "--zone", "set.x"]).expect("decided");
    assert_eq!(shown.corefile, WITH_ZONE);
    assert!(shown.report.starts_with("Nothing to do"), "{}", shown.report);
    let shown = run_on(&path, &["remove", "--zone", "set.x", "--apply"]).expect("done");
    assert_eq!((shown.corefile.as_str(), read().as_str()), ("", COREFILE));
}

#[test]
fn a_file_that_is_refused_stays_and_is_not_printed() {
    let (_directory, path) = written(". {\n}\n");
    let error = run_on(&path, &["add", "--apply"]).err().expect("refused");
    assert!(
        error.contains("stays as it is: there is no `kubernetes`"),
        "{error}"
    );
    assert!(!error.contains('\n'), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("read"), ". {\n}\n");
    let error = run_on(Path::new("-"), &["add", "--apply"])
        .err()
        .expect("refused");
    assert!(error.contains("leave --apply out"), "{error}");
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    for (words, told) in [
        (
            &["add", "--zone", "Clusterset.local"][..],
            "DNS name in lower case",
        ),
        (&["add", "--namespace", "a.b"], "RFC 1123 DNS label"),
        (&["remove", "--configmap", "a/b"], "RFC 1123 DNS subdomain"),
        (&["remove", "--file", "a", "--key", "b"], "cannot be used with"),
        (&[], "Usage:"),
    ] {
        let error = parse(words).expect_err(told);
        assert!(error.contains(told), "{error}");
    }
}

//! `join --print`: its files, and what it never replaces.

use std::fs;

use clap::Parser;

use super::*;
use crate::{
    command::{Cli, Command},
    setup,
};

#[test]
fn what_is_printed_has_no_token_and_leaves_a_join_string_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let line = ["tributary", "join", "east", "--context", "east"];
    let Command::Setup(setup::Command::Join(args)) = Cli::try_parse_from(line).expect("understood").command
    else {
        panic!("another command");
    };
    let hub = HubPlace {
        hubs: vec!["https://hub.example.org:443".to_owned()],
        joins: vec!["https://hub.example.org:8444".to_owned()],
        ..HubPlace::default()
    };
    let out = directory.path().join("out");
    print(&args, &hub, &out).expect("printed");
    let secret = out.join("secret-tributary-join.yaml");
    let text = fs::read_to_string(&secret).expect("read");
    assert!(text.contains("tributary token create"), "{text}");
    let filled = text.replace("the first line of", "a join string instead of");
    fs::write(&secret, &filled).expect("written");
    let why = print(&args, &hub, &out)
        .expect_err("it was filled in")
        .to_string();
    assert!(why.contains("move it away, or name another directory"), "{why}");
    assert_eq!(fs::read_to_string(&secret).expect("read"), filled);
}

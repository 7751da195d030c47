//! Tests of a file of clustersets: its content, and its refusals.

use super::*;

/// The heading of the guide whose first YAML block is the whole example.
const HEADING: &str = "# Several clustersets in one hub\n";

fn admin() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9090))
}

/// An entry with these lines besides its certificates.
fn entry(name: &str, lines: &[&str]) -> String {
    let tls = "tls: {ca: ca.crt, cert: hub.crt, key: hub.key}";
    let lines = [&[tls], lines].concat().join("\n  ");
    format!("- name: {name}\n  {lines}\n")
}

fn read(entries: &[String]) -> anyhow::Result<Vec<(String, SetArgs)>> {
    parse(&format!("clustersets:\n{}", entries.concat()), admin())
}

fn refused(entries: &[String]) -> String {
    let error = read(entries).expect_err("it is wrong");
    let error = format!("{error:#}");
    assert!(!error.contains('\n'), "one line: {error}");
    error
}

fn shops(lines: &[&str]) -> String {
    entry(
        "shops",
        &[&["data: data/shops", "listen: 0.0.0.0:8443"], lines].concat(),
    )
}

fn labs(lines: &[&str]) -> String {
    entry(
        "labs",
        &[&["data: data/labs", "listen: 0.0.0.0:8444"], lines].concat(),
    )
}

#[test]
fn the_example_of_the_guide_is_taken() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../docs/guides/several-clustersets.md"
    );
    let page = fs::read_to_string(page).expect("the guide");
    let (_, section) = page.split_once(HEADING).expect("the section");
    let (_, example) = section.split_once("```yaml\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let sets = parse(example, admin()).expect("the example is right");
    assert!(sets.len() > 1);
    let (_, first) = &sets[0];
    assert!(first.join.join_listen.is_some() && first.clients.deny_keys.is_some());
    assert!(first.topology.is_some() && sets[1].1.topology.is_none());
}

#[test]
fn what_is_left_out_is_as_without_flags() {
    let sets = read(&[
        shops(&[]),
        labs(&["join: {cert: join.crt, key: join.key, memberCertLifetime: 12h}"]),
    ]);
    let sets = sets.expect("two");
    let names: Vec<_> = sets.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["shops", "labs"]);
    let [(_, shops), (_, labs)] = &sets[..] else {
        panic!("{sets:?}")
    };
    assert_eq!(shops.join.member_cert_lifetime.as_secs(), 365 * 24 * 60 * 60);
    assert!(shops.join.join_cert.is_none() && !shops.adopt_epoch);
    assert_eq!(labs.join.member_cert_lifetime.as_secs(), 12 * 60 * 60);
    assert!(labs.join.join_listen.is_none() && labs.join.join_key.is_some());
    assert_eq!(shops.clients, Default::default());
}

#[test]
fn what_two_cannot_share_is_refused_with_who_has_it() {
    let name = entry("shops", &["data: data/other", "listen: 0.0.0.0:8444"]);
    assert!(refused(&[shops(&[]), name]).contains("another clusterset of the file has it"));
    for data in ["data/shops", "data/../data/shops", "./data/shops/log", "data"] {
        let other = entry("labs", &[&format!("data: {data}"), "listen: 0.0.0.0:8444"]);
        let error = refused(&[shops(&[]), other]);
        assert!(error.contains("data directory of shops"), "{data}: {error}");
    }
    for listen in ["0.0.0.0:8443", "127.0.0.1:8443", "\"[::]:8443\""] {
        let other = entry("labs", &["data: data/labs", &format!("listen: {listen}")]);
        let error = refused(&[shops(&[]), other]);
        assert!(
            error.contains("is the port of shops (listen)"),
            "{listen}: {error}"
        );
    }
    let join = ["join: {listen: 0.0.0.0:8443, cert: a, key: b}"];
    assert!(refused(&[shops(&[]), labs(&join)]).contains("join.listen: 0.0.0.0:8443 is the port of shops"));
    assert!(refused(&[shops(&join)]).contains("join.listen"), "its own");
    let at_admin = entry("labs", &["data: data/labs", "listen: 0.0.0.0:9090"]);
    assert!(refused(&[at_admin]).contains("--admin"));
    let inventory = labs(&["inventoryNamespace: tributary-shops"]);
    assert!(refused(&[shops(&[]), inventory]).contains("tributary-shops is that of shops"));
}

#[test]
fn a_directory_that_is_reached_by_two_names_is_one() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::create_dir(dir.path().join("real")).expect("made");
    std::os::unix::fs::symlink("real", dir.path().join("link")).expect("linked");
    let at = |name: &str, port: &str| {
        let data = dir.path().join(name).join("below");
        entry(
            port,
            &[
                &format!("data: {}", data.display()),
                &format!("listen: 127.0.0.1:{}", port.len()),
            ],
        )
    };
    let error = refused(&[at("real", "a"), at("link", "bc")]);
    assert!(error.contains("data directory of a"), "{error}");
    read(&[at("real", "a"), at("other", "bc")]).expect("two places");
}

#[test]
fn a_file_that_is_wrong_is_refused_in_one_line() {
    assert!(refused(&[]).contains("clustersets"));
    assert!(format!("{:#}", parse("clustersets: []", admin()).expect_err("none")).contains("at least one"));
    assert!(refused(&[shops(&["adopt_epoch: true"])]).contains("unknown field"));
    assert!(refused(&[shops(&["tokens: many"])]).contains("unknown field"));
    assert!(refused(&[entry("shops", &["data: data"])]).contains("listen"));
    assert!(refused(&[entry("Shops", &["data: data", "listen: 127.0.0.1:1"])]).contains("Shops"));
    assert!(refused(&[shops(&["clients: {memberKeys: all}"])]).contains("neither pin nor renew"));
    assert!(refused(&[shops(&["clients: {memberKeys: renew}"])]).contains("renewalIssuer"));
    let short = shops(&["join: {cert: a, key: b, memberCertLifetime: 1s}"]);
    assert!(refused(&[short]).contains("30s to 3650d"));
    let many: Vec<_> = (0..=SETS_MAX)
        .map(|number| {
            let (data, listen) = (
                format!("data: data/{number}"),
                format!("listen: 127.0.0.1:{}", 1000 + number),
            );
            entry(&format!("set-{number}"), &[&data, &listen])
        })
        .collect();
    assert!(refused(&many).contains("more than the 16"));
    assert_eq!(read(&many[1..]).expect("as many as may be").len(), SETS_MAX);
}

#[test]
fn a_file_that_is_missing_or_too_long_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("sets.yaml");
    let told = || format!("{:#}", Layout::read(&file, admin()).expect_err("not taken"));
    assert!(told().contains("sets.yaml cannot be read"), "{}", told());
    fs::write(&file, "#".repeat(FILE_BYTES_MAX as usize + 1)).expect("written");
    assert!(told().contains("is longer than"), "{}", told());
    fs::write(&file, format!("clustersets:\n{}", shops(&[]))).expect("written");
    let layout = Layout::read(&file, admin()).expect("taken");
    assert_eq!((layout.file, layout.sets.len()), (file, 1));
}

//! Keys, contexts and what is remembered, on a disk.

use shared::model::ClusterId;

use super::*;
use crate::setup::args::{ClusterArgs, ServiceType};

fn home(directory: &Path) -> Home {
    Home::of(Some(directory.join("config.yaml")), "default").expect("a home")
}

#[test]
fn keys_are_made_once_and_a_key_alone_is_made_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = home(directory.path());
    assert_eq!(home.pair("ca").expect("looked"), Pair::Missing);
    fs::create_dir_all(&home.directory).expect("made");
    fs::write(home.file("ca.key"), "half").expect("written");
    home.make_authority().expect("made");
    let aside = fs::read_to_string(home.file("ca.key.old1"));
    assert_eq!(aside.expect("no key is overwritten"), "half");
    assert_eq!(home.pair("ca").expect("looked"), Pair::Whole);
    home.make_authority().expect_err("never twice");
    home.make_joining().expect("made");
    home.issue(&Subject::Operator("admin".to_owned()))
        .expect("issued");
    home.operator("admin").expect("whole");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        for name in ["ca.key", "joining.ca.key", "admin.key"] {
            let mode = fs::metadata(home.file(name)).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }
    fs::remove_file(home.file("ca.key")).expect("removed");
    assert_eq!(home.pair("ca").expect("looked"), Pair::WithoutKey);
}

#[test]
fn a_change_is_remembered_and_the_context_leads_to_the_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = home(directory.path());
    home.hub().expect_err("no hub yet");
    home.make_authority().expect("made");
    let hub = HubPlace {
        hubs: vec!["https://192.0.2.1:8443".to_owned()],
        operator: "admin".to_owned(),
        service_type: ServiceType::NodePort,
        ..HubPlace::default()
    };
    assert!(home.remember(|all| all.hub = Some(hub.clone())).expect("written"));
    assert!(
        !home
            .remember(|all| all.hub = Some(hub.clone()))
            .expect("the same")
    );
    assert_eq!(home.hub().expect("remembered"), hub);
    assert!(!home.has_context(&hub).expect("looked"));
    home.put_context(&hub).expect("put");
    assert!(home.has_context(&hub).expect("looked"));
    assert!(home.remove_context().expect("removed"));
}

#[test]
fn a_key_that_was_used_is_not_half_made() {
    for ((certificate, key, used), pair) in [
        ((true, true, true), Pair::Whole),
        ((true, true, false), Pair::Whole),
        ((true, false, true), Pair::WithoutKey),
        ((false, true, true), Pair::WithoutCertificate),
        ((false, true, false), Pair::Missing),
        ((false, false, true), Pair::Missing),
    ] {
        assert_eq!(Pair::of(certificate, key, used), pair);
    }
    for later in AFTER_AUTHORITY {
        let directory = tempfile::tempdir().expect("a directory");
        let home = home(directory.path());
        home.make_authority().expect("made");
        fs::write(home.file(later), "{}").expect("written");
        let key = fs::read(home.file("ca.key")).expect("a key");
        fs::remove_file(home.file("ca.crt")).expect("removed");
        assert_eq!(home.pair("ca").expect("looked"), Pair::WithoutCertificate);
        home.make_authority().expect_err("it was used");
        assert_eq!(fs::read(home.file("ca.key")).expect("a key"), key, "{later}");
    }
}

#[test]
fn what_another_command_made_meanwhile_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = home(directory.path());
    home.make_authority().expect("made");
    let admin = Subject::Operator("admin".to_owned());
    let keys = || ["joining.ca.key", "admin.key"].map(|name| fs::read(home.file(name)).expect("a key"));
    home.make_joining().expect("made");
    home.issue(&admin).expect("issued");
    let before = keys();
    home.make_joining().expect("there");
    home.issue(&admin).expect("there");
    assert_eq!(keys(), before);
}

#[test]
fn commands_at_once_lose_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    std::thread::scope(|scope| {
        for index in 0..8 {
            let home = home(directory.path());
            scope.spawn(move || {
                let args = ClusterArgs {
                    context: format!("c{index}"),
                    kubeconfig: None,
                    namespace: "ns".to_owned(),
                };
                let place = MemberPlace::from(&args);
                let remembered = home.remember(|all| drop(all.members.insert(args.context, place)));
                remembered.expect("written");
            });
        }
    });
    let remembered = home(directory.path()).remembered().expect("read");
    assert_eq!(remembered.members.len(), 8);
}

#[test]
fn a_context_that_init_did_not_make_stays() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = home(directory.path());
    home.make_authority().expect("made");
    let hub = HubPlace {
        hubs: vec!["https://192.0.2.1:8443".to_owned()],
        operator: "admin".to_owned(),
        ..HubPlace::default()
    };
    home.check_context().expect("there is none");
    let ours = home.wanted_context(&hub).expect("a context");
    for (key, is_ours) in [
        (ContextPem::File(home.file("admin.key")), true),
        (ContextPem::File("default/bob.key".into()), true),
        (ContextPem::File("/etc/tributary/admin.key".into()), false),
        (ContextPem::File("admin.key".into()), false),
        (
            ContextPem::Inline("-----BEGIN PRIVATE KEY-----\n".to_owned()),
            false,
        ),
    ] {
        let context = ClientContext { key, ..ours.clone() };
        home.store.put(context.clone()).expect("put");
        match home.check_context() {
            Ok(()) => assert!(is_ours, "{context:?}"),
            Err(why) => assert!(
                !is_ours && why.to_string().contains("that init did not make"),
                "{why}"
            ),
        }
        assert_eq!(home.remove_context().expect("looked"), is_ours, "{context:?}");
        let left = home.store.read().expect("read");
        assert_eq!(left.get("default").is_none(), is_ours, "{context:?}");
    }
}

#[test]
fn paths_do_not_depend_on_the_working_directory() {
    let home = Home::of(Some("somewhere/config.yaml".into()), "default").expect("a home");
    assert!(home.directory.is_absolute(), "{}", home.directory.display());
}

#[test]
fn a_hub_without_address_is_none_and_another_place_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = home(directory.path());
    let place = HubPlace {
        cluster: Some("uid".to_owned()),
        namespace: Some("ns".to_owned()),
        ..HubPlace::default()
    };
    home.check_place("uid", "ns").expect("nobody knows");
    home.remember(|all| all.hub = Some(place)).expect("written");
    home.hub().expect_err("its address is not known");
    home.check_place("uid", "ns").expect("it is here");
    let why = home
        .check_place("other", "ns")
        .expect_err("elsewhere")
        .to_string();
    assert!(
        why.starts_with("nothing was changed: the hub of clusterset default"),
        "{why}"
    );
    home.check_place("uid", "else").expect_err("elsewhere");
}

#[test]
fn the_clusterset_is_that_of_the_certificate() {
    let directory = tempfile::tempdir().expect("a directory");
    let home = home(directory.path());
    home.make_authority().expect("made");
    home.issue(&Subject::Member(ClusterId::new("east").expect("valid")))
        .expect("issued");
    let own = home.authority().expect("an authority").clusterset().clone();
    assert_eq!(home.clusterset_of("east").expect("a certificate"), own);
    home.clusterset_of("west").expect_err("there is none");
}

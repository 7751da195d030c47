//! Each fault at a hub's place, planted as a value.

use super::*;

const DAY: u64 = 86_400_000;
const NOW: UnixMillis = UnixMillis(1_000 * DAY);

fn seen() -> DataSeen {
    DataSeen {
        directory: "data".into(),
        writable: Ok(()),
        space: Some((50, 100)),
        log: LogSeen::Read("3 segments".into()),
    }
}

/// The one fault.
fn fault(checks: &[Check]) -> (&'static str, String, String) {
    let faults: Vec<&Check> = checks.iter().filter(|check| check.is_fault()).collect();
    let [fault] = faults[..] else { panic!("{checks:?}") };
    let (what, fix) = fault.verdict.words();
    (fault.name, what, fix.expect("a fix"))
}

fn judged(seen: &DataSeen) -> Vec<Check> {
    data(seen, (15, 5))
}

#[test]
fn a_good_place_has_no_fault() {
    for log in [LogSeen::None, LogSeen::InUse, seen().log] {
        let checks = judged(&DataSeen { log, ..seen() });
        assert!(!checks.iter().any(Check::is_fault), "{checks:?}");
    }
    let unread = judged(&DataSeen {
        log: LogSeen::Unread("no".into()),
        ..seen()
    });
    assert_eq!(unread[2].verdict.word(), "unseen");
}

#[test]
fn a_directory_that_cannot_be_written() {
    let (name, what, _) = fault(&judged(&DataSeen {
        writable: Err("read-only".into()),
        ..seen()
    }));
    assert_eq!(name, "data-directory");
    assert!(what.contains("read-only"), "{what}");
}

#[test]
fn a_disk_that_is_nearly_full() {
    let of = |free| DataSeen {
        space: Some((free, 100)),
        ..seen()
    };
    assert!(!judged(&of(15)).iter().any(Check::is_fault));
    let (name, what, fix) = fault(&judged(&of(14)));
    assert_eq!(name, "disk");
    assert!(
        what.contains("--disk-alarm") && fix.contains("log compact"),
        "{what} {fix}"
    );
    assert!(fault(&judged(&of(5))).1.contains("--disk-alarm"));
    assert!(fault(&judged(&of(4))).1.contains("--disk-reserve"));
}

#[test]
fn a_memory_limit_that_is_too_small_for_the_state() {
    let (mib, gib) = (1 << 20, 1 << 30);
    assert!(!memory(gib / 2, Some(gib), None).is_fault() && !memory(gib, None, None).is_fault());
    let (name, what, fix) = fault(&[memory(gib, Some(gib), Some(665 * mib))]);
    assert_eq!(name, "memory");
    assert!(
        what.contains("limit here is 1024 MiB, --state-memory 1024 MiB"),
        "{what}"
    );
    assert!(fix.contains("--state-memory 665MiB"), "{fix}");
}

#[test]
fn a_state_that_is_nearly_full() {
    let metrics = |memory: u64| {
        let mut text = "# TYPE tributary_hub_state_used gauge\n".to_owned();
        for (of, used, limit) in [("exports", 10, 100), ("memory", memory, 1_000)] {
            text += &format!("tributary_hub_state_used{{of=\"{of}\"}} {used}\n");
            text += &format!("tributary_hub_state_limit{{of=\"{of}\"}} {limit}\n");
        }
        state(&Ok((200, text)))
    };
    assert!(!metrics(599).is_fault());
    let (name, what, _) = fault(&[metrics(600)]);
    assert_eq!(name, "state");
    assert!(what.contains("60%") && what.contains("of=\"memory\""), "{what}");
    assert_eq!(state(&Ok((200, String::new()))).verdict.word(), "skipped");
    for said in [Ok((500, String::new())), Err("no".into())] {
        assert_eq!(state(&said).verdict.word(), "unseen");
    }
}

#[test]
fn a_log_that_cannot_be_opened_or_is_of_a_later_release() {
    let of = |log| judged(&DataSeen { log, ..seen() });
    let (name, what, fix) = fault(&of(LogSeen::Refused("damaged".into())));
    assert_eq!((name, &*what), ("event-log", "damaged"));
    assert_eq!(fix, "tributary-hub log verify --data data");
    let (_, what, fix) = fault(&of(LogSeen::Later("format 9".into())));
    assert!(
        what.contains("later release") && fix.contains("release that wrote it"),
        "{what} {fix}"
    );
}

#[test]
fn ports_belong_to_the_hub_or_are_free() {
    let of = |taken, hub| {
        let seen = PortSeen {
            flag: "--listen",
            address: "0.0.0.0:8443".into(),
            taken,
        };
        ports(&[seen], hub)
    };
    assert!(!of(Ok(()), false)[0].is_fault());
    assert!(!of(Err(PortProblem::InUse), true)[0].is_fault());
    assert!(fault(&of(Err(PortProblem::InUse), false)).1.contains("by no hub"));
    assert!(fault(&of(Ok(()), true)).1.contains("nothing listens"));
    let other = PortProblem::Other("permission denied".into());
    assert!(fault(&of(Err(other), false)).1.contains("permission denied"));
}

#[test]
fn a_hub_that_is_not_ready_is_a_fault() {
    assert!(!ready(&Ok((200, String::new()))).is_fault());
    assert!(
        fault(&[ready(&Ok((503, "event log replayed".into())))])
            .1
            .contains("event log replayed")
    );
    assert!(fault(&[ready(&Err("refused".into()))]).1.contains("refused"));
}

#[test]
fn an_authority_for_joining_that_ends() {
    let of = |left: i64| {
        let ends = UnixMillis(NOW.0.checked_add_signed(left * DAY as i64).expect("a time"));
        joining(&Ok((UnixMillis(ends.0 - 100 * DAY), ends)), NOW)
    };
    assert!(!of(10).is_fault());
    assert!(fault(&[of(9)]).1.contains("ends in 9 d"));
    assert!(fault(&[of(0)]).1.contains("has expired"));
    assert!(fault(&[of(101)]).1.contains("not valid yet"));
    let unusable = joining(&Err("no key".into()), NOW);
    assert!(fault(&[unusable]).2.contains("certs joining"));
}

fn served(version: &str) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let kinds = BTreeSet::from(["clusterprofiles".to_owned()]);
    Ok(BTreeMap::from([(version.to_owned(), kinds)]))
}

#[test]
fn an_inventory_without_its_definition_or_namespace() {
    for version in ["multicluster.x-k8s.io/v1alpha1", "multicluster.x-k8s.io/v1alpha2"] {
        assert!(!definition(&served(version)).is_fault());
    }
    assert!(
        fault(&[definition(&Ok(BTreeMap::new()))])
            .1
            .contains("no definition")
    );
    let later = definition(&served("multicluster.x-k8s.io/v1"));
    assert!(fault(&[later]).1.contains("x-k8s.io/v1 only"));
    assert_eq!(definition(&Err("no".into())).verdict.word(), "unseen");
    let of = |seen| namespace(&seen, "tributary-default", "default");
    assert!(!of(Ok(Some(Some("default".into())))).is_fault());
    assert!(
        fault(&[of(Ok(Some(None)))])
            .2
            .starts_with("kubectl label namespace")
    );
    assert!(
        fault(&[of(Ok(Some(Some("other".into()))))])
            .1
            .contains("lacks the label")
    );
    assert!(fault(&[of(Ok(None))]).2.starts_with("kubectl create namespace"));
    assert_eq!(of(Err("no".into())).verdict.word(), "unseen");
}

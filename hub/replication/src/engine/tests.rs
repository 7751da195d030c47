//! Frozen keys and values, and decoders under arbitrary bytes.

use bytes::Bytes;
use model::{ChainHash, Clusterset, Cursor, Epoch, Revision, UnixMillis};
use proptest::prelude::*;

use super::*;

const EPOCH: Epoch = Epoch {
    created_at: UnixMillis(0x0102_0304_0506_0708),
    random: 0x1112_1314_1516_1718,
};
const EPOCH_HEX: &str = "01020304050607081112131415161718";

fn at(revision: u64, hash: u8) -> Cursor {
    Cursor {
        epoch: EPOCH,
        revision: Revision(revision),
        hash: ChainHash([hash; 16]),
    }
}

fn replica(name: &str) -> Replica {
    Replica::new(name).unwrap()
}

fn head() -> Head {
    Head {
        engine: EngineId([0xee; 16]),
        term: Term(7),
        at: at(12, 0xab),
        replica: replica("tributary-hub-1"),
        instance: Instance([0x1a; 8]),
    }
}

#[test]
fn keys_are_frozen_and_sort_as_positions_do() {
    let set = Clusterset::new("example.org", "default").unwrap();
    let keys = Keys::new(&set, LogName::Events);
    let prefix = "/tributary/1/example.org/default/events/";
    assert_eq!(keys.head(), format!("{prefix}head"));
    assert_eq!(keys.pulse(), format!("{prefix}pulse"));
    assert_eq!(keys.base(EPOCH), format!("{prefix}base/{EPOCH_HEX}"));
    assert_eq!(keys.hub(&replica("a")), format!("{prefix}hubs/a"));
    let batch = keys.batch(EPOCH, Revision(0x1f));
    assert_eq!(batch, format!("{prefix}batch/{EPOCH_HEX}/000000000000001f"));
    assert_eq!(keys.parse_batch(&batch), Some((EPOCH, Revision(0x1f))));
    assert_eq!(keys.parse_base(&keys.base(EPOCH)), Some(EPOCH));
    for wrong in [
        keys.head(),
        keys.base(EPOCH),
        batch.to_uppercase(),
        batch[..batch.len() - 1].to_owned(),
    ] {
        assert_eq!(keys.parse_batch(&wrong), None, "{wrong}");
    }
    let topology = Keys::new(&set, LogName::Topology);
    assert_eq!(topology.parse_batch(&batch), None);
    assert!(topology.head().contains("/default/topology/"));

    let later = EPOCH.next(UnixMillis(0), 0);
    let from = keys.batches_from(EPOCH, Revision(0x1f));
    let below = keys.batches_below(EPOCH, Revision(0x1f));
    let within = |range: &KeyRange, key: &String| range.from <= *key && *key < range.to;
    for (key, expected) in [
        (keys.batch(EPOCH, Revision(0x1e)), (false, true)),
        (batch, (true, false)),
        (keys.batch(EPOCH, Revision(u64::MAX)), (true, false)),
        (keys.batch(later, Revision(1)), (true, false)),
        (keys.base(EPOCH), (false, false)),
        (keys.hub(&replica("a")), (false, false)),
    ] {
        assert_eq!((within(&from, &key), within(&below, &key)), expected, "{key}");
        assert!(within(&keys.all(), &key));
    }
    assert!(within(&keys.bases(), &keys.base(EPOCH)) && !within(&keys.bases(), &keys.head()));
    assert!(within(&keys.hubs(), &keys.hub(&replica("z"))) && !within(&keys.hubs(), &keys.pulse()));
    assert!(!within(&keys.all(), &topology.head()));
}

#[test]
fn lines_are_frozen() {
    let (engine, hash) = ("ee".repeat(16), "ab".repeat(16));
    let line = format!(
        "1 {engine} 7 {EPOCH_HEX} 12 {hash} tributary-hub-1 {}",
        "1a".repeat(8)
    );
    assert_eq!(head().encode(), line);
    let base = Base {
        epoch: EPOCH,
        over: at(3, 0xcd),
    };
    assert_eq!(base.encode(), format!("1 {EPOCH_HEX} 3 {}", "cd".repeat(16)));
    assert_eq!(Base::decode(EPOCH, base.encode().as_bytes()), Ok(base));
    let (term, next) = (Term(7), Some(replica("b")));
    for (beat, line) in [
        (Beat::Alive { term, count: 3 }, "7 3"),
        (Beat::Resigned { term, next: None }, "7 resigned"),
        (Beat::Resigned { term, next }, "7 resigned b"),
    ] {
        assert_eq!(beat.encode(), line);
        assert_eq!(Beat::decode(line.as_bytes()), Ok(beat));
    }
    let row = HubRow {
        replica: replica("a"),
        address: "10.0.0.1:8443".into(),
        version: "0.1.0".into(),
        rules: 3,
        role: Role::Follows,
        term,
        synced: None,
    };
    assert_eq!(row.encode(), "1 a 10.0.0.1:8443 0.1.0 3 follows 7");
    let synced = HubRow {
        synced: Some(at(3, 0xcd)),
        ..row.clone()
    };
    assert_eq!(
        synced.encode(),
        format!("{} {EPOCH_HEX} 3 {}", row.encode(), "cd".repeat(16))
    );
    for role in [Role::Waits, Role::Follows, Role::Leads, Role::Copies, Role::Ahead] {
        let row = HubRow { role, ..row.clone() };
        assert_eq!(HubRow::decode(row.encode().as_bytes()), Ok(row));
    }
}

#[test]
fn a_value_of_a_later_release_says_so_and_others_are_refused() {
    let line = head().encode();
    let newer = Head::decode(line.replacen('1', "2", 1).as_bytes());
    assert!(
        matches!(
            newer,
            Err(Unreadable::Newer {
                what: "head",
                version: 2,
                known: 1
            })
        ),
        "{newer:?}"
    );
    let long = format!("1 {}", "a".repeat(2_000));
    let wrong = [
        "",
        "1",
        &line[..line.len() - 1],
        &format!("{line} "),
        &format!("{line} more"),
        &format!(" {line}"),
        &line.replacen(' ', "  ", 1),
        &line.replacen(" 7 ", " 07 ", 1),
        &line.replacen(" 7 ", " +7 ", 1),
        &line.replacen("ee", "EE", 1),
        &line.replacen("tributary", "Tributary", 1),
        &line.replacen('1', "0", 1),
        &long,
    ];
    for wrong in wrong {
        let decoded = Head::decode(wrong.as_bytes());
        assert!(
            matches!(decoded, Err(Unreadable::Invalid { .. })),
            "{wrong}: {decoded:?}"
        );
    }
    assert!(Head::decode(&[0xff, 0xfe]).is_err());
    for wrong in [
        "7",
        "7 ",
        "7 resigned ",
        "7 resigned b c",
        "7 3 4",
        "7 03",
        "7 resignedb",
        "resigned",
    ] {
        assert!(Beat::decode(wrong.as_bytes()).is_err(), "{wrong}");
    }
    for wrong in [
        "1 a x:1 v 3 sleeps 7",
        "1 a x:1 v 4294967296 leads 7",
        "1 a x:1 v 3 leads 7 8",
        "1 a x\u{7f} v 3 leads 7",
    ] {
        assert!(HubRow::decode(wrong.as_bytes()).is_err(), "{wrong}");
    }
}

#[test]
fn the_bytes_of_a_batch_are_frozen() {
    let before = at(12, 0xab);
    let batch = EngineBatch::new(before, Term(7), true, [&b"one"[..], b""]).unwrap();
    let after = before.hash.after(b"one").after(b"");
    let header = format!("0101{:016x}{}{after}{:08x}", 7, before.hash, 2);
    let hex: String = batch.encoded().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, format!("{header}000000036f6e6500000000"));
    assert_eq!(
        (batch.after().revision, batch.after().hash),
        (Revision(14), after)
    );
    assert_eq!((batch.term(), batch.begins_segment()), (Term(7), true));
    let read = EngineBatch::decode(EPOCH, Revision(13), batch.encoded().clone()).unwrap();
    assert_eq!(read, batch);
    assert!(read.payloads().eq([&b"one"[..], b""]));
    let plain = EngineBatch::new(before, Term(7), false, [&b"one"[..]]).unwrap();
    assert_eq!((plain.encoded()[1], plain.begins_segment()), (0, false));
}

#[test]
fn a_batch_keeps_its_bounds() {
    let make =
        |payloads: &[Vec<u8>]| EngineBatch::new(at(0, 1), Term(1), false, payloads.iter().map(Vec::as_slice));
    let refused = |events, bytes| Err(InvalidEngineBatch { events, bytes });
    assert_eq!(make(&[]), refused(0, 0));
    assert!(
        make(&[vec![0; EVENT_BYTES_MAX]]).is_ok(),
        "one large event goes alone"
    );
    assert_eq!(
        make(&[vec![0; EVENT_BYTES_MAX + 1]]),
        refused(1, EVENT_BYTES_MAX + 1)
    );
    assert!(make(&[vec![0; BATCH_BYTES_MAX], vec![]]).is_ok());
    assert_eq!(
        make(&[vec![0; BATCH_BYTES_MAX], vec![0]]),
        refused(2, BATCH_BYTES_MAX + 1)
    );
    assert!(make(&vec![vec![]; BATCH_EVENTS_MAX]).is_ok());
    assert_eq!(
        make(&vec![vec![]; BATCH_EVENTS_MAX + 1]),
        refused(BATCH_EVENTS_MAX + 1, 0)
    );
}

#[test]
fn a_batch_that_was_changed_is_refused() {
    let batch = EngineBatch::new(at(12, 0xab), Term(7), false, [&b"one"[..], b"two"]).unwrap();
    let decode = |bytes: Vec<u8>| EngineBatch::decode(EPOCH, Revision(13), bytes.into());
    for position in 0..batch.encoded().len() {
        let mut bytes = batch.encoded().to_vec();
        bytes[position] ^= 0x40;
        // Term and place alone are not part of the chain; the head that names them is compared.
        let is_term = (2..10).contains(&position);
        assert_eq!(decode(bytes).is_ok(), is_term, "byte {position}");
    }
    for length in 0..batch.encoded().len() {
        assert!(
            decode(batch.encoded()[..length].to_vec()).is_err(),
            "{length} bytes"
        );
    }
    assert!(decode([batch.encoded(), &b"x"[..]].concat()).is_err());
    let bytes = batch.encoded().clone();
    assert!(EngineBatch::decode(EPOCH, Revision(0), bytes.clone()).is_err());
    assert!(EngineBatch::decode(EPOCH, Revision(u64::MAX), bytes.clone()).is_err());
    assert!(EngineBatch::decode(EPOCH, Revision(1), vec![0; 2 * EVENT_BYTES_MAX].into()).is_err());
    let newer = [&[2], &bytes[1..]].concat();
    assert!(matches!(decode(newer), Err(Unreadable::Newer { version: 2, .. })));
}

fn cursors() -> impl Strategy<Value = Cursor> {
    (any::<u64>(), any::<u64>(), any::<u64>(), any::<[u8; 16]>()).prop_map(
        |(created_at, random, revision, hash)| Cursor {
            epoch: Epoch {
                created_at: UnixMillis(created_at),
                random,
            },
            revision: Revision(revision),
            hash: ChainHash(hash),
        },
    )
}

/// Bytes, some of which look like a value.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        "[0-9a-f]{1,2}( [0-9a-z]{0,34}){0,9}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #[test]
    fn heads_and_rows_read_back(at in cursors(), term: u64, id: [u8; 16], instance: [u8; 8], rules: u32) {
        let head = Head {
            engine: EngineId(id),
            term: Term(term),
            at,
            replica: replica("hub-0"),
            instance: Instance(instance),
        };
        prop_assert_eq!(Head::decode(head.encode().as_bytes()), Ok(head.clone()));
        prop_assert!(head.is_of(&head));
        let row = HubRow {
            replica: head.replica,
            address: "hub:1".into(),
            version: "v".into(),
            rules,
            role: Role::Leads,
            term: Term(term),
            synced: Some(at),
        };
        prop_assert_eq!(HubRow::decode(row.encode().as_bytes()), Ok(row));
    }

    #[test]
    fn batches_read_back(
        before in cursors(),
        term: u64,
        mark: bool,
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20),
    ) {
        let before = Cursor { revision: Revision(before.revision.0 / 2), ..before };
        let batch = EngineBatch::new(before, Term(term), mark, payloads.iter().map(Vec::as_slice)).unwrap();
        let read = EngineBatch::decode(before.epoch, before.revision.next(), batch.encoded().clone());
        prop_assert_eq!(read, Ok(batch.clone()));
        prop_assert!(batch.payloads().eq(payloads));
    }

    #[test]
    fn decoders_take_any_bytes_and_accept_one_spelling(line in lines(), first: u64) {
        if let Ok(head) = Head::decode(&line) {
            prop_assert_eq!(head.encode().into_bytes(), line.clone());
        }
        if let Ok(beat) = Beat::decode(&line) {
            prop_assert_eq!(beat.encode().into_bytes(), line.clone());
        }
        if let Ok(base) = Base::decode(EPOCH, &line) {
            prop_assert_eq!(base.encode().into_bytes(), line.clone());
        }
        if let Ok(row) = HubRow::decode(&line) {
            prop_assert_eq!(row.encode().into_bytes(), line.clone());
        }
        let _ = EngineBatch::decode(EPOCH, Revision(first), Bytes::from(line));
    }
}

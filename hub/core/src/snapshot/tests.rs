//! Rows of snapshots go there and back, and what is none is refused.

use data_encoding::HEXLOWER;
use model::{JoinToken, KeyAcceptance, PrecedenceClaim, TokenHash};

use proptest::prelude::*;

use super::*;
use fold::{JoinTokenState, JoinTokenUse};

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// For every state that members and operators can lead to, the bytes read back give the same state.
    #[test]
    fn a_state_is_restored_from_the_bytes_of_its_rows(states in fold::testing::states()) {
        for state in states {
            let rows = state.snapshot_rows().map(|row| decode_row(&encode_row(&row)).expect("a row"));
            let restored = State::restore_and_compare(rows).expect("a snapshot");
            prop_assert_eq!(&restored.differing, &[]);
            prop_assert_eq!(&restored.state, &state);
        }
    }
}

/// In the order of [`rows`].
const FROZEN_ROWS: [&str; 12] = [
    "0a12080110ac0218e80720072801300238034004",
    "0a14080110ac0218e807200728013002380340044803",
    "123f0a04656173741005180120002a0375696432046e65787442200909090909090909090909090909090909090909090909090909090909090909480558006002",
    "22200a0622046561737410021a10030303030303030303030303030303032a020102",
    "2a1a0a161a140a0465617374120c0a0473686f701204636172741004",
    "12dd010a04656173741005180120002a0375696432046e6578743a2001010101010101010101010101010101010101010101010101010101010101013a20020202020202020202020202020202020202020202020202020202020202020242200909090909090909090909090909090909090909090909090909090909090909480558006002a201340a2002020202020202020202020202020202020202020202020202020202020202021209434e3d69737375657218a84620032807aa01200404040404040404040404040404040404040404040404040404040404040404",
    "a201290a2005050505050505050505050505050505050505050505050505050505050505051a03626f622008",
    "aa014e08091203616461180a224361706956657273696f6e3a207472696275746172792e6465762f7631616c706861310a6b696e643a20436c7573746572736574506f6c6963790a737065633a207b7d0a",
    "aa015008091203616461180a224361706956657273696f6e3a207472696275746172792e6465762f7631616c706861310a6b696e643a20436c7573746572736574506f6c6963790a737065633a207b7d0a2806",
    "b201340a0c0a0473686f70120463617274100b1a0f0a046561737412037569641a020802220f0a047765737412037569641a0208012801",
    "ba01370a200606060606060606060606060606060606060606060606060606060606060606120670726f642d2a1832200c2a03616461300b380c",
    "c201510a2006060606060606060606060606060606060606060606060606060606060606061204656173741a200707070707070707070707070707070707070707070707070707070707070707200c2a0350454d",
];

fn rows() -> [SnapshotRow; 12] {
    let east = || ClusterId::new("east").unwrap();
    let service = ServiceKey::new("shop", "cart").unwrap();
    let header = SnapshotHeader {
        fold_version: 1,
        rules_since: UnixMillis(0),
        revision: Revision(300),
        recorded_at: UnixMillis(1_000),
        tombstone_floor: Revision(7),
        members: 1,
        facts: 2,
        derived: 3,
        tombstones: 4,
        tombstones_max: TOMBSTONES_MAX,
        revoked_keys: 0,
        policies: 0,
        precedences: 0,
        self_preservation: None,
        join_tokens: 0,
        join_token_uses: 0,
        brakes: 0,
        taken_back: 0,
        term: 0,
        last_session: SessionId(0),
    };
    let bounded = SnapshotHeader {
        tombstones_max: 3,
        ..header
    };
    let member = MemberRow {
        cluster: east(),
        status: MemberStatus::Evicted,
        incarnation: Revision(1),
        ended: Some(Revision(0)),
        cluster_fingerprint: "uid".into(),
        next_cluster_fingerprint: Some("next".into()),
        keys: BTreeMap::new(),
        contested_keys: BTreeSet::new(),
        refused_keys: BTreeSet::from([KeyFingerprint([9; 32])]),
        refused_until: None,
        connectivity: Connectivity::Suspect,
        withdrawn: false,
        leaving: None,
        since: UnixMillis(5),
        listings: BTreeMap::from([(ListingGroup::Properties, Revision(0))]),
    };
    let known = MemberRow {
        keys: BTreeMap::from([
            (KeyFingerprint([1; 32]), AdmittedKey::default()),
            (
                KeyFingerprint([2; 32]),
                AdmittedKey {
                    terms: KeyTerms {
                        issuer: Some("CN=issuer".into()),
                        not_after: Some(UnixMillis(9_000)),
                        accepted: Some(KeyAcceptance::Renewed),
                    },
                    accepted_at: UnixMillis(7),
                    certified_over: Vec::new(),
                },
            ),
        ]),
        contested_keys: BTreeSet::from([KeyFingerprint([4; 32])]),
        ..member.clone()
    };
    let revoked = RevokedKey {
        holder: KeyHolder::Operator("bob".into()),
        at: UnixMillis(8),
    };
    let applied = AppliedPolicy {
        revision: Revision(9),
        operator: "ada".into(),
        at: UnixMillis(10),
        policy: wire::read_policy(wire::DEFAULT_POLICY).unwrap().into(),
        imports_since: None,
    };
    let with_imports = AppliedPolicy {
        imports_since: Some(Revision(6)),
        ..applied.clone()
    };
    let claim = |cluster: &str, seconds: u64| PrecedenceClaim {
        cluster: ClusterId::new(cluster).unwrap(),
        uid: "uid".into(),
        created_at: UnixMillis(seconds * 1_000),
    };
    let contest = Contest {
        revision: Revision(11),
        standing: claim("east", 2),
        challenger: claim("west", 1),
        held: true,
    };
    let token = JoinTokenState {
        token: JoinToken {
            hash: TokenHash([6; 32]),
            scope: "prod-*".parse().unwrap(),
            uses: 50,
            expires_at: UnixMillis(12),
        },
        operator: "ada".into(),
        created_at: UnixMillis(11),
        revoked_at: Some(UnixMillis(12)),
        used: Vec::new(),
    };
    let used = JoinTokenUse {
        cluster: east(),
        key: KeyFingerprint([7; 32]),
        at: UnixMillis(12),
        certificate: "PEM".into(),
    };
    let derived = DerivedRow {
        key: DerivedKey::Profile(east()),
        revision: Revision(2),
        digest: ContentDigest([3; 16]),
        import_revision: Revision(0),
        transitions: vec![UnixMillis(1), UnixMillis(2)],
    };
    let tombstone = SnapshotRow::Tombstone {
        key: DerivedKey::ExportStatus(east(), service),
        revision: Revision(4),
    };
    [
        SnapshotRow::Header(header),
        SnapshotRow::Header(bounded),
        SnapshotRow::Member(Box::new(member)),
        SnapshotRow::Derived(derived),
        tombstone,
        SnapshotRow::Member(Box::new(known)),
        SnapshotRow::RevokedKey(KeyFingerprint([5; 32]), revoked),
        SnapshotRow::Policy(applied),
        SnapshotRow::Policy(with_imports),
        SnapshotRow::Precedence(ServiceKey::new("shop", "cart").unwrap(), contest),
        SnapshotRow::JoinToken(token),
        SnapshotRow::JoinTokenUse(TokenHash([6; 32]), used),
    ]
}

#[test]
fn the_bytes_of_rows_are_frozen_and_give_the_rows_back() {
    let encoded = rows().map(|row| HEXLOWER.encode(&encode_row(&row)));
    assert_eq!(encoded, FROZEN_ROWS);
    let mut rows = Vec::from(rows());
    let Some(SnapshotRow::Header(header)) = rows.first() else {
        panic!("another row");
    };
    // If it is unknown, its bytes are those of earlier releases.
    let header = SnapshotHeader {
        rules_since: UnixMillis(5),
        term: 3,
        last_session: SessionId(1_007),
        ..*header
    };
    rows.push(SnapshotRow::Header(header));
    for row in rows {
        assert_eq!(decode_row(&encode_row(&row)), Ok(row));
    }
}

/// A row of the member with one key that came over so many.
fn over(keys: usize) -> SnapshotRow {
    let [_, _, SnapshotRow::Member(mut member), ..] = rows() else {
        panic!("another row");
    };
    let known = AdmittedKey {
        certified_over: (1..)
            .map(|number| KeyFingerprint([number; 32]))
            .take(keys)
            .collect(),
        ..AdmittedKey::default()
    };
    member.keys = BTreeMap::from([(KeyFingerprint([100; 32]), known)]);
    SnapshotRow::Member(member)
}

#[test]
fn the_keys_that_another_came_over_are_given_back_in_their_order_and_no_more_than_are_remembered() {
    let row = over(CERTIFIED_OVER_MAX);
    assert_eq!(decode_row(&encode_row(&row)), Ok(row));
    let error = decode_row(&encode_row(&over(CERTIFIED_OVER_MAX + 1)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("more keys than are remembered"), "{error}");
}

#[test]
fn what_is_no_row_says_why() {
    for (bytes, why) in [
        (&b"\xff\xff"[..], "decode"),
        (&[], "its kind is unknown"),
        (&[0x12, 0], "cluster id"),
        (&[0x2a, 0], "the key of a derived object is missing"),
    ] {
        let error = decode_row(bytes).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

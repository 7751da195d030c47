//! A member that reports over its session: what the writer's log holds of it, what a full disk costs it, and that the next hub
//! starts over it.

use std::sync::{Arc, atomic::AtomicU64};

use model::{
    EncodedFact, Endpoint, EndpointPort, EndpointSlice, Export, Fact, FactKey, IpFamily, KeyFingerprint,
    ListingGroup, Metadata, Protocol, ServiceKey, ServicePolicies, ServicePort, ServiceType, SessionAffinity,
    SliceKey,
    sync::{
        FEATURE_REPORT_AGAIN, Hello, Interest, Observation, ObservedItem, PROTOCOL_VERSION, RefusalReason,
    },
};
use wire as shared_wire;

use super::*;
use crate::writer::request::{AdmitRequest, CursorCheck, CursorVerdict};
use event_log::Space;
use fold::{DerivedKey, SnapshotRow};

fn east() -> ClusterId {
    ClusterId::new("east").expect("valid")
}

fn service(name: &str) -> ServiceKey {
    ServiceKey::new("shop", name).expect("valid")
}

fn export(name: &str, uid: &str) -> EncodedFact {
    shared_wire::encode_fact(&Fact::ExportUpserted(Arc::new(Export {
        service: service(name),
        created_at: UnixMillis(1_000),
        uid: uid.into(),
        generation: 1,
        service_type: ServiceType::ClusterSetIp,
        ports: vec![ServicePort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: 80,
            app_protocol: None,
        }],
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: None,
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::new(),
        annotations: Metadata::new(),
    })))
}

fn key(name: &str) -> SliceKey {
    SliceKey {
        service: service("a"),
        name: name.into(),
    }
}

/// A slice of `shop/a` with these addresses.
fn slice(name: &str, addresses: &[[u8; 4]]) -> EncodedFact {
    let endpoint = |address: &[u8; 4]| Endpoint {
        addresses: vec![(*address).into()],
        ready: Some(true),
        serving: None,
        terminating: None,
        hostname: None,
        zone: None,
    };
    shared_wire::encode_fact(&Fact::EndpointSliceUpserted(Arc::new(EndpointSlice {
        key: key(name),
        address_type: IpFamily::V4,
        ports: vec![EndpointPort {
            name: "http".into(),
            protocol: Protocol::Tcp,
            port: Some(8080),
            app_protocol: None,
        }],
        endpoints: addresses.iter().map(endpoint).collect(),
    })))
}

/// A member's session over a writer.
struct Member {
    session: SessionId,
    sequence: u64,
    told: mpsc::UnboundedReceiver<SessionEvent>,
}

impl Member {
    fn admitted(hand: &mut Hand) -> Self {
        let (events, told) = mpsc::unbounded_channel();
        let sink = SessionSink {
            cluster: east(),
            events,
            heard_at: Arc::new(AtomicU64::new(0)),
        };
        let (reply, mut admitted) = oneshot::channel();
        let request = Box::new(AdmitRequest {
            cluster: east(),
            key: KeyFingerprint([1; 32]),
            hello: Hello {
                protocol_version: PROTOCOL_VERSION,
                features: FEATURE_REPORT_AGAIN,
                agent_version: "0".into(),
                highest_epoch: None,
                cluster_fingerprint: "uid-of-east".into(),
                instance: "one".into(),
                lease_transitions: 1,
                cursor: None,
                exports_digest: None,
                properties_digest: None,
                sources_held: Default::default(),
                interest: Interest::default(),
            },
            cursor: CursorVerdict {
                under: Cursor::default(),
                check: CursorCheck::Absent,
            },
            pinged: None,
            presented: Default::default(),
        });
        hand.writer.take(Work::Admit { request, sink, reply }, AT);
        hand.settle().expect("it is durable");
        let admission = admitted.try_recv().expect("answered").expect("admitted");
        Self {
            session: admission.welcome.session,
            sequence: 0,
            told,
        }
    }

    fn says(&mut self, hand: &mut Hand, facts: Vec<EncodedFact>) {
        let observations = facts.into_iter().map(|fact| {
            self.sequence += 1;
            Observation::new(self.sequence, ObservedItem::Fact(fact))
        });
        let request = Request::Observe {
            session: self.session,
            cluster: east(),
            observations: observations.collect(),
        };
        hand.writer.take(Work::Request(request), AT);
        hand.settle().expect("it is durable");
    }

    fn lists(&mut self, hand: &mut Hand, seen: impl IntoIterator<Item = FactKey>) {
        self.sequence += 1;
        let request = Request::CompleteListing {
            session: self.session,
            cluster: east(),
            sequence: self.sequence,
            group: ListingGroup::Exports,
            seen: Arc::new(seen.into_iter().collect()),
        };
        hand.writer.take(Work::Request(request), AT);
        hand.settle().expect("it is durable");
    }

    /// Why items were refused since it was asked last.
    fn refused(&mut self) -> Vec<RefusalReason> {
        let events = std::iter::from_fn(|| self.told.try_recv().ok());
        let refused = events.filter_map(|event| match event {
            SessionEvent::Refused(refused) => Some(refused.reason),
            _ => None,
        });
        refused.collect()
    }
}

/// A hub of small segments that many events have filled, and its member.
fn with_history(disk: &MemoryDisk) -> (Hand, Member) {
    let bounds = Bounds {
        segment_bytes: 1,
        ..Bounds::default()
    };
    let mut hand = Hand::over(disk, bounds);
    let mut member = Member::admitted(&mut hand);
    for number in 0..200_u8 {
        let of_a = slice("a-1", &[[10, 0, 1, number], [10, 0, 2, number]]);
        member.says(&mut hand, vec![export("a", "uid"), of_a]);
        hand.writer.take(Work::Tick, AT);
        hand.settle().expect("sealed");
    }
    assert!(hand.log.stats().segments >= 3, "{:?}", hand.log.stats());
    member.refused();
    (hand, member)
}

fn later(millis: u64) -> Moment {
    Moment {
        micros: AT.micros + millis * 1_000,
        ..AT
    }
}

/// The pod behind a slice is gone: wherever that is not recorded, other clusters ask it.
#[test]
fn a_full_disk_costs_history_before_it_costs_endpoints() {
    let disk = MemoryDisk::default();
    let (mut hand, mut member) = with_history(&disk);
    let total = 1_000 * hand.log.stats().bytes_on_disk;
    let free = total / 100 * 4;
    disk.set_space(Some(Space { free, total }));
    hand.writer.take(Work::Tick, AT);
    hand.settle().expect("looked at");
    member.says(&mut hand, vec![slice("a-1", &[[10, 0, 0, 99], [10, 0, 0, 98]])]);
    assert_eq!(member.refused(), [], "history could go");
    // It goes, with the segment that this event filled.
    for millis in [2_000, 4_000, 6_000] {
        hand.writer.take(Work::Tick, later(millis));
        hand.settle().expect("history goes");
    }
    assert_eq!(hand.log.stats().segments, 1);
    assert_eq!(hand.writer.core().room(), DiskRoom::Reserve);
    member.says(&mut hand, vec![slice("a-1", &[[10, 0, 0, 97]])]);
    assert_eq!(member.refused(), [RefusalReason::NoRoom], "none is left");
    member.says(&mut hand, vec![slice("a-1", &[[10, 0, 0, 98]])]);
    assert_eq!(member.refused(), [], "an endpoint goes");
}

#[test]
fn as_much_history_goes_as_makes_room_and_no_more() {
    let disk = MemoryDisk::default();
    let (mut hand, _member) = with_history(&disk);
    let before = hand.log.stats();
    let total = 1_000 * before.bytes_on_disk;
    // Less than a segment lacks to the alarm and its margin.
    let enough = total / 100 * 16;
    disk.set_space(Some(Space {
        free: enough - 1,
        total,
    }));
    hand.writer.take(Work::Tick, later(2_000));
    hand.settle().expect("looked at");
    assert_eq!(hand.log.stats().segments, before.segments, "above the alarm");
    let alarm = total / 100 * 15;
    disk.set_space(Some(Space {
        free: alarm - 1,
        total,
    }));
    hand.writer.take(Work::Tick, later(4_000));
    hand.settle().expect("looked at");
    assert_eq!(hand.log.stats().segments, 1, "a percent is more than all of it");
}

/// East's exports go with their definition and come back when it does, with new pods.
#[test]
fn a_hub_starts_over_what_it_wrote_of_exports_that_came_back() {
    let disk = MemoryDisk::default();
    let mut hand = Hand::over(&disk, Bounds::default());
    let document = "apiVersion: tributary.dev/v1alpha1\nkind: ClustersetPolicy\nspec:\n  members:\n  - name: pods\n    \
                    members: [east]\n    endpoints: [10.0.0.0/16]\n";
    let (reply, _answer) = oneshot::channel();
    let apply = Work::Operate {
        command: Command::ApplyPolicy {
            policy: Arc::new(shared_wire::read_policy(document).expect("a policy")),
            operator: "alice".into(),
        },
        confirm: true,
        describe: |_, _, _| Vec::new(),
        reply,
    };
    hand.writer.take(apply, AT);
    hand.settle().expect("it is durable");
    let mut member = Member::admitted(&mut hand);
    let names = ["a", "b", "c", "d", "e"];
    // A pod on the host network has an address outside the pods' range.
    let mut facts: Vec<_> = names.iter().map(|name| export(name, "before")).collect();
    facts.push(slice("a-1", &[[192, 168, 0, 7]]));
    member.says(&mut hand, facts);
    let exports = names.iter().map(|name| FactKey::Export(service(name)));
    member.lists(&mut hand, exports.chain([FactKey::EndpointSlice(key("a-1"))]));
    let removals = names.iter().map(|name| Fact::ExportRemoved(service(name)));
    let removals = removals.chain([Fact::EndpointSliceRemoved(key("a-1"))]);
    member.says(
        &mut hand,
        removals.map(|fact| shared_wire::encode_fact(&fact)).collect(),
    );
    assert_eq!(hand.writer.core().held(), (1, 5));
    let mut facts: Vec<_> = names.iter().map(|name| export(name, "after")).collect();
    facts.push(slice("a-2", &[[10, 0, 0, 7]]));
    member.says(&mut hand, facts);
    assert_eq!(hand.writer.core().held(), (0, 0), "all came back");
    hand.writer.finish().expect("it stops in order");
    let again = Hand::over(&disk, Bounds::default());
    assert!(!derived_anew(&again));
}

/// Returns true if the hub found that its snapshot does not follow from its facts.
fn derived_anew(hand: &Hand) -> bool {
    let mut registry = prometheus_client::registry::Registry::default();
    hand.writer.metrics.register_snapshots(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("it is written");
    text.lines().any(|line| line == "snapshots_derived_anew_total 1")
}

/// A defect of the build before, or damage that no checksum sees: members, decisions and refused keys are not lost by it.
#[test]
fn a_hub_starts_over_a_snapshot_whose_derived_objects_differ_and_says_so_once() {
    let disk = MemoryDisk::default();
    let mut hand = Hand::over(&disk, Bounds::default());
    let mut member = Member::admitted(&mut hand);
    member.says(
        &mut hand,
        vec![export("a", "uid"), slice("a-1", &[[10, 0, 0, 7]])],
    );
    let state = hand.writer.core().state().clone();
    let rows = state.snapshot_rows().map(|mut row| {
        if let SnapshotRow::Derived(derived) = &mut row
            && matches!(derived.key, DerivedKey::Import(_))
        {
            derived.digest.0[0] ^= 1;
        }
        snapshot::encode_row(&row)
    });
    let rows: Vec<Vec<u8>> = rows.collect();
    let head = hand.log.head();
    hand.log
        .write_snapshot_and_wait(head, Box::new(rows.into_iter()))
        .expect("it is durable");
    drop(hand);
    let mut again = Hand::over(&disk, Bounds::default());
    assert!(derived_anew(&again));
    assert_eq!(again.log.head().revision, head.revision.next(), "it is an event");
    let now = again.writer.core().state();
    assert!(!now.can_resume_from(head.revision) && now.can_resume_from(head.revision.next()));
    assert!(now.derived(&DerivedKey::Import(service("a"))).is_some());
    again.record(1);
    let snapshot = again.log.stats().snapshot_revision;
    assert!(snapshot > Some(head.revision), "{snapshot:?}");
    drop(again);
    let last = Hand::over(&disk, Bounds::default());
    assert!(!derived_anew(&last), "it is told once");
}

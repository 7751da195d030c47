//! Owns: the inputs that fuzzing begins with: bytes that each target takes, and the kept ones that broke something once.
//! Never: draws another set: the same revision of the sources has the same seeds, but for keys and certificates.

use hub::{
    certs::{CertificateAuthority, Subject, Validity},
    fold::SnapshotRow,
    snapshot,
};
use proptest::{prelude::Strategy, strategy::ValueTree, test_runner::TestRunner};
use prost::Message as _;
use proto::v1;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use serde_json::json;
use shared::{
    difference,
    model::{Clusterset, JoinString, KeyFingerprint, Revision, TokenSecret},
    testing::{cluster_id, desired, fact, message},
    tls::{new_key, signing_request},
    wire,
};

/// Seeds that are drawn for a target.
const DRAWN: usize = 24;
/// Inputs that broke a decoder once: a target and the bytes in hexadecimal digits in each line.
const KEPT: &str = include_str!("../kept.txt");
/// A policy with rules of each kind.
const POLICY: &str = "\
apiVersion: tributary.dev/v1alpha1
kind: ClustersetPolicy
spec:
  precedence: incumbent
  members:
  - name: shops
    members: [east, 'west-*']
    exports:
    - namespaces: [shop, 'shop-*']
      services: [gateway]
    endpoints: [10.0.0.0/12, 'fd00:1::/32']
    imports:
    - namespaces: [shop]
";

/// Draws values and encodes them.
fn drawn<S: Strategy>(strategy: S, encode: impl Fn(S::Value) -> Vec<u8>) -> Vec<Vec<u8>> {
    let mut runner = TestRunner::deterministic();
    let values = (0..DRAWN).filter_map(|_| strategy.new_tree(&mut runner).ok());
    values.map(|tree| encode(tree.current())).collect()
}

/// Bytes that the target takes.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "agent_messages" => drawn(message::agent_message(), |message| {
            wire::agent_message_to_proto(message).encode_to_vec()
        }),
        "hub_messages" => drawn(message::hub_message(), |message| {
            wire::hub_message_to_proto(message).encode_to_vec()
        }),
        "facts" => drawn(fact::member_fact(), |fact| {
            wire::encode_fact(&fact).bytes.to_vec()
        }),
        "desired_items" => drawn(desired::desired_item(), |item| {
            wire::encode_desired(&item).to_vec()
        }),
        "differences" => differences(),
        "events" => drawn(fact::event(), |event| wire::encode_event(&event)),
        "snapshot_rows" => drawn((cluster_id(), fact::member_fact()), |(cluster, fact)| {
            snapshot::encode_row(&SnapshotRow::Fact {
                cluster,
                revision: Revision(7),
                fact: wire::encode_fact(&fact),
            })
        }),
        "policies" => vec![wire::DEFAULT_POLICY.into(), POLICY.into()],
        "join_strings" => vec![join_string()],
        "join_requests" => vec![join_request()],
        "control_frames" => vec![control_frames()],
        "signing_requests" => vec![requested()],
        "certificates" => certificates(),
        "admission_reviews" => reviews(),
        _ => Vec::new(),
    }
}

/// Inputs of a target that broke it once.
pub fn kept(target: &str) -> Vec<Vec<u8>> {
    let lines = KEPT.lines().filter(|line| !line.starts_with('#'));
    let of_target = lines.filter_map(|line| line.split_once(' ').filter(|(of, _)| *of == target));
    of_target.map(|(_, hex)| bytes_of(hex.trim())).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<char> = hex.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    let bytes: Result<Vec<u8>, _> = digits.chunks(2).map(byte).collect();
    bytes.expect("kept.txt has hexadecimal digits")
}

fn differences() -> Vec<Vec<u8>> {
    let base = b"ten thousand slices are much alike ".repeat(9);
    let mut whole = base.clone();
    whole[40..44].copy_from_slice(b"ZZZZ");
    let difference = difference::difference(&base, &whole).expect("they are alike");
    let length = u16::try_from(base.len()).expect("it is short").to_be_bytes();
    vec![[&length, &base[..], &difference].concat()]
}

fn join_string() -> Vec<u8> {
    let join = JoinString {
        doors: vec!["https://hub.example.org:8444".into()],
        hubs: vec!["https://hub.example.org:8443".into()],
        pin: KeyFingerprint([7; 32]),
        token: TokenSecret::new([9; 32]),
    };
    join.encode().expect("it fits").into_bytes()
}

fn join_request() -> Vec<u8> {
    let request = v1::JoinRequest {
        token: vec![9; 32],
        cluster: "east".into(),
        signing_request: requested(),
    };
    request.encode_to_vec()
}

/// A preface, then a frame of each kind, cut into parts of seven bytes.
fn control_frames() -> Vec<u8> {
    let frames = (0..=10).flat_map(|kind| [0, 0, 4, kind, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    let preface = b"\x07PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".iter().copied();
    preface.chain(frames).collect()
}

fn requested() -> Vec<u8> {
    let key = new_key().expect("a key");
    signing_request(&key).expect("a request")
}

fn certificates() -> Vec<Vec<u8>> {
    let clusterset = Clusterset::new("example.org", "default").expect("valid");
    let validity = Validity::days_from_now(9);
    let authority = CertificateAuthority::generate(&clusterset, validity).expect("made");
    let issued = authority.issue(&Subject::Operator("alice".to_owned()), validity);
    let pem = issued.expect("issued").certificate_pem;
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
    certificates
        .take(1)
        .map(|der| der.expect("PEM").to_vec())
        .collect()
}

fn reviews() -> Vec<Vec<u8>> {
    let metadata = json!({"name": "a", "namespace": "b"});
    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": metadata,
        "spec": {"topology": {"classRef": {"name": "c"}, "version": "v1.30.1"}}});
    let reference = json!({"templateRef": {"apiVersion": "x.example.org/v1", "kind": "T", "name": "t"}});
    let class = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "ClusterClass", "metadata": metadata,
        "spec": {"infrastructure": reference, "controlPlane": reference,
            "variables": [{"name": "v", "required": true, "schema": {"openAPIV3Schema": {"type": "string"}}}]}});
    let review = |kind: &str, object: serde_json::Value| {
        let kind = json!({"group": "cluster.x-k8s.io", "version": "v1beta2", "kind": kind});
        let request =
            json!({"uid": "u", "operation": "CREATE", "object": object, "oldObject": null, "kind": kind});
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
            .to_string()
            .into_bytes()
    };
    vec![review("Cluster", cluster), review("ClusterClass", class)]
}

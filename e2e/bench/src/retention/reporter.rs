//! Owns: what one member says: exports, and their slices in turn, each time with another address.
//! Never: sends it.

use bytes::Bytes;
use shared::{
    model::{
        ClusterId, Cursor, EncodedFact, KeyFingerprint,
        sync::{Hello, Interest, Observation, ObservedItem, PROTOCOL_VERSION},
    },
    wire,
};

use hub::writer::{AdmitRequest, CursorCheck, CursorVerdict};

use super::{
    super::facts::{self, NUMBERS_MAX, Size, SliceTemplate},
    FACT_BYTES,
};

/// Exported services of one slice each.
const SERVICES: usize = 1_000;
const NAMESPACE: &str = "team-0000";

/// The member.
pub(super) struct Reporter {
    pub(super) cluster: ClusterId,
    exports: std::vec::IntoIter<Bytes>,
    slices: Vec<SliceTemplate>,
    next: usize,
    /// Of the last observation.
    pub(super) sequence: u64,
}

impl Reporter {
    pub(super) fn new() -> anyhow::Result<Self> {
        let name = |service: usize| format!("cart-{service:05}-abcde");
        let size = Size::of(&facts::service(NAMESPACE, 0)?, &name(0), FACT_BYTES)?;
        let (mut exports, mut slices) = (Vec::new(), Vec::new());
        for service in 0..SERVICES {
            let key = facts::service(NAMESPACE, service)?;
            exports.push(facts::export(&key, service, false));
            slices.push(size.slice(&key, &name(service)));
        }
        Ok(Self {
            cluster: ClusterId::new("member-0000")?,
            exports: exports.into_iter(),
            slices,
            next: 0,
            sequence: 0,
        })
    }

    /// Its introduction.
    pub(super) fn introduction(&self) -> AdmitRequest {
        AdmitRequest {
            cluster: self.cluster.clone(),
            key: KeyFingerprint([1; 32]),
            hello: Hello {
                protocol_version: PROTOCOL_VERSION,
                features: 0,
                agent_version: env!("CARGO_PKG_VERSION").into(),
                highest_epoch: None,
                cluster_fingerprint: format!("fingerprint-of-{}", self.cluster).into(),
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
        }
    }

    /// The next observation: the exports first, then the slices in turn, for ever.
    pub(super) fn observation(&mut self) -> anyhow::Result<Observation> {
        let bytes = self.exports.next().unwrap_or_else(|| {
            let number = self.next;
            self.next += 1;
            let in_range = u32::try_from(number % NUMBERS_MAX as usize).unwrap_or_default();
            self.slices[number % SERVICES].numbered(in_range)
        });
        let fact: EncodedFact = wire::decode_member_fact(bytes)?;
        self.sequence += 1;
        Ok(Observation::new(self.sequence, ObservedItem::Fact(fact)))
    }
}

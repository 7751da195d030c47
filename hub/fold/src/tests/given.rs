//! The language of the tests: clusters, facts, and `given(..).when(..).then(..)`.

use std::sync::Arc;

use model::{
    ClusterId, EncodedFact, Endpoint, EndpointPort, EndpointSlice, Event, Export, Fact, IpFamily,
    KeyFingerprint, Metadata, Policy, Protocol, ServiceKey, ServicePolicies, ServicePort, ServiceType,
    SessionAffinity, SessionId, SliceKey, UnixMillis,
};
use wire::{POLICY_API_VERSION, POLICY_KIND, encode_fact, read_policy};

use crate::{
    Change, Command, DerivedContent, DerivedKey, Draft, DraftFact, FOLD_VERSION, Profile, Rejection, State,
    apply, decide,
};

/// The policy of these lines under `spec`.
pub(super) fn policy(spec: &str) -> Arc<Policy> {
    let spec: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let document = format!("apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n{spec}");
    Arc::new(read_policy(&document).unwrap_or_else(|error| panic!("{error}: {document}")))
}

/// The command that applies it.
pub(super) fn put(spec: &str) -> Command {
    Command::ApplyPolicy {
        policy: policy(spec),
        operator: "ann".into(),
    }
}

pub(super) fn cluster(name: &str) -> ClusterId {
    ClusterId::new(name).unwrap()
}

/// `"shop/cart"` as a key.
pub(super) fn service(name: &str) -> ServiceKey {
    let (namespace, name) = name.split_once('/').unwrap();
    ServiceKey::new(namespace, name).unwrap()
}

pub(super) fn key(number: u8) -> KeyFingerprint {
    KeyFingerprint([number; 32])
}

pub(super) fn port(name: &str, number: u16) -> ServicePort {
    ServicePort {
        name: name.into(),
        protocol: Protocol::Tcp,
        port: number,
        app_protocol: None,
    }
}

pub(super) fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    pairs
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
        .collect()
}

/// A plain export of `shop/cart` with one port, created `seconds` after the beginning of time.
pub(super) fn export(seconds: u64) -> Export {
    Export {
        service: service("shop/cart"),
        created_at: UnixMillis(seconds * 1_000),
        uid: format!("uid-{seconds}").into(),
        generation: 1,
        service_type: ServiceType::ClusterSetIp,
        ports: vec![port("http", 80)],
        policies: ServicePolicies {
            session_affinity: SessionAffinity::None,
            session_affinity_timeout_seconds: None,
            internal_traffic_policy: Some("Cluster".into()),
            traffic_distribution: None,
        },
        ip_families: vec![IpFamily::V4],
        labels: Metadata::new(),
        annotations: Metadata::new(),
    }
}

pub(super) fn exported(export: Export) -> Fact {
    Fact::ExportUpserted(Arc::new(export))
}

pub(super) fn endpoint(last_octet: u8) -> Endpoint {
    Endpoint {
        addresses: vec![[10, 0, 0, last_octet].into()],
        ready: Some(true),
        serving: None,
        terminating: None,
        hostname: None,
        zone: Some("a".into()),
    }
}

pub(super) fn endpoint_port(name: &str, target: u16) -> EndpointPort {
    EndpointPort {
        name: name.into(),
        protocol: Protocol::Tcp,
        port: Some(target),
        app_protocol: None,
    }
}

/// A slice of `shop/cart` with the named ports and one endpoint.
pub(super) fn slice(name: &str, ports: &[&str]) -> Fact {
    Fact::EndpointSliceUpserted(Arc::new(EndpointSlice {
        key: slice_key(name),
        address_type: IpFamily::V4,
        ports: ports.iter().map(|port| endpoint_port(port, 8080)).collect(),
        endpoints: [endpoint(1)].into(),
    }))
}

pub(super) fn slice_key(name: &str) -> SliceKey {
    SliceKey {
        service: service("shop/cart"),
        name: name.into(),
    }
}

pub(super) fn evict(name: &str) -> Command {
    Command::Evict {
        cluster: cluster(name),
        operator: "ann".into(),
    }
}

/// A log with the state it folds into.
#[derive(Debug, Clone)]
pub(crate) struct Folded {
    pub(crate) state: State,
    pub(crate) events: Vec<Event>,
}

/// A log that the present rules fold from its first event on.
impl Default for Folded {
    fn default() -> Self {
        Self {
            state: empty(),
            events: Vec::new(),
        }
    }
}

/// The state before the first event of a log that the present rules fold.
pub(crate) fn empty() -> State {
    State::of_version(FOLD_VERSION)
}

/// Members that joined with keys 1, 2, 3, … in this order.
pub(super) fn given_members(names: &[&str]) -> Folded {
    Folded::default().joined_by(names)
}

/// The same in a log that the first rules fold.
pub(super) fn given_members_by_the_first_rules(names: &[&str]) -> Folded {
    let (state, events) = (State::new(), Vec::new());
    Folded { state, events }.joined_by(names)
}

impl Folded {
    fn joined_by(mut self, names: &[&str]) -> Self {
        for (number, name) in (1..).zip(names) {
            self.carry_out(&admit(name, number, &format!("kube-system-{name}")))
                .unwrap();
        }
        self
    }

    /// A reported fact is recorded.
    pub(super) fn and(mut self, cluster: &str, fact: Fact) -> Self {
        self.carry_out(&observe(cluster, fact)).unwrap();
        self
    }

    /// A command is carried out.
    pub(super) fn after(mut self, command: Command) -> Self {
        self.carry_out(&command).unwrap();
        self
    }

    pub(super) fn when(&self, command: Command) -> Outcome {
        Outcome(decide(&self.state, &command))
    }

    /// Decides, appends and applies: what the writer does. A second passes with every event.
    pub(super) fn carry_out(&mut self, command: &Command) -> Result<Vec<Change>, Rejection> {
        let drafts = decide(&self.state, command)?;
        Ok(drafts.iter().flat_map(|draft| self.record(draft)).collect())
    }

    /// A member left.
    pub(super) fn left(&mut self, name: &str) -> Vec<Change> {
        self.record(&Draft::decided(&cluster(name), Fact::MemberLeft))
    }

    /// An operator ended a membership.
    pub(super) fn evicted(&mut self, name: &str) -> Vec<Change> {
        self.carry_out(&evict(name)).unwrap()
    }

    fn record(&mut self, draft: &Draft) -> Vec<Change> {
        let now = UnixMillis((self.events.len() as u64 + 1) * 1_000);
        let event = draft.event(&self.state, encoded(draft), now);
        let changes = apply(&mut self.state, &event);
        self.events.push(event);
        changes
    }

    pub(super) fn import(&self) -> Option<&model::ServiceImport> {
        let (_, import) = self.state.derived.import(&service("shop/cart"))?;
        Some(import)
    }

    pub(super) fn imported_slice(&self, cluster_name: &str, slice: &str) -> Option<&model::ImportedSlice> {
        let key = DerivedKey::slice(&service("shop/cart"), &cluster(cluster_name), slice);
        match &self.state.derived(&key)?.content {
            DerivedContent::Slice(slice) => Some(slice),
            _ => None,
        }
    }

    pub(super) fn profile(&self, name: &str) -> Option<&Profile> {
        match &self.state.derived(&DerivedKey::Profile(cluster(name)))?.content {
            DerivedContent::Profile(profile) => Some(profile),
            _ => None,
        }
    }

    /// The conflict messages for `cluster`.
    pub(super) fn conflicts(&self, name: &str) -> Vec<String> {
        let status = self
            .state
            .export_status(&cluster(name), &service("shop/cart"))
            .unwrap();
        status
            .conflicts
            .iter()
            .map(|conflict| conflict.message.to_string())
            .collect()
    }
}

/// The answer to a command.
#[derive(Debug)]
pub(super) struct Outcome(Result<Vec<Draft>, Rejection>);

impl Outcome {
    #[track_caller]
    pub(super) fn then(self, cluster_name: &str, facts: &[Fact]) {
        let drafts = self.0.unwrap();
        let decided: Vec<Fact> = drafts.iter().map(|draft| encoded(draft).fact).collect();
        assert_eq!(decided, facts);
        assert!(
            drafts
                .iter()
                .all(|draft| draft.cluster == Some(cluster(cluster_name)))
        );
    }

    #[track_caller]
    pub(super) fn drafts(self) -> Vec<Draft> {
        self.0.unwrap()
    }

    #[track_caller]
    pub(super) fn then_nothing(self) {
        assert_eq!(self.0, Ok(Vec::new()));
    }

    #[track_caller]
    pub(super) fn then_rejected(self) -> Rejection {
        self.0.unwrap_err()
    }
}

pub(super) fn encoded(draft: &Draft) -> EncodedFact {
    match &draft.fact {
        DraftFact::Encoded(fact) => fact.clone(),
        DraftFact::Decided(fact) => encode_fact(fact),
    }
}

pub(super) fn admit(name: &str, key_number: u8, fingerprint: &str) -> Command {
    Command::Admit {
        cluster: cluster(name),
        key: key(key_number),
        cluster_fingerprint: fingerprint.into(),
        presented: Default::default(),
    }
}

pub(super) fn observe(name: &str, fact: Fact) -> Command {
    Command::Observe {
        cluster: cluster(name),
        session: SessionId(7),
        sequence: 1,
        fact: encode_fact(&fact),
    }
}

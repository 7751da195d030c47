//! One cluster of a world, its clock, its agents, and what people do in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::names::{ANNOTATION_ON_EXPIRY, SOURCE_LEASE_PREFIX};
use model::{ClusterId, KeyFingerprint, ServiceKey, derived_name::derived_service_name};
use serde_json::{Value, json};

use oracle::{is_ours, owner};
use sim::{ALWAYS, Crd, Fault, ManualClock, SimCluster, SimConfig};

use super::{
    agent::{AGENT_NAMESPACE, Agent},
    follower::Followed,
    happening::{AgentPart, METADATA, NAMESPACES, Named, RefusedWrites, SERVICES, Taken},
    histogram::Histogram,
};

/// Of every endpoint: long, so that versions of a slice share more than a difference takes.
const ZONE: &str = "a-zone-whose-name-is-the-same-in-all-versions-of-a-slice";
/// The value of a field that nobody can decode.
const SPOILED: &str = "spoiled";
/// Endpoints of every version of a slice, if it has endpoints.
const STANDING_ENDPOINTS: u8 = 6;
/// The name of a Tributary label.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Its value on everything that the agent made.
pub(super) const MANAGER: &str = "tributary-agent";

/// A cluster.
pub(super) struct Site {
    pub(super) name: ClusterId,
    pub(super) cluster: SimCluster,
    pub(super) clock: Arc<ManualClock>,
    /// By how much the wall clock of its agents is wrong, in milliseconds.
    pub(super) clock_off: i64,
    pub(super) agents: Vec<Agent>,
    /// The pod of the agent that took the Lease last.
    pub(super) led_by: Option<String>,
    /// Listings that are still to be cut off.
    pub(super) cuts: u8,
    /// The part of its agents that makes no progress at present.
    pub(super) stalled: Option<AgentPart>,
    /// Index of the cluster: no two have one key.
    place: u8,
    /// The number of its certificate; see `What::Certify` and `What::Renew`.
    pub(super) certificate: u8,
    /// Its certificate's issuer is trusted for renewal.
    pub(super) renewable: bool,
    /// Its agents say that its exports are older than they are.
    pub(super) lies: bool,
    /// Its agents let go what came from others while their hub is away.
    pub(super) expires: bool,
    /// Milliseconds after which requests for the Lease are answered in turn, while its API server is slow.
    pub(super) slow: Option<[u64; 2]>,
    /// True while writes of Leases may be refused: then nobody need lead.
    pub(super) refuses_writes: bool,
    /// Parts of objects that cannot be decoded.
    spoiled: Vec<Spoiled>,
    /// Its agents ended, and nobody starts one.
    pub(super) away: bool,
    /// Services of which people changed something since the last rest.
    pub(super) touched: BTreeSet<ServiceKey>,
    /// Those of which somebody else changed what agents make, or where they make it.
    pub(super) disturbed: BTreeSet<ServiceKey>,
    /// Strangers' objects, as they were made.
    pub(super) strangers: BTreeMap<(String, ServiceKey), Value>,
}

/// An object of which a part cannot be decoded.
struct Spoiled {
    kind: &'static str,
    service: ServiceKey,
    name: String,
    field: &'static str,
    before: Value,
}

/// The key of a service of the script.
pub(super) fn key(named: Named) -> ServiceKey {
    let namespace = NAMESPACES[usize::from(named.namespace) % NAMESPACES.len()];
    let service = SERVICES[usize::from(named.service) % SERVICES.len()];
    ServiceKey::new(namespace, service).expect("names of ours")
}

/// Returns true if a service is among what a member may take.
pub(super) fn is_among(service: &ServiceKey, taken: Taken) -> bool {
    match taken {
        Taken::Nothing => false,
        Taken::Namespace(index) => *service.namespace == *NAMESPACES[usize::from(index) % NAMESPACES.len()],
        Taken::Service(named) => *service == key(named),
        Taken::Everything => true,
    }
}

/// The metadata of an export: none, ordinary, reserved, malformed, and too much.
fn metadata(which: u8) -> Value {
    match which % METADATA {
        0 => json!({}),
        1 => json!({"exportedLabels": {"app.kubernetes.io/part-of": "shop"}}),
        2 => json!({"exportedLabels": {"kubernetes.io/hostname": "forged", "tier": "web"}}),
        3 => json!({"exportedLabels": {"tier": "not a value!"}, "exportedAnnotations": {"note": "kept"}}),
        _ => json!({"exportedAnnotations": {"big": "x".repeat(33 * 1024), "note": "kept"}}),
    }
}

fn spec(shape: u8) -> Value {
    let port = |name: &str, number: u16| json!({"name": name, "protocol": "TCP", "port": number});
    let unnamed = json!([{"protocol": "TCP", "port": 80}]);
    match shape {
        1 => json!({"ports": [port("http", 80), port("metrics", 9090)]}),
        2 => json!({"ports": [port("http", 8080)]}),
        3 => json!({"ports": [port("web", 80)]}),
        4 => json!({"clusterIP": "None", "ports": [port("http", 80)]}),
        5 => json!({"type": "ExternalName", "externalName": "example.com"}),
        6 => json!({"sessionAffinity": "ClientIP", "ports": [port("http", 80)]}),
        7 => json!({"type": "LoadBalancer", "ports": [port("http", 80), port("admin", 8443)]}),
        8 => json!({"ports": unnamed}),
        9 => json!({"clusterIP": "None", "ports": unnamed}),
        10 => json!({"ports": [port("web", 8080)]}),
        _ => json!({"ports": [port("http", 80)]}),
    }
}

impl Site {
    pub(super) fn new(index: usize, seed: u64, crds: &[Crd], start_millis: i64) -> anyhow::Result<Self> {
        let name = ["east", "west", "north", "south"][index % 4];
        let clock = Arc::new(ManualClock::new(start_millis));
        let cluster = SimCluster::new(SimConfig {
            name: name.into(),
            seed: seed ^ (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            clock: clock.clone(),
            service_cidrs: vec![format!("10.{}.0.0/16", 96 + index)],
            crds: crds.to_vec(),
        })?;
        cluster
            .apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT_NAMESPACE}}))?;
        Ok(Self {
            name: ClusterId::new(name)?,
            cluster,
            clock,
            clock_off: 0,
            agents: Vec::new(),
            led_by: None,
            cuts: 0,
            stalled: None,
            place: index as u8,
            certificate: 0,
            renewable: false,
            lies: false,
            expires: false,
            slow: None,
            refuses_writes: false,
            spoiled: Vec::new(),
            away: false,
            touched: BTreeSet::new(),
            disturbed: BTreeSet::new(),
            strangers: BTreeMap::new(),
        })
    }

    /// Number of its agents that took the Lease and do not know of another holder.
    pub(super) fn leaders(&self) -> usize {
        self.agents.iter().filter(|agent| agent.leads()).count()
    }

    /// One turn of one watch of one agent; whether anything came of it.
    pub(super) fn follow(&mut self, agent: usize, watch: u8, seen: &mut Histogram) -> bool {
        let cut = self.cuts > 0;
        self.cuts = self.cuts.saturating_sub(1);
        match self.agents[agent].follow(watch, &self.cluster, cut) {
            Followed::Nothing => false,
            Followed::Something => true,
            Followed::CutOff => {
                seen.count("listing cut off");
                true
            }
        }
    }

    /// The key of its certificate.
    pub(super) fn key(&self) -> KeyFingerprint {
        self.key_of(self.certificate)
    }

    /// Returns true if this is the key of its certificate, or of an earlier one.
    pub(super) fn had(&self, key: KeyFingerprint) -> bool {
        (0..=self.certificate).any(|certificate| self.key_of(certificate) == key)
    }

    /// The key of one of its certificates, by its number.
    pub(super) fn key_of(&self, certificate: u8) -> KeyFingerprint {
        let mut key = [certificate; 32];
        key[0] = self.place;
        KeyFingerprint(key)
    }

    fn touch_namespace(&mut self, namespace: &str) {
        let services = SERVICES
            .iter()
            .filter_map(|name| ServiceKey::new(namespace, name).ok());
        for service in services {
            self.disturb(service);
        }
    }

    /// Somebody elsewhere changed what they state of it.
    pub(super) fn touch(&mut self, service: &ServiceKey) {
        self.touched.insert(service.clone());
    }

    fn disturb(&mut self, service: ServiceKey) {
        self.disturbed.insert(service.clone());
        self.touched.insert(service);
    }

    pub(super) fn touch_all(&mut self) {
        NAMESPACES
            .iter()
            .for_each(|namespace| self.touch_namespace(namespace));
    }

    pub(super) fn make_namespace(&mut self, index: u8, seen: &mut Histogram) {
        let name = NAMESPACES[usize::from(index) % NAMESPACES.len()];
        if self.cluster.get("Namespace", "", name).is_some() {
            return;
        }
        self.touch_namespace(name);
        seen.count("namespace came");
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        // A namespace is always accepted.
        let _ = self.cluster.apply(object);
    }

    pub(super) fn remove_namespace(&mut self, index: u8, seen: &mut Histogram) {
        let name = NAMESPACES[usize::from(index) % NAMESPACES.len()];
        if self.cluster.delete("Namespace", "", name).is_ok() {
            self.touch_namespace(name);
            self.strangers
                .retain(|(_, service), _| &*service.namespace != name);
            seen.count("namespace went");
        }
    }

    /// Applies an object in a namespace of the script; a namespace that is not there refuses it, as it should.
    fn apply(&mut self, service: &ServiceKey, object: Value) -> Option<Value> {
        self.touched.insert(service.clone());
        self.cluster.get("Namespace", "", &service.namespace)?;
        self.cluster.apply(object).ok()
    }

    fn delete(&mut self, service: &ServiceKey, kind: &str, name: &str) -> bool {
        self.touched.insert(service.clone());
        self.cluster.delete(kind, &service.namespace, name).is_ok()
    }

    pub(super) fn make_service(&mut self, named: Named, shape: u8) {
        let service = key(named);
        self.delete(&service, "Service", &service.name);
        let object = json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": &*service.namespace, "name": &*service.name}, "spec": spec(shape)});
        self.apply(&service, object);
    }

    pub(super) fn remove_service(&mut self, named: Named, seen: &mut Histogram) {
        let service = key(named);
        if self.delete(&service, "Service", &service.name) {
            seen.count("service removed");
        }
    }

    pub(super) fn export(&mut self, named: Named) {
        let service = key(named);
        let object = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
            "metadata": {"namespace": &*service.namespace, "name": &*service.name}});
        self.apply(&service, object);
    }

    /// Somebody edits what a standing export carries along. It touches nothing: no import may go or be narrowed for that.
    pub(super) fn edit_metadata(&mut self, named: Named, which: u8, seen: &mut Histogram) {
        if !self.has_export(named) {
            return;
        }
        let service = key(named);
        let object = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
            "metadata": {"namespace": &*service.namespace, "name": &*service.name}, "spec": metadata(which)});
        if self.cluster.apply(object).is_ok() {
            seen.count("exported metadata edited");
        }
    }

    pub(super) fn has_export(&self, named: Named) -> bool {
        let service = key(named);
        let export = self
            .cluster
            .get("ServiceExport", &service.namespace, &service.name);
        export.is_some()
    }

    pub(super) fn unexport(&mut self, named: Named, seen: &mut Histogram) {
        let service = key(named);
        if self.delete(&service, "ServiceExport", &service.name) {
            seen.count("export removed");
        }
    }

    /// Creates its forged exports again, because the hub keeps the first age of an export that it was told.
    pub(super) fn repent(&mut self, seen: &mut Histogram) {
        if std::mem::take(&mut self.lies) {
            for (namespace, service) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let named = Named { namespace, service };
                let key = key(named);
                if self
                    .cluster
                    .get("ServiceExport", &key.namespace, &key.name)
                    .is_some()
                {
                    self.unexport(named, seen);
                    self.export(named);
                }
            }
        }
    }

    /// A slice of the service, with ports as its Service has them now, and large enough for differences.
    pub(super) fn make_slice(&mut self, index: usize, named: Named, slice: u8, endpoints: u8) {
        let service = key(named);
        let found = self.cluster.get("Service", &service.namespace, &service.name);
        let ports = found
            .map(|found| found["spec"]["ports"].clone())
            .unwrap_or_default();
        let ports: Vec<Value> = ports
            .as_array()
            .into_iter()
            .flatten()
            .map(|port| {
                let name = port["name"].as_str().unwrap_or_default();
                json!({"name": name, "protocol": "TCP", "port": port["port"]})
            })
            .collect();
        let number = u16::from(named.namespace) * 4 + u16::from(named.service) * 2 + u16::from(slice);
        let address = |last: u8| format!("172.{}.{number}.{}", 16 + index, last + 1);
        let endpoints = match endpoints {
            0 => 0,
            some => some + STANDING_ENDPOINTS,
        };
        let endpoints: Vec<Value> = (0..endpoints)
            .map(|last| json!({"addresses": [address(last)], "zone": ZONE}))
            .collect();
        let object = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"namespace": &*service.namespace, "name": format!("{}-{slice}", service.name),
                "labels": {"kubernetes.io/service-name": &*service.name,
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}},
            "addressType": "IPv4", "ports": ports, "endpoints": endpoints});
        self.apply(&service, object);
    }

    pub(super) fn remove_slice(&mut self, named: Named, slice: u8, seen: &mut Histogram) {
        let service = key(named);
        if self.delete(&service, "EndpointSlice", &format!("{}-{slice}", service.name)) {
            seen.count("slice removed");
        }
    }

    fn stranger_name(service: &ServiceKey, import: bool) -> (&'static str, String) {
        if import {
            ("ServiceImport", service.name.to_string())
        } else {
            ("Service", derived_service_name(&service.namespace, &service.name))
        }
    }

    /// Somebody makes an object under a name that Tributary needs, unless Tributary was first.
    pub(super) fn make_stranger(&mut self, named: Named, import: bool, seen: &mut Histogram) {
        let service = key(named);
        let (kind, name) = Self::stranger_name(&service, import);
        if self.cluster.get(kind, &service.namespace, &name).is_some() {
            return;
        }
        let mut metadata = json!({"namespace": &*service.namespace, "name": name});
        if named.namespace.is_multiple_of(2) {
            // People copy manifests: the label alone makes nothing Tributary's.
            metadata["labels"] = json!({MANAGED_BY: MANAGER});
        }
        let object = if import {
            json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": kind, "metadata": metadata,
                "spec": {"type": "ClusterSetIP", "ports": [{"port": 1}]}})
        } else {
            json!({"apiVersion": "v1", "kind": kind, "metadata": metadata,
                "spec": {"ports": [{"name": "strange", "port": 1}]}})
        };
        if let Some(made) = self.apply(&service, object) {
            seen.count("stranger");
            self.disturb(service.clone());
            self.strangers.insert((kind.into(), service), made);
        }
    }

    pub(super) fn remove_stranger(&mut self, named: Named, import: bool) {
        let service = key(named);
        let (kind, name) = Self::stranger_name(&service, import);
        if self.strangers.remove(&(kind.into(), service.clone())).is_some() {
            self.delete(&service, kind, &name);
        }
    }

    /// The objects that the agent made, of a kind.
    fn ours(&self, kind: &str) -> Vec<Arc<Value>> {
        let mut objects = self.cluster.objects(kind);
        objects.retain(|object| is_ours(object));
        objects
    }

    /// Somebody deletes one of the agent's objects, or changes what it says.
    pub(super) fn drift(&mut self, which: u8, seen: &mut Histogram) {
        let kind = ["ServiceImport", "Service", "EndpointSlice"][usize::from(which) % 3];
        let ours = self.ours(kind);
        let Some(object) = ours.get(usize::from(which / 3) % ours.len().max(1)) else {
            return;
        };
        let metadata = &object["metadata"];
        let (namespace, name) = (
            metadata["namespace"].as_str().unwrap_or_default(),
            metadata["name"].as_str().unwrap_or_default(),
        );
        let service = owner(object);
        seen.count("drift");
        service.into_iter().for_each(|service| self.disturb(service));
        if which.is_multiple_of(2) {
            let _ = self.cluster.delete(kind, namespace, name);
            return;
        }
        let plain = json!({"namespace": namespace, "name": name});
        let changed = match kind {
            "ServiceImport" => {
                json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": kind, "metadata": plain,
                "spec": {"type": object["spec"]["type"], "ports": [{"name": "drifted", "protocol": "TCP", "port": 7}]}})
            }
            "Service" if which.is_multiple_of(5) => {
                json!({"apiVersion": "v1", "kind": kind, "metadata": plain,
                "spec": {"ports": [{"name": "strange", "protocol": "TCP", "port": 7}]}})
            }
            "Service" => json!({"apiVersion": "v1", "kind": kind, "metadata": plain,
                "spec": {"sessionAffinity": "ClientIP"}}),
            _ => json!({"apiVersion": "discovery.k8s.io/v1", "kind": kind, "metadata": plain,
                "addressType": object["addressType"], "ports": object["ports"],
                "endpoints": [{"addresses": ["172.31.0.1"]}]}),
        };
        // The API server may refuse it, as it refuses people.
        let _ = self.cluster.apply(changed);
    }

    /// Somebody touches the Lease of a source, deletes it, or has another one in its place.
    pub(super) fn meddle_with_lease(&mut self, which: u8, seen: &mut Histogram) {
        let leases: Vec<String> = self
            .cluster
            .objects("Lease")
            .iter()
            .filter_map(|lease| Some(lease["metadata"]["name"].as_str()?.to_owned()))
            .filter(|name| name.starts_with(SOURCE_LEASE_PREFIX))
            .collect();
        let Some(name) = leases.get(usize::from(which / 3) % leases.len().max(1)) else {
            return;
        };
        seen.count("lease of a source touched");
        let plain = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": AGENT_NAMESPACE, "name": name}});
        let mut changed = plain;
        if which.is_multiple_of(3) {
            changed["spec"] = json!({"leaseDurationSeconds": 1});
            changed["metadata"]["annotations"] = json!({ANNOTATION_ON_EXPIRY: "withdraw"});
        } else {
            let _ = self.cluster.delete("Lease", AGENT_NAMESPACE, name);
            if which % 3 == 1 {
                return;
            }
        }
        // The API server may refuse it, as it refuses people.
        let _ = self.cluster.apply(changed);
    }

    /// Writes are refused until faults stop.
    pub(super) fn refuse_writes(&mut self, which: RefusedWrites, seen: &mut Histogram) {
        let (fault, kind, word) = match which {
            RefusedWrites::All => (Fault::NoSpace, "", "writes refused"),
            RefusedWrites::Leases => (Fault::NoSpace, "leases", "writes of Leases refused"),
            RefusedWrites::Slices => (Fault::NoSpace, "endpointslices", "writes of slices refused"),
            RefusedWrites::Updates => (Fault::VerbFails("update"), "", "updates refused"),
            RefusedWrites::Applies => (Fault::VerbFails("patch"), "", "applies refused"),
            RefusedWrites::Unavailable => (Fault::Unavailable("patch"), "", "applies unavailable"),
            RefusedWrites::Deletions => (Fault::VerbFails("delete"), "", "deletions refused"),
            RefusedWrites::Imports => (Fault::NoSpace, "serviceimports", "writes of imports refused"),
            RefusedWrites::ReadsOfSlices => (Fault::Unlisted, "endpointslices", "reads of slices refused"),
            RefusedWrites::ReadsOfExports => (Fault::Unlisted, "serviceexports", "reads of exports refused"),
        };
        seen.count(word);
        if fault == Fault::Unlisted {
            self.cluster.faults().drop_watches();
        } else {
            self.refuses_writes = true;
        }
        self.cluster.faults().rate(fault, ALWAYS, kind);
    }

    /// Requests for the Lease are answered after seconds, until faults stop.
    pub(super) fn slow_down(&mut self, other: u64, slow: u64, seen: &mut Histogram) {
        seen.count(if other == slow {
            "API server slow"
        } else {
            "API server slow every other time"
        });
        self.slow = Some([other, slow]);
        self.agents
            .iter_mut()
            .for_each(|agent| agent.slow_down(self.slow));
    }

    /// Something stands in an export or in one of its slices that nobody can decode. It touches nothing: what is known of
    /// it stays.
    pub(super) fn spoil(&mut self, named: Named, which: u8, seen: &mut Histogram) {
        let service = key(named);
        let (kind, name, field) = match which {
            0 => ("ServiceExport", service.name.to_string(), "spec"),
            which => (
                "EndpointSlice",
                format!("{}-{}", service.name, which - 1),
                "endpoints",
            ),
        };
        let place = (&*service.namespace, &*name);
        if let Some(before) = self.cluster.spoil(kind, place, field, json!(SPOILED)) {
            seen.count("object that cannot be decoded");
            self.spoiled.push(Spoiled {
                kind,
                service,
                name,
                field,
                before,
            });
        }
    }

    /// Faults of its API server stop.
    pub(super) fn heal(&mut self) {
        self.cluster.faults().clear();
        (self.cuts, self.stalled, self.slow, self.refuses_writes) = (0, None, None, false);
        self.agents.iter_mut().for_each(|agent| agent.slow_down(None));
        for spoiled in std::mem::take(&mut self.spoiled) {
            let (namespace, name) = (&*spoiled.service.namespace, &*spoiled.name);
            let stands = self.cluster.get(spoiled.kind, namespace, name);
            // Somebody may have replaced it meanwhile.
            if stands.is_some_and(|object| object[spoiled.field] == SPOILED) {
                self.cluster
                    .spoil(spoiled.kind, (namespace, name), spoiled.field, spoiled.before);
            }
        }
    }

    /// The next requests go wrong.
    pub(super) fn errors(&mut self, which: u8, times: u8, seen: &mut Histogram) {
        let (fault, word) = match which % 5 {
            0 => (Fault::Conflict, "http 409"),
            1 => (Fault::Gone, "http 410"),
            2 => (Fault::TooManyRequests, "http 429"),
            3 => (Fault::InternalError, "http 500"),
            _ => (Fault::AnswerLost, "answer lost"),
        };
        seen.count(word);
        self.cluster.faults().next(fault, u32::from(times), "");
    }
}

/// Every service that a script can name.
pub(super) fn all_keys() -> impl Iterator<Item = ServiceKey> {
    let all = NAMESPACES
        .iter()
        .flat_map(|namespace| SERVICES.iter().map(move |name| (namespace, name)));
    all.filter_map(|(namespace, name)| ServiceKey::new(namespace, name).ok())
}

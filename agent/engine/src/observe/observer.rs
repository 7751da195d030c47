//! Looks at the services whose objects changed and states their facts to the outbox.
//! It owns which facts were stated for which service. It decides no conflict.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    ClusterProperty as ClusterPropertyObject,
    convert::{NamespaceDenyList, property_from},
};
use model::{ClusterProperty, EncodedFact, Fact, FactKey, ListingGroup, ServiceKey};
use tracing::warn;
use wire::encode_fact;

use super::join::{Joined, Objects, join};
use crate::{
    convert::changed_by::changed_by,
    outbox::Outbox,
    watch::{Kept, Watched, Watches, Whole},
};

/// The observer.
#[derive(Debug)]
pub struct Observer {
    deny: NamespaceDenyList,
    /// The keys that were stated for each service.
    stated: BTreeMap<ServiceKey, BTreeSet<FactKey>>,
    stated_properties: BTreeSet<FactKey>,
    /// Services that changed and were not looked at yet: not everything they are joined from is known.
    waiting: BTreeSet<ServiceKey>,
    /// Every export was looked at once.
    looked_at_all: bool,
    bad: BTreeSet<(ServiceKey, String)>,
    /// ClusterProperties that cannot be reported, with the problem as it was reported.
    bad_properties: BTreeMap<String, String>,
}

impl Observer {
    /// An observer that has stated nothing.
    pub fn new(deny: NamespaceDenyList) -> Self {
        Self {
            deny,
            stated: BTreeMap::new(),
            stated_properties: BTreeSet::new(),
            waiting: BTreeSet::new(),
            looked_at_all: false,
            bad: BTreeSet::new(),
            bad_properties: BTreeMap::new(),
        }
    }

    /// Looks at services that changed, and at those that wait, once every kind of the group is listed: before,
    /// "there is no Service" would be a guess, and false comes back; only that an export has gone is stated then, for that
    /// was seen, be it the last that was seen of a definition. The first time it looks at every export, and the listing is
    /// complete unless an object that belongs to it cannot be decoded.
    pub fn services_changed(
        &mut self,
        services: impl IntoIterator<Item = ServiceKey>,
        watches: &Watches,
        outbox: &mut Outbox,
    ) -> bool {
        self.waiting.extend(services);
        if !watches.exports_known() {
            self.state_who_has_gone(watches, outbox);
            return false;
        }
        if !std::mem::replace(&mut self.looked_at_all, true) {
            self.waiting = watches.exports.services().into_iter().collect();
        }
        for service in std::mem::take(&mut self.waiting) {
            self.look(&service, watches, outbox);
        }
        if !outbox.is_complete(ListingGroup::Exports) && watches.exports_whole() {
            outbox.complete(ListingGroup::Exports);
        }
        true
    }

    /// Returns the exported or reported services of these namespaces: any of them may change once an object there can
    /// be decoded that could not, or the reverse.
    pub fn services_in(&self, namespaces: &BTreeSet<Box<str>>, watches: &Watches) -> BTreeSet<ServiceKey> {
        let exported = watches.exports.services().into_iter();
        let all = exported.chain(self.stated.keys().cloned());
        all.filter(|service| namespaces.contains(&service.namespace))
            .collect()
    }

    /// Withdraws the facts of services whose export has left the store: nothing leaves it but objects that were
    /// deleted, or were not in a whole listing.
    fn state_who_has_gone(&mut self, watches: &Watches, outbox: &mut Outbox) {
        let has_gone =
            |service: &ServiceKey| watches.exports.get(&service.namespace, &service.name).is_none();
        let stated = &self.stated;
        let gone = self
            .waiting
            .extract_if(.., |service| stated.contains_key(service) && has_gone(service));
        for service in gone.collect::<Vec<_>>() {
            self.state(&service, Joined::default(), outbox);
        }
    }

    fn look(&mut self, service: &ServiceKey, watches: &Watches, outbox: &mut Outbox) {
        let (namespace, name) = (&*service.namespace, &*service.name);
        let export = watches.exports.get(namespace, name);
        let local = watches.services.get(namespace, name);
        if local.is_none() && watches.services.is_unreadable(namespace, name)
            || export.is_none() && watches.exports.is_unreadable(namespace, name)
        {
            return; // unknown: what was stated of it stays
        }
        let slices = watches.slices.of_service(service);
        let objects = Objects {
            export: export.as_deref(),
            service: local.as_deref(),
            slices: slices.iter().map(Arc::as_ref).collect(),
        };
        let joined = join(service, &objects, &self.deny);
        self.report_bad_slices(service, &joined);
        self.state(service, joined, outbox);
    }

    fn state(&mut self, service: &ServiceKey, mut joined: Joined, outbox: &mut Outbox) {
        let stated: BTreeSet<FactKey> = joined.facts.keys().cloned().collect();
        let before = if stated.is_empty() {
            self.stated.remove(service)
        } else {
            self.stated.insert(service.clone(), stated.clone())
        };
        // An export comes before its slices, and goes before them: they share its fate, and the hub puts them on hold
        // with it if the member withdraws too much at once.
        let before = before.unwrap_or_default();
        for gone in before.iter().filter(|key| !stated.contains(key)) {
            outbox.set(gone.clone(), None);
        }
        for (key, fact) in joined.facts {
            let changed_by = joined.changed_by.remove(&key);
            outbox.state(key, fact, changed_by);
        }
    }

    fn report_bad_slices(&mut self, service: &ServiceKey, joined: &Joined) {
        for (slice, problem) in &joined.bad_slices {
            if self.bad.insert((service.clone(), slice.clone())) {
                warn!(%service, slice, problem, "this EndpointSlice is not reported");
            }
        }
        self.bad
            .retain(|(of, slice)| of != service || joined.bad_slices.iter().any(|(bad, _)| bad == slice));
    }

    /// States the ClusterProperties.
    pub fn look_at_properties(
        &mut self,
        properties: &Watched<Whole<ClusterPropertyObject>>,
        outbox: &mut Outbox,
    ) {
        let (mut stated, mut bad) = (BTreeSet::new(), BTreeMap::new());
        for property in properties.all() {
            match property_from(&property.object) {
                Ok(reported) => {
                    let (key, fact) = property_fact(reported);
                    stated.insert(key.clone());
                    outbox.state(key, fact, changed_by(&property.object.metadata));
                }
                Err(problem) => {
                    bad.insert(property.head().name.to_string(), problem.to_string());
                }
            }
        }
        for gone in self.stated_properties.difference(&stated) {
            outbox.set(gone.clone(), None);
        }
        self.stated_properties = stated;
        for (property, problem) in news(&self.bad_properties, &bad) {
            warn!(property, problem, "this ClusterProperty is not reported");
        }
        self.bad_properties = bad;
    }
}

/// Problems that are new since the last look.
fn news<'a>(
    before: &BTreeMap<String, String>,
    now: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    now.iter()
        .filter(|(name, problem)| before.get(*name) != Some(problem))
        .map(|(name, problem)| (&**name, &**problem))
}

fn property_fact(property: ClusterProperty) -> (FactKey, EncodedFact) {
    let key = FactKey::ClusterProperty(property.name.clone());
    (
        key,
        encode_fact(&Fact::ClusterPropertyUpserted(Arc::new(property))),
    )
}

#[cfg(test)]
mod tests {
    use crate::watch::Event;
    use api::ServiceExport;
    use k8s_openapi::api::core::v1::Service;
    use serde_json::json;

    use super::*;
    use crate::outbox::removal;
    use crate::watch::{Dirty, Guarded, Read};

    fn list<K: Kept>(store: &Watched<K>, objects: &[K::Object]) {
        store.handle(Event::Init);
        let listed = objects.iter().cloned().map(Event::InitApply);
        listed.for_each(|event| store.handle(event));
        store.handle(Event::InitDone);
    }

    fn cluster() -> (Watches, ServiceKey, ServiceExport) {
        let metadata = json!({"namespace": "shop", "name": "cart", "uid": "u", "resourceVersion": "1",
            "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"});
        let export = serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let spec = json!({"type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
            "ipFamilies": ["IPv4"], "ports": [{"port": 80, "protocol": "TCP"}]});
        let service: Service = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
        let watches = Watches::default();
        list(&watches.namespaces, &[]);
        list(&watches.services, &[service]);
        list(&watches.slices, &[]);
        (watches, ServiceKey::new("shop", "cart").unwrap(), export)
    }

    #[test]
    fn nothing_is_stated_while_one_kind_is_not_listed() {
        let hide: [fn(&Watches); 4] = [
            |watches| watches.namespaces.unlisted(),
            |watches| watches.services.unlisted(),
            |watches| watches.slices.unlisted(),
            |watches| watches.exports.unlisted(),
        ];
        for (number, hide) in hide.into_iter().enumerate() {
            let (watches, service, export) = cluster();
            list(&watches.exports, &[export]);
            hide(&watches);
            let mut outbox = Outbox::new(removal);
            let mut observer = Observer::new(NamespaceDenyList::default());
            let stated = observer.services_changed([service], &watches, &mut outbox);
            let known = (stated, outbox.is_complete(ListingGroup::Exports));
            assert_eq!(known, (false, false), "kind {number}");
        }
    }

    /// An object as a watch tells of it that reads objects one by one.
    fn read<K: kube_core::Resource + serde::de::DeserializeOwned>(object: serde_json::Value) -> Read<K> {
        serde_json::from_value::<Guarded<K>>(object).unwrap().0
    }

    /// One object that cannot be decoded stops no other export, and is unknown, not gone.
    #[test]
    fn an_export_whose_service_cannot_be_decoded_is_unknown_and_others_are_stated() {
        let (watches, service, export) = cluster();
        let other = ServiceKey::new("shop", "till").unwrap();
        let mut till = export.clone();
        till.metadata.name = Some("till".into());
        list(&watches.exports, &[export, till]);
        let broken = json!({"metadata": {"namespace": "shop", "name": "till", "uid": "t", "resourceVersion": "2"},
            "spec": {"ports": [{"port": "eighty"}]}});
        assert!(watches.services.handle_read(Event::Apply(read(broken))), "news");
        let (mut outbox, mut observer) = (Outbox::new(removal), Observer::new(NamespaceDenyList::default()));
        assert!(observer.services_changed([], &watches, &mut outbox));
        assert_eq!(
            outbox.keys(ListingGroup::Exports).len(),
            1,
            "{service} is exported"
        );
        assert!(
            !outbox.is_complete(ListingGroup::Exports),
            "{other} may have been exported before"
        );
        let spec = json!({"type": "ClusterIP", "clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.2"],
            "ipFamilies": ["IPv4"], "ports": [{"port": 80}]});
        let mended = |version: u64| {
            json!({"metadata": {"namespace": "shop", "name": "till", "uid": "t",
            "resourceVersion": version.to_string()}, "spec": spec})
        };
        watches.services.handle_read(Event::Apply(read(mended(3))));
        observer.services_changed([other.clone()], &watches, &mut outbox);
        assert_eq!(outbox.keys(ListingGroup::Exports).len(), 2);
        assert!(outbox.is_complete(ListingGroup::Exports));
        // It stops being readable: what was stated of it stays.
        let broken = json!({"metadata": {"namespace": "shop", "name": "till", "uid": "t", "resourceVersion": "4"},
            "spec": []});
        watches.services.handle_read(Event::Apply(read(broken)));
        observer.services_changed([other.clone()], &watches, &mut outbox);
        assert_eq!(outbox.keys(ListingGroup::Exports).len(), 2);
        assert_eq!(watches.services.unreadable_count(), 1);
        // It goes.
        watches.services.handle_read(Event::Delete(read(mended(5))));
        observer.services_changed([other], &watches, &mut outbox);
        assert_eq!(outbox.keys(ListingGroup::Exports).len(), 1);
    }

    /// It was never known, so that nothing of it changes when it goes: its namespace is looked at again.
    #[test]
    fn exports_are_complete_once_an_object_that_could_not_be_decoded_is_gone() {
        let (watches, service, export) = cluster();
        list(&watches.exports, std::slice::from_ref(&export));
        let broken = || {
            json!({"metadata": {"namespace": "shop", "name": "till", "uid": "t", "resourceVersion": "2"},
            "spec": {"exportedLabels": 7}})
        };
        let marked = Dirty::default();
        watches.mark_unreadable(&marked);
        watches.exports.handle_read(Event::Apply(read(broken())));
        let (mut outbox, mut observer) = (Outbox::new(removal), Observer::new(NamespaceDenyList::default()));
        observer.services_changed([], &watches, &mut outbox);
        assert!(!outbox.is_complete(ListingGroup::Exports));
        marked.take_now();
        watches.exports.handle_read(Event::Delete(read(broken())));
        let namespaces = marked.take_now().into_iter().collect();
        let services = observer.services_in(&namespaces, &watches);
        assert_eq!(services, BTreeSet::from([service]));
        observer.services_changed(services, &watches, &mut outbox);
        assert!(outbox.is_complete(ListingGroup::Exports));
    }

    fn written(mut object: serde_json::Value, version: u64, manager: &str, second: u64) -> serde_json::Value {
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let at = format!("2026-01-01T00:00:{second:02}Z");
        object["metadata"]["managedFields"] =
            json!([{"manager": manager, "operation": "Update", "time": at}]);
        object
    }

    #[test]
    fn who_changed_what_is_exported_is_told_and_who_only_touched_it_is_not() {
        let (watches, service, export) = cluster();
        list(&watches.exports, std::slice::from_ref(&export));
        let (mut outbox, mut observer) = (Outbox::new(removal), Observer::new(NamespaceDenyList::default()));
        outbox.begin_session();
        outbox.welcome(false, false);
        let mut told = |version: u64, manager: &str, port: u16| {
            let local = json!({"metadata": {"namespace": "shop", "name": "cart", "uid": "u"}, "spec": {
                "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
                "ipFamilies": ["IPv4"], "ports": [{"port": port, "protocol": "TCP"}]}});
            let local = serde_json::from_value(written(local, version, manager, version)).unwrap();
            watches.services.handle(Event::Apply(local));
            observer.services_changed([service.clone()], &watches, &mut outbox);
            let batch = outbox.next_batch(1_000, 10);
            let by = batch.into_iter().map(|observation| observation.changed_by);
            by.map(|by| by.map(|by| by.manager().to_owned()))
                .collect::<Vec<_>>()
        };
        assert_eq!(told(2, "helm", 80), [Some("helm".to_owned())]);
        let none: [Option<String>; 0] = [];
        assert_eq!(told(3, "annotator", 80), none, "the fact is what it was");
        assert_eq!(told(4, "kubectl-edit", 81), [Some("kubectl-edit".to_owned())]);
        // A listing tells who made the fact what it is, not who was there last.
        assert_eq!(told(5, "annotator", 81), none);
        outbox.complete(ListingGroup::Exports);
        outbox.welcome(true, false);
        let listed = outbox.next_batch(1_000, 10).remove(0).changed_by.unwrap();
        assert_eq!(
            (listed.manager(), listed.at().0),
            ("kubectl-edit", 1_767_225_604_000)
        );
        watches.exports.handle(Event::Delete(export));
        observer.services_changed([service], &watches, &mut outbox);
        let gone = outbox.next_batch(1_000, 10);
        assert!(
            gone.iter().all(|observation| observation.changed_by.is_none()),
            "nobody notes who deletes"
        );
        assert_eq!(gone.len(), 1);
    }

    #[test]
    fn what_is_wrong_is_said_once_until_something_else_is() {
        let told = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            pairs
                .map(|&(name, problem)| (name.into(), problem.into()))
                .collect()
        };
        let before = told(&[("a", "too long"), ("b", "too long")]);
        let now = told(&[("a", "too long"), ("b", "empty"), ("c", "empty")]);
        let new: Vec<_> = news(&before, &now).collect();
        assert_eq!(new, [("b", "empty"), ("c", "empty")]);
        assert_eq!(news(&now, &now).count(), 0);
    }

    /// Every look remembers what it found wrong, and forgets what was mended.
    #[test]
    fn a_bad_property_is_remembered_until_it_is_mended() {
        let properties = Watched::new(|_: &Whole<ClusterPropertyObject>| None);
        let property = |value: &str| -> ClusterPropertyObject {
            serde_json::from_value(json!({"metadata": {"name": "example.org", "uid": "u"},
                "spec": {"value": value}}))
            .unwrap()
        };
        let (mut outbox, mut observer) = (Outbox::new(removal), Observer::new(NamespaceDenyList::default()));
        let mut bad_after = |value: &str| {
            list(&properties, &[property(value)]);
            observer.look_at_properties(&properties, &mut outbox);
            observer.bad_properties.len()
        };
        assert_eq!([bad_after(""), bad_after(""), bad_after("x")], [1, 1, 0]);
    }

    /// The last news of a deleted definition is that its objects go; then nothing is known of the kind.
    #[test]
    fn an_export_that_was_seen_to_go_is_removed_though_its_kind_is_not_served_and_no_other_is() {
        let (watches, service, export) = cluster();
        let mut outbox = Outbox::new(removal);
        let mut observer = Observer::new(NamespaceDenyList::default());
        assert!(!observer.services_changed([service.clone()], &watches, &mut outbox));
        assert!(
            !outbox.is_complete(ListingGroup::Exports),
            "exports are not listed"
        );
        list(&watches.exports, std::slice::from_ref(&export));
        assert!(observer.services_changed([], &watches, &mut outbox));
        assert_eq!(outbox.keys(ListingGroup::Exports).len(), 1);
        watches.exports.unlisted();
        assert!(!observer.services_changed([service.clone()], &watches, &mut outbox));
        assert_eq!(outbox.keys(ListingGroup::Exports).len(), 1, "nobody knows");
        watches.exports.handle(Event::Delete(export.clone()));
        assert!(
            !observer.services_changed([], &watches, &mut outbox),
            "the others wait"
        );
        assert_eq!(outbox.keys(ListingGroup::Exports).len(), 0, "it was seen to go");
        list(&watches.exports, std::slice::from_ref(&export));
        assert!(observer.services_changed([service.clone()], &watches, &mut outbox));
        assert_eq!(outbox.keys(ListingGroup::Exports).len(), 1, "it is there again");
        watches.exports.unlisted();
        list(&watches.exports, &[]);
        assert!(observer.services_changed([service], &watches, &mut outbox));
        assert_eq!(
            outbox.keys(ListingGroup::Exports).len(),
            0,
            "it went while nobody looked"
        );
    }
}

//! The contents of a store after listings and events.

use k8s_openapi::api::core::v1::ConfigMap;
use kube_core::ObjectMeta;

use super::*;
use crate::watch::{KeptImport, KeptSlice, Whole, guarded::Guarded};

fn object(name: &str, version: u64) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            namespace: Some("shop".into()),
            name: Some(name.into()),
            uid: Some("u".into()),
            resource_version: Some(version.to_string()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

type Store = Watched<Whole<ConfigMap>>;

fn store() -> Store {
    Watched::new(|object| object.head().service())
}

fn names(store: &Store) -> Vec<String> {
    store
        .all()
        .iter()
        .map(|object| object.head().name.to_string())
        .collect()
}

fn version(store: &Store, name: &str) -> u64 {
    store.get("shop", name).unwrap().head().version
}

fn list(store: &Store, names: &[&str]) {
    store.handle(Event::Init);
    names
        .iter()
        .for_each(|name| store.handle(Event::InitApply(object(name, 1))));
    store.handle(Event::InitDone);
}

#[test]
fn a_double_init_keeps_the_last_completed_set_until_it_is_done() {
    let store = store();
    assert!(!store.is_listed());
    list(&store, &["a", "b"]);
    store.handle(Event::Init);
    store.handle(Event::InitApply(object("c", 1)));
    store.handle(Event::Init);
    assert_eq!(
        names(&store),
        ["a", "b", "c"],
        "what comes is there at once, and nothing goes"
    );
    store.handle(Event::InitApply(object("b", 1)));
    store.handle(Event::InitDone);
    assert_eq!(names(&store), ["b"]);
    assert!(store.is_listed());
    assert_eq!(store.services().len(), 1);
}

#[tokio::test]
async fn a_relist_tells_of_what_changed_and_what_went_only() {
    let (store, dirty) = (store(), Dirty::default());
    list(&store, &["a", "b", "c"]);
    store.mark_changes(&dirty, |object| Some(object.head().name.to_string()));
    store.handle(Event::Init);
    store.handle(Event::InitApply(object("a", 1)));
    store.handle(Event::InitApply(object("b", 2)));
    store.handle(Event::InitDone);
    let told: Vec<_> = dirty.taken().await.into_iter().collect();
    assert_eq!(told, ["b", "c"]);
}

#[test]
fn an_answer_to_a_write_is_not_undone_by_an_older_event() {
    let store = store();
    list(&store, &["a"]);
    store.written(store.begin_write(), object("a", 5));
    store.handle(Event::Apply(object("a", 3)));
    assert_eq!(version(&store, "a"), 5);
    store.handle(Event::Apply(object("a", 6)));
    assert_eq!(version(&store, "a"), 6);
}

#[test]
fn a_relist_is_believed_but_not_against_what_came_since_it_began() {
    let store = store();
    store.handle(Event::Init);
    store.handle(Event::InitApply(object("a", 9)));
    store.handle(Event::InitApply(object("b", 9)));
    store.handle(Event::InitDone);
    store.handle(Event::Init);
    store.written(store.begin_write(), object("b", 12));
    store.written(store.begin_write(), object("c", 13));
    store.handle(Event::InitApply(object("a", 4)));
    store.handle(Event::InitApply(object("b", 11)));
    store.handle(Event::InitDone);
    assert_eq!(
        version(&store, "a"),
        4,
        "the cluster may be one of an older backup"
    );
    assert_eq!(version(&store, "b"), 12);
    assert_eq!(
        names(&store),
        ["a", "b", "c"],
        "the watch will tell if c is gone again"
    );
}

#[test]
fn a_relist_holds_no_object_twice() {
    let store = store();
    list(&store, &["a", "b"]);
    let before = Arc::downgrade(&store.get("shop", "a").unwrap());
    store.handle(Event::Init);
    store.handle(Event::InitApply(object("a", 2)));
    assert!(
        before.upgrade().is_none(),
        "the old state is gone with the new one"
    );
    assert_eq!(names(&store), ["a", "b"]);
}

#[test]
fn a_late_answer_does_not_bring_back_what_is_gone() {
    let store = store();
    list(&store, &["a"]);
    let ticket = store.begin_write();
    store.handle(Event::Apply(object("a", 5)));
    store.handle(Event::Delete(object("a", 6)));
    store.written(ticket, object("a", 5));
    assert!(names(&store).is_empty(), "the watch has told of its end");
    let ticket = store.begin_write();
    list(&store, &[]);
    store.written(ticket, object("b", 9));
    assert!(names(&store).is_empty(), "it was not among what was listed since");
    store.written(store.begin_write(), object("b", 9));
    assert_eq!(names(&store), ["b"]);
}

#[test]
fn a_kind_that_cannot_be_listed_any_more_is_unknown_and_not_empty() {
    let store = store();
    list(&store, &["a"]);
    store.unlisted();
    assert!(!store.is_listed());
    assert_eq!(names(&store), ["a"]);
    list(&store, &[]);
    assert!(store.is_listed() && names(&store).is_empty());
}

fn unreadable<K: kube_core::Resource<DynamicType = ()> + serde::de::DeserializeOwned>(
    name: &str,
    uid: &str,
    spec: &serde_json::Value,
) -> Read<K> {
    let object = serde_json::json!({"metadata": {"namespace": "shop", "name": name, "uid": uid,
        "resourceVersion": "7"}, "spec": spec, "endpoints": spec});
    let guarded: Guarded<K> = serde_json::from_value(object).expect("it has a name");
    guarded.0
}

/// Nobody could say which service such an object belongs to.
#[test]
fn an_object_that_could_not_be_decoded_marks_its_namespace_when_it_goes() {
    let slices = Watched::<KeptSlice>::new(KeptSlice::service);
    let marked = Dirty::default();
    slices.mark_unreadable(&marked);
    let broken = || unreadable("web-1", "u", &serde_json::json!("none"));
    slices.handle_read(Event::Init);
    slices.handle_read(Event::InitDone);
    slices.handle_read(Event::Apply(broken()));
    assert_eq!(marked.take_now(), ["shop".into()], "it came");
    slices.handle_read(Event::Apply(broken()));
    assert!(marked.take_now().is_empty(), "it is as it was");
    slices.handle_read(Event::Delete(broken()));
    assert_eq!(marked.take_now(), ["shop".into()], "it was deleted");

    slices.handle_read(Event::Apply(broken()));
    assert_eq!(marked.take_now(), ["shop".into()]);
    slices.handle_read(Event::Init);
    slices.handle_read(Event::InitDone);
    assert_eq!(marked.take_now(), ["shop".into()], "a listing showed it no more");
}

#[test]
fn an_object_that_cannot_be_decoded_and_has_another_uid_takes_the_place_of_the_known_one() {
    let imports = Watched::<KeptImport>::new(|import| import.head().service());
    let (marked, services) = (Dirty::default(), Dirty::default());
    imports.mark_unreadable(&marked);
    imports.mark_services(&services);
    let web = |uid: &str, spec: serde_json::Value| unreadable("web", uid, &spec);
    let good = serde_json::json!({"type": "ClusterSetIP", "ports": []});
    imports.handle_read(Event::Apply(web("first", good)));
    assert_eq!(services.take_now().len(), 1);
    imports.handle_read(Event::Apply(web("first", serde_json::json!({"ports": 7}))));
    assert!(
        imports.get("shop", "web").is_some(),
        "the same object, as it was known"
    );
    imports.handle_read(Event::Apply(web("second", serde_json::json!({"ports": 7}))));
    assert!(imports.get("shop", "web").is_none(), "another object");
    assert!(imports.is_unreadable("shop", "web"));
    assert_eq!(services.take_now().len(), 1, "the first one went");
}

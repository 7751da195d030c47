//! Tests of one kind.

use serde_json::json;

use super::*;

const ROOM: usize = 10_000;

fn object(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "p.x/v1", "kind": "T", "spec": {"at": name},
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}"), "resourceVersion": version.to_string()},
    })
}

fn listed(objects: &[Value]) -> Store {
    let mut store = Store::default();
    list(&mut store, objects);
    store
}

fn list(store: &mut Store, objects: &[Value]) {
    store.see(Event::Init, ROOM).unwrap();
    for object in objects {
        store.see(Event::InitApply(object.clone()), ROOM).unwrap();
    }
    store.see(Event::InitDone, ROOM).unwrap();
}

fn names(store: &Store) -> Vec<&str> {
    let objects = store.objects();
    objects
        .filter_map(|object| text(object, "/metadata/name"))
        .collect()
}

#[test]
fn a_kind_is_known_from_the_end_of_its_listing_on() {
    let now = Instant::now();
    let mut store = Store::default();
    assert_eq!(store.known(now), Known::NotYet);
    store.see(Event::Init, ROOM).unwrap();
    store.see(Event::InitApply(object("a", 1)), ROOM).unwrap();
    assert_eq!(store.known(now), Known::NotYet, "half a listing is none");
    assert_eq!(names(&store), Vec::<&str>::new());
    assert_eq!(store.see(Event::InitDone, ROOM), Ok(true));
    assert_eq!((store.known(now), names(&store)), (Known::Listed, vec!["a"]));
}

#[test]
fn a_kind_that_was_never_listed_is_unread_at_once_and_another_one_after_a_while() {
    let now = Instant::now();
    let mut store = Store::default();
    store.failed("forbidden".to_owned(), now);
    assert_eq!(store.known(now), Known::Unread("forbidden".to_owned()));
    let mut store = listed(&[object("a", 1)]);
    store.failed("gone".to_owned(), now);
    let later = now + BROKEN_MAX;
    store.failed("gone again".to_owned(), later);
    assert_eq!(store.known(later), Known::Listed);
    assert_eq!(names(&store), ["a"], "what is known stays meanwhile");
    let too_late = later + Duration::from_millis(1);
    assert_eq!(store.known(too_late), Known::Unread("gone again".to_owned()));
    list(&mut store, &[object("a", 1)]);
    assert_eq!(store.known(too_late), Known::Listed);
}

#[test]
fn a_later_listing_takes_the_place_of_the_former_at_its_end() {
    let mut store = listed(&[object("a", 1), object("b", 1)]);
    store.see(Event::Init, ROOM).unwrap();
    store.see(Event::InitApply(object("b", 2)), ROOM).unwrap();
    assert_eq!(names(&store), ["a", "b"]);
    // It broke, and begins again.
    store.see(Event::Init, ROOM).unwrap();
    store.see(Event::InitApply(object("c", 3)), ROOM).unwrap();
    assert_eq!(store.see(Event::InitDone, ROOM), Ok(true));
    assert_eq!(names(&store), ["c"]);
    let before = store.bytes();
    list(&mut store, &[object("c", 3)]);
    assert_eq!(store.bytes(), before);
}

#[test]
fn only_what_a_plan_may_depend_on_is_news() {
    let mut store = listed(&[object("a", 1)]);
    assert_eq!(store.see(Event::Apply(object("a", 2)), ROOM), Ok(false));
    let mut other = object("a", 3);
    other["spec"]["at"] = json!("b");
    assert_eq!(store.see(Event::Apply(other.clone()), ROOM), Ok(true));
    let mut more = other.clone();
    more["status"] = json!({});
    more["metadata"]["resourceVersion"] = json!("4");
    assert_eq!(store.see(Event::Apply(more), ROOM), Ok(true));
    store.see(Event::Init, ROOM).unwrap();
    store.see(Event::InitApply(other.clone()), ROOM).unwrap();
    assert_eq!(store.see(Event::InitDone, ROOM), Ok(true));
    store.see(Event::Init, ROOM).unwrap();
    store.see(Event::InitApply(other.clone()), ROOM).unwrap();
    assert_eq!(store.see(Event::InitDone, ROOM), Ok(false), "it is the same");
    assert_eq!(store.see(Event::Delete(other.clone()), ROOM), Ok(true));
    assert_eq!(store.see(Event::Delete(other), ROOM), Ok(false));
}

#[test]
fn a_write_is_awaited_until_its_version_or_a_later_one_is_seen() {
    let mut store = listed(&[object("a", 5)]);
    store.wrote(&object("a", 5));
    assert_eq!(store.awaits(), None, "it changed nothing");
    store.wrote(&object("a", 7));
    assert!(store.awaits().is_some());
    store.see(Event::Apply(object("a", 6)), ROOM).unwrap();
    assert!(store.awaits().is_some(), "that is another one's, before it");
    store.see(Event::Apply(object("a", 8)), ROOM).unwrap();
    assert_eq!(store.awaits(), None);
    store.wrote(&object("b", 9));
    store.see(Event::Delete(object("b", 10)), ROOM).unwrap();
    assert_eq!(store.awaits(), None, "it was made, and is gone already");
}

#[test]
fn the_end_of_a_predecessor_shows_nothing_of_its_successor() {
    let mut store = listed(&[object("a", 5)]);
    let mut successor = object("a", 8);
    successor["metadata"]["uid"] = json!("other");
    store.wrote(&successor);
    store.see(Event::Delete(object("a", 7)), ROOM).unwrap();
    assert!(store.awaits().is_some());
    store.see(Event::Apply(successor), ROOM).unwrap();
    assert_eq!(store.awaits(), None);
}

#[test]
fn a_deletion_is_awaited_until_it_is_gone_or_being_deleted() {
    let key = || ("ns".to_owned(), "a".to_owned());
    let mut store = listed(&[object("a", 5)]);
    store.deleted(key(), "uid-other");
    store.deleted(("ns".to_owned(), "b".to_owned()), "uid-b");
    assert_eq!(store.awaits(), None, "there is no such object");
    store.deleted(key(), "uid-a");
    store.see(Event::Apply(object("a", 6)), ROOM).unwrap();
    assert!(store.awaits().is_some());
    let mut ending = object("a", 7);
    ending["metadata"]["deletionTimestamp"] = json!("2026-11-29T00:00:00Z");
    store.see(Event::Apply(ending), ROOM).unwrap();
    assert_eq!(store.awaits(), None);
}

#[test]
fn a_listing_that_began_after_a_write_shows_it_in_any_case() {
    let mut store = listed(&[]);
    store.wrote(&object("a", 7));
    store.see(Event::Init, ROOM).unwrap();
    store.wrote(&object("b", 8));
    store.see(Event::InitDone, ROOM).unwrap();
    assert_eq!(store.awaits().map(|(_, name)| name.as_str()), Some("b"));
    list(&mut store, &[]);
    assert_eq!(store.awaits(), None, "both are gone");
}

#[test]
fn what_does_not_fit_is_no_part_of_it() {
    let bytes = listed(&[object("a", 1)]).bytes();
    let mut store = listed(&[object("a", 1)]);
    assert_eq!(store.see(Event::Apply(object("b", 1)), bytes - 1), Err(NoRoom));
    assert_eq!(
        store.see(Event::Apply(object("a", 2)), 0),
        Ok(false),
        "it takes the room of its former state"
    );
    store.see(Event::Init, 0).unwrap();
    store.see(Event::InitApply(object("a", 2)), 0).unwrap();
    assert_eq!(
        store.see(Event::InitApply(object("b", 1)), bytes - 1),
        Err(NoRoom)
    );
    let now = Instant::now();
    store.left_out("too many".to_owned(), now);
    assert_eq!(
        (store.known(now), store.bytes()),
        (Known::Unread("too many".to_owned()), 0)
    );
}

#[test]
fn entries_of_other_managers_are_not_kept() {
    let mut managed = object("a", 1);
    let entry = |manager: &str| json!({"manager": manager});
    managed["metadata"]["managedFields"] = json!([entry("kubectl"), entry(MANAGER), entry(UPSTREAM_MANAGER)]);
    let store = listed(&[managed]);
    let kept = store.objects().next().unwrap();
    assert_eq!(
        kept["metadata"]["managedFields"],
        json!([entry(MANAGER), entry(UPSTREAM_MANAGER)])
    );
}

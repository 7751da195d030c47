//! Any members over any view: each holds what it should, and could make an object of every difference that it was sent.
//! Without requests the hub is shown to know what its members hold.

use std::collections::BTreeMap;

use model::sync::Told;
use proptest::{collection::vec, prelude::*};
use wire::{Restored, restore};

use super::*;

const NAMESPACES: [&str; 2] = ["bank", "shop"];
const MEMBERS: usize = 3;
/// Removals that the view remembers.
const TOMBSTONES: usize = 2;

#[derive(Debug, Clone)]
enum Op {
    /// This object of this namespace has another version, or is gone.
    Publish(usize, usize, bool),
    /// This member reads so many messages.
    Read(usize, usize),
    /// This member comes back, and says that it forgot everything or not.
    Connect(usize, bool),
    /// A namespace came to this member, or went.
    Turn(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let member = 0..MEMBERS;
    prop_oneof![
        5 => (0..2_usize, 0..3_usize, prop::bool::weighted(0.2)).prop_map(|(n, o, gone)| Op::Publish(n, o, gone)),
        5 => (member.clone(), 1..6_usize).prop_map(|(member, messages)| Op::Read(member, messages)),
        1 => (member.clone(), prop::bool::weighted(0.3)).prop_map(|(member, forgot)| Op::Connect(member, forgot)),
        1 => (member, 0..2_usize).prop_map(|(member, namespace)| Op::Turn(member, namespace)),
    ]
}

/// A member that takes every message, and never asks.
struct Holder {
    push: Push,
    held: BTreeMap<DesiredKey, DesiredItem>,
    staged: Option<BTreeMap<DesiredKey, DesiredItem>>,
    cursor: Option<Cursor>,
    namespaces: BTreeSet<Box<str>>,
    /// The namespaces that were not completely sent yet.
    untold: BTreeSet<Box<str>>,
    generation: u64,
    restored: usize,
}

impl Holder {
    fn new() -> Self {
        let namespaces = NAMESPACES.map(Box::from);
        Self {
            push: Push::snapshot(member(), interest(1, &NAMESPACES)),
            held: BTreeMap::new(),
            staged: None,
            cursor: None,
            namespaces: namespaces.into(),
            untold: BTreeSet::new(),
            generation: 1,
            restored: 0,
        }
        .connected(None)
    }

    fn connected(mut self, cursor: Option<Cursor>) -> Self {
        self.generation += 1;
        let names: Vec<&str> = self.namespaces.iter().map(|name| &**name).collect();
        let interest = interest(self.generation, &names);
        let push = match cursor {
            Some(cursor) => Push::resume(member(), interest, cursor),
            None => Push::snapshot(member(), interest),
        };
        self.staged = None;
        Self {
            push: push.in_chunks_of(500).with_differences(true),
            ..self
        }
    }

    fn connect(self, forgot: bool, view: &View) -> Self {
        let resumes = |cursor: &Cursor| cursor.revision >= view.tombstone_floor();
        let cursor = self.cursor.filter(|_| self.untold.is_empty() && !forgot);
        self.connected(cursor.filter(resumes))
    }

    fn turn(&mut self, namespace: &str) {
        self.generation += 1;
        let names = BTreeSet::from([Box::from(namespace)]);
        if self.namespaces.remove(namespace) {
            self.untold.remove(namespace);
            let stays = |key: &DesiredKey| namespace_of(key) != namespace;
            self.held.retain(|key, _| stays(key));
            self.staged
                .iter_mut()
                .for_each(|staged| staged.retain(|key, _| stays(key)));
            self.push
                .change_interest(self.generation, BTreeSet::new(), &names);
        } else {
            self.namespaces.extend(names.iter().cloned());
            self.untold.extend(names.iter().cloned());
            self.push
                .change_interest(self.generation, names, &BTreeSet::new());
        }
    }

    /// False when there was nothing to read.
    fn read(&mut self, view: &View) -> Result<bool, TestCaseError> {
        let Some(message) = self.push.next(view) else {
            return Ok(false);
        };
        match message {
            HubMessage::SnapshotBegin { .. } => self.staged = Some(BTreeMap::new()),
            HubMessage::SnapshotComplete(up_to) => {
                self.held = self.staged.take().unwrap_or_default();
                self.cursor = Some(up_to.cursor);
            }
            HubMessage::UpTo(up_to) => self.cursor = Some(up_to.cursor),
            HubMessage::NamespaceComplete { namespaces, .. } => {
                self.untold.retain(|name| !namespaces.contains(name));
            }
            HubMessage::Desired { items, .. } => {
                for item in items {
                    self.take(wire::decode_told(item).expect("an item"))?;
                }
            }
            other => unreachable!("push never says {other:?}"),
        }
        Ok(true)
    }

    fn take(&mut self, told: Told) -> Result<(), TestCaseError> {
        let key = told.key();
        prop_assert!(self.namespaces.contains(namespace_of(&key)));
        let item = match told {
            Told::Whole(item) => item,
            Told::Difference(difference) => {
                prop_assert!(self.staged.is_none());
                match restore(self.held.get(&key), &difference) {
                    Ok(Restored::Object(item)) => {
                        self.restored += 1;
                        item
                    }
                    Ok(Restored::Held) => return Ok(()),
                    other => return Err(TestCaseError::fail(format!("{key:?}: {other:?}"))),
                }
            }
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        let held = self.staged.as_mut().unwrap_or(&mut self.held);
        match item.change {
            DesiredChange::Removed(_) => drop(held.remove(&key)),
            _ => drop(held.insert(key, item)),
        }
        Ok(())
    }
}

fn namespace_of(key: &DesiredKey) -> &str {
    match key {
        DesiredKey::Import(service) | DesiredKey::ExportStatus(service) => &service.namespace,
        DesiredKey::Slice(slice) => &slice.service.namespace,
    }
}

/// An object at `revision`, under the key of an export of this member.
fn object(namespace: &str, name: &str, revision: u64, removed: bool) -> Publication {
    let service = ServiceKey::new(namespace, name).expect("valid");
    let key = DerivedKey::Import(service.clone());
    let change = if removed {
        // It has the key of an import, and the content of a status.
        DesiredChange::Removed(DesiredKey::ExportStatus(service))
    } else {
        content(&key, &format!("{revision} {}", "as it ever was ".repeat(20)))
    };
    let entry = entry(revision, change);
    Publication { key, entry }
}

fn should_hold(view: &View, namespaces: &BTreeSet<Box<str>>) -> BTreeMap<DesiredKey, DesiredItem> {
    let rooms = namespaces.iter().cloned().map(Room::Namespace);
    let mut all = BTreeMap::new();
    for room in rooms {
        for (_, entry) in view.objects(&room, None) {
            let item = wire::decode_desired(entry.item.bytes()).expect("an item");
            all.insert(item.change.key(), item);
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_difference_leads_from_what_the_member_holds(ops in vec(op(), 1..80)) {
        let mut view = View::new(cursor(0), Revision(0));
        let mut members: Vec<Holder> = (0..MEMBERS).map(|_| Holder::new()).collect();
        let mut revision = 0;
        for op in ops {
            match op {
                Op::Publish(namespace, name, removed) => {
                    revision += 1;
                    let change = object(NAMESPACES[namespace], ["a", "b", "c"][name], revision, removed);
                    view.publish(cursor(revision), vec![change], TOMBSTONES);
                }
                Op::Read(member, messages) => {
                    for _ in 0..messages {
                        members[member].read(&view)?;
                    }
                }
                Op::Connect(member, forgot) => {
                    let holder = members.swap_remove(member);
                    members.push(holder.connect(forgot, &view));
                    members.swap(member, MEMBERS - 1);
                }
                Op::Turn(member, namespace) => members[member].turn(NAMESPACES[namespace]),
            }
        }
        for member in &mut members {
            for _ in 0..1_000 {
                if !member.read(&view)? {
                    break;
                }
            }
            prop_assert_eq!(&member.held, &should_hold(&view, &member.namespaces));
        }
    }
}

/// The property above would be worth nothing if no differences were sent in it.
#[test]
fn members_that_read_all_the_time_are_sent_differences() {
    let mut view = View::new(cursor(0), Revision(0));
    let mut holder = Holder::new();
    for revision in 1..=10 {
        view.publish(
            cursor(revision),
            vec![object("shop", "a", revision, false)],
            TOMBSTONES,
        );
        while holder.read(&view).expect("it is restored") {}
    }
    assert_eq!(holder.restored, 9);
    assert_eq!(holder.held, should_hold(&view, &holder.namespaces));
}

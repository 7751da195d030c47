//! One member's way through the view: a snapshot, namespaces that were added, then what changes.
//! Pure but for looking at the view it is given: it holds positions, never content, so a slow reader costs
//! memory in keys and gets the latest state. It never decides what a member should hold.
//!
//! A member receives the difference to what it certainly holds. It compares what it holds with what that leads from,
//! and asks for the whole if it must: what is certain here decides what is sent, never what comes of it.

mod takes;

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use model::{
    ClusterId, Cursor, Revision,
    sync::{CHUNK_BYTES, DesiredKey, HubMessage, ITEMS_WANTED_MAX, Interest, Namespaces, UpTo},
};

use self::takes::Takes;
use crate::view::{ChangePosition, Room, View};
use fold::DerivedKey;

/// Most changes of others, and most objects that the member does not take, that are passed over in one call, so that no
/// call is long.
const SCAN_MAX: usize = 20_000;
/// A member that asked for more objects whole in one session gets all of them whole until its next: it and the hub do not
/// encode alike, and every difference costs one more way there and back.
pub const WANTED_PATIENCE: usize = 64;

/// The position of a member.
#[derive(Debug)]
pub struct Push {
    member: ClusterId,
    interest: Interest,
    /// Bytes of items after which a message is full.
    chunk_bytes: usize,
    stage: Stage,
    /// Namespaces that were added to the interest and not sent yet.
    added: VecDeque<(Box<str>, Option<DerivedKey>)>,
    position: ChangePosition,
    /// The head that was last told to the member.
    told: Option<Cursor>,
    /// True when something for this member was sent since `told`.
    unsettled: bool,
    /// Time at which the oldest change sent since `told` was recorded, in monotonic milliseconds, if known. A snapshot
    /// does not count.
    oldest_sent: Option<u64>,
    told_changes: Option<ToldChanges>,
    /// The member's import filter, from the clusterset's policy.
    takes: Takes,
    /// The member understands differences, and could make objects of them.
    differences: bool,
    /// For everything within its interest the member has received the version at this revision, and nothing before it
    /// is missing: `None` while a snapshot or an added namespace is under way.
    caught_up: Option<Revision>,
    /// Objects that it requested whole and that were not sent yet; at most [`ITEMS_WANTED_MAX`].
    wanted: BTreeSet<DerivedKey>,
    /// Number of requests.
    asked: usize,
    differences_sent: u64,
}

/// A position that was told after changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToldChanges {
    /// Up to where.
    pub revision: Revision,
    /// Time at which the oldest of them was recorded, in monotonic milliseconds.
    pub recorded_at: u64,
}

#[derive(Debug)]
enum Stage {
    /// A snapshot is to begin.
    Begin,
    /// It is under way: where and under which interest it began, the rooms still to send, and the last key sent
    /// of the first of them.
    Snapshot {
        at: Cursor,
        generation: u64,
        rooms: Rooms,
        last: Option<DerivedKey>,
    },
    /// The snapshot is complete; changes follow.
    Changes,
}

#[derive(Debug)]
enum Rooms {
    Listed(VecDeque<Room>),
    /// All there are, after this one.
    All {
        last: Option<Room>,
        current: Option<Room>,
    },
}

impl Push {
    /// A member that needs everything.
    pub fn snapshot(member: ClusterId, interest: Interest) -> Self {
        let position = ChangePosition::Revision(Default::default());
        Self {
            member,
            interest,
            chunk_bytes: CHUNK_BYTES,
            stage: Stage::Begin,
            added: VecDeque::new(),
            position,
            told: None,
            unsettled: true,
            oldest_sent: None,
            told_changes: None,
            takes: Takes::default(),
            differences: false,
            caught_up: None,
            wanted: BTreeSet::new(),
            asked: 0,
            differences_sent: 0,
        }
    }

    /// A member that holds everything up to `cursor`.
    pub fn resume(member: ClusterId, interest: Interest, cursor: Cursor) -> Self {
        let position = ChangePosition::Revision(cursor.revision);
        Self {
            stage: Stage::Changes,
            position,
            told: Some(cursor),
            unsettled: false,
            caught_up: Some(cursor.revision),
            takes: Takes::held_at(cursor.revision),
            ..Self::snapshot(member, interest)
        }
    }

    /// The same with messages that are full after so many bytes of items, instead of [`CHUNK_BYTES`]. A message has
    /// one item at least.
    pub fn in_chunks_of(self, bytes: usize) -> Self {
        Self {
            chunk_bytes: bytes,
            ..self
        }
    }

    /// The same to a member that takes differences.
    pub fn with_differences(self, differences: bool) -> Self {
        Self { differences, ..self }
    }

    /// The member could make no objects of what it was sent of these, and wants them whole. Objects that it may not see
    /// are skipped, and so is everything that a snapshot brings anyway. If more wait than may, one does.
    pub fn want(&mut self, keys: BTreeSet<DesiredKey>) {
        self.asked = self.asked.saturating_add(keys.len());
        self.differences &= self.asked <= WANTED_PATIENCE;
        if !matches!(self.stage, Stage::Changes) {
            return;
        }
        let keys = keys.into_iter().map(|key| match key {
            DesiredKey::Import(service) => DerivedKey::Import(service),
            DesiredKey::Slice(slice) => DerivedKey::Slice(slice),
            DesiredKey::ExportStatus(service) => DerivedKey::ExportStatus(self.member.clone(), service),
        });
        let keys: Vec<DerivedKey> = keys.filter(|key| self.concerns(key)).collect();
        self.wanted.extend(keys);
        if self.wanted.len() > ITEMS_WANTED_MAX {
            self.wanted.clear();
            self.stage = Stage::Begin;
        }
    }

    /// Number of differences sent.
    pub fn differences_sent(&self) -> u64 {
        self.differences_sent
    }

    /// Takes a change of interest. One that is not newer than the present one is passed over.
    pub fn change_interest(
        &mut self,
        generation: u64,
        added: BTreeSet<Box<str>>,
        removed: &BTreeSet<Box<str>>,
    ) {
        if generation <= self.interest.generation {
            return;
        }
        self.interest.generation = generation;
        let Namespaces::Only(names) = &mut self.interest.namespaces else {
            // A member interested in everything has every namespace already: nothing waits to be sent.
            return;
        };
        names.retain(|name| !removed.contains(name));
        names.extend(added.iter().cloned());
        self.added
            .retain(|(name, _)| !removed.contains(name) && !added.contains(name));
        if !added.is_empty() {
            self.caught_up = None;
        }
        self.added.extend(added.into_iter().map(|name| (name, None)));
    }

    /// The generation of the member's interest.
    pub fn interest_generation(&self) -> u64 {
        self.interest.generation
    }

    /// The namespaces that the member is interested in.
    pub fn namespaces(&self) -> &Namespaces {
        &self.interest.namespaces
    }

    /// Number of namespaces in the member's interest; `None`: all.
    pub fn interest_size(&self) -> Option<usize> {
        match &self.interest.namespaces {
            Namespaces::All => None,
            Namespaces::Only(names) => Some(names.len()),
        }
    }

    /// The next message for this member, or `None` when it has everything.
    pub fn next(&mut self, view: &View) -> Option<HubMessage> {
        let other_imports = self.takes.follow(&self.member, view);
        if other_imports || self.may_have_missed_a_removal(view) {
            self.stage = Stage::Begin;
        }
        match self.stage {
            Stage::Begin => Some(self.begin(view)),
            Stage::Snapshot { .. } => Some(self.continue_snapshot(view)),
            Stage::Changes => self.next_wanted(view).or_else(|| {
                if self.added.is_empty() {
                    self.next_changes(view)
                } else {
                    Some(self.next_added(view))
                }
            }),
        }
    }

    /// Everything up to this revision has been sent; `None` while a snapshot is under way, or the member waits for what
    /// it could not restore.
    pub fn settled(&self) -> Option<Revision> {
        match &self.stage {
            Stage::Changes if self.wanted.is_empty() => Some(self.position.whole()),
            Stage::Changes | Stage::Begin | Stage::Snapshot { .. } => None,
        }
    }

    /// Tombstones of what this member holds may be gone from the view: it was slow, or one revision removed more than
    /// are kept. Objects of a snapshot under way count too, in the version that was sent. A new snapshot shows by what
    /// it leaves out what was removed.
    fn may_have_missed_a_removal(&self, view: &View) -> bool {
        // Rules of another version put the floor above the head until their first event is durable.
        let floor = view.tombstone_floor().min(view.head().revision);
        !matches!(self.stage, Stage::Begin) && self.position.whole() < floor
    }

    /// The cursor to confirm with a heartbeat, when everything has been sent and the head moved on.
    pub fn idle_up_to(&mut self, view: &View) -> Option<UpTo> {
        let nothing_waits = self.added.is_empty() && self.wanted.is_empty();
        let caught_up = matches!(self.stage, Stage::Changes) && nothing_waits;
        let all_seen = self.position == ChangePosition::Revision(view.head().revision);
        (caught_up && all_seen && self.told != Some(view.head())).then(|| self.tell(view.head()))
    }

    /// The last position that the member was told, or came with.
    pub fn told(&self) -> Option<Cursor> {
        self.told
    }

    /// The position that was told after changes by the last message, once.
    pub fn take_told_changes(&mut self) -> Option<ToldChanges> {
        self.told_changes.take()
    }

    fn tell(&mut self, cursor: Cursor) -> UpTo {
        self.told = Some(cursor);
        self.unsettled = false;
        let told = |recorded_at| ToldChanges {
            revision: cursor.revision,
            recorded_at,
        };
        self.told_changes = self.oldest_sent.take().map(told);
        UpTo {
            interest_generation: self.interest.generation,
            cursor,
        }
    }

    fn begin(&mut self, view: &View) -> HubMessage {
        let mut rooms = VecDeque::from([Room::Member(self.member.clone())]);
        let rooms = match &self.interest.namespaces {
            Namespaces::All => Rooms::All {
                last: None,
                current: rooms.pop_front(),
            },
            Namespaces::Only(names) => {
                rooms.extend(names.iter().cloned().map(Room::Namespace));
                Rooms::Listed(rooms)
            }
        };
        self.added.clear();
        self.wanted.clear();
        self.caught_up = None;
        self.oldest_sent = None;
        let at = view.head();
        self.position = ChangePosition::Revision(at.revision);
        let generation = self.interest.generation;
        self.stage = Stage::Snapshot {
            at,
            generation,
            rooms,
            last: None,
        };
        HubMessage::SnapshotBegin {
            epoch: at.epoch,
            interest_generation: self.interest.generation,
        }
    }

    /// Everything is sent under the interest that the snapshot began with: a namespace that was added since is
    /// not part of it, and saying so would make the member believe that there is nothing in it.
    fn continue_snapshot(&mut self, view: &View) -> HubMessage {
        let Stage::Snapshot {
            at,
            generation,
            rooms,
            last,
        } = &mut self.stage
        else {
            unreachable!("called for a snapshot")
        };
        let (at, generation) = (*at, *generation);
        let takes = &self.takes;
        let mut chunk = Chunk::of(self.chunk_bytes);
        while let Some(current) = rooms.current(view) {
            if !covers(&self.interest, &current) {
                rooms.advance();
                continue;
            }
            if chunk.fill(view, &current, last, takes) {
                rooms.advance();
                *last = None;
            } else {
                return chunk.message(generation);
            }
        }
        if !chunk.items.is_empty() {
            return chunk.message(generation);
        }
        self.stage = Stage::Changes;
        let cursor = self.tell(at).cursor;
        HubMessage::SnapshotComplete(UpTo {
            interest_generation: generation,
            cursor,
        })
    }

    /// The next object that the member wants whole, in its current version, or its removal. The position follows once
    /// more, since the member distrusts the one it got before. An object without a trace here was removed: either its
    /// removal was sent, or a snapshot is due.
    fn next_wanted(&mut self, view: &View) -> Option<HubMessage> {
        let mut chunk = Chunk::of(self.chunk_bytes);
        while !chunk.is_full()
            && let Some(key) = self.wanted.pop_first()
        {
            if self.concerns(&key)
                && let Some(entry) = view.entry(&key)
            {
                chunk.push(entry.item.bytes());
            }
        }
        if chunk.items.is_empty() {
            return None;
        }
        self.unsettled = true;
        Some(chunk.message(self.interest.generation))
    }

    fn next_added(&mut self, view: &View) -> HubMessage {
        let mut chunk = Chunk::of(self.chunk_bytes);
        let Some((namespace, last)) = self.added.front_mut() else {
            unreachable!("called for added namespaces")
        };
        let whole = chunk.fill(view, &Room::Namespace(namespace.clone()), last, &self.takes);
        if !whole || !chunk.items.is_empty() {
            // The call that finds nothing after the last object completes the namespace.
            self.unsettled = true;
            return chunk.message(self.interest.generation);
        }
        let (namespace, _) = self.added.pop_front().expect("it is the one just looked at");
        HubMessage::NamespaceComplete {
            interest_generation: self.interest.generation,
            namespaces: BTreeSet::from([namespace]),
        }
    }

    fn next_changes(&mut self, view: &View) -> Option<HubMessage> {
        let mut chunk = Chunk::of(self.chunk_bytes);
        while chunk.items.is_empty() {
            let whole = self.collect_changes(view, &mut chunk);
            if whole {
                break;
            }
        }
        if !chunk.items.is_empty() {
            self.unsettled = true;
            return Some(chunk.message(self.interest.generation));
        }
        self.unsettled.then(|| HubMessage::UpTo(self.tell(view.head())))
    }

    /// Adds changes that concern this member and moves the position; true when the head was reached.
    fn collect_changes(&mut self, view: &View, chunk: &mut Chunk) -> bool {
        let mut last = None;
        let held = self.caught_up.filter(|_| self.differences);
        for (passed, change) in view.changed_after(&self.position).enumerate() {
            if chunk.is_full() || passed >= SCAN_MAX {
                break;
            }
            last = Some(change);
            if self.concerns(&change.1)
                && let Some(entry) = view.entry(&change.1)
            {
                // Its state is what existed when it was last sent everything.
                let difference = held.and_then(|held| entry.item.since(held));
                self.differences_sent += u64::from(difference.is_some());
                chunk.push(difference.unwrap_or_else(|| entry.item.bytes()));
                self.oldest_sent = self.oldest_sent.or_else(|| view.recorded_at(change.0));
            }
        }
        let stopped = last.is_some_and(|last| {
            view.changed_after(&ChangePosition::Change(last.clone()))
                .next()
                .is_some()
        });
        self.position = match last {
            Some(change) if stopped => ChangePosition::Change(change.clone()),
            _ => {
                self.caught_up = Some(view.head().revision);
                ChangePosition::Revision(view.head().revision)
            }
        };
        !stopped
    }

    /// The same as asking [`crate::view::room`], without a copy: every member asks this of every change.
    fn concerns(&self, key: &DerivedKey) -> bool {
        let within = match key {
            DerivedKey::Import(service) => self.interest.namespaces.contains(&service.namespace),
            DerivedKey::Slice(slice) => self.interest.namespaces.contains(&slice.service.namespace),
            DerivedKey::ExportStatus(member, _) => *member == self.member,
            DerivedKey::Profile(_) => false,
        };
        within && self.takes.allow(key)
    }
}

/// Returns true if the interest still covers a room of a snapshot that was begun under an older one.
fn covers(interest: &Interest, room: &Room) -> bool {
    match room {
        Room::Namespace(name) => interest.namespaces.contains(name),
        Room::Member(_) => true,
    }
}

impl Rooms {
    fn current(&mut self, view: &View) -> Option<Room> {
        match self {
            Self::Listed(rooms) => rooms.front().cloned(),
            Self::All { last, current } => {
                if current.is_none() {
                    let namespaces = view.rooms_after(last.as_ref());
                    *current = namespaces
                        .take_while(|room| matches!(room, Room::Namespace(_)))
                        .next()
                        .cloned();
                }
                current.clone()
            }
        }
    }

    fn advance(&mut self) {
        match self {
            Self::Listed(rooms) => {
                rooms.pop_front();
            }
            Self::All { last, current } => {
                // The member's own room comes first and sorts after every namespace in the order of rooms.
                if let Some(Room::Namespace(name)) = current.take() {
                    *last = Some(Room::Namespace(name));
                }
            }
        }
    }
}

/// Items of one message.
struct Chunk {
    items: Vec<Bytes>,
    bytes: usize,
    bytes_max: usize,
    /// Objects that were looked at, in whatever room.
    looked_at: usize,
}

impl Chunk {
    fn of(bytes_max: usize) -> Self {
        Self {
            items: Vec::new(),
            bytes: 0,
            bytes_max: bytes_max.max(1),
            looked_at: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.bytes >= self.bytes_max
    }

    /// Adds the objects of a room after `last` that the member takes; true when none is left. A message of a call that
    /// skipped its maximum can be empty: the next one continues.
    fn fill(&mut self, view: &View, room: &Room, last: &mut Option<DerivedKey>, takes: &Takes) -> bool {
        let start = last.clone();
        for (key, entry) in view.objects(room, start.as_ref()) {
            if self.is_full() || self.looked_at >= SCAN_MAX {
                return false;
            }
            self.looked_at += 1;
            if takes.allow(key) {
                self.push(entry.item.bytes());
            }
            *last = Some(key.clone());
        }
        true
    }

    fn push(&mut self, item: Bytes) {
        self.bytes += item.len();
        self.items.push(item);
    }

    fn message(self, interest_generation: u64) -> HubMessage {
        HubMessage::Desired {
            interest_generation,
            items: self.items,
        }
    }
}

#[cfg(test)]
mod tests;

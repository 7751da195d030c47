//! The bytes of every key in a log's key space. They are frozen: keys stand on disks.
//! All numbers are big-endian, so that keys sort as epochs, revisions and parts do. It never reads a value.
//!
//! The clusterset is not part of a key: each clusterset has a key space of its own (in sled a tree named
//! by [`space_name`]), so that nothing of one can be met while reading another.

use model::{Clusterset, Epoch, Revision};

/// The closed set of what a row can be. The numbers are on disk; a new kind takes a new number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum KeyKind {
    /// Key: nothing more. Value: format version and the clusterset's identity.
    Format = 1,
    /// Key: epoch. Value: the epoch's first hash. The greatest epoch with such a row is the current one.
    Epoch = 2,
    /// Key: epoch, first revision, part. Value: a row of a group of events, see `group.rs`.
    Event = 3,
    /// Key: epoch, revision, first row, part. Value: a row of a group of a snapshot's rows.
    SnapshotRow = 4,
    /// Key: epoch, revision. Value: chain hash, counts and digest. Only with it is a snapshot complete.
    SnapshotMarker = 5,
    /// Key: nothing more. Value: what a segment follows. The first segment of a log has none.
    Segment = 6,
}

const EPOCH_BYTES: usize = 16;
const EVENT_KEY_BYTES: usize = 1 + EPOCH_BYTES + 8 + 2;
const SNAPSHOT_ROW_KEY_BYTES: usize = 1 + EPOCH_BYTES + 8 + 4 + 2;

/// The name of a clusterset's key space within a store that holds several.
pub(super) fn space_name(clusterset: &Clusterset) -> String {
    format!("clusterset:{clusterset}")
}

fn start(kind: KeyKind, epoch: Epoch) -> Vec<u8> {
    let mut key = Vec::with_capacity(SNAPSHOT_ROW_KEY_BYTES);
    key.push(kind as u8);
    key.extend_from_slice(&epoch.to_bytes());
    key
}

/// The key of the row that says what this store is.
pub(super) fn format() -> Vec<u8> {
    vec![KeyKind::Format as u8]
}

/// The key of the row that says what a segment follows.
pub(super) fn segment() -> Vec<u8> {
    vec![KeyKind::Segment as u8]
}

/// The key of an epoch's row.
pub(super) fn epoch(epoch: Epoch) -> Vec<u8> {
    start(KeyKind::Epoch, epoch)
}

/// The key of a row of a group of events, by the first one's revision.
pub(super) fn event(epoch: Epoch, revision: Revision, part: u16) -> Vec<u8> {
    let mut key = start(KeyKind::Event, epoch);
    key.extend_from_slice(&revision.0.to_be_bytes());
    key.extend_from_slice(&part.to_be_bytes());
    key
}

/// The key of a row of a group of a snapshot's rows, by the first one's number.
pub(super) fn snapshot_row(epoch: Epoch, revision: Revision, row: u32, part: u16) -> Vec<u8> {
    let mut key = start(KeyKind::SnapshotRow, epoch);
    key.extend_from_slice(&revision.0.to_be_bytes());
    key.extend_from_slice(&row.to_be_bytes());
    key.extend_from_slice(&part.to_be_bytes());
    key
}

/// The key that makes a snapshot complete.
pub(super) fn snapshot_marker(epoch: Epoch, revision: Revision) -> Vec<u8> {
    let mut key = start(KeyKind::SnapshotMarker, epoch);
    key.extend_from_slice(&revision.0.to_be_bytes());
    key
}

/// The kind of events or snapshots that a key, or the bound of a range, is of; they are spread over segments.
pub(super) fn spread_kind(key: &[u8]) -> Option<KeyKind> {
    [KeyKind::Event, KeyKind::SnapshotRow, KeyKind::SnapshotMarker]
        .into_iter()
        .find(|&kind| key.first() == Some(&(kind as u8)))
}

/// First key of a kind, and the first key behind all of that kind.
pub(super) fn kind_range(kind: KeyKind) -> (Vec<u8>, Vec<u8>) {
    (vec![kind as u8], vec![kind as u8 + 1])
}

/// First key of a kind within an epoch, and the first key behind all of them.
pub(super) fn epoch_range(kind: KeyKind, epoch: Epoch) -> (Vec<u8>, Vec<u8>) {
    let from = start(kind, epoch);
    let to = behind(&from);
    (from, to)
}

/// The least key that is greater than every key that starts with `prefix`.
pub(super) fn behind(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if last < u8::MAX {
            key.push(last + 1);
            return key;
        }
    }
    unreachable!("every key starts with a kind, and no kind is 255")
}

/// The first key of a kind that a segment can hold which follows this position: its first event is the next one, its
/// first snapshot is of the position itself.
pub(super) fn segment_start(kind: KeyKind, epoch: Epoch, revision: Revision) -> Vec<u8> {
    let mut key = start(kind, epoch);
    let first = match kind {
        KeyKind::Event => revision.next(),
        _ => revision,
    };
    key.extend_from_slice(&first.0.to_be_bytes());
    key
}

/// Reads the key of a row of events.
pub(super) fn parse_event(key: &[u8]) -> Option<(Epoch, Revision, u16)> {
    let key: &[u8; EVENT_KEY_BYTES] = key.try_into().ok()?;
    let (epoch, rest) = parse_start(KeyKind::Event, key)?;
    let (revision, part) = rest.split_at(8);
    Some((
        epoch,
        Revision(u64::from_be_bytes(revision.try_into().ok()?)),
        u16::from_be_bytes(part.try_into().ok()?),
    ))
}

/// Reads the key of a row of snapshot rows.
pub(super) fn parse_snapshot_row(key: &[u8]) -> Option<(Epoch, Revision, u32, u16)> {
    let key: &[u8; SNAPSHOT_ROW_KEY_BYTES] = key.try_into().ok()?;
    let (epoch, rest) = parse_start(KeyKind::SnapshotRow, key)?;
    Some((
        epoch,
        Revision(u64::from_be_bytes(rest[..8].try_into().ok()?)),
        u32::from_be_bytes(rest[8..12].try_into().ok()?),
        u16::from_be_bytes(rest[12..].try_into().ok()?),
    ))
}

/// Reads the key of a snapshot's marker.
pub(super) fn parse_snapshot_marker(key: &[u8]) -> Option<(Epoch, Revision)> {
    let (epoch, rest) = parse_start(KeyKind::SnapshotMarker, key)?;
    Some((epoch, Revision(u64::from_be_bytes(rest.try_into().ok()?))))
}

/// Reads the key of an epoch's row.
pub(super) fn parse_epoch(key: &[u8]) -> Option<Epoch> {
    let (epoch, rest) = parse_start(KeyKind::Epoch, key)?;
    rest.is_empty().then_some(epoch)
}

fn parse_start(kind: KeyKind, key: &[u8]) -> Option<(Epoch, &[u8])> {
    let (&first, rest) = key.split_first()?;
    let (epoch, rest) = rest.split_at_checked(EPOCH_BYTES)?;
    (first == kind as u8).then_some((Epoch::from_bytes(epoch.try_into().ok()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::UnixMillis;

    const EPOCH: Epoch = Epoch {
        created_at: UnixMillis(0x0102_0304_0506_0708),
        random: 0x1112_1314_1516_1718,
    };

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn key_bytes_are_frozen() {
        let epoch_hex = "01020304050607081112131415161718";
        assert_eq!(hex(&format()), "01");
        assert_eq!(hex(&segment()), "06");
        assert_eq!(hex(&epoch(EPOCH)), std::format!("02{epoch_hex}"));
        assert_eq!(
            hex(&event(EPOCH, Revision(0x2122), 0x3132)),
            std::format!("03{epoch_hex}00000000000021223132")
        );
        assert_eq!(
            hex(&snapshot_row(EPOCH, Revision(0x2122), 0x4142, 0x3132)),
            std::format!("04{epoch_hex}0000000000002122000041423132")
        );
        assert_eq!(
            hex(&snapshot_marker(EPOCH, Revision(0x2122))),
            std::format!("05{epoch_hex}0000000000002122")
        );
        let clusterset = Clusterset::new("example.org", "default").unwrap();
        assert_eq!(space_name(&clusterset), "clusterset:example.org/default");
    }

    #[test]
    fn keys_read_back_and_refuse_another_kind() {
        let revision = Revision(9);
        assert_eq!(
            parse_event(&event(EPOCH, revision, 3)),
            Some((EPOCH, revision, 3))
        );
        let row = snapshot_row(EPOCH, revision, 7, 3);
        assert_eq!(parse_snapshot_row(&row), Some((EPOCH, revision, 7, 3)));
        let marker = snapshot_marker(EPOCH, revision);
        assert_eq!(parse_snapshot_marker(&marker), Some((EPOCH, revision)));
        assert_eq!(parse_epoch(&epoch(EPOCH)), Some(EPOCH));
        assert_eq!(parse_event(&marker), None);
        assert_eq!(parse_epoch(&marker), None);
        assert_eq!(parse_snapshot_row(&marker), None);
    }

    #[test]
    fn keys_sort_as_positions_do() {
        let later = EPOCH.next(UnixMillis(0), 0);
        let keys = [
            event(EPOCH, Revision(1), 0),
            event(EPOCH, Revision(1), 1),
            event(EPOCH, Revision(256), 0),
            event(later, Revision(1), 0),
        ];
        assert!(keys.is_sorted());
        let (from, to) = epoch_range(KeyKind::Event, EPOCH);
        assert!(from < keys[0] && keys[2] < to && to <= keys[3]);
        assert_eq!(behind(&[3, 255, 255]), [4]);
    }
}

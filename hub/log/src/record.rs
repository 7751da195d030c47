//! The hash chain, and the bytes of every value but events and snapshot rows (`group.rs` has those).
//! They are frozen: values stand on disks. It knows no key and no store, and never skips what it cannot read.

use model::{ChainHash, Clusterset, Cursor, Epoch, Revision, UnixMillis};

/// The version that every value starts with that is written now. A hub refuses values of a version it does not know.
///
/// * 1: one store for the whole log.
/// * 2: segments, each in a store of its own. Values that were there before mean the same.
pub const FORMAT_VERSION: u8 = 2;
/// The oldest version that is still read.
const FORMAT_VERSION_OLDEST: u8 = 1;
/// No value is larger. Larger values cost sled blob files that it frees late or never.
pub const ROW_BYTES_MAX: usize = 16 * 1024;
/// The largest payload of one event that is read, and of one row of a snapshot.
pub const PAYLOAD_BYTES_MAX: usize = 4 * 1024 * 1024;

const MARKER_BYTES: usize = 1 + 16 + 4 + 8 + 32;
const SEGMENT_BYTES: usize = 1 + 16 + 8 + 16 + 8 + 16;

/// The actual kind of a value's bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidRow {
    #[error("it is {0} bytes long, which no row of this kind is")]
    Length(usize),
    #[error(
        "its format version is {0}, and this program knows only versions {FORMAT_VERSION_OLDEST} to {FORMAT_VERSION} (a newer tributary-hub wrote it?)"
    )]
    Version(u8),
    #[error("its part number {0} of {1} is impossible")]
    Part(u16, u16),
    #[error("it cannot hold {0} payloads in {1} rows")]
    Items(u16, u16),
    #[error("its hash belongs to another epoch or clusterset, or its bytes have changed")]
    Epoch,
}

/// The hash before the first event of an epoch: it binds a chain to its clusterset and epoch.
pub fn chain_start(clusterset: &Clusterset, epoch: Epoch) -> ChainHash {
    ChainHash::start(clusterset, epoch)
}

/// The hash at an event, from the hash before it and the event's payload as stored.
pub fn chain(previous: ChainHash, payload: &[u8]) -> ChainHash {
    previous.after(payload)
}

pub(super) fn check_version(row: &[u8]) -> Result<(), InvalidRow> {
    match row.first() {
        Some(FORMAT_VERSION_OLDEST..=FORMAT_VERSION) => Ok(()),
        Some(&version) => Err(InvalidRow::Version(version)),
        None => Err(InvalidRow::Length(0)),
    }
}

/// The row that makes a snapshot complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    /// The chain hash at the snapshot's revision.
    pub(super) hash: ChainHash,
    /// Number of rows of the snapshot, each counted once, however many parts it has.
    pub(super) rows: u32,
    /// Their bytes, headers not counted.
    pub(super) bytes: u64,
    /// blake3 over the length and bytes of every row, see [`digest_row`].
    pub(super) digest: [u8; 32],
}

impl Marker {
    /// The marker's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(MARKER_BYTES);
        row.push(FORMAT_VERSION);
        row.extend_from_slice(&self.hash.0);
        row.extend_from_slice(&self.rows.to_be_bytes());
        row.extend_from_slice(&self.bytes.to_be_bytes());
        row.extend_from_slice(&self.digest);
        row
    }

    /// Reads a marker.
    pub(super) fn decode(row: &[u8]) -> Result<Self, InvalidRow> {
        check_version(row)?;
        let row: &[u8; MARKER_BYTES] = row.try_into().map_err(|_| InvalidRow::Length(row.len()))?;
        let mut marker = Marker {
            hash: ChainHash::default(),
            rows: u32::from_be_bytes([row[17], row[18], row[19], row[20]]),
            bytes: row[21..29].iter().fold(0, |n, &b| (n << 8) | u64::from(b)),
            digest: [0; 32],
        };
        marker.hash.0.copy_from_slice(&row[1..17]);
        marker.digest.copy_from_slice(&row[29..]);
        Ok(marker)
    }
}

/// Adds a snapshot's row to the snapshot's digest.
pub(super) fn digest_row(hasher: &mut blake3::Hasher, row: &[u8]) {
    hasher.update(&(row.len() as u32).to_be_bytes());
    hasher.update(row);
}

/// The row that says which clusterset this is: version and identity.
pub(super) fn encode_format(clusterset: &Clusterset) -> Vec<u8> {
    let mut row = vec![FORMAT_VERSION];
    row.extend_from_slice(clusterset.to_string().as_bytes());
    row
}

/// Returns true if a format row is of an older version than the one written now.
pub(super) fn is_of_older_format(row: &[u8]) -> bool {
    row.first().is_some_and(|&version| version < FORMAT_VERSION)
}

/// The clusterset's identity as the format row states it.
pub(super) fn decode_format(row: &[u8]) -> Result<String, InvalidRow> {
    check_version(row)?;
    String::from_utf8(row[1..].to_vec()).map_err(|_| InvalidRow::Length(row.len()))
}

/// The row of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EpochRow {
    /// The chain's start, which binds the row to clusterset and epoch. Stored hashed together with the flag.
    pub(super) start: ChainHash,
    /// True if the epoch took over a state: then it has a base snapshot at revision 0.
    pub(super) has_base: bool,
}

impl EpochRow {
    /// The row's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut row = vec![FORMAT_VERSION, u8::from(self.has_base)];
        row.extend_from_slice(&chain(self.start, &row[1..]).0);
        row
    }

    /// Reads the row of the epoch whose chain starts with `start`.
    pub(super) fn decode(row: &[u8], start: ChainHash) -> Result<Self, InvalidRow> {
        check_version(row)?;
        let has_base = row.get(1) == Some(&1);
        let expected = Self { start, has_base };
        // The version is checked, and every version means the same.
        if expected.encode()[1..] == row[1..] {
            Ok(expected)
        } else {
            Err(InvalidRow::Epoch)
        }
    }
}

/// The row that a segment begins with, all but the first one of a log: what it follows, so that it can be read when
/// everything before it is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentRow {
    /// The position its first event follows, with the chain hash there. Stored with a hash that binds it to the
    /// clusterset.
    pub(super) start: Cursor,
    /// Time at which it was begun: no event before it was recorded later.
    pub(super) began_at: UnixMillis,
}

impl SegmentRow {
    /// The row's bytes.
    pub(super) fn encode(&self, clusterset: &Clusterset) -> Vec<u8> {
        let Cursor {
            epoch,
            revision,
            hash,
        } = self.start;
        let mut row = Vec::with_capacity(SEGMENT_BYTES);
        row.push(FORMAT_VERSION);
        row.extend_from_slice(&epoch.to_bytes());
        row.extend_from_slice(&revision.0.to_be_bytes());
        row.extend_from_slice(&hash.0);
        row.extend_from_slice(&self.began_at.0.to_be_bytes());
        row.extend_from_slice(&chain(chain_start(clusterset, epoch), &row[1..]).0);
        row
    }

    /// Reads the row of a segment of this clusterset.
    pub(super) fn decode(row: &[u8], clusterset: &Clusterset) -> Result<Self, InvalidRow> {
        check_version(row)?;
        let row: &[u8; SEGMENT_BYTES] = row.try_into().map_err(|_| InvalidRow::Length(row.len()))?;
        let number = |at: usize| row[at..at + 8].iter().fold(0, |n, &b| (n << 8) | u64::from(b));
        let (mut epoch, mut hash) = ([0; 16], ChainHash::default());
        epoch.copy_from_slice(&row[1..17]);
        hash.0.copy_from_slice(&row[25..41]);
        let read = Self {
            start: Cursor {
                epoch: Epoch::from_bytes(epoch),
                revision: Revision(number(17)),
                hash,
            },
            began_at: UnixMillis(number(41)),
        };
        if read.encode(clusterset)[1..] == row[1..] {
            Ok(read)
        } else {
            Err(InvalidRow::Epoch)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn row_bytes_are_frozen() {
        let marker = Marker {
            hash: ChainHash([0xcd; 16]),
            rows: 0x0102,
            bytes: 0x0304,
            digest: [0xef; 32],
        };
        let expected = format!("{}000001020000000000000304{}", "cd".repeat(16), "ef".repeat(32));
        assert_eq!(hex(&marker.encode()), format!("02{expected}"));
        assert_eq!(Marker::decode(&marker.encode()), Ok(marker));
        assert_eq!(Marker::decode(&of_version_1(marker.encode())), Ok(marker));
        let epoch = EpochRow {
            start: ChainHash([0x12; 16]),
            has_base: true,
        };
        assert_eq!(hex(&epoch.encode()), "02018c9745202e96392b5531060006c1a3ef");
        assert_eq!(EpochRow::decode(&epoch.encode(), epoch.start), Ok(epoch));
        assert_eq!(
            EpochRow::decode(&of_version_1(epoch.encode()), epoch.start),
            Ok(epoch)
        );
        let clusterset = Clusterset::new("a", "b").unwrap();
        assert_eq!(hex(&encode_format(&clusterset)), "02612f62");
        let format = of_version_1(encode_format(&clusterset));
        assert_eq!(decode_format(&format), Ok("a/b".into()));
    }

    /// The same value as a hub of the version before segments wrote it.
    fn of_version_1(mut row: Vec<u8>) -> Vec<u8> {
        assert_eq!(std::mem::replace(&mut row[0], 1), FORMAT_VERSION);
        row
    }

    #[test]
    fn the_bytes_of_a_segments_row_are_frozen_and_bound_to_the_clusterset() {
        let clusterset = Clusterset::new("a", "b").unwrap();
        let row = SegmentRow {
            start: Cursor {
                epoch: Epoch {
                    created_at: UnixMillis(1),
                    random: 2,
                },
                revision: Revision(3),
                hash: ChainHash([0xab; 16]),
            },
            began_at: UnixMillis(4),
        };
        let bytes = row.encode(&clusterset);
        let start = format!("{:016x}{:016x}{:016x}{}", 1, 2, 3, "ab".repeat(16));
        assert_eq!(
            hex(&bytes),
            format!("02{start}{:016x}fc2c5bd654cb25ae1678e8f3e020460e", 4)
        );
        assert_eq!(SegmentRow::decode(&bytes, &clusterset), Ok(row));
        let other = Clusterset::new("a", "c").unwrap();
        assert_eq!(SegmentRow::decode(&bytes, &other), Err(InvalidRow::Epoch));
        assert_eq!(
            SegmentRow::decode(&bytes[1..], &clusterset),
            Err(InvalidRow::Version(0))
        );
    }

    #[test]
    fn the_chain_is_frozen_and_binds_clusterset_epoch_and_every_payload() {
        let clusterset = Clusterset::new("example.org", "default").unwrap();
        let epoch = Epoch {
            created_at: UnixMillis(1),
            random: 2,
        };
        let start = chain_start(&clusterset, epoch);
        assert_eq!(start.to_string(), "3875cc33267879943e945afcfe88690f");
        assert_eq!(
            chain(start, b"one").to_string(),
            "cd9f3217ef430a48fb202f59c11b3fdb"
        );
        let other = Clusterset::new("example.org", "other").unwrap();
        assert_ne!(chain_start(&other, epoch), start);
        assert_ne!(chain_start(&clusterset, epoch.next(UnixMillis(1), 2)), start);
        assert_ne!(chain(start, b"two"), chain(start, b"one"));
    }

    #[test]
    fn a_value_of_another_version_or_length_is_refused() {
        assert_eq!(Marker::decode(&[3; MARKER_BYTES]), Err(InvalidRow::Version(3)));
        assert_eq!(Marker::decode(&[1; 5]), Err(InvalidRow::Length(5)));
        assert_eq!(decode_format(&[]), Err(InvalidRow::Length(0)));
        assert_eq!(
            EpochRow::decode(&[1, 1], ChainHash::default()),
            Err(InvalidRow::Epoch)
        );
    }
}

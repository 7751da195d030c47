//! The bytes of every value: event rows with their header and hash chain, snapshot rows, markers.
//! They are frozen: values stand on disks. It knows no key and no store, and never skips what it cannot read.

use shared::model::{ChainHash, Clusterset, Epoch};

/// The version that every value starts with. A hub refuses values of a version it does not know.
pub const FORMAT_VERSION: u8 = 1;
/// No value is larger. Larger values cost sled blob files that it frees late or never.
pub const ROW_BYTES_MAX: usize = 16 * 1024;
/// The largest payload of one event, and of one row of a snapshot.
pub const PAYLOAD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Header of an event row: version, part, parts, length, chain hash.
const HEADER_BYTES: usize = 1 + 2 + 2 + 4 + 16;
/// Payload bytes that one row takes.
pub(super) const PART_BYTES_MAX: usize = ROW_BYTES_MAX - HEADER_BYTES;
const MARKER_BYTES: usize = 1 + 16 + 4 + 8 + 32;

const _: () = assert!(PAYLOAD_BYTES_MAX.div_ceil(PART_BYTES_MAX) <= u16::MAX as usize);

/// What a value's bytes turned out to be instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidRow {
    #[error("it is {0} bytes long, which no row of this kind is")]
    Length(usize),
    #[error(
        "its format version is {0}, and this program knows only version {FORMAT_VERSION} (a newer tributary-hub wrote it?)"
    )]
    Version(u8),
    #[error("its part number {0} of {1} is impossible")]
    Part(u16, u16),
    #[error("its hash belongs to another epoch or clusterset, or its bytes have changed")]
    Epoch,
}

/// The hash before the first event of an epoch: it binds a chain to its clusterset and epoch.
pub fn chain_start(clusterset: &Clusterset, epoch: Epoch) -> ChainHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(clusterset.to_string().as_bytes());
    hasher.update(&epoch.to_bytes());
    shorten(hasher.finalize())
}

/// The hash at an event, from the hash before it and the event's payload as stored.
pub fn chain(previous: ChainHash, payload: &[u8]) -> ChainHash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&previous.0);
    hasher.update(payload);
    shorten(hasher.finalize())
}

fn shorten(hash: blake3::Hash) -> ChainHash {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.as_bytes()[..16]);
    ChainHash(bytes)
}

/// One row: a part of an event or of a snapshot's row, with the hash that covers the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// Number of this part, from 0.
    pub(super) part: u16,
    /// How many parts there are; all but the last are full.
    pub(super) parts: u16,
    /// Event: the chain hash at it. Snapshot row: the snapshot's chain hash.
    pub(super) hash: ChainHash,
    /// The part's own bytes.
    pub(super) payload: &'a [u8],
}

impl<'a> Part<'a> {
    /// Cuts a payload into parts. An empty payload is one empty part.
    pub(super) fn split(payload: &'a [u8], hash: ChainHash) -> impl Iterator<Item = Part<'a>> {
        assert!(payload.len() <= PAYLOAD_BYTES_MAX, "the caller checked the bound");
        let parts = payload.len().div_ceil(PART_BYTES_MAX).max(1) as u16;
        (0..parts).map(move |part| {
            let from = usize::from(part) * PART_BYTES_MAX;
            let to = payload.len().min(from + PART_BYTES_MAX);
            Part {
                part,
                parts,
                hash,
                payload: &payload[from..to],
            }
        })
    }

    /// The row's bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(HEADER_BYTES + self.payload.len());
        row.push(FORMAT_VERSION);
        row.extend_from_slice(&self.part.to_be_bytes());
        row.extend_from_slice(&self.parts.to_be_bytes());
        row.extend_from_slice(&(self.payload.len() as u32).to_be_bytes());
        row.extend_from_slice(&self.hash.0);
        row.extend_from_slice(self.payload);
        assert!(row.len() <= ROW_BYTES_MAX, "a row is never larger than its bound");
        row
    }

    /// Reads a row's bytes; the hash is for the caller to check, who knows the whole.
    pub(super) fn decode(row: &'a [u8]) -> Result<Part<'a>, InvalidRow> {
        check_version(row)?;
        let (header, payload) = row
            .split_at_checked(HEADER_BYTES)
            .ok_or(InvalidRow::Length(row.len()))?;
        let part = u16::from_be_bytes([header[1], header[2]]);
        let parts = u16::from_be_bytes([header[3], header[4]]);
        let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        if length as usize != payload.len() || payload.len() > PART_BYTES_MAX {
            return Err(InvalidRow::Length(row.len()));
        }
        if part >= parts || (part < parts - 1 && payload.len() != PART_BYTES_MAX) {
            return Err(InvalidRow::Part(part, parts));
        }
        let mut hash = ChainHash::default();
        hash.0.copy_from_slice(&header[9..]);
        Ok(Part {
            part,
            parts,
            hash,
            payload,
        })
    }
}

fn check_version(row: &[u8]) -> Result<(), InvalidRow> {
    match row.first() {
        Some(&FORMAT_VERSION) => Ok(()),
        Some(&version) => Err(InvalidRow::Version(version)),
        None => Err(InvalidRow::Length(0)),
    }
}

/// The row that makes a snapshot complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marker {
    /// The chain hash at the snapshot's revision.
    pub(super) hash: ChainHash,
    /// How many rows the snapshot has, each counted once, however many parts it takes.
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
        match expected.encode() == row {
            true => Ok(expected),
            false => Err(InvalidRow::Epoch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::model::UnixMillis;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    #[test]
    fn row_bytes_are_frozen() {
        let part = Part {
            part: 1,
            parts: 2,
            hash: ChainHash([0xab; 16]),
            payload: b"xyz",
        };
        assert_eq!(
            hex(&part.encode()),
            "010001000200000003abababababababababababababababab78797a"
        );
        let marker = Marker {
            hash: ChainHash([0xcd; 16]),
            rows: 0x0102,
            bytes: 0x0304,
            digest: [0xef; 32],
        };
        let expected = format!("01{}000001020000000000000304{}", "cd".repeat(16), "ef".repeat(32));
        assert_eq!(hex(&marker.encode()), expected);
        assert_eq!(Marker::decode(&marker.encode()), Ok(marker));
        let epoch = EpochRow {
            start: ChainHash([0x12; 16]),
            has_base: true,
        };
        assert_eq!(hex(&epoch.encode()), "01018c9745202e96392b5531060006c1a3ef");
        assert_eq!(EpochRow::decode(&epoch.encode(), epoch.start), Ok(epoch));
        let clusterset = Clusterset::new("a", "b").unwrap();
        assert_eq!(hex(&encode_format(&clusterset)), "01612f62");
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
    fn parts_join_to_the_payload_at_every_boundary() {
        for length in [
            0,
            1,
            PART_BYTES_MAX - 1,
            PART_BYTES_MAX,
            PART_BYTES_MAX + 1,
            PAYLOAD_BYTES_MAX,
        ] {
            let payload: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
            let rows: Vec<_> = Part::split(&payload, ChainHash([7; 16]))
                .map(|p| p.encode())
                .collect();
            assert_eq!(rows.len(), length.div_ceil(PART_BYTES_MAX).max(1));
            assert!(rows.iter().all(|row| row.len() <= ROW_BYTES_MAX));
            let joined: Vec<u8> = rows
                .iter()
                .flat_map(|row| Part::decode(row).unwrap().payload)
                .copied()
                .collect();
            assert_eq!(joined, payload);
        }
    }

    #[test]
    fn what_is_not_a_row_is_refused_with_the_reason() {
        let row = Part::split(b"payload", ChainHash([7; 16]))
            .next()
            .unwrap()
            .encode();
        let changed = |at: usize, to: u8| {
            let mut row = row.clone();
            row[at] = to;
            Part::decode(&row).map(|_| ()).unwrap_err()
        };
        assert_eq!(changed(0, 2), InvalidRow::Version(2));
        assert_eq!(changed(2, 1), InvalidRow::Part(1, 1));
        assert_eq!(changed(4, 0), InvalidRow::Part(0, 0));
        assert_eq!(changed(8, 9), InvalidRow::Length(row.len()));
        assert_eq!(Part::decode(&row[..10]), Err(InvalidRow::Length(10)));
        assert_eq!(Part::decode(&[]), Err(InvalidRow::Length(0)));
        assert_eq!(Marker::decode(&row), Err(InvalidRow::Length(row.len())));
    }
}

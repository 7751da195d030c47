//! Many small payloads in one row, one large payload in many rows: the frozen bytes of both, and their inverse.
//! A store pays per row, so the events of a batch share rows. It knows no key and hashes nothing.

use model::ChainHash;

use super::record::{FORMAT_VERSION, InvalidRow, PAYLOAD_BYTES_MAX, ROW_BYTES_MAX, check_version};

/// Header of a row: version, part, parts, items, length, hash before, hash after.
const HEADER_BYTES: usize = 1 + 2 + 2 + 2 + 4 + 16 + 16;
/// Bytes behind the header.
pub(super) const BODY_BYTES_MAX: usize = ROW_BYTES_MAX - HEADER_BYTES;
/// Precedes each payload within a group's body.
const LENGTH_BYTES: usize = 4;

const _: () = assert!((PAYLOAD_BYTES_MAX + LENGTH_BYTES).div_ceil(BODY_BYTES_MAX) <= u16::MAX as usize);
const _: () = assert!(BODY_BYTES_MAX / LENGTH_BYTES <= u16::MAX as usize);

/// A group as it is written: its rows. One row of several payloads, or several rows of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PackedRow {
    /// Number of the group's first payload.
    pub(super) first: u64,
    /// Number of the row within the group.
    pub(super) part: u16,
    /// The row's bytes.
    pub(super) bytes: Vec<u8>,
}

/// Packs payloads, numbered from `first`, into rows. `before` is the hash before the first of them, and each
/// comes with the hash at it.
pub(super) fn pack<'a>(
    first: u64,
    before: ChainHash,
    payloads: impl IntoIterator<Item = (ChainHash, &'a [u8])>,
) -> Vec<PackedRow> {
    let mut rows = Vec::new();
    let mut open = OpenGroup {
        first,
        items: 0,
        before,
        after: before,
        body: Vec::new(),
    };
    for (after, payload) in payloads {
        assert!(payload.len() <= PAYLOAD_BYTES_MAX, "the caller checked the bound");
        if open.items > 0 && open.body.len() + LENGTH_BYTES + payload.len() > BODY_BYTES_MAX {
            open.close(&mut rows);
        }
        open.body.extend_from_slice(&(payload.len() as u32).to_be_bytes());
        open.body.extend_from_slice(payload);
        open.items += 1;
        open.after = after;
    }
    if open.items > 0 {
        open.close(&mut rows);
    }
    rows
}

struct OpenGroup {
    first: u64,
    items: u16,
    before: ChainHash,
    after: ChainHash,
    body: Vec<u8>,
}

impl OpenGroup {
    fn close(&mut self, rows: &mut Vec<PackedRow>) {
        let parts = self.body.len().div_ceil(BODY_BYTES_MAX) as u16;
        for (part, body) in (0..).zip(self.body.chunks(BODY_BYTES_MAX)) {
            let row = Row {
                part,
                parts,
                items: self.items,
                before: self.before,
                after: self.after,
                body,
            };
            rows.push(PackedRow {
                first: self.first,
                part,
                bytes: row.encode(),
            });
        }
        self.first += u64::from(self.items);
        (self.items, self.before) = (0, self.after);
        self.body.clear();
    }
}

/// One row of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row<'a> {
    /// Number of the row within its group, from 0.
    pub(super) part: u16,
    /// Rows of the group; all but the last are full.
    pub(super) parts: u16,
    /// Payloads of the group; one, if it has more than one row.
    pub(super) items: u16,
    /// The hash before the group's first payload.
    pub(super) before: ChainHash,
    /// The hash at the group's last payload.
    pub(super) after: ChainHash,
    body: &'a [u8],
}

impl<'a> Row<'a> {
    fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(HEADER_BYTES + self.body.len());
        row.push(FORMAT_VERSION);
        row.extend_from_slice(&self.part.to_be_bytes());
        row.extend_from_slice(&self.parts.to_be_bytes());
        row.extend_from_slice(&self.items.to_be_bytes());
        row.extend_from_slice(&(self.body.len() as u32).to_be_bytes());
        row.extend_from_slice(&self.before.0);
        row.extend_from_slice(&self.after.0);
        row.extend_from_slice(self.body);
        assert!(row.len() <= ROW_BYTES_MAX, "a row is never larger than its bound");
        row
    }

    /// Reads a row; what its hashes must be is for the caller to check, who knows the whole.
    pub(super) fn decode(row: &'a [u8]) -> Result<Row<'a>, InvalidRow> {
        check_version(row)?;
        let (header, body) = row
            .split_at_checked(HEADER_BYTES)
            .ok_or(InvalidRow::Length(row.len()))?;
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (part, parts, items) = (number(1), number(3), number(5));
        let length = u32::from_be_bytes([header[7], header[8], header[9], header[10]]);
        if length as usize != body.len() || body.len() > BODY_BYTES_MAX {
            return Err(InvalidRow::Length(row.len()));
        }
        if part >= parts || (part < parts - 1 && body.len() != BODY_BYTES_MAX) {
            return Err(InvalidRow::Part(part, parts));
        }
        if items == 0 || (parts > 1 && items > 1) {
            return Err(InvalidRow::Items(items, parts));
        }
        let hash = |at: usize| {
            let mut hash = ChainHash::default();
            hash.0.copy_from_slice(&header[at..at + 16]);
            hash
        };
        Ok(Row {
            part,
            parts,
            items,
            before: hash(11),
            after: hash(27),
            body,
        })
    }
}

/// A whole group, as it is read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group<'a> {
    /// Number of its first payload.
    pub(super) first: u64,
    /// The hash before that one.
    pub(super) before: ChainHash,
    /// The hash at its last payload.
    pub(super) after: ChainHash,
    body: &'a [u8],
}

impl<'a> Group<'a> {
    /// Its payloads in order.
    pub(super) fn payloads(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let (payload, behind) = split_payload(rest)?;
            rest = behind;
            Some(payload)
        })
    }

    fn is_whole(&self, items: u16) -> bool {
        let bytes: usize = self.payloads().map(|payload| LENGTH_BYTES + payload.len()).sum();
        bytes == self.body.len() && self.payloads().count() == usize::from(items)
    }
}

fn split_payload(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = body.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Joins rows to groups and holds them against what must come next.
pub(super) struct Joiner {
    /// Number of the payload that must come next.
    pub(super) next: u64,
    parts_seen: u16,
    body: Vec<u8>,
    hashes: (ChainHash, ChainHash),
}

impl Joiner {
    /// Expects a group whose first payload has the number `next`.
    pub(super) fn new(next: u64) -> Self {
        Self {
            next,
            parts_seen: 0,
            body: Vec::new(),
            hashes: Default::default(),
        }
    }

    /// True between groups.
    pub(super) fn is_between(&self) -> bool {
        self.parts_seen == 0
    }

    /// Takes the next row, given the place its key names; returns the group that it completes. An error says
    /// what is wrong with payload [`Joiner::next`].
    pub(super) fn push<'a>(
        &'a mut self,
        first: u64,
        part: u16,
        value: &'a [u8],
    ) -> Result<Option<Group<'a>>, String> {
        if (first, part) != (self.next, self.parts_seen) {
            let seen = self.parts_seen;
            return Err(format!(
                "part {seen} of it is missing, part {part} of number {first} follows"
            ));
        }
        let row = Row::decode(value).map_err(|invalid| invalid.to_string())?;
        let hashes = (row.before, row.after);
        if row.part != part || (part > 0 && hashes != self.hashes) {
            return Err("a row's header belongs to another place".into());
        }
        if part == 0 {
            self.body.clear();
            self.hashes = hashes;
        }
        if row.parts > 1 {
            self.body.extend_from_slice(row.body);
        }
        self.parts_seen += 1;
        if self.parts_seen < row.parts {
            return Ok(None);
        }
        self.parts_seen = 0;
        let group = Group {
            first,
            before: row.before,
            after: row.after,
            body: if row.parts > 1 { &self.body } else { row.body },
        };
        if !group.is_whole(row.items) {
            return Err("its lengths do not add up".into());
        }
        self.next = first + u64::from(row.items);
        Ok(Some(group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u8) -> ChainHash {
        ChainHash([number; 16])
    }

    fn joined(rows: &[PackedRow], first: u64) -> Result<Vec<Vec<u8>>, String> {
        let mut joiner = Joiner::new(first);
        let mut payloads = Vec::new();
        for row in rows {
            if let Some(group) = joiner.push(row.first, row.part, &row.bytes)? {
                payloads.extend(group.payloads().map(<[u8]>::to_vec));
            }
        }
        assert!(joiner.is_between() && joiner.next == first + payloads.len() as u64);
        Ok(payloads)
    }

    #[test]
    fn row_bytes_are_frozen() {
        let rows = pack(7, hash(0xaa), [(hash(0xbb), &b"xyz"[..]), (hash(0xcc), &b""[..])]);
        let [row] = &rows[..] else { panic!("{rows:?}") };
        let hex: String = row.bytes.iter().map(|b| format!("{b:02x}")).collect();
        let (before, after) = ("aa".repeat(16), "cc".repeat(16));
        assert_eq!(
            hex,
            format!("020000000100020000000b{before}{after}0000000378797a00000000")
        );
        assert_eq!((row.first, row.part), (7, 0));
        let mut of_version_1 = row.bytes.clone();
        of_version_1[0] = 1;
        let (now, before) = (Row::decode(&row.bytes), Row::decode(&of_version_1));
        assert_eq!(now, before, "what version 1 wrote is read as ever");
    }

    #[test]
    fn small_payloads_share_rows_and_large_ones_have_their_own() {
        let lengths = [
            0,
            400,
            BODY_BYTES_MAX - 4,
            1,
            BODY_BYTES_MAX - 3,
            10,
            20,
            3 * BODY_BYTES_MAX,
            30,
        ];
        let payloads: Vec<Vec<u8>> = lengths
            .iter()
            .map(|&length| (0..length).map(|n| (n % 251) as u8).collect())
            .collect();
        let hashed = payloads
            .iter()
            .zip(1..)
            .map(|(payload, n)| (hash(n), payload.as_slice()));
        let rows = pack(1, hash(0), hashed);
        let places: Vec<_> = rows.iter().map(|row| (row.first, row.part)).collect();
        let large = [(8, 0), (8, 1), (8, 2), (8, 3)];
        assert_eq!(places[..5], [(1, 0), (3, 0), (4, 0), (5, 0), (5, 1)]);
        assert_eq!(places[5..], [&[(6, 0)], &large[..], &[(9, 0)]].concat());
        assert!(rows.iter().all(|row| row.bytes.len() <= ROW_BYTES_MAX));
        assert_eq!(joined(&rows, 1), Ok(payloads));
        for missing in 0..rows.len() - 1 {
            let mut rows = rows.clone();
            rows.remove(missing);
            assert!(joined(&rows, 1).is_err(), "row {missing}");
        }
    }

    #[test]
    fn parts_of_different_payloads_are_not_joined() {
        let of = |after: u8| {
            let payload = vec![after; 2 * BODY_BYTES_MAX];
            pack(1, hash(0), [(hash(after), &payload[..])])
        };
        let (one, other) = (of(1), of(2));
        let mixed = [one[0].clone(), other[1].clone(), one[2].clone()];
        assert!(joined(&one, 1).is_ok() && joined(&mixed, 1).is_err());
    }

    #[test]
    fn the_largest_payload_fits() {
        let payload = vec![7; PAYLOAD_BYTES_MAX];
        let rows = pack(1, hash(0), [(hash(1), &payload[..])]);
        assert_eq!(joined(&rows, 1), Ok(vec![payload]));
    }

    #[test]
    fn what_is_not_a_row_is_refused_with_the_reason() {
        let row = pack(1, hash(0), [(hash(1), &b"payload"[..])]).remove(0).bytes;
        let changed = |at: usize, to: u8| {
            let mut row = row.clone();
            row[at] = to;
            Row::decode(&row).map(|_| ()).unwrap_err()
        };
        assert_eq!(changed(0, 3), InvalidRow::Version(3));
        assert_eq!(changed(2, 1), InvalidRow::Part(1, 1));
        assert_eq!(changed(4, 0), InvalidRow::Part(0, 0));
        assert_eq!(changed(6, 0), InvalidRow::Items(0, 1));
        assert_eq!(changed(10, 9), InvalidRow::Length(row.len()));
        assert_eq!(Row::decode(&row[..10]), Err(InvalidRow::Length(10)));
        let mut items = row.clone();
        items[6] = 2;
        assert!(Joiner::new(1).push(1, 0, &items).is_err());
        let mut length = row.clone();
        length[46] += 1;
        assert!(Joiner::new(1).push(1, 0, &length).is_err());
    }
}

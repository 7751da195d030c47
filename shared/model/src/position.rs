//! Positions in the event log and in time: epochs, revisions, chain hashes, cursors, milliseconds.
//! They are values that are compared and printed; nothing here reads a clock or makes randomness.

use std::fmt;

use super::Clusterset;

/// Milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// Returns the time for people, as RFC 3339 has it with whole seconds; years beyond 9999 have more digits.
    pub fn rfc3339(self) -> String {
        let (days, seconds) = (self.0 / 86_400_000, self.0 / 1_000 % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// The year, month and day so many days after 1 January 1970. It counts years from March, so that a leap day is the last
/// of its year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // From 1 March of the year 0.
    let days = days + 719_468;
    let (era, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (year + era * 400 + next, month, day)
}

/// The last second that a creationTimestamp may state: the end of the year 9999.
pub const CREATED_AT_SECONDS_MAX: i64 = 253_402_300_799;

/// One life of a log. Every new or restored log mints one; a later one is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch {
    /// Time at which it was minted. First, so that epochs are ordered by it.
    pub created_at: UnixMillis,
    /// Tells apart epochs of the same millisecond.
    pub random: u64,
}

impl Epoch {
    /// The least epoch above `self` that could have been minted at `now`.
    pub fn next(self, now: UnixMillis, random: u64) -> Self {
        let created_at = UnixMillis(now.0.max(self.created_at.0 + 1));
        Self { created_at, random }
    }

    /// 16 bytes, big-endian, so that bytes sort as epochs do. Frozen: it is in logs and cursors.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.created_at.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.random.to_be_bytes());
        bytes
    }

    /// The inverse of [`Epoch::to_bytes`].
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let (created_at, random) = bytes.split_at(8);
        let number = |half: &[u8]| half.iter().fold(0u64, |n, &b| (n << 8) | u64::from(b));
        Self {
            created_at: UnixMillis(number(created_at)),
            random: number(random),
        }
    }
}

/// The number of an event within its epoch: gapless from 1. Zero precedes the first event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

impl Revision {
    /// The revision after this one.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The hash chained over all events up to a revision: the first 16 bytes of a blake3 hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ChainHash(pub [u8; 16]);

impl ChainHash {
    /// The hash before the first event of an epoch: it binds a chain to its clusterset and epoch.
    pub fn start(clusterset: &Clusterset, epoch: Epoch) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(clusterset.to_string().as_bytes());
        hasher.update(&epoch.to_bytes());
        Self::shortened(hasher.finalize())
    }

    /// The hash at an event that follows this one, from the event's payload as stored.
    pub fn after(self, payload: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(payload);
        Self::shortened(hasher.finalize())
    }

    fn shortened(hash: blake3::Hash) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.as_bytes()[..16]);
        Self(bytes)
    }
}

/// A place in one particular history: two cursors are equal only if everything before them is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cursor {
    /// The log's life.
    pub epoch: Epoch,
    /// The last event seen.
    pub revision: Revision,
    /// The chain hash at that event.
    pub hash: ChainHash,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            epoch,
            revision,
            hash,
        } = self;
        write!(f, "revision {revision} of epoch {epoch} (hash {hash})")
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.created_at.0, self.random)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for ChainHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::str::FromStr for Epoch {
    type Err = InvalidEpoch;

    /// Reads what `Display` writes: decimal milliseconds, a dash, sixteen hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, InvalidEpoch> {
        let (created_at, random) = text.split_once('-').ok_or(InvalidEpoch)?;
        let created_at = created_at.parse().map_err(|_| InvalidEpoch)?;
        let random = u64::from_str_radix(random, 16).map_err(|_| InvalidEpoch)?;
        Ok(Self {
            created_at: UnixMillis(created_at),
            random,
        })
    }
}

/// The text is not an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an epoch is written as milliseconds, a dash and sixteen hexadecimal digits")]
pub struct InvalidEpoch;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_survives_bytes_and_text_and_both_sort_as_it_does() {
        let early = Epoch {
            created_at: UnixMillis(1),
            random: u64::MAX,
        };
        let late = Epoch {
            created_at: UnixMillis(2),
            random: 0,
        };
        assert!(early < late && early.to_bytes() < late.to_bytes());
        assert_eq!(Epoch::from_bytes(early.to_bytes()), early);
        assert_eq!(early.to_string().parse(), Ok(early));
    }

    #[test]
    fn a_cursor_reads_as_a_place_in_a_history() {
        let cursor = Cursor {
            epoch: Epoch {
                created_at: UnixMillis(1_700_000_000_000),
                random: 7,
            },
            revision: Revision(12),
            hash: ChainHash([0xab; 16]),
        };
        assert_eq!(
            cursor.to_string(),
            "revision 12 of epoch 1700000000000-0000000000000007 (hash abababababababababababababababab)"
        );
    }

    #[test]
    fn times_are_written_as_rfc_3339_has_them() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (951_868_800_000, "2000-03-01T00:00:00Z"),
            (1_795_883_850_819, "2026-11-28T16:37:30Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59Z"),
            (253_402_300_800_000, "10000-01-01T00:00:00Z"),
        ] {
            assert_eq!(UnixMillis(millis).rfc3339(), text, "{millis}");
        }
        // A number from a peer may be any.
        assert!(UnixMillis(u64::MAX).rfc3339().ends_with('Z'));
    }

    #[test]
    fn revisions_have_no_gap() {
        assert_eq!(Revision(0).next(), Revision(1));
        assert_eq!(Revision(7).next(), Revision(8));
    }

    #[test]
    fn the_next_epoch_is_greater_even_when_the_clock_went_back() {
        let epoch = Epoch {
            created_at: UnixMillis(1_000),
            random: 7,
        };
        assert!(epoch.next(UnixMillis(5), 0) > epoch);
        assert!(epoch.next(UnixMillis(5_000), 0) > epoch);
    }
}

//! The name of a segment, and its text, which is frozen.

use std::{fmt, str::FromStr};

use model::{Epoch, Revision};

/// Name of a segment: the position that its first event follows. Names sort as the segments do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SegmentName {
    /// The first one that a log ever had, from the start of its first epoch. A log of format version 1 is one such
    /// segment.
    First,
    /// One that was begun behind an event.
    After(Epoch, Revision),
}

const FIRST: &str = "log";

impl fmt::Display for SegmentName {
    /// Frozen: directories are called so.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str(FIRST),
            Self::After(epoch, revision) => write!(f, "{FIRST}.{epoch}.{revision}"),
        }
    }
}

/// The text is not the name of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NoSegment;

impl FromStr for SegmentName {
    type Err = NoSegment;

    fn from_str(text: &str) -> Result<Self, NoSegment> {
        if text == FIRST {
            return Ok(Self::First);
        }
        let position = text.strip_prefix(FIRST).and_then(|rest| rest.strip_prefix('.'));
        let (epoch, revision) = position.and_then(|rest| rest.split_once('.')).ok_or(NoSegment)?;
        let (epoch, revision) = (epoch.parse().ok(), revision.parse().ok());
        let name = epoch
            .zip(revision)
            .map(|(epoch, revision)| Self::After(epoch, Revision(revision)));
        // One way to write each name: what reads alike is not alike on disk.
        name.filter(|name| name.to_string() == text).ok_or(NoSegment)
    }
}

#[cfg(test)]
mod tests {
    use model::UnixMillis;

    use super::*;

    #[test]
    fn names_are_frozen_and_sort_as_segments_do() {
        let after = |millis, revision| {
            let epoch = Epoch {
                created_at: UnixMillis(millis),
                random: 0x1234,
            };
            SegmentName::After(epoch, Revision(revision))
        };
        assert_eq!(SegmentName::First.to_string(), "log");
        assert_eq!(after(17, 5).to_string(), "log.17-0000000000001234.5");
        let names = [SegmentName::First, after(9, 10), after(17, 5), after(17, 10)];
        assert!(names.is_sorted());
        for name in names {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        for text in [
            "log.lock",
            "log.",
            "log.17-12.5",
            "log.17-0000000000001234.05",
            "removed.log",
        ] {
            assert_eq!(text.parse::<SegmentName>(), Err(NoSegment), "{text}");
        }
    }
}

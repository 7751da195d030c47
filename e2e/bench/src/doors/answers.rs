//! Owns: which frames the hub said over the connections of an attack, counted.
//! Never: understands more of a frame than its kind.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt};

use super::frames::{ACK, GO_AWAY, HEADERS, PING, RST_STREAM, SETTINGS};

/// Bytes of a frame's header.
const HEADER_BYTES: usize = 9;

/// The hub's answers, over all connections of an attack.
#[derive(Debug, Default)]
pub(super) struct Answers {
    acknowledged: AtomicU64,
    answered: AtomicU64,
    reset: AtomicU64,
    ended: AtomicU64,
}

impl Answers {
    /// Reads the hub's next frame; true if it shows that the hub takes part.
    pub(super) async fn count(&self, mut reading: impl AsyncRead + Unpin) -> std::io::Result<bool> {
        let mut header = [0; HEADER_BYTES];
        reading.read_exact(&mut header).await?;
        let length = u64::from(u32::from_be_bytes([0, header[0], header[1], header[2]]));
        tokio::io::copy(&mut reading.take(length), &mut tokio::io::sink()).await?;
        let counter = match (header[3], header[4] & ACK != 0) {
            (SETTINGS | PING, true) => &self.acknowledged,
            (HEADERS, _) => &self.answered,
            (RST_STREAM, _) => &self.reset,
            (GO_AWAY, _) => &self.ended,
            _ => return Ok(false),
        };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }

    /// Calls that were answered, most of them with a refusal, and streams that were refused before that.
    pub(super) fn streams(&self) -> u64 {
        self.answered.load(Ordering::Relaxed) + self.reset.load(Ordering::Relaxed)
    }

    /// Number of answers that show that the hub takes part.
    pub(super) fn all(&self) -> u64 {
        let counters = [&self.acknowledged, &self.answered, &self.reset, &self.ended];
        counters
            .map(|counter| counter.load(Ordering::Relaxed))
            .iter()
            .sum()
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        let counted = [
            (&self.acknowledged, "acknowledged"),
            (&self.answered, "answered"),
            (&self.reset, "streams refused"),
            (&self.ended, "connections ended"),
        ];
        let said = counted.map(|(counter, what)| format!("{} {what}", counter.load(Ordering::Relaxed)));
        said.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::{super::frames::frame, *};

    #[tokio::test]
    async fn frames_are_counted_by_their_kind() {
        let answers = Answers::default();
        let mut said = frame(SETTINGS, 0, 0, &[0; 6]);
        said.extend(frame(SETTINGS, ACK, 0, &[]));
        said.extend(frame(HEADERS, 0, 1, &[1; 300]));
        said.extend(frame(RST_STREAM, 0, 1, &[0; 4]));
        said.extend(frame(GO_AWAY, 0, 0, &[0; 8]));
        let mut reading = &said[..];
        for counts in [false, true, true, true, true] {
            assert_eq!(answers.count(&mut reading).await.expect("a frame"), counts);
        }
        let ended = answers.count(&mut reading).await.expect_err("it ends");
        assert_eq!(ended.kind(), std::io::ErrorKind::UnexpectedEof);
        assert_eq!((answers.all(), answers.streams()), (4, 2));
        assert_eq!(
            answers.words(),
            "1 acknowledged, 1 answered, 1 streams refused, 1 connections ended"
        );
    }
}

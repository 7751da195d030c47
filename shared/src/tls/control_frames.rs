//! Owns: the rate of HTTP/2 control frames of one connection: WINDOW_UPDATE, PRIORITY, PING, SETTINGS, RST_STREAM and
//! kinds that nobody knows. `h2` reads any number of them, and each costs the hub far more than its 13 bytes.
//! Never: looks into a frame.

use std::time::Duration;

use tokio::time::Instant;

/// The first bytes of a client, before any frame (RFC 9113, 3.4).
const PREFACE_BYTES: u64 = 24;
/// Bytes of a frame before its payload.
const HEADER_BYTES: usize = 9;
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const CONTINUATION: u8 = 0x9;
/// Control frames that a client may send at once …
pub(super) const CONTROL_FRAMES_BURST: u64 = 2_000;
/// … and in each second.
pub(super) const CONTROL_FRAMES_PER_SECOND: u64 = 1_000;
/// One more for so many bytes that the client was sent: it says with them what it has read. Clients do so for a quarter of
/// 64 KiB or more.
const BYTES_PER_FRAME: u64 = 256;

/// Counts the control frames that come over a connection.
#[derive(Debug)]
pub(super) struct ControlFrames {
    /// Bytes of the preface or of a payload that are still to come.
    to_skip: u64,
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    /// Frames that may come now.
    left: u64,
    refilled_at: Instant,
    written_bytes: u64,
    is_flooded: bool,
}

impl ControlFrames {
    /// The frames of a connection that was opened now.
    pub(super) fn new() -> Self {
        Self {
            to_skip: PREFACE_BYTES,
            header: [0; HEADER_BYTES],
            header_bytes: 0,
            left: CONTROL_FRAMES_BURST,
            refilled_at: Instant::now(),
            written_bytes: 0,
            is_flooded: false,
        }
    }

    /// Returns true once more came than may: nothing more is to be read.
    pub(super) fn are_too_many(&self) -> bool {
        self.is_flooded
    }

    /// Notes bytes that the client was sent.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.written_bytes = self.written_bytes.saturating_add(bytes as u64);
    }

    /// Notes bytes that came. Returns true when with them more came than may.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> bool {
        let mut control = 0_u64;
        while !bytes.is_empty() {
            let skipped = self.to_skip.min(bytes.len() as u64);
            self.to_skip -= skipped;
            bytes = bytes.get(skipped as usize..).unwrap_or_default();
            let missing = (HEADER_BYTES - self.header_bytes).min(bytes.len());
            let (head, rest) = bytes.split_at(missing);
            self.header[self.header_bytes..][..missing].copy_from_slice(head);
            self.header_bytes += missing;
            bytes = rest;
            if self.header_bytes == HEADER_BYTES {
                let [high, middle, low, kind, ..] = self.header;
                self.to_skip = u64::from(u32::from_be_bytes([0, high, middle, low]));
                self.header_bytes = 0;
                control += u64::from(!matches!(kind, DATA | HEADERS | CONTINUATION));
            }
        }
        control > 0 && !self.may_come(control)
    }

    /// Position in the stream: a fuzzer compares it over all ways to cut the same bytes.
    #[cfg(feature = "testing")]
    fn position(&self) -> (u64, usize, [u8; HEADER_BYTES]) {
        (self.to_skip, self.header_bytes, self.header)
    }

    fn may_come(&mut self, control: u64) -> bool {
        let earned = self.refilled_at.elapsed().as_millis() as u64 * CONTROL_FRAMES_PER_SECOND / 1_000;
        if earned > 0 {
            self.refilled_at += Duration::from_millis(earned * 1_000 / CONTROL_FRAMES_PER_SECOND);
        }
        let paid = std::mem::take(&mut self.written_bytes);
        self.written_bytes = paid % BYTES_PER_FRAME;
        let more = earned.saturating_add(paid / BYTES_PER_FRAME);
        self.left = self
            .left
            .saturating_add(more)
            .min(CONTROL_FRAMES_BURST.max(self.left));
        if let Some(left) = self.left.checked_sub(control) {
            self.left = left;
            return true;
        }
        std::mem::replace(&mut self.is_flooded, true)
    }
}

/// Reads bytes of a client at once and in parts of so many bytes, which must lead to the same place in the stream. Returns
/// true if they begin with a whole preface.
#[cfg(feature = "testing")]
pub fn frames_are_read_however_they_are_cut(bytes: &[u8], part: usize) -> bool {
    let (mut whole, mut cut) = (ControlFrames::new(), ControlFrames::new());
    whole.read(bytes);
    for part in bytes.chunks(part.max(1)) {
        cut.read(part);
    }
    assert_eq!(whole.position(), cut.position(), "parts are read otherwise");
    bytes.len() as u64 >= PREFACE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW_UPDATE: u8 = 0x8;

    fn frame(kind: u8, payload: usize) -> Vec<u8> {
        let length = (payload as u32).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, 0, 0, 0, 0, 0];
        frame.resize(HEADER_BYTES + payload, kind);
        frame
    }

    fn opened() -> ControlFrames {
        let mut frames = ControlFrames::new();
        frames.read(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        frames
    }

    fn updates(count: u64) -> Vec<u8> {
        frame(WINDOW_UPDATE, 4).repeat(count as usize)
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_and_a_rate_may_come_and_no_more() {
        let mut frames = opened();
        frames.read(&updates(CONTROL_FRAMES_BURST));
        assert!(!frames.are_too_many());
        for _ in 0..10 {
            tokio::time::advance(Duration::from_secs(1)).await;
            frames.read(&updates(CONTROL_FRAMES_PER_SECOND));
            assert!(!frames.are_too_many());
        }
        frames.read(&updates(1));
        assert!(frames.are_too_many());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(frames.are_too_many(), "it stays closed");
    }

    #[tokio::test(start_paused = true)]
    async fn every_kind_but_data_and_headers_counts_however_the_bytes_are_cut() {
        for (kind, is_control) in [
            (0, false),
            (1, false),
            (9, false),
            (2, true),
            (6, true),
            (200, true),
        ] {
            let mut frames = opened();
            let flood = frame(kind, 5).repeat(CONTROL_FRAMES_BURST as usize + 1);
            let told = flood.chunks(7).filter(|part| frames.read(part)).count();
            assert_eq!(told, usize::from(is_control), "{kind}");
            assert_eq!(frames.are_too_many(), is_control, "{kind}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_sent_much_may_say_more() {
        let mut frames = opened();
        for _ in 0..4 * CONTROL_FRAMES_BURST {
            frames.wrote(16 * 1024);
            frames.read(&updates(2));
        }
        assert!(!frames.are_too_many());
    }
}

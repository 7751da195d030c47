//! Owns: HTTP/2 by hand, as far as an attacker needs it: frames that no library would send.
//! Never: understands an answer; what the hub says is read, counted and dropped.

use std::{io, sync::Arc, time::Duration};

use hyper_util::rt::TokioIo;
use shared::tls::{BoxedIo, HubStream};
use tokio::{
    io::{AsyncWriteExt, BufReader, ReadHalf, WriteHalf},
    sync::Notify,
    task::JoinSet,
    time::{Instant, timeout_at},
};

use super::answers::Answers;

type Stream = tokio_rustls::client::TlsStream<BoxedIo>;

/// What a client says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Kinds of frames (RFC 9113, 6).
pub(super) const HEADERS: u8 = 0x1;
pub(super) const RST_STREAM: u8 = 0x3;
pub(super) const SETTINGS: u8 = 0x4;
pub(super) const PING: u8 = 0x6;
pub(super) const GO_AWAY: u8 = 0x7;
pub(super) const CONTINUATION: u8 = 0x9;
/// Flags.
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
/// A reset that means that the client has changed its mind.
pub(super) const CANCEL: [u8; 4] = [0, 0, 0, 8];
/// How long one write may wait for a hub that does not read.
const WRITE_WAIT: Duration = Duration::from_secs(1);

/// One frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Headers of a call of the sync service, in HPACK without a table and without compression.
pub(super) fn call() -> Vec<u8> {
    // Method POST and scheme http have numbers; the path's name has number 4, the authority's 1.
    let mut block = vec![0x83, 0x86, 0x04];
    text(&mut block, "/tributary.v1.Sync/Stream");
    block.push(0x01);
    text(&mut block, "hub");
    block.push(0x00);
    text(&mut block, "content-type");
    text(&mut block, "application/grpc");
    block.push(0x00);
    text(&mut block, "te");
    text(&mut block, "trailers");
    block
}

/// A header of our own with a value of so many bytes (below 127).
pub(super) fn padding(bytes: usize) -> Vec<u8> {
    let mut block = vec![0x00];
    text(&mut block, "x-padding");
    text(&mut block, &"x".repeat(bytes));
    block
}

fn text(block: &mut Vec<u8>, text: &str) {
    // Up to 126 bytes the length is one byte.
    block.push(text.len() as u8);
    block.extend(text.as_bytes());
}

/// A connection whose frames are written by hand.
pub(super) struct Raw {
    writing: WriteHalf<Stream>,
    /// Bytes that were written since it began.
    pub(super) written: u64,
    taken: Arc<Notify>,
    closed: Arc<Notify>,
    _reading: JoinSet<()>,
}

impl Raw {
    /// Says what every client says first.
    pub(super) async fn begin(stream: HubStream, answers: Arc<Answers>) -> anyhow::Result<Self> {
        let (reading, writing) = tokio::io::split(TokioIo::into_inner(stream));
        let (taken, closed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let mut reads = JoinSet::new();
        reads.spawn(hear(reading, answers, taken.clone(), closed.clone()));
        let mut raw = Self {
            writing,
            written: 0,
            taken,
            closed,
            _reading: reads,
        };
        let mut first = PREFACE.to_vec();
        first.extend(frame(SETTINGS, 0, 0, &[]));
        first.extend(frame(SETTINGS, ACK, 0, &[]));
        raw.write(&first).await?;
        raw.written = 0;
        Ok(raw)
    }

    /// Writes bytes; an error when the hub takes no more of them.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let until = Instant::now() + WRITE_WAIT;
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = timeout_at(until, self.writing.write(rest)).await??;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += written as u64;
            rest = &rest[written..];
        }
        timeout_at(until, self.writing.flush()).await?
    }

    /// Waits until the hub has taken part in it.
    pub(super) fn taken(&self) -> impl Future<Output = ()> + Send + use<> {
        let taken = self.taken.clone();
        async move { taken.notified().await }
    }

    /// Waits until the hub closes it.
    pub(super) fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let closed = self.closed.clone();
        async move { closed.notified().await }
    }
}

/// Counts what the hub says; however it ends, the connection is over then.
async fn hear(reading: ReadHalf<Stream>, answers: Arc<Answers>, taken: Arc<Notify>, closed: Arc<Notify>) {
    let mut reading = BufReader::new(reading);
    while let Ok(counts) = answers.count(&mut reading).await {
        if counts {
            taken.notify_one();
        }
    }
    closed.notify_one();
}

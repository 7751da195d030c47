//! Owns: a connection whose frames are written by hand.
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

use super::{
    answers::Answers,
    frames::{ACK, SETTINGS, frame},
};

type Stream = tokio_rustls::client::TlsStream<BoxedIo>;

/// The first bytes of a client.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Time for one write to a hub that does not read.
const WRITE_WAIT: Duration = Duration::from_secs(1);

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

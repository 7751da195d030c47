//! Owns: attacks with many streams of one member.
//! Never: says Hello.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use shared::{model::sync::MESSAGE_BYTES_MAX, tls::MEMBER_CONNECTIONS_MAX};
use tokio::{
    task::JoinSet,
    time::{sleep, timeout, timeout_at},
};

use super::{
    attacker::{ANSWER_WAIT, Attacker},
    frames::{END_HEADERS, HEADERS, call, frame},
    played::Played,
    raw::Raw,
};

/// Streams that are opened with one write.
const AT_ONCE: usize = 100;
/// Streams over one connection that begin a message: as many as a hub lets one connection have.
const HALF_OPEN: usize = hub::doors::STREAMS_MAX as usize;
/// Bytes of such a message that are sent at once.
const PIECE: Bytes = Bytes::from_static(&[0; 16 * 1024]);
/// Before a stream or a connection that ended is opened again.
const PAUSE: Duration = Duration::from_millis(100);

/// Streams that say nothing, over as many connections as one member may have. Whoever has opened its share holds it;
/// a connection that the hub ends is opened again, with its whole share.
pub(super) async fn without_hello(attacker: Attacker) -> anyhow::Result<Played> {
    let each = attacker.size.streams.div_ceil(MEMBER_CONNECTIONS_MAX);
    let mut connections = JoinSet::new();
    for _ in 0..MEMBER_CONNECTIONS_MAX {
        let attacker = attacker.clone();
        connections.spawn(async move {
            let (mut opened, mut streams) = (0_u64, 0_u64);
            while !attacker.is_over() {
                if let Ok(raw) = attacker.raw().await {
                    opened += 1;
                    streams += open_share(raw, each, &attacker).await;
                }
                sleep(PAUSE).await;
            }
            (opened, streams)
        });
    }
    let (mut opened, mut streams) = (0, 0);
    while let Some(ended) = connections.join_next().await {
        let (connections, of_them) = ended?;
        opened += connections;
        streams += of_them;
    }
    let answers = &attacker.answers;
    Ok(Played {
        // Of what is written the hub reads no more once it has ended a connection.
        amount: answers.streams(),
        what: "streams",
        met: answers.streams(),
        held: None,
        words: format!("{streams} written in {opened} connections, {}", answers.words()),
    })
}

/// Opens so many streams over one connection, and holds them until the time is over or the hub ends it; says how many.
async fn open_share(mut raw: Raw, share: usize, attacker: &Attacker) -> u64 {
    let bytes = frame(HEADERS, END_HEADERS, 1, &call()).len();
    let _ = timeout(ANSWER_WAIT, raw.taken()).await;
    let mut stream = 1;
    for _ in 0..share.div_ceil(AT_ONCE) {
        let frames =
            (0..AT_ONCE).flat_map(|index| frame(HEADERS, END_HEADERS, stream + 2 * index as u32, &call()));
        if raw.write(&frames.collect::<Vec<_>>()).await.is_err() {
            // What the hub said of it is on the way.
            let _ = timeout(ANSWER_WAIT, raw.closed()).await;
            return raw.written / bytes as u64;
        }
        stream += 2 * AT_ONCE as u32;
    }
    let _ = timeout_at(attacker.until, raw.closed()).await;
    raw.written / bytes as u64
}

/// The fate of unfinished messages.
#[derive(Default)]
struct Begun {
    messages: AtomicU64,
    refused: AtomicU64,
    pieces: Arc<AtomicU64>,
}

/// Streams that begin the largest message there is and send all of it but the end.
pub(super) async fn half_open(attacker: Attacker) -> anyhow::Result<Played> {
    let (mut connections, begun) = (JoinSet::new(), Arc::new(Begun::default()));
    for _ in 0..MEMBER_CONNECTIONS_MAX {
        let (attacker, begun) = (attacker.clone(), begun.clone());
        connections.spawn(async move {
            while !attacker.is_over() {
                // A connection that is refused is asked for again.
                let _ = begin_messages(&attacker, &begun).await;
                sleep(PAUSE).await;
            }
        });
    }
    while let Some(ended) = connections.join_next().await {
        ended?;
    }
    let (messages, refused) = (&begun.messages, &begun.refused);
    let (amount, met) = (messages.load(Ordering::Relaxed), refused.load(Ordering::Relaxed));
    let megabytes = begun.pieces.load(Ordering::Relaxed) as f64 * PIECE.len() as f64 / 1e6;
    Ok(Played {
        amount,
        what: "messages begun",
        met,
        held: None,
        words: format!("{met} of them refused, {megabytes:.1} MB"),
    })
}

/// One connection full of messages that do not end, until the time is over or the hub has refused all of them.
async fn begin_messages(attacker: &Attacker, begun: &Arc<Begun>) -> anyhow::Result<()> {
    let stream = TokioIo::into_inner(attacker.connect().await?);
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let mut driving = JoinSet::new();
    driving.spawn(connection);
    let mut calls = JoinSet::new();
    for _ in 0..HALF_OPEN {
        let request = http::Request::post("http://hub/tributary.v1.Sync/Stream")
            .header(http::header::CONTENT_TYPE, "application/grpc")
            .header(http::header::TE, "trailers")
            .body(unending(begun.pieces.clone()))?;
        let (mut sender, begun, until) = (sender.clone(), begun.clone(), attacker.until);
        calls.spawn(async move {
            let answering = async {
                sender.ready().await?;
                begun.messages.fetch_add(1, Ordering::Relaxed);
                let answer = sender.send_request(request).await?;
                let mut body = http_body_util::BodyStream::new(answer.into_body());
                while let Some(Ok(_)) = body.next().await {}
                begun.refused.fetch_add(1, Ordering::Relaxed);
                anyhow::Ok(())
            };
            // A refusal ends it, as the hub's silence does when the time is over.
            let _ = timeout_at(until, answering).await;
        });
    }
    drop(sender);
    while calls.join_next().await.is_some() {}
    Ok(())
}

/// A message that says how long it is, and stops one piece before; the pieces that are sent are counted.
fn unending(
    sent: Arc<AtomicU64>,
) -> impl hyper::body::Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static {
    let length = u32::try_from(MESSAGE_BYTES_MAX).unwrap_or(u32::MAX);
    let mut head = vec![0];
    head.extend(length.to_be_bytes());
    let pieces = MESSAGE_BYTES_MAX / PIECE.len() - 1;
    let said = std::iter::once(Bytes::from(head)).chain(std::iter::repeat_n(PIECE, pieces));
    let said = said.inspect(move |piece| {
        sent.fetch_add(u64::from(piece.len() == PIECE.len()), Ordering::Relaxed);
    });
    let said = futures::stream::iter(said).chain(futures::stream::pending());
    StreamBody::new(said.map(|piece| Ok(Frame::data(piece))))
}

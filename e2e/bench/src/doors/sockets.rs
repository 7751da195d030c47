//! Owns: attacks with many sockets and connections.
//! Never: opens another in the place of a closed one at once: a stranger has no more sockets than it was told.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use shared::tls::{DoorBounds, MEMBER_CONNECTIONS_MAX};
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout_at},
};

use super::{
    attacker::Attacker,
    frames::{END_HEADERS, HEADERS, call, frame},
    played::Played,
    raw::Raw,
};

/// Time for which the place of a closed socket stays empty.
const PAUSE: Duration = Duration::from_secs(1);
/// Sockets that are opened at the same time.
const OPENING_MAX: usize = 256;
/// TLS handshakes at the same time.
const HANDSHAKES_MAX: usize = 32;

/// Sockets that say nothing; whoever is closed comes back after a second.
pub(super) async fn silent(attacker: Attacker) -> anyhow::Result<Played> {
    let (opened, closed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let turn = Arc::new(Semaphore::new(OPENING_MAX));
    let mut sockets = JoinSet::new();
    for _ in 0..attacker.size.sockets {
        let (opened, closed) = (opened.clone(), closed.clone());
        let (turn, attacker) = (turn.clone(), attacker.clone());
        sockets.spawn(async move {
            while !attacker.is_over() {
                let opening = async {
                    let _turn = turn.acquire().await;
                    TcpStream::connect(attacker.listen).await
                };
                if let Ok(Ok(mut socket)) = timeout_at(attacker.until, opening).await {
                    opened.fetch_add(1, Ordering::Relaxed);
                    // Nothing comes before the hub closes it.
                    if timeout_at(attacker.until, socket.read_u8()).await.is_ok() {
                        closed.fetch_add(1, Ordering::Relaxed);
                    }
                }
                // The end of the attack ends the pause, too.
                let _ = timeout_at(attacker.until, sleep(PAUSE)).await;
            }
        });
    }
    while sockets.join_next().await.is_some() {}
    let (amount, met) = (opened.load(Ordering::Relaxed), closed.load(Ordering::Relaxed));
    Ok(Played {
        amount,
        what: "sockets",
        met,
        held: None,
        words: format!("{met} of them closed by the hub"),
    })
}

/// Connections of one member with a call over each; whoever is closed does not come back.
pub(super) async fn connections(attacker: Attacker) -> anyhow::Result<Played> {
    let holders = std::iter::repeat_n(attacker.clone(), attacker.size.connections);
    hold(&attacker, holders, MEMBER_CONNECTIONS_MAX).await
}

/// The same of many members, each with as many as it may have.
pub(super) async fn crowd(attacker: Attacker) -> anyhow::Result<Played> {
    let each = |member| std::iter::repeat_n(member, MEMBER_CONNECTIONS_MAX);
    let holders: Vec<_> = attacker.of_crowd().flat_map(each).collect();
    let places = DoorBounds::within(attacker.size.hub_files);
    hold(
        &attacker,
        holders.into_iter(),
        places.connections - places.reserve,
    )
    .await
}

/// One connection of each holder, until the time is over or the hub closes it; so many of them may be held.
async fn hold(
    attacker: &Attacker,
    holders: impl Iterator<Item = Attacker>,
    most: usize,
) -> anyhow::Result<Played> {
    let turn = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    let opened = Arc::new(AtomicU64::new(0));
    let mut connections = JoinSet::new();
    for holder in holders {
        let (turn, opened) = (turn.clone(), opened.clone());
        connections.spawn(async move {
            let opening = async {
                let _turn = turn.acquire().await;
                let stream = holder.connect().await?;
                opened.fetch_add(1, Ordering::Relaxed);
                let mut raw = Raw::begin(stream, holder.answers.clone()).await?;
                raw.write(&frame(HEADERS, END_HEADERS, 1, &call())).await?;
                anyhow::Ok(raw)
            };
            match timeout_at(holder.until, opening).await {
                Ok(Ok(raw)) => timeout_at(holder.until, raw.closed()).await.is_err(),
                _ => false,
            }
        });
    }
    let mut kept = 0;
    while let Some(held) = connections.join_next().await {
        kept += u64::from(held?);
    }
    Ok(Played {
        amount: opened.load(Ordering::Relaxed),
        what: "connections",
        met: kept,
        held: Some((kept, most as u64)),
        words: format!("{kept} kept, {}", attacker.answers.words()),
    })
}

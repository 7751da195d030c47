//! Owns: the attack with sockets that are never silent and never finish: each says a true TLS hello byte by byte.
//! Never: reads more of the hub than its end.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use futures::future::BoxFuture;
use shared::tls::{BoxedIo, Dial, HubAddress};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
    time::{sleep, timeout, timeout_at},
};

use super::{
    attacker::{ANSWER_WAIT, Attacker},
    played::Played,
};

/// From one byte of a socket to its next: less than a peer may be silent, or stalled, before it goes for another.
const BYTE_PAUSE: Duration = Duration::from_millis(80);
/// Time for which the place of a closed socket stays empty.
const PAUSE: Duration = Duration::from_secs(1);
/// Sockets that are opened at the same time.
const OPENING_MAX: usize = 256;
/// More than a hello has bytes.
const HELLO_BYTES_MAX: usize = 16 * 1024;

/// Sockets that say one byte after the other; whoever is closed comes back after a second.
pub(super) async fn hellos(attacker: Attacker) -> anyhow::Result<Played> {
    let hello: Arc<[u8]> = hello(&attacker).await?.into();
    let (opened, closed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let said = Arc::new(AtomicU64::new(0));
    let turn = Arc::new(Semaphore::new(OPENING_MAX));
    let mut sockets = JoinSet::new();
    for _ in 0..attacker.size.trickles {
        let (opened, closed, said) = (opened.clone(), closed.clone(), said.clone());
        let (turn, attacker, hello) = (turn.clone(), attacker.clone(), hello.clone());
        sockets.spawn(async move {
            while !attacker.is_over() {
                let opening = async {
                    let _turn = turn.acquire().await;
                    TcpStream::connect(attacker.listen).await
                };
                if let Ok(Ok(socket)) = timeout_at(attacker.until, opening).await {
                    opened.fetch_add(1, Ordering::Relaxed);
                    if timeout_at(attacker.until, trickle(socket, &hello, &said))
                        .await
                        .is_ok()
                    {
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
    let said = said.load(Ordering::Relaxed);
    Ok(Played {
        amount,
        what: "sockets",
        met,
        held: None,
        words: format!("{said} bytes of hellos, {met} sockets closed by the hub"),
    })
}

/// Returns when the hub closes the socket.
async fn trickle(mut socket: TcpStream, hello: &[u8], said: &AtomicU64) {
    for byte in hello {
        if socket.write_all(&[*byte]).await.is_err() {
            return;
        }
        said.fetch_add(1, Ordering::Relaxed);
        if timeout(BYTE_PAUSE, socket.read_u8()).await.is_ok() {
            return;
        }
    }
    let _ = socket.read_u8().await;
}

/// The first bytes of a client that would be let in.
async fn hello(attacker: &Attacker) -> anyhow::Result<Vec<u8>> {
    let (ours, mut theirs) = tokio::io::duplex(HELLO_BYTES_MAX);
    let dial = Arc::new(IntoPipe(Mutex::new(Some(ours))));
    let mut hello = vec![0; HELLO_BYTES_MAX];
    let bytes = tokio::select! {
        read = timeout(ANSWER_WAIT, theirs.read(&mut hello)) => read.context("no hello was said")??,
        ended = attacker.connect_by(dial) => {
            ended?;
            anyhow::bail!("a connection to nobody is no connection")
        }
    };
    hello.truncate(bytes);
    Ok(hello)
}

/// A way that leads into this pipe.
struct IntoPipe(Mutex<Option<DuplexStream>>);

impl Dial for IntoPipe {
    fn dial(&self, _: HubAddress) -> BoxFuture<'static, std::io::Result<BoxedIo>> {
        let pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Box::pin(async move {
            let pipe = pipe.ok_or_else(|| std::io::Error::other("dialled twice"))?;
            Ok(Box::new(pipe) as BoxedIo)
        })
    }
}

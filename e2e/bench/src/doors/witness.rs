//! Owns: who sees what an attack does: an operator who calls over a new connection each time, members in session, and
//! the hub's memory.
//! Never: attacks.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, bail};
use futures::future::BoxFuture;
use proto::v1::{ListMembersRequest, membership_client::MembershipClient};
use shared::{
    model::{ClusterId, sync::Namespaces},
    tls::{BoxedIo, Dial, HubAddress, HubConnector, LiveCredentials, TlsMetrics, explain},
};
use tokio::{
    net::TcpSocket,
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};

use super::{
    attack::Attack,
    attacker::Attacker,
    row::{Calls, Row},
    size::Size,
};
use crate::{
    hub::{HubProcess, Setup},
    player::{Player, Session},
};

/// Members that want to be left in peace.
const MEMBERS: usize = 5;
/// Between an operator's calls.
const CALL_PAUSE: Duration = Duration::from_millis(200);
/// Between looks at the hub's memory.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// After an attack, until the hub's memory is looked at for the last time.
const REST: Duration = Duration::from_secs(1);

/// The operator's source address.
const OPERATOR: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);

/// Everybody who sees it.
pub(super) struct Witness {
    operator: Arc<LiveCredentials>,
    /// Resident bytes of the hub before the first attack.
    start: u64,
    sessions: JoinSet<anyhow::Result<()>>,
    heard: Arc<Heard>,
}

/// Members' signs of life since an attack began.
#[derive(Default)]
struct Heard {
    in_session: AtomicUsize,
    /// Time of each member's last sign of life, and its longest silence.
    last: Mutex<Vec<(Option<Instant>, Duration)>>,
}

impl Heard {
    fn note(&self, member: usize, now: Instant) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (heard, longest) = &mut last[member];
        if let Some(heard) = heard {
            *longest = (*longest).max(now - *heard);
        }
        *heard = Some(now);
    }

    fn begin(&self) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.fill((Some(Instant::now()), Duration::ZERO));
    }

    fn longest(&self) -> Duration {
        let now = Instant::now();
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let silences = last
            .iter()
            .map(|(heard, longest)| (*longest).max(heard.map_or(Duration::ZERO, |heard| now - heard)));
        silences.max().unwrap_or_default()
    }
}

impl Witness {
    /// Lets members connect and list.
    pub(super) async fn gather(setup: &Setup, hub: &HubProcess) -> anyhow::Result<Self> {
        let heard = Arc::new(Heard::default());
        heard
            .last
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .resize(MEMBERS, Default::default());
        let mut sessions = JoinSet::new();
        for index in 0..MEMBERS {
            let cluster = ClusterId::new(&format!("member-{index}"))?;
            let player = Player {
                credentials: setup.member(&cluster)?,
                cluster,
                interest: Namespaces::All,
                takes_differences: false,
            };
            let mut session = player.connect(&hub.address).await?;
            session.list(Vec::new(), |_| {}).await?;
            heard.in_session.fetch_add(1, Ordering::Relaxed);
            sessions.spawn(stay(session, index, heard.clone()));
        }
        Ok(Self {
            operator: setup.operator("alice")?,
            start: hub.usage()?.resident,
            sessions,
            heard,
        })
    }

    /// Plays an attack, and sees what it does.
    pub(super) async fn beside(
        &self,
        hub: &HubProcess,
        attack: Attack,
        setup: &Setup,
        size: Size,
    ) -> anyhow::Result<Row> {
        eprintln!("doors: {attack}");
        let before = hub.usage()?.resident;
        self.heard.begin();
        let amount = (attack.crowd(size), attack.lasting(size));
        let mut attacking = tokio::spawn(attack.play(Attacker::begin(setup, hub, size, amount)?));
        let mut calls = Calls::default();
        let (mut played, mut peak) = (None, before);
        let mut look = interval(LOOK_PAUSE);
        let mut calling = self.call(hub, size, Duration::ZERO);
        // The call that is under way when the attack ends is waited for, too: one that hangs counts.
        let played = loop {
            tokio::select! {
                done = &mut attacking, if played.is_none() => {
                    played = Some(done.context("the attacker panicked")??);
                }
                _ = look.tick() => peak = peak.max(hub.usage()?.resident),
                answered = &mut calling => {
                    calls.note(answered);
                    if let Some(played) = played {
                        break played;
                    }
                    calling = self.call(hub, size, CALL_PAUSE);
                }
            }
        };
        let silence = self.heard.longest();
        sleep(REST).await;
        Ok(Row {
            attack,
            played,
            least: attack.least(size),
            calls,
            members: MEMBERS,
            in_session: self.heard.in_session.load(Ordering::Relaxed),
            silence,
            start: self.start,
            before,
            peak,
            after: hub.usage()?.resident,
        })
    }

    /// The operator's next call, after a pause.
    fn call(
        &self,
        hub: &HubProcess,
        size: Size,
        pause: Duration,
    ) -> BoxFuture<'static, anyhow::Result<Duration>> {
        let (address, operator) = (hub.address.clone(), self.operator.clone());
        Box::pin(async move {
            sleep(pause).await;
            call(address, operator, size.answer).await
        })
    }

    /// Ends the sessions; an error if one had ended before.
    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.sessions.try_join_next() {
            ended??;
        }
        self.sessions.shutdown().await;
        Ok(())
    }
}

/// Hears what the hub says until the session ends, which it must not.
async fn stay(mut session: Session, member: usize, heard: Arc<Heard>) -> anyhow::Result<()> {
    loop {
        match session.hear().await {
            Ok(_) => heard.note(member, Instant::now()),
            Err(error) => {
                heard.in_session.fetch_sub(1, Ordering::Relaxed);
                return Err(error);
            }
        }
    }
}

/// Dials from an address of the operator's own, as operators do: the hub evicts by source address.
struct FromOwnAddress;

impl Dial for FromOwnAddress {
    fn dial(&self, address: HubAddress) -> BoxFuture<'static, io::Result<BoxedIo>> {
        Box::pin(async move {
            let ip: Ipv4Addr = address.host.parse().map_err(io::Error::other)?;
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddr::from((OPERATOR, 0)))?;
            let stream = socket.connect(SocketAddr::from((ip, address.port))).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxedIo)
        })
    }
}

/// One call of an operator over a connection of its own, and how long it took.
async fn call(hub: HubAddress, operator: Arc<LiveCredentials>, answer: Duration) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let calling = async {
        let connector = HubConnector::new(
            vec![hub],
            operator,
            Arc::new(FromOwnAddress),
            TlsMetrics::default(),
        );
        // As operators' commands do.
        let channel = match connector.connect_once().await {
            Ok(channel) => channel,
            Err(error) => bail!(explain(&error).unwrap_or_else(|| error.to_string())),
        };
        MembershipClient::new(channel)
            .list(ListMembersRequest::default())
            .await?;
        anyhow::Ok(())
    };
    timeout(answer, calling).await.context("no answer in time")??;
    Ok(began.elapsed())
}

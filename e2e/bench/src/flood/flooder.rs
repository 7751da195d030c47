//! Owns: one member that floods until it is told to end, and comes back when its session is ended.
//! Never: waits longer than it must, or judges what the others notice.

use std::{fmt, sync::Arc, time::Duration};

use anyhow::Context;
use shared::{
    model::ClusterId,
    tls::{HubAddress, LiveCredentials},
};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        hub::HubProcess,
        player::{Player, Session},
        report::Section,
    },
    kind::{Kind, Source},
};

/// Before it comes back after its session was ended.
const PAUSE: Duration = Duration::from_millis(50);
/// More messages than wait unread in a stream: the shortest has seven bytes with its frame, and a window 64 KiB.
const UNREAD_MESSAGES_MAX: u64 = 16_384;
/// Time for a message to find room if nothing is read: then the stream hangs, and a new one is opened.
const STILL: Duration = Duration::from_secs(1);

/// The member that floods.
pub(super) fn hostile() -> anyhow::Result<ClusterId> {
    Ok(ClusterId::new("hostile")?)
}

/// The deeds of a flooder.
#[derive(Debug, Default)]
pub(super) struct Flooded {
    /// Messages that were sent.
    pub(super) messages: u64,
    sessions: u64,
    refused: u64,
    acknowledged: u64,
}

impl Flooded {
    /// True if the hub has shown that it met the flood: by answers, by the end of a session, or by reading more than
    /// fits into a stream that nobody reads.
    pub(super) fn was_met(&self) -> bool {
        self.refused + self.acknowledged > 0 || self.sessions > 1 || self.messages > UNREAD_MESSAGES_MAX
    }

    /// As figures of a section.
    pub(super) fn describe(&self, section: &mut Section) {
        for (name, value) in [
            ("the flood: messages", self.messages),
            ("the flood: sessions", self.sessions),
            ("the flood: items acknowledged", self.acknowledged),
            ("the flood: items refused", self.refused),
        ] {
            section.figure(name, value as f64, "");
        }
    }
}

impl fmt::Display for Flooded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            messages, sessions, ..
        } = self;
        write!(
            f,
            "{messages} messages were sent in {sessions} sessions, and nothing was answered"
        )
    }
}

/// A member that floods.
pub(super) struct Flooder {
    end: CancellationToken,
    task: JoinHandle<Flooded>,
}

impl Flooder {
    /// Connects and begins.
    pub(super) async fn begin(
        hub: &HubProcess,
        credentials: &Arc<LiveCredentials>,
        kind: Kind,
    ) -> anyhow::Result<Self> {
        let member = Hostile {
            cluster: hostile()?,
            credentials: credentials.clone(),
            hub: hub.address.clone(),
            kind,
        };
        let first = member.connect().await.context("the member that floods")?;
        let end = CancellationToken::new();
        let ended = end.clone();
        let task = tokio::spawn(async move {
            let mut flooded = Flooded::default();
            ended.run_until_cancelled(member.flood(first, &mut flooded)).await;
            flooded
        });
        Ok(Self { end, task })
    }

    /// Ends it.
    pub(super) async fn end(self) -> anyhow::Result<Flooded> {
        self.end.cancel();
        self.task.await.context("the flood broke off")
    }
}

struct Hostile {
    cluster: ClusterId,
    credentials: Arc<LiveCredentials>,
    hub: HubAddress,
    kind: Kind,
}

impl Hostile {
    async fn connect(&self) -> anyhow::Result<(Session, Source)> {
        let player = Player {
            cluster: self.cluster.clone(),
            credentials: self.credentials.clone(),
            interest: Default::default(),
            takes_differences: false,
        };
        let source = Source::new(self.kind)?;
        let mut session = player.connect(&self.hub).await?;
        session.list(source.beginning()?, |_| {}).await?;
        Ok((session, source))
    }

    /// Floods session after session.
    async fn flood(&self, first: (Session, Source), flooded: &mut Flooded) {
        let mut next = Some(first);
        loop {
            match next.take() {
                Some((session, source)) => {
                    flooded.sessions += 1;
                    self.one(session, source, flooded).await;
                }
                None => sleep(PAUSE).await,
            }
            next = self.connect().await.ok();
        }
    }

    /// Floods until the session ends, or stands still because nothing of it is read.
    async fn one(&self, mut session: Session, mut source: Source, flooded: &mut Flooded) {
        let mut noted = 0;
        loop {
            while self.kind.is_patient() && session.room() == 0 {
                if session.member.until(|_| Some(())).await.is_err() {
                    return;
                }
                note(&mut session, &mut noted, flooded);
            }
            let message = source.next(&mut session.member);
            let said = if self.kind.reads() {
                session.member.say_hearing(message).await.is_ok()
            } else {
                let said = timeout(STILL, session.member.say(message)).await;
                matches!(said, Ok(Ok(())))
            };
            note(&mut session, &mut noted, flooded);
            if !said {
                return;
            }
            flooded.messages += 1;
        }
    }
}

/// Counts what the hub answered since the last time, and forgets it.
fn note(session: &mut Session, noted: &mut u64, flooded: &mut Flooded) {
    let refused = session.member.refused.len() as u64;
    session.member.refused.clear();
    let acknowledged = session.member.acknowledged - std::mem::replace(noted, session.member.acknowledged);
    flooded.refused += refused;
    flooded.acknowledged += acknowledged;
}

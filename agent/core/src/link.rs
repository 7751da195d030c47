//! The agent's side of a session as a pure machine: what to say, and what the hub's messages mean for the
//! outbox and the desired state. Time is an argument; it never dials, sleeps or writes an object.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use model::{
    ClusterId, Epoch, FactKey, ListingGroup, UnixMillis,
    sync::{
        AgentMessage, CHUNK_BYTES, DesiredKey, FEATURE_APPLIED, FEATURE_ARRIVALS, FEATURE_DIFFERENCES,
        FEATURE_RENEWAL, FEATURE_REPORT_AGAIN, Hello, HubMessage, Interest, Namespaces, PROTOCOL_VERSION,
        Pong, Renewed, Told, Welcome,
    },
};

use crate::{
    outbox::Outbox,
    plan::{Desired, Reach, Touched},
};

/// Silence before the hub has said what it allows, in milliseconds.
const WELCOME_WAIT_MILLIS: u64 = 10_000;
/// Bytes of observations in one message: small enough that heartbeats are not held up.
const OBSERVATIONS_BYTES: usize = CHUNK_BYTES;
/// News of the applied position is sent at once, and then not again for so long, in milliseconds.
const NEWS_INTERVAL_MILLIS: u64 = 250;

/// Longest time by which an epoch may be ahead of this agent's clock, in milliseconds.
const EPOCH_AHEAD_MAX_MILLIS: u64 = 24 * 60 * 60 * 1_000;

/// The constant part of the agent's Hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduction {
    /// The agent's version.
    pub agent_version: Box<str>,
    /// UID of kube-system.
    pub cluster_fingerprint: Box<str>,
    /// Fresh for this start.
    pub instance: Box<str>,
    /// leaseTransitions of the Lease `tributary-agent`.
    pub lease_transitions: i64,
}

/// Why the agent ends a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The hub's log is older than what this cluster has seen.
    #[error(
        "the hub serves epoch {offered}, this cluster has known the later epoch {known}: an old hub or an old \
         copy of its data is running. Nothing was changed here. Stop that hub, or start it with --adopt-epoch"
    )]
    OlderEpoch {
        /// The hub's epoch.
        offered: Epoch,
        /// The newest epoch that this cluster has known.
        known: Epoch,
    },
    /// A position of another epoch than the one in which the hub admitted this session.
    #[error("the hub told a position of epoch {told} in a session of epoch {opened}: connecting again")]
    ForeignEpoch {
        /// Its epoch.
        told: Epoch,
        /// The session's.
        opened: Epoch,
    },
    /// The hub's epoch is of a time that this agent cannot believe. Remembered, it would have every other hub refused.
    #[error(
        "the hub serves an epoch that began at {}, more than {} hours after this agent's clock ({}): if that clock is wrong, set \
         it; if not, the hub's clock was wrong, or this is another hub",
        .offered.created_at.rfc3339(),
        EPOCH_AHEAD_MAX_MILLIS / 3_600_000,
        .clock.rfc3339()
    )]
    EpochAhead {
        /// The hub's.
        offered: Epoch,
        /// This agent's time.
        clock: UnixMillis,
    },
    /// The versions do not overlap.
    #[error("the hub speaks protocol version {theirs}, this agent {PROTOCOL_VERSION} and its neighbours")]
    Version {
        /// The hub's version of the protocol.
        theirs: u32,
    },
    /// A message came out of order.
    #[error("the hub sent {what} where it has no place")]
    OutOfPlace {
        /// The message's name.
        what: &'static str,
    },
    /// Some differences did not apply to what is held.
    #[error(
        "the hub sent differences of objects that this agent does not hold: connecting again, without differences"
    )]
    Unrestorable,
    /// The hub was silent for too long.
    #[error("nothing was heard from the hub for {millis} ms")]
    Silent {
        /// For how long.
        millis: u64,
    },
}

/// The result of a message from the hub.
#[derive(Debug, Default)]
pub struct Reaction {
    /// Services to plan again.
    pub touched: Option<Touched>,
    /// Facts that the hub refused.
    pub refused: Vec<FactKey>,
    /// Facts that the hub took, and had refused before.
    pub taken: Vec<FactKey>,
    /// The hub has room again: nothing waits because of it.
    pub room_again: bool,
    /// Objects that were restored from a difference.
    pub restored: u64,
    /// Objects that are asked for whole.
    pub wanted: u64,
    /// Objects that were not taken, or not whole, by this cluster's own rules.
    pub turned_away: u64,
    /// Complaints to log.
    pub complaints: Vec<String>,
    /// The outcome of the certificate request.
    pub renewed: Option<Result<Box<Renewed>, Box<str>>>,
    /// The session is open; its epoch must be remembered before anything of it is applied.
    pub welcomed: Option<Box<Welcome>>,
}

/// Splits a message's result into services to plan again and everything else.
pub fn touched_by(mut reaction: Result<Reaction, Violation>) -> (Touched, Result<Reaction, Violation>) {
    let touched = reaction
        .as_mut()
        .ok()
        .and_then(|reaction| reaction.touched.take());
    (touched.unwrap_or(Touched::none()), reaction)
}

/// Decoder of one object in the hub's message; decoding is wire conversion and happens before the machine.
pub type DecodeItem = fn(bytes::Bytes) -> Option<Told>;

/// The machine of one session.
#[derive(Debug)]
pub struct Session {
    open: Option<Limits>,
    heard_at: u64,
    said_at: u64,
    pongs: VecDeque<u64>,
    interest: Interest,
    untold: InterestChange,
    /// Objects to ask for.
    unasked: BTreeSet<DesiredKey>,
    renewal: Renewal,
    known_epoch: Option<Epoch>,
    /// The wall clock when it began.
    clock: UnixMillis,
    applied: ToldApplied,
}

/// The position last reported to the hub.
#[derive(Debug, Default)]
struct ToldApplied {
    at: u64,
    changes: u64,
    /// There are news that wait for their time.
    has_news: bool,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    /// The epoch in which the hub admitted the session: positions of another one are none of it.
    epoch: Epoch,
    heartbeat_interval: u64,
    silence_max: u64,
    unacknowledged_max: usize,
    /// The hub wants the applied position.
    wants_applied: bool,
    /// The hub certifies keys.
    certifies: bool,
}

/// A request for a certificate.
#[derive(Debug, Default, PartialEq, Eq)]
enum Renewal {
    /// None is open.
    #[default]
    Not,
    /// It has to be sent.
    Wanted(Bytes),
    /// It was sent.
    Asked,
}

/// Namespaces that came or went and were not told yet.
#[derive(Debug, Default)]
struct InterestChange {
    added: BTreeSet<Box<str>>,
    removed: BTreeSet<Box<str>>,
}

/// Inputs of a new session.
#[derive(Debug)]
pub struct Beginning<'a> {
    /// The constant part of the Hello.
    pub introduction: &'a Introduction,
    /// The highest epoch that is known.
    pub known_epoch: Option<Epoch>,
    /// The namespaces that are there.
    pub interest: Interest,
    /// The clusters whose objects stand in this one.
    pub sources_held: BTreeSet<ClusterId>,
    /// The facts.
    pub outbox: &'a mut Outbox,
    /// The desired state.
    pub desired: &'a mut Desired,
    /// The time, in milliseconds.
    pub now: u64,
    /// The wall clock.
    pub clock: UnixMillis,
}

impl Session {
    /// A session that begins with the returned Hello.
    pub fn begin(beginning: Beginning<'_>) -> (Self, Hello) {
        let Beginning {
            introduction,
            known_epoch,
            interest,
            sources_held,
            outbox,
            desired,
            now,
            clock,
        } = beginning;
        outbox.begin_session();
        // The desired state must know the interest before its cursor says anything about it.
        desired.interest(&interest);
        let differences = if desired.takes_differences() {
            FEATURE_DIFFERENCES
        } else {
            0
        };
        let hello = Hello {
            protocol_version: PROTOCOL_VERSION,
            features: FEATURE_APPLIED
                | FEATURE_ARRIVALS
                | FEATURE_REPORT_AGAIN
                | FEATURE_RENEWAL
                | differences,
            agent_version: introduction.agent_version.clone(),
            highest_epoch: known_epoch,
            cluster_fingerprint: introduction.cluster_fingerprint.clone(),
            instance: introduction.instance.clone(),
            lease_transitions: introduction.lease_transitions,
            cursor: desired.cursor(),
            exports_digest: outbox.digest(ListingGroup::Exports),
            properties_digest: outbox.digest(ListingGroup::Properties),
            sources_held,
            interest: interest.clone(),
        };
        let session = Self {
            open: None,
            heard_at: now,
            said_at: now,
            pongs: VecDeque::new(),
            interest,
            untold: InterestChange::default(),
            unasked: BTreeSet::new(),
            renewal: Renewal::default(),
            known_epoch,
            clock,
            applied: ToldApplied {
                at: now,
                ..ToldApplied::default()
            },
        };
        (session, hello)
    }

    /// The existing namespaces: changes since are sent to the hub and to `desired`, under the next `generation` of the
    /// interest. An interest in all of them never changes.
    pub fn follow_namespaces(
        &mut self,
        present: BTreeSet<Box<str>>,
        generation: &mut u64,
        desired: &mut Desired,
    ) {
        let Namespaces::Only(known) = &self.interest.namespaces else {
            return;
        };
        if present == *known {
            return;
        }
        *generation += 1;
        for came in present.difference(known) {
            desired.namespace_added(*generation, came);
            self.untold.removed.remove(came);
            self.untold.added.insert(came.clone());
        }
        for went in known.difference(&present) {
            desired.namespace_removed(went);
            self.untold.added.remove(went);
            self.untold.removed.insert(went.clone());
        }
        self.interest = Interest {
            generation: *generation,
            namespaces: Namespaces::Only(present),
        };
    }

    /// Takes a message of the hub.
    pub fn on_message(
        &mut self,
        message: HubMessage,
        outbox: &mut Outbox,
        desired: &mut Desired,
        decode: DecodeItem,
        now: u64,
    ) -> Result<Reaction, Violation> {
        self.heard_at = now;
        self.check_epoch(&message)?;
        let mut reaction = Reaction::default();
        match message {
            HubMessage::Welcome(welcome) => {
                self.on_welcome(&welcome)?;
                outbox.hub_is(&welcome.hub_version);
                outbox.welcome(welcome.list_exports, welcome.list_properties);
                desired.welcome(&welcome);
                reaction.welcomed = Some(welcome);
                reaction.room_again = true;
            }
            HubMessage::Ping(nonce) => self.pongs.push_back(nonce),
            other if self.open.is_none() => return Err(Violation::OutOfPlace { what: name(&other) }),
            HubMessage::Acknowledged(sequence) => reaction.taken = outbox.acknowledge(sequence),
            HubMessage::Refused(refused) => reaction.refused.extend(outbox.refuse(&refused)),
            HubMessage::ReportAgain => {
                outbox.report_again();
                reaction.room_again = true;
            }
            HubMessage::RenewalAnswered(answer) => {
                if std::mem::take(&mut self.renewal) != Renewal::Asked {
                    let what = "an answer to no request";
                    return Err(Violation::OutOfPlace { what });
                }
                reaction.renewed = Some(answer);
            }
            HubMessage::Desired {
                interest_generation,
                items,
            } => {
                let items = items.into_iter().filter_map(decode);
                reaction.touched = Some(desired.items(interest_generation, items));
                self.on_differences(desired, &mut reaction)?;
            }
            HubMessage::SnapshotBegin { epoch, .. } => desired.snapshot_begin(epoch),
            HubMessage::SnapshotComplete(up_to) => reaction.touched = Some(desired.snapshot_complete(&up_to)),
            HubMessage::NamespaceComplete {
                interest_generation,
                namespaces,
            } => {
                reaction.touched = Some(desired.namespace_complete(interest_generation, namespaces));
            }
            HubMessage::SourcesChanged(sources) => {
                reaction.touched = Some(desired.sources_changed(&sources));
            }
            HubMessage::ExportsArrived(groups) => {
                reaction.touched = Some(desired.exports_arrived(groups));
            }
            HubMessage::UpTo(up_to) | HubMessage::Heartbeat(Some(up_to)) => {
                desired.up_to(&up_to);
            }
            HubMessage::Heartbeat(None) => {}
        }
        Ok(reaction)
    }

    /// Handles the differences of a message.
    fn on_differences(&mut self, desired: &mut Desired, reaction: &mut Reaction) -> Result<(), Violation> {
        let news = desired.take_news();
        if news.refused {
            return Err(Violation::Unrestorable);
        }
        (reaction.restored, reaction.wanted) = (news.restored, news.wanted.len() as u64);
        (reaction.turned_away, reaction.complaints) = (news.turned_away, news.complaints);
        self.unasked.extend(news.wanted);
        // Objects sent meanwhile need not be requested: so the requests never exceed the wanted ones.
        self.unasked.retain(|key| desired.wants(key));
        Ok(())
    }

    /// A position of another epoch would be resumed there later, and everything before it would be missing.
    fn check_epoch(&self, message: &HubMessage) -> Result<(), Violation> {
        let told = match message {
            HubMessage::SnapshotBegin { epoch, .. } => *epoch,
            HubMessage::UpTo(up_to)
            | HubMessage::Heartbeat(Some(up_to))
            | HubMessage::SnapshotComplete(up_to) => up_to.cursor.epoch,
            _ => return Ok(()),
        };
        match self.open {
            Some(Limits { epoch: opened, .. }) if opened != told => {
                Err(Violation::ForeignEpoch { told, opened })
            }
            _ => Ok(()),
        }
    }

    fn on_welcome(&mut self, welcome: &Welcome) -> Result<(), Violation> {
        if self.open.is_some() {
            return Err(Violation::OutOfPlace {
                what: "a second Welcome",
            });
        }
        if welcome.protocol_version.abs_diff(PROTOCOL_VERSION) > 1 {
            return Err(Violation::Version {
                theirs: welcome.protocol_version,
            });
        }
        if let Some(known) = self.known_epoch.filter(|known| welcome.epoch < *known) {
            return Err(Violation::OlderEpoch {
                offered: welcome.epoch,
                known,
            });
        }
        let latest = self.clock.0.saturating_add(EPOCH_AHEAD_MAX_MILLIS);
        if self.known_epoch.is_none_or(|known| known < welcome.epoch) && welcome.epoch.created_at.0 > latest {
            return Err(Violation::EpochAhead {
                offered: welcome.epoch,
                clock: self.clock,
            });
        }
        self.open = Some(Limits {
            epoch: welcome.epoch,
            heartbeat_interval: u64::from(welcome.heartbeat_interval_millis).max(100),
            silence_max: u64::from(welcome.silence_max_millis).max(1_000),
            unacknowledged_max: welcome.unacknowledged_max.max(1) as usize,
            wants_applied: welcome.features & FEATURE_APPLIED != 0,
            certifies: welcome.features & FEATURE_RENEWAL != 0,
        });
        Ok(())
    }

    /// The next thing to say, if there is any; call it until it returns `None`. `reach`: the applied position; `leads`:
    /// the cluster's Lease is this agent's now.
    pub fn poll(
        &mut self,
        outbox: &mut Outbox,
        (reach, leads): (Reach, bool),
        now: u64,
    ) -> Option<AgentMessage> {
        let message = match self.pongs.pop_front() {
            Some(nonce) => AgentMessage::Pong(Pong {
                nonce,
                leads: Some(leads),
            }),
            None => self.next_message(outbox, reach, now)?,
        };
        self.said_at = now;
        Some(message)
    }

    fn next_message(&mut self, outbox: &mut Outbox, reach: Reach, now: u64) -> Option<AgentMessage> {
        let limits = self.open?;
        if !self.untold.added.is_empty() || !self.untold.removed.is_empty() {
            let InterestChange { added, removed } = std::mem::take(&mut self.untold);
            return Some(AgentMessage::InterestChanged {
                generation: self.interest.generation,
                added,
                removed,
            });
        }
        if !self.unasked.is_empty() {
            return Some(AgentMessage::ItemsWanted(std::mem::take(&mut self.unasked)));
        }
        if let Renewal::Wanted(request) = &mut self.renewal {
            let request = std::mem::take(request);
            self.renewal = Renewal::Asked;
            return Some(AgentMessage::RenewalRequested(request));
        }
        let observations = outbox.next_batch(OBSERVATIONS_BYTES, limits.unacknowledged_max);
        if !observations.is_empty() {
            return Some(AgentMessage::Observations(observations));
        }
        if limits.wants_applied {
            self.applied.has_news = reach.changes != self.applied.changes;
        }
        if now < self.heartbeat_due(limits) {
            return None;
        }
        self.applied = ToldApplied {
            at: now,
            changes: reach.changes,
            has_news: false,
        };
        Some(AgentMessage::Heartbeat(
            limits.wants_applied.then_some(reach.applied),
        ))
    }

    /// A hub that wants the applied position receives it in every interval, and news sooner.
    fn heartbeat_due(&self, limits: Limits) -> u64 {
        match (limits.wants_applied, self.applied.has_news) {
            (false, _) => self.said_at + limits.heartbeat_interval,
            (true, false) => self.applied.at + limits.heartbeat_interval,
            (true, true) => self.applied.at + NEWS_INTERVAL_MILLIS.min(limits.heartbeat_interval),
        }
    }

    /// Time at which to look again though nothing happens.
    pub fn next_deadline(&self) -> u64 {
        match self.open {
            None => self.heard_at + WELCOME_WAIT_MILLIS,
            Some(limits) => self.heartbeat_due(limits).min(self.heard_at + limits.silence_max),
        }
    }

    /// Fails if the stream is to be given up.
    pub fn check_silence(&self, now: u64) -> Result<(), Violation> {
        let bound = self.open.map_or(WELCOME_WAIT_MILLIS, |limits| limits.silence_max);
        let millis = now.saturating_sub(self.heard_at);
        if millis >= bound {
            Err(Violation::Silent { millis })
        } else {
            Ok(())
        }
    }

    /// A certificate is wanted: the signing request. False: this session requests none, because it is not open, its hub
    /// signs no certificates, or another request is under way.
    pub fn ask_for_certificate(&mut self, request: Bytes) -> bool {
        let certifies = self.open.is_some_and(|limits| limits.certifies);
        let asks = certifies && self.renewal == Renewal::Not;
        if asks {
            self.renewal = Renewal::Wanted(request);
        }
        asks
    }

    /// Returns true if the hub has admitted this session.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }
}

fn name(message: &HubMessage) -> &'static str {
    match message {
        HubMessage::Welcome(_) => "Welcome",
        HubMessage::Acknowledged(_) => "Acknowledged",
        HubMessage::Refused(_) => "Refused",
        HubMessage::ReportAgain => "ReportAgain",
        HubMessage::Desired { .. } => "Desired",
        HubMessage::SnapshotBegin { .. } => "SnapshotBegin",
        HubMessage::SnapshotComplete(_) => "SnapshotComplete",
        HubMessage::NamespaceComplete { .. } => "NamespaceComplete",
        HubMessage::SourcesChanged(_) => "SourcesChanged",
        HubMessage::UpTo(_) => "UpTo",
        HubMessage::Heartbeat(_) => "Heartbeat",
        HubMessage::Ping(_) => "Ping",
        HubMessage::RenewalAnswered(_) => "RenewalAnswered",
        HubMessage::ExportsArrived(_) => "ExportsArrived",
    }
}

#[cfg(test)]
mod tests;

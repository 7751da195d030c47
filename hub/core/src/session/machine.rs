//! One member's session as a pure machine: what its messages mean, and what to say next.
//! It owns the protocol's order, listings under way and what is waiting to be sent. It never reads a clock,
//! touches a socket or the log: time comes as an argument, effects go out as values.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use bytes::Bytes;
use model::{
    ClusterId, Cursor, Epoch, Fact, FactKey, ListingGroup, ServiceKey,
    fact::MEMBER_FACTS_MAX,
    sync::{
        AgentMessage, Applied, FEATURE_APPLIED, FEATURE_DIFFERENCES, Hello, HubMessage, Namespaces,
        Observation, ObservedItem, PROTOCOL_VERSION, Pong, Refused, Renewed, UpTo, Welcome,
    },
};

use self::{arriving::Arriving, told_sources::ToldSources};
use super::{
    applied::{Following, Standing},
    renewals::{Asked, Renewals},
};
use crate::{
    push::Push,
    view::View,
    writer::request::{Admission, HEARTBEAT_INTERVAL_MILLIS, SILENCE_MAX_MILLIS, UNACKNOWLEDGED_MAX},
};

/// Silence of the hub before a heartbeat of the agent that it answers, in milliseconds.
const ANSWER_AFTER_MILLIS: u64 = HEARTBEAT_INTERVAL_MILLIS / 2;
/// The hub's own silence after which it says something unasked: later than an answer, which costs less.
pub const SAY_UNASKED_MILLIS: u64 = HEARTBEAT_INTERVAL_MILLIS + ANSWER_AFTER_MILLIS;
/// Bytes of refusals that may wait for a member before reading stops. Its observations sent until then may be refused
/// on top, which its unacknowledged limit bounds.
pub const WAITING_BYTES_MAX: usize = 1024 * 1024;
/// Time that a member may take for its Hello, in milliseconds.
pub const HELLO_WAIT_MILLIS: u64 = 10_000;

/// An effect for the shell to perform.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Ask the writer for admission.
    Admit(Box<Hello>),
    /// Hand facts to the writer, in this order.
    Observe(Vec<Observation>),
    /// Tell the writer the withdrawals of a message that is handed over in parts.
    Withdraw(BTreeSet<ServiceKey>),
    /// Hand the end of a listing to the writer: what it saw, by key.
    CompleteListing {
        /// The observation's sequence number.
        sequence: u64,
        /// The group listed.
        group: ListingGroup,
        /// Every key that was reported and not removed since the listing began.
        seen: Arc<BTreeSet<FactKey>>,
    },
    /// The agent says that it shuts down.
    Goodbye,
    /// The answer to a ping arrived.
    Pong(Pong),
    /// The member reports its position: the time in milliseconds that each newly applied change took.
    Applied(Vec<u64>),
    /// The member asks for so many objects whole.
    Wanted(usize),
    /// The member asks for a certificate: the signing request.
    Certify(Bytes),
}

/// Why a session ends, by our doing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The first message was not Hello, or a second Hello came.
    #[error("the first message of a session, and only the first, is Hello")]
    HelloOutOfPlace,
    /// Something came before Welcome.
    #[error("nothing may be sent between Hello and Welcome")]
    BeforeWelcome,
    /// The versions do not overlap.
    #[error(
        "protocol version {theirs} is not served here; this hub speaks {PROTOCOL_VERSION} and its neighbours: upgrade the older side"
    )]
    Version {
        /// The agent's protocol version.
        theirs: u32,
    },
    /// A sequence number was not the next.
    #[error("observation {got} follows {last}: sequence numbers grow by one")]
    Sequence {
        /// The last one.
        last: u64,
        /// The one that came.
        got: u64,
    },
    /// Too much is unacknowledged.
    #[error("more than {UNACKNOWLEDGED_MAX} observations are unacknowledged")]
    TooManyUnacknowledged,
    /// It says to have applied what it was not told.
    #[error("revision {} of epoch {} was said to be applied, and was not told in this session", .0.revision, .0.epoch)]
    AppliedUntold(Cursor),
    /// The peer was silent for too long.
    #[error("nothing was heard for {SILENCE_MAX_MILLIS} ms")]
    Silent,
    /// It reads nothing of what it is sent.
    #[error(
        "nothing of what it is told was taken for {SILENCE_MAX_MILLIS} ms, and more than {WAITING_BYTES_MAX} bytes \
         of refusals wait for it"
    )]
    NotReading,
    /// An interest is too large.
    #[error("an interest has at most {} namespaces", model::sync::INTEREST_NAMESPACES_MAX)]
    InterestTooLarge,
    /// It asks for objects whole, and was sent no differences.
    #[error(
        "objects were asked for whole by an agent that does not take differences: its Hello lacks the feature bit {FEATURE_DIFFERENCES}"
    )]
    WantedWithoutDifferences,
    /// It asks for a certificate while it waits for one.
    #[error("a certificate was asked for before the request before was answered")]
    RenewalTwice,
    /// A listing ended that nobody asked for: taking it as complete would remove what it never had.
    #[error("a listing was completed that was not asked for")]
    ListingNotWanted,
    /// A listing is too large.
    #[error("a listing has at most {MEMBER_FACTS_MAX} facts")]
    ListingTooLarge,
}

/// The machine.
#[derive(Debug)]
pub struct Session {
    member: ClusterId,
    phase: Phase,
    heard_at: u64,
    said_at: u64,
    last_sequence: u64,
    acknowledged: u64,
    acknowledged_said: u64,
    refused: VecDeque<Refused>,
    /// Bytes of `refused`.
    refused_bytes: usize,
    /// There is room again for what was refused for want of it.
    report_again: bool,
    /// The ping to say next: it asks for all before it.
    ping: Option<u64>,
    /// The agent said a heartbeat that was not answered yet.
    asked: bool,
    sources: ToldSources,
    arriving: Arriving,
    listings: Listings,
    renewals: Renewals,
}

#[derive(Debug)]
enum Phase {
    AwaitingHello,
    Admitting(Box<Hello>),
    Open {
        welcome: Option<Box<Welcome>>,
        /// The epoch in which it was opened: positions of another one mean nothing to the member.
        epoch: Epoch,
        push: Box<Push>,
        /// Absent: the agent does not report its position.
        following: Option<Box<Following>>,
        /// The agent takes differences.
        differences: bool,
    },
}

/// The keys seen by the listings under way.
#[derive(Debug, Default)]
struct Listings {
    exports: Option<BTreeSet<FactKey>>,
    properties: Option<BTreeSet<FactKey>>,
}

impl Listings {
    fn of(&mut self, group: ListingGroup) -> &mut Option<BTreeSet<FactKey>> {
        match group {
            ListingGroup::Exports => &mut self.exports,
            ListingGroup::Properties => &mut self.properties,
        }
    }

    fn note(&mut self, fact: &Fact) -> Result<(), Violation> {
        let Some(key) = fact.key() else { return Ok(()) };
        if let Some(seen) = self.of(key.group()) {
            if fact.is_removal() {
                seen.remove(&key);
            } else {
                seen.insert(key);
            }
            if seen.len() > MEMBER_FACTS_MAX {
                return Err(Violation::ListingTooLarge);
            }
        }
        Ok(())
    }
}

impl Session {
    /// A session with a member whose certificate has been checked.
    pub fn new(member: ClusterId, now: u64) -> Self {
        Self {
            member,
            phase: Phase::AwaitingHello,
            heard_at: now,
            said_at: now,
            last_sequence: 0,
            acknowledged: 0,
            acknowledged_said: 0,
            refused: VecDeque::new(),
            refused_bytes: 0,
            report_again: false,
            ping: None,
            asked: false,
            sources: ToldSources::default(),
            arriving: Arriving::default(),
            listings: Listings::default(),
            renewals: Renewals::default(),
        }
    }

    /// Takes a message of the agent.
    pub fn on_message(&mut self, message: AgentMessage, now: u64) -> Result<Vec<Effect>, Violation> {
        self.heard_at = now;
        self.check_order(message.kind())?;
        match (&mut self.phase, message) {
            (Phase::AwaitingHello, AgentMessage::Hello(hello)) => self.on_hello(hello),
            (Phase::AwaitingHello, _) | (_, AgentMessage::Hello(_)) => Err(Violation::HelloOutOfPlace),
            (Phase::Admitting(_), AgentMessage::Heartbeat(_)) => Ok(vec![]),
            (_, AgentMessage::Goodbye) => Ok(vec![Effect::Goodbye]),
            (_, AgentMessage::Pong(pong)) => Ok(vec![Effect::Pong(pong)]),
            (Phase::Admitting(_), _) => Err(Violation::BeforeWelcome),
            (
                Phase::Open {
                    epoch,
                    push,
                    following,
                    ..
                },
                AgentMessage::Heartbeat(applied),
            ) => {
                self.asked = true;
                let Some((following, applied)) = following.as_mut().zip(applied) else {
                    return Ok(vec![]);
                };
                check_told(&applied, *epoch, push)?;
                Ok(vec![Effect::Applied(following.heard(&applied, now))])
            }
            (
                Phase::Open {
                    push, differences, ..
                },
                AgentMessage::ItemsWanted(keys),
            ) => {
                if !*differences {
                    return Err(Violation::WantedWithoutDifferences);
                }
                let wanted = keys.len();
                push.want(keys);
                Ok(vec![Effect::Wanted(wanted)])
            }
            (Phase::Open { .. }, AgentMessage::RenewalRequested(request)) => match self.renewals.asked(now) {
                Asked::Open => Ok(vec![Effect::Certify(request)]),
                Asked::TooOften => Ok(vec![]),
                Asked::Twice => Err(Violation::RenewalTwice),
            },
            (Phase::Open { .. }, AgentMessage::Observations(observations)) => {
                self.on_observations(observations)
            }
            (
                Phase::Open { push, .. },
                AgentMessage::InterestChanged {
                    generation,
                    added,
                    removed,
                },
            ) => {
                push.change_interest(generation, added, &removed);
                let bound = model::sync::INTEREST_NAMESPACES_MAX;
                let fits = push.interest_size().is_none_or(|size| size <= bound);
                fits.then(Vec::new).ok_or(Violation::InterestTooLarge)
            }
        }
    }

    /// Progress of the member's cluster, if its agent reports it.
    pub fn standing(&self) -> Option<Standing> {
        match &self.phase {
            Phase::Open { following, .. } => following.as_ref().map(|following| following.standing()),
            _ => None,
        }
    }

    /// Number of differences sent to the member.
    pub fn differences_sent(&self) -> u64 {
        match &self.phase {
            Phase::Open { push, .. } => push.differences_sent(),
            _ => 0,
        }
    }

    /// The member's interest, once it is admitted.
    pub fn interest(&self) -> Option<&Namespaces> {
        match &self.phase {
            Phase::Open { push, .. } => Some(push.namespaces()),
            _ => None,
        }
    }

    fn on_hello(&mut self, hello: Box<Hello>) -> Result<Vec<Effect>, Violation> {
        if hello.protocol_version.abs_diff(PROTOCOL_VERSION) > 1 {
            return Err(Violation::Version {
                theirs: hello.protocol_version,
            });
        }
        self.phase = Phase::Admitting(hello.clone());
        Ok(vec![Effect::Admit(hello)])
    }

    fn on_observations(&mut self, observations: Vec<Observation>) -> Result<Vec<Effect>, Violation> {
        let mut effects = Vec::new();
        let mut facts = Vec::with_capacity(observations.len());
        for observation in observations {
            let (last, got) = (self.last_sequence, observation.sequence);
            if got != last + 1 {
                return Err(Violation::Sequence { last, got });
            }
            self.last_sequence = got;
            match &observation.item {
                ObservedItem::Fact(fact) => self.listings.note(&fact.fact)?,
                ObservedItem::Invalid(_) => {}
                &ObservedItem::ListingCompleted(group) => {
                    if !facts.is_empty() {
                        effects.push(Effect::Observe(std::mem::take(&mut facts)));
                    }
                    let seen = self
                        .listings
                        .of(group)
                        .take()
                        .ok_or(Violation::ListingNotWanted)?;
                    let seen = Arc::new(seen);
                    effects.push(Effect::CompleteListing {
                        sequence: got,
                        group,
                        seen,
                    });
                    continue;
                }
            }
            facts.push(observation);
        }
        if !facts.is_empty() {
            effects.push(Effect::Observe(facts));
        }
        // Changes that the member has not received yet still take memory here.
        if self.last_sequence - self.acknowledged_said > u64::from(UNACKNOWLEDGED_MAX) {
            return Err(Violation::TooManyUnacknowledged);
        }
        Ok(effects)
    }

    /// The writer admitted the member.
    pub fn on_admitted(&mut self, admission: Admission) {
        let Phase::Admitting(hello) = &self.phase else {
            return;
        };
        let interest = hello.interest.clone();
        let follows = hello.features & FEATURE_APPLIED != 0;
        let differences = hello.features & FEATURE_DIFFERENCES != 0;
        self.arriving = Arriving::of(hello.features, &self.member);
        let push = match admission.resume {
            Some(cursor) => Push::resume(self.member.clone(), interest, cursor),
            None => Push::snapshot(self.member.clone(), interest),
        };
        let push = push
            .in_chunks_of(admission.chunk_bytes)
            .with_differences(differences);
        let wanted = |wanted: bool| wanted.then(BTreeSet::new);
        self.listings = Listings {
            exports: wanted(admission.welcome.list_exports),
            properties: wanted(admission.welcome.list_properties),
        };
        self.phase = Phase::Open {
            epoch: admission.welcome.epoch,
            welcome: Some(Box::new(admission.welcome)),
            push: Box::new(push),
            following: follows.then(Box::default),
            differences,
        };
    }

    /// The writer dealt with everything up to `sequence`, durably.
    pub fn on_acknowledged(&mut self, sequence: u64) {
        self.acknowledged = self.acknowledged.max(sequence);
    }

    /// The writer refused an item.
    pub fn on_refused(&mut self, refused: Refused) {
        self.refused_bytes += bytes_of(&refused);
        self.refused.push_back(refused);
    }

    /// There is room again for what the writer refused for want of it.
    pub fn on_room(&mut self) {
        self.report_again = true;
    }

    /// Sends the outcome of the certificate request.
    pub fn on_certified(&mut self, answer: Result<Box<Renewed>, Box<str>>) {
        self.renewals.answered(answer);
    }

    /// Returns true if the member reads more slowly than it causes messages: nothing more is to be read from it until
    /// it has caught up.
    pub fn is_congested(&self) -> bool {
        self.refused_bytes >= WAITING_BYTES_MAX
    }

    /// Another session claims this member: find out whether this one is alive. Nonces grow; the answer to one
    /// answers all before it, so that only the last of those not said yet is kept.
    pub fn ping(&mut self, nonce: u64) {
        self.ping = Some(nonce);
    }

    /// The next thing to say, if there is any; call it until it returns `None`.
    /// A refusal goes out before the acknowledgement that covers it.
    pub fn poll(&mut self, view: &View, now: u64) -> Option<HubMessage> {
        let asked = std::mem::take(&mut self.asked);
        let message = self.next_message(view, now, asked)?;
        self.said_at = now;
        Some(message)
    }

    fn next_message(&mut self, view: &View, now: u64, asked: bool) -> Option<HubMessage> {
        if let Some(nonce) = self.ping.take() {
            return Some(HubMessage::Ping(nonce));
        }
        let Phase::Open {
            welcome,
            epoch,
            push,
            following,
            ..
        } = &mut self.phase
        else {
            return None;
        };
        if let Some(welcome) = welcome.take() {
            return Some(HubMessage::Welcome(welcome));
        }
        if let Some(refused) = self.refused.pop_front() {
            self.refused_bytes -= bytes_of(&refused);
            return Some(HubMessage::Refused(refused));
        }
        if let Some(answer) = self.renewals.take() {
            return Some(HubMessage::RenewalAnswered(answer));
        }
        // Behind every refusal that it is about.
        if std::mem::take(&mut self.report_again) {
            return Some(HubMessage::ReportAgain);
        }
        if self.acknowledged > self.acknowledged_said {
            self.acknowledged_said = self.acknowledged;
            return Some(HubMessage::Acknowledged(self.acknowledged));
        }
        if view.head().epoch != *epoch {
            // A new epoch began, and the word that ends this session is on its way.
            return None;
        }
        if let Some(sources) = self.sources.due(push, view, now) {
            return Some(sources);
        }
        if let Some(message) = push.next(view) {
            if let (Some(following), Some(changes)) = (following, push.take_told_changes()) {
                following.told(changes);
            }
            return Some(message);
        }
        // Passing over what concerns others may have settled what a source waited for.
        if let Some(sources) = self.sources.due(push, view, now) {
            return Some(sources);
        }
        if let Some(arrived) = self.arriving.take() {
            return Some(arrived);
        }
        let silence = if asked {
            ANSWER_AFTER_MILLIS
        } else {
            SAY_UNASKED_MILLIS
        };
        (now >= self.said_at + silence).then(|| {
            let up_to: Option<UpTo> = push.idle_up_to(view);
            HubMessage::Heartbeat(up_to)
        })
    }

    /// Time of the next look if nothing happens: for a heartbeat, or to give the stream up. `can_say`: false while the
    /// member has not taken the last message, so that no heartbeat is due.
    pub fn next_deadline(&self, can_say: bool) -> u64 {
        match self.phase {
            Phase::AwaitingHello | Phase::Admitting(_) => self.heard_at + HELLO_WAIT_MILLIS,
            Phase::Open { .. } if !can_say => self.heard_at + SILENCE_MAX_MILLIS,
            Phase::Open { .. } => {
                let wait = self.said_at + SAY_UNASKED_MILLIS;
                let wait = self.sources.waiting_until.unwrap_or(wait).min(wait);
                wait.min(self.heard_at + SILENCE_MAX_MILLIS)
            }
        }
    }

    /// Its messages were not read: its silence begins again if the writer is the cause. If it is congested, it lives as
    /// long as it reads what it is sent. Returns its last sign of life.
    pub fn excuse_silence(&mut self, writer_is_behind: bool, now: u64) -> u64 {
        if writer_is_behind {
            self.heard_at = now;
        } else if self.is_congested() {
            self.heard_at = self.heard_at.max(self.said_at);
        }
        self.heard_at
    }

    /// Fails if the stream is to be given up.
    pub fn check_silence(&self, now: u64) -> Result<(), Violation> {
        if now < self.heard_at + SILENCE_MAX_MILLIS {
            return Ok(());
        }
        Err(if self.is_congested() {
            Violation::NotReading
        } else {
            Violation::Silent
        })
    }
}

/// Nobody has applied what it was not told.
fn check_told(applied: &Applied, epoch: Epoch, push: &Push) -> Result<(), Violation> {
    let Some(cursor) = applied.cursor else {
        return Ok(());
    };
    let told = push.told().map(|told| told.revision);
    if cursor.epoch == epoch && Some(cursor.revision) <= told {
        Ok(())
    } else {
        Err(Violation::AppliedUntold(cursor))
    }
}

/// Bytes of a waiting refusal.
fn bytes_of(refused: &Refused) -> usize {
    size_of::<Refused>() + refused.message.len()
}

mod arriving;
mod order;
#[cfg(test)]
pub(super) mod tests;
mod told_sources;

//! Owns: one session's steps between its member, the writer, the log and the view: judge a cursor, queue a request,
//! take an answer, say what is next. It hands out the things that it waits for; its caller waits.
//! Never: waits itself, reads a clock or a socket.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use fold::{Presented, Rejection};
use model::{
    ChainHash, ClusterId, Cursor, KeyFingerprint, SessionId, Signed, advice,
    sync::{AgentMessage, FEATURE_RENEWAL, Hello, HubMessage, Namespaces, Pong, Renewed},
    visible,
};
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info, warn};

use super::{
    certifying::{CertifiedAnswer, Certifying},
    end::{EndCode, SessionEnd},
    machine::{Effect, Session},
    metrics::SyncMetrics,
    pace::Pace,
    reports::{Reporting, Reports},
    unacknowledged::{Unacknowledged, shares},
};
use crate::{
    bounds::Bounds,
    view::View,
    writer::{
        Admission, AdmissionAnswer, AdmitRequest, CursorVerdict, Dealt, HolderAnswer, NotAdmitted, Operated,
        Permit, Pinged, Request, SessionEvent, SessionSink,
    },
};

/// Time for a holder to answer a ping before another session takes over, in milliseconds.
const HOLDER_ANSWER_MILLIS: u64 = 2_000;
/// Number of times that a cursor is judged again after a new epoch; then the member has to connect again.
const JUDGED_MAX: u32 = 3;

/// An actor's pending answer, besides its member and its events.
#[derive(Debug)]
pub enum Awaited {
    /// The chain hash that the log has at this cursor's revision.
    Hash(Cursor),
    /// The writer's answer to the Hello.
    Admission(AdmissionAnswer),
    /// Somebody who signs this request.
    Signature(Bytes),
    /// The writer's word on what was signed.
    Certified(CertifiedAnswer),
    /// The holder of the member. It is given up at that time, in monotonic milliseconds.
    Holder(oneshot::Receiver<HolderAnswer>, u64),
}

/// The outcome.
#[derive(Debug)]
pub enum Answer {
    /// The hash on record, if there is one.
    Hash(Option<ChainHash>),
    /// The writer's answer; `None`: it is gone.
    Admission(Option<Result<Box<Admission>, NotAdmitted>>),
    /// The holder's answer.
    Holder(HolderAnswer),
    /// A certificate, or why there is none.
    Signature(Result<Box<Signed>, Box<str>>),
    /// The outcome of recording it; `None`: the writer is gone.
    Certified(Option<Result<Operated, Rejection>>),
}

/// Progress of the admission.
#[derive(Debug)]
enum Admitting {
    /// No Hello is under way.
    Not,
    /// Its cursor is to be judged.
    Judge(Box<Claim>),
    /// The log was asked for a hash, and was at this position then.
    Hash(Box<Claim>, Cursor),
    /// The writer is to be asked.
    Ask(Box<Claim>, CursorVerdict),
    /// It was asked.
    Asked(Box<Claim>),
    /// The holder is to be pinged.
    Ping(Box<Claim>, SessionId),
    /// It was pinged.
    Pinged(Box<Claim>, SessionId),
}

/// A Hello that wants to be admitted.
#[derive(Debug, Clone)]
struct Claim {
    hello: Hello,
    judged: u32,
    pinged: Option<Pinged>,
}

/// One session.
pub struct SessionActor {
    cluster: ClusterId,
    key: KeyFingerprint,
    presented: Presented,
    machine: Session,
    admitting: Admitting,
    admitted: Option<SessionId>,
    /// Members may ask for certificates.
    certifies: bool,
    certifying: Certifying,
    heard_at: Arc<AtomicU64>,
    /// The agent said that it shuts down.
    goodbye: bool,
    sink: SessionSink,
    effects: VecDeque<Effect>,
    unacknowledged: Unacknowledged,
    /// The messages of it that the writer has.
    with_writer: Unacknowledged,
    pace: Pace,
    pongs: Vec<(u64, oneshot::Sender<HolderAnswer>)>,
    next_nonce: u64,
    bounds: Bounds,
    metrics: SyncMetrics,
    reports: Option<Reports>,
    reporting: Option<Reporting>,
}

impl SessionActor {
    /// A session with a member whose certificate has been checked, and what it will hear from the writer.
    pub fn new(
        cluster: ClusterId,
        key: KeyFingerprint,
        bounds: Bounds,
        metrics: SyncMetrics,
        now: u64,
    ) -> (Self, mpsc::UnboundedReceiver<SessionEvent>) {
        let (sender, events) = mpsc::unbounded_channel();
        let heard_at = Arc::new(AtomicU64::new(now));
        let sink = SessionSink {
            cluster: cluster.clone(),
            events: sender,
            heard_at: heard_at.clone(),
        };
        let actor = Self {
            machine: Session::new(cluster.clone(), now),
            cluster,
            key,
            presented: Presented::default(),
            admitting: Admitting::Not,
            admitted: None,
            certifies: false,
            certifying: Certifying::default(),
            heard_at,
            goodbye: false,
            sink,
            effects: VecDeque::new(),
            unacknowledged: Unacknowledged::among(metrics.in_flight()),
            with_writer: Unacknowledged::default(),
            pace: Pace::default(),
            pongs: Vec::new(),
            next_nonce: 0,
            bounds,
            metrics,
            reports: None,
            reporting: None,
        };
        (actor, events)
    }

    /// The same, with what the member says of itself among these reports.
    pub fn reporting_to(self, reports: Reports) -> Self {
        Self {
            reports: Some(reports),
            ..self
        }
    }

    /// The same, with what else the member's certificate says of its key.
    pub fn presenting(self, presented: Presented) -> Self {
        Self { presented, ..self }
    }

    /// The same, with somebody who signs for members that ask for certificates.
    pub fn certifying(self, certifies: bool) -> Self {
        Self { certifies, ..self }
    }

    /// Returns true if the writer is behind this member, or still admits it; meanwhile nothing more is read from it.
    fn writer_is_behind(&self) -> bool {
        let admitting = !matches!(self.admitting, Admitting::Not);
        admitting || self.effects.len() >= self.bounds.effects || self.unacknowledged.is_full()
    }

    /// Returns true if more may be read: neither the writer nor the member is behind, and it has not sent more than is
    /// read in that time.
    pub fn may_read(&self, now: u64) -> bool {
        !self.writer_is_behind() && !self.machine.is_congested() && self.pace.due() <= now
    }

    /// Returns true if nothing waits to be judged, queued or answered.
    pub fn is_idle(&self) -> bool {
        matches!(self.admitting, Admitting::Not) && self.effects.is_empty() && self.certifying.is_idle()
    }

    /// The member's interest, once it is admitted.
    pub fn interest(&self) -> Option<&Namespaces> {
        self.machine.interest()
    }

    /// Time of the next look if nothing happens, in monotonic milliseconds. `can_say`: false while the member has not
    /// taken the last message.
    pub fn next_deadline(&self, can_say: bool, now: u64) -> u64 {
        let (deadline, paced) = (self.machine.next_deadline(can_say), self.pace.due());
        if paced > now {
            deadline.min(paced)
        } else {
            deadline
        }
    }

    /// The next thing to say; `None` when there is nothing.
    pub fn poll(&mut self, view: &View, now: u64) -> Option<HubMessage> {
        let reports = self.reports.as_ref();
        if let Some(reports) = reports.filter(|_| self.machine.looks_at_arrivals(now)) {
            self.machine.look_at_arrivals(view, &reports.words(), now);
        }
        let before = self.machine.differences_sent();
        let message = self.machine.poll(view, now)?;
        self.metrics
            .sent(&message, self.machine.differences_sent() - before);
        self.report(now);
        Some(message)
    }

    /// Fails if the member has been silent for too long. Time in which the writer holds it up does not count.
    pub fn check_silence(&mut self, now: u64) -> Result<(), SessionEnd> {
        let heard_at = self
            .machine
            .excuse_silence(self.writer_is_behind() || self.pace.due() > now, now);
        self.heard_at.fetch_max(heard_at, Ordering::Relaxed);
        let silence = self.machine.check_silence(now);
        silence.map_err(|why| SessionEnd::new(EndCode::Unavailable, "silent", why.to_string()))
    }

    /// Takes a message of the member.
    pub fn on_message(&mut self, message: AgentMessage, now: u64) -> Result<(), SessionEnd> {
        self.heard_at.store(now, Ordering::Relaxed);
        self.pace.took(&message, now);
        let effects = self.machine.on_message(message, now);
        for effect in effects.map_err(|violation| self.violation(violation.to_string()))? {
            match effect {
                Effect::Admit(hello) => {
                    self.admitting = Admitting::Judge(Box::new(Claim {
                        hello: *hello,
                        judged: 0,
                        pinged: None,
                    }));
                }
                Effect::Goodbye => {
                    info!("the agent says that it shuts down");
                    self.goodbye = true;
                }
                Effect::Pong(pong) => self.answer_holder_pings(pong),
                Effect::Wanted(items) => self.metrics.wanted(items),
                Effect::Applied(took) => {
                    self.metrics.applied(&took);
                    self.report(now);
                }
                Effect::Observe(observations) => {
                    self.unacknowledged.took(&observations);
                    self.effects.extend(shares(observations));
                }
                Effect::Certify(request) => self.on_certificate_wanted(request),
                Effect::Withdraw(_) | Effect::CompleteListing { .. } => self.effects.push_back(effect),
            }
        }
        Ok(())
    }

    fn on_certificate_wanted(&mut self, request: Bytes) {
        if self.certifies {
            self.certifying = Certifying::Sign(request);
        } else {
            self.on_certified(Err(
                "this hub signs for no members: start it with --join-cert and --join-key".into(),
            ));
        }
    }

    fn on_certified(&mut self, answer: Result<Box<Renewed>, Box<str>>) {
        match &answer {
            Ok(_) => info!("gave the member a certificate for another key"),
            Err(why) => warn!(why, "gave the member no certificate"),
        }
        self.metrics.renewed(answer.is_ok());
        self.machine.on_certified(answer);
    }

    /// The certificate to sign, if the member asked for one.
    pub fn sign(&mut self) -> Option<Awaited> {
        self.certifying.take_request().map(Awaited::Signature)
    }

    /// Reports the member's progress.
    fn report(&mut self, now: u64) {
        if let Some(reporting) = &mut self.reporting {
            reporting.stands(self.machine.standing());
            reporting.says(self.machine.word(now));
        }
    }

    /// The member broke the protocol.
    pub fn violation(&self, what: String) -> SessionEnd {
        self.metrics.rejected("protocol");
        SessionEnd::new(EndCode::InvalidArgument, "protocol", what)
    }

    /// Takes a word of the writer, at this time in monotonic milliseconds.
    pub fn on_event(&mut self, event: SessionEvent, now: u64) -> Result<(), SessionEnd> {
        match event {
            SessionEvent::Acknowledged(Dealt { sequence, deliveries }) => {
                self.pace.gave(deliveries, now);
                self.unacknowledged.acknowledged(sequence);
                self.with_writer.acknowledged(sequence);
                self.machine.on_acknowledged(sequence);
            }
            SessionEvent::Refused(refused) => {
                debug!(sequence = refused.sequence, why = %refused.message, "refused an item");
                self.machine.on_refused(refused);
            }
            SessionEvent::ReportAgain => self.machine.on_room(),
            SessionEvent::Close(why) => return Err(SessionEnd::new(EndCode::Unavailable, "closed", why)),
            SessionEvent::Ping(reply) => {
                self.next_nonce += 1;
                self.machine.ping(self.next_nonce);
                // Sessions that gave up waiting need no answer: only live ones wait here.
                self.pongs.retain(|(_, reply)| !reply.is_closed());
                self.pongs.push((self.next_nonce, reply));
            }
        }
        Ok(())
    }

    fn answer_holder_pings(&mut self, pong: Pong) {
        let answer = match pong.leads {
            Some(true) => HolderAnswer::Leads,
            Some(false) | None => HolderAnswer::Lives,
        };
        for (_, reply) in self.pongs.extract_if(.., |(asked, _)| *asked <= pong.nonce) {
            // The caller may have given up waiting.
            let _ = reply.send(answer);
        }
    }

    /// Judges the cursor of a Hello by what is published, or says that the log must be asked.
    pub fn judge(&mut self, view: &View) -> Option<Awaited> {
        let claim = match std::mem::replace(&mut self.admitting, Admitting::Not) {
            Admitting::Judge(claim) => claim,
            other => {
                self.admitting = other;
                return None;
            }
        };
        let head = view.head();
        let verdict = CursorVerdict::by_head(claim.hello.cursor, head).or_else(|cursor| {
            let recent = view.recent_head(cursor.revision).ok_or(cursor)?;
            Ok(CursorVerdict::by_hash(cursor, Some(recent.hash), head))
        });
        match verdict {
            Ok(verdict) => {
                self.admitting = Admitting::Ask(claim, verdict);
                None
            }
            Err(cursor) => {
                self.admitting = Admitting::Hash(claim, head);
                Some(Awaited::Hash(cursor))
            }
        }
    }

    /// Returns true if [`SessionActor::judge`] has something to do.
    pub fn wants_judgement(&self) -> bool {
        matches!(self.admitting, Admitting::Judge(_))
    }

    /// Returns true if it has something for the writer.
    pub fn wants_permit(&self) -> bool {
        match self.admitting {
            Admitting::Ask(..) | Admitting::Ping(..) => true,
            _ if self.certifying.wants_permit() => true,
            _ => self.admitted.is_some() && !self.effects.is_empty() && !self.with_writer.is_a_share(),
        }
    }

    /// Queues one thing at the writer. Answers outside the events have to be awaited.
    pub fn hand_over(&mut self, permit: Permit<'_>, now: u64) -> Option<Awaited> {
        match std::mem::replace(&mut self.admitting, Admitting::Not) {
            Admitting::Ask(claim, cursor) => {
                let request = AdmitRequest {
                    cluster: self.cluster.clone(),
                    key: self.key,
                    presented: self.presented.clone(),
                    hello: claim.hello.clone(),
                    cursor,
                    pinged: claim.pinged,
                };
                self.admitting = Admitting::Asked(claim);
                Some(Awaited::Admission(permit.admit(request, self.sink.clone())))
            }
            Admitting::Ping(claim, holder) => {
                self.admitting = Admitting::Pinged(claim, holder);
                let until = now + HOLDER_ANSWER_MILLIS;
                Some(Awaited::Holder(permit.ping_holder(holder), until))
            }
            other if self.certifying.wants_permit() => {
                self.admitting = other;
                let session = (self.admitted?, &self.cluster);
                let answer = self.certifying.record(permit, session, self.key)?;
                Some(Awaited::Certified(answer))
            }
            other => {
                self.admitting = other;
                if let Some(request) = self.next_request() {
                    permit.send(request);
                }
                None
            }
        }
    }

    fn next_request(&mut self) -> Option<Request> {
        let (session, cluster) = (self.admitted?, self.cluster.clone());
        match self.effects.pop_front()? {
            Effect::Observe(observations) => {
                self.with_writer.took(&observations);
                Some(Request::Observe {
                    session,
                    cluster,
                    observations,
                })
            }
            Effect::Withdraw(services) => Some(Request::Withdraw {
                session,
                cluster,
                services,
            }),
            Effect::CompleteListing {
                sequence,
                group,
                seen,
            } => Some(Request::CompleteListing {
                session,
                cluster,
                sequence,
                group,
                seen,
            }),
            // None of these waits for the writer here.
            _ => None,
        }
    }

    /// Takes what came of what was waited for.
    pub fn on_answer(&mut self, answer: Answer) -> Result<(), SessionEnd> {
        let certified = match answer {
            Answer::Signature(signed) => self.certifying.signed(signed),
            Answer::Certified(outcome) => self.certifying.recorded(outcome),
            admission => return self.on_admission_answer(admission),
        };
        if let Some(answer) = certified {
            self.on_certified(answer);
        }
        Ok(())
    }

    fn on_admission_answer(&mut self, answer: Answer) -> Result<(), SessionEnd> {
        match (std::mem::replace(&mut self.admitting, Admitting::Not), answer) {
            (Admitting::Hash(claim, head), Answer::Hash(on_record)) => {
                if let Some(cursor) = claim.hello.cursor {
                    let verdict = CursorVerdict::by_hash(cursor, on_record, head);
                    self.admitting = Admitting::Ask(claim, verdict);
                }
                Ok(())
            }
            (Admitting::Asked(claim), Answer::Admission(answer)) => match answer {
                None => Err(SessionEnd::stopping()),
                Some(Ok(admission)) => {
                    self.on_admitted(*admission, claim.hello.agent_version);
                    Ok(())
                }
                Some(Err(not)) => self.on_not_admitted(claim, not),
            },
            (Admitting::Pinged(mut claim, holder), Answer::Holder(answer)) => {
                claim.pinged = Some(Pinged {
                    session: holder,
                    answer,
                });
                // Two seconds may have passed: what was known of the cursor may be outdated.
                self.admitting = Admitting::Judge(claim);
                Ok(())
            }
            // Nobody answers what was not asked.
            (admitting, _) => {
                self.admitting = admitting;
                Ok(())
            }
        }
    }

    fn on_not_admitted(&mut self, mut claim: Box<Claim>, not: NotAdmitted) -> Result<(), SessionEnd> {
        match &not {
            NotAdmitted::Held(holder)
                if claim.pinged.is_none_or(|pinged| pinged.session != holder.session) =>
            {
                self.admitting = Admitting::Ping(claim, holder.session);
                Ok(())
            }
            NotAdmitted::JudgedBefore if claim.judged < JUDGED_MAX => {
                claim.judged += 1;
                self.admitting = Admitting::Judge(claim);
                Ok(())
            }
            _ => {
                let end = SessionEnd::not_admitted(not, &self.cluster, self.key);
                self.metrics.rejected(end.reason);
                Err(end)
            }
        }
    }

    fn on_admitted(&mut self, mut admission: Admission, agent_version: Box<str>) {
        if self.certifies {
            admission.welcome.features |= FEATURE_RENEWAL;
        }
        let welcome = &admission.welcome;
        info!(
            session = welcome.session.0,
            agent_version = %visible(&agent_version),
            resume = welcome.resume,
            list_exports = welcome.list_exports,
            list_properties = welcome.list_properties,
            "admitted"
        );
        if let Some(unknown) = admission.unknown_sources.first() {
            let names: Vec<&str> = admission.unknown_sources.iter().map(ClusterId::as_str).collect();
            warn!(
                clusters = names.join(","),
                "the cluster holds objects of clusters that are no members here; they stay until those clusters \
                 join, or an operator says that they are gone for good: `{}`",
                advice::member_forget(unknown)
            );
        }
        self.metrics.admitted(welcome.resume);
        self.admitted = Some(welcome.session);
        let reports = self.reports.as_ref();
        self.reporting =
            reports.map(|reports| reports.admitted(self.cluster.clone(), welcome.session, agent_version));
        self.machine.on_admitted(admission);
    }

    /// The last request to the writer when the session is over, if it was ever admitted.
    pub fn farewell(&self) -> Option<Request> {
        Some(Request::Closed {
            session: self.admitted?,
            cluster: self.cluster.clone(),
            heard_at: self.heard_at.load(Ordering::Relaxed),
            goodbye: self.goodbye,
        })
    }
}

mod order;
#[cfg(test)]
mod tests;

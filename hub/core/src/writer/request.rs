//! Owns: what the writer is asked and what it answers: the words that sessions and operators share with it.
//! Never: decides anything, or knows how a question travels.

use std::{collections::BTreeSet, sync::Arc};

use model::{
    ChainHash, ClusterId, Cursor, FactKey, KeyFingerprint, ListingGroup, Revision, ServiceKey, SessionId,
    UnixMillis,
    sync::{Hello, Observation, Refused, Welcome},
};

use fold::{Command, Draft, Presented, Rejection, State};

/// Heartbeat interval of an agent, in milliseconds; the hub answers with a heartbeat of its own, if it has sent nothing
/// meanwhile. Every Welcome states it.
pub const HEARTBEAT_INTERVAL_MILLIS: u64 = 1_000;
/// Silence after which a stream is given up, in milliseconds. Every Welcome states it.
pub const SILENCE_MAX_MILLIS: u64 = 10_000;
/// Observations that a member may have unacknowledged. Every Welcome states it.
pub const UNACKNOWLEDGED_MAX: u32 = 8_192;

/// The term of a hub that leads for ever, as the only one does. Every Welcome and every answer states the term; a hub that
/// takes over from another states a greater one.
pub const TERM: u64 = 1;

/// Names one question of the shell, so that the answer finds its way back.
pub type Token = u64;

/// Says for people what the events of an operator's decision mean in the state on which it is decided; the writer
/// does not know the words.
pub type Describe = fn(&State, &Command, &[Draft]) -> Vec<String>;

/// Something the writer is asked.
#[derive(Debug)]
pub enum Request {
    /// A member introduced itself.
    Admit(Token, Box<AdmitRequest>),
    /// Facts of an admitted session, in order.
    Observe {
        /// The session.
        session: SessionId,
        /// Its cluster.
        cluster: ClusterId,
        /// Its observations.
        observations: Vec<Observation>,
    },
    /// A message follows in several [`Request::Observe`]: all its withdrawals.
    Withdraw {
        /// The session.
        session: SessionId,
        /// Its cluster.
        cluster: ClusterId,
        /// The services whose exports go.
        services: BTreeSet<ServiceKey>,
    },
    /// The end of a listing.
    CompleteListing {
        /// The session.
        session: SessionId,
        /// Its cluster.
        cluster: ClusterId,
        /// The observation's sequence number.
        sequence: u64,
        /// The group listed.
        group: ListingGroup,
        /// The keys that it has.
        seen: Arc<BTreeSet<FactKey>>,
    },
    /// A session ended.
    Closed {
        /// The session.
        session: SessionId,
        /// Its cluster.
        cluster: ClusterId,
        /// Time at which it was last heard, in monotonic milliseconds.
        heard_at: u64,
        /// Its agent said that it shuts down: silence says nothing for a while.
        goodbye: bool,
    },
    /// A member asks over its session that another key of it is admitted.
    Certify(Token, Certification),
    /// An operator's decision; without `confirm` it is only tried.
    Operate {
        /// Token of the answer.
        token: Token,
        /// The decision.
        command: Command,
        /// False: a dry run.
        confirm: bool,
        /// The explanation to return.
        describe: Describe,
    },
}

/// A message that goes out once the batch is durable.
#[derive(Debug)]
pub enum Reply {
    /// A Hello was admitted.
    Admitted(Token, Box<Admission>),
    /// A Hello was not admitted; what to do is in the message.
    NotAdmitted(Token, NotAdmitted),
    /// So much of the session has been dealt with.
    Acknowledged(SessionId, Dealt),
    /// One item was not taken.
    Refused(SessionId, Refused),
    /// There is room again for what was refused for want of it.
    ReportAgain(SessionId),
    /// The session is over: another took its place, or its member is none any more.
    Close(SessionId, String),
    /// An operator's decision, or what a member asked for, was carried out or tried.
    Operated(Token, Result<Operated, Rejection>),
}

/// A certificate that was made for another key of a session's member, and is handed out when that is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certification {
    /// The session.
    pub session: SessionId,
    /// Its cluster.
    pub cluster: ClusterId,
    /// The key that is certified.
    pub key: KeyFingerprint,
    /// The key of the session.
    pub by: KeyFingerprint,
    /// The certificate's issuer, as it names it.
    pub issuer: Box<str>,
    /// Time at which the certificate ends.
    pub not_after: UnixMillis,
}

/// Progress of a session's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dealt {
    /// Everything up to this sequence number.
    pub sequence: u64,
    /// Deliveries that it causes: events, each counted once per session. An upper bound, since an event does not
    /// concern every member.
    pub deliveries: u64,
}

/// A Hello with what the certificate and the log say about it.
#[derive(Debug, Clone)]
pub struct AdmitRequest {
    /// The cluster, from the certificate.
    pub cluster: ClusterId,
    /// The certificate's key.
    pub key: KeyFingerprint,
    /// Other claims of the certificate. The writer adds its own knowledge.
    pub presented: Presented,
    /// The Hello.
    pub hello: Hello,
    /// The log's verdict on the Hello's cursor.
    pub cursor: CursorVerdict,
    /// The holder that was pinged for it, if one was.
    pub pinged: Option<Pinged>,
}

/// A holder that was pinged because another agent wants its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pinged {
    /// Its session.
    pub session: SessionId,
    /// Its answer.
    pub answer: HolderAnswer,
}

/// A holder's answer to a ping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HolderAnswer {
    /// Nothing, in the time that it had.
    Silent,
    /// It is there. It does not say whether it leads, or says no.
    Lives,
    /// It is there, and leads: its cluster's Lease is its own, so that who was elected since is of another cluster.
    Leads,
}

/// The log's verdict on a cursor, and the log's position then. In another epoch the verdict differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorVerdict {
    /// The durable head it was judged under.
    pub under: Cursor,
    /// The finding.
    pub check: CursorCheck,
}

/// The log's finding about a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorCheck {
    /// There is none.
    Absent,
    /// A cursor of another epoch: a snapshot answers it.
    OtherEpoch,
    /// It lies on our history.
    OnHistory,
    /// Our history does not reach back to it: it proves nothing, and a snapshot answers it.
    Forgotten,
    /// A cursor of our epoch, ahead of the head: our log was rewound.
    Ahead,
    /// A cursor of our epoch, with another hash than ours: our log was rewound and continued.
    Foreign,
}

impl CursorVerdict {
    /// Judges a cursor by the durable head alone. The error is a cursor within our history, which only the recorded
    /// hash can judge.
    pub fn by_head(cursor: Option<Cursor>, head: Cursor) -> Result<Self, Cursor> {
        let check = match cursor {
            None => CursorCheck::Absent,
            Some(cursor) if cursor.epoch != head.epoch => CursorCheck::OtherEpoch,
            Some(cursor) if cursor.revision > head.revision => CursorCheck::Ahead,
            Some(cursor) => return Err(cursor),
        };
        Ok(Self { under: head, check })
    }

    /// Judges a cursor that is not ahead of `head` by the hash that the log has at its revision, if it has one.
    pub fn by_hash(cursor: Cursor, on_record: Option<ChainHash>, head: Cursor) -> Self {
        let check = match on_record {
            Some(hash) if hash == cursor.hash => CursorCheck::OnHistory,
            Some(_) => CursorCheck::Foreign,
            None => CursorCheck::Forgotten,
        };
        Self { under: head, check }
    }

    /// Returns true if it still says something where the log is of `epoch`. A missing cursor stays missing.
    pub(super) fn holds_in(&self, epoch: model::Epoch) -> bool {
        self.check == CursorCheck::Absent || self.under.epoch == epoch
    }
}

/// The writer's answer to an admitted Hello.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// The message to the agent.
    pub welcome: Welcome,
    /// The cursor to continue from; `None`: a snapshot.
    pub resume: Option<Cursor>,
    /// Clusters whose objects the member holds, and that neither are members nor were seen to end by this process.
    pub unknown_sources: Vec<ClusterId>,
    /// Bytes of objects after which a message to the member is full.
    pub chunk_bytes: usize,
}

/// Why a Hello was not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAdmitted {
    /// Another session holds the member: ping it, and ask again with what it says.
    Held(Holder),
    /// Its cursor was judged under another epoch: judge it again, and ask again.
    JudgedBefore,
    /// Come again at once: a new epoch has been minted.
    NewEpoch,
    /// No.
    Refused(String),
    /// No: the membership of its key has ended, as the log of this epoch says.
    Ended(String, model::Epoch),
    /// No: another holder has the member, under another key. It is recorded.
    Duplicate(String),
    /// The clusterset is not served.
    NotServing(String),
    /// Its claim about epochs is not believed.
    Doubted(String),
}

/// The session that holds a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub session: SessionId,
    /// The agent's instance.
    pub instance: Box<str>,
    /// It leads in its cluster, and so does, by its own word, the one that came: these are two clusters.
    pub is_copied: bool,
}

/// The outcome of an operator's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operated {
    /// Revision of the event; `None` for a dry run or when there was nothing to do.
    pub revision: Option<Revision>,
    /// The kinds of facts it led or would lead to.
    pub kinds: Vec<&'static str>,
    /// Effects of the decision, for people.
    pub effects: Vec<String>,
    /// The revision that all this is as of.
    pub as_of: Revision,
}

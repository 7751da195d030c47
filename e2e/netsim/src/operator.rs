//! Owns: an operator's machine in the simulated network: it takes one word after the other to the hub, over a connection of
//! its own, and keeps what the hub answers.
//! Never: decides what is said.

use std::{
    cell::{Cell, RefCell},
    fmt,
    rc::Rc,
    sync::Arc,
};

use proto::v1::{self, membership_client::MembershipClient, policy_client::PolicyClient};
use shared::{
    model::ClusterId,
    tls::{HubAddress, HubConnector, LiveCredentials, TlsMetrics, explain},
};
use tokio::sync::Notify;
use tonic::transport::Channel;

use super::{
    network::{HUB_PORT, SimulatedDial},
    program::HUB,
};

/// The name of the machine, and of the operator.
pub(super) const OPERATOR: &str = "operator";
/// Time until a leaving member leaves, in milliseconds: after everything that a seed looks at.
const LEAVES_AFTER: u64 = 3_600_000;

/// One word of an operator.
#[derive(Debug, Clone)]
pub(super) enum Word {
    /// The member is to leave.
    Drain(ClusterId),
    /// It stays after all.
    Stay(ClusterId),
    /// Accepts its withdrawals on hold.
    Release(ClusterId),
    /// This policy, in YAML, is in force.
    Apply(&'static str),
    /// Nothing changes; the members are told.
    List,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drain(cluster) => write!(f, "drain {cluster}"),
            Self::Stay(cluster) => write!(f, "stay {cluster}"),
            Self::Release(cluster) => write!(f, "release {cluster}"),
            Self::Apply(_) => f.write_str("policy apply"),
            Self::List => f.write_str("member list"),
        }
    }
}

/// The hub's answer.
pub(super) type Answer = Result<Vec<v1::MemberState>, String>;

/// State of an operator's machine.
pub(super) struct OperatorMachine {
    pub(super) credentials: Arc<LiveCredentials>,
    word: RefCell<Option<Word>>,
    is_said: Notify,
    answer: Cell<Option<Answer>>,
}

impl OperatorMachine {
    pub(super) fn new(credentials: Arc<LiveCredentials>) -> Rc<Self> {
        Rc::new(Self {
            credentials,
            word: RefCell::default(),
            is_said: Notify::new(),
            answer: Cell::default(),
        })
    }

    /// Has it say this; only one word at a time.
    pub(super) fn say(&self, word: Word) {
        self.word.replace(Some(word));
        self.is_said.notify_one();
    }

    /// The answer, once it is there.
    pub(super) fn answered(&self) -> Option<Answer> {
        self.answer.take()
    }

    async fn connect(&self) -> Result<Channel, tonic::transport::Error> {
        let address = HubAddress {
            host: HUB.into(),
            port: HUB_PORT,
        };
        let dial = Arc::new(SimulatedDial { pace: Arc::default() });
        HubConnector::new(
            vec![address],
            self.credentials.clone(),
            dial,
            TlsMetrics::default(),
        )
        .connect_once()
        .await
    }

    async fn ask(&self, word: Word) -> Answer {
        let channel = self
            .connect()
            .await
            .map_err(|error| explain(&error).unwrap_or_else(|| error.to_string()))?;
        let said = said(channel, word).await;
        said.map_err(|status| status.to_string())
    }
}

/// The life of the machine: it is never down.
pub(super) async fn run_operator(machine: Rc<OperatorMachine>) -> turmoil::Result {
    loop {
        machine.is_said.notified().await;
        let word = machine.word.take();
        if let Some(word) = word {
            let answer = machine.ask(word).await;
            machine.answer.set(Some(answer));
        }
    }
}

async fn said(channel: Channel, word: Word) -> Result<Vec<v1::MemberState>, tonic::Status> {
    let mut members = MembershipClient::new(channel.clone());
    let (clusterset, confirm) = (String::new(), true);
    match word {
        Word::Drain(cluster) => {
            let drain = v1::DrainMemberRequest {
                clusterset,
                cluster: cluster.to_string(),
                confirm,
                after_millis: LEAVES_AFTER,
            };
            members.drain(drain).await?;
        }
        Word::Stay(cluster) => {
            let stay = v1::StayMemberRequest {
                clusterset,
                cluster: cluster.to_string(),
                confirm,
            };
            members.stay(stay).await?;
        }
        Word::Release(cluster) => {
            let release = v1::ReleaseMemberRequest {
                clusterset,
                cluster: cluster.to_string(),
                confirm,
            };
            members.release(release).await?;
        }
        Word::Apply(document) => {
            let apply = v1::ApplyPolicyRequest {
                clusterset,
                document: document.to_owned(),
                confirm,
            };
            PolicyClient::new(channel).apply(apply).await?;
        }
        Word::List => {
            let listed = members.list(v1::ListMembersRequest::default()).await?;
            return Ok(listed.into_inner().members);
        }
    }
    Ok(Vec::new())
}

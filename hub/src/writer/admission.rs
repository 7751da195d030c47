//! Admission: who may open a session, under which epoch, from which cursor.
//! The decisions of DESIGN sections 3 and 6 on fencing, epochs and cursors; membership itself is the fold's.

use shared::model::{
    ClusterId, Cursor, Epoch, FactsDigest, KeyFingerprint, ListingGroup, SessionId,
    sync::{Hello, PROTOCOL_VERSION, Welcome},
};

use super::core::{Core, NotAdmitted, Open, Reply, Token};
use crate::{
    fold::{self, Command},
    session::machine::{Admission, HEARTBEAT_INTERVAL_MILLIS, SILENCE_MAX_MILLIS, UNACKNOWLEDGED_MAX},
};

/// A Hello with what the certificate and the log say about it.
#[derive(Debug, Clone)]
pub struct AdmitRequest {
    /// The cluster, from the certificate.
    pub cluster: ClusterId,
    /// The certificate's key.
    pub key: KeyFingerprint,
    /// The Hello.
    pub hello: Hello,
    /// What the log says of the Hello's cursor.
    pub cursor: CursorCheck,
    /// The holder that did not answer a ping.
    pub silent_holder: Option<SessionId>,
    /// A resumable cursor must not be older than this.
    pub tombstone_floor: shared::model::Revision,
}

/// What the log says of a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CursorCheck {
    /// There is none.
    Absent,
    /// Of another epoch: a snapshot answers it.
    OtherEpoch,
    /// It lies on our history.
    OnHistory,
    /// Ahead of the head or with another hash: our log was rewound.
    Foreign,
}

/// The session that holds a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Its number.
    pub session: SessionId,
    /// The agent's instance.
    pub instance: Box<str>,
}

impl Core {
    pub(super) fn admit(&mut self, token: Token, request: AdmitRequest, now: u64) {
        let reply = match self.try_admit(&request, now) {
            Ok(admission) => Reply::Admitted(token, Box::new(admission)),
            Err(not) => Reply::NotAdmitted(token, not),
        };
        self.batch.replies.push(reply);
    }

    fn try_admit(&mut self, request: &AdmitRequest, now: u64) -> Result<Admission, NotAdmitted> {
        if self.must_mint.is_some() {
            return Err(NotAdmitted::NewEpoch);
        }
        let AdmitRequest {
            cluster, key, hello, ..
        } = request;
        self.check_holder(cluster, hello, request.silent_holder)?;
        let command = Command::Admit {
            cluster: cluster.clone(),
            key: *key,
            cluster_fingerprint: hello.cluster_fingerprint.clone(),
        };
        // Before its epoch and cursor are believed: a cluster that is not admitted must not stop or rewind the hub.
        fold::decide(&self.state, &command)
            .map_err(|rejection| NotAdmitted::Refused(rejection.to_string()))?;
        self.check_epoch(request)?;
        if let Some(why) = &self.not_serving {
            return Err(NotAdmitted::NotServing(why.clone()));
        }
        self.decide_and_apply(&command)
            .map_err(|rejection| NotAdmitted::Refused(rejection.to_string()))?;
        let session = self.open(cluster, hello, now);
        Ok(self.welcome(request, session))
    }

    /// Mints above a rewound log and above members that know a later epoch.
    fn check_epoch(&mut self, request: &AdmitRequest) -> Result<(), NotAdmitted> {
        let ours = self.head.epoch;
        if request.cursor == CursorCheck::Foreign {
            self.must_mint = Some(ours);
            return Err(NotAdmitted::NewEpoch);
        }
        let Some(higher) = request.hello.highest_epoch.filter(|known| *known > ours) else {
            return Ok(());
        };
        if self.options.adopt_epoch || self.state.holds_no_facts() {
            self.must_mint = Some(higher);
            return Err(NotAdmitted::NewEpoch);
        }
        self.stop_serving(not_serving(&request.cluster, ours, higher));
        Ok(())
    }

    /// Nobody is served any more, those neither who came before the one that knew better.
    fn stop_serving(&mut self, why: String) {
        for (_, open) in std::mem::take(&mut self.sessions) {
            self.batch.replies.push(Reply::Close(open.session, why.clone()));
        }
        self.not_serving = Some(why);
    }

    fn check_holder(
        &self,
        cluster: &ClusterId,
        hello: &Hello,
        silent: Option<SessionId>,
    ) -> Result<(), NotAdmitted> {
        let Some(open) = self.sessions.get(cluster) else {
            return Ok(());
        };
        let same_agent = open.instance == hello.instance;
        let newer = hello.lease_transitions > open.lease_transitions;
        if same_agent || newer || silent == Some(open.session) {
            return Ok(());
        }
        Err(NotAdmitted::Held(Holder {
            session: open.session,
            instance: open.instance.clone(),
        }))
    }

    fn open(&mut self, cluster: &ClusterId, hello: &Hello, now: u64) -> SessionId {
        // Recorded time only grows, across restarts too, and so does this: unique without being stored.
        let session = SessionId(self.recorded_at.0.max(self.last_session.0 + 1));
        self.last_session = session;
        let open = Open {
            session,
            instance: hello.instance.clone(),
            lease_transitions: hello.lease_transitions,
            acknowledged: 0,
        };
        if let Some(old) = self.sessions.insert(cluster.clone(), open) {
            let why = format!(
                "session {} of agent instance {} took over",
                session.0, hello.instance
            );
            self.batch.replies.push(Reply::Close(old.session, why));
        }
        self.heard.heard(cluster, now);
        session
    }

    fn welcome(&mut self, request: &AdmitRequest, session: SessionId) -> Admission {
        let AdmitRequest { cluster, hello, .. } = request;
        let matches = |digest: Option<FactsDigest>, group| {
            digest.is_some() && digest == self.state.facts_digest(cluster, group)
        };
        let exports_match = matches(hello.exports_digest, ListingGroup::Exports);
        let properties_match = matches(hello.properties_digest, ListingGroup::Properties);
        if exports_match {
            self.mark_listed(cluster);
        }
        let resume = hello.cursor.filter(|cursor| {
            request.cursor == CursorCheck::OnHistory && cursor.revision >= request.tombstone_floor
        });
        let welcome = Welcome {
            protocol_version: PROTOCOL_VERSION,
            features: 0,
            hub_version: self.options.hub_version.clone(),
            hub: self.options.hub.clone(),
            epoch: self.head.epoch,
            resume: resume.is_some(),
            list_exports: !exports_match,
            list_properties: !properties_match,
            session,
            incarnation: self.state.incarnation(cluster),
            heartbeat_interval_millis: HEARTBEAT_INTERVAL_MILLIS as u32,
            silence_max_millis: SILENCE_MAX_MILLIS as u32,
            unacknowledged_max: UNACKNOWLEDGED_MAX,
        };
        let unknown = |cluster: &&ClusterId| self.state.member(cluster).is_none();
        Admission {
            welcome,
            resume,
            unknown_sources: hello.sources_held.iter().filter(unknown).cloned().collect(),
        }
    }

    /// The new epoch has begun: positions start anew, sessions come again.
    pub fn epoch_begun(&mut self, head: Cursor) {
        self.must_mint = None;
        self.head = head;
        self.state.begin_epoch();
        self.listed.clear();
        self.sources_changed = true;
        for (_, open) in std::mem::take(&mut self.sessions) {
            self.batch.replies.push(Reply::Close(
                open.session,
                "a new epoch began: connect again".into(),
            ));
        }
    }
}

fn not_serving(cluster: &ClusterId, ours: Epoch, higher: Epoch) -> String {
    format!(
        "cluster {cluster} knows epoch {higher}, this hub's log is of the older epoch {ours} and holds facts: \
         another hub may be serving this clusterset. Stop that hub, or start this one with --adopt-epoch if \
         it is to take over"
    )
}

#[cfg(test)]
mod tests {
    use shared::model::{UnixMillis, sync::Interest};

    use super::*;
    use crate::{
        fold::State,
        writer::{
            Options,
            core::{Batch, Request},
        },
    };

    const OURS: u64 = 100;
    const KEY: KeyFingerprint = KeyFingerprint([1; 32]);

    fn epoch(number: u64) -> Epoch {
        Epoch {
            created_at: UnixMillis(number),
            random: 0,
        }
    }

    fn id(name: &str) -> ClusterId {
        ClusterId::new(name).expect("a cluster id")
    }

    fn core() -> Core {
        let head = Cursor {
            epoch: epoch(OURS),
            ..Cursor::default()
        };
        let options = Options {
            hub: "hub".into(),
            hub_version: "0".into(),
            adopt_epoch: false,
        };
        Core::new(State::new(), head, UnixMillis(1), options, 0)
    }

    /// A Hello of a cluster that knows this epoch.
    fn hello(cluster: &str, known: Option<u64>, cursor: CursorCheck) -> AdmitRequest {
        AdmitRequest {
            cluster: id(cluster),
            key: KEY,
            hello: Hello {
                protocol_version: PROTOCOL_VERSION,
                features: 0,
                agent_version: "0".into(),
                highest_epoch: known.map(epoch),
                cluster_fingerprint: format!("uid-of-{cluster}").into(),
                instance: format!("instance-of-{cluster}").into(),
                lease_transitions: 1,
                cursor: None,
                exports_digest: None,
                properties_digest: None,
                sources_held: Default::default(),
                interest: Interest::default(),
            },
            cursor,
            silent_holder: None,
            tombstone_floor: shared::model::Revision(0),
        }
    }

    fn handle(core: &mut Core, request: Request) -> Batch {
        core.handle(request, UnixMillis(2), 1);
        core.take_batch()
    }

    fn admit(core: &mut Core, request: AdmitRequest) -> Batch {
        handle(core, Request::Admit(1, Box::new(request)))
    }

    /// A health is a fact: the log is not empty after it.
    fn with_a_fact(core: &mut Core, cluster: &str) {
        let health = shared::model::Health {
            kubernetes_version: "v1".into(),
            control_plane: shared::model::ControlPlane::Ready,
            failed_checks: Vec::new(),
        };
        let fact = shared::model::Fact::HealthReported(std::sync::Arc::new(health));
        let session = core.sessions[&id(cluster)].session;
        let observations = vec![shared::model::sync::Observation {
            sequence: 1,
            item: shared::model::sync::ObservedItem::Fact(shared::wire::encode_fact(&fact)),
        }];
        let cluster = id(cluster);
        handle(
            core,
            Request::Observe {
                session,
                cluster,
                observations,
            },
        );
        assert!(!core.state.holds_no_facts());
    }

    #[test]
    fn a_later_epoch_ends_the_sessions_of_those_who_did_not_know_it() {
        let mut core = core();
        admit(&mut core, hello("east", None, CursorCheck::Absent));
        with_a_fact(&mut core, "east");
        let session = core.sessions[&id("east")].session;
        let batch = admit(&mut core, hello("west", Some(OURS + 1), CursorCheck::Absent));
        let closed = |reply: &Reply| matches!(reply, Reply::Close(of, why) if *of == session && why.contains("--adopt-epoch"));
        assert!(batch.replies.iter().any(closed), "{:?}", batch.replies);
        assert!(core.not_serving().is_some() && core.sessions.is_empty());
        // Nothing more is recorded: whoever is silent now was sent away.
        core.tick(UnixMillis(100_000), 100_000, []);
        assert!(core.take_batch().payloads.is_empty());
        let batch = admit(&mut core, hello("east", None, CursorCheck::Absent));
        let refused = |reply: &Reply| matches!(reply, Reply::NotAdmitted(_, NotAdmitted::NotServing(_)));
        assert!(batch.replies.iter().any(refused), "{:?}", batch.replies);
    }

    #[test]
    fn who_is_not_admitted_neither_stops_nor_rewinds_the_hub() {
        let mut core = core();
        admit(&mut core, hello("east", None, CursorCheck::Absent));
        with_a_fact(&mut core, "east");
        admit(&mut core, hello("west", None, CursorCheck::Absent));
        let evict = Command::Evict {
            cluster: id("west"),
            operator: "alice".into(),
        };
        handle(
            &mut core,
            Request::Operate {
                token: 2,
                command: evict,
                confirm: true,
            },
        );
        for request in [
            hello("west", Some(OURS + 1), CursorCheck::Absent),
            hello("west", None, CursorCheck::Foreign),
        ] {
            let batch = admit(&mut core, request);
            let refused = |reply: &Reply| matches!(reply, Reply::NotAdmitted(_, NotAdmitted::Refused(_)));
            assert!(batch.replies.iter().any(refused), "{:?}", batch.replies);
            assert!(core.not_serving().is_none() && core.must_mint().is_none());
        }
        assert!(core.sessions.contains_key(&id("east")));
    }
}

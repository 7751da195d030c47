//! Admission: who may open a session, under which epoch, from which cursor.
//! The decisions of docs/design.md, sections 3 and 6 on fencing, epochs and cursors; membership itself is the fold's.

use std::sync::Arc;

use std::collections::BTreeSet;

use model::{
    ClusterId, Cursor, Epoch, FactsDigest, KeyFingerprint, ListingGroup, SessionId, UnixMillis, advice,
    sync::{
        FEATURE_APPLIED, FEATURE_DIFFERENCES, FEATURE_REPORT_AGAIN, Hello, HubAddress, PROTOCOL_VERSION,
        Welcome,
    },
};

use super::{
    claims::{self, Witness},
    connectivity::SUSPECT_AFTER_MILLIS,
    core::{Core, Open},
    request::{
        Admission, AdmitRequest, CursorCheck, HEARTBEAT_INTERVAL_MILLIS, Holder, HolderAnswer, NotAdmitted,
        Reply, SILENCE_MAX_MILLIS, Token, UNACKNOWLEDGED_MAX,
    },
    waiting::Waiting,
};
use fold::{self, AdmissionRefusal, Command, Connectivity, Presented, Rejection, State};

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
        let member = self.state.current_member(cluster);
        let key_is_new = member.is_some_and(|member| !member.keys().contains_key(key));
        let command = Command::Admit {
            cluster: cluster.clone(),
            key: *key,
            cluster_fingerprint: hello.cluster_fingerprint.clone(),
            presented: Presented {
                // As the handshake did: what the log was told by a clock that was ahead ends no certificate.
                at: self.clock,
                displaces: self.displaced(request),
                ..request.presented.clone()
            },
        };
        // Before its epoch and cursor are believed: a cluster that is not admitted must not stop or rewind the hub, nor
        // have a holder pinged, whether its key is unknown or another cluster's.
        let epoch = self.head.epoch;
        let drafts = fold::decide(&self.state, &command).map_err(|rejection| refused(&rejection, epoch))?;
        self.check_holder(request, key_is_new, now)?;
        if self.room.refuses_to_admit(&drafts) {
            return Err(NotAdmitted::NotServing(no_room(cluster)));
        }
        self.check_epoch(request, now)?;
        if let Some(why) = &self.not_serving {
            return Err(NotAdmitted::NotServing(why.clone()));
        }
        self.decide_and_apply(&command)
            .map_err(|rejection| refused(&rejection, epoch))?;
        let session = self.open(cluster, *key, hello, now);
        self.complete_by_digest(cluster, session, hello);
        Ok(self.welcome(request, session))
    }

    /// Mints above a rewound log and above members that know a later epoch; `claims` says how often and when.
    fn check_epoch(&mut self, request: &AdmitRequest, now: u64) -> Result<(), NotAdmitted> {
        let (cluster, ours) = (&request.cluster, self.head.epoch);
        let witness = self.witness(cluster);
        if !request.cursor.holds_in(ours) {
            // An epoch began while it waited: what proved a rewound log then says nothing of this one, and a
            // position of that one is none in this.
            return Err(NotAdmitted::JudgedBefore);
        }
        if matches!(request.cursor.check, CursorCheck::Ahead | CursorCheck::Foreign) {
            // Nothing but this process ever acknowledged anything in it, and this process forgot nothing.
            if self.epoch_is_own {
                return Err(NotAdmitted::Doubted(never_acknowledged(cluster, ours)));
            }
            return Err(self.mint_above(cluster, &witness, ours, now));
        }
        let Some(higher) = request.hello.highest_epoch.filter(|known| *known > ours) else {
            self.claims.withdrawn(cluster);
            self.review_service();
            return Ok(());
        };
        // The last recorded time is never before the clock.
        let known = self.recorded_at().max(ours.created_at);
        if !claims::is_possible(higher, known) {
            return Err(NotAdmitted::Doubted(impossible(cluster, higher, known)));
        }
        if self.options.adopt_epoch || self.state.holds_no_facts() {
            return Err(self.mint_above(cluster, &witness, higher, now));
        }
        self.claims.witnessed(&witness, request.key);
        self.later_epoch = self.later_epoch.max(Some(higher));
        self.review_service();
        Err(NotAdmitted::NotServing(not_serving(
            &format!("cluster {cluster}"),
            ours,
            higher,
        )))
    }

    /// Stops serving when enough of the current members know a later epoch, and serves again when they are fewer: once
    /// those who said so are evicted, or their keys revoked or replaced.
    pub(super) fn review_service(&mut self) {
        let Self { state, claims, .. } = self;
        claims.keep(|cluster, key| {
            let member = state.current_member(cluster);
            member.is_some_and(|member| member.keys().contains_key(key))
                && !state.revoked_keys().contains_key(key)
        });
        let members = state.members().iter().filter(|(_, member)| member.is_current());
        let stops = claims.are_enough(members.count());
        match (self.not_serving.is_some(), stops, self.later_epoch) {
            // The message to everybody names none of them.
            (false, true, Some(later)) => self.stop_serving(not_serving("a member", self.head.epoch, later)),
            (true, false, _) => self.not_serving = None,
            _ => {}
        }
    }

    /// Classifies who claims an epoch. A holder of a certificate that never joined has little at stake: a thief of one,
    /// or of many, must not stop what members are served.
    fn witness(&self, cluster: &ClusterId) -> Witness {
        if self.state.current_member(cluster).is_some() || self.state.holds_no_facts() {
            Witness::Member(cluster.clone())
        } else {
            Witness::Newcomer
        }
    }

    /// A new epoch is to begin because somebody says so, unless they said so only just now.
    fn mint_above(&mut self, cluster: &ClusterId, witness: &Witness, known: Epoch, now: u64) -> NotAdmitted {
        if !self.claims.may_mint(witness, cluster, now) {
            return NotAdmitted::Doubted(match witness {
                Witness::Member(_) => doubted(cluster),
                Witness::Newcomer => newcomer_doubted(cluster),
            });
        }
        self.must_mint = Some(known);
        self.minted_by = Some(cluster.clone());
        NotAdmitted::NewEpoch
    }

    /// Nobody is served any more, those neither who came before the one that knew better.
    fn stop_serving(&mut self, why: String) {
        self.sessions_changed = true;
        for (_, open) in std::mem::take(&mut self.sessions) {
            self.batch.replies.push(Reply::Close(open.session, why.clone()));
        }
        self.not_serving = Some(why);
    }

    /// Refuses a takeover while the holder answers, unless its cluster has elected another agent since; the holder
    /// denies that as long as it leads there. A new key never takes over from a holder that answers, whatever agents
    /// and elections its Hello names: nobody has confirmed these.
    fn check_holder(
        &mut self,
        request: &AdmitRequest,
        key_is_new: bool,
        now: u64,
    ) -> Result<(), NotAdmitted> {
        let AdmitRequest {
            cluster, key, hello, ..
        } = request;
        let Some(open) = self.sessions.get(cluster) else {
            return Ok(());
        };
        let same_agent = open.instance == hello.instance;
        let newer = hello.lease_transitions > open.lease_transitions;
        let pinged = request.pinged.filter(|pinged| pinged.session == open.session);
        let takes_over = match pinged.map(|pinged| pinged.answer) {
            Some(HolderAnswer::Silent) => true,
            _ if key_is_new => false,
            Some(HolderAnswer::Lives) => same_agent || newer,
            Some(HolderAnswer::Leads) => same_agent,
            // A member that has been silent for seconds is not waited for.
            None => same_agent || newer && self.is_doubtful(cluster, now),
        };
        if takes_over {
            return Ok(());
        }
        if key_is_new && pinged.is_some() {
            let kept = open.key;
            return Err(self.contest(cluster, *key, kept));
        }
        let leads = pinged.is_some_and(|pinged| pinged.answer == HolderAnswer::Leads);
        Err(NotAdmitted::Held(Holder {
            session: open.session,
            instance: open.instance.clone(),
            // In one cluster every hold has a number of its own, and one that was replaced has a lower one.
            is_copied: leads && hello.lease_transitions >= open.lease_transitions,
        }))
    }

    /// Returns true if a member is recorded as suspect or lost, and is still silent. Its record alone is not enough: a
    /// member that came back is recorded as live at the next tick only.
    fn is_doubtful(&self, cluster: &ClusterId, now: u64) -> bool {
        let member = self.state.current_member(cluster);
        member.is_some_and(|member| member.connectivity() != Connectivity::Live)
            && self.heard.silence(cluster, now) >= SUSPECT_AFTER_MILLIS
    }

    /// The session that holds a member.
    pub(super) fn holder(&self, cluster: &ClusterId) -> Option<SessionId> {
        self.sessions.get(cluster).map(|open| open.session)
    }

    /// Notes the last sign of life of a member, which a tick would note later.
    pub(super) fn note_heard(&mut self, cluster: &ClusterId, at: u64) {
        self.heard.heard(cluster, at);
    }

    /// Two agents have one identity: it is recorded, and the one that was there stays.
    fn contest(&mut self, cluster: &ClusterId, key: KeyFingerprint, kept: KeyFingerprint) -> NotAdmitted {
        let contest = Command::ContestKey {
            cluster: cluster.clone(),
            key,
            kept,
        };
        // A member has both keys to say: it is never rejected.
        let _ = self.decide_and_apply(&contest);
        NotAdmitted::Duplicate(duplicate(cluster, key))
    }

    /// The other key that this one takes the member from, if no election among its agents explains it.
    fn displaced(&self, request: &AdmitRequest) -> Option<KeyFingerprint> {
        let (last, transitions) = self.last_admitted.get(&request.cluster)?;
        let elected = request.hello.lease_transitions > *transitions;
        (*last != request.key && !elected).then_some(*last)
    }

    fn open(&mut self, cluster: &ClusterId, key: KeyFingerprint, hello: &Hello, now: u64) -> SessionId {
        // Recorded time only grows, and the log knows numbers that ran ahead of it: unique across restarts and terms.
        let last = self.last_session.max(self.state.last_session());
        let session = SessionId(self.recorded_at().0.max(last.0 + 1));
        self.last_session = session;
        let open = Open {
            session,
            key,
            instance: hello.instance.clone(),
            lease_transitions: hello.lease_transitions,
            acknowledged: 0,
            reports_again: hello.features & FEATURE_REPORT_AGAIN != 0,
            held_back: false,
            lacking: BTreeSet::new(),
            lists_anew: false,
            waiting: Waiting::default(),
        };
        self.sessions_changed = true;
        if let Some(old) = self.sessions.insert(cluster.clone(), open) {
            let why = format!(
                "session {} of agent instance {} took over",
                session.0, hello.instance
            );
            self.batch.replies.push(Reply::Close(old.session, why));
        }
        self.last_admitted
            .insert(cluster.clone(), (key, hello.lease_transitions));
        self.heard.came(cluster, now);
        session
    }

    /// A member whose exports are what is recorded need not list them. If its incarnation never completed a listing,
    /// this is recorded as the first: the log shows from when on its removals are its own.
    fn complete_by_digest(&mut self, cluster: &ClusterId, session: SessionId, hello: &Hello) {
        let group = ListingGroup::Exports;
        let Some(member) = self.state.current_member(cluster) else {
            return;
        };
        let matches = hello.exports_digest == Some(member.facts_digest(group));
        if !matches || member.listing_completed(group).is_some() {
            return;
        }
        let of_group = member.facts().keys().filter(|key| key.group() == group);
        let complete = Command::CompleteListing {
            cluster: cluster.clone(),
            session,
            sequence: 0,
            group,
            seen: Arc::new(of_group.cloned().collect()),
        };
        // It is a member.
        let _ = self.decide_and_apply(&complete);
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
        // The state is never behind what is published: what it still remembers the view does too.
        let on_history = request.cursor.check == CursorCheck::OnHistory;
        let resume = hello
            .cursor
            .filter(|cursor| on_history && self.state.can_resume_from(cursor.revision));
        let welcome = Welcome {
            protocol_version: PROTOCOL_VERSION,
            features: FEATURE_APPLIED | FEATURE_REPORT_AGAIN | FEATURE_DIFFERENCES,
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
            term: self.term,
            hubs: vec![HubAddress {
                name: self.options.hub.clone(),
                address: None,
            }],
        };
        let unknown = |cluster: &&ClusterId| !self.vouches_for(cluster);
        Admission {
            welcome,
            resume,
            unknown_sources: hello.sources_held.iter().filter(unknown).cloned().collect(),
            chunk_bytes: self.options.bounds.chunk_bytes,
        }
    }

    /// The new epoch has begun with this state: positions start again. The sessions of the old one are over; they are
    /// to be told before anything of the new one is shown.
    pub fn epoch_begun(&mut self, head: Cursor, state: State) -> Vec<(SessionId, String)> {
        self.must_mint = None;
        self.epoch_is_own = true;
        self.later_epoch = None;
        self.claims.settled();
        self.head = head;
        self.state = state;
        self.stored.begin();
        self.listed = Default::default();
        self.sources_changed = true;
        self.sessions_changed = true;
        let closed = std::mem::take(&mut self.sessions).into_values();
        closed
            .map(|open| (open.session, "a new epoch began: connect again".to_owned()))
            .collect()
    }
}

/// A Hello that the fold rejects, by the log of this epoch.
fn refused(rejection: &Rejection, epoch: Epoch) -> NotAdmitted {
    match rejection {
        Rejection::AdmissionRefused {
            reason: AdmissionRefusal::MembershipEnded,
            ..
        } => NotAdmitted::Ended(rejection.to_string(), epoch),
        Rejection::AdmissionRefused {
            reason: AdmissionRefusal::ContestedKey,
            ..
        } => NotAdmitted::Duplicate(rejection.to_string()),
        _ => NotAdmitted::Refused(rejection.to_string()),
    }
}

fn duplicate(cluster: &ClusterId, key: KeyFingerprint) -> String {
    format!(
        "an agent of cluster {cluster} with another key is connected and answers, so key {key} is no renewal: two agents \
         share one identity. The one that was there stays. If this one is the cluster's, an operator admits it: `{}`; \
         if it is a stranger's: `{}`",
        advice::member_rekey(cluster, Some(key), None),
        advice::member_revoke_key(cluster, key)
    )
}

fn no_room(cluster: &ClusterId) -> String {
    format!("{cluster} is no member yet, and the hub's disk is nearly full: give its volume more room")
}

fn not_serving(who: &str, ours: Epoch, higher: Epoch) -> String {
    format!(
        "{who} knows epoch {higher}, this hub's log is of the older epoch {ours} and holds facts: \
         another hub may be serving this clusterset. Stop that hub, or start this one with --adopt-epoch if \
         it is to take over"
    )
}

fn never_acknowledged(cluster: &ClusterId, epoch: Epoch) -> String {
    format!(
        "cluster {cluster} has a position of epoch {epoch} that this hub never told anybody: the epoch began in this \
         process, which knows all of its history. Restart its agent: it then asks for a snapshot. If it goes on, \
         somebody else has its certificate, or the agent is broken: `{}` shuts it out",
        advice::member_evict(cluster)
    )
}

fn doubted(cluster: &ClusterId) -> String {
    format!(
        "cluster {cluster} says for the second time within {} minutes that this hub's log was rewound or is of an \
         older epoch. The hub believed it the first time. Restart its agent: it then asks for a snapshot. If it goes \
         on, somebody else has its certificate, or the agent is broken: \
         `{}` shuts it out",
        claims::MINT_INTERVAL_MILLIS / 60_000,
        advice::member_evict(cluster)
    )
}

fn newcomer_doubted(cluster: &ClusterId) -> String {
    let minutes = claims::MINT_INTERVAL_MILLIS / 60_000;
    format!(
        "cluster {cluster} is no member here, and says that this hub's log was rewound. The hub believes this of clusters \
         that are no members once in {minutes} minutes, and did already. Restart its agent: it then asks for a snapshot. \
         If you do not know the cluster, find out who issued its certificate"
    )
}

fn impossible(cluster: &ClusterId, epoch: Epoch, known: UnixMillis) -> String {
    format!(
        "cluster {cluster} says that it knows epoch {epoch}, which began at {}. That is more than {} hours after the latest \
         time that this hub knows, {}. If this hub's clock is wrong, set it. If it is right, remove the annotation \
         tributary.dev/epoch of the Lease tributary-agent in that cluster, and restart its agent. If that does not help, \
         somebody else has the certificate of the cluster: `{}` shuts it out",
        epoch.created_at.rfc3339(),
        claims::EPOCH_AHEAD_MAX_MILLIS / 3_600_000,
        known.rfc3339(),
        advice::member_evict(cluster)
    )
}

#[cfg(test)]
mod tests;

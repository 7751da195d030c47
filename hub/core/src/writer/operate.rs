//! Owns: carrying out an operator's decision, and a member's request for another key: it is recorded, and an ended
//! member is told and forgotten.
//! Never: says whether it is allowed; the fold does.

use std::sync::Arc;

use model::ClusterId;

use super::{
    core::Core,
    published::considered,
    request::{Certification, Describe, Operated, Reply, Token},
};
use fold::{Command, Departure, Rejection};

impl Core {
    pub(super) fn operate(
        &mut self,
        token: Token,
        command: &Command,
        confirm: bool,
        describe: Describe,
        now: u64,
    ) {
        let considered = considered(&self.state, self.limits, command, describe);
        let outcome = considered.map(|considered| {
            let before = self.head.revision;
            if confirm {
                self.record(considered.drafts, None);
                self.count_from_now(command, now);
                self.drop_former_members();
                self.drop_revoked_keys(now);
                self.review_service();
            }
            Operated {
                revision: (self.head.revision > before).then_some(self.head.revision),
                kinds: considered.kinds,
                effects: considered.effects,
                as_of: self.head.revision,
            }
        });
        self.batch.replies.push(Reply::Operated(token, outcome));
    }

    /// The time until a membership ends begins with the decision.
    fn count_from_now(&mut self, command: &Command, now: u64) {
        let Command::Depart { cluster, departure } = command else {
            return;
        };
        let member = self.state.current_member(cluster);
        let leaving = member.and_then(|member| member.leaving());
        if let (Departure::Ordered { after_millis, .. }, Some(leaving)) = (departure, leaving) {
            self.departures
                .ordered(cluster, leaving.until, *after_millis, now);
        }
    }

    /// Only the admitted session acts for a member: one that was replaced renews nothing.
    pub(super) fn certify(&mut self, token: Token, certification: Certification, now: u64) {
        let Certification {
            session,
            cluster,
            key,
            by,
            issuer,
            not_after,
        } = certification;
        if !self.admits(session, &cluster) {
            let gone = Rejection::NotAMember { cluster };
            return self.batch.replies.push(Reply::Operated(token, Err(gone)));
        }
        let command = Command::CertifyKey {
            cluster,
            key,
            by,
            issuer,
            not_after,
            at: self.recorded_at(),
        };
        self.operate(token, &command, true, |_, _, _| Vec::new(), now);
    }

    /// Drops everything remembered of former members beside the state, connected or not.
    pub(super) fn drop_former_members(&mut self) {
        let members = self.state.members().iter();
        let former = members.filter(|(_, member)| !member.is_current());
        let former: Vec<ClusterId> = former.map(|(cluster, _)| cluster.clone()).collect();
        for cluster in former {
            if let Some(open) = self.sessions.remove(&cluster) {
                let why = format!("{cluster} is no member of this clusterset any more");
                self.batch.replies.push(Reply::Close(open.session, why));
                self.sessions_changed = true;
            }
            if self.listed.contains(&cluster) {
                Arc::make_mut(&mut self.listed).remove(&cluster);
            }
            self.heard.forget(&cluster);
            self.claims.withdrawn(&cluster);
            self.last_admitted.remove(&cluster);
        }
    }

    /// Sessions end with their keys.
    fn drop_revoked_keys(&mut self, now: u64) {
        let revoked = self.state.revoked_keys();
        let ended = self
            .sessions
            .extract_if(.., |_, open| revoked.contains_key(&open.key));
        for (cluster, open) in ended {
            let why = format!("key {} of {cluster} was revoked by an operator", open.key);
            self.batch.replies.push(Reply::Close(open.session, why));
            self.sessions_changed = true;
            // It was heard until now, and nobody else is heard for it.
            self.heard.left(&cluster, now);
        }
    }
}

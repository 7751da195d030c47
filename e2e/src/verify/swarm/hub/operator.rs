//! Owns: what operators ask of a hub of a world: memberships that end, and keys that are admitted or revoked.
//! Never: waits for the answer; what was decided is seen in the log.

use hub::{
    clock::Moment,
    fold::{Command, KeyHolder, Member, MemberStatus},
    writer::Work,
};
use shared::model::{ClusterId, KeyFingerprint};
use tokio::sync::oneshot;

use super::Hub;

/// Who decides.
const OPERATOR: &str = "alice";

impl Hub {
    /// Ends a membership; false when there is none.
    pub(in crate::verify::swarm) fn evict(&mut self, cluster: &ClusterId, at: Moment) -> bool {
        let evict = Command::Evict {
            cluster: cluster.clone(),
            operator: OPERATOR.into(),
        };
        self.state().current_member(cluster).is_some() && self.operate(evict, at)
    }

    /// Refuses a key of a member for ever; false when it is none of its keys.
    pub(in crate::verify::swarm) fn revoke(
        &mut self,
        cluster: &ClusterId,
        key: KeyFingerprint,
        at: Moment,
    ) -> bool {
        let member = self.state().current_member(cluster);
        let revoke = Command::RevokeKey {
            holder: KeyHolder::Member(cluster.clone()),
            key,
            operator: OPERATOR.into(),
        };
        member.is_some_and(|member| member.keys().contains_key(&key)) && self.operate(revoke, at)
    }

    /// Admits another key of a member that has a new certificate, of one that was evicted too, unless it is admitted or
    /// refused for ever, or renews one by itself.
    pub(in crate::verify::swarm) fn rekey(
        &mut self,
        cluster: &ClusterId,
        (key, renewable): (KeyFingerprint, bool),
        at: Moment,
    ) {
        let waits = |member: &Member| match member.status() {
            MemberStatus::Joined => !renewable || member.contested_keys().contains(&key),
            MemberStatus::Evicted => true,
            MemberStatus::Left | MemberStatus::Forgotten => false,
        };
        let unknown = self.state().member(cluster).filter(|member| waits(member));
        let unknown = unknown.is_some_and(|member| !member.keys().contains_key(&key));
        if unknown && !self.refuses(cluster, key) {
            self.operate(
                Command::Rekey {
                    cluster: cluster.clone(),
                    operator: OPERATOR.into(),
                    key: Some(key),
                    cluster_fingerprint: None,
                },
                at,
            );
        }
    }

    /// Whether this key is one of a membership that ended, or was revoked.
    pub(in crate::verify::swarm) fn refuses(&self, cluster: &ClusterId, key: KeyFingerprint) -> bool {
        let member = self.state().member(cluster);
        member.is_some_and(|member| member.refused_keys().contains(&key))
            || self.state().revoked_keys().contains_key(&key)
    }

    fn operate(&mut self, command: Command, at: Moment) -> bool {
        while self.take(at) {}
        let Some(permit) = self.handle.try_permit() else {
            return false;
        };
        let (reply, _) = oneshot::channel();
        permit.work(Work::Operate {
            command,
            confirm: true,
            describe: |_, _, _| Vec::new(),
            reply,
        });
        true
    }
}

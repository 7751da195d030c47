//! Owns: what operators ask of a hub of a world: memberships that end, and keys that are admitted.
//! Never: waits for the answer; what was decided is seen in the log.

use hub::{
    clock::Moment,
    fold::{Command, MemberStatus},
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

    /// Admits another key of a member that has a new certificate, of one that was evicted too, unless it is admitted or refused for ever.
    pub(in crate::verify::swarm) fn rekey(&mut self, cluster: &ClusterId, key: KeyFingerprint, at: Moment) {
        let unknown = self
            .state()
            .member(cluster)
            .filter(|member| matches!(member.status(), MemberStatus::Joined | MemberStatus::Evicted))
            .is_some_and(|member| !member.keys().contains_key(&key) && !member.refused_keys().contains(&key));
        if unknown {
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

    /// Whether this key is one of a membership that ended.
    pub(in crate::verify::swarm) fn refuses(&self, cluster: &ClusterId, key: KeyFingerprint) -> bool {
        let member = self.state().members().get(cluster);
        member.is_some_and(|member| member.refused_keys().contains(&key))
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

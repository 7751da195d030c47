//! Owns: what operators ask of a hub of a world: memberships that end, keys that are admitted or revoked, and policies.
//! Never: waits for the answer; what was decided is seen in the log.

use fold::{Command, Departure, KeyHolder, Member, MemberStatus};
use hub_core::{clock::Moment, writer::Work};
use model::{
    ClusterId, KeyFingerprint, Policy, Precedence, ServiceKey,
    policy::{Brake, Loss},
};
use std::sync::Arc;
use tokio::sync::oneshot;
use wire::{POLICY_API_VERSION, POLICY_KIND, read_policy};

use super::Hub;
use crate::{
    happening::{NAMESPACES, Taken},
    site::key,
};

/// The operator.
const OPERATOR: &str = "alice";

impl Hub {
    /// Ends a membership; false when there is none.
    pub(crate) fn evict(&mut self, cluster: &ClusterId, at: Moment) -> bool {
        let evict = Command::Evict {
            cluster: cluster.clone(),
            operator: OPERATOR.into(),
        };
        self.state().current_member(cluster).is_some() && self.operate(evict, at)
    }

    /// Has a member leave after a time; false when there is none.
    pub(crate) fn drain(
        &mut self,
        cluster: &ClusterId,
        (after_millis, evicts): (u64, bool),
        at: Moment,
    ) -> bool {
        let leave = Command::Depart {
            cluster: cluster.clone(),
            departure: Departure::Ordered {
                operator: OPERATOR.into(),
                at: at.wall,
                after_millis,
                evicts,
            },
        };
        let ordered = self.state().current_member(cluster).is_some() && self.operate(leave, at);
        if ordered {
            self.due.ordered(cluster, after_millis, at);
        }
        ordered
    }

    /// Has a member stay; false when it is not to leave.
    pub(crate) fn stay(&mut self, cluster: &ClusterId, at: Moment) -> bool {
        let stay = Command::Depart {
            cluster: cluster.clone(),
            departure: Departure::TakenBack {
                operator: OPERATOR.into(),
            },
        };
        self.leaves(cluster) && self.operate(stay, at)
    }

    /// A member says that it leaves, with a key of its own; false when there is none.
    pub(crate) fn leave(&mut self, cluster: &ClusterId, at: Moment) -> bool {
        let member = self.state().current_member(cluster);
        let key = member.and_then(|member| member.keys().keys().next_back().copied());
        let leave = |key| Command::Depart {
            cluster: cluster.clone(),
            departure: Departure::OwnWill { key },
        };
        key.is_some_and(|key| self.operate(leave(key), at))
    }

    /// Returns true if a member is to leave.
    pub(crate) fn leaves(&self, cluster: &ClusterId) -> bool {
        let member = self.state().current_member(cluster);
        member.is_some_and(|member| member.leaving().is_some())
    }

    /// States that nothing of a cluster is to be waited for whose membership ended, once in the life of a hub; false when
    /// there is no need to.
    pub(crate) fn forget(&mut self, cluster: &ClusterId, at: Moment) -> bool {
        let forget = Command::Forget {
            cluster: cluster.clone(),
            operator: OPERATOR.into(),
        };
        let is_over = self
            .state()
            .member(cluster)
            .is_some_and(|member| !member.is_current());
        is_over && !std::mem::replace(&mut self.has_forgotten, true) && self.operate(forget, at)
    }

    /// Refuses a key of a member for ever; false when it is none of its keys.
    pub(crate) fn revoke(&mut self, cluster: &ClusterId, key: KeyFingerprint, at: Moment) -> bool {
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
    pub(crate) fn rekey(
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

    /// Refuses everything that a member exports.
    pub(crate) fn restrict(&mut self, cluster: &ClusterId, at: Moment) -> bool {
        let rule = format!("members: [{{name: restricted, members: [\"{cluster}\"], exports: []}}]");
        self.apply_policy(&rule, at)
    }

    /// Has little room for what a member reports: one of each kind, and a few changes a minute.
    pub(crate) fn squeeze(&mut self, cluster: &ClusterId, at: Moment) -> bool {
        let budget = "{exports: 1, endpointSlices: 1, properties: 1, eventsPerMinute: 4}";
        let rule = format!("members: [{{name: squeezed, members: [\"{cluster}\"], budget: {budget}}}]");
        self.apply_policy(&rule, at)
    }

    /// Withdraws who stays lost as soon as may be, or says that its endpoints are not ready; `brief`: after some seconds also
    /// when many are lost.
    pub(crate) fn be_impatient(&mut self, (withdraw, brief): (bool, bool), at: Moment) -> bool {
        let action = if withdraw { "withdraw" } else { "notReady" };
        let longest = if brief {
            ", selfPreservation: {longest: 6s}"
        } else {
            ""
        };
        self.apply_policy(&format!("loss: {{action: {action}, after: 10s{longest}}}"), at)
    }

    /// Ends self-preservation; false when there is none.
    pub(crate) fn let_withdraw(&mut self, at: Moment) -> bool {
        let release = Command::ReleaseSelfPreservation {
            operator: OPERATOR.into(),
        };
        self.state().self_preservation().is_some() && self.operate(release, at)
    }

    /// Holds who takes back half of its exports: for a while, or until it is let go.
    pub(crate) fn be_careful(&mut self, for_a_while: bool, at: Moment) -> bool {
        let longest = if for_a_while { ", longest: 8s" } else { "" };
        let brake = format!("brake: {{exports: 1, percent: 50, within: 10s{longest}}}");
        self.apply_policy(&brake, at)
    }

    /// Lets go what is held of a member; false when nothing is.
    pub(crate) fn release_held(&mut self, cluster: &ClusterId, at: Moment) -> bool {
        let release = Command::ReleaseBrake {
            cluster: cluster.clone(),
            operator: OPERATOR.into(),
        };
        self.held().any(|held| held == cluster) && self.operate(release, at)
    }

    /// The members that are held.
    pub(crate) fn held(&self) -> impl Iterator<Item = &ClusterId> {
        let members = self.state().members().iter();
        let held = members.filter(|(_, member)| member.taken_back().brake().is_some());
        held.map(|(cluster, _)| cluster)
    }

    /// Says what a member takes.
    pub(crate) fn let_take(&mut self, cluster: &ClusterId, taken: Taken, at: Moment) -> bool {
        let imports = match taken {
            Taken::Nothing => "[]".to_owned(),
            Taken::Namespace(index) => {
                let named = NAMESPACES[usize::from(index) % NAMESPACES.len()];
                format!("[{{namespaces: [{named}]}}]")
            }
            Taken::Service(named) => {
                let service = key(named);
                format!(
                    "[{{namespaces: [{}], services: [{}]}}]",
                    service.namespace, service.name
                )
            }
            Taken::Everything => "[{namespaces: [\"*\"]}]".to_owned(),
        };
        let rule = format!("members: [{{name: takes, members: [\"{cluster}\"], imports: {imports}}}]");
        self.apply_policy(&rule, at)
    }

    /// Takes a member's endpoints from one range only.
    pub(crate) fn fence(&mut self, cluster: &ClusterId, range: &str, at: Moment) -> bool {
        let rule = format!("members: [{{name: fenced, members: [\"{cluster}\"], endpoints: [\"{range}\"]}}]");
        self.apply_policy(&rule, at)
    }

    /// Lets who stood first stand first, whatever others state. Of rules there are none then.
    pub(crate) fn keep_incumbents(&mut self, at: Moment) -> bool {
        self.apply(Precedence::Incumbent, "members: []", at)
    }

    /// Lets the oldest export of a service stand first again; false when another one is not held there.
    pub(crate) fn release(&mut self, service: &ServiceKey, at: Moment) -> bool {
        let held = self.state().contest(service).is_some_and(|contest| contest.held);
        let release = Command::ReleasePrecedence {
            service: service.clone(),
            operator: OPERATOR.into(),
        };
        held && self.operate(release, at)
    }

    /// Allows everything again; false when nothing is refused.
    pub(crate) fn loosen(&mut self, at: Moment) -> bool {
        self.restricts() && self.apply(Precedence::Oldest, "members: []", at)
    }

    /// Returns true if the policy in force refuses anything, keeps anybody's place, or has a rule on lost members or on
    /// mass withdrawals.
    pub(crate) fn restricts(&self) -> bool {
        self.policy().is_some_and(|policy| {
            let plain = policy.precedence == Precedence::Oldest
                && policy.loss == Loss::default()
                && policy.brake == Brake::default();
            !policy.rules.is_empty() || !plain
        })
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> Option<&Policy> {
        self.state().policy().map(|applied| &*applied.policy)
    }

    /// Other rules, and the same order of exports.
    fn apply_policy(&mut self, rules: &str, at: Moment) -> bool {
        let precedence = self.policy().map(|policy| policy.precedence);
        self.apply(precedence.unwrap_or_default(), rules, at)
    }

    fn apply(&mut self, precedence: Precedence, rules: &str, at: Moment) -> bool {
        let order = match precedence {
            Precedence::Oldest => "oldest",
            Precedence::Incumbent => "incumbent",
        };
        let document = format!(
            "apiVersion: {POLICY_API_VERSION}\nkind: {POLICY_KIND}\nspec:\n  precedence: {order}\n  {rules}\n"
        );
        let policy = read_policy(&document).expect("a policy of the swarm is one");
        let policy = Arc::new(policy);
        let operator = OPERATOR.into();
        self.operate(Command::ApplyPolicy { policy, operator }, at)
    }

    /// Returns true if this key is of an ended membership, or was revoked.
    pub(crate) fn refuses(&self, cluster: &ClusterId, key: KeyFingerprint) -> bool {
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

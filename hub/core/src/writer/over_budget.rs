//! Items for which a member's budget has no room: they wait at its agent, their recorded version stays, and the hub
//! asks for them when there may be room (docs/guides/policy.md, "Budgets").

use model::{
    ClusterId, EncodedFact, Event, FactKey, SessionId,
    policy::{Limit, Usage},
    sync::RefusalReason,
};

use super::{budgets::Lack, core::Core, request::Reply, totals::Total};
use fold::RecordedFact;

impl Core {
    /// Why a fact is not recorded for now; `None`: its member's budget has room.
    pub(super) fn over_budget(
        &mut self,
        cluster: &ClusterId,
        fact: &EncodedFact,
        now: u64,
    ) -> Option<String> {
        if fact.fact.is_removal() {
            return None;
        }
        let member = self.state.current_member(cluster)?;
        let known = member.facts().get(&fact.fact.key()?);
        if known.is_some_and(|known| known.hash == fact.hash) {
            return None;
        }
        let known = known.map(RecordedFact::encoded);
        let lack = self.budgets.lack(cluster, known.as_ref(), fact, now)?;
        // Other clusters would go on sending traffic to endpoints that are gone. It happens at most twice for each.
        if matches!(lack, Lack::Budget(Limit::EventsPerMinute, _)) && !self.grows(cluster, fact) {
            return None;
        }
        Some(match lack {
            Lack::Budget(limit, most) => words(cluster, limit, most),
            Lack::Total(total, most) => words_for_all(cluster, total, most),
        })
    }

    /// An item waits at its agent; false: as [`Core::refuse_for_now`] says.
    pub(super) fn let_wait(
        &mut self,
        session: SessionId,
        cluster: &ClusterId,
        sequence: u64,
        key: Option<FactKey>,
        why: &str,
    ) -> bool {
        let open = self.refuse_for_now((session, cluster, sequence), RefusalReason::OverBudget, why);
        if let (Some(open), Some(key)) = (open, &key) {
            open.waiting.add(key);
            return true;
        }
        false
    }

    /// An item was dealt with: it does not wait any more. A member that lacked only that has listed.
    pub(super) fn waits_no_more(&mut self, cluster: &ClusterId, fact: &EncodedFact) {
        let waiting = self.sessions.get_mut(cluster).map(|open| &mut open.waiting);
        // Most have nothing that waits: their keys need not be made.
        let Some(waiting) = waiting.filter(|waiting| !waiting.is_empty()) else {
            return;
        };
        if fact.fact.key().is_some_and(|key| waiting.remove(&key)) {
            self.mark_listed(cluster);
        }
    }

    /// The exports were listed, and what was not named is removed. A cluster with waiting items must not count as
    /// listed: an item that is not recorded would be deleted elsewhere.
    pub(super) fn exports_listed(&mut self, cluster: &ClusterId) {
        let open = self.sessions.get_mut(cluster);
        if open.is_none_or(|open| open.waiting.listed()) {
            self.mark_listed(cluster);
        }
    }

    /// Usage of the fact that a new one replaces, as the budget counts it.
    pub(super) fn replaced_by(&self, event: &Event) -> Usage {
        let member = event
            .cluster
            .as_ref()
            .and_then(|cluster| self.state.current_member(cluster));
        let known = member
            .zip(event.fact.fact.key())
            .and_then(|(member, key)| member.facts().get(&key));
        known.map(|known| Usage::of(&known.encoded())).unwrap_or_default()
    }

    /// Number of connected members with waiting items.
    pub fn over_budget_members(&self) -> usize {
        let sessions = self.sessions.values();
        sessions.filter(|open| !open.waiting.is_empty()).count()
    }

    /// Returns the usage of all members.
    pub fn used(&self) -> Usage {
        self.budgets.all()
    }

    /// Asks the members with waiting items, if there may be room now.
    pub(super) fn ask_for_what_waits(&mut self, now: u64) {
        self.budgets.tick(&self.state);
        for (cluster, open) in &mut self.sessions {
            if open.waiting.is_due(now) && self.budgets.has_eased(cluster, now) {
                open.waiting.asked(now);
                self.batch.replies.push(Reply::ReportAgain(open.session));
            }
        }
    }
}

fn words_for_all(cluster: &ClusterId, total: Total, most: u64) -> String {
    let what = match total {
        Total::Exports => format!("{most} ServiceExports"),
        Total::EndpointSlices => format!("{most} EndpointSlices"),
        Total::Memory => format!("{} MiB of memory for its state", most / (1024 * 1024)),
    };
    format!(
        "the clusterset is nearly full: its hub allows {what} for all members, and cluster {cluster} has its share. The hub \
         keeps what it has of this, and asks again by itself when there is room. Export less, or have an operator raise {} \
         of the hub",
        total.flag()
    )
}

fn words(cluster: &ClusterId, limit: Limit, most: u64) -> String {
    let cause = match limit {
        Limit::EventsPerMinute => format!("cluster {cluster} changes more often than {most} times a minute"),
        _ => format!(
            "cluster {cluster} has as many {} as its budget allows, {most}",
            limit.what()
        ),
    };
    format!(
        "{cause}. The hub keeps what it has of this, and asks again by itself when there is room. Report less, or have an \
         operator raise {} in the policy of the clusterset",
        limit.field()
    )
}

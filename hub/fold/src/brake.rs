//! The mass-withdrawal hold: a member that withdraws most of its exports at once (its cluster lost the definition, or
//! somebody uninstalled another product) is put on hold, by a recorded decision. Its removals are facts as usual; the
//! withdrawn exports still count in everything derived, until each export comes back, the hold ends, or the incarnation
//! ends. Its endpoints are sent only where no other member serves: they may be dead, and nobody corrects them. Another
//! module decides when, because that takes a clock.

use std::collections::BTreeSet;

use model::{ClusterId, Fact, ServiceKey, UnixMillis};

use super::{Draft, Member, Rejection, State, derived::Step, exports, remembered, taken_back::EngagedBrake};

/// Puts a member on hold that is about to withdraw these exports at a time, if that is most of its exports, together
/// with its recent withdrawals.
pub(super) fn engage(
    state: &State,
    cluster: &ClusterId,
    taking: &BTreeSet<ServiceKey>,
    at: UnixMillis,
) -> Result<Vec<Draft>, Rejection> {
    let member = current(state, cluster)?;
    if member.taken_back.brake().is_some() || !member.may_be_held() {
        return Ok(Vec::new());
    }
    let brake = state.brake();
    let mut taken_back = member.taken_back.clone();
    remembered::forget_of(&mut taken_back, &brake, at);
    let before = taken_back.export_count();
    let taking = taking.iter().filter(|service| member.export(service).is_some());
    let removed = (before + taking.count()) as u64;
    let exports = (before + member.exports().count()) as u64;
    if !brake.holds(removed, exports) {
        return Ok(Vec::new());
    }
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let engaged = Fact::BrakeEngaged {
        removed: count(removed),
        exports: count(exports),
    };
    Ok(vec![Draft::decided(cluster, engaged)])
}

/// Ends the hold on a member; does nothing without one. Without an operator it is nobody's decision.
pub(super) fn release(state: &State, cluster: &ClusterId, operator: &str) -> Result<Vec<Draft>, Rejection> {
    let member = current(state, cluster)?;
    let engaged = member.taken_back.brake().is_some();
    Ok(Vec::from_iter(engaged.then(|| {
        let operator = operator.into();
        Draft::decided(cluster, Fact::BrakeReleased { operator })
    })))
}

/// The member, or the rejection for a cluster that is none.
fn current<'a>(state: &'a State, cluster: &ClusterId) -> Result<&'a Member, Rejection> {
    let stranger = || Rejection::NotAMember {
        cluster: cluster.clone(),
    };
    state.current_member(cluster).ok_or_else(stranger)
}

/// From here on the member's withdrawals are on hold, and so are its recent ones.
pub(super) fn engaged(
    state: &mut State,
    cluster: &ClusterId,
    (removed, exports): (u32, u32),
    step: &mut Step,
) {
    let Some(member) = state.member_mut(cluster) else {
        return;
    };
    if member.taken_back.brake().is_some() {
        return;
    }
    member.taken_back.engage(EngagedBrake {
        since: step.recorded_at,
        removed,
        exports,
    });
    let services: Vec<ServiceKey> = member.taken_back.held_exports().cloned().collect();
    remembered::note(state, cluster);
    for service in &services {
        exports::count(state, cluster, service);
        exports::rederive(state, service, step);
    }
}

/// The member is no longer on hold.
pub(super) fn released(state: &mut State, cluster: &ClusterId, step: &mut Step) {
    let member = state.member(cluster);
    if member.is_none_or(|member| member.taken_back.brake().is_none()) {
        return;
    }
    for service in remembered::forget_all_of(state, cluster) {
        exports::withdraw(state, cluster, &service, step);
    }
}

//! Owns: how time passes in a simulation, and what must hold meanwhile: that all comes right, that nothing is written at rest.
//! Never: does anything to anybody.

use anyhow::{bail, ensure};

use super::{
    clusterset::{STEP, SimulatedClusterset, Written},
    script::CLUSTERS,
    vigil::Vigil,
};
use oracle::laws::Law;

/// Interval of looking at the clusters, in simulated milliseconds.
const LOOK_EVERY: u64 = 250;
/// Longest time from the end of what was broken until all is right.
pub(super) const CONVERGED_WITHIN: u64 = 120_000;

/// One step; now and then a look at everything, and then what agents wrote since the last one.
pub(super) fn advance(
    clusterset: &mut SimulatedClusterset,
    vigil: &mut Vigil,
) -> anyhow::Result<Vec<Written>> {
    clusterset.step()?;
    if clusterset.now() % LOOK_EVERY >= STEP.as_millis() as u64 {
        return Ok(Vec::new());
    }
    let clusters = clusterset.members.iter().map(|member| &member.cluster);
    vigil
        .look(clusterset.now(), clusters)
        .map_err(|why| anyhow::anyhow!("at {} ms: {why}", clusterset.now()))?;
    clusterset.note_requests()
}

/// All is right in every cluster, and every member has its session.
pub(super) fn converge(clusterset: &mut SimulatedClusterset, vigil: &mut Vigil) -> anyhow::Result<()> {
    let from = clusterset.now();
    loop {
        advance(clusterset, vigil)?;
        let wrong = vigil.wrong();
        let sessions = clusterset.hub.sessions.borrow().len();
        if wrong.is_empty() && sessions == CLUSTERS.len() && vigil.judged() > 0 {
            vigil.calm = true;
            return Ok(());
        }
        if clusterset.now() > from + CONVERGED_WITHIN {
            bail!(
                "not right {} s after everything was mended, with {sessions} sessions: {}",
                CONVERGED_WITHIN / 1_000,
                wrong.join("; ")
            );
        }
    }
}

/// Nothing is written but Leases, and everything stays right.
pub(super) fn rest(
    clusterset: &mut SimulatedClusterset,
    vigil: &mut Vigil,
    length: u64,
    when: &str,
) -> anyhow::Result<()> {
    // Whatever follows from what was just written is written now.
    pass(clusterset, vigil, SETTLE)?;
    clusterset.guarded.count(Law::NoWrite, vigil.judged() as u64);
    let until = clusterset.now() + length;
    while clusterset.now() < until {
        no_content(&advance(clusterset, vigil)?, when)?;
    }
    let wrong = vigil.wrong();
    ensure!(wrong.is_empty(), "{when}: {}", wrong.join("; "));
    let sessions = clusterset.hub.sessions.borrow().len();
    ensure!(
        sessions == CLUSTERS.len(),
        "{when} the hub has {sessions} sessions"
    );
    Ok(())
}

/// Time for revisions and conditions to follow the change that made everything right.
const SETTLE: u64 = 6_000;

/// Lets time pass, whatever is written.
pub(super) fn pass(
    clusterset: &mut SimulatedClusterset,
    vigil: &mut Vigil,
    length: u64,
) -> anyhow::Result<()> {
    let until = clusterset.now() + length;
    while clusterset.now() < until {
        advance(clusterset, vigil)?;
    }
    Ok(())
}

/// Lets time pass, and judges nothing but what agents ask for.
pub(super) fn pass_unjudged(clusterset: &mut SimulatedClusterset, length: u64) -> anyhow::Result<()> {
    let until = clusterset.now() + length;
    while clusterset.now() < until {
        clusterset.step()?;
    }
    clusterset.note_requests()?;
    Ok(())
}

pub(super) fn no_content(written: &[Written], when: &str) -> anyhow::Result<()> {
    let Some((cluster, entry)) = written.iter().find(|(_, entry)| entry.resource != "leases") else {
        return Ok(());
    };
    bail!(
        "{when}, the agent of {cluster} wrote: {} {} {}/{} ({})",
        entry.verb,
        entry.resource,
        entry.namespace,
        entry.name,
        entry.code
    );
}

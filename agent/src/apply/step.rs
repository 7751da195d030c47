//! One service: plan, perform, look again, until nothing is left to do or something stands in the way.
//! Learns from refusals what not to ask for again.

use std::time::Duration;

use shared::{
    model::{Revision, ServiceKey},
    process::random,
};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::{
    failure::Failure,
    handle::{Applied, Shared},
    lock::lock,
    seen::Seen,
    view,
};
use crate::plan::{self, Action, End, Kind, LocalConfig, NamespaceState, Plan, Report, ServiceView, plan};

/// Most plans in a row for one service; a longer fight with somebody else goes on later.
const PLANS_MAX: usize = 12;

/// How it went.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// Everything is as it should be.
    Settled,
    /// Something stands in the way: try again, not before this time has passed if one is given.
    Retry {
        /// What the API server asked for.
        after: Option<Duration>,
        /// What is left is not written again before this; other content is.
        held_until: Option<Instant>,
        /// Only another content or an operator's hand helps, and why.
        parked: Option<Box<str>>,
        /// What could not be done: as long as it is all there is to do, trying sooner is in vain.
        left: Plan,
    },
}

/// Works on `service` until it is settled or stuck, and takes note of what stands since. `now`: monotonic
/// milliseconds.
pub(super) async fn step(shared: &Shared, service: &ServiceKey, now: u64) -> Outcome {
    let began = lock(&shared.progress).began();
    let (outcome, end) = work_on(shared, service).await;
    if lock(&shared.progress).ended(service, began, end, now) {
        shared.progressed.notify_one();
    }
    outcome
}

async fn work_on(shared: &Shared, service: &ServiceKey) -> (Outcome, End) {
    if !shared.watches.services.is_listed() || !shared.watches.slices.is_listed() {
        return (Outcome::Settled, End::Open); // every plan reads both, and all is planned once they are there
    }
    let mut wrote = false;
    let mut tried = Plan::default();
    for _ in 0..PLANS_MAX {
        let Some((view, seen, plan)) = planned(shared, service) else {
            // the served schema is not known: everything is planned once it is
            return (Outcome::Settled, End::Open);
        };
        await_hub(shared, service, &view, &plan);
        let told = report(shared, service, &plan).await;
        if plan.is_settled() && !told {
            return (later(plan, None), End::Parked);
        }
        if plan.is_settled() {
            settled(shared, service, &view, wrote);
            let end = plan::end(&lock(&shared.desired), &view, service, &plan);
            return (Outcome::Settled, end);
        }
        match perform_all(shared, service, (&view, seen), &plan).await {
            Ok(()) => wrote = true,
            Err(Stuck::Learned) => {}
            Err(Stuck::Failed(failure, left)) => {
                let end = if failure.is_lasting() {
                    End::Parked
                } else {
                    End::Open
                };
                return (stuck(shared, service, &failure, left), end);
            }
            Err(Stuck::Held(until, left)) => return (later(left, Some(until)), End::Parked),
        }
        tried = plan;
    }
    (later(tried, None), End::Open)
}

/// Nothing is wrong, and not everything is done.
fn later(left: Plan, held_until: Option<Instant>) -> Outcome {
    Outcome::Retry {
        after: None,
        held_until,
        parked: None,
        left,
    }
}

/// What there is to do for `service` now; nothing can be said while the served schema is not known.
pub(super) fn what_to_do(shared: &Shared, service: &ServiceKey) -> Option<Plan> {
    planned(shared, service).map(|(_, _, plan)| plan)
}

fn planned(shared: &Shared, service: &ServiceKey) -> Option<(ServiceView, Seen, Plan)> {
    let served = (*lock(&shared.served))?;
    let config = LocalConfig {
        cluster: shared.config.cluster.clone(),
        served,
    };
    let refused = lock(&shared.refused_facts)
        .get(service)
        .cloned()
        .unwrap_or_default();
    let refusals = lock(&shared.refusals).of(service);
    let desired = lock(&shared.desired);
    let (mut view, seen) = view::view(
        &shared.watches,
        &desired,
        &config.cluster,
        &shared.config.deny,
        &refused,
        refusals,
        service,
    );
    let export = view.export.as_ref();
    view.hub_may_answer = export.is_some_and(|export| shared.patience.lasts(service, &export.uid));
    let plan = plan(&desired, &view, &config, service);
    Some((view, seen, plan))
}

/// An export whose conditions the hub is about to state gets it some time for that.
fn await_hub(shared: &Shared, service: &ServiceKey, view: &ServiceView, plan: &Plan) {
    match view.export.as_ref().filter(|_| plan.awaits_hub) {
        Some(export) => shared.patience.begin(service, &export.uid, Instant::now()),
        None => shared.patience.end(service),
    }
}

/// Nothing is left to do.
fn settled(shared: &Shared, service: &ServiceKey, view: &ServiceView, wrote: bool) {
    let mut desired = lock(&shared.desired);
    let known = view.known.imports && view.known.slices && view.namespace != NamespaceState::Unknown;
    if known && view.import.ours().is_none() && view.our_slices().next().is_none() {
        desired.removals_done(service);
        lock(&shared.refusals).forget(service);
    }
    if view.known.exports && view.export.is_none() {
        lock(&shared.refused_facts).remove(service);
    }
    if !wrote {
        return;
    }
    let import = desired.import(service).map(|import| import.revision);
    let slices = desired.slices(service).map(|slice| slice.revision);
    let revision = slices.chain(import).max().unwrap_or(Revision(0));
    drop(desired);
    debug!(%service, %revision, "applied");
    let notice = Applied {
        service: service.clone(),
        revision,
    };
    let _ = shared.applied.send(notice); // nobody listens: nothing is lost
}

enum Stuck {
    /// The API server refused a value that the next plan leaves out.
    Learned,
    /// With what was not done.
    Failed(Failure, Plan),
    /// Somebody else changes this back again and again: it waits until then.
    Held(Instant, Plan),
}

async fn perform_all(
    shared: &Shared,
    service: &ServiceKey,
    (view, mut seen): (&ServiceView, Seen),
    plan: &Plan,
) -> Result<(), Stuck> {
    let mut postponed = None;
    let mut undone = Vec::new();
    let mut slice_missing = false;
    let mut held = None;
    for (index, action) in plan.actions.iter().enumerate() {
        let slice = matches!(action, Action::ApplySlice { .. });
        if slice_missing && !stands_alone(action) {
            undone.push(action.clone());
            continue;
        }
        let now = Instant::now();
        if let Some(until) = lock(&shared.contention).held_until(service, action, now) {
            held = Some(held.map_or(until, |held: Instant| held.min(until)));
            slice_missing |= slice;
            if !slice && creates(action) {
                undone.extend_from_slice(&plan.actions[index..]);
                break;
            }
            undone.push(action.clone());
            continue;
        }
        let result = shared.performer.perform(service, action, &mut seen).await;
        shared
            .metrics
            .count(action, result.as_ref().map_or_else(Failure::word, |()| "done"));
        match result {
            Ok(()) => performed(shared, service, action).await,
            Err(failure) => {
                let failure = lock(&shared.refusals).awaited(service, action, failure);
                let known_before = view.refusals.derived.is_some();
                if lock(&shared.refusals).learn(service, known_before, action, &failure) {
                    return Err(Stuck::Learned);
                }
                // the rest of the plan already reckons with a Service that cannot be written
                let derived = known_before && matches!(action, Action::ApplyDerived { .. });
                let goes_on = failure.is_lasting() && (derived || slice);
                slice_missing |= slice;
                postponed = Some(failure);
                if !goes_on {
                    undone.extend_from_slice(&plan.actions[index..]);
                    break;
                }
                undone.push(action.clone());
            }
        }
    }
    let left = Plan {
        actions: undone,
        reports: plan.reports.clone(),
        awaits_hub: plan.awaits_hub,
    };
    match postponed {
        Some(failure) => Err(Stuck::Failed(failure, left)),
        None => held.map_or(Ok(()), |until| Err(Stuck::Held(until, left))),
    }
}

/// An action was done: what it says about refusals and about fights with somebody else.
async fn performed(shared: &Shared, service: &ServiceKey, action: &Action) {
    if let Action::ApplyDerived { .. } = action {
        lock(&shared.refusals).written(service);
    }
    let fight = lock(&shared.contention).written(service, action, Instant::now(), random());
    if let Some((part, times)) = fight {
        let (kind, name) = (part.kind, &part.name);
        warn!(%service, kind, %name, status = part.status, times,
            "somebody else changes this object back again and again: from now on it is written at growing intervals; \
             `kubectl get --show-managed-fields -o yaml` names who writes it");
        shared.performer.contended_event(service, &part).await;
    }
}

/// It makes an object that others of its plan may need.
fn creates(action: &Action) -> bool {
    match action {
        Action::ApplyImport { uid, .. }
        | Action::ApplyDerived { uid, .. }
        | Action::ApplySlice { uid, .. } => uid.is_none(),
        Action::ApplyImportStatus { .. }
        | Action::ApplyExportStatus { .. }
        | Action::ExportEvent { .. }
        | Action::Delete { .. } => false,
    }
}

/// Slices of which one is missing do not stand in each other's way, nor in that of words for people. What narrows
/// the Service behind them waits.
fn stands_alone(action: &Action) -> bool {
    match action {
        Action::ApplySlice { .. }
        | Action::ApplyImportStatus { .. }
        | Action::ApplyExportStatus { .. }
        | Action::ExportEvent { .. } => true,
        Action::ApplyImport { .. } | Action::ApplyDerived { .. } | Action::Delete { .. } => false,
    }
}

fn stuck(shared: &Shared, service: &ServiceKey, failure: &Failure, left: Plan) -> Outcome {
    if let Failure::Schema(_) = failure {
        shared.schema_changed.notify_one();
    }
    let after = match failure {
        Failure::Throttled(after) => Some(*after),
        _ => None,
    };
    debug!(%service, %failure, "trying again");
    let parked = failure.is_lasting().then(|| failure.to_string().into());
    Outcome::Retry {
        after,
        held_until: None,
        parked,
        left,
    }
}

/// Tells people about strangers, once for each. False when somebody could not be told now.
async fn report(shared: &Shared, service: &ServiceKey, plan: &Plan) -> bool {
    let new: Vec<Report> = {
        let mut reports = lock(&shared.reports);
        let before = if plan.reports.is_empty() {
            reports.remove(service)
        } else {
            reports.insert(service.clone(), plan.reports.clone())
        };
        let before = before.unwrap_or_default();
        shared.taken_names.replace(service, &before, &plan.reports);
        let strangers = reports.values().map(Vec::len).sum::<usize>();
        shared
            .metrics
            .strangers
            .set(i64::try_from(strangers).unwrap_or(i64::MAX));
        let new = plan.reports.iter().filter(|report| !before.contains(report));
        new.cloned().collect()
    };
    if !new.is_empty() {
        shared.queue.mark([service.clone()]); // it may have gone before anybody waited for it
    }
    let mut all_told = true;
    for report in &new {
        let Report::Stranger { kind, name } = report;
        if shared.performer.stranger_event(service, *kind, name).await {
            info!(%service, kind = kind.as_str(), %name, "the name is taken by an object that is not Tributary's: delete or rename it");
        } else {
            all_told = false;
            let mut reports = lock(&shared.reports);
            reports
                .entry(service.clone())
                .or_default()
                .retain(|other| other != report);
        }
        if !stands(shared, service, *kind, name) {
            shared.queue.mark([service.clone()]); // it went before anybody waited for its name
        }
    }
    all_told
}

fn stands(shared: &Shared, service: &ServiceKey, kind: Kind, name: &str) -> bool {
    let (watches, namespace) = (&shared.watches, &service.namespace);
    match kind {
        Kind::Import => watches.imports.get(namespace, name).is_some(),
        Kind::Derived => watches.services.get(namespace, name).is_some(),
        Kind::Slice => watches.slices.get(namespace, name).is_some(),
    }
}

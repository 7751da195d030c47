//! One service: plan, perform, look again, until nothing is left to do or an obstacle remains. Learns from refusals
//! what not to ask for again.

use std::time::Duration;

use model::{Revision, ServiceKey};
use pace::random;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use super::{
    failure::Failure,
    handle::{Applied, Shared},
    lock::lock,
    seen::Seen,
    view,
};
use crate::plan::{
    self, Action, End, Kind, LocalConfig, NamespaceState, Plan, Report, ServiceView, plan, view::Unwritten,
};

/// Most plans in a row for one service; a longer fight with another writer continues later.
const PLANS_MAX: usize = 12;

/// The outcome of a step.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    /// Everything is as it should be.
    Settled,
    /// Nothing is known that could be done: the service is worked on again when something is.
    Unknown,
    /// An obstacle remains: try again, not before this time has passed if one is given.
    Retry {
        /// Delay that the API server asked for.
        after: Option<Duration>,
        /// Earliest time to write the remaining content again; other content is not delayed.
        held_until: Option<Instant>,
        /// Only another content or an operator's hand helps, and why.
        parked: Option<Box<str>>,
        /// The steps that could not be done: while they are all there is to do, an earlier attempt is in vain.
        left: Plan,
    },
}

/// Works on `service` until it is settled or stuck, and notes the applied state since. `now`: monotonic milliseconds.
pub(super) async fn step(shared: &Shared, service: &ServiceKey, now: u64) -> Outcome {
    let began = lock(&shared.progress).began();
    let (outcome, end) = work_on(shared, service, now).await;
    if lock(&shared.progress).ended(service, began, end, now) {
        shared.progressed.notify_one();
    }
    outcome
}

async fn work_on(shared: &Shared, service: &ServiceKey, now: u64) -> (Outcome, End) {
    if !shared.watches.services.is_listed() || !shared.watches.slices.is_listed() {
        return (Outcome::Unknown, End::Open); // every plan reads both, and all is planned once they are there
    }
    let mut wrote = false;
    let mut tried = Plan::default();
    for _ in 0..PLANS_MAX {
        let Some((view, seen, plan)) = planned(shared, service) else {
            // the served schema is not known: everything is planned once it is
            return (Outcome::Unknown, End::Open);
        };
        await_hub(shared, service, &view, &plan);
        let told = report(shared, service, &plan).await;
        if plan.is_settled() && lock(&shared.failing).ended(service) {
            continue; // what failed is not wanted any more: the import may say so
        }
        if plan.is_settled() && !told {
            return (later(plan, None), End::Parked);
        }
        if plan.is_settled() {
            settled(shared, service, &view, wrote);
            let end = plan::end(&lock(&shared.desired), &view, service, &plan);
            let outcome = if end == End::Open {
                Outcome::Unknown
            } else {
                Outcome::Settled
            };
            return (outcome, end);
        }
        match perform_all(shared, service, (&view, seen), &plan, now).await {
            Ok(()) => {
                wrote = true;
                lock(&shared.failing).ended(service);
            }
            Err(Stuck::Learned) => {}
            Err(Stuck::Failed(failure, left)) => {
                let outcome = stuck(shared, service, &failure, left);
                let is_parked = matches!(&outcome, Outcome::Retry { parked: Some(_), .. });
                let end = if is_parked { End::Parked } else { End::Open };
                return (outcome, end);
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

/// Returns the plan for `service` now; `None` while the served schema is unknown.
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
    view.unwritten = lock(&shared.failing).of(service).cloned();
    view.hub_may_answer = export.is_some_and(|export| shared.patience.lasts(service, &export.uid));
    let withdraws = plan::withdraws(&desired, &view, service);
    view.withdrawal_held = shared.is_withdrawal_held(&desired, service, withdraws);
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
    /// The next plan leaves out a value that the API server refused, or says what fails.
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
    now: u64,
) -> Result<(), Stuck> {
    let mut postponed = None;
    let mut undone = Vec::new();
    let mut left_out = LeftOut::Nothing;
    let mut held = None;
    for (index, action) in plan.actions.iter().enumerate() {
        let slice = matches!(action, Action::ApplySlice { .. });
        if !left_out.lets(action) {
            undone.push(action.clone());
            continue;
        }
        let at = Instant::now();
        if let Some(until) = lock(&shared.contention).held_until(service, action, at) {
            held = Some(held.map_or(until, |held: Instant| held.min(until)));
            if slice {
                left_out = left_out.max(LeftOut::Slice);
            }
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
                if postponed.is_none() && is_news(shared, service, action, &failure, now).await {
                    return Err(Stuck::Learned);
                }
                // The rest of the plan has the message of a write that failed for long enough.
                let goes_on = failure.is_lasting() || (view.unwritten.is_some() && failure.is_answer());
                left_out = left_out.max(LeftOut::by(action, view));
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

/// People are told of a write that fails, once it has failed for long enough. True when the next plan is to say so, to an
/// API server that answers.
async fn is_news(
    shared: &Shared,
    service: &ServiceKey,
    action: &Action,
    failure: &Failure,
    now: u64,
) -> bool {
    let news = lock(&shared.failing).failed(service, action, failure, now);
    let Some(news) = news.filter(|_| failure.is_answer()) else {
        return false;
    };
    if news.event {
        shared.performer.unwritten_event(service, &news.what).await;
    }
    true
}

/// The part of a plan that was left out, as far as later parts depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LeftOut {
    /// Nothing that matters.
    Nothing,
    /// A slice.
    Slice,
    /// Something that all others of the import's objects build on.
    Import,
    /// Words on the ServiceExport.
    Export,
}

impl LeftOut {
    fn by(action: &Action, view: &ServiceView) -> Self {
        match action {
            Action::ApplySlice { .. } => Self::Slice,
            // The rest of the plan already reckons with a Service that cannot be written.
            Action::ApplyDerived { .. } if view.refusals.derived.is_some() || is_derived(&view.unwritten) => {
                Self::Nothing
            }
            Action::ApplyImport { .. }
            | Action::ApplyImportStatus { .. }
            | Action::ApplyDerived { .. }
            | Action::Delete { .. } => Self::Import,
            Action::ApplyExportStatus { .. } | Action::ExportEvent { .. } => Self::Export,
        }
    }

    /// Returns true if the action may be done nevertheless. Slices do not wait for one that is missing, nor do messages
    /// for people; a narrowing of the Service behind them waits. A cluster's exports have nothing to do with its
    /// imports.
    fn lets(self, action: &Action) -> bool {
        let of_export = matches!(
            action,
            Action::ApplyExportStatus { .. } | Action::ExportEvent { .. }
        );
        match self {
            Self::Nothing => true,
            Self::Slice => {
                let of_slices = matches!(
                    action,
                    Action::ApplySlice { .. } | Action::ApplyImportStatus { .. }
                );
                of_slices || of_export
            }
            Self::Import => of_export,
            Self::Export => false,
        }
    }
}

fn is_derived(unwritten: &Option<Unwritten>) -> bool {
    unwritten
        .as_ref()
        .is_some_and(|unwritten| unwritten.kind == Some(Kind::Derived))
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

fn stuck(shared: &Shared, service: &ServiceKey, failure: &Failure, left: Plan) -> Outcome {
    if let Failure::Schema(_) = failure {
        shared.schema_changed.notify_one();
    }
    let after = match failure {
        Failure::Throttled(after) => Some(*after),
        _ => None,
    };
    debug!(%service, %failure, "trying again");
    let told = lock(&shared.failing).of(service).map(ToString::to_string);
    let parked = told.or_else(|| failure.is_lasting().then(|| failure.to_string()));
    let parked = parked.map(Into::into);
    Outcome::Retry {
        after,
        held_until: None,
        parked,
        left,
    }
}

/// Tells people about unmanaged objects, once for each. False when somebody could not be told now.
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

//! Plan: what the hub desires × what the cluster holds → what to do, one service at a time.
//! Pure: it names `std`, the domain model, itself and the encoding of differences; it reads no clock and performs nothing.
//!
//! A service is planned again whenever something about it changed; the plan is empty when all is as it should be. Steps
//! that need an answer of the cluster (the IPs of a derived Service) come with a later plan. `progress`: the position
//! up to which the hub's objects are applied. `expire`: what goes because the Lease of its source expired, be there a
//! hub or a leader or none.

pub mod action;
mod arrivals;
pub mod content;
mod derived;
pub mod desired;
mod differences;
mod end;
mod expire;
mod expired;
mod export;
mod import;
mod interest;
mod port_names;
pub mod progress;
mod rules;
mod slices;
mod sources;
mod target;
mod touched;
pub mod view;
mod withdrawals;

#[cfg(test)]
mod tests;

use model::{ServiceKey, derived_name::derived_service_name};

pub use action::{Action, Kind, Plan, Report};
pub use desired::{Desired, Touched};
pub use differences::News;
pub use end::end;
pub use expire::expire;
pub use expired::{Expired, Situation};
pub use import::REASON_WITHDRAWAL_HELD;
pub use progress::{End, Progress, Reach};
pub use rules::{IMPORTS_MAX, ImportRules};
pub use slices::slice_names;
pub use sources::{Settling, Sources};
pub use view::{
    Found, InvalidReason, LocalConfig, NamespaceState, Ours, ServedFields, ServiceView, Validity,
};

pub use withdrawals::{Hold, Withdrawals};

use derived::{DerivedStep, plan_derived};
use port_names::PortNames;
use slices::{Front, Own, SliceSteps};
use target::{Standing, Target};

/// Returns the steps that make `service` look as it should. Empty if nothing is to be done, or nothing is known.
pub fn plan(desired: &Desired, view: &ServiceView, config: &LocalConfig, service: &ServiceKey) -> Plan {
    let mut plan = Plan::default();
    if view.namespace != NamespaceState::Active {
        return plan; // absent, unknown, or being emptied by the API server
    }
    let known = view.known;
    if known.imports && known.services && known.slices {
        if desired.admits(&service.namespace) {
            plan_imported(desired, view, config, service, &mut plan);
        } else {
            let derived_name = derived_service_name(&service.namespace, &service.name);
            remove(view, service, &derived_name, &mut plan);
        }
    }
    if known.exports {
        export::plan_export(desired, view, config, service, &mut plan);
    }
    plan
}

/// Import, derived Service and slices.
fn plan_imported(
    desired: &Desired,
    view: &ServiceView,
    config: &LocalConfig,
    service: &ServiceKey,
    plan: &mut Plan,
) {
    let derived_name = derived_service_name(&service.namespace, &service.name);
    if expire::is_all_gone(desired, view, &config.cluster, service) {
        return; // it goes by `expire`, and does not come again before one of its sources does
    }
    let target = target::target(desired, view, &config.cluster, service);
    match target {
        Target::Stand(standing) if view.import == Found::Stranger => {
            plan.reports.push(Report::Stranger {
                kind: Kind::Import,
                name: service.name.clone(),
            });
            // The existing import is kept true, with its clusters: otherwise the wrong cluster could remove it.
            if view.derived.ours().is_some() {
                stand(desired, view, config, service, &standing, &derived_name, plan);
            }
        }
        Target::Stand(standing) => stand(desired, view, config, service, &standing, &derived_name, plan),
        Target::Flip => flip(view, service, &derived_name, plan),
        Target::Remove if view.withdrawal_held => hold(desired, view, config, service, plan),
        Target::Remove => remove(view, service, &derived_name, plan),
        Target::Leave => {
            let mut steps = SliceSteps::default();
            slices::plan_foreign(desired, view, &config.cluster, None, service, plan, &mut steps);
            let own = Own::of(desired, view, config, service);
            slices::plan_own(view, own, None, None, service, plan, &mut steps);
            steps.append_to(plan);
        }
    }
}

/// Returns true if the hub removes an existing import, and may do so: imports that this cluster's own rules do not
/// admit go for another reason.
pub fn withdraws(desired: &Desired, view: &ServiceView, service: &ServiceKey) -> bool {
    let known = view.known.imports && view.known.services && view.known.slices;
    known
        && view.namespace == NamespaceState::Active
        && desired.admits(&service.namespace)
        && view.import.ours().is_some_and(|ours| !ours.deleting)
        && desired.import(service).is_none()
        && target::may_narrow(desired, view, service)
}

/// Leaves the objects of other clusters as they are, and reports that; the cluster's own slices follow its own watches.
fn hold(desired: &Desired, view: &ServiceView, config: &LocalConfig, service: &ServiceKey, plan: &mut Plan) {
    let mut steps = SliceSteps::default();
    let own = Own::of(desired, view, config, service);
    slices::plan_own(view, own, None, None, service, plan, &mut steps);
    steps.append_to(plan);
    plan.actions.extend(import::held(view, config.served));
}

/// Brings everything to `standing`. Widening: Service, import, slices; narrowing, or a port that gets a name:
/// slices, import, Service. The import's status, which is for people, comes after what carries traffic.
fn stand(
    desired: &Desired,
    view: &ServiceView,
    config: &LocalConfig,
    service: &ServiceKey,
    standing: &Standing,
    derived_name: &str,
    plan: &mut Plan,
) {
    let derived = plan_derived(standing, view, derived_name);
    if derived.stranger {
        plan.reports.push(Report::Stranger {
            kind: Kind::Derived,
            name: derived_name.into(),
        });
    }
    let front = Front {
        service,
        standing,
        derived_name,
        names: PortNames::of(standing.wants_derived().then_some(&standing.ports), view),
        may_create: !derived.waiting || derived.problem.is_some(),
        object_labels: &desired.rules().object_labels,
    };
    let mut steps = SliceSteps::default();
    let own = &config.cluster;
    slices::plan_foreign(desired, view, own, Some(&front), service, plan, &mut steps);
    slices::plan_own(
        view,
        Own::of(desired, view, config, service),
        Some(&front),
        standing.revision,
        service,
        plan,
        &mut steps,
    );
    slices::rename_ports(view, &front, &mut steps);
    let mut import = match view.import {
        Found::Stranger => Vec::new(),
        _ => import::plan_import(standing, &derived, view, config.served),
    };
    let status = import.pop_if(|action| matches!(action, Action::ApplyImportStatus { .. }));
    let DerivedStep { before, after, .. } = derived;
    if front.names.are_changing() || (before.is_none() && after.is_some()) {
        steps.append_to(plan);
        plan.actions.extend(before);
        plan.actions.extend(import);
    } else {
        plan.actions.extend(before);
        plan.actions.extend(import);
        steps.append_to(plan);
    }
    plan.actions.extend(status);
    plan.actions.extend(after);
}

/// The import is of another type: first the slices go, so that kube-proxy stops using them, then Service and import;
/// the next plan creates them again.
fn flip(view: &ServiceView, service: &ServiceKey, derived_name: &str, plan: &mut Plan) {
    let mut steps = SliceSteps::default();
    slices::detach_all(view, &mut steps);
    steps.append_to(plan);
    plan.actions.extend(delete_derived(view, derived_name));
    plan.actions.extend(delete_import(view, service));
}

/// Slices, then the import, then the Service.
fn remove(view: &ServiceView, service: &ServiceKey, derived_name: &str, plan: &mut Plan) {
    let mut steps = SliceSteps::default();
    slices::remove_all(view, &mut steps);
    steps.append_to(plan);
    plan.actions.extend(delete_import(view, service));
    plan.actions.extend(delete_derived(view, derived_name));
}

fn delete_import(view: &ServiceView, service: &ServiceKey) -> Option<Action> {
    let ours = view.import.ours().filter(|ours| !ours.deleting)?;
    Some(Action::Delete {
        kind: Kind::Import,
        name: service.name.clone(),
        uid: ours.uid.clone(),
    })
}

fn delete_derived(view: &ServiceView, derived_name: &str) -> Option<Action> {
    let ours = view.derived.ours().filter(|ours| !ours.deleting)?;
    Some(Action::Delete {
        kind: Kind::Derived,
        name: derived_name.into(),
        uid: ours.uid.clone(),
    })
}

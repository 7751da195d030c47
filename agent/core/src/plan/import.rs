//! The ServiceImport of a service: spec, status and the condition Ready.
//! IPs and families are written together, once the derived Service has them.

use model::ServiceType;

use super::{
    action::{Action, Kind},
    content::{Condition, ConditionStatus, ConditionType, ImportContent, ImportStatus},
    derived::{DerivedStep, Problem, family_of},
    target::Standing,
    view::{ServedFields, ServiceView, Unwritten},
};

/// Reason of Ready: there is no port to offer. Ours.
const REASON_NO_PORTS: &str = "NoPorts";
/// Reason of Ready: the families are not offered here.
const REASON_IP_FAMILY_NOT_SUPPORTED: &str = "IPFamilyNotSupported";
/// Reason of Ready: not yet, or an obstacle.
const REASON_PENDING: &str = "Pending";
/// Reason of Ready: it can be used.
const REASON_READY: &str = "Ready";

/// Reason of Ready: the hub took the import away with most others, and it stays for now. Ours.
pub const REASON_WITHDRAWAL_HELD: &str = "WithdrawalHeld";
/// The message to that.
const WITHDRAWAL_HELD: &str = "the hub took away most imports of this cluster at once, this one with them: it stays as it was \
     until the hub has it again, an operator confirms that it may go (the agent's doctor says how), or the time of \
     the hold is over";

/// The write that says that an import is on hold, unless it says so.
pub(super) fn held(view: &ServiceView, served: ServedFields) -> Option<Action> {
    let ours = view
        .import
        .ours()
        .filter(|ours| served.conditions && !ours.deleting)?;
    let condition = Condition {
        kind: ConditionType::Ready,
        status: ConditionStatus::True,
        reason: REASON_WITHDRAWAL_HELD.into(),
        message: WITHDRAWAL_HELD.into(),
        observed_generation: None,
    };
    let status = ImportStatus {
        ready: Some(condition),
        ..ours.content.status.clone()
    };
    (ours.content.status != status).then(|| Action::ApplyImportStatus {
        uid: Some(ours.uid.clone()),
        status,
    })
}

/// The writes that bring the import to `standing`; none while the derived Service is on its way.
pub(super) fn plan_import(
    standing: &Standing,
    derived: &DerivedStep,
    view: &ServiceView,
    served: ServedFields,
) -> Vec<Action> {
    let ours = view.import.ours();
    let on_its_way = derived.waiting && derived.problem.is_none();
    if on_its_way || ours.is_some_and(|ours| ours.deleting) {
        return Vec::new();
    }
    let content = content(standing, derived, served);
    // A field of the existing object is served, although a schema that was read too early may lack it.
    let stands = ours.is_some_and(|ours| ours.content.status.endpoint_slice_objects);
    let mut status = ImportStatus {
        clusters: standing.clusters.clone(),
        ready: served.conditions.then(|| ready(derived, view.unwritten.as_ref())),
        endpoint_slice_objects: served.endpoint_slice_objects || stands,
    };
    status.endpoint_slice_objects &= !lacks_slices(view);
    let uid = ours.map(|ours| ours.uid.clone());
    let mut actions = Vec::new();
    if !ours.is_some_and(|ours| ours.intact && ours.content.content == content) {
        actions.push(Action::ApplyImport {
            uid: uid.clone(),
            content,
            revision: standing.revision,
        });
    }
    if !ours.is_some_and(|ours| ours.content.status == status) {
        actions.push(Action::ApplyImportStatus { uid, status });
    }
    actions
}

fn content(standing: &Standing, derived: &DerivedStep, served: ServedFields) -> ImportContent {
    let headless = standing.service_type == ServiceType::Headless;
    let ip_families = if headless {
        standing.families.list().to_vec()
    } else {
        derived.ips.iter().map(family_of).collect()
    };
    let mut policies = standing.policies.clone();
    policies
        .internal_traffic_policy
        .take_if(|_| !served.internal_traffic_policy);
    policies
        .traffic_distribution
        .take_if(|_| !served.traffic_distribution);
    let mut ips = derived.ips.clone();
    if !served.second_ip {
        ips.truncate(1);
    }
    ImportContent {
        service_type: Some(standing.service_type),
        ports: standing.ports.clone(),
        ips,
        ip_families: if served.ip_families {
            ip_families
        } else {
            Vec::new()
        },
        policies,
        labels: standing.labels.clone(),
        annotations: standing.annotations.clone(),
        sources: standing.clusters.clone(),
    }
}

/// It has no slice, because none can be written.
fn lacks_slices(view: &ServiceView) -> bool {
    let is_slice = |unwritten: &Unwritten| unwritten.kind == Some(Kind::Slice) && !unwritten.deletes;
    view.unwritten.as_ref().is_some_and(is_slice) && view.our_slices().next().is_none()
}

fn ready(derived: &DerivedStep, unwritten: Option<&Unwritten>) -> Condition {
    let unwritten = unwritten.filter(|unwritten| unwritten.kind.is_some());
    let unwritten = || unwritten.map(|unwritten| Problem::Pending(unwritten.to_string()));
    let (status, reason, message) = match &derived.problem.clone().or_else(unwritten) {
        Some(Problem::NoPorts) => (
            ConditionStatus::False,
            REASON_NO_PORTS,
            "no exporting cluster offers a port: give the exported Services one".to_owned(),
        ),
        Some(Problem::Families(words)) => (
            ConditionStatus::False,
            REASON_IP_FAMILY_NOT_SUPPORTED,
            words.clone(),
        ),
        Some(Problem::Pending(words)) => (ConditionStatus::False, REASON_PENDING, words.clone()),
        None => (ConditionStatus::True, REASON_READY, left_out(derived)),
    };
    Condition {
        kind: ConditionType::Ready,
        status,
        reason: reason.into(),
        message: message.into(),
        observed_generation: None,
    }
}

fn left_out(derived: &DerivedStep) -> String {
    if derived.left_out.is_empty() {
        return String::new();
    }
    format!(
        "left out because this cluster's API refuses it: {}",
        derived.left_out.join(", ")
    )
}

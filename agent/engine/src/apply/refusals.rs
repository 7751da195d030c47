//! Values of derived Services that the API server refused, so that they are not requested again. An entry lasts as long
//! as the API server's version, at most an hour: another version or schema may accept the value, and so may the same
//! version with another service range or feature.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use model::{IpFamily, ServiceKey};

use super::failure::Failure;
use crate::plan::{Action, view::Refusals};

/// An API server releases the IPs of a deleted Service a moment after it tells of the deletion: so often they are asked
/// for again before another IP is taken, and after this wait.
const RELEASES_AWAITED: u8 = 3;
const RELEASE_WAIT: Duration = Duration::from_millis(200);
/// A refused value is asked for again once it is this old: nothing tells of an API server that has only another
/// configuration than before. A repeated refusal costs one request in this time for each Service that wants the value.
const REFUSED_MAX_MILLIS: u64 = 60 * 60 * 1_000;
/// The API server's words for an IP that another Service has.
const ALREADY_ALLOCATED: &str = "already allocated";

/// Fields of a Service that API servers of Kubernetes 1.25 and later may lack, as they call them.
const LACKED_FIELDS: [&str; 2] = [".spec.trafficDistribution", ".spec.internalTrafficPolicy"];

/// Refusals so far.
#[derive(Debug, Default)]
pub(super) struct LearnedRefusals {
    services: BTreeMap<ServiceKey, Refusals>,
    /// Number of times that the previous IPs of a Service were still taken.
    taken: BTreeMap<ServiceKey, u8>,
    /// Lists of families that this cluster does not offer to any Service.
    families: BTreeSet<Vec<IpFamily>>,
    /// The address of the API server's own schema, which has its hash.
    served_by: Option<Box<str>>,
    /// Time at which the present refusals began, in milliseconds; absent while there are none.
    refused_since: Option<u64>,
}

impl LearnedRefusals {
    /// Refusals for a service.
    pub(super) fn of(&self, service: &ServiceKey) -> Refusals {
        let mut refusals = self.services.get(service).cloned().unwrap_or_default();
        refusals.families.clone_from(&self.families);
        refusals
    }

    /// The API server describes the kinds of its core by `document`. True when it differs from before, and something is
    /// requested again.
    pub(super) fn served_by(&mut self, document: &str) -> bool {
        let before = self.served_by.replace(document.into());
        if before.is_none_or(|before| *before == *document) {
            return false;
        }
        let had_some = !self.services.is_empty() || !self.families.is_empty();
        self.services.clear();
        self.families.clear();
        had_some
    }

    /// It is `now`, in milliseconds. True when what was refused is old, and so is asked for again: values that are
    /// left out, not what is asked for again anyway until it is taken. The age runs from the first look that finds
    /// any, so that a newer one may be asked for earlier.
    pub(super) fn expire(&mut self, now: u64) -> bool {
        let are_some = !self.families.is_empty() || self.services.values().any(Refusals::leave_out_values);
        if !are_some {
            self.refused_since = None;
            return false;
        }
        let since = *self.refused_since.get_or_insert(now);
        if now.saturating_sub(since) < REFUSED_MAX_MILLIS {
            return false;
        }
        self.refused_since = None;
        self.families.clear();
        self.services.values_mut().for_each(Refusals::forget_values);
        self.services
            .retain(|_, refusals| *refusals != Refusals::default());
        true
    }

    /// A refusal that may pass by itself: the previous IPs are not released yet. It becomes a wait, a few times.
    pub(super) fn awaited(&mut self, service: &ServiceKey, action: &Action, failure: Failure) -> Failure {
        let Action::ApplyDerived { cluster_ips, .. } = action else {
            return failure;
        };
        let still_taken = match &failure {
            Failure::Refused { fields, message } => {
                message.contains(ALREADY_ALLOCATED) && fields.iter().any(|field| field.contains("clusterIP"))
            }
            _ => false,
        };
        if !still_taken || cluster_ips.is_empty() {
            return failure;
        }
        let times = self.taken.entry(service.clone()).or_default();
        if *times >= RELEASES_AWAITED {
            return failure;
        }
        *times += 1;
        Failure::Throttled(RELEASE_WAIT)
    }

    /// Takes note of what is refused in a derived Service. True when the next plan differs.
    pub(super) fn learn(
        &mut self,
        service: &ServiceKey,
        refused_before: bool,
        action: &Action,
        failure: &Failure,
    ) -> bool {
        let Action::ApplyDerived {
            content, cluster_ips, ..
        } = action
        else {
            return false;
        };
        let (words, fields) = match failure {
            Failure::Refused { message, fields } => (message, &fields[..]),
            Failure::Forbidden(message) => (message, &[][..]),
            // An older API server has no such field: it is left out like a value that is refused.
            Failure::Schema(message) if LACKED_FIELDS.iter().any(|field| message.contains(field)) => {
                (message, &[][..])
            }
            _ => return false,
        };
        let lacks = |part: &str| matches!(failure, Failure::Schema(_)) && words.contains(part);
        let names = |part: &str| lacks(part) || fields.iter().any(|field| field.contains(part));
        if names("ipFamil") {
            return self.families.insert(content.ip_families.clone());
        }
        let refusals = self.services.entry(service.clone()).or_default();
        let before = refusals.clone();
        let policies = &content.policies;
        if names("clusterIP") && !cluster_ips.is_empty() {
            refusals.cluster_ips = true;
        } else if names("trafficDistribution") {
            refusals
                .traffic_distribution
                .clone_from(&policies.traffic_distribution);
        } else if names("internalTrafficPolicy") {
            refusals
                .internal_traffic_policy
                .clone_from(&policies.internal_traffic_policy);
        } else if names("sessionAffinityConfig") {
            refusals.session_affinity_timeout_seconds = policies.session_affinity_timeout_seconds;
        } else {
            refusals.derived = Some(words.as_str().into());
        }
        *refusals != before && !refused_before
    }

    /// A Service that could be written is not refused any more.
    pub(super) fn written(&mut self, service: &ServiceKey) {
        self.taken.remove(service);
        if let Some(refusals) = self.services.get_mut(service) {
            refusals.derived = None;
            refusals.cluster_ips = false;
            if *refusals == Refusals::default() {
                self.services.remove(service);
            }
        }
    }

    /// The service is not imported any more.
    pub(super) fn forget(&mut self, service: &ServiceKey) {
        self.taken.remove(service);
        self.services.remove(service);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::content::{DerivedContent, Policies};

    fn cart() -> ServiceKey {
        ServiceKey::new("shop", "cart").unwrap()
    }

    fn apply(distribution: &str) -> Action {
        Action::ApplyDerived {
            name: "derived-x".into(),
            uid: None,
            content: DerivedContent {
                ports: BTreeSet::new(),
                policies: Policies {
                    traffic_distribution: Some(distribution.into()),
                    ..Policies::default()
                },
                family_policy: None,
                ip_families: vec![IpFamily::V6],
                sources: BTreeSet::new(),
                labels: [].into(),
                annotations: [].into(),
            },
            cluster_ips: Vec::new(),
        }
    }

    fn refused(field: &str) -> Failure {
        Failure::Refused {
            message: "no".into(),
            fields: vec![field.into()],
        }
    }

    fn with_two_refusals() -> LearnedRefusals {
        let mut learned = LearnedRefusals::default();
        assert!(!learned.served_by("/openapi/v3/api/v1?hash=1"));
        assert!(learned.learn(
            &cart(),
            false,
            &apply("PreferMars"),
            &refused("spec.trafficDistribution")
        ));
        assert!(learned.learn(&cart(), false, &apply("PreferMars"), &refused("spec.ipFamilies")));
        learned
    }

    /// Kubernetes 1.25 to 1.29, which the chart takes.
    #[test]
    fn a_field_that_the_service_of_this_cluster_lacks_is_left_out() {
        let mut learned = LearnedRefusals::default();
        let schema = |field: &str| {
            Failure::Schema(format!(
                "failed to create typed patch object (shop/derived-x; /v1, Kind=Service): {field}: field not declared in schema"
            ))
        };
        assert!(!learned.learn(&cart(), false, &apply("PreferClose"), &schema(".spec.ports")));
        assert_eq!(
            learned.of(&cart()),
            Refusals::default(),
            "nothing helps but another schema"
        );
        let lacks = schema(".spec.trafficDistribution");
        assert!(learned.learn(&cart(), false, &apply("PreferClose"), &lacks));
        assert_eq!(
            learned.of(&cart()).traffic_distribution.as_deref(),
            Some("PreferClose")
        );
        assert_eq!(learned.of(&cart()).derived, None);
    }

    #[test]
    fn what_was_refused_is_tried_again_when_the_api_server_is_another_one() {
        let mut learned = with_two_refusals();
        let before = learned.of(&cart());
        assert_eq!(before.traffic_distribution.as_deref(), Some("PreferMars"));
        assert_eq!(before.families.len(), 1);
        assert!(!learned.served_by("/openapi/v3/api/v1?hash=1"), "the same one");
        assert_eq!(learned.of(&cart()), before);
        assert!(learned.served_by("/openapi/v3/api/v1?hash=2"), "an upgrade");
        assert_eq!(learned.of(&cart()), Refusals::default());
        assert!(
            !learned.served_by("/openapi/v3/api/v1?hash=3"),
            "there is nothing to try"
        );
    }

    /// An API server of the same version got a second range of IPs, or a feature: its schema says nothing of that.
    #[test]
    fn what_was_refused_an_hour_ago_is_tried_again() {
        let (mut learned, start) = (with_two_refusals(), 7_000);
        let before = learned.of(&cart());
        assert!(!learned.expire(start), "the first look");
        assert!(!learned.expire(start + REFUSED_MAX_MILLIS - 1));
        assert_eq!(learned.of(&cart()), before);
        assert!(learned.expire(start + REFUSED_MAX_MILLIS));
        assert_eq!(learned.of(&cart()), Refusals::default());
        assert!(
            !learned.expire(start + REFUSED_MAX_MILLIS),
            "there is nothing to try"
        );
        // A repeated refusal has its own hour.
        let again = start + 3 * REFUSED_MAX_MILLIS;
        assert!(!learned.expire(again - 1), "there is still nothing");
        assert!(learned.learn(&cart(), false, &apply("PreferMars"), &refused("spec.ipFamilies")));
        assert!(!learned.expire(again), "the first look");
        assert!(!learned.expire(again + REFUSED_MAX_MILLIS - 1));
        assert!(learned.expire(again + REFUSED_MAX_MILLIS));
    }

    /// A Service that was refused altogether is requested again anyway, and its import still has the reason.
    #[test]
    fn a_refused_service_does_not_become_old() {
        let mut learned = LearnedRefusals::default();
        assert!(learned.learn(&cart(), false, &apply("x"), &Failure::Forbidden("quota".into())));
        let before = learned.of(&cart());
        assert!(!learned.expire(0) && !learned.expire(2 * REFUSED_MAX_MILLIS));
        assert!(learned.learn(&cart(), true, &apply("x"), &refused("spec.ipFamilies")));
        assert!(!learned.expire(3 * REFUSED_MAX_MILLIS) && learned.expire(4 * REFUSED_MAX_MILLIS));
        assert_eq!(learned.of(&cart()), before);
    }

    #[test]
    fn previous_ips_are_asked_for_again_before_others_are_taken() {
        let mut learned = LearnedRefusals::default();
        let Action::ApplyDerived {
            name, uid, content, ..
        } = apply("x")
        else {
            unreachable!("it applies a derived Service")
        };
        let cluster_ips = vec!["10.0.0.1".parse().unwrap()];
        let again = Action::ApplyDerived {
            name,
            uid,
            content,
            cluster_ips,
        };
        let taken = Failure::Refused {
            message: "provided IP is already allocated".into(),
            fields: vec!["spec.clusterIPs".into()],
        };
        for _ in 0..RELEASES_AWAITED {
            let failure = learned.awaited(&cart(), &again, taken.clone());
            assert!(matches!(failure, Failure::Throttled(RELEASE_WAIT)));
        }
        let failure = learned.awaited(&cart(), &again, taken.clone());
        assert!(
            matches!(failure, Failure::Refused { .. }),
            "they are somebody else's"
        );
        assert!(learned.learn(&cart(), false, &again, &failure));
        assert!(learned.of(&cart()).cluster_ips);
        let other = learned.awaited(&cart(), &apply("x"), taken);
        assert!(matches!(other, Failure::Refused { .. }), "none were asked for");
        learned.written(&cart());
        let out_of_range = learned.awaited(&cart(), &again, refused("spec.clusterIPs"));
        assert!(
            matches!(out_of_range, Failure::Refused { .. }),
            "waiting does not help"
        );
    }

    #[test]
    fn a_service_that_is_not_imported_any_more_leaves_nothing() {
        let mut learned = with_two_refusals();
        learned.forget(&cart());
        assert_eq!(learned.of(&cart()).traffic_distribution, None);
        assert_eq!(learned.of(&cart()).families.len(), 1, "they are the cluster's");
    }

    #[test]
    fn a_service_that_was_written_is_not_refused_but_its_values_are() {
        let mut learned = with_two_refusals();
        assert!(learned.learn(&cart(), false, &apply("x"), &Failure::Forbidden("quota".into())));
        assert!(!learned.learn(
            &cart(),
            true,
            &apply("x"),
            &Failure::Forbidden("less quota".into())
        ));
        learned.written(&cart());
        let left = learned.of(&cart());
        assert_eq!(left.derived, None);
        assert_eq!(left.traffic_distribution.as_deref(), Some("PreferMars"));
    }
}

//! The filter of a reader of events. A filter that could never match is refused: at night a typing error must not look
//! like silence.

use proto::v1;
use shared::model::{ClusterId, Event, Fact, FactKey, name};
use tonic::Status;

use super::{Shown, Sight, access};

/// Every kind of event, as [`shared::model::Fact::kind`] spells it.
pub(super) const KINDS: [&str; 36] = [
    "export_upserted",
    "export_removed",
    "endpoint_slice_upserted",
    "endpoint_slice_removed",
    "cluster_property_upserted",
    "cluster_property_removed",
    "health_reported",
    "listing_completed",
    "member_joined",
    "member_left",
    "member_evicted",
    "member_rekeyed",
    "member_forgotten",
    "member_live",
    "member_suspect",
    "member_lost",
    "fold_version_changed",
    "tombstones_bounded",
    "member_key_revoked",
    "operator_key_revoked",
    "member_key_contested",
    "policy_applied",
    "precedence_contested",
    "precedence_released",
    "member_withdrawn",
    "self_preservation_entered",
    "self_preservation_left",
    "join_token_created",
    "join_token_used",
    "join_token_revoked",
    "member_key_certified",
    "brake_engaged",
    "brake_released",
    "member_leaving",
    "member_stays",
    "leader_changed",
];

/// Narrows what is shown: every given part must match, and it must concern whom it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    sight: Sight,
    cluster: Option<ClusterId>,
    kind: Option<&'static str>,
    namespace: Option<Box<str>>,
}

impl Filter {
    /// Takes a request's filter, if it could match anything.
    pub(super) fn from_proto(filter: Option<v1::EventFilter>, sight: Sight) -> Result<Self, Status> {
        let v1::EventFilter {
            cluster,
            kind,
            namespace,
        } = filter.unwrap_or_default();
        let cluster = cluster_from(&cluster)?;
        its_own(&sight, cluster.as_ref())?;
        Ok(Self {
            sight,
            cluster,
            kind: kind_from(&kind)?,
            namespace: namespace_from(&namespace)?,
        })
    }

    /// Returns true if an event is wanted.
    pub(super) fn matches(&self, event: &Event) -> bool {
        let fact = &event.fact.fact;
        self.sight.shows(Shown::Event(event))
            && self
                .cluster
                .as_ref()
                .is_none_or(|wanted| event.cluster.as_ref() == Some(wanted))
            && self.kind.is_none_or(|wanted| fact.kind() == wanted)
            && self
                .namespace
                .as_ref()
                .is_none_or(|wanted| namespace_of(fact).as_ref() == Some(wanted))
    }
}

/// The namespace of the Service that a fact is about.
fn namespace_of(fact: &Fact) -> Option<Box<str>> {
    match (fact, fact.key()) {
        (_, Some(FactKey::Export(service))) => Some(service.namespace.clone()),
        (_, Some(FactKey::EndpointSlice(slice))) => Some(slice.service.namespace.clone()),
        (Fact::PrecedenceContested { service, .. } | Fact::PrecedenceReleased { service, .. }, _) => {
            Some(service.namespace.clone())
        }
        _ => None,
    }
}

/// Refuses a member that names another cluster: nothing that is only that one's concerns it.
pub(super) fn its_own(sight: &Sight, asked: Option<&ClusterId>) -> Result<(), Status> {
    match (sight, asked) {
        (Sight::Of(own), Some(asked)) if !sight.shows(Shown::Cluster(asked)) => {
            Err(Status::permission_denied(access::of_another(own, asked)))
        }
        _ => Ok(()),
    }
}

/// A cluster id in a request; empty: none.
pub(super) fn cluster_from(text: &str) -> Result<Option<ClusterId>, Status> {
    match text {
        "" => Ok(None),
        text => ClusterId::new(text)
            .map(Some)
            .map_err(|error| Status::invalid_argument(error.to_string())),
    }
}

/// A namespace in a request; empty: none.
pub(super) fn namespace_from(text: &str) -> Result<Option<Box<str>>, Status> {
    match text {
        "" => Ok(None),
        text if name::is_dns_label(text) => Ok(Some(text.into())),
        text => Err(Status::invalid_argument(format!(
            "{text:?} is no namespace: use an RFC 1123 DNS label"
        ))),
    }
}

fn kind_from(text: &str) -> Result<Option<&'static str>, Status> {
    if text.is_empty() {
        return Ok(None);
    }
    let known = KINDS.into_iter().find(|kind| *kind == text);
    known.map(Some).ok_or_else(|| {
        Status::invalid_argument(format!(
            "there is no event kind {text:?}; the kinds are {}",
            KINDS.join(", ")
        ))
    })
}

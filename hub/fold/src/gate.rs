//! Filters reports before derivation: exports that nothing allows, and endpoints with addresses that nobody may be sent
//! to. Facts are recorded nevertheless, so that a looser policy restores them by itself. It gives verdicts and their
//! wording; the consequences are decided elsewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use model::{
    ClusterId, Denial, DenialReason, EndpointSlice, EndpointView, Endpoints, Policy, Precedence, ServiceKey,
    policy::{AddressRange, lies_in, special},
};

use super::{State, rules::InForce};

/// Most addresses that are named among those left out.
const NAMED_ADDRESSES_MAX: usize = 5;

/// The filter by rules and policy.
#[derive(Debug, Clone)]
pub(super) struct Gate {
    rules: InForce,
    policy: Option<Arc<Policy>>,
}

impl Gate {
    /// The one of a state.
    pub(super) fn of(state: &State) -> Self {
        Self {
            rules: InForce(state.fold_version),
            policy: state.policy.as_ref().map(|applied| applied.policy.clone()),
        }
    }

    /// The one that the state would have under this policy.
    pub(super) fn under(state: &State, policy: &Arc<Policy>) -> Self {
        Self {
            policy: Some(policy.clone()),
            ..Self::of(state)
        }
    }

    /// The rules by which the state is folded.
    pub(super) fn rules(&self) -> InForce {
        self.rules
    }

    /// The order of a service's exports.
    pub(super) fn precedence(&self) -> Precedence {
        self.policy
            .as_ref()
            .map(|policy| policy.precedence)
            .unwrap_or_default()
    }

    /// Why an export is not taken; `None`: it is.
    pub(super) fn denial(&self, cluster: &ClusterId, service: &ServiceKey) -> Option<Denial> {
        if let Some(why) = self.rules.reserves(&service.namespace) {
            return Some(Denial {
                reason: DenialReason::Namespace,
                message: format!(
                    "Nothing is exported from namespace {}: {why}. Move the Service to another namespace.",
                    service.namespace
                )
                .into(),
            });
        }
        let why = self.policy.as_ref()?.denies_export(cluster, service)?;
        Some(Denial {
            reason: DenialReason::Policy,
            message: why.into(),
        })
    }

    /// The filter for a member's endpoints.
    pub(super) fn addresses<'a>(&'a self, cluster: &'a ClusterId) -> AddressGate<'a> {
        AddressGate {
            hygiene: self.rules.hygiene(),
            ranges: self.policy.as_ref().and_then(|policy| policy.ranges_of(cluster)),
            policy: self.policy.as_deref(),
            cluster,
        }
    }
}

/// The filter for one member's endpoints.
#[derive(Debug)]
pub(super) struct AddressGate<'a> {
    hygiene: bool,
    ranges: Option<Vec<AddressRange>>,
    policy: Option<&'a Policy>,
    cluster: &'a ClusterId,
}

impl AddressGate<'_> {
    fn is_special(&self, address: IpAddr) -> bool {
        self.hygiene && special::special(address).is_some()
    }

    fn stops(&self, address: IpAddr) -> bool {
        self.is_special(address)
            || self
                .ranges
                .as_ref()
                .is_some_and(|ranges| !lies_in(ranges, address))
    }

    /// An endpoint is reached by any of its addresses: one that is not allowed takes the others with it.
    pub(super) fn leaves_out(&self, endpoint: EndpointView<'_>) -> bool {
        // With neither rule nothing is looked at.
        (self.hygiene || self.ranges.is_some()) && endpoint.addresses().any(|address| self.stops(address))
    }

    /// The endpoints that pass: the very bytes, if all do. `None`: there are some, and none passes.
    pub(super) fn passing(&self, endpoints: &Endpoints) -> Option<Endpoints> {
        let passing = endpoints.only(|endpoint| !self.leaves_out(endpoint));
        (endpoints.is_empty() || !passing.is_empty()).then_some(passing)
    }

    /// The message about the endpoints left out of these slices; empty: none is.
    pub(super) fn words<'s>(&self, slices: impl Iterator<Item = &'s Arc<EndpointSlice>>) -> Arc<str> {
        let (mut count, mut stopped) = (0_usize, BTreeSet::new());
        for endpoint in slices.flat_map(|slice| slice.endpoints.iter()) {
            if self.leaves_out(endpoint) {
                count += 1;
                stopped.extend(endpoint.addresses().filter(|one| self.stops(*one)));
            }
        }
        if count == 0 {
            return "".into();
        }
        let mut reasons: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
        for address in stopped.iter().take(NAMED_ADDRESSES_MAX) {
            reasons.entry(self.why(*address)).or_default().push(*address);
        }
        let named = reasons.into_iter().map(|(why, addresses)| {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            format!("{} ({why})", addresses.join(", "))
        });
        let mut text = named.collect::<Vec<_>>().join("; ");
        if let Some(more @ 1..) = stopped.len().checked_sub(NAMED_ADDRESSES_MAX) {
            text.push_str(&format!("; and {more} more addresses"));
        }
        let endpoints = match count {
            1 => "1 endpoint is left out".to_owned(),
            more => format!("{more} endpoints are left out"),
        };
        format!("{endpoints}: {text}.").into()
    }

    fn why(&self, address: IpAddr) -> String {
        let special = special::special(address).filter(|_| self.hygiene);
        match (special, self.policy) {
            (Some(what), _) => what.to_owned(),
            (None, Some(policy)) => format!(
                "outside the ranges that the policy has for {}: {}",
                self.cluster,
                policy.rules_on_addresses_of(self.cluster)
            ),
            (None, None) => "not allowed".to_owned(),
        }
    }
}

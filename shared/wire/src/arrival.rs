//! The clusters that exports reached ↔ protobuf.

use std::{collections::BTreeMap, sync::Arc};

use proto::v1;

use super::common::{
    Taken, at_most, cluster_from_proto, each, required, service_key_from_proto, service_key_to_proto,
};
use model::{
    Arrival, Lack,
    sync::{ARRIVED_SERVICES_MAX, ArrivedServices, SOURCES_HELD_MAX},
};

pub(super) fn to_proto(groups: &[ArrivedServices]) -> v1::ExportsArrived {
    let group = |group: &ArrivedServices| v1::ArrivedServices {
        services: group.services.iter().map(service_key_to_proto).collect(),
        arrival: Some(arrival_to_proto(&group.arrival)),
    };
    v1::ExportsArrived {
        groups: groups.iter().map(group).collect(),
    }
}

pub(super) fn from_proto(arrived: v1::ExportsArrived) -> Taken<Vec<ArrivedServices>> {
    at_most("exportsArrived.groups", &arrived.groups, ARRIVED_SERVICES_MAX)?;
    each("exportsArrived.groups", arrived.groups, |group| {
        at_most("services", &group.services, ARRIVED_SERVICES_MAX)?;
        let services = each("services", group.services, |key| {
            service_key_from_proto("service", Some(key))
        })?;
        Ok(ArrivedServices {
            services: services.into_iter().collect(),
            arrival: Arc::new(arrival_from_proto(required("arrival", group.arrival)?)?),
        })
    })
}

/// Converts where an export arrived.
pub fn arrival_to_proto(arrival: &Arrival) -> v1::ExportArrival {
    let lacking = arrival.lacking.iter();
    v1::ExportArrival {
        clusters: arrival.clusters.iter().map(ToString::to_string).collect(),
        lacking: lacking
            .map(|(cluster, lack)| v1::LackingCluster {
                cluster: cluster.to_string(),
                reason: lack_to_proto(*lack).into(),
            })
            .collect(),
    }
}

/// Reads where an export arrived.
pub fn arrival_from_proto(arrival: v1::ExportArrival) -> Taken<Arrival> {
    at_most("arrival.clusters", &arrival.clusters, SOURCES_HELD_MAX)?;
    at_most("arrival.lacking", &arrival.lacking, SOURCES_HELD_MAX)?;
    let clusters = each("arrival.clusters", arrival.clusters, |cluster| {
        cluster_from_proto("cluster", &cluster)
    })?;
    let lacking = each("arrival.lacking", arrival.lacking, |lacking| {
        let cluster = cluster_from_proto("cluster", &lacking.cluster)?;
        Ok((cluster, lack_from_proto(lacking.reason())))
    })?;
    Ok(Arrival {
        clusters: clusters.into_iter().collect(),
        lacking: lacking.into_iter().collect::<BTreeMap<_, _>>(),
    })
}

fn lack_to_proto(lack: Lack) -> v1::LackReason {
    match lack {
        Lack::NoNamespace => v1::LackReason::LackNoNamespace,
        Lack::Withheld => v1::LackReason::LackWithheld,
        Lack::NotWritten => v1::LackReason::LackNotWritten,
        Lack::Waits => v1::LackReason::LackWaits,
        Lack::NotKnown => v1::LackReason::LackNotKnown,
    }
}

/// A reason of a later release is none that is known here.
fn lack_from_proto(reason: v1::LackReason) -> Lack {
    match reason {
        v1::LackReason::LackNoNamespace => Lack::NoNamespace,
        v1::LackReason::LackWithheld => Lack::Withheld,
        v1::LackReason::LackNotWritten => Lack::NotWritten,
        v1::LackReason::LackWaits => Lack::Waits,
        v1::LackReason::LackNotKnown | v1::LackReason::Unspecified => Lack::NotKnown,
    }
}

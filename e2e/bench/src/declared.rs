//! Owns: what a played member declared, as the objects that its cluster would show: what the oracle reads.
//! Never: says what others make of it.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::bail;
use bytes::Bytes;
use serde_json::{Value, json};
use shared::{
    api::names::LABEL_KUBERNETES_SERVICE_NAME,
    model::{ClusterId, EndpointSlice, Export, Fact, IpFamily, Protocol, ServiceType, SessionAffinity},
    wire,
};

use oracle::Picture;

/// The cluster of a member that reports these facts.
pub(super) fn picture(cluster: &ClusterId, facts: &[Bytes]) -> anyhow::Result<Picture> {
    let mut objects: BTreeMap<&str, Vec<Arc<Value>>> = BTreeMap::new();
    let mut put = |kind, object| objects.entry(kind).or_default().push(Arc::new(object));
    for fact in facts {
        match wire::decode_member_fact(fact.clone())?.fact {
            Fact::ExportUpserted(export) => {
                put("Service", service(&export));
                put("ServiceExport", service_export(&export));
            }
            Fact::EndpointSliceUpserted(slice) => put("EndpointSlice", endpoint_slice(&slice)),
            _ => bail!("a played member declares exports and slices only"),
        }
    }
    Ok(Picture::of(cluster.as_str(), |kind| {
        objects.remove(kind).unwrap_or_default()
    }))
}

fn service(export: &Export) -> Value {
    let ports = export.ports.iter().map(|port| {
        json!({"name": port.name, "protocol": protocol(port.protocol), "port": port.port,
            "appProtocol": port.app_protocol})
    });
    let families = export.ip_families.iter().map(|&family| match family {
        IpFamily::V4 => "IPv4",
        IpFamily::V6 => "IPv6",
    });
    json!({
        "metadata": {"name": export.service.name, "namespace": export.service.namespace},
        "spec": {
            "clusterIP": match export.service_type {
                ServiceType::Headless => "None",
                ServiceType::ClusterSetIp => "10.0.0.1",
            },
            "ports": ports.collect::<Value>(),
            "sessionAffinity": match export.policies.session_affinity {
                SessionAffinity::None => "None",
                SessionAffinity::ClientIp => "ClientIP",
            },
            "internalTrafficPolicy": export.policies.internal_traffic_policy,
            "ipFamilies": families.collect::<Value>(),
        },
    })
}

fn service_export(export: &Export) -> Value {
    // With as many digits each they sort as the times that they stand for.
    let created = format!("{:020}", export.created_at.0);
    json!({"metadata": {
        "name": export.service.name, "namespace": export.service.namespace, "uid": export.uid,
        "generation": export.generation, "creationTimestamp": created,
    }})
}

fn endpoint_slice(slice: &EndpointSlice) -> Value {
    let key = &slice.key;
    let ports = slice.ports.iter().map(|port| {
        json!({"name": port.name, "protocol": protocol(port.protocol), "port": port.port,
            "appProtocol": port.app_protocol})
    });
    let endpoints = slice.endpoints.values().map(|endpoint| {
        let addresses = endpoint.addresses.iter().map(ToString::to_string);
        json!({"addresses": addresses.collect::<Value>(), "conditions": {"ready": endpoint.ready}})
    });
    json!({
        "metadata": {
            "name": &*key.name, "namespace": key.service.namespace,
            "labels": {LABEL_KUBERNETES_SERVICE_NAME: key.service.name},
        },
        "ports": ports.collect::<Value>(),
        "endpoints": endpoints.collect::<Value>(),
    })
}

fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    }
}

#[cfg(test)]
mod tests {
    use shared::model::ServiceKey;

    use super::{super::facts, *};
    use oracle::{example::Example, judge_in};

    /// A cluster that holds what comes of a member's export of shop/cart with one endpoint, but for its addresses.
    fn importer() -> Example {
        let mut example = Example::new(&["west", "source"]);
        example.export("source", "cart");
        example.import_everywhere("cart");
        example
    }

    #[test]
    fn what_comes_of_a_members_facts_is_judged() {
        let key = ServiceKey::new("shop", "cart").expect("valid");
        let slice = facts::SliceTemplate::new(&key, "cart-1", 1);
        let declared = [facts::export(&key, 0, false), slice.numbered(7)];
        let source = picture(&ClusterId::new("source").expect("valid"), &declared).expect("declared");
        let mut example = importer();
        let judged = |example: &Example| {
            let west = example.pictures().remove(0);
            let judgement = judge_in(&[&source, &west], &west);
            (judgement.guarded, judgement.wrong().collect::<Vec<_>>())
        };
        let (guarded, wrong) = judged(&example);
        assert_eq!(guarded, 1);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        let address = "10.100.100.107";
        assert!(wrong[0].contains(address), "{wrong:?}");
        let right = |slice: &mut Value| {
            slice["ports"][0]["port"] = 8080.into();
            slice["endpoints"] = json!([{"addresses": [address]}]);
        };
        let imported = shared::model::derived_name::imported_slice_name("shop", "cart", "source", "cart-1");
        example.change("west", "EndpointSlice", &imported, right);
        assert_eq!(judged(&example), (1, Vec::new()));
    }
}

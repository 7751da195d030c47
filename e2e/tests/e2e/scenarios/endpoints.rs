//! Endpoints as they are in the cluster that runs them, wherever they are imported.

use anyhow::ensure;
use serde_json::{Value, json};

use super::story::{
    CLUSTERS, Kind, Story,
    expect::{backends_are, complete, same},
    objects::{address, export, plain, service, slice, slice_of_family, slice_ports, with},
    seen::Seen,
};

/// Every detail that has a meaning elsewhere.
fn detailed() -> Value {
    json!([
        {
            "addresses": ["192.0.0.1", "192.0.0.101"],
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "zone": "zone-a",
            "nodeName": "node-1",
            "targetRef": {"kind": "Pod", "namespace": "shop", "name": "cart-1", "uid": "1-2-3"},
        },
        {
            "addresses": ["192.0.0.2"],
            "conditions": {"ready": false, "serving": true, "terminating": true},
            "zone": "zone-b",
            "nodeName": "node-2",
        },
    ])
}

/// The same without what names nodes and pods of the cluster.
fn elsewhere(mut endpoints: Value) -> Value {
    for endpoint in endpoints.as_array_mut().into_iter().flatten() {
        if let Some(fields) = endpoint.as_object_mut() {
            fields.remove("nodeName");
            fields.remove("targetRef");
        }
    }
    endpoints
}

fn of_one_slice(seen: &Seen, service: &str, wanted: &Value) -> anyhow::Result<()> {
    complete(seen, service)?;
    let slices = seen.imported_from(service, "east");
    ensure!(slices.len() == 1, "{} slices instead of one", slices.len());
    same(&slices[0]["endpoints"], wanted, "the endpoints")
}

/// Conditions, zones and further addresses travel; node names and pods are known only at home.
pub(super) async fn every_detail_travels(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.apply("east", service("cart", &plain())).await?;
    story.apply("east", export("cart")).await?;
    story
        .apply("east", slice("cart", "a", slice_ports(&plain()), detailed()))
        .await?;
    story
        .until("east", |seen| of_one_slice(seen, "cart", &detailed()))
        .await?;
    for cluster in ["west", "north"] {
        story
            .until(cluster, |seen| of_one_slice(seen, "cart", &elsewhere(detailed())))
            .await?;
    }
    // One pod becomes ready, the other one goes.
    let changed = json!([{
        "addresses": ["192.0.0.1"],
        "conditions": {"ready": true, "serving": true, "terminating": false},
        "zone": "zone-c",
        "nodeName": "node-3",
    }]);
    story
        .apply("east", slice("cart", "a", slice_ports(&plain()), changed.clone()))
        .await?;
    story
        .until("east", |seen| of_one_slice(seen, "cart", &changed))
        .await?;
    for cluster in ["west", "north"] {
        story
            .until(cluster, |seen| {
                of_one_slice(seen, "cart", &elsewhere(changed.clone()))
            })
            .await?;
    }
    Ok(())
}

/// Slices come and go, one for one; none of them is ever written when nothing changed.
pub(super) async fn slices_follow_one_for_one(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story.export("east", "cart", &plain()).await?;
    let pod = |number: u8| json!([{"addresses": [address("east", number)]}]);
    for number in 2..=5 {
        let more = slice("cart", &number.to_string(), slice_ports(&plain()), pod(number));
        story.apply("east", more).await?;
    }
    let addresses: Vec<String> = (1..=5).map(|number| address("east", number)).collect();
    let all: Vec<(&str, &str)> = addresses.iter().map(|one| ("east", one.as_str())).collect();
    story
        .everywhere(|seen| {
            complete(seen, "cart")?;
            ensure!(
                seen.imported("cart").count() == 5,
                "slices are not imported one for one"
            );
            backends_are(seen, "cart", &all)
        })
        .await?;
    let versions = |seen: &Seen| -> Vec<Value> {
        let imported = seen.imported("cart");
        imported
            .map(|slice| slice["metadata"]["resourceVersion"].clone())
            .collect()
    };
    let mut before = Vec::new();
    for cluster in CLUSTERS {
        before.push(versions(&story.look(cluster).await?));
    }
    // A label of the source slice is no content.
    let labelled = json!({"metadata": {"labels": {"example.org/note": "x"}}});
    story
        .patch("east", Kind::EndpointSlice, "cart-3", labelled)
        .await?;
    story.pass("east").await?;
    for (cluster, before) in CLUSTERS.iter().zip(before) {
        let after = versions(&story.look(cluster).await?);
        ensure!(before == after, "{cluster} wrote slices in which nothing changed");
    }
    for number in [1, 3, 5] {
        story
            .delete("east", Kind::EndpointSlice, &format!("cart-{number}"))
            .await?;
    }
    story
        .everywhere(|seen| backends_are(seen, "cart", &[all[1], all[3]]))
        .await?;
    // A service without endpoints is a service.
    for number in [2, 4] {
        story
            .delete("east", Kind::EndpointSlice, &format!("cart-{number}"))
            .await?;
    }
    story
        .everywhere(|seen| {
            complete(seen, "cart")?;
            backends_are(seen, "cart", &[])
        })
        .await?;
    story.all_is_right().await
}

/// A distribution by zones gives every endpoint the hint of its own zone, or none of them any.
pub(super) async fn zones_become_hints(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let spec = with(plain(), json!({"trafficDistribution": "PreferClose"}));
    story.apply("east", service("cart", &spec)).await?;
    story.apply("east", export("cart")).await?;
    let endpoints = |second: Value| {
        json!([
            {"addresses": ["192.0.0.1"], "zone": "zone-a", "hints": {"forZones": [{"name": "zone-x"}]}},
            with(json!({"addresses": ["192.0.0.2"]}), second),
        ])
    };
    let apply = async |second: Value| {
        let one = slice("cart", "a", slice_ports(&plain()), endpoints(second));
        story.apply("east", one).await
    };
    apply(json!({"zone": "zone-b"})).await?;
    let hinted = json!([
        {"addresses": ["192.0.0.1"], "zone": "zone-a", "hints": {"forZones": [{"name": "zone-a"}]}},
        {"addresses": ["192.0.0.2"], "zone": "zone-b", "hints": {"forZones": [{"name": "zone-b"}]}},
    ]);
    let bare = |seen: &Seen| -> Value {
        let mut endpoints = seen.imported_from("cart", "east")[0]["endpoints"].clone();
        for endpoint in endpoints.as_array_mut().into_iter().flatten() {
            if let Some(fields) = endpoint.as_object_mut() {
                fields.retain(|name, value| {
                    name != "conditions" || value.as_object().is_some_and(|all| !all.is_empty())
                });
            }
        }
        endpoints
    };
    let hints_are = |seen: &Seen, wanted: &Value| {
        complete(seen, "cart")?;
        ensure!(seen.imported_from("cart", "east").len() == 1, "no slice yet");
        same(&bare(seen), wanted, "the endpoints")
    };
    story.everywhere(|seen| hints_are(seen, &hinted)).await?;
    // A single endpoint without a zone, and the others' hints would keep it from all traffic.
    apply(json!({})).await?;
    let unhinted = json!([
        {"addresses": ["192.0.0.1"], "zone": "zone-a"},
        {"addresses": ["192.0.0.2"]},
    ]);
    story.everywhere(|seen| hints_are(seen, &unhinted)).await?;
    Ok(())
}

/// Addresses of both families, each in slices of its own.
pub(super) async fn families_stay_apart(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let spec = with(
        plain(),
        json!({"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv6", "IPv4"]}),
    );
    story.apply("east", service("cart", &spec)).await?;
    story.apply("east", export("cart")).await?;
    for (family, address) in [("IPv4", "192.0.0.1"), ("IPv6", "2001:db8::1")] {
        let one = slice_of_family(
            family,
            "cart",
            &family.to_lowercase(),
            slice_ports(&plain()),
            json!([{"addresses": [address]}]),
        );
        story.apply("east", one).await?;
    }
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            let ips = import["spec"]["ips"].as_array().cloned().unwrap_or_default();
            ensure!(ips.len() == 2, "a dual-stack service has {ips:?}");
            same(
                &import["spec"]["ipFamilies"],
                &json!(["IPv6", "IPv4"]),
                "the families, in the exporter's order,",
            )?;
            for (ip, is_ipv6) in ips.iter().zip([true, false]) {
                ensure!(
                    ip.as_str().is_some_and(|text| text.contains(':')) == is_ipv6,
                    "ips and ipFamilies differ in order: {ips:?}"
                );
            }
            backends_are(seen, "cart", &[("east", "192.0.0.1"), ("east", "2001:db8::1")])
        })
        .await?;
    // Back to one family: the second IP goes, the first one stays as far as the cluster can keep it.
    let single = with(
        plain(),
        json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv6"]}),
    );
    let before = story.get("west", Kind::ServiceImport, "cart").await?;
    story.apply("east", service("cart", &single)).await?;
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            same(&import["spec"]["ipFamilies"], &json!(["IPv6"]), "the families")
        })
        .await?;
    let after = story.get("west", Kind::ServiceImport, "cart").await?;
    same(
        &after["spec"]["ips"][0],
        &before["spec"]["ips"][0],
        "the first clusterset IP",
    )
}

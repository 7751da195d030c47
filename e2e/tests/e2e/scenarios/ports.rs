//! Ports of several exports in one import, and which of them each cluster serves.

use std::collections::BTreeSet;

use anyhow::ensure;
use serde_json::{Value, json};

use super::story::{
    Story,
    expect::{backends_are, complete, exported, same},
    objects::{address, ports},
    seen::Seen,
};

/// The port names of the slices that come from a cluster, with the pods' ports.
fn served(seen: &Seen, service: &str, source: &str) -> BTreeSet<(String, u64)> {
    let slices = seen.imported_from(service, source);
    let all = slices
        .iter()
        .flat_map(|slice| slice["ports"].as_array().into_iter().flatten());
    all.map(|port| {
        let name = port["name"].as_str().unwrap_or_default();
        (name.to_owned(), port["port"].as_u64().unwrap_or_default())
    })
    .collect()
}

fn serves(seen: &Seen, service: &str, source: &str, wanted: &[(&str, u64)]) -> anyhow::Result<()> {
    let found = served(seen, service, source);
    let wanted: BTreeSet<_> = wanted
        .iter()
        .map(|(name, port)| ((*name).to_owned(), *port))
        .collect();
    ensure!(
        found == wanted,
        "{source} serves {found:?} of {service}, not {wanted:?}"
    );
    Ok(())
}

/// The oldest definition of a name wins, then that of a protocol and port; a cluster serves the ports that it
/// defines as the import does, and no others.
pub(super) async fn merge_by_name_then_by_number(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let of_east = ports(json!([{"name": "http", "port": 80}, {"name": "admin", "port": 9000}]));
    // The same name with another number, another name with the same number, the same number of another protocol,
    // and one that nobody else has.
    let of_west = ports(json!([
        {"name": "http", "port": 81},
        {"name": "control", "port": 9000},
        {"name": "quic", "port": 80, "protocol": "UDP"},
        {"name": "metrics", "port": 9100},
    ]));
    // All of its ports lose.
    let of_north = ports(json!([{"name": "http", "port": 8080}]));
    for (cluster, spec) in [("east", &of_east), ("west", &of_west), ("north", &of_north)] {
        story.export(cluster, "cart", spec).await?;
        super::story::act::next_second().await;
    }
    let merged = json!([
        {"name": "http", "protocol": "TCP", "port": 80},
        {"name": "admin", "protocol": "TCP", "port": 9000},
        {"name": "quic", "protocol": "UDP", "port": 80},
        {"name": "metrics", "protocol": "TCP", "port": 9100},
    ]);
    let winners = [("east", &*address("east", 1)), ("west", &*address("west", 1))];
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            same(&import["spec"]["ports"], &merged, "ports")?;
            serves(seen, "cart", "east", &[("http", 8080), ("admin", 17000)])?;
            serves(seen, "cart", "west", &[("quic", 8080), ("metrics", 17100)])?;
            backends_are(seen, "cart", &winners)?;
            exported(seen, "cart", "PortConflict")
        })
        .await?;
    // North takes the winning definition and may serve.
    story.back("north", "cart", &of_east).await?;
    story
        .everywhere(|seen| {
            serves(seen, "cart", "north", &[("http", 8080), ("admin", 17000)])?;
            let import = complete(seen, "cart")?;
            same(&import["spec"]["ports"], &merged, "ports")
        })
        .await?;
    // The oldest drops a port: the name goes to who still defines it.
    let fewer = ports(json!([{"name": "http", "port": 80}]));
    story.back("east", "cart", &fewer).await?;
    story.back("north", "cart", &fewer).await?;
    let merged = json!([
        {"name": "http", "protocol": "TCP", "port": 80},
        {"name": "control", "protocol": "TCP", "port": 9000},
        {"name": "quic", "protocol": "UDP", "port": 80},
        {"name": "metrics", "protocol": "TCP", "port": 9100},
    ]);
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            same(&import["spec"]["ports"], &merged, "ports")?;
            serves(seen, "cart", "east", &[("http", 8080)])?;
            serves(
                seen,
                "cart",
                "west",
                &[("control", 17000), ("quic", 8080), ("metrics", 17100)],
            )
        })
        .await?;
    Ok(())
}

/// Another application protocol is a conflict, and the same traffic.
pub(super) async fn an_application_protocol_keeps_traffic(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let plain = ports(json!([{"name": "http", "port": 80}]));
    let other = ports(json!([{"name": "http", "port": 80, "appProtocol": "http"}]));
    story.export("east", "cart", &plain).await?;
    super::story::act::next_second().await;
    story.export("west", "cart", &other).await?;
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            let wanted = json!([{"name": "http", "protocol": "TCP", "port": 80}]);
            same(&import["spec"]["ports"], &wanted, "ports")?;
            serves(seen, "cart", "west", &[("http", 8080)])?;
            match &*seen.cluster {
                "north" => Ok(()),
                _ => exported(seen, "cart", "PortConflict"),
            }
        })
        .await?;
    Ok(())
}

/// A port without a name stays so in the import, alone or among others; where a Service needs names, the derived
/// one and the slices behind it call it by protocol and number.
pub(super) async fn an_unnamed_port_gets_a_name_where_it_needs_one(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let unnamed = ports(json!([{"port": 80}]));
    story.export("east", "cart", &unnamed).await?;
    let names = |spec: &Value| -> BTreeSet<String> {
        let all = spec["ports"].as_array().into_iter().flatten();
        all.map(|port| port["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            let wanted = json!([{"protocol": "TCP", "port": 80}]);
            same(&import["spec"]["ports"], &wanted, "ports")?;
            ensure!(
                names(&seen.derived("cart")?["spec"]) == BTreeSet::from([String::new()]),
                "one port needs no name"
            );
            serves(seen, "cart", "east", &[("", 8080)])
        })
        .await?;
    super::story::act::next_second().await;
    let named = ports(json!([{"name": "grpc", "port": 90}]));
    story.export("west", "cart", &named).await?;
    story
        .everywhere(|seen| {
            let import = complete(seen, "cart")?;
            let wanted = json!([
                {"protocol": "TCP", "port": 80},
                {"name": "grpc", "protocol": "TCP", "port": 90},
            ]);
            same(&import["spec"]["ports"], &wanted, "ports")?;
            let derived = names(&seen.derived("cart")?["spec"]);
            let wanted = BTreeSet::from(["grpc".to_owned(), "unnamed-tcp-80".to_owned()]);
            ensure!(derived == wanted, "the derived Service's ports are {derived:?}");
            serves(seen, "cart", "east", &[("unnamed-tcp-80", 8080)])?;
            serves(seen, "cart", "west", &[("grpc", 8090)])
        })
        .await?;
    // And back.
    story
        .delete("west", super::story::Kind::ServiceExport, "cart")
        .await?;
    story
        .everywhere(|seen| {
            complete(seen, "cart")?;
            ensure!(
                names(&seen.derived("cart")?["spec"]) == BTreeSet::from([String::new()]),
                "one port needs no name"
            );
            serves(seen, "cart", "east", &[("", 8080)])?;
            serves(seen, "cart", "west", &[])
        })
        .await?;
    Ok(())
}

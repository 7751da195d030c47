//! Ports of several exports in one import, and which of them each cluster serves.

use std::collections::BTreeSet;

use anyhow::ensure;
use serde_json::{Value, json};

use super::story::{
    Kind, Story,
    expect::{backends_are, complete, exported, same},
    objects::{address, ports},
    seen::{Seen, condition},
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

/// The oldest definition of a name or of a protocol and number wins; a cluster serves the ports whose protocol and number
/// it defines, under the names of the import, and no others.
pub(super) async fn merge_by_name_and_by_number(story: &mut Story) -> anyhow::Result<()> {
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
            serves(
                seen,
                "cart",
                "west",
                &[("admin", 17000), ("quic", 8080), ("metrics", 17100)],
            )?;
            backends_are(seen, "cart", &winners)?;
            exported(seen, "cart", "PortConflict")?;
            let conflict = condition(seen.export("cart")?, "Conflict")?;
            let message = conflict["message"].as_str().unwrap_or_default();
            let lost = r#"No traffic reaches "west" for "http 81/TCP", "north" for "http 8080/TCP"."#;
            ensure!(message.ends_with(lost), "the conflict says {message:?}");
            Ok(())
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
    story.all_is_right().await
}

/// The oldest exporter's chart is upgraded before the others' and renames its port: number and protocol stay, and so does
/// the traffic of all.
pub(super) async fn a_name_that_the_oldest_changes_keeps_traffic(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    let before = ports(json!([{"name": "http", "port": 80}]));
    story.export_in_order(&["east", "west"], "web", &before).await?;
    let both = [("east", &*address("east", 1)), ("west", &*address("west", 1))];
    let all_serve = |seen: &Seen, name: &str| {
        complete(seen, "web")?;
        serves(seen, "web", "east", &[(name, 8080)])?;
        serves(seen, "web", "west", &[(name, 8080)])?;
        backends_are(seen, "web", &both)
    };
    story.everywhere(|seen| all_serve(seen, "http")).await?;
    let after = ports(json!([{"name": "http-web", "port": 80}]));
    story.back("east", "web", &after).await?;
    story.everywhere(|seen| all_serve(seen, "http-web")).await?;
    story.back("west", "web", &after).await?;
    story
        .everywhere(|seen| {
            all_serve(seen, "http-web")?;
            match &*seen.cluster {
                "north" => Ok(()),
                _ => exported(seen, "web", ""),
            }
        })
        .await?;
    story.all_is_right().await
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

/// A port without a name stays so in the import, alone or among others; the derived Service and the slices behind it
/// call it by protocol and number from the first write, so that it never changes its name under traffic.
pub(super) async fn an_unnamed_port_has_a_name_behind_its_import(story: &mut Story) -> anyhow::Result<()> {
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
            let derived = names(&seen.derived("cart")?["spec"]);
            let wanted = BTreeSet::from(["unnamed-tcp-80".to_owned()]);
            ensure!(derived == wanted, "the derived Service's ports are {derived:?}");
            serves(seen, "cart", "east", &[("unnamed-tcp-80", 8080)])
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
    story.delete("west", Kind::ServiceExport, "cart").await?;
    story
        .everywhere(|seen| {
            complete(seen, "cart")?;
            let derived = names(&seen.derived("cart")?["spec"]);
            let wanted = BTreeSet::from(["unnamed-tcp-80".to_owned()]);
            ensure!(derived == wanted, "the derived Service's ports are {derived:?}");
            serves(seen, "cart", "east", &[("unnamed-tcp-80", 8080)])?;
            serves(seen, "cart", "west", &[])
        })
        .await?;
    Ok(())
}

/// Another name that a user gives to a port of a derived Service would part it from its endpoints: it is taken back,
/// whoever gave it and however, and what came with it goes too.
pub(super) async fn another_name_given_to_a_port_is_taken_back(story: &mut Story) -> anyhow::Result<()> {
    story.start().await?;
    story
        .export("east", "cart", &ports(json!([{"port": 80}])))
        .await?;
    let as_written = |seen: &Seen| {
        complete(seen, "cart")?;
        let derived = seen.derived("cart")?;
        let ports = derived["spec"]["ports"].as_array().cloned().unwrap_or_default();
        ensure!(
            ports.len() == 1 && ports[0]["name"] == "unnamed-tcp-80" && ports[0]["appProtocol"].is_null(),
            "the derived Service has {ports:?}"
        );
        let managers = derived["metadata"]["managedFields"].as_array();
        let updated = managers
            .into_iter()
            .flatten()
            .any(|entry| entry["manager"] == "tributary-agent" && entry["operation"] != "Apply");
        ensure!(
            !updated,
            "the agent has another entry than its apply: {managers:?}"
        );
        serves(seen, "cart", "east", &[("unnamed-tcp-80", 8080)])
    };
    story.until("west", as_written).await?;
    let name = story.look("west").await?.derived_name("cart");
    let one = json!([{"name": "web", "appProtocol": "http", "port": 80, "protocol": "TCP"}]);
    let applied =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": one}});
    story.apply("west", applied).await?;
    story.until("west", as_written).await?;
    let two = json!([{"name": "web", "port": 80}, {"name": "more", "port": 81}]);
    for edited in [one, two] {
        let edit = json!({"spec": {"ports": edited}});
        story.patch("west", Kind::Service, &name, edit).await?;
        story.until("west", as_written).await?;
    }
    // And it was no fight: nothing is written any more.
    let version = |object: Value| object["metadata"]["resourceVersion"].clone();
    let before = version(story.get("west", Kind::Service, &name).await?);
    story.pass("east").await?;
    let after = version(story.get("west", Kind::Service, &name).await?);
    same(&after, &before, "the version of the derived Service")
}

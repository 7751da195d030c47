//! A table of merges: ports of exports by precedence, the union, and who may serve what.

use model::{Export, Protocol, ServicePort};

use super::given::{Folded, cluster, export, exported, given_members, port, slice};
use crate::{
    Command, FIRST_FOLD_VERSION, FOLD_VERSION, ports,
    rules::{InForce, PORTS_BY_NUMBER_SINCE},
};

fn udp(name: &str, number: u16) -> ServicePort {
    ServicePort {
        protocol: Protocol::Udp,
        ..port(name, number)
    }
}

fn speaking(app_protocol: &str, of: ServicePort) -> ServicePort {
    ServicePort {
        app_protocol: Some(app_protocol.into()),
        ..of
    }
}

struct Case {
    what: &'static str,
    /// Oldest first.
    exports: Vec<Vec<ServicePort>>,
    merged: Vec<ServicePort>,
    eligible: Vec<Vec<u16>>,
}

fn cases() -> Vec<Case> {
    let http = || port("http", 80);
    vec![
        Case {
            what: "one export is taken as it is",
            exports: vec![vec![http(), udp("dns", 53)]],
            merged: vec![http(), udp("dns", 53)],
            eligible: vec![vec![0, 1]],
        },
        Case {
            what: "no ports at all",
            exports: vec![vec![], vec![]],
            merged: vec![],
            eligible: vec![vec![], vec![]],
        },
        Case {
            what: "equal ports are one",
            exports: vec![vec![http()], vec![http()]],
            merged: vec![http()],
            eligible: vec![vec![0], vec![0]],
        },
        Case {
            what: "a superset adds its port",
            exports: vec![vec![http()], vec![http(), port("metrics", 9090)]],
            merged: vec![http(), port("metrics", 9090)],
            eligible: vec![vec![0], vec![0, 1]],
        },
        Case {
            what: "one name with two numbers: the older number, the younger cluster serves nothing",
            exports: vec![vec![http()], vec![port("http", 8080)]],
            merged: vec![http()],
            eligible: vec![vec![0], vec![]],
        },
        Case {
            what: "one number with two names: the older name, and both serve",
            exports: vec![vec![http()], vec![port("web", 80)]],
            merged: vec![http()],
            eligible: vec![vec![0], vec![0]],
        },
        Case {
            what: "one number over two protocols is two ports",
            exports: vec![vec![port("dns-tcp", 53)], vec![udp("dns", 53)]],
            merged: vec![port("dns-tcp", 53), udp("dns", 53)],
            eligible: vec![vec![0], vec![1]],
        },
        Case {
            what: "one name over two protocols: the older protocol",
            exports: vec![vec![port("dns", 53)], vec![udp("dns", 53)]],
            merged: vec![port("dns", 53)],
            eligible: vec![vec![0], vec![]],
        },
        Case {
            what: "the unnamed port is a name like any other",
            exports: vec![vec![port("", 80)], vec![port("", 81)], vec![port("http", 8080)]],
            merged: vec![port("", 80), port("http", 8080)],
            eligible: vec![vec![0], vec![], vec![1]],
        },
        Case {
            what: "another appProtocol loses and stays eligible",
            exports: vec![vec![speaking("h2c", http())], vec![http()]],
            merged: vec![speaking("h2c", http())],
            eligible: vec![vec![0], vec![0]],
        },
        Case {
            what: "a port that lost for its number keeps its name from nobody",
            exports: vec![vec![http()], vec![port("web", 80)], vec![port("web", 8080)]],
            merged: vec![http(), port("web", 8080)],
            eligible: vec![vec![0], vec![0], vec![1]],
        },
        Case {
            what: "a port that lost for its name keeps its number from nobody",
            exports: vec![vec![port("a", 80)], vec![port("a", 90)], vec![port("b", 90)]],
            merged: vec![port("a", 80), port("b", 90)],
            eligible: vec![vec![0], vec![1], vec![1]],
        },
        Case {
            what: "names swapped between numbers: clients connect to numbers",
            exports: vec![vec![port("a", 1), port("b", 2)], vec![port("a", 2), port("b", 1)]],
            merged: vec![port("a", 1), port("b", 2)],
            eligible: vec![vec![0, 1], vec![0, 1]],
        },
    ]
}

#[test]
fn ports_are_merged_by_name_and_by_protocol_and_number() {
    let rules = InForce(FOLD_VERSION);
    for case in cases() {
        let merged = ports::merge(case.exports.iter().map(|ports| &ports[..]), rules);
        assert_eq!(merged, case.merged, "{}", case.what);
        let eligible: Vec<Vec<u16>> = case
            .exports
            .iter()
            .map(|export| ports::eligible(&merged, export, rules))
            .collect();
        assert_eq!(eligible, case.eligible, "{}", case.what);
    }
}

/// A log of earlier rules is read by those rules.
#[test]
fn until_version_3_a_port_was_served_under_its_own_name_alone() {
    let rules = InForce(PORTS_BY_NUMBER_SINCE - 1);
    let exports = [
        vec![port("http", 80)],
        vec![port("web", 80)],
        vec![port("web", 8080)],
    ];
    let merged = ports::merge(exports.iter().map(|ports| &ports[..]), rules);
    assert_eq!(merged, [port("http", 80)]);
    let eligible: Vec<Vec<u16>> = exports
        .iter()
        .map(|export| ports::eligible(&merged, export, rules))
        .collect();
    assert_eq!(eligible, [vec![0], vec![], vec![]]);
}

/// Members of a log that the present rules fold.
fn adopted(names: &[&str]) -> Folded {
    given_members(names).after(Command::AdoptFoldVersion {
        from: FIRST_FOLD_VERSION,
    })
}

fn with_ports(seconds: u64, ports: &[ServicePort]) -> model::Fact {
    exported(Export {
        ports: ports.to_vec(),
        ..export(seconds)
    })
}

fn port_names(folded: &Folded, cluster: &str, slice: &str) -> Vec<String> {
    let imported = folded.imported_slice(cluster, slice).into_iter();
    let ports = imported.flat_map(|slice| slice.ports.iter());
    ports.map(|port| port.name.to_string()).collect()
}

/// The oldest exporter's chart is upgraded first: number and protocol stay, and so does everybody's traffic.
#[test]
fn a_port_that_the_oldest_export_renames_stays_served_by_the_others() {
    let folded = adopted(&["east", "west"])
        .and("east", exported(export(1)))
        .and("east", slice("e", &["http"]))
        .and("west", exported(export(2)))
        .and("west", slice("w", &["http"]))
        .and("east", with_ports(1, &[port("http-web", 80)]))
        .and("east", slice("e", &["http-web"]));
    assert_eq!(port_names(&folded, "east", "e"), ["http-web"]);
    assert_eq!(port_names(&folded, "west", "w"), ["http-web"]);
    let told = folded.conflicts("west");
    assert_eq!(
        told,
        [
            r#"Conflicting ports. Using "http-web 80/TCP" from oldest service export in "east". 1/2 clusters disagree. "west" has "http 80/TCP"."#
        ]
    );
    // West's turn: its Service and its slice change one after the other.
    let folded = folded.and("west", with_ports(2, &[port("http-web", 80)]));
    assert_eq!(
        port_names(&folded, "west", "w"),
        [] as [String; 0],
        "its slice has no such port"
    );
    let folded = folded.and("west", slice("w", &["http-web"]));
    assert_eq!(port_names(&folded, "west", "w"), ["http-web"]);
    assert_eq!(folded.conflicts("west"), [] as [String; 0]);
}

#[test]
fn a_name_that_lost_does_not_keep_a_third_cluster_out() {
    let folded = adopted(&["west", "east", "north"])
        .and("west", with_ports(1, &[port("http", 80)]))
        .and("east", with_ports(2, &[port("web", 80)]))
        .and("north", with_ports(3, &[port("web", 8080)]))
        .and("east", slice("e", &["web"]))
        .and("north", slice("n", &["web"]));
    assert_eq!(
        folded.import().unwrap().ports,
        [port("http", 80), port("web", 8080)]
    );
    assert_eq!(port_names(&folded, "east", "e"), ["http"]);
    assert_eq!(port_names(&folded, "north", "n"), ["web"]);
    assert!(!folded.conflicts("west")[0].contains("No traffic"));
}

#[test]
fn who_gets_no_traffic_for_a_port_is_said_to_all_exporters() {
    let folded = adopted(&["east", "north", "west"])
        .and("east", with_ports(1, &[port("http", 80)]))
        .and("north", with_ports(2, &[port("http", 81), port("metrics", 90)]))
        .and("west", with_ports(3, &[port("http", 82)]));
    let ending = r#" No traffic reaches "north" for "http 81/TCP", "west" for "http 82/TCP"."#;
    for name in ["east", "north", "west"] {
        let told = folded.conflicts(name);
        assert!(told[0].ends_with(ending), "{told:?}");
    }
    let eligible = folded.import().unwrap().clusters.get(&cluster("north"));
    assert_eq!(eligible.unwrap()[..], [1], "metrics");
}

/// The number of a port decides, so that two Services that swap names are swapped nowhere.
#[test]
fn slices_of_swapped_names_are_told_apart_by_numbers() {
    let folded = adopted(&["east", "west"])
        .and("east", with_ports(1, &[port("a", 1), port("b", 2)]))
        .and("west", with_ports(2, &[port("x", 1), port("y", 2)]))
        .and("west", slice("w", &["x", "y"]));
    assert_eq!(port_names(&folded, "west", "w"), ["a", "b"]);
    let folded = folded.and("east", with_ports(1, &[port("a", 2), port("b", 1)]));
    assert_eq!(port_names(&folded, "west", "w"), ["b", "a"]);
}

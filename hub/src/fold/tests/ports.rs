//! A table of merges: ports of exports by precedence, the union, and who may serve what.

use shared::model::{Protocol, ServicePort};

use super::given::port;
use crate::fold::ports;

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
            what: "one number with two names: the older name",
            exports: vec![vec![http()], vec![port("web", 80)]],
            merged: vec![http()],
            eligible: vec![vec![0], vec![]],
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
            what: "first by name, then by number: a name that lost its number is not taken from a younger one",
            exports: vec![vec![port("a", 80)], vec![port("b", 80)], vec![port("b", 90)]],
            merged: vec![port("a", 80)],
            eligible: vec![vec![0], vec![], vec![]],
        },
        Case {
            what: "names swapped between numbers",
            exports: vec![vec![port("a", 1), port("b", 2)], vec![port("a", 2), port("b", 1)]],
            merged: vec![port("a", 1), port("b", 2)],
            eligible: vec![vec![0, 1], vec![]],
        },
    ]
}

#[test]
fn ports_are_merged_by_name_and_then_by_protocol_and_number() {
    for case in cases() {
        let merged = ports::merge(case.exports.iter().map(|ports| &ports[..]));
        assert_eq!(merged, case.merged, "{}", case.what);
        let eligible: Vec<Vec<u16>> = case
            .exports
            .iter()
            .map(|export| ports::eligible(&merged, export))
            .collect();
        assert_eq!(eligible, case.eligible, "{}", case.what);
    }
}

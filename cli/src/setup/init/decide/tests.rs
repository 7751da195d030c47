//! The steps of `init` from every half-done state.

use clap::Parser;

use super::*;
use crate::{
    command::{Cli, Command},
    setup,
};

fn nothing() -> Seen {
    Seen {
        authority: Pair::Missing,
        joining: Pair::Missing,
        hub: Pair::Missing,
        operator: Pair::Missing,
        ca: None,
        joining_certificate: None,
        hub_is_newer: false,
        namespace: false,
        secret_ca: None,
        secret_joining: None,
        definitions: Some("definitions are missing".to_owned()),
        release: Some("it is not installed".to_owned()),
    }
}

fn everything() -> Seen {
    Seen {
        authority: Pair::Whole,
        joining: Pair::Whole,
        hub: Pair::Whole,
        operator: Pair::Whole,
        ca: Some("CA\n".to_owned()),
        joining_certificate: Some("JOINING\n".to_owned()),
        hub_is_newer: false,
        namespace: true,
        secret_ca: Some("CA\n".to_owned()),
        secret_joining: Some("JOINING\n".to_owned()),
        definitions: None,
        release: None,
    }
}

/// Carries a step out, as the shell would.
fn carried_out(seen: &mut Seen, step: Step) {
    let all = everything();
    match step {
        Step::Authority => (seen.authority, seen.ca) = (all.authority, all.ca),
        Step::Joining => (seen.joining, seen.joining_certificate) = (all.joining, all.joining_certificate),
        Step::HubCertificate => seen.hub = all.hub,
        Step::OperatorCertificate => seen.operator = all.operator,
        Step::Namespace => seen.namespace = all.namespace,
        Step::Definitions => seen.definitions = all.definitions,
        Step::HubSecret => seen.secret_ca = all.secret_ca,
        Step::JoiningSecret => seen.secret_joining = all.secret_joining,
        Step::Hub => seen.release = all.release,
    }
}

fn todo(seen: &Seen) -> Vec<Step> {
    let steps = plan(seen, "ns", "dir").expect("a plan").into_iter();
    steps
        .filter(|step| step.todo.is_some())
        .map(|step| step.step)
        .collect()
}

/// Killed after any number of steps, the next run has exactly those to do that are left.
#[test]
fn each_half_done_state_continues() {
    let whole = todo(&nothing());
    assert_eq!(whole.len(), 9);
    for stop in 0..=whole.len() {
        let mut seen = nothing();
        for step in &whole[..stop] {
            carried_out(&mut seen, *step);
        }
        assert_eq!(todo(&seen), whole[stop..], "after {stop} steps");
    }
}

#[test]
fn an_authority_is_never_replaced() {
    let refused = |change: fn(&mut Seen)| {
        let mut seen = everything();
        change(&mut seen);
        plan(&seen, "ns", "dir").expect_err("refused")
    };
    assert!(refused(|seen| seen.authority = Pair::Missing).contains("Copy that directory"));
    assert!(refused(|seen| seen.secret_ca = Some("OTHER".to_owned())).contains("another authority"));
    assert!(refused(|seen| seen.authority = Pair::WithoutKey).contains("ca.key"));
    assert!(refused(|seen| seen.joining = Pair::Missing).contains("with which clusters join"));
    assert!(refused(|seen| seen.joining = Pair::WithoutKey).contains("joining.ca.key"));
    // A successor of the joining authority that was made here goes into the cluster.
    let mut seen = everything();
    seen.joining_certificate = Some("NEXT".to_owned());
    assert_eq!(todo(&seen), [Step::JoiningSecret]);
    // So does a successor of the hub's certificate, made now or by a run that was interrupted.
    let mut seen = everything();
    seen.hub_is_newer = true;
    assert_eq!(todo(&seen), [Step::HubSecret]);
    seen.hub = Pair::Missing;
    assert_eq!(todo(&seen), [Step::HubCertificate, Step::HubSecret]);
}

#[test]
fn an_authority_that_was_used_is_not_made_anew() {
    type Change = fn(&mut Seen);
    let refused = |change: Change| {
        let mut seen = nothing();
        change(&mut seen);
        plan(&seen, "ns", "dir").err()
    };
    let cases: [(Change, Option<&str>); 5] = [
        (
            |seen| seen.authority = Pair::WithoutCertificate,
            Some("dir/ca.crt is missing, and its key is there"),
        ),
        (|seen| seen.joining = Pair::Whole, Some("Put both back")),
        (|seen| seen.hub = Pair::WithoutKey, Some("Put both back")),
        (|seen| seen.operator = Pair::Whole, None),
        (|_| (), None),
    ];
    for (change, told) in cases {
        match (refused(change), told) {
            (None, None) => {}
            (Some(said), Some(told)) => assert!(said.contains(told), "{said}"),
            (said, told) => panic!("{said:?} instead of {told:?}"),
        }
    }
}

#[test]
fn a_printed_hub_is_where_the_flags_say() {
    let address = |text: &str| text.parse::<HubAddress>().ok();
    let place = |kind, address: Option<HubAddress>, join_address: Option<HubAddress>| {
        let operator = "admin".to_owned();
        let wish = Wish {
            kind,
            address,
            join_address,
            operator,
        };
        let before = HubPlace {
            cluster: Some("uid".to_owned()),
            ..HubPlace::default()
        };
        let place = printed_place(&wish, Some(&before))?;
        assert_eq!(place.cluster, before.cluster, "what was known stays");
        Ok::<_, String>((place.hubs[0].clone(), place.joins[0].clone()))
    };
    let (hub, join) = (address("https://hub:443"), address("https://join:444"));
    let known = |hub: &str, join: &str| Ok::<_, String>((hub.to_owned(), join.to_owned()));
    let both = known("https://hub:443", "https://join:444");
    assert_eq!(place(ServiceType::NodePort, hub.clone(), join.clone()), both);
    assert_eq!(
        place(ServiceType::LoadBalancer, hub.clone(), None),
        known("https://hub:443", "https://hub:8444")
    );
    let why = place(ServiceType::LoadBalancer, None, join).expect_err("nobody knows where");
    assert!(why.contains("--print needs --address"), "{why}");
    let why = place(ServiceType::NodePort, hub, None).expect_err("nobody knows the port");
    assert!(why.contains("needs --join-address"), "{why}");
}

#[test]
fn a_second_run_needs_no_flags() {
    let args = |line: &str| {
        let typed = Cli::try_parse_from(line.split(' ')).expect("understood");
        match typed.command {
            Command::Setup(setup::Command::Init(args)) => args,
            other => panic!("{other:?}"),
        }
    };
    let first = "tributary init --context hub --service-type ClusterIP --address hub.example.org:443 --operator alice";
    let first = wish(&args(first), None);
    let before = HubPlace {
        operator: first.operator.clone(),
        service_type: first.kind,
        given: first.address.as_ref().map(ToString::to_string),
        ..HubPlace::default()
    };
    assert_eq!(wish(&args("tributary init --context hub"), Some(&before)), first);
    let other = wish(
        &args("tributary init --context hub --service-type NodePort"),
        Some(&before),
    );
    assert_eq!((other.kind, other.address), (ServiceType::NodePort, None));
    let plain = wish(&args("tributary init --context hub"), None);
    assert_eq!(
        (plain.kind, plain.operator.as_str()),
        (ServiceType::LoadBalancer, "admin")
    );
}

#[test]
fn addresses_come_from_the_service() {
    let mut service = ServiceSeen {
        sync: (8443, None),
        join: (8444, None),
        ..ServiceSeen::default()
    };
    let none = (None, None);
    let known = |found: Addresses| match found {
        Addresses::Known { hubs, joins } => {
            let texts = |all: Vec<HubAddress>| all.iter().map(ToString::to_string).collect::<Vec<_>>();
            (texts(hubs), texts(joins))
        }
        Addresses::Waiting(why) => panic!("{why}"),
    };
    let waits = |found: Addresses| matches!(found, Addresses::Waiting(_));
    assert!(waits(addresses(ServiceType::LoadBalancer, &service, &[], none)));
    service.hosts = vec!["192.0.2.1".to_owned()];
    assert_eq!(
        known(addresses(ServiceType::LoadBalancer, &service, &[], none)),
        (
            vec!["https://192.0.2.1:8443".to_owned()],
            vec!["https://192.0.2.1:8444".to_owned()]
        )
    );
    let given = "https://hub.example.org:443".parse().expect("an address");
    assert_eq!(
        known(addresses(
            ServiceType::ClusterIp,
            &service,
            &[],
            (Some(&given), None)
        )),
        (
            vec!["https://hub.example.org:443".to_owned()],
            vec!["https://hub.example.org:8444".to_owned()]
        )
    );
    assert!(waits(addresses(ServiceType::ClusterIp, &service, &[], none)));
}

#[test]
fn node_ports_are_at_the_nodes_that_are_ready() {
    let service = ServiceSeen {
        sync: (8443, Some(30_843)),
        join: (8444, Some(30_844)),
        ..ServiceSeen::default()
    };
    let node = |ready, last: u8| NodeSeen {
        ready,
        external: None,
        internal: Some(format!("192.0.2.{last}")),
    };
    let nodes = [node(false, 1), node(true, 2), node(true, 3)];
    let found = addresses(ServiceType::NodePort, &service, &nodes, (None, None));
    let Addresses::Known { hubs, joins } = found else {
        panic!("{found:?}")
    };
    assert_eq!(
        (hubs.len(), hubs[0].to_string()),
        (2, "https://192.0.2.2:30843".to_owned())
    );
    assert_eq!(joins[1].to_string(), "https://192.0.2.3:30844");
    let waits = addresses(ServiceType::NodePort, &service, &[node(false, 1)], (None, None));
    assert!(matches!(waits, Addresses::Waiting(_)));
}

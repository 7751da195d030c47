//! Ports without a name: how they are called behind a derived Service, and that no name changes under traffic.

use super::*;

fn unnamed_from(source: &str, name: &str, address: &str) -> ImportedSlice {
    let mut slice = slice(source, name, address);
    slice.ports = vec![endpoint_port("", 8080)];
    slice
}

fn of_both() -> [ImportedSlice; 2] {
    [
        unnamed_from("east", "a", "10.1.0.1"),
        unnamed_from("west", "b", "10.2.0.1"),
    ]
}

fn sources(east_listed: bool) -> [Source; 3] {
    [
        source("east", east_listed),
        source("west", true),
        source(OWN, true),
    ]
}

fn one_port() -> Desired {
    told(
        &sources(true),
        both(import(&[port("", 80)], &["east", "west"]), &of_both()),
    )
}

/// West has added a port.
fn two_ports(east_listed: bool) -> Desired {
    let mut wanted = import(&[port("", 80), port("grpc", 90)], &["west"]);
    let mut slices = of_both().to_vec();
    slices[1].ports.push(endpoint_port("grpc", 9090));
    if east_listed {
        wanted.clusters.insert(cluster("east"), vec![0]);
    } else {
        slices.remove(0); // nobody has told of it yet
    }
    told(&sources(east_listed), both(wanted, &slices))
}

/// Objects as the first agents wrote them: a single port had no name.
fn as_the_first_agents_wrote() -> Model {
    let mut model = Model::settled(&one_port());
    let Found::Ours(derived) = &mut model.view.derived else {
        panic!("no derived Service")
    };
    derived.content.content.ports = [port("", 80)].into();
    for found in model.view.slices.values_mut() {
        let Found::Ours(slice) = found else {
            panic!("a stranger")
        };
        slice.content.ports = vec![endpoint_port("", 8080)];
    }
    model
}

/// As kube-proxy joins them: the endpoints of the Service's port 80.
fn behind_port_80(model: &Model) -> Vec<String> {
    let ports = &model.derived().content.ports;
    let name = &ports.iter().find(|port| port.port == 80).expect("port 80").name;
    let slices = model.view.our_slices().map(|(_, slice)| &slice.content);
    let serving = slices.filter(|slice| slice.ports.iter().any(|port| port.name == *name));
    let mut sources: Vec<String> = serving
        .filter_map(|slice| Some(slice.source_cluster.as_ref()?.to_string()))
        .collect();
    sources.sort();
    sources
}

#[track_caller]
fn without_a_gap(model: &mut Model, desired: &Desired) {
    model.settle_watched(desired, &config(), |model| {
        assert_eq!(
            behind_port_80(model),
            ["east", "west"],
            "{:?}",
            words(&model.done)
        );
    });
    let ports = model.derived().content.ports.iter();
    let names: Vec<&str> = ports.map(|port| &*port.name).collect();
    assert!(names.contains(&"unnamed-tcp-80"), "{names:?}");
    for (_, slice) in model.view.our_slices() {
        assert!(
            slice.content.ports.iter().all(|port| !port.name.is_empty()),
            "{slice:?}"
        );
    }
}

#[test]
fn a_single_port_without_a_name_has_one_behind_its_import() {
    let model = Model::settled(&one_port());
    assert_eq!(model.import().content.ports, [port("", 80)]);
    let ports: Vec<_> = model.derived().content.ports.iter().cloned().collect();
    assert_eq!(ports, [port("unnamed-tcp-80", 80)]);
    for (_, slice) in model.view.our_slices() {
        assert_eq!(slice.content.ports, [endpoint_port("unnamed-tcp-80", 8080)]);
    }
}

#[test]
fn a_port_that_comes_while_a_source_is_not_listed_cuts_nobody_off() {
    let mut model = Model::settled(&one_port());
    without_a_gap(&mut model, &two_ports(false));
    let mut model = as_the_first_agents_wrote();
    without_a_gap(&mut model, &two_ports(false));
}

#[test]
fn a_port_comes_and_goes_without_a_gap_and_without_a_refusal() {
    for mut model in [Model::settled(&one_port()), as_the_first_agents_wrote()] {
        without_a_gap(&mut model, &two_ports(true));
        without_a_gap(&mut model, &one_port());
    }
}

#[test]
fn what_the_first_agents_wrote_is_renamed_once_and_without_a_gap() {
    let mut model = as_the_first_agents_wrote();
    without_a_gap(&mut model, &one_port());
    let order = ["slice", "slice", "service", "slice", "slice"];
    assert_eq!(words(&model.done), order);
    // and by an agent whose hub has told it of nobody
    let mut model = as_the_first_agents_wrote();
    without_a_gap(
        &mut model,
        &told(&[source("east", false), source("west", false)], vec![]),
    );
    assert_eq!(words(&model.done), order);
}

#[test]
fn own_slices_are_renamed_while_nobody_has_judged_their_export() {
    let wanted = import(&[port("", 80)], &["east", OWN]);
    let mut model = Model::new();
    model.export(&[port("", 80)], "10.0.0.1");
    let desired = told(
        &sources(true),
        both(wanted, &[unnamed_from("east", "a", "10.1.0.1")]),
    );
    model.settle(&desired);
    let Found::Ours(derived) = &mut model.view.derived else {
        panic!("no derived Service")
    };
    derived.content.content.ports = [port("", 80)].into();
    for found in model.view.slices.values_mut() {
        let Found::Ours(slice) = found else {
            panic!("a stranger")
        };
        slice.content.ports = vec![endpoint_port("", 8080)];
    }
    model.view.export.as_mut().expect("an export").validity = Validity::Unknown;
    model.settle_watched(&desired, &config(), |model| {
        assert_eq!(behind_port_80(model), ["east", OWN]);
    });
    for (_, slice) in model.view.our_slices() {
        assert_eq!(slice.content.ports, [endpoint_port("unnamed-tcp-80", 8080)]);
    }
}

#[test]
fn a_name_that_another_port_has_is_not_given() {
    let ports = [port("", 80), port("unnamed-tcp-80", 81)];
    let desired = told(
        &sources(true),
        both(import(&ports, &["east", "west"]), &of_both()),
    );
    let model = Model::settled(&desired);
    let ports = model.derived().content.ports.iter();
    let names: Vec<&str> = ports.map(|port| &*port.name).collect();
    assert_eq!(names, ["unnamed-tcp-80", "unnamed-tcp-80-1"]);
    assert_eq!(behind_port_80(&model), ["east", "west"]);
}

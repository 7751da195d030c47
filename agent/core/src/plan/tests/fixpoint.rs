//! Properties: whatever is desired after whatever was, a few plans settle it, the next plan is empty, nothing of
//! a source that is not listed is lost, and the result does not depend on the way there.

use proptest::prelude::*;

use super::*;

const CLUSTERS: [&str; 3] = ["east", "west", OWN];

#[derive(Debug, Clone)]
struct Wish {
    headless: bool,
    ports: Vec<ServicePort>,
    exporters: Vec<bool>,
    addresses: Vec<u8>,
    dual: bool,
    zones: bool,
    present: bool,
}

fn wish() -> impl Strategy<Value = Wish> {
    let ports = prop::sample::subsequence(vec![port("", 80), port("http", 81), port("grpc", 82)], 0..=3);
    let flags = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(0.8),
    );
    let exporters = prop::collection::vec(any::<bool>(), 3);
    (flags, ports, exporters, prop::collection::vec(1u8..250, 3)).prop_map(
        |((headless, dual, zones, present), ports, exporters, addresses)| Wish {
            headless,
            ports,
            exporters,
            addresses,
            dual,
            zones,
            present,
        },
    )
}

fn changes(wish: &Wish) -> Vec<DesiredChange> {
    let exporting: Vec<&str> = (0..3)
        .filter(|&n| wish.exporters[n])
        .map(|n| CLUSTERS[n])
        .collect();
    if !wish.present || exporting.is_empty() {
        return Vec::new();
    }
    let mut import = import(&wish.ports, &exporting);
    if wish.headless {
        import.service_type = ServiceType::Headless;
    }
    if wish.dual {
        import.ip_families = vec![IpFamily::V6, IpFamily::V4];
    }
    if wish.zones {
        import.policies.traffic_distribution = Some("PreferClose".into());
    }
    let slices: Vec<ImportedSlice> = (0..3)
        .filter(|&n| wish.exporters[n] && CLUSTERS[n] != OWN)
        .map(|n| slice(CLUSTERS[n], "s", &format!("10.{n}.0.{}", wish.addresses[n])))
        .collect();
    both(import, &slices)
}

fn desire(wish: &Wish, listed: &[bool]) -> Desired {
    let sources: Vec<Source> = (0..3).map(|n| source(CLUSTERS[n], listed[n])).collect();
    told(&sources, changes(wish))
}

fn local(model: &mut Model, wish: &Wish) {
    if wish.exporters[2] {
        model.export(&wish.ports, &format!("10.9.0.{}", wish.addresses[2]));
    } else {
        model.view.export = None;
        model.view.own_slices.clear();
        model.view.service_ports = None;
    }
}

/// Reduces a model to what is comparable between clusters with different histories: no uids, no IPs, no conditions of
/// exports.
fn shape(model: &Model) -> String {
    let mut import = model.view.import.ours().map(|ours| ours.content.clone());
    if let Some(import) = &mut import {
        import.content.ips.clear();
        import.content.ip_families.sort();
    }
    let ports = model
        .view
        .derived
        .ours()
        .map(|ours| ours.content.content.ports.clone());
    let slices: Vec<_> = model
        .view
        .our_slices()
        .map(|(name, slice)| (name, &slice.content))
        .collect();
    format!("{import:#?} {ports:#?} {slices:#?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn plans_settle_and_forget_how_they_got_there(first in wish(), second in wish()) {
        let mut model = Model::new();
        model.families = vec![IpFamily::V4, IpFamily::V6];
        local(&mut model, &first);
        model.settle(&desire(&first, &[true; 3]));
        local(&mut model, &second);
        let desired = desire(&second, &[true; 3]);
        model.settle(&desired);
        prop_assert!(plan(&desired, &model.view, &config(), &key()).is_settled());
        let mut fresh = Model::new();
        fresh.families = vec![IpFamily::V4, IpFamily::V6];
        local(&mut fresh, &second);
        fresh.settle(&desired);
        // the first family of a Service cannot change, so that of two paths one may keep a second family
        if first.dual == second.dual {
            prop_assert_eq!(shape(&model), shape(&fresh));
        }
    }

    #[test]
    fn nothing_of_an_unlisted_source_is_lost(
        first in wish(), second in wish(), listed in prop::collection::vec(any::<bool>(), 3),
    ) {
        let mut model = Model::new();
        model.families = vec![IpFamily::V4, IpFamily::V6];
        local(&mut model, &first);
        model.settle(&desire(&first, &[true; 3]));
        let before = model.clone();
        model.done.clear();
        model.settle(&desire(&second, &listed));
        let held = before.view.sources();
        let unlisted: Vec<ClusterId> = (0..3).filter(|&n| !listed[n]).map(|n| cluster(CLUSTERS[n])).collect();
        for (name, slice) in before.view.our_slices() {
            let source = slice.content.source_cluster.clone().unwrap();
            if source != cluster(OWN) && unlisted.contains(&source) {
                let after = model.view.slices.get(name).and_then(|found| found.ours());
                prop_assert_eq!(after.map(|ours| &ours.content), Some(&slice.content));
            }
        }
        if held.iter().any(|source| unlisted.contains(source)) {
            let (was, is) = (before.import(), model.import());
            prop_assert_eq!(was.content.service_type, is.content.service_type);
            prop_assert!(is.content.ips.starts_with(&was.content.ips));
            prop_assert_eq!(&was.content.policies, &is.content.policies);
            prop_assert!(was.content.ports.iter().all(|port| is.content.ports.contains(port)));
            prop_assert!(is.status.clusters.is_superset(&was.status.clusters));
        }
    }
}

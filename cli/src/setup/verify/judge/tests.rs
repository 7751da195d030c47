//! Verdicts: each thing that can be broken, what is said of it, and the exit code.

use std::net::IpAddr;

use super::{super::seen::Endpoint, *};

fn cart() -> ServiceKey {
    ServiceKey::new("shop", "cart").expect("a service")
}

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn endpoint(address: &str, ready: bool) -> Endpoint {
    Endpoint {
        address: ip(address),
        ports: vec![8080],
        ready,
    }
}

/// East and west export shop/cart; west looks, and everything works.
struct Scene {
    asked: Asked,
    import: Import,
    outcome: Outcome,
    found: Option<Found>,
    ran: Option<Result<Outcome, Unseen>>,
    named: bool,
}

impl Scene {
    fn new() -> Self {
        let export = |cluster: &str| Exported {
            cluster: cluster.to_owned(),
            is_exported: true,
            denial: String::new(),
            endpoints: 1,
        };
        let import = Import {
            headless: false,
            ips: vec![ip("10.96.0.1"), ip("fd00::1")],
            ports: vec![80],
            endpoints: BTreeMap::from([
                (
                    "east".to_owned(),
                    vec![endpoint("10.1.0.1", true), endpoint("fd01::1", true)],
                ),
                ("west".to_owned(), vec![endpoint("10.2.0.1", true)]),
            ]),
        };
        let dials = [
            "10.96.0.1:80",
            "[fd00::1]:80",
            "10.1.0.1:8080",
            "[fd01::1]:8080",
            "10.2.0.1:8080",
        ];
        let outcome = Outcome {
            names: BTreeMap::from([(
                "cart.shop.svc.clusterset.local.".to_owned(),
                Ok(vec![ip("10.96.0.1"), ip("fd00::1")]),
            )]),
            dials: dials.iter().map(|dial| (at(dial), Ok(700))).collect(),
            families: BTreeSet::from(Family::ALL),
        };
        Self {
            asked: Asked {
                service: cart(),
                exports: vec![export("east"), export("west")],
            },
            import,
            outcome,
            found: None,
            ran: None,
            named: false,
        }
    }

    fn judged(self) -> Verdict {
        let found = self.found.unwrap_or(Found::Import(self.import));
        let from = From {
            cluster: "west".to_owned(),
            context: "admin@west".to_owned(),
            found: Ok(BTreeMap::from([(cart(), found)])),
            ran: BTreeMap::from([(cart(), self.ran.unwrap_or(Ok(self.outcome)))]),
        };
        let contexts = [("east", "e"), ("west", "admin@west")];
        let contexts = contexts.map(|(id, context)| (id.to_owned(), context.to_owned()));
        let named = if self.named {
            BTreeSet::from(["west".to_owned()])
        } else {
            BTreeSet::new()
        };
        judge(&[self.asked], &[from], &contexts.into(), &named)
    }
}

/// Changes a scene, and expects one finding with these words, and this exit code.
#[track_caller]
fn told(change: impl FnOnce(&mut Scene), code: u8, what: &str, next: &str) -> Verdict {
    let mut scene = Scene::new();
    change(&mut scene);
    let verdict = scene.judged();
    assert_eq!(verdict.findings.len(), 1, "{verdict:#?}");
    let found = &verdict.findings[0];
    assert!(found.what.contains(what), "{found:?}");
    assert!(found.next.contains(next), "{found:?}");
    assert_eq!(verdict.exit_code(), code, "{found:?}");
    verdict
}

fn cells(verdict: &Verdict) -> Vec<String> {
    let row = |row: &Row| {
        format!(
            "{}>{} {} {:?} {:?} {:?}",
            row.from, row.to, row.family, row.name, row.ip, row.endpoints
        )
    };
    verdict.rows.iter().map(row).collect()
}

#[test]
fn everything_works() {
    let verdict = Scene::new().judged();
    assert_eq!(verdict.findings, []);
    assert_eq!(verdict.exit_code(), 0);
    assert_eq!(
        cells(&verdict),
        [
            "west>east IPv4 Ok Ok Ok",
            "west>east IPv6 Ok Ok Ok",
            "west>west IPv4 Ok Ok Ok",
        ]
    );
    assert_eq!(verdict.rows[0].latency_micros, Some(700));
}

#[test]
fn an_export_that_nobody_answers_for_is_named() {
    let endpoints = |scene: &mut Scene| {
        scene.asked.exports.remove(1);
        scene.asked.exports[0].endpoints = 0;
    };
    let verdict = told(
        endpoints,
        1,
        "east exports it without an endpoint",
        "kubectl --context e -n shop get service/cart pods",
    );
    assert_eq!(verdict.rows, []);
    let denied = |scene: &mut Scene| scene.asked.exports[0].denial = "no rule allows it".to_owned();
    told(
        denied,
        1,
        "of east: no rule allows it",
        "tributary explain shop/cart",
    );
    let missing = |scene: &mut Scene| scene.asked.exports[0].is_exported = false;
    told(
        missing,
        1,
        "east does not export it",
        "tributary export shop/cart --context e",
    );
    let nobody = |scene: &mut Scene| scene.asked.exports.clear();
    told(nobody, 1, "no cluster exports it", "--context CONTEXT --wait");
    let unready = |scene: &mut Scene| {
        scene
            .import
            .endpoints
            .insert("east".to_owned(), vec![endpoint("10.1.0.1", false)]);
    };
    told(unready, 1, "no endpoint of east is ready", "-n shop get pods");
}

#[test]
fn a_cluster_without_the_import_is_explained() {
    let none = |scene: &mut Scene| scene.found = Some(Found::NoImport);
    told(
        none,
        1,
        "west has no ServiceImport shop/cart",
        "tributary explain shop/cart --cluster west",
    );
    let slices = |scene: &mut Scene| drop(scene.import.endpoints.remove("east"));
    told(
        slices,
        1,
        "endpoints of east, and west has none",
        "explain shop/cart --cluster west",
    );
}

/// A cluster without the namespace imports nothing by design; one that was named should.
#[test]
fn a_cluster_without_the_namespace_is_broken_only_if_it_was_named() {
    let words = (
        "west has no namespace shop",
        "--context admin@west create namespace shop",
    );
    let none = |scene: &mut Scene| scene.found = Some(Found::NoNamespace);
    told(none, 2, words.0, words.1);
    let named = |scene: &mut Scene| {
        scene.found = Some(Found::NoNamespace);
        scene.named = true;
    };
    told(named, 1, words.0, words.1);
}

#[test]
fn a_name_that_does_not_resolve_leads_to_dns() {
    let name = "cart.shop.svc.clusterset.local.";
    let fails = |why: &'static str| {
        move |scene: &mut Scene| drop(scene.outcome.names.insert(name.to_owned(), Err(why.to_owned())))
    };
    let verdict = told(
        fails("Name does not resolve"),
        1,
        "cart.shop.svc.clusterset.local does not resolve in west",
        "tributary join west --context admin@west --dns yes",
    );
    assert_eq!(cells(&verdict)[0], "west>east IPv4 Failed Ok Ok");
    told(fails(TIMED_OUT), 1, "no answer", "see if CoreDNS runs");
    let other = |scene: &mut Scene| {
        let found = Ok(vec![ip("10.96.9.9"), ip("fd00::1")]);
        scene.outcome.names.insert(name.to_owned(), found);
    };
    let verdict = told(other, 1, "resolves to 10.96.9.9 in west", "after 30 s");
    assert_eq!(
        cells(&verdict)[1],
        "west>east IPv6 Ok Ok Ok",
        "the other family works"
    );
    let half = |scene: &mut Scene| {
        drop(
            scene
                .outcome
                .names
                .insert(name.to_owned(), Ok(vec![ip("10.96.0.1")])),
        )
    };
    told(half, 1, "has no address of this family", "after 30 s");
}

#[test]
fn a_connection_that_does_not_open_leads_to_the_network() {
    let dial = |to: &'static str, why: &'static str| {
        move |scene: &mut Scene| drop(scene.outcome.dials.insert(at(to), Err(why.to_owned())))
    };
    let verdict = told(
        dial("10.1.0.1:8080", TIMED_OUT),
        1,
        "10.1.0.1:8080 does not answer: no answer",
        "route between the pods of west and those of east, both ways, and let TCP port 8080 through",
    );
    assert_eq!(verdict.findings[0].about, "shop/cart from west to east, IPv4");
    assert_eq!(cells(&verdict)[0], "west>east IPv4 Ok Ok Failed");
    told(
        dial("10.1.0.1:8080", "Connection refused"),
        1,
        "refuses connections",
        "kubectl --context e -n shop get pods",
    );
    told(
        dial("10.2.0.1:8080", TIMED_OUT),
        1,
        "does not answer",
        "pod network of west",
    );
    let verdict = told(
        dial("10.96.0.1:80", TIMED_OUT),
        1,
        "the clusterset IP 10.96.0.1:80 does not answer in west, and the pods behind it answer",
        "kube-proxy",
    );
    assert_eq!(cells(&verdict)[0], "west>east IPv4 Ok Failed Ok");
}

/// One cause is told once.
#[test]
fn an_ip_fails_because_of_its_endpoints() {
    let both = |scene: &mut Scene| {
        for to in ["10.1.0.1:8080", "10.96.0.1:80"] {
            scene.outcome.dials.insert(at(to), Err(TIMED_OUT.to_owned()));
        }
    };
    let verdict = told(both, 1, "10.1.0.1:8080 does not answer", "route between");
    assert_eq!(cells(&verdict)[0], "west>east IPv4 Ok Failed Failed");
}

#[test]
fn clusters_need_a_family_in_common() {
    let six = |scene: &mut Scene| {
        scene.import.ips.truncate(1);
        scene
            .import
            .endpoints
            .insert("east".to_owned(), vec![endpoint("fd01::1", true)]);
    };
    told(
        six,
        1,
        "endpoints of east are IPv6, and the service in west is IPv4",
        "dual-stack",
    );
}

#[test]
fn a_headless_service_resolves_to_endpoints_in_the_families_of_the_pod() {
    let mut scene = Scene::new();
    scene.import.headless = true;
    scene.import.ips.clear();
    scene.outcome.families = BTreeSet::from([Family::V4]);
    let found = Ok(vec![ip("10.1.0.1"), ip("10.2.0.1")]);
    scene
        .outcome
        .names
        .insert("cart.shop.svc.clusterset.local.".to_owned(), found);
    let verdict = scene.judged();
    assert_eq!(verdict.findings, []);
    assert_eq!(
        cells(&verdict),
        ["west>east IPv4 Ok None Ok", "west>west IPv4 Ok None Ok"]
    );
}

#[test]
fn what_could_not_be_looked_at_is_not_broken() {
    let unseen = |scene: &mut Scene| {
        scene.ran = Some(Err(Unseen {
            why: "no pod could look".to_owned(),
            next: "name an image".to_owned(),
        }));
    };
    let verdict = told(unseen, 2, "no pod could look", "name an image");
    assert_eq!(verdict.rows, []);
    let udp = |scene: &mut Scene| {
        scene.asked.exports.remove(1);
        scene.import.ports.clear();
        for endpoint in scene.import.endpoints.values_mut().flatten() {
            endpoint.ports.clear();
        }
    };
    told(udp, 2, "has no TCP port", "a client of its own protocol");
    let from = From {
        cluster: "north".to_owned(),
        context: String::new(),
        found: Err(next::no_context("north")),
        ran: BTreeMap::new(),
    };
    let verdict = judge(&[Scene::new().asked], &[from], &BTreeMap::new(), &BTreeSet::new());
    assert!(verdict.findings[0].next.contains("--cluster north=CONTEXT"));
    assert_eq!(verdict.exit_code(), 2);
    let verdict = judge(&[], &[], &BTreeMap::new(), &BTreeSet::new());
    assert_eq!(verdict.findings[0].what, "no service is exported");
    assert_eq!(verdict.exit_code(), 2);
}

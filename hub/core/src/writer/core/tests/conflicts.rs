//! Tests of the number of exports in conflict, also after a restart.

use model::ConflictReason;

use super::given::export;
use super::*;

/// An export of shop/cart at this port.
fn exported(port: u16) -> EncodedFact {
    wire::encode_fact(&export("shop", "cart", 1, port))
}

fn report(core: &mut Core, cluster: &str, fact: EncodedFact) {
    let session = admit(core, hello(cluster, "one", 1)).expect("nobody holds it");
    let observe = Request::Observe {
        session,
        cluster: id(cluster),
        observations: vec![Observation::new(1, ObservedItem::Fact(fact))],
    };
    assert!(!handle(core, observe).events.is_empty());
}

/// The gauge of it as it is scraped.
fn shown(core: &Core) -> i64 {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = crate::metrics::WriterMetrics::register(&mut registry);
    metrics.conflicts(|reason| core.open_conflicts(reason));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("encoded");
    let line = "exports_in_conflict{reason=\"PortConflict\"} ";
    let count = text.lines().find_map(|said| said.strip_prefix(line));
    count.and_then(|count| count.parse().ok()).expect("it is shown")
}

#[test]
fn conflicts_are_known_after_a_start_and_end_with_a_member() {
    let mut core = core();
    report(&mut core, "east", exported(80));
    assert_eq!(shown(&core), 0);
    report(&mut core, "west", exported(81));
    let both = core.open_conflicts(ConflictReason::Port);
    assert_eq!((both, shown(&core)), (2, 2));
    let mut again = started_again(core);
    assert_eq!(shown(&again), 2, "nothing changed, and a conflict is one");
    assert!(!evict(&mut again, true).events.is_empty());
    assert_eq!(shown(&again), 0);
}

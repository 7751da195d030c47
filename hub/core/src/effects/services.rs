//! Effects on the services that a member exports when their export ends, in sentences for people. Pure.

use model::{ClusterId, ServiceKey};

use fold::State;

/// Most services or members that a sentence names.
pub(super) const NAMED_MAX: usize = 5;

/// Effects on services that a member no longer exports.
pub(super) fn withdrawn(
    state: &State,
    cluster: &ClusterId,
    what: &str,
    services: &[&ServiceKey],
) -> Vec<String> {
    if services.is_empty() {
        return vec![format!("it exports nothing: no import changes")];
    }
    let alone = |service: &&&ServiceKey| state.exporters(service).all(|exporter| exporter == cluster);
    let (ending, narrowed): (Vec<&ServiceKey>, Vec<&ServiceKey>) =
        services.iter().partition(|service| alone(service));
    let mut effects = vec![format!(
        "{what}, and its endpoints removed in every cluster: {}",
        some(services)
    )];
    if !ending.is_empty() {
        effects.push(format!(
            "imports that end with it, because nobody else exports them: {}",
            some(&ending)
        ));
    }
    if !narrowed.is_empty() {
        effects.push(format!(
            "imports that stay, served by the other exporters: {}",
            some(&narrowed)
        ));
    }
    effects
}

/// Services by name, up to a bound.
pub(super) fn some(services: &[&ServiceKey]) -> String {
    let named: Vec<String> = services.iter().take(NAMED_MAX).map(ToString::to_string).collect();
    match services.len().checked_sub(NAMED_MAX) {
        Some(more @ 1..) => format!("{} and {more} more", named.join(", ")),
        _ => named.join(", "),
    }
}

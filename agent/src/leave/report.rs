//! Owns: what people read of a cluster that leaves: what goes, what stays and why, and what is left to do.
//! Never: asks anybody.

use std::{collections::BTreeMap, fmt::Write};

use shared::{
    api::names::{AGENT_MANAGER, LABEL_MANAGED_BY},
    model::advice,
};

use super::decide::{Fate, Found, Kind, Wish, fate};

/// Most objects that are named one by one for each of their ends; the others are counted.
const NAMED_MAX: usize = 50;

/// The hub's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hub {
    /// It was not asked.
    NotAsked,
    /// Effects at the hub.
    Said(Vec<String>),
}

/// Before anything happens.
pub fn planned(found: &[Found], wish: &Wish, hub: &Hub, leader: Option<&str>) -> String {
    let mut text = "Nothing has changed yet. With --confirm this cluster leaves:\n".to_owned();
    told(&mut text, hub, "would be told nothing");
    let of = |end: Fate| found.iter().filter(move |found| fate(found, wish) == end);
    listed(&mut text, "deleted", of(Fate::Goes));
    listed(&mut text, "conditions removed", of(Fate::TakenBack));
    listed(&mut text, "left as the cluster's own", of(Fate::GivenUp));
    left(&mut text, found, wish);
    if let Some(holder) = leader {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            text,
            "An agent runs here and leads ({holder}): uninstall it first (helm uninstall tributary-agent), for it would make \
             everything again"
        );
    }
    text
}

/// Afterwards: `before` were found, `after` are left.
pub fn done(before: &[Found], after: &[Found], wish: &Wish, hub: &Hub) -> String {
    let mut text = "This cluster has left:\n".to_owned();
    told(
        &mut text,
        hub,
        "was told nothing: an operator ends the membership there (tributary member evict ID --now)",
    );
    let mut counts: BTreeMap<(Kind, &str), usize> = BTreeMap::new();
    for found in before {
        let what = match fate(found, wish) {
            Fate::Goes => "deleted",
            Fate::TakenBack => "removed",
            Fate::GivenUp => "left as the cluster's own",
            Fate::Kept | Fate::NotOurs => continue,
        };
        *counts.entry((found.kind, what)).or_default() += 1;
    }
    for ((kind, what), count) in counts {
        let _ = writeln!(text, "  {count} {} {what}", kind.as_str());
    }
    left(&mut text, after, wish);
    let _ = writeln!(
        text,
        "Next: take the zone out of CoreDNS\n  {}",
        advice::agent_corefile_remove(&[])
    );
    text
}

/// Returns the objects that should be gone by now, and are not.
pub fn stuck<'a>(after: &'a [Found], wish: &Wish) -> Vec<&'a Found> {
    let due = |found: &&Found| super::decide::is_due(found, wish);
    after.iter().filter(due).collect()
}

fn told(text: &mut String, hub: &Hub, nothing: &str) {
    match hub {
        Hub::NotAsked => {
            let _ = writeln!(text, "  the hub {nothing}");
        }
        Hub::Said(effects) => {
            for effect in effects {
                let _ = writeln!(text, "  at the hub: {effect}");
            }
        }
    }
}

/// Everything with the agent's label that stays.
fn left(text: &mut String, found: &[Found], wish: &Wish) {
    let stays = |found: &&Found| matches!(fate(found, wish), Fate::Kept | Fate::NotOurs);
    if !found.iter().any(|found| stays(&found)) && stuck(found, wish).is_empty() {
        let _ = writeln!(
            text,
            "Nothing with the label {LABEL_MANAGED_BY}={AGENT_MANAGER} is left"
        );
        return;
    }
    let of = |end: Fate| found.iter().filter(move |found| fate(found, wish) == end);
    listed(text, "kept, as asked", of(Fate::Kept));
    listed(
        text,
        "with our label and made by somebody else, not touched",
        of(Fate::NotOurs),
    );
}

fn listed<'a>(text: &mut String, what: &str, found: impl Iterator<Item = &'a Found>) {
    let mut more = 0;
    for (number, found) in found.enumerate() {
        if number < NAMED_MAX {
            let _ = writeln!(text, "  {what}: {}", named(found));
        } else {
            more += 1;
        }
    }
    if more > 0 {
        let _ = writeln!(text, "  {what}: {more} more");
    }
}

/// An object, as people name it, with what it waits for.
pub fn named(found: &Found) -> String {
    let place = if found.namespace.is_empty() {
        found.name.clone()
    } else {
        format!("{}/{}", found.namespace, found.name)
    };
    let waits = match &found.finalizers[..] {
        [] => String::new(),
        finalizers => format!(", which waits for {}", finalizers.join(", ")),
    };
    format!("{} {place}{waits}", found.kind.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leave::args::Keep;

    fn found(kind: Kind, name: &str, ours: bool) -> Found {
        Found {
            kind,
            namespace: if kind == Kind::Clusterset {
                String::new()
            } else {
                "shop".into()
            },
            name: name.into(),
            ours,
            finalizers: Vec::new(),
        }
    }

    #[test]
    fn what_would_go_and_what_would_stay_is_shown_before() {
        let all = [
            found(Kind::Slice, "imported-x", true),
            found(Kind::Conditions, "cart", true),
            found(Kind::Clusterset, "clusterset.k8s.io", true),
            found(Kind::Derived, "derived-y", false),
        ];
        let said = Hub::Said(vec!["west is no member any more".into()]);
        let text = planned(&all, &Wish::default(), &said, Some("pod-uid"));
        for line in [
            "Nothing has changed yet",
            "  at the hub: west is no member any more\n",
            "  deleted: EndpointSlice shop/imported-x\n",
            "  deleted: ClusterProperty clusterset.k8s.io\n",
            "  conditions removed: ServiceExport (its conditions) shop/cart\n",
            "made by somebody else, not touched: Service shop/derived-y\n",
            "leads (pod-uid)",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn afterwards_it_is_counted_and_what_is_left_is_listed() {
        let before = [
            found(Kind::Slice, "imported-x", true),
            found(Kind::Slice, "imported-y", true),
            found(Kind::Clusterset, "clusterset.k8s.io", true),
        ];
        let text = done(&before, &[], &Wish::default(), &Hub::NotAsked);
        assert!(text.contains("  2 EndpointSlice deleted\n"), "{text}");
        assert!(
            text.contains("is left\n") && text.contains("member evict ID --now"),
            "{text}"
        );
        let wish = Wish {
            keep: [Keep::Imports].into(),
            forget_id: false,
        };
        let text = done(&before, &before[..2], &wish, &Hub::NotAsked);
        assert!(
            text.contains("  kept, as asked: EndpointSlice shop/imported-y\n"),
            "{text}"
        );
        assert!(!text.contains("Nothing with the label"), "{text}");
    }

    #[test]
    fn what_waits_for_somebody_is_stuck_and_named_with_whom() {
        let waits = Found {
            finalizers: vec!["example.org/hold".into()],
            ..found(Kind::Import, "cart", true)
        };
        let after = [waits, found(Kind::Derived, "derived-y", false)];
        let stuck = stuck(&after, &Wish::default());
        assert_eq!(stuck.len(), 1);
        assert_eq!(
            named(stuck[0]),
            "ServiceImport shop/cart, which waits for example.org/hold"
        );
    }

    #[test]
    fn many_are_counted() {
        let many: Vec<Found> = (0..60)
            .map(|n| found(Kind::Slice, &n.to_string(), true))
            .collect();
        let text = planned(&many, &Wish::default(), &Hub::NotAsked, None);
        assert!(text.contains("  deleted: 10 more\n"), "{text}");
    }
}

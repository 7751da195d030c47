//! The share of each member, and what of a fact counts.

use model::{ClusterProperty, Fact, PropertyValue};

use super::*;

// The alarm comes before a lone member is refused.
const _: () = assert!(STATE_ALARM_PERCENT < 66);

fn property(bytes: usize) -> Usage {
    let property = ClusterProperty {
        name: "p".into(),
        value: PropertyValue::Text("x".repeat(bytes).into()),
    };
    Usage::of(&wire::encode_fact(&Fact::ClusterPropertyUpserted(
        property.into(),
    )))
}

fn facts(count: u64) -> Usage {
    (0..count).fold(Usage::default(), |usage, _| usage.and(property(100)))
}

/// Members that take as much as they may, one after the other; the share that each has, in percent.
fn taken(members: usize) -> Vec<u64> {
    let one = property(100);
    let most = Total::Memory.of(&one) * 900;
    let bounds = StateBounds {
        memory: most,
        ..StateBounds::default()
    };
    let mut all = Usage::default();
    let shares = (0..members).map(|_| {
        let mut own = Usage::default();
        while lacking(&bounds, &own, &own.and(one), &all.and(one)).is_none() {
            (own, all) = (own.and(one), all.and(one));
        }
        Total::Memory.of(&own) * 100 / most
    });
    shares.collect()
}

#[test]
fn each_member_takes_two_thirds_of_what_is_left_and_something_is_left() {
    assert_eq!(taken(3), [66, 22, 7]);
}

#[test]
fn only_growth_is_short_of_a_total_and_nothing_is_beyond_it() {
    let bounds = StateBounds {
        memory: Total::Memory.of(&facts(10)),
        ..StateBounds::default()
    };
    let (none, all) = (Usage::default(), facts(10));
    let small = property(1);
    assert_eq!(
        lacking(&bounds, &none, &small, &all.and(small)),
        Some(Total::Memory)
    );
    assert_eq!(lacking(&bounds, &facts(10), &facts(9), &facts(9)), None);
    assert_eq!(lacking(&bounds, &facts(5), &facts(5), &facts(20)), None);
    assert_eq!(fullest(&bounds, &facts(8)), (Total::Memory, 80));
}

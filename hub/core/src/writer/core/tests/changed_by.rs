//! Tests of the last writer of an object: noted beside the report, and never a reason for anything.

use super::*;

#[test]
fn who_changed_an_object_is_recorded_beside_the_fact_and_is_no_news_by_itself() {
    let (mut noted, mut silent) = (core(), core());
    let by = |manager: &str| ChangedBy::new(manager, UnixMillis(1_000));
    let [of_noted, of_silent] =
        [&mut noted, &mut silent].map(|core| admit(core, hello("east", "one", 1)).expect("admitted"));
    let recorded = |core: &mut Core, session, sequence, changed_by| {
        let observation = Observation {
            changed_by,
            ..Observation::new(sequence, ObservedItem::Fact(property("region")))
        };
        let request = Request::Observe {
            session,
            cluster: id("east"),
            observations: vec![observation],
        };
        let batch = handle(core, request);
        let events = batch.events.into_iter().map(|(_, payload)| {
            let event = wire::decode_event(Revision(0), payload.into()).expect("the core wrote it");
            event.changed_by
        });
        events.collect::<Vec<_>>()
    };
    assert_eq!(recorded(&mut noted, of_noted, 1, by("helm")), [by("helm")]);
    assert_eq!(recorded(&mut noted, of_noted, 2, by("kubectl-edit")), []);
    assert_eq!(recorded(&mut silent, of_silent, 1, None), [None]);
    let states = [&noted, &silent].map(Core::state);
    assert_eq!(
        states[0].members(),
        states[1].members(),
        "the state knows nothing of it"
    );
}

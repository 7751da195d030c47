//! Owns: what the log on a simulated hub's disk says: that it is whole, and its last events in words.
//! Never: writes to it.

use hub::{
    log::{Budget, History, Log, MemoryLog},
    replay,
};
use shared::{
    model::{Epoch, Revision, UnixMillis},
    wire,
};

use super::program::HubMachine;

/// Number of events to print.
const LAST: u64 = 60;

fn opened(hub: &HubMachine) -> anyhow::Result<MemoryLog> {
    let copy = hub.disk.borrow().copy();
    let epoch = Epoch::default().next(UnixMillis(1), 1);
    Ok(MemoryLog::open(&copy, &hub.clusterset, epoch)?)
}

/// The log opens again, whole, and gives a state.
pub(super) fn is_whole(hub: &HubMachine) -> anyhow::Result<()> {
    replay::replay(&opened(hub)?.reader())?;
    Ok(())
}

/// The last events, a line each.
pub(super) fn last_events(hub: &HubMachine) -> anyhow::Result<Vec<String>> {
    let reader = opened(hub)?.reader();
    let head = reader.wait(|history: &dyn History| Ok(history.head()))?;
    let from = Revision(head.revision.0.saturating_sub(LAST)).next();
    let page = reader.wait(move |history: &dyn History| history.read(head.epoch, from, Budget::default()))?;
    let told = page.events.into_iter().map(|stored| {
        let event = wire::decode_event(stored.revision, stored.payload.into())?;
        let fact = &event.fact.fact;
        let cluster = event
            .cluster
            .map(|cluster| cluster.to_string())
            .unwrap_or_default();
        let of = fact.key().map(|key| format!(": {key}")).unwrap_or_default();
        Ok(format!(
            "{} {} {cluster} {}{of}",
            stored.revision,
            event.recorded_at.0,
            fact.kind()
        ))
    });
    told.collect()
}

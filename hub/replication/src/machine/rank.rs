//! Which of several hubs takes the lead first, so that they do not collide, and that several clustersets spread.

use model::{ChainHash, Clusterset, Cursor, Epoch};

use crate::engine::{Head, HubRow, Replica, Role};

/// Number of announced hubs that come before this one. The leader that is silent does not count.
pub(super) fn rank(clusterset: &Clusterset, me: &Replica, hubs: &[HubRow], silent: &Replica) -> u64 {
    let weight = |replica: &Replica| {
        let hash = ChainHash::start(clusterset, Epoch::default()).after(replica.as_str().as_bytes());
        (hash.0, replica.clone())
    };
    let mine = weight(me);
    let others = hubs
        .iter()
        .map(|row| &row.replica)
        .filter(|other| *other != silent && *other != me);
    others.filter(|other| weight(other) > mine).count() as u64
}

/// Returns true if a hub has announced a longer log than the engine has. It may be the only one that has some events.
pub(super) fn is_somebody_ahead(hubs: &[HubRow], me: &Replica, head: &Head) -> bool {
    hubs.iter()
        .filter(|row| row.replica != *me)
        .any(|row| row.role == Role::Ahead && row.synced.is_some_and(|at| is_longer(&at, &head.at)))
}

/// Returns true if this hub's log is the longest of the announced ones that are longer than the engine's; of equally long ones,
/// that of the smallest name.
pub(super) fn is_longest(hubs: &[HubRow], me: &Replica, mine: &Cursor) -> bool {
    hubs.iter()
        .filter(|row| row.replica != *me && row.role == Role::Ahead)
        .all(|row| {
            let at = row.synced.unwrap_or_default();
            is_longer(mine, &at) || (!is_longer(&at, mine) && *me < row.replica)
        })
}

/// Returns true if a position is behind another in epoch and revision.
pub(super) fn is_longer(one: &Cursor, other: &Cursor) -> bool {
    (one.epoch, one.revision) > (other.epoch, other.revision)
}

//! Owns: whether the disk under the log has room for what makes the state larger, and what that is.
//! Never: asks a disk, or removes anything.
//!
//! Old history goes first: below the alarm the oldest segments go until there is room again, down to the one that is
//! written to. If there is none left to remove and the reserve is touched, new or changed facts are refused for now,
//! and the rest serves removals, updates that only remove endpoints, memberships, decisions, snapshots and epochs.

use std::{collections::BTreeMap, net::IpAddr};

use model::{EncodedFact, EndpointSlice, EndpointView, Fact};

use crate::bounds::Bounds;
use event_log::{Retention, Space};
use fold::{Draft, DraftFact};

/// Hysteresis: free space must exceed the threshold at which a state began by this percentage of the disk for the state
/// to end, so that a share that sways about the threshold is one change, not many.
const MARGIN_PERCENT: u8 = 1;

/// While history can go, growth is refused only below one such part of the reserve.
const LAST_PART: u64 = 2;

/// The room on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum DiskRoom {
    /// Enough, as far as anybody can tell.
    #[default]
    Enough,
    /// It is time for somebody to look, and history goes.
    Scarce,
    /// The reserve is touched, and no history is left to go: nothing grows.
    Reserve,
}

impl DiskRoom {
    /// Judges this much space, after it was `before`. `history`: segments are kept that could go. They take a moment to, and
    /// longer while somebody reads them, so half of the reserve refuses growth whatever could go.
    pub fn of(space: Option<Space>, bounds: &Bounds, before: Self, history: bool) -> Self {
        let Some(space) = space else {
            return Self::Enough;
        };
        let below = |percent: u8, state: Self| {
            // A threshold of nothing is none.
            let margin = if before >= state { MARGIN_PERCENT } else { 0 };
            percent > 0 && lacking(space, u64::from(percent + margin)) > 0
        };
        let reserve = bounds.disk_reserve_percent;
        let waits = history
            && before < Self::Reserve
            && space.free.saturating_mul(LAST_PART) >= share(space, reserve.into());
        if below(reserve, Self::Reserve) && !waits {
            Self::Reserve
        } else if below(bounds.disk_alarm_percent, Self::Scarce) {
            Self::Scarce
        } else {
            Self::Enough
        }
    }

    /// Returns the retention for this much space: what is configured, less what lacks to the alarm.
    pub fn retention(space: Option<Space>, bounds: &Bounds, bytes_on_disk: u64) -> Retention {
        let configured = bounds.retention;
        let alarm = u64::from(bounds.disk_alarm_percent);
        let scarce = space.filter(|space| alarm > 0 && lacking(*space, alarm) > 0);
        let Some(space) = scarce else {
            return configured;
        };
        let lacking = lacking(space, alarm + u64::from(MARGIN_PERCENT));
        Retention {
            bytes: configured.bytes.min(bytes_on_disk.saturating_sub(lacking)),
            ..configured
        }
    }

    /// Returns true if a reported fact that would be recorded is refused for now, health included: a member may report
    /// it as often as anything, and the reserve must outlast every one of them.
    pub(super) fn refuses(self, fact: &EncodedFact) -> bool {
        self == Self::Reserve && !fact.fact.is_removal()
    }

    /// Returns true if what an admission would record is refused for now: a new member, and with it all its facts.
    pub(super) fn refuses_to_admit(self, drafts: &[Draft]) -> bool {
        let joins = |draft: &Draft| matches!(draft.fact, DraftFact::Decided(Fact::MemberJoined { .. }));
        self == Self::Reserve && drafts.iter().any(joins)
    }
}

/// So many percent of a disk, in bytes.
fn share(space: Space, percent: u64) -> u64 {
    let share = u128::from(percent) * u128::from(space.total);
    u64::try_from(share.div_ceil(100)).unwrap_or(u64::MAX)
}

/// Returns the bytes that are missing to this many percent of free space.
fn lacking(space: Space, percent: u64) -> u64 {
    share(space, percent).saturating_sub(space.free)
}

/// One endpoint among those of a slice: its addresses, host name and zone.
type Which<'a> = (Vec<IpAddr>, Option<&'a str>, Option<&'a str>);
/// The endpoints of a slice, each with its readiness.
type Readiness<'a> = BTreeMap<Which<'a>, bool>;

fn readiness(endpoint: EndpointView<'_>) -> (Which<'_>, bool) {
    let which = (
        endpoint.addresses().collect(),
        endpoint.hostname(),
        endpoint.zone(),
    );
    (which, endpoint.is_ready())
}

/// Returns true if a slice only takes endpoints away from the one that is known, or readiness: each of its endpoints was
/// there under the same host name and in the same zone, none becomes ready, and something of that is less. So it happens
/// at most twice for each endpoint, and each time records little.
pub(super) fn only_shrinks(known: &EndpointSlice, now: &EndpointSlice) -> bool {
    if (&known.ports, known.address_type) != (&now.ports, now.address_type) {
        return false;
    }
    let before: Readiness<'_> = known.endpoints.iter().map(readiness).collect();
    let after: Readiness<'_> = now.endpoints.iter().map(readiness).collect();
    let was_there = |(which, ready): (&Which<'_>, &bool)| {
        before.get(which).is_some_and(|was_ready| *was_ready || !*ready)
    };
    let size =
        |endpoints: &Readiness<'_>| endpoints.len() + endpoints.values().filter(|ready| **ready).count();
    now.endpoints.len() == after.len() && after.iter().all(was_there) && size(&after) < size(&before)
}

#[cfg(test)]
mod tests {
    use model::{Endpoint, IpFamily, ServiceKey, SliceKey};

    use super::*;

    fn of(free: u64, before: DiskRoom) -> DiskRoom {
        let space = Space { free, total: 1_000 };
        DiskRoom::of(Some(space), &Bounds::default(), before, false)
    }

    #[test]
    fn while_history_can_go_growth_is_refused_from_half_of_the_reserve() {
        let of = |free, before, history| {
            let space = Space { free, total: 1_000 };
            DiskRoom::of(Some(space), &Bounds::default(), before, history)
        };
        for (free, before, history, after) in [
            (49, DiskRoom::Enough, true, DiskRoom::Scarce),
            (25, DiskRoom::Scarce, true, DiskRoom::Scarce),
            (24, DiskRoom::Scarce, true, DiskRoom::Reserve),
            (49, DiskRoom::Scarce, false, DiskRoom::Reserve),
            // Refusals last until there is room, whatever was sealed meanwhile.
            (49, DiskRoom::Reserve, true, DiskRoom::Reserve),
            (60, DiskRoom::Reserve, true, DiskRoom::Scarce),
        ] {
            assert_eq!(of(free, before, history), after, "{free} after {before:?}");
        }
    }

    #[test]
    fn below_the_alarm_as_much_history_goes_as_lacks_to_a_margin_above_it() {
        let bounds = Bounds {
            retention: Retention {
                age_millis: 7,
                bytes: 600,
            },
            ..Bounds::default()
        };
        let kept = |free, on_disk| {
            let space = Space { free, total: 1_000 };
            let retention = DiskRoom::retention(Some(space), &bounds, on_disk);
            assert_eq!(retention.age_millis, 7);
            retention.bytes
        };
        assert_eq!(kept(150, 500), 600, "as configured");
        assert_eq!(kept(149, 500), 500 - 11, "160 are to be free");
        assert_eq!(kept(149, 5_000), 600, "no more than is configured");
        assert_eq!(kept(0, 100), 0, "down to what is written to");
        assert_eq!(DiskRoom::retention(None, &bounds, 500), bounds.retention);
        let never = Bounds {
            disk_alarm_percent: 0,
            ..bounds
        };
        let full = Some(Space {
            free: 0,
            total: 1_000,
        });
        assert_eq!(DiskRoom::retention(full, &never, 500), bounds.retention);
    }

    #[test]
    fn a_slice_shrinks_when_endpoints_go_or_stop_being_ready_and_nothing_else_comes() {
        let endpoint = |octet: u8, ready: bool| Endpoint {
            addresses: vec![[10, 0, 0, octet].into()],
            ready: Some(ready),
            serving: None,
            terminating: None,
            hostname: None,
            zone: None,
        };
        let slice = |endpoints: &[(u8, bool)]| EndpointSlice {
            key: SliceKey {
                service: ServiceKey::new("shop", "cart").expect("valid"),
                name: "one".into(),
            },
            address_type: IpFamily::V4,
            ports: Vec::new(),
            endpoints: endpoints
                .iter()
                .map(|(octet, ready)| endpoint(*octet, *ready))
                .collect(),
        };
        let known = slice(&[(1, true), (2, true), (3, false)]);
        for (now, shrinks) in [
            (vec![(1, true), (2, true)], true),
            (vec![], true),
            (vec![(1, true), (2, false), (3, false)], true),
            (vec![(2, false)], true),
            (vec![(1, true), (2, true), (3, false)], false),
            (vec![(1, true), (2, true), (3, true)], false),
            (vec![(1, true), (3, true)], false),
            (vec![(1, true), (4, true)], false),
            (vec![(1, true), (1, true)], false),
        ] {
            assert_eq!(only_shrinks(&known, &slice(&now)), shrinks, "{now:?}");
        }
        let other_port = EndpointSlice {
            address_type: IpFamily::V6,
            ..slice(&[])
        };
        assert!(!only_shrinks(&known, &other_port));
    }

    #[test]
    fn room_is_a_share_of_the_disk_and_a_state_ends_a_margin_behind_where_it_began() {
        assert_eq!(
            DiskRoom::of(None, &Bounds::default(), DiskRoom::Reserve, false),
            DiskRoom::Enough
        );
        for (free, before, after) in [
            (150, DiskRoom::Enough, DiskRoom::Enough),
            (149, DiskRoom::Enough, DiskRoom::Scarce),
            (159, DiskRoom::Scarce, DiskRoom::Scarce),
            (160, DiskRoom::Scarce, DiskRoom::Enough),
            (50, DiskRoom::Scarce, DiskRoom::Scarce),
            (49, DiskRoom::Enough, DiskRoom::Reserve),
            (59, DiskRoom::Reserve, DiskRoom::Reserve),
            (60, DiskRoom::Reserve, DiskRoom::Scarce),
            (160, DiskRoom::Reserve, DiskRoom::Enough),
            (0, DiskRoom::Enough, DiskRoom::Reserve),
        ] {
            assert_eq!(of(free, before), after, "{free} after {before:?}");
        }
        let never = Bounds {
            disk_alarm_percent: 0,
            disk_reserve_percent: 0,
            ..Bounds::default()
        };
        let space = Space {
            free: 0,
            total: u64::MAX,
        };
        assert_eq!(
            DiskRoom::of(Some(space), &never, DiskRoom::Reserve, false),
            DiskRoom::Enough
        );
    }
}

//! Owns: whether the disk under the log has room for what makes the state larger, and what that is.
//! Never: asks a disk, or removes anything.
//!
//! Every event takes room, and old history goes only as whole segments; so while the reserve is touched, facts that are
//! new or changed are refused for now, and what is left serves removals, memberships, decisions, snapshots and epochs.

use shared::model::{EncodedFact, Fact};

use crate::{
    bounds::Bounds,
    fold::{Draft, DraftFact},
    log::Space,
};

/// How much more must be free than where a state began for it to end, in percent of the disk: a share that sways about
/// a threshold is one change, not many.
const MARGIN_PERCENT: u8 = 1;

/// The room on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum DiskRoom {
    /// Enough, as far as anybody can tell.
    #[default]
    Enough,
    /// It is time for somebody to look.
    Scarce,
    /// The reserve is touched: nothing grows.
    Reserve,
}

impl DiskRoom {
    /// What so much space is, after it was `before`.
    pub fn of(space: Option<Space>, bounds: &Bounds, before: Self) -> Self {
        let Some(space) = space else {
            return Self::Enough;
        };
        let below = |percent: u8, state: Self| {
            // A threshold of nothing is none.
            let margin = if before >= state { MARGIN_PERCENT } else { 0 };
            let share = u128::from(percent + margin) * u128::from(space.total);
            percent > 0 && u128::from(space.free) * 100 < share
        };
        if below(bounds.disk_reserve_percent, Self::Reserve) {
            Self::Reserve
        } else if below(bounds.disk_alarm_percent, Self::Scarce) {
            Self::Scarce
        } else {
            Self::Enough
        }
    }

    /// Whether a reported fact that would be recorded is refused for now, health included: a member may report it as
    /// often as anything, and the reserve must outlast every one of them.
    pub(super) fn refuses(self, fact: &EncodedFact) -> bool {
        self == Self::Reserve && !fact.fact.is_removal()
    }

    /// Whether what an admission would record is refused for now: a new member, and with it all its facts.
    pub(super) fn refuses_to_admit(self, drafts: &[Draft]) -> bool {
        let joins = |draft: &Draft| matches!(draft.fact, DraftFact::Decided(Fact::MemberJoined { .. }));
        self == Self::Reserve && drafts.iter().any(joins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(free: u64, before: DiskRoom) -> DiskRoom {
        let space = Space { free, total: 1_000 };
        DiskRoom::of(Some(space), &Bounds::default(), before)
    }

    #[test]
    fn room_is_a_share_of_the_disk_and_a_state_ends_a_margin_behind_where_it_began() {
        assert_eq!(
            DiskRoom::of(None, &Bounds::default(), DiskRoom::Reserve),
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
            DiskRoom::of(Some(space), &never, DiskRoom::Reserve),
            DiskRoom::Enough
        );
    }
}

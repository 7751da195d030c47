//! Owns: the writer's looks at the total of all members' reports, and the alarm before there is no more room.
//! Never: says who may have how much; that is `totals`.

use super::Writer;
use crate::writer::totals::{STATE_ALARM_PERCENT, Total, fullest};

/// The alarm ends so many percent below where it began, so that a share that sways is one change.
const MARGIN_PERCENT: u64 = 5;

impl Writer {
    /// Measures the state, and tells when its alarm begins or ends.
    pub(super) fn look_at_the_state(&mut self) {
        let (bounds, used) = (self.bounds().state, self.core.used());
        for total in Total::ALL {
            let (used, limit) = (total.of(&used), total.most(&bounds));
            self.metrics.observe_state(total.as_str(), used, limit);
        }
        let (total, percent) = fullest(&bounds, &used);
        let is_alarm = alarms(self.state_alarm, percent);
        if std::mem::replace(&mut self.state_alarm, is_alarm) == is_alarm {
            return;
        }
        if is_alarm {
            tracing::warn!(
                of = total.as_str(),
                percent,
                "the members have recorded most of what this hub allows for all of them: a member that has its share of what \
                 is left waits with what is new. Raise {}, and the memory limit of the hub with it, or have members export \
                 less",
                total.flag()
            );
        } else {
            tracing::info!(percent, "the hub has room for what members export again");
        }
    }
}

/// Returns true if the alarm is on at this share, in percent.
fn alarms(before: bool, percent: u64) -> bool {
    percent >= STATE_ALARM_PERCENT - if before { MARGIN_PERCENT } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alarm_begins_at_its_share_and_ends_a_margin_below() {
        for (before, percent, alarm) in [
            (false, 59, false),
            (false, 60, true),
            (true, 55, true),
            (true, 54, false),
        ] {
            assert_eq!(alarms(before, percent), alarm, "{percent} after {before}");
        }
    }
}

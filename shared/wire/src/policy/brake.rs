//! The removal brake in a document. Nothing is judged here but what is written.

use serde::Deserialize;

use super::{Taken, duration, percent, stated};
use model::{
    policy::{BRAKE_WITHIN_MILLIS_MAX, Brake},
    validate::{self, InvalidValue},
};

/// Value of `longest` with which a hold waits for a decision.
const UNLIMITED: &str = "unlimited";

/// The hold's settings in a document; a missing one is not set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct BrakeRule {
    #[serde(default, deserialize_with = "stated")]
    enabled: Option<bool>,
    #[serde(default, deserialize_with = "stated")]
    exports: Option<u32>,
    #[serde(default, deserialize_with = "stated")]
    percent: Option<u8>,
    #[serde(default, deserialize_with = "stated")]
    within: Option<String>,
    #[serde(default, deserialize_with = "stated")]
    longest: Option<String>,
}

pub(super) fn read(rule: Option<BrakeRule>) -> Taken<Brake> {
    let mut brake = Brake::default();
    let Some(rule) = rule else {
        return Ok(brake);
    };
    if let Some(enabled) = rule.enabled {
        brake.enabled = enabled;
    }
    if let Some(exports) = rule.exports {
        if exports == 0 {
            let problem = "is 0; use 1 or more, or say enabled: false";
            return Err(InvalidValue::new("exports", problem));
        }
        brake.exports = exports;
    }
    if let Some(share) = rule.percent {
        brake.percent = percent("percent", share)?;
    }
    if let Some(within) = rule.within {
        brake.within_millis = duration("within", &within, 0)?;
        if !(1..=BRAKE_WITHIN_MILLIS_MAX).contains(&brake.within_millis) {
            let minutes = BRAKE_WITHIN_MILLIS_MAX / 60_000;
            let problem = format!("{} is not between 1ms and {minutes}m", validate::shown(&within));
            return Err(InvalidValue::new("within", problem));
        }
    }
    if let Some(longest) = rule.longest {
        brake.longest_millis = match longest.as_str() {
            UNLIMITED => None,
            limited => Some(duration("longest", limited, 0)?),
        };
    }
    Ok(brake)
}

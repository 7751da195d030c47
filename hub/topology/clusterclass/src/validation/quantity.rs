//! Owns: numbers that may be percentages, and health checks and rollouts with such numbers.

use serde_json::Value;

use super::super::model::{HealthCheck, Placed, Report, Rollout};

/// The number, of a percentage or not; none if it is neither.
fn read(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64().filter(|number| *number <= i32::MAX as u64),
        Value::String(text) => {
            let digits = text.strip_suffix('%')?;
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok())?
        }
        _ => None,
    }
}

fn check(placed: &Placed<Value>, rule: &'static str, report: &mut Report) {
    if read(&placed.value).is_none() {
        report.say(
            rule,
            &placed.field,
            "must be a number or a percentage, such as 1 or 30%",
        );
    }
}

/// Tells what is wrong with a health check.
pub(super) fn check_health(health: &HealthCheck, rule: &'static str, report: &mut Report) {
    if let Some(startup) = &health.startup_seconds
        && startup.value != 0
        && startup.value < 30
    {
        report.say(
            rule,
            &startup.field,
            "must be at least 30 seconds, or 0 for no limit",
        );
    }
    for quantity in &health.quantities {
        check(quantity, rule, report);
    }
}

/// Tells what is wrong with a rollout.
pub(super) fn check_rollout(rollout: &Rollout, report: &mut Report) {
    const RULE: &str = "rollout-strategy";
    for quantity in [&rollout.max_surge, &rollout.max_unavailable]
        .into_iter()
        .flatten()
    {
        check(quantity, RULE, report);
    }
    let none = |quantity: &Option<Placed<Value>>| {
        quantity
            .as_ref()
            .is_some_and(|quantity| read(&quantity.value) == Some(0))
    };
    if none(&rollout.max_surge) && none(&rollout.max_unavailable) {
        report.say(
            RULE,
            &rollout.field,
            "maxSurge and maxUnavailable must not both be 0",
        );
    }
}

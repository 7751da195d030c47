//! Owns: how much memory the process may have, as its control group says, and whether the state fits in there.
//! Never: measures what it has.

use std::path::Path;

/// The files in which Linux says it: cgroup 2, and cgroup 1.
const LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];
/// The part of the limit, in percent, that the state may take: sessions, the log, and what is on its way need the rest.
pub(crate) const STATE_PERCENT_MAX: u64 = 65;
/// A limit from here on is none: cgroup 1 says so by a number of this size.
const NO_LIMIT: u64 = 1 << 60;

/// The limit, if there is one.
pub(crate) fn limit() -> Option<u64> {
    let read = |path: &&str| std::fs::read_to_string(Path::new(path)).ok();
    LIMITS.iter().find_map(read).as_deref().and_then(parsed)
}

fn parsed(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|limit| *limit < NO_LIMIT)
}

/// Returns the most that `--state-memory` may be within a limit, if it is more.
pub(crate) fn too_much(state: u64, limit: Option<u64>) -> Option<u64> {
    let most = limit? / 100 * STATE_PERCENT_MAX;
    (state > most).then_some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::StateBounds;

    #[test]
    fn the_default_fits_into_the_limit_of_the_chart_and_into_half_of_it_not() {
        let chart = parsed("1073741824\n");
        assert_eq!(chart, Some(1 << 30));
        let state = StateBounds::default().memory;
        assert_eq!(too_much(state, chart), None);
        assert_eq!(
            too_much(state, Some(1 << 29)),
            Some((1 << 29) / 100 * STATE_PERCENT_MAX)
        );
        for none in ["max\n", "9223372036854771712", ""] {
            assert_eq!(too_much(state, parsed(none)), None, "{none}");
        }
    }
}

//! Owns: how many file descriptors this process may have: as many as it is allowed to take.
//! Never: opens one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one, as every process may, and says what is allowed then.
pub fn raise() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // A refusal leaves the soft limit, which is what is asked for next.
    let _ = setrlimit(Resource::Nofile, raised);
    // None means that there is no limit.
    let allowed = getrlimit(Resource::Nofile).current;
    allowed.map_or(usize::MAX, |allowed| {
        usize::try_from(allowed).unwrap_or(usize::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let allowed = raise();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
        assert_eq!(Some(allowed as u64), limit.current.or(Some(usize::MAX as u64)));
    }
}

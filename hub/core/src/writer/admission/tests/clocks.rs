//! A wall clock that is wrong for a moment: it locks nobody out, and stops no renewal.

use super::*;

/// The wall clock was ahead for one tick, whether something was recorded then or not.
#[test]
fn a_moment_of_a_wrong_clock_locks_nobody_out() {
    let hour = 3_600_000;
    let with_certificate = || {
        let mut request = hello("east", None, CursorCheck::Absent);
        request.presented.not_after = Some(UnixMillis(24 * hour));
        request
    };
    let mut core = core();
    let batch = admit(&mut core, with_certificate());
    assert!(
        batch
            .replies
            .iter()
            .any(|reply| matches!(reply, Reply::Admitted(..)))
    );
    for (ticks, is_lost) in [(1..2, false), (2..41, true)] {
        for tick in ticks {
            core.tick(UnixMillis(25 * hour), tick * 500, []);
        }
        let recorded = !core.take_batch().events.is_empty();
        assert_eq!(recorded, is_lost, "a loss is recorded by the wrong clock");
        // The clock is right again, and the certificate has 24 hours.
        let batch = admit(&mut core, with_certificate());
        let mut replies = batch.replies.iter();
        let admitted = replies.any(|reply| matches!(reply, Reply::Admitted(..)));
        assert!(admitted, "{:?}", batch.replies);
    }
}

/// By a clock that was ahead a loss is recorded. A member may have six certificates a minute after that, too.
#[test]
fn a_moment_of_a_wrong_clock_stops_no_renewal() {
    let mut core = core();
    admit(&mut core, hello("east", None, CursorCheck::Absent));
    let session = core.sessions[&id("east")].session;
    for tick in 1..41 {
        core.tick(UnixMillis(36_000_000), tick * 500, []);
    }
    assert!(!core.take_batch().events.is_empty(), "it is lost");
    let mut certify = |number: u8, now: u64| {
        core.tick(UnixMillis(now), now, [(id("east"), now)]);
        core.take_batch();
        let certification = Certification {
            session,
            cluster: id("east"),
            key: KeyFingerprint([number; 32]),
            by: KEY,
            issuer: "CN=joining".into(),
            not_after: UnixMillis(360_000_000),
        };
        answered(&handle(&mut core, Request::Certify(7, certification))).0
    };
    for number in 2..8 {
        assert_eq!(certify(number, 21_000), Ok(()));
    }
    assert!(certify(8, 22_000).is_err(), "a seventh within a minute");
    assert_eq!(certify(8, 150_000), Ok(()));
}

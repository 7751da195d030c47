//! Tries several ways to one place without waiting for a silent one: they race, each a moment after the one before.

use std::{pin::pin, time::Duration};

use futures::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::sleep;

/// The next way is tried this long after the last one, or when it failed.
pub(super) const NEXT_AFTER: Duration = Duration::from_millis(250);

/// Returns the first success, or why each way failed, in their order. The other attempts end then.
pub(super) async fn race<W, T, E, F: Future<Output = Result<T, E>>>(
    ways: impl IntoIterator<Item = W>,
    attempt: impl Fn(W) -> F,
) -> Result<T, Vec<E>> {
    let mut ways = ways.into_iter().enumerate();
    let (mut running, mut failures) = (FuturesUnordered::new(), Vec::new());
    let begin = |(number, way): (usize, W)| {
        let attempt = attempt(way);
        async move { (number, attempt.await) }
    };
    loop {
        let next = ways.next();
        let has_more = next.is_some();
        running.extend(next.map(&begin));
        let mut pause = pin!(sleep(NEXT_AFTER));
        let ended = tokio::select! {
            biased;
            ended = running.next() => ended,
            () = &mut pause, if has_more => continue,
        };
        match ended {
            Some((_, Ok(reached))) => return Ok(reached),
            Some((number, Err(failure))) => failures.push((number, failure)),
            None => break,
        }
    }
    failures.sort_by_key(|(number, _)| *number);
    Err(failures.into_iter().map(|(_, failure)| failure).collect())
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// A way that answers after so many milliseconds.
    async fn way(
        (millis, outcome): (u64, Result<&'static str, &'static str>),
    ) -> Result<&'static str, &'static str> {
        sleep(Duration::from_millis(millis)).await;
        outcome
    }

    async fn timed<const N: usize>(
        ways: [(u64, Result<&'static str, &'static str>); N],
    ) -> (Result<&'static str, Vec<&'static str>>, u128) {
        let begun = Instant::now();
        let outcome = race(ways, way).await;
        (outcome, begun.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_way_delays_the_next_by_a_moment_only() {
        assert_eq!(timed([(100, Ok("one")), (0, Ok("two"))]).await, (Ok("one"), 100));
        assert_eq!(
            timed([(60_000, Err("silent")), (10, Ok("two"))]).await,
            (Ok("two"), 260)
        );
        let slow = [
            (60_000, Err("silent")),
            (60_000, Err("silent")),
            (10, Ok("three")),
        ];
        assert_eq!(timed(slow).await, (Ok("three"), 510));
        assert_eq!(
            timed([(300, Ok("one")), (100, Ok("two"))]).await,
            (Ok("one"), 300)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_is_tried_at_once_when_one_failed_and_all_failures_are_told_in_order() {
        assert_eq!(timed([(10, Err("no")), (10, Ok("two"))]).await, (Ok("two"), 20));
        let failing = [(1_000, Err("late")), (10, Err("no")), (20, Err("neither"))];
        assert_eq!(timed(failing).await, (Err(vec!["late", "no", "neither"]), 1_000));
        assert_eq!(timed([]).await, (Err(vec![]), 0));
    }
}

//! Owns: requests that go on while something happens, none of which may fail.
//! Never: knows what happens.

use super::{churn::asking::Loop, pair::Asker, row::Wrong};

/// Requests of each loop at least, also if what happens is over sooner.
const REQUESTS_MIN: u32 = 100;
/// Requests that outlast whatever happens; they end with it.
const REQUESTS_MAX: u32 = 1_000_000;

/// A loop of requests.
pub(super) struct Asks<'a> {
    pub(super) asker: &'a Asker<'a>,
    /// The Service, for people.
    pub(super) service: &'a str,
    pub(super) address: &'a str,
    /// A shell's pattern of the clusters that may answer.
    pub(super) by: &'a str,
}

/// Does something while all of these ask. An error says what went wrong with it, or that requests failed meanwhile.
pub(super) fn unbroken(
    asks: &[Asks<'_>],
    happens: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut loops = Vec::new();
    for ask in asks {
        let asking = Loop::start(ask.asker, ask.address, ask.by, &(REQUESTS_MIN..=REQUESTS_MAX))?;
        asking.began()?;
        loops.push(asking);
    }
    let outcome = happens();
    // Whatever came of it: a pod asks on, though nobody listens.
    for ask in asks {
        Loop::enough(ask.asker)?;
    }
    outcome?;
    let mut wrong = Vec::new();
    for (ask, asking) in asks.iter().zip(loops) {
        let asked = asking.finish()?;
        let said = format!(
            "{} of {} requests to {} from {} failed",
            asked.failures.len(),
            asked.requests,
            ask.service,
            ask.asker.cluster.plane.name
        );
        println!("{said}");
        if !asked.failures.is_empty() {
            wrong.push(said);
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Wrong(wrong.join("; ")).into())
}

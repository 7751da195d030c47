//! Owns: the fleets that the tests of a process share, leased to one scenario at a time (`pool`), and how many there may be.
//! Never: ignores or fails a test, or judges what one left in its fleet (`suite` does).

use super::{Error, Fleet, Options, ServiceFamilies, pool::Pool, programs::Programs};
use std::sync::{Arc, OnceLock};

/// The clusters of a shared fleet.
pub const CLUSTERS: [&str; 3] = ["east", "west", "north"];
/// Shared fleets at a time. Two cores are busy with three: a scenario waits for more than it computes.
pub const FLEETS_MAX: usize = 3;
/// Memory that must be available for each of them: etcd, three API servers, three controller managers, and the hub and
/// agents of the scenario.
const FLEET_BYTES: u64 = 1_500 << 20;

/// A fleet that nobody else has meanwhile.
pub type Lease = super::pool::Lease<'static, Fleet, Error>;

static POOL: OnceLock<Pool<Fleet, Error>> = OnceLock::new();
/// The version that the shared clusters report.
static GIT_VERSION: OnceLock<String> = OnceLock::new();

/// Waits for a fleet.
pub async fn lease() -> Result<Lease, Arc<Error>> {
    available().map_err(Arc::new)?;
    let pool = POOL.get_or_init(|| Pool::of(fleets(available_memory())));
    pool.lease(start).await
}

async fn start() -> Result<Fleet, Error> {
    let options = Options {
        service_families: ServiceFamilies::DualStack,
        ..Options::default()
    };
    let fleet = Fleet::start(&CLUSTERS, options).await?;
    if let Some(cluster) = fleet.clusters().first() {
        GIT_VERSION.get_or_init(|| cluster.git_version().to_owned());
    }
    Ok(fleet)
}

/// An error when nothing is built that clusters run.
pub fn available() -> Result<(), Error> {
    Programs::find().map(drop).map_err(Error::from)
}

/// The version the shared clusters report, when one was started.
pub fn git_version() -> Option<&'static str> {
    GIT_VERSION.get().map(String::as_str)
}

/// Stops the idle fleets and removes their files. Statics are never dropped: the end of the process would stop the clusters
/// too, but leave the files.
pub fn stop() {
    let idle = POOL.get().map(Pool::idle).unwrap_or_default();
    // All end at the same time; each drop then waits for one.
    for fleet in &idle {
        fleet.close();
    }
}

/// The number of fleets that this memory is enough for; one if it is not known.
fn fleets(available: Option<u64>) -> usize {
    let enough = available.map_or(1, |bytes| bytes / FLEET_BYTES);
    usize::try_from(enough).unwrap_or(FLEETS_MAX).clamp(1, FLEETS_MAX)
}

/// Bytes that programs may still use without swapping, as the kernel estimates.
fn available_memory() -> Option<u64> {
    available_in(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_bounds_the_fleets() {
        assert_eq!(fleets(None), 1);
        assert_eq!(fleets(Some(200 << 20)), 1);
        assert_eq!(fleets(Some(2 * FLEET_BYTES)), 2);
        assert_eq!(fleets(Some(64 << 30)), FLEETS_MAX);
        let meminfo = "MemTotal:       24000000 kB\nMemAvailable:    3000000 kB\n";
        assert_eq!(available_in(meminfo), Some(3_000_000 << 10));
        assert_eq!(available_in("MemTotal: 1 kB\n"), None);
    }
}

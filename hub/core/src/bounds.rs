//! Owns: the bounds of one hub that are settings: tests and simulations make them small, so that small worlds meet them.
//! Never: bounds what members or the log's format must know at compile time.

use event_log::Retention;

/// Names every bound. The defaults are the product's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Requests that may wait for the writer. A session without room reads no more from its member.
    pub inbox: usize,
    /// A batch is closed at this many events …
    pub batch_events: usize,
    /// … or this many bytes.
    pub batch_bytes: usize,
    /// Batches that may wait for the disk at once; while they do, requests wait in the inbox.
    pub batches_in_flight: usize,
    /// A fact of fewer bytes is stored whole, and nothing is stored as the difference to it.
    pub difference_bytes: usize,
    /// A snapshot is written after this many events …
    pub snapshot_events: u64,
    /// … or this many for each fact of the state, if those are more: a snapshot has a row for each fact, and writing
    /// them must not cost as much as the events themselves.
    pub snapshot_events_per_fact: u64,
    /// A segment of the log is sealed when it takes this many bytes on disk, or several snapshots' worth …
    pub segment_bytes: u64,
    /// … and before it holds more than a part of what is kept. Sealed segments go by this.
    pub retention: Retention,
    /// Below this share of free disk there is an alarm …
    pub disk_alarm_percent: u8,
    /// … and below this one nothing is recorded that makes the state larger.
    pub disk_reserve_percent: u8,
    /// Removals that are remembered. It decides what the state holds: a log that says otherwise gets an event.
    pub tombstones: u32,
    /// Effects of one member's messages that may wait for the writer before reading stops.
    pub effects: usize,
    /// Bytes of objects after which a message to a member is full.
    pub chunk_bytes: usize,
    /// Bounds on what all members together may have recorded. Growth beyond a member's share of what is left waits at its agent.
    pub state: StateBounds,
}

/// Bounds on what the members of a clusterset may have recorded, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateBounds {
    /// ServiceExports.
    pub exports: u64,
    /// EndpointSlices.
    pub endpoint_slices: u64,
    /// Bytes of memory that the state takes, as estimated from its facts.
    pub memory: u64,
}

impl StateBounds {
    /// The product's. The memory is what 1 GiB for the process, the limit of the chart, leaves beside a thousand sessions,
    /// facts that are not durable yet and the stores of the log.
    pub const PRODUCT: Self = Self {
        exports: 100_000,
        endpoint_slices: 250_000,
        memory: 640 * 1024 * 1024,
    };
}

impl Default for StateBounds {
    fn default() -> Self {
        Self::PRODUCT
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            inbox: 4_096,
            batch_events: 8 * 1024,
            batch_bytes: 4 * 1024 * 1024,
            batches_in_flight: 2,
            difference_bytes: 128,
            snapshot_events: 50_000,
            snapshot_events_per_fact: 2,
            segment_bytes: 256 * 1024 * 1024,
            retention: Retention::default(),
            disk_alarm_percent: 15,
            disk_reserve_percent: 5,
            tombstones: fold::TOMBSTONES_MAX,
            effects: 16,
            chunk_bytes: model::sync::CHUNK_BYTES,
            state: StateBounds::default(),
        }
    }
}

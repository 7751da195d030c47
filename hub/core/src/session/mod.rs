//! Sessions of members: the protocol as a pure machine, and the steps between it, the writer and the view. The task
//! around them is the hub's. `pace`: how fast a member's messages are read. `renewals`, `certifying`: the certificates
//! that a member asks for. `applied`, `reports`: the progress of members' clusters, for people to see. `end`: how a
//! session ends.

mod actor;
pub mod applied;
mod certifying;
mod end;
pub mod machine;
mod metrics;
mod pace;
mod renewals;
mod reports;
mod unacknowledged;

pub use actor::{Answer, Awaited, SessionActor};
pub use certifying::CertifiedAnswer;
pub use end::{EndCode, SessionEnd};
pub use metrics::SyncMetrics;
pub use pace::{Comings, SESSIONS_AT_ONCE};
pub use reports::{Report, Reports};

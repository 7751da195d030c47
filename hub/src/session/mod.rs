//! Sessions of members: the protocol as a pure machine, the steps between it, the writer and the view, and the task
//! around them. `pace`: how fast a member's messages are read. `renewals`, `certifying`: what a member is given that
//! asks for a certificate. `applied`, `reports`: the progress of members' clusters, for people to see. `refusal`: how a
//! Hello that is not admitted is answered.

mod actor;
pub mod applied;
mod certifying;
pub mod machine;
mod metrics;
mod pace;
mod refusal;
mod renewals;
mod reports;
mod serve;
mod unacknowledged;

pub use actor::{Answer, Awaited, SessionActor};
pub use certifying::CertifiedAnswer;
pub use metrics::SyncMetrics;
pub use reports::{Report, Reports};
pub use serve::SyncService;

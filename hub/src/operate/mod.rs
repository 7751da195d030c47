//! The operator's command line over gRPC.
//!
//! * `member.rs`: `tributary-hub member list|wait|rekey|evict|revoke-key|forget|release`, dry run first (`release.rs`, `wait.rs`). `operator.rs`:
//!   `tributary-hub operator revoke`, `tributary-hub reader revoke`. `events.rs`: `tributary-hub events`.
//! * `gather.rs`: `tributary-hub gather`.
//! * `policy.rs`: `tributary-hub policy get|test|apply|release`, dry run first. `backup.rs`: `tributary-hub log backup`.
//! * `listing.rs`: all members of a hub. `token.rs`: `tributary-hub token create|list|revoke`.
//! * `client.rs`: the way to the hub. `decision.rs`: what every decision takes. `print.rs`: plain columns and JSON.
//!
//! It asks and shows; every decision is the hub's.

mod backup;
mod client;
mod decision;
mod events;
mod gather;
mod leaving;
mod listing;
mod member;
mod operator;
mod policy;
mod print;
mod release;
mod token;
mod wait;

pub use backup::BackupArgs;
pub use events::EventsArgs;
pub use gather::GatherArgs;
pub use member::MemberArgs;
pub use operator::{OperatorArgs, ReaderArgs};
pub use policy::PolicyArgs;
pub use token::TokenArgs;
pub(crate) use token::duration;

/// Runs `tributary-hub member …` and returns what to print.
pub fn run_member(args: MemberArgs) -> anyhow::Result<String> {
    run(member::run(args))
}

/// Runs `tributary-hub operator …` and returns what to print.
pub fn run_operator(args: OperatorArgs) -> anyhow::Result<String> {
    run(operator::run(args))
}

/// Runs `tributary-hub reader …` and returns what to print.
pub fn run_reader(args: ReaderArgs) -> anyhow::Result<String> {
    run(operator::run_reader(args))
}

/// Runs `tributary-hub token …` and returns what to print.
pub fn run_token(args: TokenArgs) -> anyhow::Result<String> {
    run(token::run(args))
}

/// Runs `tributary-hub policy …` and returns what to print.
pub fn run_policy(args: PolicyArgs) -> anyhow::Result<String> {
    run(policy::run(args))
}

/// Runs `tributary-hub gather …` and returns what to print.
pub fn run_gather(args: GatherArgs) -> anyhow::Result<String> {
    run(gather::run(args))
}

/// Runs `tributary-hub events …` and returns what to print.
pub fn run_events(args: EventsArgs) -> anyhow::Result<String> {
    run(events::run(args))
}

/// Runs `tributary-hub log backup …` and returns what to print.
pub fn run_backup(args: BackupArgs) -> anyhow::Result<String> {
    run(backup::run(args))
}

fn run(command: impl Future<Output = anyhow::Result<String>>) -> anyhow::Result<String> {
    shared::tls::install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(command)
}

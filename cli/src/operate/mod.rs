//! The commands that decide, and those that read the log.
//!
//! * `member.rs`: `tributary member list|wait|rekey|evict|revoke-key|forget|release`, dry run first (`release.rs`, `wait.rs`). `operator.rs`:
//!   `tributary operator revoke`, `tributary reader revoke`. `events.rs`: `tributary events`.
//! * `gather.rs`: `tributary gather`.
//! * `policy.rs`: `tributary policy get|test|apply|release`, dry run first.
//! * `listing.rs`: all members of a hub. `token.rs`: `tributary token create|list|revoke`.
//! * `hub_args.rs`: the flags of all of them. `decision.rs`: what every decision takes. `print.rs`: plain columns and JSON.
//!
//! It asks and shows; every decision is the hub's.

mod decision;
mod events;
mod gather;
mod hub_args;
mod leaving;
mod listing;
mod member;
mod operator;
mod policy;
pub(crate) mod print;
mod release;
mod token;
mod wait;

pub use client::run;
pub use events::EventsArgs;
pub use gather::GatherArgs;
pub use hub_args::HubArgs;
pub(crate) use listing::listed as all_members;
pub use member::MemberArgs;
pub use operator::{OperatorArgs, ReaderArgs};
pub use policy::PolicyArgs;
pub use token::TokenArgs;

/// Runs `tributary member …` and returns what to print.
pub fn run_member(args: MemberArgs) -> anyhow::Result<String> {
    run(member::run(args))
}

/// Runs `tributary operator …` and returns what to print.
pub fn run_operator(args: OperatorArgs) -> anyhow::Result<String> {
    run(operator::run(args))
}

/// Runs `tributary reader …` and returns what to print.
pub fn run_reader(args: ReaderArgs) -> anyhow::Result<String> {
    run(operator::run_reader(args))
}

/// Runs `tributary token …` and returns what to print.
pub fn run_token(args: TokenArgs) -> anyhow::Result<String> {
    run(token::run(args))
}

/// Runs `tributary policy …` and returns what to print.
pub fn run_policy(args: PolicyArgs) -> anyhow::Result<String> {
    run(policy::run(args))
}

/// Runs `tributary gather …` and returns what to print.
pub fn run_gather(args: GatherArgs) -> anyhow::Result<String> {
    run(gather::run(args))
}

/// Runs `tributary events …` and returns what to print.
pub fn run_events(args: EventsArgs) -> anyhow::Result<String> {
    run(events::run(args))
}

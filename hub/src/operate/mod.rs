//! The operator's command line over gRPC.
//!
//! * `member.rs`: `tributary-hub member list|rekey|evict|forget`, dry run first.
//! * `client.rs`: the way to the hub. `print.rs`: plain columns and JSON.
//!
//! It asks and shows; every decision is the hub's.

mod client;
mod member;
mod print;

pub use member::MemberArgs;

/// Runs `tributary-hub member …` and returns what to print.
pub fn run_member(args: MemberArgs) -> anyhow::Result<String> {
    shared::tls::install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(member::run(args))
}

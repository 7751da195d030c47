//! Owns: shape doors: what strangers with sockets and one hostile member can do to the hub's port, attack by attack,
//! beside an operator who calls and members who want to stay in session.
//! Never: leaves loopback; goes on when its time is over; attacks with more than it was told to.
//!
//! * `size.rs`: how much of everything. `attack.rs`: the attacks by name. `attacker.rs`: who plays them. `sockets.rs`,
//!   `trickles.rs`, `streams.rs`, `floods.rs`: how they are played. `played.rs`: how much of one was. `frames.rs`,
//!   `raw.rs`: HTTP/2 by hand. `answers.rs`: what the hub says to it.
//! * `witness.rs`: the operator, the members and the hub's memory meanwhile. `row.rs`: what came of an attack.

mod answers;
mod attack;
mod attacker;
mod floods;
mod frames;
mod played;
mod raw;
mod row;
mod size;
mod sockets;
mod streams;
mod trickles;
mod witness;

use anyhow::ensure;
use shared::tls::install_crypto_provider;

use self::{
    attack::Attack,
    row::{GROWTH_BYTES_MAX, Row, megabytes},
    witness::Witness,
};
use super::{
    cores::{Cores, UsedCores},
    hub::{HubProcess, Setup},
    report::Section,
};

pub(super) use self::size::Size;

/// Plays every attack; a row is printed for each. It fails if one did not hold.
pub(super) async fn measure(setup: &Setup, size: Size, place: UsedCores) -> anyhow::Result<Section> {
    size.ensure_descriptors()?;
    let mut section = Section::begin(format!("doors, {size}"));
    let (mut broken, allowed) = (Vec::new(), megabytes(GROWTH_BYTES_MAX));
    println!(
        "each call in {} s, at most {allowed:.0} MB more than before the first",
        size.answer.as_secs()
    );
    println!("{}", Row::head());
    let hub = HubProcess::start(setup, &setup.data("doors")?, place).await?;
    broken.extend(attacked(hub, &Attack::ALL, setup, size, &mut section).await?);
    let data = setup.data("crowded")?;
    let hub = HubProcess::start_with_files(setup, &data, place, size.hub_files).await?;
    broken.extend(attacked(hub, &[Attack::Crowd], setup, size, &mut section).await?);
    ensure!(broken.is_empty(), "{}", broken.join("; "));
    Ok(section)
}

/// Plays these attacks on a hub one after the other, and ends it; says what did not hold.
async fn attacked(
    hub: HubProcess,
    attacks: &[Attack],
    setup: &Setup,
    size: Size,
    section: &mut Section,
) -> anyhow::Result<Vec<String>> {
    let witness = Witness::gather(setup, &hub).await?;
    let mut broken = Vec::new();
    for &attack in attacks {
        let row = witness.beside(&hub, attack, setup, size).await?;
        println!("{row}");
        row.describe(section);
        broken.extend(row.broken());
    }
    if let Err(error) = witness.end().await {
        broken.push(format!("a member's session ended: {error:#}"));
    }
    hub.kill().await?;
    Ok(broken)
}

/// The smallest form, for a test: with a hub of its own, on any cores, in a directory that goes with it.
///
/// # Errors
/// An attack did not hold, or could not be played.
pub fn rehearse() -> anyhow::Result<()> {
    // Somebody else of the process may have installed it.
    let _ = install_crypto_provider();
    let directory = tempfile::tempdir()?;
    let setup = Setup::new(Cores::unpinned("any core"), directory.path().to_owned())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let played = runtime.block_on(measure(&setup, Size::REHEARSAL, UsedCores::AllCores));
    played.map(drop)
}

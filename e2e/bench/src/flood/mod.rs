//! Owns: shape flood: 249 members of mesh-250 change and receive as usual, first alone, then beside one member that
//! floods in one of five ways: what the others notice of it.
//! Never: lets a flood count that the hub did not meet.
//!
//! * `kind.rs`: what is said. `flooder.rs`: who says it, until it is enough.

mod flooder;
mod kind;

use anyhow::{Context, ensure};

use self::{
    flooder::{Flooder, hostile},
    kind::Kind,
};
use super::{
    args::Arguments, churn::MESH_RATE, figure::Aim, hub::Setup, load_shape::Measures, loaded::LoadedHub,
    report::Section,
};

/// Members that do nothing wrong.
const OTHERS: usize = 249;
/// A flood may raise the p99 of the others by the larger of this share and these milliseconds.
const SHARE_MAX: f64 = 0.25;
const MILLIS_MAX: f64 = 2.0;

/// Measures.
pub(super) async fn measure(
    setup: &Setup,
    arguments: &Arguments,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    let measures = Measures {
        members: OTHERS,
        namespaces: OTHERS,
        members_per_namespace: 10,
        slices: 10 * OTHERS,
        endpoints: 100,
        shared: true,
        all: false,
    };
    let mut stage = LoadedHub::set(setup, measures, "flood", sections).await?;
    // Its key is pinned: the same through all floods.
    let credentials = setup.member(&hostile()?)?;
    for kind in Kind::ALL {
        let seconds = arguments.seconds;
        let alone = Section::begin(format!("flood, {OTHERS} members before any {kind}"));
        let alone = stage.wave(alone, MESH_RATE, seconds).await?;
        let flooder = Flooder::begin(&stage.hub, &credentials, kind).await?;
        let beside = Section::begin(format!("flood, {OTHERS} members beside one member's {kind}"));
        let mut beside = stage.wave(beside, MESH_RATE, seconds).await?;
        let flooded = flooder.end().await?;
        ensure!(flooded.was_met(), "the hub met nothing of the {kind}: {flooded}");
        let (before, with) = (p99(&alone)?, p99(&beside)?);
        beside.figure("due to received p99 before the flood", before, "ms");
        beside.aimed(
            "the flood raises the p99 by",
            with - before,
            "ms",
            Aim::Below(f64::max(SHARE_MAX * before, MILLIS_MAX)),
        );
        flooded.describe(&mut beside);
        sections.extend([alone, beside]);
    }
    stage.hub.kill().await
}

fn p99(section: &Section) -> anyhow::Result<f64> {
    let point = section.point.as_ref().context("a wave has a point")?;
    Ok(point.p99_millis)
}

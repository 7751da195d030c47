//! Owns: shape questions: mesh-250 while nobody asks, while readers ask the hub a question a second each, and while each
//! of them reads the whole state every second. Questions must not disturb the writer.
//! Never: asks less because an answer is slow: one that is late is late.

use super::{
    args::Arguments,
    churn::{MESH, MESH_RATE},
    figure::Aim,
    hub::Setup,
    loaded::LoadedHub,
    readers::{Asking, READERS, Readers},
    report::Section,
};

/// By how much the p99 may differ: by a quarter of it, or by so many milliseconds if those are more.
const P99_SHARE_MAX: f64 = 0.25;
const P99_MILLIS_MAX: f64 = 2.0;

/// Plays the shape.
pub(super) async fn measure(
    setup: &Setup,
    arguments: &Arguments,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    let mut stage = LoadedHub::set(setup, MESH, "questions", sections).await?;
    let section = Section::begin(format!("questions, {MESH_RATE} updates/s, nobody asks"));
    let quiet = stage.wave(section, MESH_RATE, arguments.seconds).await?;
    let before = p99(&quiet);
    sections.push(quiet);
    for asking in [Asking::ACallEach, Asking::EverythingEach] {
        let readers = Readers::begin(setup, &stage.hub.address, asking)?;
        let section = Section::begin(format!(
            "questions, {MESH_RATE} updates/s, {READERS} readers, {} a second each",
            asking.what()
        ));
        let mut asked = stage.wave(section, MESH_RATE, arguments.seconds).await?;
        let answers = readers.end().await?;
        let difference = p99(&asked) - before;
        asked.figure("p99 while nobody asked", before, "ms");
        asked.figure("difference of the p99", difference, "ms");
        let share = difference / f64::max(before * P99_SHARE_MAX, P99_MILLIS_MAX);
        asked.aimed("difference, of what it may be", share, "", Aim::Below(1.0));
        answers.add_to(&mut asked);
        sections.push(asked);
    }
    stage.hub.kill().await
}

fn p99(section: &Section) -> f64 {
    section.point.as_ref().map_or(f64::NAN, |point| point.p99_millis)
}

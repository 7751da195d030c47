//! Owns: shapes in which members change slices at a rate and others receive them: churn-8, mesh-250, fleet-1000.
//! Never: sends faster or slower than the rate that is stated.

use std::time::Duration;

use super::{
    args::Arguments,
    etcd::{self, Churn},
    facts,
    hub::Setup,
    load_shape::Measures,
    loaded::LoadedHub,
    report::Section,
};

/// The rate of mesh-250.
pub(super) const MESH_RATE: u32 = 325;
/// The rate of fleet-1000 once it is not idle any more.
const FLEET_RATE: u32 = 100;

/// Shape fleet-1000, and what storms.
pub(super) const FLEET: Measures = Measures {
    members: 1_000,
    namespaces: 1_000,
    members_per_namespace: 10,
    slices: 20_000,
    endpoints: 10,
    shared: false,
    all: false,
};

/// Shape mesh-250, and what is asked questions.
pub(super) const MESH: Measures = Measures {
    members: 250,
    namespaces: 250,
    members_per_namespace: 10,
    slices: 2_500,
    endpoints: 100,
    shared: true,
    all: false,
};

/// Shape churn-8 with so many slices, at each rate.
pub(super) async fn churn_8(
    setup: &Setup,
    arguments: &Arguments,
    slices: usize,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    let measures = Measures {
        members: 8,
        namespaces: 8,
        members_per_namespace: 8,
        slices,
        endpoints: arguments.endpoints,
        shared: false,
        all: false,
    };
    let name = format!("churn-8, {slices} slices of {} endpoints", measures.endpoints);
    let mut stage = LoadedHub::set(setup, measures.clone(), &name, sections).await?;
    for &rate in &arguments.rates {
        let section = Section::begin(format!("{name}, {rate} updates/s"));
        let mut section = stage.wave(section, rate, arguments.seconds).await?;
        let churn = Churn {
            rate,
            lasting: Duration::from_secs(arguments.seconds),
            bytes: facts::slice_bytes(measures.endpoints)?,
            keys: measures.slices,
            watchers: measures.members,
        };
        compare(setup, &mut section, churn).await;
        sections.push(section);
    }
    stage.hub.kill().await
}

/// The same churn through etcd; a peer that is not there is a note, not a failure.
async fn compare(setup: &Setup, section: &mut Section, churn: Churn) {
    match etcd::churn(setup, churn).await {
        Ok(latency) => {
            let millis = |quantile| latency.value_at_quantile(quantile) as f64 / 1e3;
            section.figure("etcd beside it: due to watched p50", millis(0.5), "ms");
            section.figure("etcd beside it: due to watched p99", millis(0.99), "ms");
            let ours = section.point.as_ref().map_or(f64::NAN, |point| point.p99_millis);
            section.figure("ratio to etcd p99", ours / millis(0.99).max(0.001), "");
        }
        Err(error) => section.note(format!("no etcd beside it: {error:#}")),
    }
}

/// Shape mesh-250, or mesh-250-all.
pub(super) async fn mesh_250(
    setup: &Setup,
    arguments: &Arguments,
    all: bool,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    let measures = Measures { all, ..MESH };
    let name = if all { "mesh-250-all" } else { "mesh-250" };
    let mut stage = LoadedHub::set(setup, measures, name, sections).await?;
    let section = Section::begin(format!("{name}, {MESH_RATE} updates/s"));
    sections.push(stage.wave(section, MESH_RATE, arguments.seconds).await?);
    stage.hub.kill().await
}

/// Shape fleet-1000: idle, then with updates.
pub(super) async fn fleet_1000(
    setup: &Setup,
    arguments: &Arguments,
    sections: &mut Vec<Section>,
) -> anyhow::Result<()> {
    let mut stage = LoadedHub::set(setup, FLEET, "fleet-1000", sections).await?;
    sections.push(
        stage
            .idle(Section::begin("fleet-1000, idle"), arguments.seconds)
            .await?,
    );
    let section = Section::begin(format!("fleet-1000, {FLEET_RATE} updates/s"));
    sections.push(stage.wave(section, FLEET_RATE, arguments.seconds).await?);
    stage.hub.kill().await
}

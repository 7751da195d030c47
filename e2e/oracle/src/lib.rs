//! The oracle: what must be true of a clusterset, from the objects that users declared in its clusters. An
//! independent reading of KEP-1645, written once and asked by everybody who judges: the swarm, the simulated
//! network, crashes, scenarios and the load generator. Pure: it is given objects and answers with values.
//!
//! * [`Picture`]: one cluster's objects at one moment; `declared`: who exports what, by precedence.
//! * [`Expected`]: what every cluster must hold of a service; `pieces`: what it does hold, in the same words;
//!   [`part`]: what both are made of, and how they differ.
//! * [`judge`]: all services in all clusters; [`judge_in`]: in one of them; [`whole`]: one import by itself.
//!
//! * [`laws`]: what must never happen. [`seeds`]: the seeds of a run. [`shorten`]: makes what broke short.
//! * [`example`]: a right clusterset, for tests of those who judge.
//!
//! It knows neither facts, revisions nor the hub, and shares no rule with the fold.

mod arrival;
mod carried;
mod declared;
pub mod example;
mod expected;
pub mod laws;
pub mod part;
mod picture;
mod pieces;
pub mod seeds;
pub mod shorten;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use model::ServiceKey;

pub use self::{
    arrival::{ARRIVED, arrival_is_said},
    declared::declared,
    expected::Expected,
    part::{Part, Parts, Wrong},
    picture::{KINDS, Picture, is_ours, owner},
    pieces::{import_shown, object_shown},
};
use self::{part::compare, pieces::export_shown};

/// An object that is judged apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// An import with everything that belongs to it.
    Import(ServiceKey),
    /// The conditions of an export.
    Export(ServiceKey),
}

impl Object {
    /// The service that it is about.
    pub fn service(&self) -> &ServiceKey {
        match self {
            Self::Import(service) | Self::Export(service) => service,
        }
    }
}

/// Right and wrong objects, by cluster.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    /// Every object that was judged.
    pub verdicts: BTreeMap<(String, Object), Result<(), Wrong>>,
    /// Services whose exports disagree.
    pub conflicts: u64,
    /// Objects that had to be there, and exports with a word on them.
    pub guarded: u64,
}

impl Judgement {
    /// The faults, in words.
    pub fn wrong(&self) -> impl Iterator<Item = String> {
        self.verdicts.iter().filter_map(|((cluster, object), verdict)| {
            let why = verdict.as_ref().err()?;
            let word = match object {
                Object::Import(_) => "import",
                Object::Export(_) => "export",
            };
            Some(format!("{word} {} in {cluster}: {why}", object.service()))
        })
    }
}

/// Judges every service in every cluster; all of them are members.
pub fn judge(pictures: &[Picture]) -> Judgement {
    judge_among(pictures, pictures)
}

/// Judges every service in these `places`, while what `members` declare counts.
pub fn judge_among(members: &[Picture], places: &[Picture]) -> Judgement {
    let shown = members.iter().chain(places);
    let services: BTreeSet<ServiceKey> = shown.flat_map(Picture::services).collect();
    let mut judgement = Judgement::default();
    for service in services {
        let expected = Expected::of(members.iter(), &service);
        judgement.conflicts += u64::from(expected.is_conflict());
        for picture in places {
            judgement.judge_one(picture, &service, &expected);
        }
    }
    judgement
}

/// The faults of one cluster, while only `members` count as such.
pub fn wrong_in(members: &[&Picture], picture: &Picture) -> Vec<String> {
    judge_in(members, picture).wrong().collect()
}

/// Judges every service in one cluster, while only `members` count as such.
pub fn judge_in(members: &[&Picture], picture: &Picture) -> Judgement {
    let shown = members.iter().copied().chain([picture]);
    let services: BTreeSet<ServiceKey> = shown.flat_map(Picture::services).collect();
    let mut judgement = Judgement::default();
    for service in services {
        let expected = Expected::of(members.iter().copied(), &service);
        judgement.judge_one(picture, &service, &expected);
    }
    judgement
}

/// Checks that a cluster's import is whole, whatever it was made from: what it says of itself stands beside it. For
/// moments in which not everything that users declared can have arrived.
pub fn whole(picture: &Picture, service: &ServiceKey) -> Result<(), Wrong> {
    compare(
        &import_shown(picture, service),
        &expected::promised(picture, service),
    )
}

/// Returns true if a cluster exports a service, and may.
pub fn is_valid(picture: &Picture, service: &ServiceKey) -> bool {
    declared::exporter(picture, service).is_some_and(|export| export.is_ok())
}

/// Returns true if a cluster has a namespace for a service, may take it, and nothing of ours in it names this exporter:
/// the import, or, where that went with its kind and may not come back as another type yet, the Service behind it. A
/// stranger's import keeps its place.
pub fn lacks(picture: &Picture, service: &ServiceKey, exporter: &str) -> bool {
    let import = picture.import(service);
    let ours = import.is_none_or(is_ours) && !picture.withheld.contains(service);
    let behind = picture.derived_service(service).filter(|_| import.is_none());
    let behind =
        behind.is_some_and(|behind| is_ours(behind) && pieces::sources(behind).any(|one| one == exporter));
    ours && picture.namespace(service).is_some()
        && !behind
        && !import_shown(picture, service).contains(&pieces::cluster(exporter))
}

/// Returns true if something stands in a cluster that came from this exporter's service.
pub fn shows(picture: &Picture, service: &ServiceKey, exporter: &str) -> bool {
    import_shown(picture, service).contains(&pieces::cluster(exporter))
        || picture
            .imported_slices(service)
            .any(|slice| pieces::source(slice) == exporter)
}

impl Judgement {
    fn judge_one(&mut self, picture: &Picture, service: &ServiceKey, expected: &Expected) {
        let must = expected.import_in(picture, service);
        self.guarded += u64::from(!must.is_empty());
        let shown = expected::judged(picture, service, import_shown(picture, service));
        let place = |object| (picture.cluster.clone(), object);
        let import = place(Object::Import(service.clone()));
        self.verdicts.insert(import, compare(&shown, &must));
        if let Some(must) = expected.export_in(picture, service) {
            self.guarded += 1;
            let export = place(Object::Export(service.clone()));
            let shown = export_shown(picture, service);
            self.verdicts.insert(export, compare(&shown, &must));
        }
    }
}

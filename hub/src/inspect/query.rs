//! One look at the present, between two batches of the writer: cheap copies of what was asked for, nothing
//! converted yet. The writer waits meanwhile, so what one look takes is bounded.

use std::{collections::BTreeSet, sync::Arc};

use shared::model::{
    ClusterId, Cursor, Export, ExportStatus, FactKey, ImportedSliceKey, KeyFingerprint, Revision,
    ServiceImport, ServiceKey, UnixMillis, sync::SourceState,
};

use super::{Shown, Sight};
use crate::{
    fold::{AdmittedKey, Derived, DerivedContent, DerivedKey, Member, Profile, State},
    writer::Core,
};

/// Most objects in one answer.
pub(super) const OBJECTS_MAX: usize = 20_000;

/// What is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Of one cluster only.
    pub cluster: Option<ClusterId>,
    /// Of one namespace only; members and profiles have none and are shown all the same.
    pub namespace: Option<Box<str>>,
    pub members: bool,
    pub exports: bool,
    pub imports: bool,
    pub profiles: bool,
}

/// What was seen, all at one revision.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Look {
    pub head: Cursor,
    pub members: Vec<SeenMember>,
    pub exports: Vec<SeenExport>,
    pub imports: Vec<SeenImport>,
    pub profiles: Vec<Arc<Profile>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeenMember {
    pub cluster: ClusterId,
    pub incarnation: Revision,
    pub state: SourceState,
    pub listed: bool,
    pub connected: bool,
    pub cluster_fingerprint: Box<str>,
    pub keys: Vec<(KeyFingerprint, AdmittedKey)>,
    pub contested_keys: Vec<KeyFingerprint>,
    pub exports: usize,
    pub endpoint_slices: usize,
    pub since: UnixMillis,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeenExport {
    pub cluster: ClusterId,
    pub revision: Revision,
    pub export: Arc<Export>,
    pub endpoint_slices: usize,
    pub endpoints: usize,
    pub status: Option<Arc<ExportStatus>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeenImport {
    pub revision: Revision,
    pub import: Arc<ServiceImport>,
    pub endpoint_slices: usize,
    pub endpoints: usize,
}

/// There is more than one answer may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany;

/// What the writer knows of members beside the state.
pub(super) struct Sessions<'a> {
    pub connected: BTreeSet<&'a ClusterId>,
    pub listed: &'a BTreeSet<ClusterId>,
}

impl<'a> Sessions<'a> {
    pub(super) fn of(core: &'a Core) -> Self {
        Self {
            connected: core.connected().collect(),
            listed: core.listed(),
        }
    }
}

/// Looks at what is selected.
pub(super) fn look(core: &Core, selection: &Selection, sight: &Sight) -> Result<Look, TooMany> {
    let state = core.state();
    let mut look = Look {
        head: core.head(),
        members: Vec::new(),
        exports: Vec::new(),
        imports: Vec::new(),
        profiles: Vec::new(),
    };
    if selection.members {
        look.members = members(state, &Sessions::of(core), selection.cluster.as_ref(), sight);
    }
    if selection.profiles {
        look.profiles = profiles(state, selection.cluster.as_ref(), sight);
    }
    if selection.exports {
        look.exports = exports(state, selection, sight, OBJECTS_MAX)?;
    }
    if selection.imports && sight.shows(Shown::Import) {
        look.imports = imports(state, selection, OBJECTS_MAX - look.exports.len())?;
    }
    Ok(look)
}

/// All members or one of them.
pub(super) fn members(
    state: &State,
    sessions: &Sessions<'_>,
    only: Option<&ClusterId>,
    sight: &Sight,
) -> Vec<SeenMember> {
    let seen = |(cluster, member): (&ClusterId, &Member)| {
        let exports = member.exports().count();
        SeenMember {
            cluster: cluster.clone(),
            incarnation: member.incarnation(),
            state: member.source_state(),
            listed: sessions.listed.contains(cluster),
            connected: sessions.connected.contains(cluster),
            cluster_fingerprint: member.cluster_fingerprint().into(),
            keys: member
                .keys()
                .iter()
                .map(|(key, known)| (*key, known.clone()))
                .collect(),
            contested_keys: member.contested_keys().iter().copied().collect(),
            exports,
            endpoint_slices: member
                .facts()
                .keys()
                .skip(exports)
                .take_while(|key| matches!(key, FactKey::EndpointSlice(_)))
                .count(),
            since: member.since(),
        }
    };
    of_clusters(state, only, sight).map(seen).collect()
}

fn of_clusters<'a>(
    state: &'a State,
    only: Option<&'a ClusterId>,
    sight: &'a Sight,
) -> impl Iterator<Item = (&'a ClusterId, &'a Member)> {
    state.members().iter().filter(move |(cluster, _)| {
        sight.shows(Shown::Cluster(cluster)) && only.is_none_or(|only| only == *cluster)
    })
}

fn profiles(state: &State, only: Option<&ClusterId>, sight: &Sight) -> Vec<Arc<Profile>> {
    let profiles = of_clusters(state, only, sight).filter_map(|(cluster, _)| profile(state, cluster));
    profiles.cloned().collect()
}

/// The profile of a current member.
pub(crate) fn profile<'a>(state: &'a State, cluster: &ClusterId) -> Option<&'a Arc<Profile>> {
    match &state.derived(&DerivedKey::Profile(cluster.clone()))?.content {
        DerivedContent::Profile(profile) => Some(profile),
        _ => None,
    }
}

fn exports(
    state: &State,
    selection: &Selection,
    sight: &Sight,
    most: usize,
) -> Result<Vec<SeenExport>, TooMany> {
    let mut seen = Vec::new();
    for (cluster, member) in of_clusters(state, selection.cluster.as_ref(), sight) {
        for (revision, export) in exports_in(member, selection.namespace.as_deref()) {
            if seen.len() == most {
                return Err(TooMany);
            }
            let (mut endpoint_slices, mut endpoints) = (0, 0);
            for (_, slice) in member.slices_of(&export.service) {
                endpoint_slices += 1;
                endpoints += slice.endpoints.len();
            }
            seen.push(SeenExport {
                cluster: cluster.clone(),
                revision,
                export: export.clone(),
                endpoint_slices,
                endpoints,
                status: state.export_status(cluster, &export.service).cloned(),
            });
        }
    }
    Ok(seen)
}

fn exports_in<'a>(
    member: &'a Member,
    namespace: Option<&'a str>,
) -> impl Iterator<Item = (Revision, &'a Arc<Export>)> + 'a {
    let first = ServiceKey {
        namespace: namespace.unwrap_or_default().into(),
        name: "".into(),
    };
    let recorded = member.facts().range(FactKey::Export(first)..);
    let exports = recorded.map_while(|(_, fact)| Some((fact.revision, fact.export()?)));
    exports.take_while(move |(_, export)| namespace.is_none_or(|wanted| *export.service.namespace == *wanted))
}

fn imports(state: &State, selection: &Selection, most: usize) -> Result<Vec<SeenImport>, TooMany> {
    match selection.namespace.as_deref() {
        Some(namespace) => imports_among(state.derived_in_namespace(namespace), selection, most),
        None => imports_among(state.all_derived(), selection, most),
    }
}

/// The imports among derived objects, each followed by its slices.
fn imports_among<'a>(
    derived: impl Iterator<Item = (&'a DerivedKey, &'a Derived)>,
    selection: &Selection,
    most: usize,
) -> Result<Vec<SeenImport>, TooMany> {
    let wanted = |import: &ServiceImport| {
        selection
            .cluster
            .as_ref()
            .is_none_or(|cluster| import.clusters.contains_key(cluster))
    };
    let mut seen: Vec<SeenImport> = Vec::new();
    for (key, derived) in derived {
        match (key, &derived.content) {
            (DerivedKey::Import(_), DerivedContent::Import(import)) if wanted(import) => {
                if seen.len() == most {
                    return Err(TooMany);
                }
                let (revision, import) = (derived.revision, import.clone());
                seen.push(SeenImport {
                    revision,
                    import,
                    endpoint_slices: 0,
                    endpoints: 0,
                });
            }
            (DerivedKey::Slice(ImportedSliceKey { service, .. }), DerivedContent::Slice(slice)) => {
                if let Some(last) = seen.last_mut().filter(|last| last.import.service == *service) {
                    last.endpoint_slices += 1;
                    last.endpoints += slice.endpoints.len();
                }
            }
            (DerivedKey::Profile(_), _) => break,
            _ => {}
        }
    }
    Ok(seen)
}

/// The import of a service with the number of its slices and endpoints.
pub(super) fn import(state: &State, service: &ServiceKey) -> Option<SeenImport> {
    let of_service = state.derived_in_namespace(&service.namespace);
    let of_service = of_service.filter(|(key, _)| key.service() == Some(service));
    imports_among(of_service, &Selection::default(), 1).ok()?.pop()
}

//! Owns: what is shown of the present, object by object in the order of pages: members, exports, imports, profiles. It walks
//! a published state and copies what is cheap; nothing is converted yet.
//! Never: asks the writer, or says how much fits into an answer.

use std::sync::Arc;

use shared::model::{
    ApiServer, Arrival, ClusterId, Export, ExportStatus, FactKey, KeyFingerprint, Revision, ServiceImport,
    ServiceKey, UnixMillis, sync::SourceState,
};

use super::{
    Shown, Sight,
    page::{Last, Question},
};
use crate::{
    arrival::Words,
    fold::{
        AdmittedKey, ConditionType, Derived, DerivedContent, DerivedKey, Leaving, Member, Profile,
        ProfileCondition, RevokedKey, State,
    },
    writer::Published,
};

/// The selected objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Objects of one cluster only.
    pub cluster: Option<ClusterId>,
    /// Objects of one namespace only; members and profiles have none and are shown nevertheless.
    pub namespace: Option<Box<str>>,
    pub members: bool,
    pub revoked_keys: bool,
    pub exports: bool,
    pub imports: bool,
    pub profiles: bool,
    /// The reader.
    pub sight: Sight,
}

/// One object, as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Seen {
    Member(Box<SeenMember>),
    RevokedKey(KeyFingerprint, RevokedKey),
    Export(SeenExport),
    Import(SeenImport),
    Profile(ClusterId, Arc<Profile>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeenMember {
    pub cluster: ClusterId,
    pub incarnation: Revision,
    pub state: SourceState,
    pub withdrawn: bool,
    pub leaving: Option<Leaving>,
    pub brake_since: Option<UnixMillis>,
    pub held_exports: usize,
    pub listed: bool,
    pub connected: bool,
    pub cluster_fingerprint: Box<str>,
    pub keys: Vec<(KeyFingerprint, AdmittedKey)>,
    pub contested_keys: Vec<KeyFingerprint>,
    pub exports: usize,
    pub endpoint_slices: usize,
    pub since: UnixMillis,
    pub health: Vec<ProfileCondition>,
    pub api_servers: Vec<ApiServer>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct SeenExport {
    pub cluster: ClusterId,
    pub revision: Revision,
    pub export: Arc<Export>,
    /// Time of its withdrawal, if it is on hold.
    pub held_since: Option<UnixMillis>,
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

impl Selection {
    /// The question of a request for this by a method.
    pub(super) fn question(&self, method: &str) -> Question {
        let Self {
            cluster,
            namespace,
            members,
            revoked_keys,
            exports,
            imports,
            profiles,
            sight,
        } = self;
        let parts = [members, revoked_keys, exports, imports, profiles];
        let parts: String = parts
            .map(|wanted| if *wanted { '1' } else { '0' })
            .iter()
            .collect();
        let cluster = cluster.as_ref().map(ToString::to_string).unwrap_or_default();
        let whose = sight.cluster().map(ClusterId::as_str).unwrap_or_default();
        let namespace = namespace.as_deref().unwrap_or_default();
        Question::of(&[method, &cluster, namespace, &parts, whose])
    }
}

impl Seen {
    /// The token's record of the last object of a page.
    pub(super) fn last(&self) -> Last {
        match self {
            Self::Member(member) => Last::Member(member.cluster.clone()),
            Self::RevokedKey(key, _) => Last::RevokedKey(*key),
            Self::Export(seen) => Last::Export(seen.cluster.clone(), seen.export.service.clone()),
            Self::Import(seen) => Last::Import(seen.import.service.clone()),
            Self::Profile(cluster, _) => Last::Profile(cluster.clone()),
        }
    }
}

/// The place of a part among the others.
fn part(last: &Last) -> u8 {
    match last {
        Last::Member(_) => 1,
        Last::RevokedKey(_) => 2,
        Last::Export(..) => 3,
        Last::Import(_) => 4,
        Last::Profile(_) => 5,
    }
}

/// The selected objects after the last one shown.
pub(super) fn objects<'a>(
    published: &'a Published,
    selection: &'a Selection,
    last: Option<&'a Last>,
) -> impl Iterator<Item = Seen> + 'a {
    let begun = last.map_or(0, part);
    let wanted = |is_selected: bool, part: u8| (is_selected && begun <= part).then_some(());
    let members = wanted(selection.members, 1).into_iter();
    let members = members.flat_map(move |()| members_after(published, selection, last));
    let keys = wanted(selection.revoked_keys, 2).into_iter();
    let keys = keys.flat_map(move |()| keys_after(&published.state, selection, last));
    let exports = wanted(selection.exports, 3).into_iter();
    let exports = exports.flat_map(move |()| exports_after(&published.state, selection, last));
    let imports = wanted(selection.imports && selection.sight.shows(Shown::Import), 4).into_iter();
    let imports = imports.flat_map(move |()| imports_after(&published.state, selection, last));
    let profiles = wanted(selection.profiles, 5).into_iter();
    let profiles = profiles.flat_map(move |()| profiles_after(&published.state, selection, last));
    members.chain(keys).chain(exports).chain(imports).chain(profiles)
}

/// The selected clusters, from one of them on; `skip`: without that one.
fn clusters_from<'a>(
    state: &'a State,
    selection: &'a Selection,
    first: Option<&'a ClusterId>,
    skip: bool,
) -> impl Iterator<Item = (&'a ClusterId, &'a Member)> + 'a {
    let first = first.or(selection.cluster.as_ref());
    let from: Box<dyn Iterator<Item = (&'a ClusterId, &'a Arc<Member>)> + 'a> = match first {
        None => Box::new(state.members().iter()),
        Some(first) if skip => Box::new(state.members().after(first.clone())),
        Some(first) => Box::new(state.members().from(first.clone())),
    };
    let only = selection.cluster.as_ref();
    let clusters = from.take_while(move |(cluster, _)| only.is_none_or(|only| only == *cluster));
    let shown = clusters.filter(|(cluster, _)| selection.sight.shows(Shown::Cluster(cluster)));
    shown.map(|(cluster, member)| (cluster, member.as_ref()))
}

fn members_after<'a>(
    published: &'a Published,
    selection: &'a Selection,
    last: Option<&'a Last>,
) -> impl Iterator<Item = Seen> + 'a {
    let last = match last {
        Some(Last::Member(cluster)) => Some(cluster),
        _ => None,
    };
    let members = clusters_from(&published.state, selection, last, last.is_some());
    members.map(move |(cluster, member)| Seen::Member(Box::new(seen_member(published, cluster, member))))
}

fn seen_member(published: &Published, cluster: &ClusterId, member: &Member) -> SeenMember {
    let exports = member.exports().count();
    let slices = member.facts().keys().skip(exports);
    let keys = member.keys().iter();
    let derived = published.state.derived(&DerivedKey::Profile(cluster.clone()));
    let conditions = match derived.map(|derived| &derived.content) {
        Some(DerivedContent::Profile(profile)) => &profile.conditions[..],
        _ => &[],
    };
    let reported = member
        .facts()
        .get(&FactKey::Health)
        .and_then(|fact| fact.health());
    // A member without reports has nothing to show, and a page has room for a thousand of them.
    let of_health = |condition: &&ProfileCondition| {
        reported.is_some() && condition.condition_type != ConditionType::Joined
    };
    let verdict = reported.and_then(|health| health.verdict.as_ref());
    SeenMember {
        cluster: cluster.clone(),
        incarnation: member.incarnation(),
        state: member.source_state(),
        withdrawn: member.is_withdrawn(),
        leaving: member.leaving().cloned(),
        brake_since: member.taken_back().brake().map(|brake| brake.since),
        held_exports: member.taken_back().held_exports().count(),
        listed: published.listed.contains(cluster),
        connected: published.connected.contains(cluster),
        cluster_fingerprint: member.cluster_fingerprint().into(),
        keys: keys.map(|(key, known)| (*key, known.clone())).collect(),
        contested_keys: member.contested_keys().iter().copied().collect(),
        exports,
        endpoint_slices: slices
            .take_while(|key| matches!(key, FactKey::EndpointSlice(_)))
            .count(),
        since: member.since(),
        health: conditions.iter().filter(of_health).cloned().collect(),
        api_servers: verdict
            .map(|verdict| verdict.api_servers.clone())
            .unwrap_or_default(),
    }
}

fn keys_after<'a>(
    state: &'a State,
    selection: &'a Selection,
    last: Option<&Last>,
) -> impl Iterator<Item = Seen> + 'a {
    let keys: Box<dyn Iterator<Item = (&'a KeyFingerprint, &'a RevokedKey)> + 'a> = match last {
        Some(Last::RevokedKey(key)) => Box::new(state.revoked_keys().after(*key)),
        _ => Box::new(state.revoked_keys().iter()),
    };
    let shown = keys.filter(|(_, revoked)| selection.sight.shows(Shown::RevokedKey(&revoked.holder)));
    shown.map(|(key, revoked)| Seen::RevokedKey(*key, revoked.clone()))
}

/// The profile of a current member.
fn profile<'a>(state: &'a State, cluster: &ClusterId) -> Option<&'a Arc<Profile>> {
    match &state.derived(&DerivedKey::Profile(cluster.clone()))?.content {
        DerivedContent::Profile(profile) => Some(profile),
        _ => None,
    }
}

fn profiles_after<'a>(
    state: &'a State,
    selection: &'a Selection,
    last: Option<&'a Last>,
) -> impl Iterator<Item = Seen> + 'a {
    let last = match last {
        Some(Last::Profile(cluster)) => Some(cluster),
        _ => None,
    };
    let clusters = clusters_from(state, selection, last, last.is_some());
    clusters.filter_map(move |(cluster, _)| {
        Some(Seen::Profile(cluster.clone(), profile(state, cluster)?.clone()))
    })
}

fn exports_after<'a>(
    state: &'a State,
    selection: &'a Selection,
    last: Option<&'a Last>,
) -> impl Iterator<Item = Seen> + 'a {
    let last = match last {
        Some(Last::Export(cluster, service)) => Some((cluster, service)),
        _ => None,
    };
    // The rest of the last one's cluster is still to come.
    let clusters = clusters_from(state, selection, last.map(|(cluster, _)| cluster), false);
    clusters.flat_map(move |(cluster, member)| {
        let last = last.filter(|(of, _)| *of == cluster).map(|(_, service)| service);
        let exports = exports_of(member, selection.namespace.as_deref(), last);
        exports.map(move |counted| Seen::Export(seen_export(state, cluster, member, counted)))
    })
}

fn seen_export(
    state: &State,
    cluster: &ClusterId,
    member: &Member,
    (revision, export, held_since): CountedExport<'_>,
) -> SeenExport {
    let (mut endpoint_slices, mut endpoints) = (0, 0);
    for (_, slice) in member.counted_slices_of(&export.service) {
        endpoint_slices += 1;
        endpoints += slice.endpoints.len();
    }
    SeenExport {
        cluster: cluster.clone(),
        revision,
        export: export.clone(),
        held_since,
        endpoint_slices,
        endpoints,
        status: state.export_status(cluster, &export.service).cloned(),
    }
}

/// In which clusters an export arrived, if it is taken.
pub(super) fn arrival(published: &Published, words: &Words, seen: &SeenExport) -> Option<Arrival> {
    let (state, service) = (&published.state, &seen.export.service);
    let key = DerivedKey::ExportStatus(seen.cluster.clone(), service.clone());
    let since = state.derived(&key)?.revision;
    seen.status.as_ref().filter(|status| status.denial.is_none())?;
    let members = state.members().iter();
    let current = members.filter(|(_, member)| member.is_current());
    let policy = state.policy();
    let admits = |cluster: &ClusterId, service: &ServiceKey| {
        policy.is_none_or(|policy| policy.policy.imports_of(cluster).allow(service))
    };
    let members = current.map(|(cluster, _)| cluster);
    let what = (service, since, published.head.epoch);
    Some(crate::arrival::arrival(members, words, what, admits))
}

/// A counted export, with the revision that recorded it and, if it is on hold, the time of its withdrawal.
type CountedExport<'a> = (Revision, &'a Arc<Export>, Option<UnixMillis>);

/// The counted exports of a member, by service: the reported ones, and those on hold.
fn exports_of<'a>(
    member: &'a Member,
    namespace: Option<&'a str>,
    last: Option<&ServiceKey>,
) -> impl Iterator<Item = CountedExport<'a>> + 'a {
    let first = last.cloned().unwrap_or_else(|| first_of(namespace));
    let held = member.taken_back().held_exports_from(first.clone());
    let mut held = held
        .map(|(revision, export, at)| (revision, export, Some(at)))
        .peekable();
    let recorded = member.facts().from(FactKey::Export(first.clone()));
    let mut reported = recorded
        .map_while(|(_, fact)| Some((fact.revision, fact.export()?, None)))
        .peekable();
    let exports = std::iter::from_fn(move || match (held.peek(), reported.peek()) {
        (Some((_, held_export, _)), Some((_, export, _))) if held_export.service < export.service => {
            held.next()
        }
        (Some(_), None) => held.next(),
        (_, _) => reported.next(),
    });
    // No service has the first key, but the one that was shown last.
    let exports = exports.skip_while(move |(_, export, _)| export.service == first);
    exports
        .take_while(move |(_, export, _)| namespace.is_none_or(|wanted| *export.service.namespace == *wanted))
}

/// A key before those of all services of a namespace.
fn first_of(namespace: Option<&str>) -> ServiceKey {
    ServiceKey::before_all_of(namespace.unwrap_or_default())
}

fn imports_after<'a>(
    state: &'a State,
    selection: &'a Selection,
    last: Option<&Last>,
) -> impl Iterator<Item = Seen> + 'a {
    let namespace = selection.namespace.as_deref();
    let last = match last {
        Some(Last::Import(service)) => Some(service.clone()),
        _ => None,
    };
    let first = last.clone().unwrap_or_else(|| first_of(namespace));
    let derived = state.derived_from(DerivedKey::Import(first));
    // The rest of the one shown last comes first.
    let derived = derived.skip_while(move |(key, _)| last.is_some() && key.service() == last.as_ref());
    let derived = derived.take_while(move |(key, _)| match (key.namespace(), namespace) {
        (None, _) => false,
        (Some(of), Some(wanted)) => of == wanted,
        (Some(_), None) => true,
    });
    let cluster = selection.cluster.as_ref();
    let wanted = move |seen: &SeenImport| cluster.is_none_or(|one| seen.import.clusters.contains_key(one));
    imports_among(derived).filter(wanted).map(Seen::Import)
}

/// The imports among derived objects, each with the slices that follow it.
fn imports_among<'a>(
    derived: impl Iterator<Item = (&'a DerivedKey, &'a Derived)>,
) -> impl Iterator<Item = SeenImport> {
    let mut derived = derived.peekable();
    std::iter::from_fn(move || {
        let mut seen = derived.find_map(|(_, derived)| match &derived.content {
            DerivedContent::Import(import) => Some(SeenImport {
                revision: derived.revision,
                import: import.clone(),
                endpoint_slices: 0,
                endpoints: 0,
            }),
            _ => None,
        })?;
        let its_slice = |key: &DerivedKey| {
            matches!(key, DerivedKey::Slice(_)) && key.service() == Some(&seen.import.service)
        };
        let (mut endpoint_slices, mut endpoints) = (0, 0);
        while let Some((_, next)) = derived.next_if(|(key, _)| its_slice(key)) {
            endpoint_slices += 1;
            if let DerivedContent::Slice(slice) = &next.content {
                endpoints += slice.endpoints.len();
            }
        }
        (seen.endpoint_slices, seen.endpoints) = (endpoint_slices, endpoints);
        Some(seen)
    })
}

/// The import of a service with the number of its slices and endpoints.
pub(super) fn import(state: &State, service: &ServiceKey) -> Option<SeenImport> {
    let of_service = state.derived_from(DerivedKey::Import(service.clone()));
    let of_service = of_service.take_while(|(key, _)| key.service() == Some(service));
    imports_among(of_service).next()
}

//! Owns: looking at a member's cluster: what doctors judge, read once, every question within a time.
//! Never: judges, or writes anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use futures::future::join_all;
use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    coordination::v1::Lease,
    core::v1::{ConfigMap, Node, Service},
    discovery::v1::EndpointSlice,
};
use kube::{Api, Client, Resource, ResourceExt, api::ListParams};
use serde::de::DeserializeOwned;
use shared::{
    api::{ClusterProperty, ServiceExport, ServiceImport, names},
    doctor::{
        ask::{Served, served, told, within},
        look::STEP_WAIT,
        rights::{Answered, Right},
    },
    model::{UnixMillis, policy::AddressRange},
};
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};

use super::{
    judge::{CorefileSeen, LeaseSeen, NameSeen, NotReady, POLICIES, PoliciesSeen, REASON_WITHDRAWAL_HELD},
    network::{Dialled, Imported, OwnNetwork},
    rights::NEEDED,
};
use crate::{
    corefile::args::{CONFIGMAP, KEY, ZONE},
    watch::{Guarded, Head},
};

/// Most objects of a kind that are read: a doctor looks, and does not count.
pub(super) const OBJECTS_MAX: u32 = 500;
/// Time that an endpoint may take to answer.
const DIAL_WAIT: Duration = Duration::from_secs(2);
/// Most endpoints that are dialled: one of a source, all at once.
const DIALLED_MAX: usize = 64;
/// The condition of a ServiceImport.
const READY: &str = "Ready";
/// Duration of a Lease that does not state one.
const LEASE_DEFAULT: Duration = Duration::from_secs(15);

/// Everything seen of a cluster.
pub(super) struct ClusterSeen {
    pub(super) version: Result<String, String>,
    pub(super) served: Result<Served, String>,
    pub(super) rights: Vec<Answered>,
    pub(super) property: Result<Option<String>, String>,
    pub(super) lease: Result<Option<LeaseSeen>, String>,
    pub(super) agents: BTreeSet<String>,
    pub(super) corefile: CorefileSeen,
    pub(super) imported: Result<Vec<Imported>, String>,
    pub(super) network: Result<OwnNetwork, String>,
    /// Exports and imports that the agent cannot take as they are, and why.
    pub(super) unusable: Result<Vec<String>, String>,
    pub(super) not_ready: Result<Vec<NotReady>, String>,
    pub(super) policies: PoliciesSeen,
}

/// Looks at a cluster; the agent's Leases are in `namespace`. An endpoint that does not answer is not asked again.
pub(super) async fn cluster(client: &Client, namespace: &str) -> Result<ClusterSeen, String> {
    let version = within(client.apiserver_version()).await?;
    let needed: Vec<Right> = NEEDED
        .iter()
        .flat_map(|rights| rights.each((names::TRIBUTARY_NAMESPACE, namespace)))
        .collect();
    let groups = [names::MULTICLUSTER_GROUP, names::ABOUT_GROUP];
    let (
        served,
        rights,
        property,
        (lease, agents),
        corefile,
        imported,
        network,
        unusable,
        not_ready,
        policies,
    ) = tokio::join!(
        served(client, &groups),
        shared::doctor::ask::rights(client, needed),
        property(client),
        leases(client, namespace),
        corefile(client),
        imported(client),
        network(client),
        unusable(client),
        not_ready(client),
        policies(client),
    );
    Ok(ClusterSeen {
        version: Ok(version.git_version),
        served,
        rights,
        property,
        lease,
        agents,
        corefile,
        imported,
        network,
        unusable,
        not_ready,
        policies,
    })
}

/// Exports and imports that cannot be decoded, and exports that no Service can have the name of.
async fn unusable(client: &Client) -> Result<Vec<String>, String> {
    let mut unusable = unread::<ServiceExport>(client, "ServiceExport").await?;
    unusable.extend(unread::<ServiceImport>(client, "ServiceImport").await?);
    Ok(unusable)
}

async fn unread<K>(client: &Client, kind: &str) -> Result<Vec<String>, String>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let objects = Api::<Guarded<K>>::all_with(client.clone(), &());
    let found = within(objects.list(&ListParams::default().limit(OBJECTS_MAX))).await?;
    let told = found.items.iter().filter_map(|object| {
        let head = Head::of(object.meta());
        let (namespace, name) = (&head.namespace, &head.name);
        match &object.0 {
            Err(unreadable) => Some(format!("{kind} {namespace}/{name}: {}", unreadable.problem())),
            Ok(_) if head.service().is_none() => Some(format!(
                "{kind} {namespace}/{name}: no Service can have this name"
            )),
            Ok(_) => None,
        }
    });
    Ok(told.collect())
}

/// ServiceImports that an agent says cannot be used here as they should, or are on hold.
async fn not_ready(client: &Client) -> Result<Vec<NotReady>, String> {
    let imports: Api<ServiceImport> = Api::all(client.clone());
    let found = within(imports.list(&ListParams::default().limit(OBJECTS_MAX))).await?;
    let said = found.items.iter().filter_map(|import| {
        let conditions = &import.status.as_ref()?.conditions;
        let ready = conditions.iter().find(|one| {
            one.type_ == READY && (one.status == "False" || one.reason == REASON_WITHDRAWAL_HELD)
        })?;
        Some(NotReady {
            import: named(import),
            reason: ready.reason.clone(),
            message: ready.message.clone(),
        })
    });
    Ok(said.collect())
}

/// The admission policies of the agent's chart, each with its binding.
async fn policies(client: &Client) -> PoliciesSeen {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    let mut missing = Vec::new();
    for name in POLICIES {
        let both = async { tokio::try_join!(policies.get_opt(name), bindings.get_opt(name)) };
        match timeout(STEP_WAIT, both).await {
            Ok(Ok((Some(_), Some(_)))) => {}
            Ok(Ok(_)) => missing.push(name),
            // Before 1.30 an API server does not know the kind.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => missing.push(name),
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => {
                return PoliciesSeen::Forbidden;
            }
            Ok(Err(error)) => return PoliciesSeen::Unread(told(&error)),
            Err(_) => return PoliciesSeen::Unread(format!("no answer within {} s", STEP_WAIT.as_secs())),
        }
    }
    PoliciesSeen::Missing(missing)
}

async fn property(client: &Client) -> Result<Option<String>, String> {
    let properties: Api<ClusterProperty> = Api::all(client.clone());
    let found = within(properties.get_opt(names::PROPERTY_CLUSTER_ID)).await?;
    Ok(found.map(|property| property.spec.value))
}

async fn leases(client: &Client, namespace: &str) -> (Result<Option<LeaseSeen>, String>, BTreeSet<String>) {
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    let found = within(leases.get_opt(names::AGENT_LEASE)).await;
    let selector = format!("{}={}", names::LABEL_IDENTITY, names::AGENT_MANAGER);
    let params = ListParams::default().labels(&selector).limit(OBJECTS_MAX);
    // Agents of an older release keep none, and reading may not be allowed: then other running agents are not reported.
    let agents = within(leases.list(&params))
        .await
        .map(|list| list.items)
        .unwrap_or_default();
    let seen = found.map(|lease| lease.as_ref().map(lease_seen));
    (seen, agents.iter().map(ResourceExt::name_any).collect())
}

fn lease_seen(lease: &Lease) -> LeaseSeen {
    let spec = lease.spec.clone().unwrap_or_default();
    let renewed = spec
        .renew_time
        .and_then(|time| u64::try_from(time.0.as_millisecond()).ok());
    let seconds = spec
        .lease_duration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    LeaseSeen {
        holder: spec.holder_identity.unwrap_or_default(),
        renewed: renewed.map(UnixMillis),
        duration: seconds.map_or(LEASE_DEFAULT, Duration::from_secs),
    }
}

async fn corefile(client: &Client) -> CorefileSeen {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), names::KUBE_SYSTEM_NAMESPACE);
    let found = match timeout(STEP_WAIT, maps.get_opt(CONFIGMAP)).await {
        Ok(Ok(found)) => found,
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => {
            return CorefileSeen::Forbidden;
        }
        Ok(Err(error)) => return CorefileSeen::Unread(told(&error)),
        Err(_) => return CorefileSeen::Unread("no answer in time".to_owned()),
    };
    let text = found.and_then(|map| map.data?.remove(KEY));
    text.map_or(CorefileSeen::Missing, CorefileSeen::Text)
}

/// Endpoints that other clusters' slices have here.
async fn imported(client: &Client) -> Result<Vec<Imported>, String> {
    let slices: Api<EndpointSlice> = Api::all(client.clone());
    let (label, ours) = (
        names::LABEL_ENDPOINT_SLICE_MANAGED_BY,
        names::ENDPOINT_SLICE_MANAGER,
    );
    let params = ListParams::default()
        .labels(&format!("{label}={ours}"))
        .limit(OBJECTS_MAX);
    let found = within(slices.list(&params)).await?;
    let mut imported: Vec<Imported> = found.items.iter().flat_map(endpoints).collect();
    imported.sort();
    Ok(imported)
}

fn endpoints(slice: &EndpointSlice) -> Vec<Imported> {
    let source = slice
        .labels()
        .get(names::LABEL_SOURCE_CLUSTER)
        .cloned()
        .unwrap_or_default();
    let ports = slice.ports.iter().flatten();
    let mut tcp = ports.filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"));
    let port = tcp.find_map(|port| u16::try_from(port.port?).ok());
    let all = slice.endpoints.iter();
    let read = all.flat_map(|endpoint| {
        let conditions = endpoint.conditions.as_ref();
        let ready = conditions.and_then(|conditions| conditions.ready).unwrap_or(true);
        let addresses = endpoint
            .addresses
            .iter()
            .filter_map(|address| address.parse().ok());
        let source = source.clone();
        addresses.map(move |address: IpAddr| Imported {
            source: source.clone(),
            address,
            port: port.filter(|_| ready),
        })
    });
    read.collect()
}

/// Reads this cluster's own network.
async fn network(client: &Client) -> Result<OwnNetwork, String> {
    let params = ListParams::default().limit(OBJECTS_MAX);
    let (nodes, services) = (
        Api::<Node>::all(client.clone()),
        Api::<Service>::all(client.clone()),
    );
    let slices: Api<EndpointSlice> = Api::all(client.clone());
    let (label, ours) = (
        names::LABEL_ENDPOINT_SLICE_MANAGED_BY,
        names::ENDPOINT_SLICE_MANAGER,
    );
    let not_ours = params.clone().labels(&format!("{label}!={ours}"));
    let mut network = OwnNetwork::default();
    for node in within(nodes.list(&params)).await?.items {
        let spec = node.spec.clone().unwrap_or_default();
        let ranges = spec.pod_cidrs.into_iter().flatten().chain(spec.pod_cidr);
        network
            .pods
            .extend(ranges.filter_map(|range| range.parse::<AddressRange>().ok()));
        let status = node.status.clone().unwrap_or_default();
        let internal = status
            .addresses
            .into_iter()
            .flatten()
            .filter(|address| address.type_ == "InternalIP");
        add(
            &mut network,
            internal.map(|address| address.address),
            &format!("the node {}", node.name_any()),
        );
    }
    for service in within(services.list(&params)).await?.items {
        let what = format!("the Service {}", named(&service));
        let addresses = service.spec.unwrap_or_default().cluster_ips.unwrap_or_default();
        add(&mut network, addresses, &what);
    }
    for slice in within(slices.list(&not_ours)).await?.items {
        let what = format!("an endpoint of {}", named(&slice));
        let addresses = slice
            .endpoints
            .into_iter()
            .flat_map(|endpoint| endpoint.addresses);
        // Somebody may point at another cluster on purpose: only what runs on pods here is this cluster's.
        if slice
            .metadata
            .labels
            .as_ref()
            .and_then(|labels| labels.get(label))
            .map(String::as_str)
            == Some("endpointslice-controller.k8s.io")
        {
            add(&mut network, addresses, &what);
        }
    }
    Ok(network)
}

fn named(object: &impl ResourceExt) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}

fn add(network: &mut OwnNetwork, addresses: impl IntoIterator<Item = String>, what: &str) {
    let parsed = addresses.into_iter().filter_map(|address| address.parse().ok());
    network
        .addresses
        .extend(parsed.map(|address: IpAddr| (address, what.to_owned())));
}

/// Dials them, all at once.
pub(super) async fn dial(endpoints: Vec<&Imported>) -> Vec<Dialled> {
    let dials = endpoints
        .into_iter()
        .take(DIALLED_MAX)
        .map(|endpoint| async move {
            let at = SocketAddr::new(endpoint.address, endpoint.port.unwrap_or_default());
            let outcome = match timeout(DIAL_WAIT, TcpStream::connect(at)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no answer within {} s", DIAL_WAIT.as_secs())),
            };
            Dialled {
                endpoint: endpoint.clone(),
                outcome,
            }
        });
    join_all(dials).await
}

/// Asks DNS for the name of one import that has an address.
pub(super) async fn name(client: &Client) -> Option<NameSeen> {
    let imports: Api<ServiceImport> = Api::all(client.clone());
    let found = within(imports.list(&ListParams::default().limit(OBJECTS_MAX)))
        .await
        .ok()?;
    let import = found
        .items
        .into_iter()
        .find(|import| !import.spec.ips.is_empty())?;
    let wanted = import.spec.ips.first()?.clone();
    let name = format!(
        "{}.{}.svc.{ZONE}",
        import.name_any(),
        import.namespace().unwrap_or_default()
    );
    let answer = match timeout(STEP_WAIT, lookup_host((&*name, 0))).await {
        Ok(Ok(found)) => {
            let addresses: BTreeMap<String, ()> = found.map(|one| (one.ip().to_string(), ())).collect();
            Ok(addresses.into_keys().collect())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", STEP_WAIT.as_secs())),
    };
    Some(NameSeen { name, wanted, answer })
}

//! Ten thousand slices imported into one real cluster: all of them stand, each with its own address; an agent that is
//! started again writes none of them; and one that changes is followed.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{Backend, LocalClusterset},
    real::{Fleet, Options},
    rights::denied::Watched,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client, ResourceExt, api::ListParams};
use shared::{
    api::names::LABEL_MANAGED_BY,
    model::{Fact, ServiceKey, SessionAffinity, derived_name::imported_slice_name},
};

use super::{Played, create_namespace, export, slice, slice_key};

const IMPORTER: &str = "east";
const SOURCE: &str = "source";
const NAMESPACE: &str = "many";
const SERVICES: u32 = 100;
const SLICES_EACH: u32 = 100;
const SLICES: u32 = SERVICES * SLICES_EACH;
/// Longest wait until all slices have come, on a busy machine too.
const WAIT: Duration = Duration::from_secs(150);
const POLL: Duration = Duration::from_millis(500);
/// Objects of one page.
const PAGE: u32 = 1_000;

/// On a cluster of its own: what is left of ten thousand slices would be every later agent's to read.
pub(super) async fn ten_thousand_slices_are_imported() -> anyhow::Result<()> {
    let fleet = Arc::new(Fleet::start(&[IMPORTER], Options::default()).await?);
    let dir = tempfile::tempdir()?;
    let backend = Backend::Real(fleet.clone());
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &backend, &[IMPORTER]).await?;
    let client = clusterset.cluster(IMPORTER)?.client.clone();
    create_namespace(&client, NAMESPACE).await?;
    let source = Played::join(&clusterset, SOURCE, declared()?).await?;
    let began = Instant::now();
    clusterset.start_agent(IMPORTER).await?;
    until_count(&client, SLICES as usize).await?;
    println!(
        "{SLICES} slices imported after {:.1} s",
        began.elapsed().as_secs_f64()
    );
    let first = held(&client).await?;
    let wanted = wanted()?;
    for (name, address) in &wanted {
        let found = first.get(name).with_context(|| format!("no slice {name}"))?;
        ensure!(
            found.address == *address,
            "{name} has {}, not {address}",
            found.address
        );
    }
    ensure!(
        first.len() == wanted.len(),
        "{} slices, not {}",
        first.len(),
        wanted.len()
    );

    clusterset.kill_agent(IMPORTER).await?;
    // One slice is another one by now, and one service is new: it is planned after all others.
    let changed = service(7)?;
    let (key, address) = (slice_key(&changed, 7), Ipv4Addr::new(192, 0, 2, 7));
    let fence = ServiceKey::new(NAMESPACE, "zz-fence")?;
    let news = [
        slice(key.clone(), address),
        export(&fence, 0, SessionAffinity::None),
        slice(slice_key(&fence, 0), Ipv4Addr::new(192, 0, 2, 8)),
    ];
    source.report(&news).await?;
    let watched = Watched::begin(&fleet).await?;
    clusterset.start_agent(IMPORTER).await?;
    until_count(&client, SLICES as usize + 1).await?;
    let changed = imported_slice_name(NAMESPACE, &changed.name, SOURCE, &key.name);
    let mut second = held(&client).await?;
    while second
        .get(&changed)
        .is_none_or(|found| found.address != address.to_string())
    {
        ensure!(began.elapsed() < WAIT, "the changed slice never came");
        tokio::time::sleep(POLL).await;
        second = held(&client).await?;
    }
    let written: Vec<&String> = first
        .iter()
        .filter(|(name, before)| {
            second
                .get(*name)
                .is_none_or(|after| after.version != before.version)
        })
        .map(|(name, _)| name)
        .collect();
    ensure!(
        written == [&changed],
        "a restart wrote {} slices: {written:?}",
        written.len()
    );
    // A write of what stands already changes no version, and costs as much as any.
    let requests = watched.requests(&fleet).await?;
    let in_vain = requests.iter().filter(|request| {
        request.is_write()
            && request.resource == "endpointslices"
            && first.contains_key(&request.name)
            && request.name != changed
    });
    let in_vain = in_vain.count();
    ensure!(in_vain == 0, "a restart wrote {in_vain} slices as they stood");
    clusterset.end().await
}

fn service(number: u32) -> anyhow::Result<ServiceKey> {
    Ok(ServiceKey::new(NAMESPACE, &format!("cart-{number:03}"))?)
}

fn address(number: u32, each: u32) -> Ipv4Addr {
    let [_, _, high, low] = (number * SLICES_EACH + each).to_be_bytes();
    Ipv4Addr::new(10, 9, high, low)
}

/// All that the source exports.
fn declared() -> anyhow::Result<Vec<Fact>> {
    let mut facts = Vec::new();
    for number in 0..SERVICES {
        let service = service(number)?;
        facts.push(export(&service, number.into(), SessionAffinity::None));
        facts.extend((0..SLICES_EACH).map(|each| slice(slice_key(&service, each), address(number, each))));
    }
    Ok(facts)
}

/// The expected slices: address by name.
fn wanted() -> anyhow::Result<BTreeMap<String, String>> {
    let mut wanted = BTreeMap::new();
    for number in 0..SERVICES {
        let service = service(number)?;
        for each in 0..SLICES_EACH {
            let source = slice_key(&service, each).name;
            let name = imported_slice_name(NAMESPACE, &service.name, SOURCE, &source);
            wanted.insert(name, address(number, each).to_string());
        }
    }
    Ok(wanted)
}

/// The compared content of a slice.
struct Held {
    version: String,
    address: String,
}

async fn held(client: &Client) -> anyhow::Result<BTreeMap<String, Held>> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    let labelled = format!("{LABEL_MANAGED_BY}=tributary-agent");
    let mut params = ListParams::default().labels(&labelled).limit(PAGE);
    let mut held = BTreeMap::new();
    loop {
        let page = slices.list(&params).await?;
        let more = page.metadata.continue_.clone().filter(|more| !more.is_empty());
        for slice in page.items {
            let address = slice.endpoints.first().and_then(|one| one.addresses.first());
            let state = Held {
                version: slice.resource_version().unwrap_or_default(),
                address: address.cloned().unwrap_or_default(),
            };
            held.insert(slice.name_any(), state);
        }
        let Some(more) = more else { return Ok(held) };
        params = params.continue_token(&more);
    }
}

/// Waits until so many slices are in the namespace, where nobody else has any.
async fn until_count(client: &Client, wanted: usize) -> anyhow::Result<()> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    let began = Instant::now();
    loop {
        let page = slices.list(&ListParams::default().limit(1)).await?;
        let rest = page.metadata.remaining_item_count.unwrap_or_default();
        let count = page.items.len() + usize::try_from(rest)?;
        if count >= wanted {
            ensure!(count == wanted, "{count} slices, more than {wanted}");
            return Ok(());
        }
        ensure!(
            began.elapsed() < WAIT,
            "after {} s {count} of {wanted} slices",
            WAIT.as_secs()
        );
        tokio::time::sleep(POLL).await;
    }
}

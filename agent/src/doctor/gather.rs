//! Owns: what `gather` collects in a member's cluster and at its hub: every part within a time and a size, without secrets.
//! Never: reads a Secret, or judges.

use std::process::ExitCode;

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, LogParams},
};
use proto::v1::{self, event_log_client::EventLogClient, state_client::StateClient};
use shared::{
    api::names,
    doctor::{
        ask::within,
        bundle::{BUNDLE_WAIT, Bundle, PART_WAIT},
        json,
        look::{self, connector, refused},
        redact::Secrets,
    },
    identity::Role,
    model::sync::MESSAGE_BYTES_MAX,
    process::{LogArgs, Threads, block_on, own_namespace},
    tls::{Credentials, install_crypto_provider},
};
use tokio::time::timeout;
use tonic::{Request, transport::Channel};

use super::{args::GatherArgs, client, examine, see::OBJECTS_MAX};

/// Newest events that are read, and how far back.
const EVENTS_MAX: u32 = 1_000;
const EVENTS_SINCE_MILLIS: u64 = 60 * 60 * 1_000;
/// Pods whose logs are read, and lines of each.
const PODS_MAX: usize = 4;
const LOG_LINES_MAX: i64 = 2_000;
/// Pages of the hub's state.
const PAGES_MAX: usize = 20;

/// The kinds whose objects are read, with the selector of those that are ours.
const KINDS: [(&str, &str, &str, &str); 6] = [
    (
        "",
        "v1",
        "Service",
        "app.kubernetes.io/managed-by=tributary-agent",
    ),
    (
        "discovery.k8s.io",
        "v1",
        "EndpointSlice",
        "app.kubernetes.io/managed-by=tributary-agent",
    ),
    ("multicluster.x-k8s.io", "v1beta1", "ServiceImport", ""),
    ("multicluster.x-k8s.io", "v1beta1", "ServiceExport", ""),
    ("about.k8s.io", "v1beta1", "ClusterProperty", ""),
    ("coordination.k8s.io", "v1", "Lease", ""),
];

/// Runs `gather`.
pub fn run(log: &LogArgs, args: &GatherArgs) -> ExitCode {
    let gathered = log.init().map_err(anyhow::Error::from).and_then(|()| {
        install_crypto_provider()?;
        block_on(Threads::One, async {
            let bundle = gather(args).await?;
            println!("{}: {}", args.out.display(), bundle.files().join(", "));
            println!(
                "Keys and tokens are left out; names and addresses are in it: read it before you pass it on."
            );
            Ok(())
        })
    });
    shared::process::exit_code(gathered)
}

/// Collects everything that can be had within the time.
pub async fn gather(args: &GatherArgs) -> anyhow::Result<Bundle> {
    let mut secrets = Secrets::default();
    // A file that cannot be read adds nothing to what follows.
    secrets.add(&std::fs::read_to_string(&args.look.tls.key).unwrap_or_default());
    let mut bundle = Bundle::create(&args.out, secrets)?;
    let filled = timeout(BUNDLE_WAIT, fill(args, &mut bundle)).await;
    match filled {
        Ok(filled) => filled?,
        Err(_) => bundle.add("cut-short.txt", "some parts did not arrive in time\n")?,
    }
    Ok(bundle)
}

async fn fill(args: &GatherArgs, bundle: &mut Bundle) -> anyhow::Result<()> {
    bundle.add("flags.txt", &flags(args))?;
    let report = examine(&args.look).await;
    bundle.add("doctor.txt", &report.text())?;
    bundle.add("doctor.json", &format!("{:#}\n", json::document(&report)))?;
    match client(&args.look).await {
        Ok(client) => {
            for (group, version, kind, selector) in KINDS {
                let objects = within_part(objects(&client, (group, version, kind), selector)).await;
                bundle.add(&format!("{}.json", kind.to_lowercase()), &objects)?;
            }
            for (name, text) in within_part_of(logs(&client)).await {
                bundle.add(&name, &text)?;
            }
        }
        Err(error) => bundle.add("cluster.txt", &format!("{error:#}\n"))?,
    }
    if let Some(credentials) = look::own(&args.look.tls).1 {
        hub(args, &credentials, bundle).await?;
    }
    Ok(())
}

/// A part that does not come in time, or not at all, says so.
async fn within_part(part: impl Future<Output = anyhow::Result<String>>) -> String {
    match timeout(PART_WAIT, part).await {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => format!("{error:#}\n"),
        Err(_) => "it did not arrive in time\n".to_owned(),
    }
}

async fn within_part_of(part: impl Future<Output = Vec<(String, String)>>) -> Vec<(String, String)> {
    let late = || vec![("logs.txt".to_owned(), "it did not arrive in time\n".to_owned())];
    timeout(PART_WAIT, part).await.unwrap_or_else(|_| late())
}

/// Flags that hold no secret, by name: what is not listed is not shown.
fn flags(args: &GatherArgs) -> String {
    let look = &args.look;
    let hubs: Vec<String> = look.hubs.iter().map(ToString::to_string).collect();
    format!(
        "tributary-agent {}\nhub: {}\ntls-cert: {}\ntls-key: {} (its content is left out)\ntls-ca: {}\nkubeconfig: \
         {:?}\ncluster-id: {:?}\nnamespace: {}\nmachine: {} {}\n",
        env!("CARGO_PKG_VERSION"),
        hubs.join(","),
        look.tls.cert.display(),
        look.tls.key.display(),
        look.tls.ca.display(),
        look.kubeconfig,
        look.cluster_id.as_ref().map(ToString::to_string),
        own_namespace(),
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

async fn objects(client: &Client, kind: (&str, &str, &str), selector: &str) -> anyhow::Result<String> {
    let (group, version, kind) = kind;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let resource = if kind == "ClusterProperty" {
        ApiResource {
            plural: "clusterproperties".to_owned(),
            ..resource
        }
    } else {
        resource
    };
    let api: Api<DynamicObject> = if kind == "Lease" {
        Api::namespaced_with(client.clone(), &own_namespace(), &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    };
    let params = ListParams::default().labels(selector).limit(OBJECTS_MAX);
    let mut found = within(api.list(&params)).await.map_err(anyhow::Error::msg)?;
    for object in &mut found.items {
        object.metadata.managed_fields = None;
    }
    Ok(serde_json::to_string_pretty(&found.items)?)
}

/// The logs of the agent's pods, where they may be read.
async fn logs(client: &Client) -> Vec<(String, String)> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &own_namespace());
    let selector = format!("app.kubernetes.io/name={}", names::AGENT_MANAGER);
    let found = match within(pods.list(&ListParams::default().labels(&selector).limit(OBJECTS_MAX))).await {
        Ok(found) => found.items,
        Err(why) => return vec![("logs.txt".to_owned(), format!("no logs: {why}\n"))],
    };
    let mut logs = Vec::new();
    for pod in found
        .into_iter()
        .filter_map(|pod| pod.metadata.name)
        .take(PODS_MAX)
    {
        let params = LogParams {
            tail_lines: Some(LOG_LINES_MAX),
            timestamps: true,
            ..LogParams::default()
        };
        let text = within(pods.logs(&pod, &params)).await;
        logs.push((
            format!("log-{pod}.txt"),
            text.unwrap_or_else(|why| format!("no log: {why}\n")),
        ));
    }
    logs
}

/// Adds the hub's view of this member: its state, its services, its recent events.
async fn hub(args: &GatherArgs, credentials: &Credentials, bundle: &mut Bundle) -> anyhow::Result<()> {
    let cluster = match &credentials.facts().identity.role {
        Role::Cluster(cluster) => cluster.to_string(),
        _ => String::new(),
    };
    let connecting = connector(args.look.hubs.clone(), credentials);
    let channel = match timeout(PART_WAIT, connecting.connect_once()).await {
        Ok(Ok(channel)) => channel,
        Ok(Err(error)) => {
            let why = shared::tls::explain(&error).unwrap_or_else(|| error.to_string());
            return bundle.add("hub.txt", &format!("{why}\n"));
        }
        Err(_) => return bundle.add("hub.txt", "no answer in time\n"),
    };
    bundle.add(
        "hub-state.txt",
        &within_part(state(channel.clone(), &cluster)).await,
    )?;
    bundle.add(
        "hub-events.txt",
        &within_part(events(channel.clone(), &cluster)).await,
    )?;
    if let Some(service) = &args.service {
        let request = v1::ExplainRequest {
            namespace: service.namespace.to_string(),
            name: service.name.to_string(),
            ..Default::default()
        };
        let explained = within_part(async {
            let mut client = StateClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
            let answer = client.explain(asked(request)).await;
            let answer = answer.map_err(|status| anyhow::anyhow!(refused(&status)))?;
            Ok(format!("{:#?}\n", answer.into_inner()))
        });
        bundle.add("hub-explain.txt", &explained.await)?;
    }
    Ok(())
}

fn asked<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(PART_WAIT);
    request
}

async fn state(channel: Channel, cluster: &str) -> anyhow::Result<String> {
    let mut client = StateClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let (mut text, mut token) = (String::new(), String::new());
    for _ in 0..PAGES_MAX {
        let request = v1::GetStateRequest {
            cluster: cluster.to_owned(),
            page_token: token.clone(),
            ..Default::default()
        };
        let answer = client.get(asked(request)).await;
        let answer = answer
            .map_err(|status| anyhow::anyhow!(refused(&status)))?
            .into_inner();
        token.clone_from(&answer.next_page_token);
        text.push_str(&format!("{answer:#?}\n"));
        if token.is_empty() {
            break;
        }
    }
    Ok(text)
}

async fn events(channel: Channel, cluster: &str) -> anyhow::Result<String> {
    let mut client = EventLogClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut request = v1::ListEventsRequest {
        since_millis_ago: EVENTS_SINCE_MILLIS,
        limit: 1,
        filter: Some(v1::EventFilter {
            cluster: cluster.to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let first = client.list(asked(request.clone())).await;
    let first = first.map_err(|status| anyhow::anyhow!(refused(&status)));
    let first = first.context("no events")?.into_inner();
    // The newest of that time, if there are more than one answer holds.
    let tail = first
        .head_revision
        .saturating_sub(EVENTS_MAX.into())
        .saturating_add(1);
    request.since_millis_ago = 0;
    request.from_revision = first.from_revision.max(tail);
    request.limit = EVENTS_MAX;
    let answer = client.list(asked(request)).await;
    let answer = answer.map_err(|status| anyhow::anyhow!(refused(&status)));
    Ok(format!("{:#?}\n", answer.context("no events")?.into_inner()))
}

//! `tributary gather`: what a maintainer needs to help, as an operator or a reader may read it. Every part has a time
//! and a size, and keys are taken out.

use std::path::PathBuf;

use clap::Args;
use client::{Access, failed, request};
use proto::v1::{
    self, event_log_client::EventLogClient, membership_client::MembershipClient, policy_client::PolicyClient,
    state_client::StateClient,
};
use shared::{
    doctor::{
        Report,
        bundle::{BUNDLE_WAIT, Bundle, PART_WAIT},
        hub::hub,
        look,
        redact::Secrets,
    },
    model::{ServiceKey, sync::MESSAGE_BYTES_MAX},
};
use tokio::time::timeout;
use tonic::transport::Channel;

use super::hub_args::HubArgs;

/// Newest events that are read, and how far back.
const EVENTS_MAX: u32 = 1_000;
const EVENTS_SINCE_MILLIS: u64 = 60 * 60 * 1_000;
/// Pages of each list.
const PAGES_MAX: usize = 20;

/// Collect what a maintainer needs.
#[derive(Debug, Args)]
pub struct GatherArgs {
    /// New directory for the result
    #[arg(long, env = "TRIBUTARY_OUT", value_name = "DIR")]
    out: PathBuf,
    /// Explain this service, as NAMESPACE/NAME
    #[arg(long, env = "TRIBUTARY_SERVICE", value_name = "SERVICE", value_parser = service)]
    service: Option<ServiceKey>,
    #[command(flatten)]
    hub: HubArgs,
}

fn service(text: &str) -> Result<ServiceKey, String> {
    let (namespace, name) = text.split_once('/').ok_or("write it as NAMESPACE/NAME")?;
    ServiceKey::new(namespace, name).map_err(|error| error.to_string())
}

/// Runs the command and returns what to print.
pub(super) async fn run(args: GatherArgs) -> anyhow::Result<String> {
    let mut secrets = Secrets::default();
    let access = args.hub.access();
    // A key that cannot be read cannot be in the bundle.
    if let Ok(access) = &access {
        secrets.add(&String::from_utf8_lossy(&access.pem.key));
    }
    let mut bundle = Bundle::create(&args.out, secrets)?;
    match timeout(BUNDLE_WAIT, fill(&args, access, &mut bundle)).await {
        Ok(filled) => filled?,
        Err(_) => bundle.add("cut-short.txt", "some parts did not arrive in time\n")?,
    }
    Ok(format!(
        "{}: {}\nKeys and tokens are left out; names and addresses are in it: read it before you pass it on.\n",
        args.out.display(),
        bundle.files().join(", ")
    ))
}

async fn fill(args: &GatherArgs, access: anyhow::Result<Access>, bundle: &mut Bundle) -> anyhow::Result<()> {
    let typed = args.hub.typed();
    bundle.add(
        "flags.txt",
        &format!("tributary {}\n{typed}\n", env!("CARGO_PKG_VERSION")),
    )?;
    let access = match access {
        Ok(access) => access,
        Err(error) => return bundle.add("unreachable.txt", &format!("{error:#}\n")),
    };
    let mut report = Report::default();
    for address in access.hubs.iter().take(look::HUBS_MAX) {
        report.extend(hub(&look::hub(address, Some(&access.credentials)).await));
    }
    bundle.add("hub.txt", &report.text())?;
    let channel = match timeout(PART_WAIT, access.connect(None)).await {
        Ok(Ok(channel)) => channel,
        Ok(Err(error)) => return bundle.add("unreachable.txt", &format!("{error:#}\n")),
        Err(_) => return bundle.add("unreachable.txt", "no answer in time\n"),
    };
    bundle.add("members.txt", &part(members(channel.clone())).await)?;
    bundle.add("state.txt", &part(state(channel.clone())).await)?;
    bundle.add("events.txt", &part(events(channel.clone())).await)?;
    bundle.add("policy.txt", &part(policy(channel.clone())).await)?;
    if let Some(service) = &args.service {
        bundle.add("explain.txt", &part(explain(channel, service)).await)?;
    }
    Ok(())
}

/// A part that does not come in time, or not at all, says so.
async fn part(asked: impl Future<Output = anyhow::Result<String>>) -> String {
    match timeout(PART_WAIT, asked).await {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => format!("{error:#}\n"),
        Err(_) => "it did not arrive in time\n".to_owned(),
    }
}

async fn members(channel: Channel) -> anyhow::Result<String> {
    let mut client = MembershipClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let (mut text, mut page_token) = (String::new(), String::new());
    for _ in 0..PAGES_MAX {
        let asked = v1::ListMembersRequest {
            page_token,
            ..Default::default()
        };
        let answer = client
            .list(request(asked))
            .await
            .map_err(|status| failed(&status))?
            .into_inner();
        page_token = answer.next_page_token.clone();
        text.push_str(&format!("{answer:#?}\n"));
        if page_token.is_empty() {
            break;
        }
    }
    Ok(text)
}

async fn state(channel: Channel) -> anyhow::Result<String> {
    let mut client = StateClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let (mut text, mut page_token) = (String::new(), String::new());
    for _ in 0..PAGES_MAX {
        let asked = v1::GetStateRequest {
            page_token,
            ..Default::default()
        };
        let answer = client
            .get(request(asked))
            .await
            .map_err(|status| failed(&status))?
            .into_inner();
        page_token = answer.next_page_token.clone();
        text.push_str(&format!("{answer:#?}\n"));
        if page_token.is_empty() {
            break;
        }
    }
    Ok(text)
}

async fn events(channel: Channel) -> anyhow::Result<String> {
    let mut client = EventLogClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut asked = v1::ListEventsRequest {
        since_millis_ago: EVENTS_SINCE_MILLIS,
        limit: 1,
        ..Default::default()
    };
    let first = client
        .list(request(asked.clone()))
        .await
        .map_err(|status| failed(&status))?
        .into_inner();
    // The newest of that time, if there are more than one answer holds.
    let tail = first
        .head_revision
        .saturating_sub(EVENTS_MAX.into())
        .saturating_add(1);
    asked.since_millis_ago = 0;
    asked.from_revision = first.from_revision.max(tail);
    asked.limit = EVENTS_MAX;
    let answer = client
        .list(request(asked))
        .await
        .map_err(|status| failed(&status))?;
    Ok(format!("{:#?}\n", answer.into_inner()))
}

async fn policy(channel: Channel) -> anyhow::Result<String> {
    let mut client = PolicyClient::new(channel);
    let answer = client.get(request(v1::GetPolicyRequest::default())).await;
    let answer = answer.map_err(|status| failed(&status))?;
    Ok(format!("{:#?}\n", answer.into_inner()))
}

async fn explain(channel: Channel, service: &ServiceKey) -> anyhow::Result<String> {
    let mut client = StateClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let asked = v1::ExplainRequest {
        namespace: service.namespace.to_string(),
        name: service.name.to_string(),
        ..Default::default()
    };
    let answer = client
        .explain(request(asked))
        .await
        .map_err(|status| failed(&status))?;
    Ok(format!("{:#?}\n", answer.into_inner()))
}

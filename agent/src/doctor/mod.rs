//! The commands `doctor` and `gather`: look at the hub, the certificate, the cluster and the network between clusters, and
//! say what is wrong and what to do; or collect it for a maintainer.
//!
//! * [`args`]: the flags; [`see`]: looks; [`judge`], [`network`]: say what is wrong; pure; [`rights`]: what an agent needs.
//! * [`gather`]: what a maintainer is given.
//!
//! They change nothing, in no cluster and at no hub.

pub mod args;
pub mod gather;
pub mod judge;
pub mod network;
pub mod rights;
mod see;

use std::process::ExitCode;

use kube::Client;
use shared::{
    api_client::{ApiMetrics, ServedVersions, api_client, in_served_version},
    doctor::{
        Check, Report,
        hub::{HubSeen, hub},
        look::{self, HUBS_MAX},
        own::{OwnSeen, Wanted, own},
        report::EXIT_UNSEEN,
        rights::rights as judged_rights,
    },
    model::advice,
    process::{LogArgs, Threads, block_on, own_namespace},
    tls::{Credentials, install_crypto_provider},
};

use crate::{
    corefile::{args::ZONE, edit::Zone},
    run,
};
use args::{DoctorArgs, LookArgs};

/// The role of a certificate that names a cluster.
const CLUSTER_ROLE: &str = "cluster";
/// Next step if rights are missing.
const RIGHTS_FIX: &str =
    "apply the roles of deploy/manifests/agent, or of the chart, in the version of this agent";

/// Runs `doctor` and says with what the process ends.
pub fn run(log: &LogArgs, args: &DoctorArgs) -> ExitCode {
    let mut code = EXIT_UNSEEN;
    let looked = log.init().map_err(anyhow::Error::from).and_then(|()| {
        install_crypto_provider()?;
        block_on(Threads::One, async {
            let report = examine(&args.look).await;
            print!("{}", args.output.print(&report));
            code = report.exit_code();
            Ok(())
        })
    });
    if let Err(error) = looked {
        eprintln!("Error: {error:#}");
    }
    ExitCode::from(code)
}

/// Looks at everything.
pub async fn examine(args: &LookArgs) -> Report {
    let mut report = Report::default();
    let (files, credentials) = look::own(&args.tls);
    let hubs = hubs(args, credentials.as_ref()).await;
    let wanted = Wanted {
        role: CLUSTER_ROLE,
        name: args.cluster_id.as_ref().map(ToString::to_string),
        issue: advice::certs_member("DIR", args.cluster_id.as_ref()),
    };
    let taken = hubs.iter().any(HubSeen::took_us);
    report.extend(own(&files, &wanted, look::now(), taken));
    report.extend(hubs.iter().flat_map(hub));
    let id = whose(&files, args.cluster_id.as_ref().map(ToString::to_string));
    match client(args).await {
        Ok(client) => report.extend(cluster(args, &client, id.as_deref()).await),
        Err(error) => report.extend([Check::unseen(
            "cluster",
            format!("{error:#}"),
            "name the cluster with --kubeconfig, or run it in the agent's pod",
        )]),
    }
    report
}

/// The id of the cluster: the certificate's if it is a cluster's, else the one that was named. An error says why there
/// is none: another kind of certificate does not name a cluster.
fn whose(files: &OwnSeen, named: Option<String>) -> Result<String, String> {
    match (&files.files, named) {
        (Ok(certificate), _) if certificate.role == CLUSTER_ROLE => Ok(certificate.name.clone()),
        (_, Some(named)) => Ok(named),
        (Ok(certificate), None) => Err(format!(
            "--tls-cert is a certificate of the {} {}, not of a cluster",
            certificate.role, certificate.name
        )),
        (Err(_), None) => Err("there is no certificate that names the cluster".to_owned()),
    }
}

async fn hubs(args: &LookArgs, credentials: Option<&Credentials>) -> Vec<HubSeen> {
    let looks = args
        .hubs
        .iter()
        .take(HUBS_MAX)
        .map(|address| look::hub(address, credentials));
    futures::future::join_all(looks).await
}

/// The client of the cluster, as the agent has it.
async fn client(args: &LookArgs) -> anyhow::Result<Client> {
    let config = run::kubernetes(args.kubeconfig.as_deref()).await?;
    let client = api_client(config, ApiMetrics::default())?;
    Ok(in_served_version(client, ServedVersions::default()))
}

/// Judges the cluster whose id is `id`, and between it and others; an error says why the id is not known.
async fn cluster(args: &LookArgs, client: &Client, id: Result<&str, &String>) -> Vec<Check> {
    let namespace = own_namespace();
    let seen = match see::cluster(client, &namespace).await {
        Ok(seen) => seen,
        Err(why) => {
            let fix =
                "see that the API server is there and takes these credentials: kubectl get --raw /version";
            return vec![Check::unseen(
                "cluster",
                format!("the cluster does not answer: {why}"),
                fix,
            )];
        }
    };
    let mut checks = vec![Check::fine(
        "cluster",
        format!("Kubernetes {}", seen.version.unwrap_or_default()),
    )];
    checks.extend(judge::definitions(&seen.served));
    checks.push(judged_rights(&seen.rights, RIGHTS_FIX));
    checks.push(judge::property(&seen.property, id));
    checks.push(judge::policies(&seen.policies));
    checks.push(judge::unusable(&seen.unusable));
    checks.push(judge::lease(&seen.lease, &seen.agents, &namespace, look::now()));
    checks.push(judge::imports(&seen.not_ready));
    checks.push(judge::withdrawals(&seen.not_ready, &namespace));
    match Zone::new(ZONE) {
        Ok(zone) => checks.push(judge::corefile(&seen.corefile, &zone)),
        Err(refusal) => checks.push(Check::unseen(
            "coredns-corefile",
            refusal.to_string(),
            "report it",
        )),
    }
    // Only from within the cluster's network does it say anything that names and endpoints do not answer.
    let within = args.dial_endpoints || args.kubeconfig.is_none();
    let name = if within { see::name(client).await } else { None };
    checks.push(judge::answered(name.as_ref()));
    match (&seen.imported, &seen.network) {
        (Ok(imported), Ok(network)) => {
            let dialled = if within {
                Some(see::dial(network::one_of_each(imported, id.unwrap_or_default())).await)
            } else {
                None
            };
            checks.extend(network::dialled(dialled.as_deref()));
            checks.extend(network::ranges(network, imported, id.unwrap_or_default()));
        }
        (Err(why), _) | (_, Err(why)) => checks.push(Check::unseen(
            "ranges",
            why.clone(),
            "see that this account may list nodes, services and endpointslices",
        )),
    }
    checks
}

#[cfg(test)]
mod tests;

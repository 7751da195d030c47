//! The command `doctor`: looks at a hub's place, by the flags of `serve`, and says what is wrong and what to do.
//!
//! * [`judge`]: says what is wrong; pure. [`rights`]: what a hub needs in its own cluster. `see.rs`: looks.
//!
//! It changes nothing. The log of a hub that runs is left alone.

pub mod judge;
pub mod rights;
mod see;

use std::process::ExitCode;

use kube::Client;
use prometheus_client::registry::Registry;
use shared::{
    api::names::{MULTICLUSTER_GROUP, TRIBUTARY_NAMESPACE},
    doctor::{
        Check, Report, ask, look,
        own::{Wanted, own},
        report::{EXIT_FAULT, EXIT_UNSEEN},
        rights::rights as judged_rights,
    },
    model::{Clusterset, advice},
    process::{FileError, LogArgs, Threads, block_on, own_namespace},
    tls::{Credentials, install_crypto_provider},
};

use crate::{
    args::{DoctorArgs, JoinArgs, ServeArgs, SetArgs},
    certs::MemberIssuer,
    profile::{self, ProfileMetrics},
    run::{self, memory},
};
use judge::LogSeen;

/// The placeholder for the inventory's namespace in [`rights::NEEDED`].
const INVENTORY: &str = "tributary-default";
/// Next step if rights are missing.
const RIGHTS_FIX: &str =
    "apply the roles of deploy/manifests/hub, or of the chart, in the version of this hub";

/// Runs `doctor` and says with what the process ends.
pub fn run(log: &LogArgs, args: &DoctorArgs) -> ExitCode {
    let mut code = EXIT_UNSEEN;
    let looked = log.init().map_err(anyhow::Error::from).and_then(|()| {
        install_crypto_provider()?;
        block_on(Threads::One, async {
            let (mut worst, sets) = (0, sets(&args.serve)?);
            for set in &sets {
                let report = examine(&args.serve, set).await;
                if sets.len() > 1 {
                    eprintln!("{}:", set.data.display());
                }
                print!("{}", args.output.print(&report));
                worst = worse(worst, report.exit_code());
            }
            code = worst;
            Ok(())
        })
    });
    if let Err(error) = looked {
        eprintln!("Error: {error:#}");
    }
    ExitCode::from(code)
}

/// The one clusterset of the flags, or those of a file.
fn sets(args: &ServeArgs) -> anyhow::Result<Vec<SetArgs>> {
    match (&args.set.0, &args.clustersets) {
        (Some(set), _) => Ok(vec![set.clone()]),
        (None, Some(file)) => Ok(run::sets(file, args.admin)?),
        (None, None) => Ok(Vec::new()),
    }
}

/// A fault is worse than what could not be looked at, and that is worse than nothing.
fn worse(one: u8, other: u8) -> u8 {
    match (one, other) {
        (EXIT_FAULT, _) | (_, EXIT_FAULT) => EXIT_FAULT,
        (one, other) => one.max(other),
    }
}

/// Looks at everything of one clusterset.
pub async fn examine(args: &ServeArgs, set: &SetArgs) -> Report {
    let mut report = Report::default();
    let (files, credentials) = look::own(&set.tls);
    let wanted = Wanted {
        role: "hub",
        name: None,
        issue: advice::certs_hub("DIR"),
    };
    report.extend(own(&files, &wanted, look::now(), false));
    report.extend(joining(&set.join, credentials.as_ref()));
    let data = see::data(&set.data);
    let runs = data.log == LogSeen::InUse;
    report.extend(judge::data(&data, (args.disk.disk_alarm, args.disk.disk_reserve)));
    let (state, limit) = (args.state.state_memory, memory::limit());
    report.extend([judge::memory(state, limit, memory::too_much(state, limit))]);
    let mut ports = vec![
        see::port("--listen", set.listen).await,
        see::port("--admin", args.admin).await,
    ];
    if let Some(address) = set.join.join_listen {
        ports.push(see::port("--join-listen", address).await);
    }
    if let Some(address) = args.webhook.topology_webhook {
        ports.push(see::port("--topology-webhook", address).await);
    }
    report.extend(judge::ports(&ports, runs));
    if runs {
        report.extend([
            judge::ready(&see::admin(args.admin, "/readyz").await),
            judge::state(&see::admin(args.admin, "/metrics").await),
        ]);
    }
    let clusterset = credentials.map(|credentials| credentials.facts().identity.clusterset.clone());
    report.extend(inventory(args, set, clusterset.as_ref()).await);
    report
}

fn joining(args: &JoinArgs, credentials: Option<&Credentials>) -> Option<Check> {
    let (cert, key) = (args.join_cert.as_ref()?, args.join_key.as_ref()?);
    let clusterset = &credentials?.facts().identity.clusterset;
    let read = |flag: &str, path: &std::path::Path| {
        std::fs::read_to_string(path).map_err(|error| FileError::new(flag, path, &error).to_string())
    };
    let validity = read("--join-cert", cert).and_then(|cert| {
        let key = read("--join-key", key)?;
        let issuer = MemberIssuer::from_pem(&cert, &key, clusterset).map_err(|error| error.to_string())?;
        let validity = issuer.validity();
        Ok((validity.not_before, validity.not_after))
    });
    Some(judge::joining(&validity, look::now()))
}

async fn inventory(args: &ServeArgs, set: &SetArgs, clusterset: Option<&Clusterset>) -> Vec<Check> {
    let name = "inventory";
    let metrics = ProfileMetrics::register(&mut Registry::default());
    match profile::client(args.kubeconfig.as_deref(), &metrics).await {
        Ok(None) => vec![Check::skipped(
            name,
            "no --kubeconfig and no service account: profiles over gRPC only",
        )],
        Ok(Some(client)) => inventory_of(set, clusterset, &client).await,
        Err(error) => {
            let fix = "correct --kubeconfig, or leave it out: profiles are then shown over gRPC only";
            vec![Check::fault(name, format!("{error:#}"), fix)]
        }
    }
}

async fn inventory_of(set: &SetArgs, clusterset: Option<&Clusterset>, client: &Client) -> Vec<Check> {
    let named = set.inventory_namespace.clone();
    let namespace = named.or_else(|| clusterset.map(profile::default_namespace));
    let (Some(namespace), Some(clusterset)) = (namespace, clusterset) else {
        return vec![Check::skipped(
            "inventory",
            "without a certificate the clusterset is not known",
        )];
    };
    let served = ask::served(client, &[MULTICLUSTER_GROUP]).await;
    if let Err(why) = &served {
        let fix = "see that the API server is there and takes these credentials";
        return vec![Check::unseen("inventory", why.clone(), fix)];
    }
    let own = own_namespace();
    let needed = rights::NEEDED.iter().flat_map(|rights| {
        let inventory = rights.namespace == INVENTORY;
        rights.each(if inventory {
            (INVENTORY, &*namespace)
        } else {
            (TRIBUTARY_NAMESPACE, &*own)
        })
    });
    let answered = ask::rights(client, needed.collect()).await;
    vec![
        judge::definition(&served),
        judge::namespace(
            &see::namespace(client, &namespace).await,
            &namespace,
            clusterset.name(),
        ),
        judged_rights(&answered, RIGHTS_FIX),
    ]
}

#[cfg(test)]
mod tests;

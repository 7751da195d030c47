//! Owns: `cargo control-plane permissions`: takes each right of the table away, one at a time, and wants to see the
//! scenario that the table names fail because of it.
//! Never: takes two away at once, or believes a failure that the API server did not cause.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, DeleteParams};

use super::scenario::{self, DEADLINE, Played, Scenario};
use cluster::{
    real::{Fleet, Options, Request, ServiceFamilies},
    rights::{Account, Right, Table},
};

/// The one cluster.
const CLUSTER: &str = "permissions";
/// Roles that Kubernetes gives every known user, and that some clusters remove: there the charts' own rules for paths
/// are all that the programs have.
const GIVEN_TO_EVERYBODY: [&str; 2] = ["system:discovery", "system:public-info-viewer"];
/// Longest part of an error that a line shows.
const SHOWN_CHARS: usize = 160;

/// The command's arguments.
#[derive(Debug, Clone)]
pub struct Told {
    /// Only rights whose line holds one of these; all if there is none.
    pub only: Vec<String>,
    /// Print the rights and their scenarios, and take nothing away.
    pub list: bool,
    /// Time for anything in a scenario that lacks a right.
    pub deadline: Duration,
}

/// A right, and what fails without it.
struct Row {
    right: Right,
    why: String,
    red: Scenario,
}

/// Runs the command; an error says which rights nobody misses.
pub fn run(told: &Told) -> anyhow::Result<()> {
    let rows = rows(told)?;
    if told.list {
        for Row { right, why, red } in &rows {
            println!("{right}: {why} ({})", red.name);
        }
        return Ok(());
    }
    shared::tls::install_crypto_provider()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(take_each_away(&rows, told.deadline))
}

fn rows(told: &Told) -> anyhow::Result<Vec<Row>> {
    let (table, mut rows) = (Table::read()?, Vec::new());
    for account in Account::ALL {
        for (right, line) in table.rights(account) {
            let shown = right.to_string();
            let only = &told.only;
            if only.is_empty() || only.iter().any(|text| shown.contains(&**text)) {
                let red = scenario::named(&line.red);
                let red = red.with_context(|| format!("{shown}: there is no scenario {}", line.red))?;
                let why = line.why.clone();
                rows.push(Row { right, why, red });
            }
        }
    }
    ensure!(
        !rows.is_empty(),
        "no right is shown with {}; `--list` shows them",
        told.only.join(" or ")
    );
    Ok(rows)
}

async fn take_each_away(rows: &[Row], deadline: Duration) -> anyhow::Result<()> {
    let options = Options {
        service_families: ServiceFamilies::DualStack,
        ..Options::default()
    };
    let fleet = Arc::new(Fleet::start(&[CLUSTER], options).await?);
    let bindings: Api<ClusterRoleBinding> = Api::all(fleet.clusters()[0].client().await?);
    for name in GIVEN_TO_EVERYBODY {
        bindings.delete(name, &DeleteParams::default()).await?;
    }
    let began = Instant::now();
    let needed: BTreeSet<&str> = rows.iter().map(|row| row.red.name).collect();
    for scenario in scenario::ALL.iter().filter(|one| needed.contains(one.name)) {
        let played = scenario.play(&fleet, DEADLINE, None).await?;
        let requests = played.asked.requests;
        played
            .green()
            .with_context(|| format!("{} fails though no right is taken away", scenario.name))?;
        println!(
            "green with every right: {} (0 of {requests} requests denied)",
            scenario.name
        );
    }
    let mut green = Vec::new();
    for row in rows {
        let played = row.red.play(&fleet, deadline, Some(&row.right)).await?;
        match missed(&row.right, row.red, &played) {
            Ok(words) => println!("red as it should be: {}: {words}", row.right),
            Err(error) => {
                println!("STAYS GREEN: {}: {error:#}", row.right);
                green.push(row.right.to_string());
            }
        }
        fleet.check()?;
    }
    let (count, minutes) = (rows.len(), began.elapsed().as_secs_f64() / 60.0);
    println!(
        "{} of {count} rights are missed when they are taken away; {minutes:.1} minutes",
        count - green.len()
    );
    if !green.is_empty() {
        bail!(
            "nobody misses {}: take it out of deploy/charts, or name what does",
            green.join(", ")
        );
    }
    Ok(())
}

/// Checks a scenario without a right; an error if it is not red, or not because of this right.
pub fn missed(right: &Right, red: Scenario, played: &Played) -> anyhow::Result<String> {
    let denied = played.asked.denied_for_want_of(right);
    let own = played.result.as_ref().err().map(|error| format!("{error:#}"));
    let Some(first) = denied.first() else {
        match own {
            Some(own) => bail!(
                "{} failed, but nothing was denied for want of it: {own}",
                red.name
            ),
            None => bail!("{} is green, and nothing was denied", red.name),
        }
    };
    let others = played.asked.denied.len() - denied.len();
    ensure!(
        others == 0,
        "{others} other requests were denied: {}",
        words(&played.asked.denied)
    );
    let request = first.to_string();
    let led_to = match own {
        Some(own) => format!("{} says {}", red.name, shown(&own)),
        None => format!("{} fails for that alone", red.name),
    };
    Ok(format!(
        "{} denied ({}), and {led_to}",
        denied.len(),
        shown(if first.refusal.is_empty() {
            &request
        } else {
            &first.refusal
        })
    ))
}

fn words(requests: &[Request]) -> String {
    let words: Vec<String> = requests.iter().map(ToString::to_string).collect();
    words.join(", ")
}

/// The beginning of an error, on one line.
fn shown(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::rights::denied::Asked;

    /// Red is only what the API server caused, by denying this and nothing else.
    #[test]
    fn a_failure_without_the_denial_is_not_red() {
        let table = Table::read().expect("a table");
        let mut rights = table.rights(Account::Agent).map(|(right, _)| right);
        let right = rights.find(|right| right.verb == "delete" && right.resource == "services");
        let right = right.expect("the agent deletes Services");
        let judged = |result: anyhow::Result<()>, denied: &[&str]| {
            let denied = denied.iter().map(|resource| {
                let user = Account::Agent.user();
                let mut request = Request::sample(&user, "delete", resource, "shop", "cart");
                request.code = 403;
                request
            });
            let asked = Asked {
                requests: 9,
                denied: denied.collect(),
            };
            missed(&right, scenario::ALL[0], &Played { result, asked }).is_ok()
        };
        let failed = || Err(anyhow::anyhow!("not after 5 s"));
        assert!(judged(failed(), &["services"]) && judged(Ok(()), &["services", "services"]));
        assert!(!judged(failed(), &[]) && !judged(Ok(()), &[]));
        assert!(!judged(failed(), &["services", "events"]) && !judged(failed(), &["events"]));
    }
}

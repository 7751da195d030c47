//! Owns: the proof that the charts' accounts have the rights of the one table, need each, and are denied nothing.
//! Never: lists rights; `e2e/fixtures/permissions.yaml` does.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use cluster::deploy;
use cluster::real::Fleet;
use cluster::rights::{Account, Line, Right, Table, ask, roles};
use libtest_mimic::Trial;
use tributary_e2e::permissions::red;
use tributary_e2e::permissions::scenario::{self, DEADLINE, Scenario};
use tributary_e2e::suite::{plain_test, real_test, real_test_with_denials};

/// Time of the scenario that lacks a right here.
const WITHOUT_A_RIGHT: Duration = Duration::from_secs(3);

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        plain_test("permissions::are_the_rules_of_the_charts", rules_of_the_charts),
        plain_test("permissions::are_what_the_doctors_ask_for", doctors_ask),
        plain_test("permissions::say_why_and_name_their_scenario", lines_are_whole),
        real_test("real::permissions::of_the_agent_are_what_it_needs", |fleet| {
            granted(fleet, Account::Agent)
        }),
        real_test("real::permissions::of_the_hub_are_what_it_needs", |fleet| {
            granted(fleet, Account::Hub)
        }),
        real_test_with_denials("real::permissions::one_that_is_missing_is_noticed", missing),
    ];
    for one in scenario::ALL {
        let name = format!("real::permissions::{}", one.name);
        trials.push(real_test(&name, move |fleet| played(fleet, one)));
    }
    trials
}

/// The doctors ask for the rights of the table, and for no others.
fn doctors_ask() -> anyhow::Result<()> {
    let table = Table::read()?;
    for (account, needed) in [
        (Account::Agent, &agent::doctor::rights::NEEDED[..]),
        (Account::Hub, &hub::doctor::rights::NEEDED[..]),
    ] {
        let asked: BTreeSet<Right> = needed
            .iter()
            .flat_map(|rights| rights.each(("", "")))
            .map(|right| Right {
                account,
                namespace: right.namespace,
                group: right.of.group.to_owned(),
                resource: right.of.resource.to_owned(),
                name: right.of.name.to_owned(),
                path: right.of.path.to_owned(),
                verb: right.verb.to_owned(),
            })
            .collect();
        let listed: BTreeSet<Right> = table.rights(account).map(|(right, _)| right).collect();
        let apart: Vec<String> = asked
            .symmetric_difference(&listed)
            .map(ToString::to_string)
            .collect();
        ensure!(
            apart.is_empty(),
            "{}/src/doctor/rights.rs and e2e/fixtures/permissions.yaml differ in {}",
            account.chart(),
            apart.join(", ")
        );
    }
    Ok(())
}

/// In both directions: a rule that the table lacks, and a line that no chart grants.
fn rules_of_the_charts() -> anyhow::Result<()> {
    let table = Table::read()?;
    for account in Account::ALL {
        let listed: BTreeSet<Right> = table.rights(account).map(|(right, _)| right).collect();
        let held = roles::rights(account, &roles::of(account)?)?;
        let shown = |rights: BTreeSet<&Right>| {
            let words: Vec<String> = rights.iter().map(ToString::to_string).collect();
            words.join(", ")
        };
        let unlisted = shown(held.difference(&listed).collect());
        ensure!(
            unlisted.is_empty(),
            "granted by deploy/charts/{}, and no line of e2e/fixtures/permissions.yaml: {unlisted}",
            account.chart()
        );
        let unheld = shown(listed.difference(&held).collect());
        ensure!(
            unheld.is_empty(),
            "a line of e2e/fixtures/permissions.yaml, and not granted by deploy/charts/{}: {unheld}",
            account.chart()
        );
    }
    Ok(())
}

fn lines_are_whole() -> anyhow::Result<()> {
    let table = Table::read()?;
    let (mut seen, mut named) = (BTreeSet::new(), BTreeSet::new());
    for line in &table.may {
        let shown = shown(line);
        ensure!(!line.why.is_empty(), "{shown}: say why it is needed");
        let red = scenario::named(&line.red);
        named.insert(
            red.with_context(|| format!("{shown}: there is no scenario {:?}", line.red))?
                .name,
        );
        for right in line.rights() {
            ensure!(seen.insert(right.clone()), "{right} is listed twice");
        }
    }
    for line in &table.may_not {
        let shown = shown(line);
        ensure!(
            line.why.is_empty() && line.red.is_empty(),
            "{shown}: nothing needs what must not be"
        );
        for right in line.rights() {
            ensure!(!seen.contains(&right), "{right} is needed and must not be");
        }
    }
    let idle = scenario::ALL.iter().find(|one| !named.contains(one.name));
    ensure!(
        idle.is_none(),
        "no line names the scenario {:?}",
        idle.map(|one| one.name)
    );
    Ok(())
}

fn shown(line: &Line) -> String {
    let rights: Vec<String> = line.rights().map(|right| right.to_string()).collect();
    rights.join(", ")
}

/// An API server says the same as the table.
async fn granted(fleet: Arc<Fleet>, account: Account) -> anyhow::Result<()> {
    let cluster = &fleet.clusters()[0];
    deploy::install(&cluster.client().await?, &deploy::DIRECTORIES).await?;
    ask::until_all(cluster, account, None).await?;
    let (client, table) = (account.in_cluster(cluster)?.client().await?, Table::read()?);
    let mut asked = 0;
    for right in table.denials(account) {
        ensure!(!ask::allowed(&client, &right).await?, "too much: {right}");
        asked += 1;
    }
    ensure!(
        asked > 0,
        "the table does not say what the {} must not do",
        account.chart()
    );
    Ok(())
}

/// With every right.
async fn played(fleet: Arc<Fleet>, scenario: Scenario) -> anyhow::Result<()> {
    scenario.play(&fleet, DEADLINE, None).await?.green()
}

/// One right of all that `cargo control-plane permissions` takes away: its scenario fails, for want of it, and says so.
async fn missing(fleet: Arc<Fleet>) -> anyhow::Result<()> {
    let table = Table::read()?;
    let (right, line) = table
        .rights(Account::Agent)
        .find(|(right, _)| right.verb == "delete" && right.resource == "services")
        .context("the agent deletes Services")?;
    let red = scenario::named(&line.red).context("its scenario")?;
    let played = red.play(&fleet, WITHOUT_A_RIGHT, Some(&right)).await?;
    red::missed(&right, red, &played)?;
    let error = played.green().err().context("it is green")?.to_string();
    for part in ["delete services", "cannot delete resource", "permissions.yaml"] {
        ensure!(error.contains(part), "it does not say {part:?}: {error}");
    }
    // Nothing of that is left.
    ask::until_all(&fleet.clusters()[0], Account::Agent, None).await
}

//! Several clustersets in one hub process (docs/guides/several-clustersets.md): what each knows, what ends one alone, and what a further one costs.

use std::{ffi::OsString, fmt::Write, fs, net::SocketAddr, path::Path};

use anyhow::{Context, ensure};
use cluster::{
    clusterset::{Backend, DISK_RESERVE_FLAG, LocalClusterset, Program, Role, admin, eventually::eventually},
    member::{self, Member, hello},
};
use proto::v1;
use serde_json::Value;

use super::{
    disk,
    facts::{encoded, slice},
    hub::{events, listed, said, state},
    shop::Shop,
};

/// Memory that a further empty clusterset may take, in KiB.
const FURTHER_MAX: u64 = 12 * 1024;
/// Clustersets of the hub that is compared with one of a single one.
const MANY: usize = 5;

/// Some clustersets and the one process that serves them.
struct Several {
    dir: tempfile::TempDir,
    sets: Vec<LocalClusterset>,
}

impl Several {
    /// Clustersets with these names and a cluster `east` each, which nobody serves yet.
    async fn named(names: &[&str]) -> anyhow::Result<Self> {
        Self::on(&Backend::Simulated, names).await
    }

    async fn on(backend: &Backend, names: &[&str]) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut sets = Vec::new();
        for (taken, name) in names.iter().enumerate() {
            let below = dir.path().join(name);
            let set = LocalClusterset::without_hub_beside(&below, backend, &["east"], (name, taken));
            sets.push(set.await?);
        }
        Ok(Self { dir, sets })
    }

    fn log(&self) -> std::path::PathBuf {
        self.dir.path().join("hub.log")
    }

    /// The file of all of them; each keeps the port that it was given before.
    fn file(&self) -> anyhow::Result<String> {
        let mut text = String::from("clustersets:\n");
        for set in &self.sets {
            let at = |file: &str| set.certificate(file).display().to_string();
            writeln!(text, "- name: {}", set.name)?;
            writeln!(text, "  data: {}", set.data().display())?;
            writeln!(text, "  listen: {}", set.hub_address)?;
            let (ca, cert, key) = (at("ca.crt"), at("hub.crt"), at("hub.key"));
            writeln!(text, "  tls: {{ca: {ca}, cert: {cert}, key: {key}}}")?;
        }
        Ok(text)
    }

    /// Starts the hub with this file, under other programs if there are any, and waits for nothing.
    fn spawn(&self, wrapper: &[OsString], file: &str) -> anyhow::Result<Program> {
        let path = self.dir.path().join("clustersets.yaml");
        fs::write(&path, file)?;
        let mut arguments: Vec<OsString> = vec!["serve".into(), "--clustersets".into(), path.into()];
        arguments.extend(["--admin", "127.0.0.1:0", DISK_RESERVE_FLAG, "0%"].map(Into::into));
        Program::start_under(wrapper, Role::Hub, arguments, &self.log())
    }

    /// Starts the hub and waits until it serves all of them.
    async fn start(&mut self, wrapper: &[OsString]) -> anyhow::Result<Program> {
        // An older process said the same.
        let _ = fs::remove_file(self.log());
        let mut hub = self.spawn(wrapper, &self.file()?)?;
        ready(&mut hub).await?;
        for set in &mut self.sets {
            set.hub_address = address(&self.dir.path().join("hub.log"), set).await?;
        }
        Ok(hub)
    }
}

/// Waits until the process can be used; its admin port.
async fn ready(hub: &mut Program) -> anyhow::Result<SocketAddr> {
    let admin = hub.admin().await?;
    eventually("the hub is ready", async || {
        Ok((admin::get(admin, "/readyz").await?.0 == 200).then_some(admin))
    })
    .await
}

/// The hub's address of a clusterset, from its log.
async fn address(log: &Path, set: &LocalClusterset) -> anyhow::Result<SocketAddr> {
    let of_it = format!("/clusterset/{}/hub/", set.name);
    eventually("it says where it serves", async || {
        let text = fs::read_to_string(log)?;
        let lines = text
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut served = lines.filter(|line| {
            let identity = line["identity"].as_str();
            line["message"] == "serving" && identity.is_some_and(|identity| identity.contains(&of_it))
        });
        let address = served
            .next()
            .and_then(|line| line["address"].as_str()?.parse().ok());
        Ok(address)
    })
    .await
}

async fn told(admin: SocketAddr) -> anyhow::Result<(u16, String)> {
    admin::get(admin, "/readyz").await
}

/// A metric of one of the clustersets.
async fn of_set(admin: SocketAddr, name: &str, metric: &str) -> anyhow::Result<f64> {
    admin::metric_at(admin, metric, &format!("clusterset=\"{name}\"")).await
}

/// Resident memory of a process, in KiB.
fn memory(program: &Program) -> anyhow::Result<u64> {
    let id = program.id().context("it runs")?;
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmRSS")?.parse()?)
}

/// Members of each see and are shown their own, its operator is refused by the other, and so are its policy and its log.
pub(super) async fn two_clustersets_know_nothing_of_each_other(backend: Backend) -> anyhow::Result<()> {
    let mut several = Several::on(&backend, &["shops", "labs"]).await?;
    let mut hub = several.start(&[]).await?;
    let admin = hub.admin().await?;
    let (status, text) = told(admin).await?;
    ensure!(status == 200 && text == "ok\nlabs: ok\nshops: ok\n", "{text}");
    for set in &mut several.sets {
        set.start_agent("east").await?;
        listed(set, &["east"]).await?;
    }
    let [shops, labs] = &several.sets[..] else {
        unreachable!("two")
    };
    let mut shop = Shop::open(shops).await?;
    shop.export(shops, "east", "cart", &["10.1.0.1"]).await?;
    shop.arrived(shops).await?;
    let (here, there) = (state(shops).await?, state(labs).await?);
    // Shared clusters may still export what another story left.
    let ours = |of: &v1::GetStateResponse, shop: &Shop| {
        let services = of
            .exports
            .iter()
            .filter_map(|one| one.export.as_ref()?.service.as_ref());
        services
            .filter(|service| service.namespace == shop.namespace)
            .count()
    };
    ensure!(ours(&here, &shop) == 1 && here.members.len() == 1, "{here:?}");
    ensure!(ours(&there, &shop) == 0 && there.members.len() == 1, "{there:?}");
    ensure!(here.epoch != there.epoch, "each has a log of its own");

    // An operator, and a member, of the other one get no further than the handshake.
    for name in ["operator", "east"] {
        let of_shops = format!("{name}-of-shops");
        for kind in ["crt", "key"] {
            let to = labs.certificate(&format!("{of_shops}.{kind}"));
            fs::copy(shops.certificate(&format!("{name}.{kind}")), to)?;
        }
        member::try_handshake(labs, Some(name)).await??;
        let refused = member::try_handshake(labs, Some(&of_shops)).await?;
        ensure!(refused.is_err(), "the hub of labs took {of_shops}");
    }

    let before = events(labs).await?.len();
    shops
        .apply_policy(
            "apiVersion: tributary.dev/v1alpha1\nkind: ClustersetPolicy\nspec:\n  members:\n  \
             - {name: nobody, members: [\"*\"], exports: []}\n",
        )
        .await?;
    let mut labs_shop = Shop::open(labs).await?;
    labs_shop.export(labs, "east", "cart", &["10.2.0.1"]).await?;
    labs_shop.arrived(labs).await?;
    ensure!(
        events(labs).await?[before..]
            .iter()
            .all(|event| event.kind != "policy_applied"),
        "a policy of shops in the log of labs"
    );
    for (name, refused) in [("shops", 1.0), ("labs", 0.0)] {
        eventually("each counts its own", async || {
            let counted = of_set(admin, name, "tributary_hub_exports_refused").await?;
            let own = if refused > 0.0 {
                counted >= refused
            } else {
                counted == 0.0
            };
            Ok(own.then_some(()))
        })
        .await?;
    }
    let (_, metrics) = admin::get(admin, "/metrics").await?;
    let family = "# TYPE tributary_hub_sessions gauge";
    ensure!(metrics.matches(family).count() == 1, "a family is there twice");

    // Both come back from their own logs.
    hub.stop().await?;
    let hub = several.start(&[]).await?;
    for set in &several.sets {
        listed(set, &["east"]).await?;
    }
    ensure!(
        ours(&state(&several.sets[1]).await?, &labs_shop) == 1,
        "labs kept its own"
    );
    shop.close(&several.sets[0]).await?;
    labs_shop.close(&several.sets[1]).await?;
    for set in several.sets {
        set.end().await?;
    }
    hub.stop().await
}

/// The log of one cannot grow: it ends, is shown as ended and its port closes; the other goes on to record and answer.
pub(super) async fn a_failed_append_ends_one_clusterset_alone() -> anyhow::Result<()> {
    let mut several = Several::named(&["shops", "labs"]).await?;
    let mut hub = several.start(&disk::limited()).await?;
    let [shops, labs] = &several.sets[..] else {
        unreachable!("two")
    };
    let admin = hub.admin().await?;
    let mut member = Member::open(labs, "east", hello("uid-of-east")).await?;
    let acknowledged = disk::fill(shops, "east").await?;
    eventually("it is shown as ended", async || {
        let (_, text) = told(admin).await?;
        Ok(text.contains("shops: ended: ").then_some(()))
    })
    .await?;
    let (status, text) = told(admin).await?;
    ensure!(
        status == 200 && text.starts_with("ok\nlabs: ok\n"),
        "{status}: {text}"
    );
    for (name, served) in [("shops", 0.0), ("labs", 1.0)] {
        let metric = of_set(admin, name, "tributary_hub_clusterset_serving").await?;
        ensure!(metric == served, "{name}: {metric}");
    }
    let line = said(&several.log(), "this clusterset has ended").await?;
    for word in ["event log", "ERROR", "shops"] {
        ensure!(line.contains(word), "nothing of {word}: {line}");
    }
    eventually("its port is closed", async || {
        Ok(member::connect(shops, "operator").await.is_err().then_some(()))
    })
    .await?;

    let fact = encoded(v1::fact::Fact::EndpointSliceUpserted(slice(
        "shop",
        "cart",
        &["10.1.0.1"],
    )));
    member.report([fact]).await?;
    member.settled().await?;
    ensure!(member.acknowledged > 0, "labs goes on to record");
    ensure!(hub.is_running());
    hub.stop().await.context("what is left drains")?;

    let hub = several
        .start(&[])
        .await
        .context("with room again all are served")?;
    let kept = events(&several.sets[0]).await?;
    let last = kept.iter().map(|event| event.member_sequence).max().unwrap_or(0);
    ensure!(last >= acknowledged, "acknowledged {acknowledged}, kept {last}");
    hub.stop().await
}

/// A log of another clusterset is where one should be: the others are served, and when none is left the process ends.
pub(super) async fn a_log_that_cannot_be_opened_ends_one_clusterset_alone() -> anyhow::Result<()> {
    let mut several = Several::named(&["shops", "labs"]).await?;
    several.start(&[]).await?.stop().await?;
    fs::remove_dir_all(several.sets[0].data())?;
    fs::rename(several.sets[1].data(), several.sets[0].data())?;
    let mut hub = several.spawn(&[], &several.file()?)?;
    let admin = ready(&mut hub).await?;
    let (_, text) = told(admin).await?;
    ensure!(
        text.contains("labs: ok") && text.contains("shops: ended: "),
        "{text}"
    );
    ensure!(events(&several.sets[1]).await.is_ok(), "labs is served");
    hub.stop().await?;

    // Labs has a log of nobody, too: none is left.
    several.sets.truncate(1);
    let (status, tail) = several.spawn(&[], &several.file()?)?.ended().await?;
    ensure!(status.code() == Some(1), "{status}");
    ensure!(tail.contains("every clusterset has ended"), "{tail}");
    Ok(())
}

/// A certificate of another clusterset, a taken port: nothing of the file is served, and one line says which and what.
pub(super) async fn what_is_wrong_with_one_is_said_before_any_is_served() -> anyhow::Result<()> {
    let several = Several::named(&["shops", "labs"]).await?;
    let file = several.file()?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let free = format!("listen: {}", several.sets[0].hub_address);
    let port = format!("listen: {}", taken.local_addr()?);
    let crossed = file.replace("- name: labs", "- name: toys");
    for (wrong, told) in [
        (
            crossed,
            ["clusterset toys of --clustersets", "names clusterset labs"],
        ),
        (
            file.replacen(&free, &port, 1),
            ["clusterset shops of --clustersets", "cannot listen on"],
        ),
        (
            file.replace("- name: labs", "- name: shops"),
            ["clustersets[1]", "name"],
        ),
    ] {
        let (status, tail) = several.spawn(&[], &wrong)?.ended().await?;
        ensure!(status.code() == Some(1), "{status}: {tail}");
        let last = tail.lines().last().unwrap_or_default();
        ensure!(told.iter().all(|told| last.contains(told)), "{told:?}: {last}");
        ensure!(
            !several.sets.iter().any(|set| set.data().exists()),
            "a log was made"
        );
    }
    Ok(())
}

/// Memory of a hub with one clusterset and with five, all of them empty.
pub(super) async fn a_further_empty_clusterset_costs_little() -> anyhow::Result<()> {
    let names: Vec<String> = (0..MANY).map(|number| format!("set-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut resident = Vec::new();
    for count in [1, MANY] {
        let mut several = Several::named(&names[..count]).await?;
        let hub = several.start(&[]).await?;
        // Each is asked once, as a probe or a person would.
        for set in &several.sets {
            ensure!(state(set).await?.members.is_empty());
        }
        resident.push(memory(&hub)?);
        hub.stop().await?;
    }
    let [one, many] = resident[..] else {
        unreachable!("two figures")
    };
    let each = many.saturating_sub(one) / (MANY as u64 - 1);
    println!("one clusterset: {one} KiB; {MANY}: {many} KiB; a further one: {each} KiB");
    ensure!(
        each <= FURTHER_MAX,
        "a further clusterset takes {each} KiB of {FURTHER_MAX}"
    );
    Ok(())
}

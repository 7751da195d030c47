//! Owns: `tributary init`, `join`, `leave` and `uninstall` on real API servers and with the user's Helm: killed after every
//! step and run again, they end where one run would.
//! Never: runs a pod; hub and agent run beside, with the Secrets and the arguments that the charts made.

use std::{
    ffi::OsString,
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use clap::Parser;
use cli::{
    command::{Cli, Command},
    setup::{Surroundings, run_in},
};
use cluster::{
    clusterset::{LocalClusterset, Program, Role, eventually::eventually, questions},
    real::{Cluster, Fleet, helm::Helm},
    rights::{Account, ask},
};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Secret},
};
use kube::{Api, api::PostParams};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tributary_e2e::suite::test_with_own_clusters;

use crate::{charts::fresh, join};

/// Helm is called for every run.
const LIMIT: Duration = Duration::from_secs(300);
const NAMESPACE: &str = "tributary-system";
/// The steps of `join`, in their order.
const STEPS: [&str; 6] = ["remember", "namespace", "definitions", "token", "agent", "dns"];
/// The steps of `init`, in their order.
const INIT_STEPS: [&str; 10] = [
    "authority",
    "joining-authority",
    "hub-certificate",
    "operator-certificate",
    "namespace",
    "definitions",
    "hub-secret",
    "joining-secret",
    "hub",
    "address",
];
/// The Corefile of kubeadm.
const COREFILE: &str = ".:53 {\n    errors\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n        pods insecure\n    }\n    \
    forward . /etc/resolv.conf\n    reload\n}\n";

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test_with_own_clusters(
            "real::setup::join_and_leave_continue_after_every_step",
            LIMIT,
            join_and_leave,
        ),
        test_with_own_clusters(
            "real::setup::init_continues_after_every_step",
            LIMIT,
            init_and_uninstall,
        ),
    ]
}

async fn join_and_leave() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut stage = Stage::set(dir.path()).await?;
    stage.is_refused().await?;
    stage.joins().await?;
    stage.leaves().await?;
    stage.clusterset.end().await
}

/// Killed after every step; then the hub starts, with what the Secrets have.
async fn init_and_uninstall() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let fleet = fresh(&["hub"]).await?;
    let cluster = &fleet.clusters()[0];
    let person = Person::new(dir.path(), cluster)?;
    let address = unused()?;
    let (given, first) = (address.to_string(), ["init", "--context", "hub", "--address"]);
    let words = [&first[..], &[&given, "--service-type", "ClusterIP"]].concat();
    person.is_killed_after(&words, &INIT_STEPS).await?;
    let mut hub = hub(dir.path(), cluster, address).await?;
    hub.serving().await?;
    // What was given before counts.
    let again = ["init", "--context", "hub"];
    person.is_killed_after(&again, &["context"]).await?;
    let (said, carried_out) = person.types(&again, usize::MAX).await?;
    ensure!(
        said?.contains("nothing was to do") && carried_out.is_empty(),
        "{carried_out:?}"
    );
    let (home, away) = (dir.path().join("home/default"), dir.path().join("home/away"));
    fs::rename(&home, &away)?;
    person
        .is_refused(&words, "Copy that directory from the machine")
        .await?;
    ensure!(!home.join("ca.crt").exists(), "another authority was made");
    fs::rename(&away, &home)?;
    let (said, _) = person
        .types(&["uninstall", "--context", "hub"], usize::MAX)
        .await?;
    ensure!(said?.contains("is gone"), "another result");
    ensure!(home.join("ca.key").exists(), "the keys are gone");
    let namespaces: Api<Namespace> = Api::all(cluster.client().await?);
    ensure!(
        namespaces.get_opt(NAMESPACE).await?.is_none(),
        "the namespace is left"
    );
    hub.stop().await
}

/// The pod of the hub, with the Secrets that it would mount.
async fn hub(dir: &Path, cluster: &Cluster, address: SocketAddr) -> anyhow::Result<Program> {
    let secrets: Api<Secret> = Api::namespaced(cluster.client().await?, NAMESPACE);
    let mut arguments: Vec<OsString> = vec!["serve".into(), "--listen".into(), address.to_string().into()];
    arguments.extend(["--data".into(), dir.join("data").into()]);
    arguments.extend(["--admin", "127.0.0.1:0", "--join-listen", "127.0.0.1:0"].map(OsString::from));
    for (secret, keys) in [
        (
            "tributary-hub-tls",
            &[
                ("tls.crt", "--tls-cert"),
                ("tls.key", "--tls-key"),
                ("ca.crt", "--tls-ca"),
            ][..],
        ),
        (
            "tributary-hub-joining",
            &[("tls.crt", "--join-cert"), ("tls.key", "--join-key")],
        ),
    ] {
        let data = secrets.get(secret).await?.data.unwrap_or_default();
        for (key, flag) in keys {
            let path = dir.join(format!("{secret}.{key}"));
            fs::write(&path, &data.get(*key).context("a key")?.0)?;
            arguments.extend([flag.into(), path.into()]);
        }
    }
    Program::start(Role::Hub, arguments, &dir.join("hub.log"))
}

/// An address that nobody listens at.
fn unused() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Whoever types.
struct Person {
    /// The file of the contexts.
    config: PathBuf,
    helm: PathBuf,
    kubeconfig: PathBuf,
}

impl Person {
    fn new(dir: &Path, cluster: &Cluster) -> anyhow::Result<Self> {
        Ok(Self {
            config: dir.join("home/config.yaml"),
            helm: helm(dir)?,
            kubeconfig: cluster.kubeconfig_path().to_owned(),
        })
    }

    /// Types a line that is killed after every step, until these are done.
    async fn is_killed_after(&self, words: &[&str], steps: &[&str]) -> anyhow::Result<()> {
        for step in steps {
            let (said, carried_out) = self.types(words, 1).await?;
            let said = said.err().context("it is not killed")?.to_string();
            ensure!(
                said == "killed" && carried_out == [*step],
                "{carried_out:?} instead of {step}: {said}"
            );
        }
        Ok(())
    }

    /// Types a line that is refused, and changes nothing.
    async fn is_refused(&self, words: &[&str], why: &str) -> anyhow::Result<()> {
        let (said, carried_out) = self.types(words, usize::MAX).await?;
        let said = format!("{:#}", said.err().context("it is done")?);
        ensure!(said.contains(why) && carried_out.is_empty(), "{said}");
        Ok(())
    }

    /// Runs `tributary WORDS`, killed after so many steps; what it printed or said, and the steps that it carried out.
    async fn types(
        &self,
        words: &[&str],
        steps: usize,
    ) -> anyhow::Result<(anyhow::Result<String>, Vec<String>)> {
        self.types_as(&self.kubeconfig, words, steps).await
    }

    /// The same as the user of this kubeconfig.
    async fn types_as(
        &self,
        kubeconfig: &Path,
        words: &[&str],
        steps: usize,
    ) -> anyhow::Result<(anyhow::Result<String>, Vec<String>)> {
        let helm = self.helm.to_string_lossy();
        let kubeconfig = kubeconfig.to_string_lossy();
        let further = ["--kubeconfig", &kubeconfig, "--helm", &helm, "--timeout", "60s"];
        let line = ["tributary"].iter().chain(words).chain(&further);
        let Command::Setup(command) = Cli::try_parse_from(line)?.command else {
            bail!("another command");
        };
        let config = Some(self.config.clone());
        // As in its own process: it makes a runtime for itself.
        let ended = tokio::task::spawn_blocking(move || {
            let (told, heard) = std::sync::mpsc::channel();
            let mut left = steps;
            let after_step = move |step: &str| {
                told.send(step.to_owned())?;
                left = left.checked_sub(1).context("a step more")?;
                ensure!(left > 0, "killed");
                Ok(())
            };
            let surroundings = Surroundings {
                config,
                after_step: Some(Box::new(after_step)),
            };
            let said = cli::operate::run(run_in(command, surroundings));
            (said, heard.try_iter().collect::<Vec<String>>())
        });
        let (said, carried_out) = ended.await?;
        let shown = said.as_ref().map_err(|error| format!("{error:#}"));
        println!("$ tributary {}: {carried_out:?}, {shown:?}", words.join(" "));
        Ok((said, carried_out))
    }
}

/// A hub, a cluster that knows nothing of it, and a person.
struct Stage {
    clusterset: LocalClusterset,
    fleet: Fleet,
    person: Person,
    directory: PathBuf,
}

impl Stage {
    async fn set(dir: &Path) -> anyhow::Result<Self> {
        let fleet = fresh(&["west"]).await?;
        let mut clusterset = join::joinable(dir, &["hq"], &[]).await?;
        let door = clusterset.hub()?.joining().await?;
        let home = dir.join("home/default");
        fs::create_dir_all(&home)?;
        for (from, to) in [
            ("ca.crt", "ca.crt"),
            ("operator.crt", "e2e.crt"),
            ("operator.key", "e2e.key"),
        ] {
            fs::copy(clusterset.certificate(from), home.join(to))?;
        }
        let hub = format!("https://{}", clusterset.hub_address);
        let remembered =
            json!({"hub": {"hubs": [hub], "joins": [format!("https://{door}")], "operator": "e2e"}});
        fs::write(home.join("setup.json"), remembered.to_string())?;
        let corefile: ConfigMap = serde_json::from_value(json!({
            "metadata": {"name": "coredns"}, "data": {"Corefile": COREFILE},
        }))?;
        let client = fleet.clusters()[0].client().await?;
        let maps: Api<ConfigMap> = Api::namespaced(client, "kube-system");
        maps.create(&PostParams::default(), &corefile).await?;
        Ok(Self {
            person: Person::new(dir, &fleet.clusters()[0])?,
            clusterset,
            fleet,
            directory: dir.to_owned(),
        })
    }

    fn cluster(&self) -> &Cluster {
        &self.fleet.clusters()[0]
    }

    /// Nothing is written where a flag or the user's account is wrong.
    async fn is_refused(&self) -> anyhow::Result<()> {
        let nowhere = "the kubeconfig has no context nowhere; it has: west";
        let words = ["join", "west", "--context", "nowhere"];
        self.person.is_refused(&words, nowhere).await?;
        let charts = ["join", "west", "--context", "west", "--charts", "/nonexistent"];
        self.person.is_refused(&charts, "has no charts").await?;
        let bob = self.cluster().user("bob", None)?;
        let words = ["join", "west", "--context", "west"];
        let (said, _) = self
            .person
            .types_as(bob.kubeconfig_path(), &words, usize::MAX)
            .await?;
        let said = format!("{:#}", said.err().context("bob may")?);
        ensure!(
            said.contains("nothing was changed: the user of the context west may not create namespaces"),
            "{said}"
        );
        let namespaces: Api<Namespace> = Api::all(self.cluster().client().await?);
        ensure!(
            namespaces.get_opt(NAMESPACE).await?.is_none(),
            "the namespace was made"
        );
        Ok(())
    }

    /// Killed after every step; then the agent starts, as the Deployment says.
    async fn joins(&mut self) -> anyhow::Result<()> {
        let words = ["join", "west", "--context", "west", "--dns", "yes"];
        self.person.is_killed_after(&words, &STEPS).await?;
        let agent = self.agent("joined").await?;
        let (said, carried_out) = self.person.types(&words, 1).await?;
        ensure!(carried_out.is_empty(), "{carried_out:?} was left");
        ensure!(
            said?.contains("west was (nothing was to do) a member"),
            "another result"
        );
        questions::listed(&self.clusterset, &["west"]).await?;
        let events = questions::events(&self.clusterset).await?;
        let tokens = events
            .iter()
            .filter(|event| event.kind == "join_token_created")
            .count();
        ensure!(tokens == 1, "{tokens} tokens were made");
        self.has_zone(true).await?;
        let words = ["join", "north", "--context", "west"];
        let other = "has the certificate of west, not of north";
        self.person.is_refused(&words, other).await?;
        agent.stop().await
    }

    /// Killed after every step, and nothing is left of it but the definitions.
    async fn leaves(&mut self) -> anyhow::Result<()> {
        let mut runs = 0;
        let said = loop {
            let (said, carried_out) = self.person.types(&["leave", "west"], 1).await?;
            runs += 1;
            ensure!(runs < 20, "it does not come to an end");
            match said {
                // What is cleaned again is told again.
                Err(error) if error.to_string() == "killed" && carried_out != ["left"] => {}
                Err(error) if error.to_string() == "killed" => {
                    break self.person.types(&["leave", "west"], usize::MAX).await?.0?;
                }
                other => break other?,
            }
        };
        ensure!(said.contains("west is no member"), "{said}");
        eventually("the hub knows that west left", async || {
            let events = questions::events(&self.clusterset).await?;
            Ok(events
                .iter()
                .any(|event| event.kind == "member_left")
                .then_some(()))
        })
        .await?;
        let client = self.cluster().client().await?;
        let namespaces: Api<Namespace> = Api::all(client);
        ensure!(
            namespaces.get_opt(NAMESPACE).await?.is_none(),
            "the namespace is left"
        );
        self.has_zone(false).await
    }

    async fn has_zone(&self, has: bool) -> anyhow::Result<()> {
        let maps: Api<ConfigMap> = Api::namespaced(self.cluster().client().await?, "kube-system");
        let data = maps.get("coredns").await?.data.unwrap_or_default();
        let text = data.get("Corefile").context("a Corefile")?;
        ensure!(text.contains("clusterset.local") == has, "{text}");
        ensure!(has || text == COREFILE, "it is not as it was: {text}");
        Ok(())
    }

    /// The pod of the agent, as the Deployment that the chart made describes it.
    async fn agent(&self, log: &str) -> anyhow::Result<Program> {
        let cluster = self.cluster();
        let client = cluster.client().await?;
        ask::until_all(cluster, Account::Agent, None).await?;
        let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
        let secret = secrets.get("tributary-join").await?.data.unwrap_or_default();
        let join = secret.get("join").context("a join string")?;
        let files = self.directory.join("pod");
        fs::create_dir_all(&files)?;
        fs::write(files.join("join"), &join.0)?;
        let deployments: Api<Deployment> = Api::namespaced(client, NAMESPACE);
        let deployment: Value = serde_json::to_value(deployments.get("tributary-agent").await?)?;
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let given = container["args"].as_array().context("arguments")?;
        let place = files.to_string_lossy();
        let argument = |argument: &Value| {
            let argument = argument.as_str().unwrap_or_default();
            let argument = argument
                .replace("/etc/tributary/join", &place)
                .replace("/etc/tributary/tls", &place);
            OsString::from(argument.replace("0.0.0.0:9090", "127.0.0.1:0"))
        };
        let mut arguments: Vec<OsString> = given.iter().map(argument).collect();
        let account = Account::Agent.in_cluster(cluster)?;
        arguments.extend(["--pod-uid".into(), "pod-of-west".into(), "--kubeconfig".into()]);
        arguments.push(account.kubeconfig_path().into());
        Program::start(Role::Agent, arguments, &self.directory.join(format!("{log}.log")))
    }
}

/// Helm as a person has it, with a home of its own.
fn helm(dir: &Path) -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let program = dir.join("helm");
    let home = dir.join("helm-home");
    let home = home.display();
    let text = format!(
        "#!/bin/sh\nHELM_CACHE_HOME={home} HELM_CONFIG_HOME={home} HELM_DATA_HOME={home} exec {} \"$@\"\n",
        Helm::find()?.program().display()
    );
    fs::write(&program, text)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

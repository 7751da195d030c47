//! Owns: the charts in the settings in which people render them: by hand for an old or a new cluster, for a cluster that
//! chooses the users of pods, as part of another chart; and the notes that Helm prints.
//! Never: asks a cluster.

use std::path::Path;

use anyhow::{Context, ensure};
use cluster::{
    charts::{self, CHARTS, Charts},
    deploy,
};
use kube::api::DynamicObject;
use libtest_mimic::Trial;
use serde_json::Value;
use tributary_e2e::suite::sim_test;

use super::{EVERYTHING, HUB, objects, pod};

pub(super) fn trials() -> Vec<Trial> {
    vec![
        sim_test("charts::older_clusters_get_nothing_they_do_not_have", || async {
            older_clusters()
        }),
        sim_test("charts::notes_name_a_command_that_can_be_typed", || async {
            notes()
        }),
        sim_test(
            "charts::what_the_enrolment_page_renders_has_the_policies",
            || async { enrolment_page() },
        ),
        sim_test("charts::ids_of_pods_can_be_left_to_the_cluster", || async {
            ids_of_the_cluster()
        }),
        sim_test("charts::a_chart_of_charts_may_switch_them_off", || async {
            chart_of_charts()
        }),
        sim_test(
            "charts::further_clustersets_have_ports_files_and_inventories_of_their_own",
            || async { further_clustersets() },
        ),
        sim_test(
            "charts::a_proxy_is_for_the_hub_and_not_for_the_api_server",
            || async { proxy_to_the_hub() },
        ),
        sim_test(
            "charts::enrolment_in_some_namespaces_reads_no_other_secrets",
            || async { enrolment_in_namespaces() },
        ),
    ]
}

/// The right to Secrets is a Role in each namespace, and in no ClusterRole.
fn enrolment_in_namespaces() -> anyhow::Result<()> {
    let values = [
        EVERYTHING[0].1,
        &["--set=topologyEnrolment.namespaces={fleet,labs}"][..],
    ]
    .concat();
    let mut places = Vec::new();
    for object in objects(&Charts::new()?.render("hub", &values)?)? {
        let rules = object.data["rules"].as_array().into_iter().flatten();
        let of_secrets = rules.filter(|rule| rule["resources"].to_string().contains("secrets"));
        places.extend(of_secrets.map(|_| {
            (
                deploy::kind(&object).to_owned(),
                object.metadata.namespace.clone(),
            )
        }));
    }
    let role = |namespace: &str| ("Role".to_owned(), Some(namespace.to_owned()));
    ensure!(places == [role("fleet"), role("labs")], "{places:?}");
    Ok(())
}

/// The agent's pod has the variables, and the network policy lets it reach the proxy.
fn proxy_to_the_hub() -> anyhow::Result<()> {
    let values = "--set=proxy.url=http://proxy.example.org:3128,proxy.noProxy={.svc}";
    let all = objects(&Charts::new()?.render("agent", &[&format!("--set={HUB}"), values])?)?;
    let deployment = all.iter().find(|object| deploy::kind(object) == "Deployment");
    let pod = deployment.and_then(pod).context("the agent's pod")?;
    let variables = pod["containers"][0]["env"].as_array().context("variables")?;
    let value = |name: &str| {
        let found = variables.iter().find(|variable| variable["name"] == name);
        found.and_then(|variable| variable["value"].as_str())
    };
    ensure!(value("HTTPS_PROXY") == Some("http://proxy.example.org:3128"));
    let straight = "$(KUBERNETES_SERVICE_HOST),kubernetes.default.svc,.svc";
    ensure!(value("NO_PROXY") == Some(straight), "{:?}", value("NO_PROXY"));
    let policy = all.iter().find(|object| deploy::kind(object) == "NetworkPolicy");
    let egress = &policy.context("a NetworkPolicy")?.data["spec"]["egress"];
    let is_proxy = |rule: &Value| {
        let ports = rule["ports"].as_array().into_iter().flatten();
        ports.into_iter().any(|port| port["port"] == 3128)
    };
    ensure!(
        egress.as_array().into_iter().flatten().any(is_proxy),
        "the proxy cannot be reached: {egress}"
    );
    Ok(())
}

/// Two clustersets beside the first, of which one lets clusters join.
const FURTHER: &str = "--set=furtherClustersets[0].name=labs,furtherClustersets[0].port=8453,\
    furtherClustersets[0].tlsSecretName=labs,furtherClustersets[0].joinSecretName=labs-join,\
    furtherClustersets[0].joinPort=8454,furtherClustersets[1].name=ops,furtherClustersets[1].port=9000,\
    furtherClustersets[1].tlsSecretName=ops,extraArgs=null";

/// The program reads the file that the chart writes; what it names is mounted, and each port is reached by the Service.
fn further_clustersets() -> anyhow::Result<()> {
    let values = [EVERYTHING[0].1, &[FURTHER][..]].concat();
    let all = objects(&Charts::new()?.render("hub", &values)?)?;
    let of_kind = |kind: &str| {
        let found = all.iter().find(|object| deploy::kind(object) == kind);
        found.with_context(|| format!("no {kind}"))
    };
    let config = all
        .iter()
        .find(|object| deploy::name(object) == "tributary-hub-clustersets");
    let text = config.and_then(|object| object.data["data"]["clustersets.yaml"].as_str());
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("clustersets.yaml");
    std::fs::write(&file, text.context("no file")?)?;
    let sets = hub::run::sets(&file, "[::]:9090".parse()?)?;
    ensure!(sets.len() == 3, "{sets:?}");

    let container = &pod(of_kind("StatefulSet")?).context("a pod")?["containers"][0];
    let line = crate::workloads::command_line(container, |_| String::new())?;
    let named = "--clustersets=/etc/tributary/clustersets/clustersets.yaml";
    ensure!(
        line.iter().any(|word| word == named) && !line.iter().any(|word| word.starts_with("--data")),
        "{line:?}"
    );
    <hub::args::Cli as clap::Parser>::try_parse_from(&line)?;
    let list = |field: &str| container[field].as_array().cloned().unwrap_or_default();
    let (mounts, ports) = (list("volumeMounts"), list("ports"));
    let service = &of_kind("Service")?.data["spec"]["ports"];
    for set in &sets {
        let join = &set.join;
        let files = [Some(&set.data), Some(&set.tls.cert), join.join_cert.as_ref()];
        for file in files.into_iter().flatten() {
            let file = file.to_string_lossy();
            let holds = |mount: &Value| mount["mountPath"].as_str().is_some_and(|at| file.starts_with(at));
            ensure!(mounts.iter().any(holds), "{file} lies in no volume");
        }
        for listen in [Some(set.listen), join.join_listen].into_iter().flatten() {
            let port = ports.iter().find(|port| port["containerPort"] == listen.port());
            let port = &port.with_context(|| format!("{listen} is no port of the pod"))?["name"];
            let leads = |to: &Value| to["targetPort"] == *port;
            let served = service.as_array().is_some_and(|all| all.iter().any(leads));
            ensure!(served, "no port of the Service leads to {port}");
        }
    }
    for name in ["default", "labs", "ops"] {
        let namespace = format!("tributary-{name}");
        let made = |object: &&DynamicObject| object.metadata.namespace.as_deref() == Some(&*namespace);
        ensure!(all.iter().filter(made).count() == 2, "{namespace} has no role");
    }
    Ok(())
}

/// Three policies with their bindings, and a FlowSchema.
const NEWER: usize = 7;

/// Returns true if an object is of a kind that clusters before 1.30 may lack.
fn is_newer(object: &DynamicObject) -> bool {
    let kind = deploy::kind(object);
    kind.starts_with("ValidatingAdmissionPolicy") || kind == "FlowSchema"
}

/// `helm template` knows of no cluster: the version that it renders for decides, unless a value does.
fn older_clusters() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let template = |version: &str, value: &str| {
        let (version, set) = (format!("--kube-version={version}"), format!("--set={HUB}{value}"));
        let rendered = objects(&charts.template("agent", &[&version, &set])?)?;
        let newer = rendered.iter().filter(|object| is_newer(object)).count();
        anyhow::Ok((newer, rendered.len() - newer))
    };
    let (all, none) = (
        ",policies.enabled=true,flowSchema.enabled=true",
        ",policies.enabled=false,flowSchema.enabled=false",
    );
    let (old, rest) = template("1.28.0", "")?;
    ensure!(old == 0, "an older cluster refuses this");
    for (version, value, expected) in [
        ("1.29.0", "", 1),
        ("1.30.0", "", NEWER),
        ("1.36.0", "", NEWER),
        ("1.36.0", none, 0),
        ("1.28.0", all, NEWER),
    ] {
        let counted = template(version, value)?;
        ensure!(counted == (expected, rest), "{version}{value}: {counted:?}");
    }
    let asked = objects(&charts.render("agent", &["--kube-version=1.28.0", &format!("--set={HUB}")])?)?;
    ensure!(
        asked.iter().filter(|object| is_newer(object)).count() == NEWER,
        "a cluster that has these kinds gets them, whatever its version"
    );
    Ok(())
}

/// The line of the page about topologies by which the hub is given the agent renders the policies, also where Helm
/// renders for an old version.
fn enrolment_page() -> anyhow::Result<()> {
    let page = std::fs::read_to_string(charts::root().join("docs/topology.md"))?;
    let (_, line) = page
        .split_once("helm template tributary-agent")
        .context("a line")?;
    let (line, _) = line.split_once("\n}").context("its end")?;
    let line = line.replace('\\', " ");
    let mut words = vec!["template", "tributary-agent", "--kube-version=1.25.0"];
    words.extend(line.split_whitespace());
    let rendered = objects(&Charts::new()?.helm(&words)?)?;
    let newer = rendered.iter().filter(|object| is_newer(object)).count();
    ensure!(newer == NEWER, "{newer} of {NEWER} objects are rendered by{line}");
    Ok(())
}

/// A cluster such as OpenShift chooses users and groups: pods state none then, and stay within the standard `restricted`.
fn ids_of_the_cluster() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let none = "--set=podSecurityContext.runAsUser=null,podSecurityContext.runAsGroup=null,podSecurityContext.fsGroup=null";
    for (chart, arguments) in EVERYTHING {
        let mut pods = 0;
        for object in objects(&charts.render(chart, &[arguments, &[none]].concat())?)? {
            let Some(pod) = pod(&object) else { continue };
            let context = pod["securityContext"].as_object().context("a context")?;
            for id in ["runAsUser", "runAsGroup", "fsGroup"] {
                ensure!(context.get(id).is_none_or(Value::is_null), "{chart}: {context:?}");
            }
            ensure!(context["runAsNonRoot"] == true, "{chart}: {context:?}");
            pods += 1;
        }
        ensure!(pods == 2, "{chart}: a workload and a test, not {pods}");
    }
    Ok(())
}

/// Charts that are part of another are switched by `condition: NAME.enabled`, which Helm puts among their values.
fn chart_of_charts() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let directory = tempfile::tempdir()?;
    let mut about = "apiVersion: v2\nname: fleet\nversion: 0.1.0\ndependencies:\n".to_owned();
    for chart in CHARTS {
        let name = format!("tributary-{chart}");
        about.push_str(&format!(
            "- {{name: {name}, version: 0.1.0, condition: {name}.enabled}}\n"
        ));
        copied(
            &charts::root().join(format!("deploy/charts/{chart}")),
            &directory.path().join("charts").join(name),
        )?;
    }
    std::fs::write(directory.path().join("Chart.yaml"), about)?;
    let path = directory.path().display().to_string();
    let render = |values: &str| {
        let set = format!("--set=global.team=a,tributary-agent.{HUB},{values}");
        objects(&charts.helm(&["template", "fleet", &path, &set])?)
    };
    let has = |objects: &[DynamicObject], name: &str| {
        let workloads = ["StatefulSet", "Deployment"];
        let is = |one: &DynamicObject| workloads.contains(&deploy::kind(one)) && deploy::name(one) == name;
        objects.iter().any(is)
    };
    let both = render("tributary-agent.enabled=true,tributary-hub.enabled=true,tributary-crds.enabled=true")?;
    ensure!(has(&both, "tributary-hub") && has(&both, "tributary-agent"));
    let one =
        render("tributary-agent.enabled=true,tributary-hub.enabled=false,tributary-crds.enabled=false")?;
    ensure!(!has(&one, "tributary-hub") && has(&one, "tributary-agent"));
    Ok(())
}

/// Copies a directory with everything in it.
fn copied(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copied(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Returns the notes of a chart for these values, without asking a cluster.
fn notes_of(charts: &Charts, chart: &str, values: &str) -> anyhow::Result<String> {
    let (release, path) = (format!("tributary-{chart}"), format!("deploy/charts/{chart}"));
    let arguments = [
        "install",
        &release,
        &path,
        "--namespace",
        "tributary-system",
        "--dry-run=client",
        "--set",
        values,
    ];
    let said = charts.helm(&arguments)?;
    let (_, notes) = said.split_once("NOTES:").context("notes")?;
    Ok(notes.to_owned())
}

/// The hub's notes say how an agent is installed, and that line works as it stands. Every line that installs names the
/// registry, without which nodes look for the image elsewhere; and the agent's notes export with JSON, which kubectl
/// before 1.33 needs where YAML begins with a brace.
fn notes() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let all = [
        notes_of(&charts, "crds", "keep=true")?,
        notes_of(&charts, "hub", "image.registry=registry.example.org/team")?,
    ];
    let lines = all.iter().flat_map(|notes| notes.lines());
    let installs: Vec<&str> = lines
        .filter(|line| line.trim().starts_with("helm install"))
        .collect();
    ensure!(installs.len() == 3, "{installs:?}");
    for line in &installs {
        ensure!(line.contains("--set image.registry="), "{line}");
    }
    ensure!(
        installs[2].contains("image.registry=registry.example.org/team"),
        "{}",
        installs[2]
    );
    let agent = notes_of(&charts, "agent", HUB)?;
    let export = agent.lines().find_map(|line| line.trim().strip_prefix("echo '"));
    let (export, rest) = export
        .and_then(|line| line.split_once('\''))
        .context("an export")?;
    let export: Value = serde_json::from_str(export).context("JSON")?;
    ensure!(
        export["kind"] == "ServiceExport" && rest.trim().starts_with("| kubectl"),
        "{agent}"
    );
    for (values, address) in [
        (
            "address=hub.example.org:8443",
            "hubs={https://hub.example.org:8443}",
        ),
        ("service.port=443", "hubs={https://HOST:443}"),
    ] {
        let notes = notes_of(&charts, "hub", values)?;
        let line = notes.lines().find(|line| line.trim().starts_with("helm install"));
        let line = line.with_context(|| format!("no command in {notes}"))?;
        let words: Vec<String> = line
            .split_whitespace()
            .map(|word| {
                word.replace('\'', "")
                    .replace("=REGISTRY", "=registry.example.org")
            })
            .collect();
        ensure!(
            words.contains(&address.to_owned()),
            "{line} does not name {address}"
        );
        let mut words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        words[0] = "template";
        charts.helm(&words).with_context(|| line.to_owned())?;
    }
    Ok(())
}

//! Owns: what the Helm charts become: plain manifests that are up to date, command lines that the programs take,
//! values that are refused with a reason, and installations on real API servers (`installed`, `policies`, `membership`).
//! Never: runs a program in a pod; no node is here.

mod installed;
mod membership;
mod policies;
mod settings;
mod values;

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use clap::Parser;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::DynamicObject;
use libtest_mimic::Trial;
use serde::Deserialize;
use serde_json::{Value, json};
use tributary_e2e::{
    charts::{self, CHARTS, Charts},
    deploy,
    suite::sim_test,
};

use crate::workloads::{self, command_line};

pub(crate) use installed::fresh;
pub(crate) use policies::with_policies;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        sim_test("charts::plain_manifests_are_what_the_charts_render", || async {
            manifests_are_rendered()
        }),
        sim_test("charts::definitions_are_the_generated_ones", || async {
            definitions_are_generated()
        }),
        sim_test("charts::every_command_line_is_understood", || async {
            command_lines()
        }),
        sim_test(
            "charts::pods_are_probed_bounded_and_cannot_write_their_root",
            || async { pods_are_bounded() },
        ),
        sim_test("charts::network_policies_let_through_what_is_needed", || async {
            network_policies()
        }),
        sim_test("charts::two_agents_go_one_after_the_other", || async {
            two_agents()
        }),
        sim_test(
            "charts::pods_are_scraped_and_rules_are_those_of_the_file",
            || async { monitoring() },
        ),
    ];
    trials.extend(settings::trials());
    trials.extend(values::trials());
    trials.extend(installed::trials());
    trials.extend(policies::trials());
    trials.extend(membership::trials());
    trials
}

/// The role that the hub's chart gives its account for topologies, with these values, and its binding.
pub(crate) fn topology_rights(values: &[&str]) -> anyhow::Result<Vec<DynamicObject>> {
    let rendered = Charts::new()?.render("hub", values)?;
    let mut rights = Vec::new();
    for document in serde_norway::Deserializer::from_str(&rendered) {
        let object = Option::<DynamicObject>::deserialize(document)?;
        rights.extend(object.filter(|object| deploy::name(object) == "tributary-hub-topology"));
    }
    let pairs = rights.len();
    ensure!(
        matches!(pairs, 2 | 4),
        "a role with its binding for everywhere, and perhaps one for a namespace, not {pairs} objects"
    );
    Ok(rights)
}

/// Every object in what Helm renders.
fn objects(rendered: &str) -> anyhow::Result<Vec<DynamicObject>> {
    let documents = serde_norway::Deserializer::from_str(rendered);
    let read: Result<Vec<_>, _> = documents.map(DynamicObject::deserialize).collect();
    read.context("a chart renders objects")
}

/// The pod of an object: its own, or the template of a workload.
fn pod(object: &DynamicObject) -> Option<&Value> {
    match deploy::kind(object) {
        "Pod" => object.data.get("spec"),
        _ => object.data.pointer("/spec/template/spec"),
    }
}

fn manifests_are_rendered() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    for chart in CHARTS {
        let (path, text) = charts.manifest(chart)?;
        let present = std::fs::read_to_string(&path).unwrap_or_default();
        ensure!(
            present == text,
            "{} is stale: run `cargo control-plane manifests` and commit the result",
            path.display()
        );
        let directory = path.parent().context("a manifest lies in a directory")?;
        let files = deploy::yaml_files(directory)?;
        ensure!(files == [path], "{files:?}: a directory holds what is rendered");
    }
    Ok(())
}

/// The chart adds that they are kept, and no more.
fn definitions_are_generated() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let rendered = objects(&charts.render("crds", &["--set", "keep=false"])?)?;
    let generated = shared::api::crd::all();
    ensure!(
        rendered.len() == generated.len(),
        "{} definitions",
        rendered.len()
    );
    for crd in &generated {
        let name = crd.metadata.name.as_deref().unwrap_or_default();
        let found = rendered.iter().find(|object| deploy::name(object) == name);
        let found = serde_json::to_value(found.with_context(|| format!("{name} is not rendered"))?)?;
        // As definitions, for Helm writes 0.0 as 0.
        let found: CustomResourceDefinition = serde_json::from_value(found)?;
        ensure!(found == *crd, "{name} differs from the generated one");
    }
    let kept = objects(&charts.render("crds", &[])?)?;
    let keeps = |object: &DynamicObject| {
        let annotations = object.metadata.annotations.as_ref();
        annotations.is_some_and(|all| {
            all.get("helm.sh/resource-policy")
                .is_some_and(|policy| policy == "keep")
        })
    };
    ensure!(
        kept.iter().all(keeps),
        "uninstalling the chart deletes definitions"
    );
    Ok(())
}

/// The value without which the agent's chart says nothing.
const HUB: &str = "hubs={https://hub.example.org:8443}";

/// Values that bring out every argument and nearly every field of hub and agent: not those that exclude these, nor the
/// class of a volume, which nobody may change.
const EVERYTHING: [(&str, &[&str]); 2] = [
    (
        "hub",
        &[
            "--set=log.format=json,log.filter=info\\,hub=debug,listen=::,adoptEpoch=true",
            "--set=test.operatorSecret=operator,image.registry=registry.example.org:5000/team,image.pullSecrets={pull}",
            "--set=service.annotations.example\\.org/pool=a,service.loadBalancerSourceRanges={192.0.2.0/24}",
            "--set=service.externalIPs={192.0.2.10,2001:db8::10},service.nodePort=30843",
            "--set=networkPolicy.memberCIDRs={192.0.2.0/24,2001:db8::/32},networkPolicy.metricsNamespaces={monitoring}",
            "--set=clientKeys.members=renew,clientKeys.configMapName=keys,clientKeys.renewalIssuers=issuers.crt",
            "--set=clientKeys.revocationLists=clients.crl,clientKeys.deniedKeys=denied,storage.alarm=20%,storage.reserve=0%",
            "--set=topology=shadow,topologyProviders={infrastructure.example.org},inventory.accessProvidersConfigMapName=access,join.secretName=joining,join.certificateLifetime=90d",
            "--set=topologyEnrolment.mode=install,topologyEnrolment.configMapName=agent,topologyEnrolment.drainLimit=90s",
            "--set=topologyEnrolment.hubs={https://hub.example.org:8443},topologyEnrolment.joinAddresses={https://join.example.org:8444}",
            "--set=podLabels.team=shop,serviceAccount.annotations.note=a,extraArgs={--inventory-namespace=inventory}",
            "--set=affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=zone",
            "--set=topologySpreadConstraints[0].maxSkew=1,topologySpreadConstraints[0].topologyKey=zone",
            "--set=topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway,extraEnv[0].name=NOTE,extraEnv[0].value=a",
            "--set=topologyWebhook.secretName=webhook,topologyWebhook.annotations.cert-manager\\.io/inject-ca-from=a/b",
            "--set=nodeSelector.disk=fast,podAnnotations.note=a,tolerations[0].key=a,tolerations[0].operator=Exists",
        ],
    ),
    (
        "agent",
        &[
            "--set=hubs={https://one.example.org:8443,https://[fd00::1]:7443}",
            "--set=log.format=json,log.filter=info\\,agent=debug,listen=::",
            "--set=clusterId=east,interest=all,denyNamespaces={private,secret}",
            "--set=importNamespaces={shop,team-*},importMetadata={example.com,*.example.com},importsMax=500",
            "--set=sourceLeases.onHubLoss=expire,sourceLeases.durationSeconds=600,sourceLeases.renewSeconds=200",
            "--set=join.secretName=join",
            "--set=image.registry=registry.example.org/team,image.pullSecrets={pull}",
            "--set=policies.exemptUsers={velero},policies.exemptGroups={backup},policies.action=Audit",
            "--set=networkPolicy.metricsNamespaces={monitoring},withdrawalHoldSeconds=0",
            "--set=podLabels.team=shop,objectLabels.example\\.org/team=shop,topologySpreadConstraints[0].maxSkew=1,topologySpreadConstraints[0].topologyKey=zone",
            "--set=topologySpreadConstraints[0].whenUnsatisfiable=ScheduleAnyway",
            "--set=affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey=zone",
            "--set=serviceAccount.annotations.note=a,extraArgs={--node-tolerance=5}",
            "--set=extraEnv[0].name=NOTE,extraEnv[0].value=a,proxy.url=http://proxy:3128,proxy.noProxy={.example.com}",
            "--set=nodeSelector.disk=fast,podAnnotations.note=a,tolerations[0].key=a,tolerations[0].operator=Exists",
        ],
    ),
];

fn command_lines() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let mut lines = 0;
    for (chart, arguments) in EVERYTHING {
        for object in objects(&charts.render(chart, arguments)?)? {
            let Some(pod) = pod(&object) else { continue };
            let container = &pod["containers"][0];
            let line = command_line(container, |_| "https://hub:8443".to_owned())?;
            let program = line.first().and_then(|program| program.rsplit('/').next());
            let parsed = match program {
                Some("tributary") => cli::command::Cli::try_parse_from(&line).map(|_| ()),
                Some("tributary-hub") => hub::args::Cli::try_parse_from(&line).map(|_| ()),
                _ => agent::args::Cli::try_parse_from(&line).map(|_| ()),
            };
            parsed.with_context(|| format!("{}: {line:?}", deploy::name(&object)))?;
            files_are_mounted(&line, container).with_context(|| deploy::name(&object).to_owned())?;
            lines += 1;
        }
    }
    ensure!(lines == 4, "two workloads and two tests, not {lines}");
    let all = objects(&charts.render("agent", EVERYTHING[1].1)?)?;
    let deployment = all.iter().find(|object| deploy::kind(object) == "Deployment");
    let pod = deployment.and_then(pod).context("the agent's pod")?;
    let run = workloads::agent_run(&pod["containers"][0], "")?;
    ensure!(
        run.hubs.len() == 2 && run.deny_namespaces == ["private", "secret"] && run.admin.is_ipv6(),
        "values were lost: {run:?}"
    );
    Ok(())
}

/// Every file that a command line names lies in a volume.
fn files_are_mounted(line: &[String], container: &Value) -> anyhow::Result<()> {
    let mounts = container["volumeMounts"].as_array().into_iter().flatten();
    let mounts: Vec<&str> = mounts.filter_map(|mount| mount["mountPath"].as_str()).collect();
    let files = line.iter().filter_map(|word| word.split_once("=/"));
    for (flag, path) in files {
        ensure!(
            mounts.iter().any(|mount| format!("/{path}").starts_with(mount)),
            "{flag}=/{path} lies in no volume: {mounts:?}"
        );
    }
    Ok(())
}

/// Beside what the restricted standard asks for, which `installed` shows to an API server.
fn pods_are_bounded() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    for (chart, arguments) in EVERYTHING {
        for object in objects(&charts.render(chart, arguments)?)? {
            let Some(pod) = pod(&object) else { continue };
            let container = &pod["containers"][0];
            let is_test = deploy::kind(&object) == "Pod";
            let probed = !container["livenessProbe"].is_null() && !container["readinessProbe"].is_null();
            let resources = &container["resources"];
            let bounded =
                resources["requests"]["cpu"].is_string() && resources["limits"]["memory"].is_string();
            ensure!(
                container["securityContext"]["readOnlyRootFilesystem"] == true
                    && bounded
                    && (is_test || probed && pod["priorityClassName"].is_string()),
                "{}: {container:#}",
                deploy::name(&object)
            );
        }
    }
    Ok(())
}

/// Objects of the Prometheus operator, for who asks for them.
fn monitoring() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    let wanted = "--set=monitoring.podMonitor=true,monitoring.rules=true,monitoring.labels.release=prometheus,\
                  monitoring.runbook=https://example.org/runbooks";
    let is_of_the_operator = |object: &DynamicObject| {
        let types = object.types.as_ref();
        types.is_some_and(|types| types.api_version == "monitoring.coreos.com/v1")
    };
    for (chart, arguments) in EVERYTHING {
        let plain = objects(&charts.render(chart, arguments)?)?;
        ensure!(!plain.iter().any(is_of_the_operator), "{chart}: nobody asked");
        let all = objects(&charts.render(chart, &[arguments, &[wanted]].concat())?)?;
        let of_kind = |kind: &str| {
            let object = all.iter().find(|object| deploy::kind(object) == kind);
            object.with_context(|| format!("{chart} has no {kind}"))
        };
        let (monitor, rules) = (of_kind("PodMonitor")?, of_kind("PrometheusRule")?);
        for object in [monitor, rules] {
            let labels = object.metadata.labels.as_ref();
            let chosen = labels.and_then(|labels| labels.get("release"));
            ensure!(
                chosen.is_some_and(|release| release == "prometheus"),
                "{labels:?}"
            );
        }
        let pod = all
            .iter()
            .find(|object| object.data.pointer("/spec/template").is_some());
        let template = pod.and_then(|workload| workload.data.pointer("/spec/template"));
        let template = template.context("a workload")?;
        let (selector, scraped) = (
            &monitor.data["spec"]["selector"]["matchLabels"],
            &monitor.data["spec"]["podMetricsEndpoints"][0]["port"],
        );
        let labels = template["metadata"]["labels"].as_object().context("labels")?;
        let selected = selector.as_object().context("a selector")?;
        ensure!(
            selected
                .iter()
                .all(|(name, value)| labels.get(name) == Some(value)),
            "{selector}"
        );
        let ports = template["spec"]["containers"][0]["ports"].as_array();
        ensure!(
            ports.into_iter().flatten().any(|port| port["name"] == *scraped),
            "{chart}: no port {scraped}"
        );
        let file = charts::root().join(format!("deploy/charts/{chart}/files/alerts.yaml"));
        let text = std::fs::read_to_string(file)?.replace("RUNBOOK/", "https://example.org/runbooks/");
        let written: Value = serde_norway::from_str(&text)?;
        ensure!(rules.data["spec"] == written, "{chart}: {:#}", rules.data["spec"]);
    }
    Ok(())
}

/// The ports of the policies are those of the containers and of the hubs; whether a network keeps to them is its own.
fn network_policies() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    for (chart, arguments) in EVERYTHING {
        let all = objects(&charts.render(chart, arguments)?)?;
        let policy = all.iter().find(|object| deploy::kind(object) == "NetworkPolicy");
        let policy = &policy.context("a network policy")?.data["spec"];
        let ports = |direction: &str| -> Vec<&Value> {
            let rules = policy[direction].as_array().into_iter().flatten();
            let ports = rules.flat_map(|rule| rule["ports"].as_array().into_iter().flatten());
            ports.map(|port| &port["port"]).collect()
        };
        let workload = all
            .iter()
            .filter(|object| deploy::kind(object) != "Pod")
            .find_map(pod);
        let workload = workload.context("a workload")?;
        let declared = workload["containers"][0]["ports"]
            .as_array()
            .into_iter()
            .flatten();
        let declared: Vec<&Value> = declared.map(|port| &port["name"]).collect();
        ensure!(
            ports("ingress") == declared,
            "{chart}: {:?} and not {declared:?}",
            ports("ingress")
        );
        let needed: &[u16] = match chart {
            "hub" => &[53, 5353, 443, 6443],
            _ => &[53, 5353, 443, 6443, 8443, 7443],
        };
        for port in needed {
            ensure!(
                ports("egress").contains(&&Value::from(*port)),
                "{chart}: no way out to {port}"
            );
        }
        let rules = policy["egress"].as_array().into_iter().flatten();
        for rule in rules {
            let ports = rule["ports"].as_array().context("ports")?;
            let distinct: BTreeSet<String> = ports.iter().map(Value::to_string).collect();
            ensure!(
                distinct.len() == ports.len(),
                "{chart}: a port stands twice: {rule}"
            );
        }
    }
    Ok(())
}

/// Of two agents one stays while the other is replaced or evicted, and they are kept apart; one alone needs no second
/// place on the nodes.
fn two_agents() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    for replicas in [1, 2] {
        let set = format!("--set=replicas={replicas},hubs={{https://hub:8443}}");
        let rendered = objects(&charts.render("agent", &[&set])?)?;
        let of_kind = |kind: &str| rendered.iter().find(|object| deploy::kind(object) == kind);
        let deployment = &of_kind("Deployment").context("a Deployment")?.data;
        ensure!(deployment["spec"]["replicas"] == replicas);
        let strategy = deployment["spec"]["strategy"].clone();
        let apart = &deployment["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"];
        let budget = of_kind("PodDisruptionBudget");
        if replicas == 1 {
            ensure!(strategy == json!({"type": "Recreate"}), "{strategy}");
            ensure!(apart.is_null() && budget.is_none());
            continue;
        }
        let one_by_one =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}});
        ensure!(strategy == one_by_one, "{strategy}");
        ensure!(!apart.is_null());
        let budget = &budget.context("a PodDisruptionBudget")?.data["spec"];
        ensure!(budget["maxUnavailable"] == 1);
        let chosen = &deployment["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"];
        ensure!(budget["selector"]["matchLabels"]["app.kubernetes.io/name"] == *chosen);
    }
    Ok(())
}

//! Owns: the values of the charts: each is documented, none is taken that says nothing, and what is refused is refused
//! with the place and the reason.
//! Never: asks a cluster.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use clap::CommandFactory;
use cluster::charts::{CHARTS, Charts, root};
use libtest_mimic::Trial;
use serde_json::Value;
use tributary_e2e::{
    reference,
    suite::{plain_test, sim_test},
};

use super::HUB;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        sim_test(
            "charts::nonsensical_values_are_refused_with_the_reason",
            || async { refused() },
        ),
        plain_test("charts::schemas_take_no_unknown_value", schemas_are_closed),
        plain_test("charts::every_value_or_its_group_says_what_it_is", documented),
        plain_test("charts::versions_are_the_programs", versions),
        plain_test("charts::every_flag_can_be_set_or_is_for_no_pod", flags),
    ]
}

/// Flags that no pod is given, and why.
const FOR_NO_POD: [(&str, &str); 3] = [
    ("kubeconfig", "a pod has an account"),
    (
        "join",
        "a string that others may see; the Secret is read from a file",
    ),
    ("inventory-namespace", "rights are bound to tributary-CLUSTERSET"),
];

/// A chart, values, and what the refusal must say.
const REFUSED: &[(&str, &[&str], &[&str])] = &[
    (
        "hub",
        &["service.typ=NodePort"],
        &["/service", "'typ' not allowed"],
    ),
    (
        "hub",
        &["clusterset=My_Set"],
        &["/clusterset", "My_Set", "DNS_label"],
    ),
    (
        "hub",
        &["clusterset=system"],
        &["hub's own namespace tributary-system", "--namespace NAME"],
    ),
    ("hub", &["clusterset="], &["/clusterset", "DNS_label"]),
    (
        "hub",
        &["monitoring.rules=true"],
        &["monitoring.runbook is empty", "--set monitoring.runbook=https://"],
    ),
    (
        "hub",
        &["monitoring.runbook=runbooks"],
        &["/monitoring/runbook", "address_without_hash"],
    ),
    ("hub", &["address=hub.example.org"], &["/address", "HOST", "PORT"]),
    (
        "hub",
        &["address=hub.example.org:99999"],
        &["address is hub.example.org:99999", "at most 65535"],
    ),
    ("hub", &["service.port=0"], &["/service/port", "want 1"]),
    ("hub", &["service.port=70000"], &["/service/port", "want 65,535"]),
    (
        "hub",
        &["service.port=https"],
        &["/service/port", "got string, want integer"],
    ),
    (
        "hub",
        &["service.type=Ingress"],
        &["/service/type", "'LoadBalancer'", "'NodePort'", "'ClusterIP'"],
    ),
    (
        "hub",
        &["service.type=ClusterIP"],
        &["service.type is ClusterIP", "--set address=HOST:PORT"],
    ),
    (
        "hub",
        &[
            "service.type=ClusterIP",
            "address=hub:8443",
            "service.nodePort=30000",
        ],
        &["service.nodePort is set", "--set service.type=NodePort"],
    ),
    (
        "hub",
        &["service.externalIPs={node-1}"],
        &["/service/externalIPs/0", "IP_address"],
    ),
    (
        "hub",
        &["networkPolicy.memberCIDRs={10.0.0.0}"],
        &["/networkPolicy/memberCIDRs/0", "CIDR"],
    ),
    ("hub", &["storage.size=20"], &["/storage/size", "want string"]),
    ("hub", &["retention.age=0d"], &["/retention/age", "age_as_7d"]),
    (
        "hub",
        &["join.certificateLifetime=1y"],
        &["/join/certificateLifetime", "time_as_90d"],
    ),
    (
        "hub",
        &["retention.bytes=lots"],
        &["/retention/bytes", "size_as_10GB"],
    ),
    (
        "hub",
        &["resources.limits.memory=lots"],
        &["/resources/limits/memory", "memory_as_128Mi"],
    ),
    (
        "hub",
        &["resources.limits.ram=1Gi"],
        &["/resources/limits", "'ram' not allowed"],
    ),
    ("hub", &["image.digest=sha256:12"], &["/image/digest", "digest"]),
    (
        "hub",
        &["image.registry=https://registry.example.org"],
        &["/image/registry", "without_scheme"],
    ),
    ("hub", &["tls.check=maybe"], &["/tls/check", "want boolean"]),
    (
        "hub",
        &["priorityClass.value=2000000000"],
        &["/priorityClass/value", "maximum: got"],
    ),
    ("hub", &["priorityClass.name="], &["priorityClass.name is empty"]),
    (
        "hub",
        &["clientKeys.deniedKeys=denied"],
        &["clientKeys has denied", "clientKeys.configMapName is empty"],
    ),
    (
        "hub",
        &["clientKeys.configMapName=keys"],
        &["clientKeys.configMapName is keys", "--set clientKeys.deniedKeys="],
    ),
    (
        "hub",
        &["clientKeys.members=renew"],
        &["clientKeys.renewalIssuers is empty"],
    ),
    (
        "hub",
        &["clientKeys.members=everybody"],
        &["/clientKeys/members", "'pin'", "'renew'"],
    ),
    (
        "hub",
        &["storage.reserve=lots"],
        &["/storage/reserve", "share_in_percent"],
    ),
    (
        "hub",
        &["topology=write"],
        &["/topology", "'observe'", "'shadow'", "'own'"],
    ),
    ("hub", &["topologyRollouts=0"], &["/topologyRollouts", "minimum"]),
    (
        "hub",
        &["topologyProviders={*}"],
        &["/topologyProviders/0", "does not match pattern"],
    ),
    (
        "hub",
        &["topology=observe", "inventory.enabled=false"],
        &["topology is observe", "--set inventory.enabled=true"],
    ),
    (
        "hub",
        &["topologyEnrolment.mode=push"],
        &["/topologyEnrolment/mode", "'manifest', 'install'"],
    ),
    (
        "hub",
        &["topologyEnrolment.mode=install"],
        &["topologyEnrolment.mode is install and topology is empty"],
    ),
    (
        "hub",
        &["topologyEnrolment.mode=install", "topology=observe"],
        &["join.secretName is empty"],
    ),
    (
        "hub",
        &[
            "topologyEnrolment.mode=install",
            "topology=observe",
            "join.secretName=joining",
        ],
        &["topologyEnrolment.configMapName is empty"],
    ),
    (
        "hub",
        &[
            "topologyEnrolment.mode=install",
            "topology=observe",
            "join.secretName=joining",
            "topologyEnrolment.configMapName=agent",
        ],
        &["topologyEnrolment.hubs is empty"],
    ),
    (
        "hub",
        &["topologyEnrolment.configMapName=agent"],
        &["topologyEnrolment.mode is empty"],
    ),
    (
        "hub",
        &["topologyEnrolment.hubs={hub.example.org}"],
        &["/topologyEnrolment/hubs/0", "HOST"],
    ),
    (
        "hub",
        &["topologyEnrolment.drainLimit=soon"],
        &["/topologyEnrolment/drainLimit", "time_as_2m"],
    ),
    (
        "hub",
        &["topologyWebhook.secretName=webhook"],
        &[
            "topologyWebhook.caBundle is empty",
            "--set-file topologyWebhook.caBundle=",
        ],
    ),
    (
        "hub",
        &["topologyWebhook.annotations.a=b"],
        &["topologyWebhook.secretName is empty"],
    ),
    (
        "hub",
        &[
            "topologyWebhook.secretName=webhook",
            "topologyWebhook.annotations.a=b",
            "inventory.enabled=false",
        ],
        &[
            "topologyWebhook.secretName is webhook",
            "--set inventory.enabled=true",
        ],
    ),
    (
        "hub",
        &["topologyWebhook.failurePolicy=Warn"],
        &["/topologyWebhook/failurePolicy", "'Ignore', 'Fail'"],
    ),
    (
        "hub",
        &["topologyWebhook.caBundle=ca.crt"],
        &["/topologyWebhook/caBundle", "PEM"],
    ),
    (
        "hub",
        &[
            "furtherClustersets[0].name=labs",
            "furtherClustersets[0].tlsSecretName=labs",
        ],
        &["/furtherClustersets/0", "missing property 'port'"],
    ),
    (
        "hub",
        &[
            "furtherClustersets[0].name=labs",
            "furtherClustersets[0].tlsSecretName=labs",
            "furtherClustersets[0].port=8443",
        ],
        &["port 8443 of the Service is taken"],
    ),
    ("hub", &["replicas=2"], &["'replicas' not allowed"]),
    (
        "agent",
        &[],
        &["hubs is empty", "--set 'hubs={https://HOST:8443}'"],
    ),
    ("agent", &[HUB, "replicas=0"], &["/replicas", "minimum: got"]),
    (
        "agent",
        &["hubs={https://hub.example.org}"],
        &["/hubs/0", "HOST", "PORT"],
    ),
    (
        "agent",
        &["hubs={http://hub.example.org:8443}"],
        &["/hubs/0", "^https://"],
    ),
    (
        "agent",
        &["hubs={https://hub:70000}"],
        &["hubs has https://hub:70000", "at most 65535"],
    ),
    (
        "agent",
        &[HUB, "hubConfigMap=tributary-agent"],
        &["hubs and hubConfigMap both"],
    ),
    ("agent", &[HUB, "clusterId=East_1"], &["/clusterId", "DNS_label"]),
    (
        "agent",
        &[HUB, "interest=none"],
        &["/interest", "'namespaces', 'all'"],
    ),
    (
        "agent",
        &[HUB, "denyNamespaces={team-*}"],
        &["/denyNamespaces/0", "DNS_label"],
    ),
    (
        "agent",
        &[HUB, "denyNamespaces=private"],
        &["/denyNamespaces", "want array"],
    ),
    (
        "agent",
        &[HUB, "importNamespaces={Shop}"],
        &["/importNamespaces/0", "name_or_pattern"],
    ),
    (
        "agent",
        &[HUB, "importMetadata={example.com/team}"],
        &["/importMetadata/0", "domain_or_pattern"],
    ),
    ("agent", &[HUB, "importsMax=-1"], &["/importsMax", "minimum"]),
    (
        "agent",
        &[HUB, "sourceLeases.onHubLoss=panic"],
        &["/sourceLeases/onHubLoss", "'retain', 'expire'"],
    ),
    (
        "agent",
        &[HUB, "withdrawalHoldSeconds=-1"],
        &["/withdrawalHoldSeconds", "minimum"],
    ),
    ("agent", &[HUB, "extraArgs={run}"], &["/extraArgs/0", "flag"]),
    (
        "agent",
        &[HUB, "proxy.url=socks5://proxy:1080"],
        &["/proxy/url", "url"],
    ),
    ("hub", &["extraEnv[0].value=a"], &["/extraEnv/0", "name"]),
    (
        "agent",
        &[HUB, "nodeToleranceSeconds=-1"],
        &["/nodeToleranceSeconds", "minimum"],
    ),
    (
        "agent",
        &[HUB, "policies.action=Refuse"],
        &["/policies/action", "'Deny', 'Warn', 'Audit'"],
    ),
    (
        "agent",
        &[HUB, "policies.enabled=yes"],
        &["/policies/enabled", "'auto'"],
    ),
    (
        "agent",
        &[HUB, "podSecurityContext.runAsUsr=1"],
        &["/podSecurityContext", "'runAsUsr' not allowed"],
    ),
    (
        "hub",
        &["securityContext.privileged=true"],
        &["/securityContext/privileged"],
    ),
    (
        "hub",
        &["networkPolicy.dnsPorts={0}"],
        &["/networkPolicy/dnsPorts/0", "want 1"],
    ),
    (
        "agent",
        &[HUB, "policies.exemptUsers={it's}"],
        &["/policies/exemptUsers/0", "user_or_group"],
    ),
    (
        "agent",
        &[HUB, "flowSchema.precedence=0"],
        &["/flowSchema/precedence", "want 1"],
    ),
    (
        "agent",
        &[HUB, "log.format=xml"],
        &["/log/format", "'text', 'json'"],
    ),
    ("crds", &["serviceExport=false"], &["'serviceExport' not allowed"]),
    ("crds", &["keep=yes"], &["/keep", "want boolean"]),
];

fn refused() -> anyhow::Result<()> {
    let charts = Charts::new()?;
    charts.render("hub", &[])?;
    charts.render("agent", &["--set", HUB])?;
    charts.render("crds", &[])?;
    for (chart, values, told) in REFUSED {
        let arguments: Vec<String> = values.iter().map(|value| format!("--set={value}")).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let Err(error) = charts.render(chart, &arguments) else {
            anyhow::bail!("{chart} takes {values:?}");
        };
        let said = error.to_string();
        for words in *told {
            ensure!(
                said.contains(words),
                "{chart} with {values:?} says:\n{said}\nand not {words:?}"
            );
        }
    }
    Ok(())
}

fn read(chart: &str, file: &str) -> anyhow::Result<String> {
    let path = root().join(format!("deploy/charts/{chart}/{file}"));
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Values that are fields of a pod: the API server says what they may have.
const OF_KUBERNETES: [&str; 3] = [
    "/properties/affinity",
    "/properties/topologySpreadConstraints/items",
    "/properties/extraEnv/items/properties/valueFrom",
];

/// Objects with named parts take no others; only maps of a user's own words are open, and what Helm puts there.
fn schemas_are_closed() -> anyhow::Result<()> {
    let mut closed = 0;
    for chart in CHARTS {
        let schema: Value = serde_json::from_str(&read(chart, "values.schema.json")?)?;
        let mut open = Vec::new();
        closed += walk(&schema, "", &mut open);
        open.retain(|place| !OF_KUBERNETES.contains(&place.as_str()));
        ensure!(open == ["/properties/global"], "{chart}: open are {open:?}");
        let values: Value = serde_norway::from_str(&read(chart, "values.yaml")?)?;
        for name in values.as_object().context("values")?.keys() {
            ensure!(
                !schema["properties"][name].is_null(),
                "{chart}: the schema lacks {name}"
            );
        }
    }
    ensure!(closed > 20, "only {closed} objects were found");
    Ok(())
}

/// Counts the closed objects of a schema, and collects the places of the open ones.
fn walk(schema: &Value, place: &str, open: &mut Vec<String>) -> usize {
    let mut closed = 0;
    match schema {
        Value::Object(fields) => {
            if schema["type"] == "object" {
                match &schema["additionalProperties"] {
                    Value::Bool(false) => closed += 1,
                    Value::Object(_) => {}
                    _ => open.push(place.to_owned()),
                }
            }
            for (name, part) in fields {
                closed += walk(part, &format!("{place}/{name}"), open);
            }
        }
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                closed += walk(part, &format!("{place}/{index}"), open);
            }
        }
        _ => {}
    }
    closed
}

/// Every value has a comment, or the group that it is in; docs/reference/values.md shows them.
fn documented() -> anyhow::Result<()> {
    for chart in ["hub", "agent"] {
        let values = reference::values(&root(), chart)?;
        let says: BTreeSet<&str> = values
            .iter()
            .filter(|value| !value.meaning.is_empty())
            .map(|value| &*value.path)
            .collect();
        let silent: Vec<&str> = values
            .iter()
            .map(|value| &*value.path)
            .filter(|path| !around(path).any(|path| says.contains(path)))
            .collect();
        ensure!(silent.is_empty(), "{chart}: without a comment: {silent:?}");
    }
    Ok(())
}

/// The path of a value, then those of the groups that it is in.
fn around(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| Some(path.rsplit_once('.')?.0))
}

/// Every flag of the program's main command, or its variable, stands in the chart's templates.
fn flags() -> anyhow::Result<()> {
    let programs = [
        ("hub", "statefulset", hub::args::Cli::command(), "serve"),
        ("agent", "deployment", agent::args::Cli::command(), "run"),
    ];
    let mut missing = Vec::new();
    for (chart, template, program, main) in programs {
        let template = read(chart, &format!("templates/{template}.yaml"))?;
        let words: BTreeSet<&str> = template
            .split(|one: char| !one.is_ascii_alphanumeric() && !"-_".contains(one))
            .collect();
        let main = program.find_subcommand(main).context("the main command")?;
        for argument in main.get_arguments().chain(program.get_arguments()) {
            let Some(flag) = argument
                .get_long()
                .filter(|flag| !["help", "version"].contains(flag))
            else {
                continue;
            };
            let variable = argument
                .get_env()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let is_set = words.contains(&*format!("--{flag}")) || words.contains(variable);
            if is_set == FOR_NO_POD.iter().any(|(other, _)| *other == flag) {
                missing.push(format!("{chart}: --{flag}"));
            }
        }
    }
    ensure!(
        missing.is_empty(),
        "set by no value, or by one although they are for no pod: {missing:?}"
    );
    Ok(())
}

/// A chart installs the programs of its own release.
fn versions() -> anyhow::Result<()> {
    for chart in CHARTS {
        let about: Value = serde_norway::from_str(&read(chart, "Chart.yaml")?)?;
        for field in ["version", "appVersion"] {
            ensure!(
                about[field] == env!("CARGO_PKG_VERSION"),
                "{chart}: {field} is {}, the programs are {}",
                about[field],
                env!("CARGO_PKG_VERSION")
            );
        }
    }
    Ok(())
}

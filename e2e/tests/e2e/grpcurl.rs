//! Owns: inspection as people meet it: the program grpcurl against a hub, with and without the right certificate.
//! Never: calls the hub by other means, except for its metrics.

use anyhow::{Context, bail, ensure};
use cluster::{
    clusterset::{Backend, LocalClusterset},
    real::{Unavailable, module::Module},
};
use hub::certs::{CertificateAuthority, Subject, Validity};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use shared::model::Clusterset;
use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{Output, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};
use tributary_e2e::suite::sim_test;

use crate::player::Player;

/// Time for a requested change to show.
const SHOW_WAIT: Duration = Duration::from_secs(30);
/// Time for grpcurl to connect.
const CONNECT_SECONDS: &str = "5";
/// Interval of looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Objects that a user applies in `east`: a namespace, a Service with an endpoint, and its export.
const SHOP: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceExport
metadata: {name: cart, namespace: shop}
"#;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        sim_test("sim::grpcurl_lists_describes_watches_and_explains", reads),
        sim_test("sim::grpcurl_without_the_right_certificate_is_refused", refused),
    ]
}

/// grpcurl with the certificate `name` of a clusterset.
struct Grpcurl {
    program: PathBuf,
    address: SocketAddr,
    tls: Vec<PathBuf>,
}

impl Grpcurl {
    fn of(clusterset: &LocalClusterset, name: &str) -> anyhow::Result<Self> {
        let mut tls = vec!["-cacert".into(), clusterset.certificate("ca.crt")];
        if !name.is_empty() {
            tls.extend(["-cert".into(), clusterset.certificate(&format!("{name}.crt"))]);
            tls.extend(["-key".into(), clusterset.certificate(&format!("{name}.key"))]);
        }
        let program = Module::of_this_workspace().tools().join("grpcurl");
        if !program.is_file() {
            let reason = "grpcurl is not installed; run `cargo control-plane grpcurl`".to_owned();
            return Err(Unavailable { reason }.into());
        }
        Ok(Self {
            program,
            address: clusterset.hub_address,
            tls,
        })
    }

    fn command(&self, request: Option<&Value>, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["-connect-timeout", CONNECT_SECONDS])
            .args(&self.tls);
        if let Some(request) = request {
            command.args(["-d", &request.to_string()]);
        }
        command.arg(self.address.to_string()).args(words);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    async fn output(&self, request: Option<&Value>, words: &[&str]) -> anyhow::Result<Output> {
        let running = self.command(request, words).output();
        Ok(tokio::time::timeout(SHOW_WAIT, running)
            .await
            .context("grpcurl does not end")??)
    }

    /// Its output when it succeeds.
    async fn text(&self, words: &[&str]) -> anyhow::Result<String> {
        let output = self.output(None, words).await?;
        ensure!(
            output.status.success(),
            "grpcurl {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The answer to a request.
    async fn call(&self, method: &str, request: Value) -> anyhow::Result<Value> {
        let output = self.output(Some(&request), &[method]).await?;
        ensure!(
            output.status.success(),
            "{method}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Its output when it fails; a success is an error here.
    async fn refusal(&self, method: &str, request: Value) -> anyhow::Result<String> {
        let output = self.output(Some(&request), &[method]).await?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success(), "{method} was answered");
        Ok(said)
    }
}

async fn reads() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    let grpcurl = Grpcurl::of(&clusterset, "operator")?;
    let services = grpcurl.text(&["list"]).await?;
    for service in [
        "tributary.v1.EventLog",
        "tributary.v1.State",
        "tributary.v1.Membership",
        "grpc.health.v1.Health",
    ] {
        ensure!(
            services.lines().any(|line| line == service),
            "{service} is not among\n{services}"
        );
    }
    ensure!(
        !services.contains("tributary.v1.Joining"),
        "Joining is served at a port of its own, and not here:\n{services}"
    );
    let described = grpcurl.text(&["describe", "tributary.v1.State"]).await?;
    ensure!(described.contains("rpc Explain"), "{described}");
    let health = grpcurl.call("grpc.health.v1.Health/Check", json!({})).await?;
    ensure!(health["status"] == "SERVING", "{health}");
    let of_one = json!({"service": "tributary.v1.State"});
    let health = grpcurl.call("grpc.health.v1.Health/Check", of_one).await?;
    ensure!(health["status"] == "SERVING", "{health}");

    let mut watch = grpcurl
        .command(Some(&json!({})), &["tributary.v1.EventLog/Watch"])
        .spawn()?;
    let admin = clusterset.hub()?.admin().await?;
    let open = "tributary_hub_inspection_watches 1";
    shows(admin, |metrics| metrics.lines().any(|line| line == open)).await?;
    let east = clusterset
        .cluster("east")?
        .sim()
        .context("the clusters are simulated")?;
    east.apply_yaml(SHOP)?;
    watched(&mut watch, r#""kind": "export_upserted""#).await?;
    watch.kill().await?;

    let explained = explained(&grpcurl).await?;
    let mut revisions = Vec::new();
    collect_revisions(&explained, &mut revisions);
    ensure!(revisions.len() >= 4, "too little is explained: {explained}");
    for revision in revisions {
        let request = json!({"fromRevision": revision.to_string(), "limit": 1});
        let page = grpcurl.call("tributary.v1.EventLog/List", request).await?;
        let event = &page["events"][0];
        ensure!(
            event["revision"].as_str() == Some(&revision.to_string()),
            "revision {revision} is not in the log: {page}"
        );
    }
    client_agrees(&clusterset, &grpcurl).await?;
    clusterset.end().await
}

/// The client prints as JSON what grpcurl prints.
async fn client_agrees(clusterset: &LocalClusterset, grpcurl: &Grpcurl) -> anyhow::Result<()> {
    let player = Player::at(clusterset);
    let imports = json!({"parts": ["IMPORTS"]});
    let cart = json!({"namespace": "shop", "name": "cart"});
    for (command, method, request) in [
        ("tributary get imports -o json", "tributary.v1.State/Get", imports),
        (
            "tributary explain shop/cart -o json",
            "tributary.v1.State/Explain",
            cart,
        ),
    ] {
        let wanted = grpcurl.call(method, request).await?;
        let printed: Value = serde_json::from_str(&player.play(clusterset, command).await?)?;
        ensure!(printed == wanted, "{command}: {printed}\n{method}: {wanted}");
    }
    Ok(())
}

/// Waits until both the export and its slice are explained, with an import.
async fn explained(grpcurl: &Grpcurl) -> anyhow::Result<Value> {
    let request = json!({"namespace": "shop", "name": "cart"});
    let waiting = async {
        loop {
            let explained = grpcurl
                .call("tributary.v1.State/Explain", request.clone())
                .await?;
            if explained["import"].is_object() && explained["candidates"][0]["slices"][0].is_object() {
                return anyhow::Ok(explained);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(SHOW_WAIT, waiting)
        .await
        .context("the import is not explained")?
}

/// Every field `revision` below the top, as numbers; the top's own is the head, which the log has too.
fn collect_revisions(value: &Value, found: &mut Vec<u64>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == "revision"
                    && let Some(revision) = field.as_str().and_then(|text| text.parse().ok())
                {
                    found.push(revision);
                }
                collect_revisions(field, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect_revisions(value, found)),
        _ => {}
    }
}

/// Waits for a line in what a running grpcurl prints.
async fn watched(running: &mut Child, wanted: &str) -> anyhow::Result<()> {
    let mut lines = BufReader::new(running.stdout.take().context("its output is read once")?).lines();
    let waiting = async {
        while let Some(line) = lines.next_line().await? {
            if line.contains(wanted) {
                return Ok(());
            }
        }
        bail!("the watch ended before {wanted}")
    };
    tokio::time::timeout(SHOW_WAIT, waiting)
        .await
        .with_context(|| format!("the watch does not show {wanted}"))?
}

async fn refused() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let mut clusterset = LocalClusterset::without_agents(dir.path(), &Backend::Simulated, &["east"]).await?;
    let operator = Grpcurl::of(&clusterset, "operator")?;
    let admin = clusterset.hub()?.admin().await?;
    no_handshake(&Grpcurl::of(&clusterset, "")?, admin)
        .await
        .context("without a certificate")?;
    let foreign =
        CertificateAuthority::generate(clusterset.authority.clusterset(), Validity::days_from_now(1))?;
    let issued = foreign.issue(&Subject::Operator("e2e".into()), Validity::days_from_now(1))?;
    clusterset.keep("foreign", &issued)?;
    no_handshake(&Grpcurl::of(&clusterset, "foreign")?, admin)
        .await
        .context("with a certificate of a foreign CA")?;

    let other = Clusterset::new("e2e.tributary.test", "other")?;
    let subject = Subject::Operator("e2e".into());
    clusterset.keep(
        "other",
        &clusterset
            .authority
            .issue_in(&other, &subject, Validity::days_from_now(1))?,
    )?;
    let get = "tributary.v1.State/Get";
    let said = Grpcurl::of(&clusterset, "other")?.refusal(get, json!({})).await?;
    ensure!(
        said.contains("PermissionDenied"),
        "with a certificate of another clusterset: {said}"
    );
    let said = operator.refusal(get, json!({"clusterset": "other"})).await?;
    ensure!(
        said.contains("PermissionDenied"),
        "a request that names another clusterset: {said}"
    );
    operator.call(get, json!({"clusterset": "default"})).await?;
    clusterset.end().await
}

/// The hub refuses the handshake itself: it completes none, and grpcurl ends without an answer. (In TLS 1.3 a
/// client learns of that only afterwards, and grpcurl goes on trying until its time is up.)
async fn no_handshake(grpcurl: &Grpcurl, admin: SocketAddr) -> anyhow::Result<()> {
    let completed = handshakes(&metrics(admin).await?, "completed");
    let refused = handshakes(&metrics(admin).await?, "refused");
    let output = grpcurl.output(None, &["list"]).await?;
    ensure!(!output.status.success(), "grpcurl was let in");
    ensure!(
        output.stdout.is_empty(),
        "grpcurl was answered: {:?}",
        output.stdout
    );
    shows(admin, |metrics| handshakes(metrics, "refused") > refused).await?;
    let now = handshakes(&metrics(admin).await?, "completed");
    ensure!(
        now == completed,
        "{now} handshakes are completed, {completed} were before"
    );
    Ok(())
}

fn handshakes(metrics: &str, outcome: &str) -> u64 {
    let name = format!("tributary_hub_tls_handshakes_total{{outcome=\"{outcome}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
    value.and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// Waits until the hub's metrics satisfy a condition.
async fn shows(admin: SocketAddr, condition: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    let waiting = async {
        while !condition(&metrics(admin).await?) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(SHOW_WAIT, waiting)
        .await
        .context("the hub's metrics do not show it")?
}

async fn metrics(admin: SocketAddr) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(admin).await?;
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n")
        .await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

//! grpcurl is a first-class client (DESIGN section 9): what a person types, and what strangers get.

use std::{
    ffi::OsStr,
    path::PathBuf,
    process::{Output, Stdio},
};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};
use tributary_e2e::{
    real::{Unavailable, module::Module},
    world::{Backend, World, eventually::WAIT},
};

use super::{hub::listed, identity::write_strangers, shop::Shop};

/// Most exports that are made until the watch has seen one.
const EXPORTS_MAX: usize = 200;

/// Ours if it is installed, else the one in the path.
fn program() -> Result<PathBuf, Unavailable> {
    let ours = Module::of_this_workspace().tools().join("grpcurl");
    if ours.is_file() {
        return Ok(ours);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join("grpcurl"))
        .find(|candidate| candidate.is_file());
    found.ok_or_else(|| Unavailable {
        reason: "grpcurl is not installed; `cargo control-plane grpcurl` installs it".into(),
    })
}

/// grpcurl with a certificate of the world.
struct Grpcurl<'a> {
    program: PathBuf,
    world: &'a World,
}

impl Grpcurl<'_> {
    fn command<S: AsRef<OsStr>>(&self, certificate: Option<&str>, flags: &[S], words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(["-max-time", "120", "-cacert"])
            .arg(self.world.certificate("ca.crt"));
        if let Some(name) = certificate {
            command
                .arg("-cert")
                .arg(self.world.certificate(&format!("{name}.crt")));
            command
                .arg("-key")
                .arg(self.world.certificate(&format!("{name}.key")));
        }
        command
            .args(flags)
            .arg(self.world.hub_address.to_string())
            .args(words);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn output(
        &self,
        certificate: Option<&str>,
        flags: &[&str],
        words: &[&str],
    ) -> anyhow::Result<Output> {
        Ok(self.command(certificate, flags, words).output().await?)
    }

    /// What an operator is answered.
    async fn text(&self, flags: &[&str], words: &[&str]) -> anyhow::Result<String> {
        let output = self.output(Some("operator"), flags, words).await?;
        ensure!(
            output.status.success(),
            "grpcurl {flags:?} {words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    async fn json(&self, method: &str, request: &Value) -> anyhow::Result<Value> {
        let text = self.text(&["-d", &request.to_string()], &[method]).await?;
        serde_json::from_str(&text).with_context(|| text)
    }

    /// Standard error of a call that must fail.
    async fn refused(&self, certificate: Option<&str>, request: &Value) -> anyhow::Result<String> {
        let request = request.to_string();
        let output = self
            .output(
                certificate,
                &["-connect-timeout", "3", "-d", &request],
                &["tributary.v1.State/Get"],
            )
            .await?;
        ensure!(!output.status.success(), "{certificate:?} got an answer");
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Lists, describes, watches, explains; strangers get nothing.
pub(super) async fn a_person_reads_with_grpcurl() -> anyhow::Result<()> {
    let program = program()?;
    let dir = tempfile::tempdir()?;
    let world = World::start(dir.path(), &Backend::Simulated, &["east", "west"]).await?;
    listed(&world, &["east", "west"]).await?;
    write_strangers(&world)?;
    let grpcurl = Grpcurl {
        program,
        world: &world,
    };

    let services = grpcurl.text(&[], &["list"]).await?;
    for service in ["EventLog", "State", "Membership", "Sync"] {
        ensure!(
            services.contains(&format!("tributary.v1.{service}")),
            "{services}"
        );
    }
    ensure!(services.contains("grpc.health.v1.Health"), "{services}");
    let described = grpcurl.text(&[], &["describe", "tributary.v1.EventLog"]).await?;
    ensure!(
        described.contains("rpc List") && described.contains("rpc Watch"),
        "{described}"
    );

    let mut shop = Shop::open(&world).await?;
    let seen = watch(&grpcurl, &mut shop).await?;
    shop.export(&world, "west", &seen, &["10.2.0.1"]).await?;
    shop.arrived(&world).await?;
    explained(&grpcurl, &shop.namespace, &seen).await?;

    let nothing = json!({});
    for certificate in [None, Some("foreign")] {
        let why = grpcurl.refused(certificate, &nothing).await?;
        // The handshake fails: grpcurl never gets as far as asking.
        ensure!(
            why.contains("Failed to dial target host"),
            "{certificate:?}: {why}"
        );
    }
    let why = grpcurl.refused(Some("other"), &nothing).await?;
    ensure!(why.contains("PermissionDenied"), "{why}");
    let why = grpcurl
        .refused(Some("operator"), &json!({"clusterset": "other"}))
        .await?;
    ensure!(why.contains("PermissionDenied"), "{why}");
    world.end().await
}

/// Follows the log from now on, exports until an export is seen, and returns its service.
async fn watch(grpcurl: &Grpcurl<'_>, shop: &mut Shop) -> anyhow::Result<String> {
    let filter = json!({"filter": {"kind": "export_upserted", "namespace": shop.namespace}}).to_string();
    let mut command = grpcurl.command(
        Some("operator"),
        &["-d", filter.as_str()],
        &["tributary.v1.EventLog/Watch"],
    );
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let reading = async {
        // Everything in the filter is about exports made after this began; the first name is a service's.
        while let Some(line) = lines.next_line().await? {
            if let Some(name) = line.trim().strip_prefix("\"name\": \"") {
                return Ok(name.trim_end_matches(',').trim_end_matches('"').to_owned());
            }
        }
        anyhow::bail!("the watch ended")
    };
    let exporting = async {
        // The watch may begin after the first of them.
        for index in 0..EXPORTS_MAX {
            let service = format!("seen-{index}");
            shop.export(grpcurl.world, "east", &service, &["10.1.0.1"])
                .await?;
            shop.arrived_in(grpcurl.world, "east").await?;
        }
        anyhow::bail!("{EXPORTS_MAX} exports were made and none was seen")
    };
    let seen = tokio::time::timeout(WAIT, async {
        tokio::select! {
            seen = reading => seen,
            failed = exporting => failed,
        }
    });
    let seen = seen.await.context("the watch saw nothing")??;
    child.kill().await?;
    ensure!(seen.starts_with("seen-"), "not a service of ours: {seen}");
    Ok(seen)
}

/// Every revision that Explain names is one that List returns, about the same export.
async fn explained(grpcurl: &Grpcurl<'_>, namespace: &str, service: &str) -> anyhow::Result<()> {
    let question = json!({"namespace": namespace, "name": service});
    let answer = grpcurl.json("tributary.v1.State/Explain", &question).await?;
    let candidates = answer["candidates"].as_array().cloned().unwrap_or_default();
    ensure!(candidates.len() == 2, "both clusters are candidates: {answer:#}");
    ensure!(
        answer["summary"]
            .as_str()
            .is_some_and(|summary| !summary.is_empty()),
        "{answer:#}"
    );
    for candidate in &candidates {
        let revision: u64 = candidate["revision"].as_str().context("a revision")?.parse()?;
        let request = json!({"fromRevision": revision.to_string(), "limit": 1});
        let page = grpcurl.json("tributary.v1.EventLog/List", &request).await?;
        let event = &page["events"][0];
        ensure!(event["revision"] == candidate["revision"], "{page:#}");
        ensure!(event["cluster"] == candidate["cluster"], "{page:#}");
        let recorded = &event["fact"]["exportUpserted"]["service"];
        ensure!(
            recorded["name"] == service && recorded["namespace"] == namespace,
            "{page:#}"
        );
    }
    Ok(())
}

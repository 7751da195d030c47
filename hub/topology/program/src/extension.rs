//! Owns: extensions of the Runtime SDK as a preview asks them, over HTTP: by addresses that the command line gives, as
//! Cluster API v1.13.6 calls theirs.
//! Never: waits longer than [`CALL_TIMEOUT`], reads more than [`ANSWER_MAX`], or sends anything unencrypted to another
//! machine.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use anyhow::{Context, bail, ensure};
use api_client::{ApiMetrics, api_client};
use clap::Args;
use clusterclass::patch::{
    external::{Extensions, Hook, parts},
    finding::shown,
};
use http::{Request, StatusCode, Uri, header::CONTENT_TYPE, uri::Scheme};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::{Client, Config, client::Body};
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::{runtime::Runtime, time::timeout};

/// Longest time of a call: Cluster API's for a handler that states none.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest answer that is read, bytes.
const ANSWER_MAX: usize = 16 << 20;

/// Addresses of extensions.
#[derive(Debug, Args)]
pub(crate) struct ExtensionArgs {
    /// Address of an extension by the name of its ExtensionConfig, which classes write behind the dot: it is asked for
    /// patches, for variables, and to validate the result; https, or http on this machine; may be repeated
    #[arg(
        long = "extension",
        env = "TRIBUTARY_EXTENSION",
        value_name = "NAME=URL",
        value_delimiter = ','
    )]
    addresses: Vec<String>,
    /// CA bundle (PEM) that the certificates of extensions are checked against; the system's unless given
    #[arg(
        long = "extension-ca",
        env = "TRIBUTARY_EXTENSION_CA",
        value_name = "FILE",
        requires = "addresses"
    )]
    ca: Option<PathBuf>,
    /// Name in the certificates of extensions if it is not the URL's host, as behind a port-forward
    #[arg(
        long = "extension-tls-name",
        env = "TRIBUTARY_EXTENSION_TLS_NAME",
        value_name = "NAME",
        requires = "addresses"
    )]
    tls_name: Option<String>,
}

impl ExtensionArgs {
    /// Makes the way to them.
    ///
    /// # Errors
    ///
    /// An address that is none, or a certificate that cannot be read.
    pub(crate) fn asker(&self) -> anyhow::Result<Asker> {
        api_client::install_crypto_provider()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the runtime's threads")?;
        let mut clients = BTreeMap::new();
        for address in &self.addresses {
            let (name, client) = {
                let _within = runtime.enter();
                self.client(address)
                    .with_context(|| format!("--extension {address}"))?
            };
            ensure!(
                clients.insert(name.clone(), client).is_none(),
                "--extension names {name} twice: give one address"
            );
        }
        Ok(Asker {
            runtime,
            clients,
            limit: CALL_TIMEOUT,
        })
    }

    fn client(&self, address: &str) -> anyhow::Result<(String, Client)> {
        let (name, url) = address.split_once('=').context("give NAME=URL")?;
        ensure!(!name.is_empty(), "give a name before =");
        let uri: Uri = url.parse().context("it is no URL")?;
        let host = uri.host().context("the URL has no host")?;
        ensure!(uri.query().is_none(), "the URL has a query: leave it out");
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => {}
            Some(scheme) if *scheme == Scheme::HTTP && is_loopback(host) => {}
            _ => bail!("use https; http is for extensions on this machine alone"),
        }
        let mut config = Config::new(uri.clone());
        config.default_retry = false;
        config.root_cert_file.clone_from(&self.ca);
        config.tls_server_name.clone_from(&self.tls_name);
        let metrics = ApiMetrics::register(&mut Registry::default());
        let client = api_client(config, metrics).context("cannot make a client of it")?;
        Ok((name.to_owned(), client))
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address: Result<std::net::IpAddr, _> = address.parse();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Asks extensions, one call after the other.
pub(crate) struct Asker {
    runtime: Runtime,
    /// By the names of their ExtensionConfigs.
    clients: BTreeMap<String, Client>,
    /// Longest time of a call.
    limit: Duration,
}

impl fmt::Debug for Asker {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_list().entries(self.clients.keys()).finish()
    }
}

impl Extensions for Asker {
    fn ask(&self, hook: Hook, named: &str, request: &Value) -> Option<Result<Value, String>> {
        let (handler, extension) = parts(named);
        let client = self.clients.get(extension)?.clone();
        let call = call(client, hook, handler, request);
        let answer = self.runtime.block_on(async { timeout(self.limit, call).await });
        Some(match answer {
            Ok(answer) => answer.map_err(|error| api_client::reason(&error)),
            Err(_) => Err(format!("no answer within {} s", self.limit.as_secs())),
        })
    }
}

/// One call of a handler.
async fn call(client: Client, hook: Hook, handler: &str, request: &Value) -> anyhow::Result<Value> {
    let path = format!("{}?timeout={}s", hook.path(handler), CALL_TIMEOUT.as_secs());
    let request = Request::post(path)
        .header(CONTENT_TYPE, "application/json")
        .body(Body::from(request.to_string().into_bytes()))?;
    let answer = client.send(request).await.context("it cannot be called")?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
    let body = match body {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => bail!("its answer has more than {ANSWER_MAX} bytes"),
        Err(error) => bail!("its answer ends early: {error}"),
    };
    if status != StatusCode::OK {
        let said = String::from_utf8_lossy(&body);
        bail!(
            "it answered with HTTP {}: {}",
            status.as_u16(),
            shown(said.trim())
        );
    }
    serde_json::from_slice(&body).context("its answer is no JSON")
}

#[cfg(test)]
mod tests;

//! The client of a cluster's API, one for everything that a process asks. It gives a request up in seconds, notices
//! dead connections, counts, and never repeats a request: the caller knows when to ask again.

mod deadline;
pub mod no_proxy;
mod provider;
mod request;
mod words;

use std::{fs::File, path::Path, time::Duration};

use anyhow::{Context, ensure};
use http::{Request, Uri};
use hyper_util::{
    client::legacy::{Client as HttpClient, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ConfigExt},
    config::Kubeconfig,
};
use tower::{BoxError, ServiceBuilder};

pub use deadline::{
    ANSWER_BYTES_MAX, ANSWER_WAIT, AnswerBounds, EVENT_BYTES_MAX, NoAnswer, TooLarge, WATCH_WAIT,
};
pub use provider::{ProviderError, install_crypto_provider};
pub use request::ApiMetrics;
pub use words::{FileError, Foreign, io_words, reason};

use deadline::Deadline;

/// Longest wait for a TCP connection.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Silence on a connection before TCP probes the other side. A watch may be silent for minutes; with these values it
/// ends 45 s after its API server vanished, as those of client-go do.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(30);
/// Interval of the probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Number of probes that may stay without an answer.
const KEEPALIVE_QUESTIONS: u32 = 3;
/// Time that written bytes may stay unacknowledged.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_WAIT: Duration = Duration::from_secs(30);
/// Time for which an unused connection is kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);

/// Reads a kubeconfig that a person named by `flag`, which may be empty.
pub fn kubeconfig(flag: &str, path: &Path) -> anyhow::Result<Kubeconfig> {
    File::open(path).map_err(|error| FileError::new(flag, path, &error))?;
    Kubeconfig::read_from(path).with_context(|| format!("{flag} {} is no kubeconfig", path.display()))
}

/// A client of the cluster that `config` names.
pub fn api_client(config: Config, metrics: ApiMetrics) -> anyhow::Result<Client> {
    api_client_within(config, metrics, AnswerBounds::default())
}

/// The same with other bounds of answers.
pub fn api_client_within(
    mut config: Config,
    metrics: ApiMetrics,
    bounds: AnswerBounds,
) -> anyhow::Result<Client> {
    heed_no_proxy(&mut config, |name| std::env::var(name).ok());
    ensure!(
        config.proxy_url.is_none(),
        "the API server {} would be reached through the proxy {}, and no proxy is supported: name the server's host in \
         NO_PROXY if HTTPS_PROXY sets the proxy, or remove proxy-url from the kubeconfig",
        config.cluster_url,
        config.proxy_url.unwrap_or_default()
    );
    let credentials = "the credentials for the cluster cannot be used";
    let connector = config
        .rustls_https_connector_with_connector(tcp_connector())
        .context(credentials)?;
    let http = HttpClient::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTION)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer().context(credentials)?)
        .layer(config.extra_headers_layer().context(credentials)?)
        .map_err(BoxError::from)
        .service(http);
    Ok(Client::new(
        Deadline::new(service, metrics, bounds),
        config.default_namespace,
    ))
}

/// A proxy of the environment is for the hosts that NO_PROXY does not leave out; one of the kubeconfig is for all.
fn heed_no_proxy(config: &mut Config, variable: impl Fn(&str) -> Option<String>) {
    let first = |names: [&str; 2]| no_proxy::from_environment(names, &variable);
    let Some(proxy) = &config.proxy_url else { return };
    let of_environment = first(["HTTPS_PROXY", "https_proxy"]).and_then(|proxy| proxy.parse::<Uri>().ok());
    let no_proxy = first(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let url = &config.cluster_url;
    let port = url.port_u16().or(Some(443));
    if of_environment.as_ref() == Some(proxy)
        && no_proxy::is_direct(url.host().unwrap_or_default(), port, &no_proxy)
    {
        config.proxy_url = None;
    }
}

/// Connections that notice when the other side is gone.
fn tcp_connector() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_WAIT));
    tcp.set_keepalive(Some(KEEPALIVE_AFTER));
    tcp.set_keepalive_interval(Some(KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEPALIVE_QUESTIONS));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED_WAIT));
    tcp
}

/// The same limits and counts over a client that has its own way to the cluster, such as a simulated one's.
pub fn over(client: Client, metrics: ApiMetrics) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(
        Deadline::new(service, metrics, AnswerBounds::default()),
        namespace,
    )
}

#[cfg(test)]
mod tests;

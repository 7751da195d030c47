//! The way of a tool to the hub: one connection, one request, an error that says what to do.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, anyhow, bail};
use shared::{
    identity::Role,
    model::advice,
    tls::{Credentials, HubAddress, HubConnector, LiveCredentials, TcpDial, TlsFiles, TlsMetrics, explain},
};
use tonic::{Code, Request, Status, transport::Channel};

use super::print::Output;

/// Longest time for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Which hub, as whom, and how to print.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct HubArgs {
    /// Address of the hub; several are tried in turn
    #[arg(
        long,
        env = "TRIBUTARY_HUB",
        value_name = "https://HOST:PORT",
        value_delimiter = ',',
        required = true
    )]
    pub(super) hub: Vec<HubAddress>,
    /// An operator's or a reader's certificate, its key and the trust roots.
    #[command(flatten)]
    pub(super) tls: TlsFiles,
    /// How to print
    #[arg(long, env = "TRIBUTARY_OUTPUT", value_name = "FORM", default_value = "text")]
    pub(super) output: Output,
}

impl HubArgs {
    /// The flags as they would be typed again.
    pub(super) fn typed(&self) -> String {
        let hubs: Vec<String> = self.hub.iter().map(ToString::to_string).collect();
        let path = |path: &std::path::Path| path.display().to_string();
        let tls = advice::tls_flags(&path(&self.tls.ca), &path(&self.tls.cert), &path(&self.tls.key));
        advice::access(&hubs.join(","), &tls)
    }
}

/// Connects with the given files. `operators` says what only an operator's certificate will do for, if anything.
pub(super) async fn connect(args: &HubArgs, operators: Option<&str>) -> anyhow::Result<Channel> {
    let credentials = Credentials::from_pem(&args.tls.read()?)?;
    let identity = &credentials.facts().identity;
    if let Some(what) = operators.filter(|_| !matches!(identity.role, Role::Operator(_))) {
        bail!(
            "--tls-cert is {identity}, a {}'s certificate: only an operator {what}; \
             `{}` makes such a certificate",
            identity.role.word(),
            advice::certs_operator("DIR")
        );
    }
    let credentials = LiveCredentials::new(credentials);
    let connector = HubConnector::new(
        args.hub.clone(),
        credentials,
        Arc::new(TcpDial),
        TlsMetrics::default(),
    );
    let channel = connector
        .connect_once()
        .await
        .map_err(|error| match explain(&error) {
            Some(reason) => anyhow!(reason),
            None => anyhow!(error),
        });
    channel.context("cannot connect")
}

/// A request that does not wait for ever.
pub(super) fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(REQUEST_TIMEOUT);
    request
}

/// What a failed request means for the one who typed it.
pub(super) fn failed(status: &Status) -> anyhow::Error {
    if let Some(reason) = explain(status) {
        return anyhow!(reason);
    }
    let message = status.message();
    match status.code() {
        Code::DeadlineExceeded | Code::Cancelled => anyhow!(
            "the hub did not answer within {} s; whether a decision was taken shows `{}`",
            REQUEST_TIMEOUT.as_secs(),
            advice::member_list()
        ),
        Code::Unavailable => anyhow!("the hub cannot answer now: {message}; try again"),
        Code::Unimplemented => anyhow!(
            "what answers at --hub does not serve this: it may be the port at which clusters join (8444 by default); use the \
             hub's gRPC port (8443 by default). If it is that port, the hub is of an older release: update it"
        ),
        Code::PermissionDenied => anyhow!("the hub refuses: {message}"),
        _ => anyhow!("{message}"),
    }
}

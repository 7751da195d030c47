//! The way to the hub: which one, with whose certificate, one connection, one request, and errors that say what to do.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow, bail, ensure};
use shared::{
    doctor::look,
    identity::Role,
    model::advice,
    tls::{
        Credentials, HubAddress, HubConnector, HubDial, LiveCredentials, Pem as PemBytes, TlsMetrics, explain,
    },
};
use tonic::{Code, Request, Status, transport::Channel};

use crate::{
    context::{Context, Pem, Store, bytes},
    usage::Usage,
};

/// Longest time for one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Hub and client certificate. A context fills in what no flag and no variable gives.
#[derive(Debug, Clone, clap::Args)]
pub struct AccessArgs {
    /// Context to use instead of the current one (`tributary context list`)
    #[arg(long, env = "TRIBUTARY_CONTEXT", value_name = "NAME")]
    context: Option<String>,
    /// Address of the hub instead of the context's; several are tried in turn
    #[arg(
        long,
        env = "TRIBUTARY_HUB",
        value_name = "https://HOST:PORT",
        value_delimiter = ','
    )]
    hub: Vec<HubAddress>,
    /// Certificate of an operator or a reader (PEM), instead of the context's
    #[arg(long = "tls-cert", env = "TRIBUTARY_TLS_CERT", value_name = "FILE")]
    cert: Option<PathBuf>,
    /// Private key of that certificate (PEM, PKCS#8), instead of the context's
    #[arg(long = "tls-key", env = "TRIBUTARY_TLS_KEY", value_name = "FILE")]
    key: Option<PathBuf>,
    /// Certificates of the trusted authorities (PEM), instead of the context's
    #[arg(long = "tls-ca", env = "TRIBUTARY_TLS_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// A hub, and credentials that have been read and checked.
pub struct Access {
    /// Addresses of the hub, tried in turn.
    pub hubs: Vec<HubAddress>,
    /// The certificate, its key and the trust roots.
    pub credentials: Credentials,
    /// The bytes that they were made from.
    pub pem: PemBytes,
}

impl AccessArgs {
    /// True if flags and variables say everything, so that no context is needed.
    fn is_whole(&self) -> bool {
        let given = [&self.cert, &self.key, &self.ca]
            .iter()
            .all(|file| file.is_some());
        self.context.is_none() && given && !self.hub.is_empty()
    }

    /// Puts flags, variables and context together, and reads the files.
    pub fn access(&self) -> anyhow::Result<Access> {
        let context = if self.is_whole() {
            None
        } else {
            Store::of_user()?.context(self.context.as_deref())?
        };
        self.access_with(context.as_ref())
    }

    fn access_with(&self, context: Option<&Context>) -> anyhow::Result<Access> {
        let hubs = match context {
            Some(context) if self.hub.is_empty() => context.hub.clone(),
            _ => self.hub.clone(),
        };
        if hubs.is_empty() {
            return Err(missing("--hub"));
        }
        let pem = |given: &Option<PathBuf>, kept: Option<&Pem>, flag: &'static str| {
            let given = given.clone().map(Pem::File);
            let pem = given.as_ref().or(kept).ok_or_else(|| missing(flag))?;
            bytes(pem, flag)
        };
        let pem = PemBytes {
            cert: pem(
                &self.cert,
                context.map(|context| &context.certificate),
                "--tls-cert",
            )?,
            key: pem(&self.key, context.map(|context| &context.key), "--tls-key")?,
            ca: pem(&self.ca, context.map(|context| &context.ca), "--tls-ca")?,
        };
        let credentials = Credentials::from_pem(&pem);
        let credentials = match context {
            Some(context) => credentials.with_context(|| format!("context {}", context.name))?,
            None => credentials?,
        };
        if let Some(context) = context.filter(|_| self.cert.is_none()) {
            of_clusterset(context, &credentials)?;
        }
        in_time(&credentials)?;
        Ok(Access {
            hubs,
            credentials,
            pem,
        })
    }

    /// The flags as they would be typed again.
    fn typed_with(&self, context: Option<&Context>) -> String {
        let mut typed = Vec::new();
        if let Some(context) = context {
            typed.push(advice::context_flag(&context.name));
        }
        let hubs: Vec<String> = self.hub.iter().map(ToString::to_string).collect();
        let mut flag = |flag: &str, value: String| typed.push(format!("{flag} {}", advice::quoted(&value)));
        if !hubs.is_empty() {
            flag("--hub", hubs.join(","));
        }
        for (name, file) in [
            ("--tls-ca", &self.ca),
            ("--tls-cert", &self.cert),
            ("--tls-key", &self.key),
        ] {
            if let Some(file) = file {
                flag(name, file.display().to_string());
            }
        }
        typed.join(" ")
    }

    /// The name of the context that is used; `None`: flags and variables say everything, or there is none.
    pub fn context_name(&self) -> Option<String> {
        if self.is_whole() {
            return None;
        }
        self.known_context().map(|context| context.name)
    }

    /// The flags as they would be typed again; those of a call that has reached the hub.
    pub fn typed(&self) -> String {
        let context = if self.is_whole() {
            None
        } else {
            self.known_context()
        };
        self.typed_with(context.as_ref())
    }

    /// The context, unless its file cannot be read: then the call has failed already.
    fn known_context(&self) -> Option<Context> {
        let store = Store::of_user().ok()?;
        store.context(self.context.as_deref()).ok().flatten()
    }
}

/// The error for a hub or a file that neither flags nor a context name.
fn missing(flag: &str) -> anyhow::Error {
    Usage(format!(
        "{flag} is missing, and no context is current: give --hub, --tls-ca, --tls-cert and --tls-key, or make a \
         context with `{}`",
        advice::context_set("NAME")
    ))
    .into()
}

/// Refuses a context whose certificate was replaced with one of another clusterset.
fn of_clusterset(context: &Context, credentials: &Credentials) -> anyhow::Result<()> {
    let clusterset = credentials.facts().identity.clusterset.to_string();
    if let Some(expected) = context
        .clusterset
        .as_ref()
        .filter(|expected| **expected != clusterset)
    {
        bail!(
            "context {} is of clusterset {expected}, and its certificate is of {clusterset}: give the context \
            another certificate with `{}`",
            context.name,
            advice::context_set(&context.name)
        );
    }
    Ok(())
}

/// Refuses a certificate that every hub would refuse, because of its time.
fn in_time(credentials: &Credentials) -> anyhow::Result<()> {
    let facts = credentials.facts();
    let (identity, now) = (&facts.identity, look::now());
    let at = |at: shared::model::UnixMillis| {
        let at = i64::try_from(at.0)
            .ok()
            .and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        at.map(|at| format!("{at:.0}")).unwrap_or_default()
    };
    ensure!(
        facts.not_before <= now,
        "the certificate {identity} is not valid before {}: is this machine's clock behind?",
        at(facts.not_before)
    );
    let issue = match &identity.role {
        Role::Reader(_) => advice::certs_reader("DIR"),
        _ => advice::certs_operator("DIR"),
    };
    ensure!(
        now < facts.not_after,
        "the certificate {identity} expired at {}: make another one with `{issue}`, and name it with --tls-cert and \
        --tls-key, or in the context with `{}`",
        at(facts.not_after),
        advice::context_set("NAME")
    );
    Ok(())
}

impl Access {
    /// Connects. `operators` is what an operator's certificate is needed for, if it is.
    pub async fn connect(&self, operators: Option<&str>) -> anyhow::Result<Channel> {
        let identity = &self.credentials.facts().identity;
        if let Some(what) = operators.filter(|_| !matches!(identity.role, Role::Operator(_))) {
            bail!(
                "--tls-cert is {identity}, a {}'s certificate: only an operator {what}; \
                 `{}` makes such a certificate",
                identity.role.word(),
                advice::certs_operator("DIR")
            );
        }
        let connector = HubConnector::new(
            self.hubs.clone(),
            LiveCredentials::new(self.credentials.clone()),
            Arc::new(HubDial::from_environment()?),
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
}

/// A request that does not wait for ever.
pub fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(REQUEST_TIMEOUT);
    request
}

/// The error for a failed request, with what to do.
pub fn failed(status: &Status) -> anyhow::Error {
    if let Some(reason) = explain(status) {
        return anyhow!(reason);
    }
    let message = status.message();
    match status.code() {
        Code::DeadlineExceeded | Code::Cancelled => anyhow!(
            "the hub did not answer within {} s; `{}` shows whether it took the decision",
            REQUEST_TIMEOUT.as_secs(),
            advice::member_list()
        ),
        Code::Unavailable => anyhow!("the hub cannot answer now: {message}; try again"),
        Code::Unimplemented => anyhow!(
            "the server at --hub does not serve this call: it may be the hub's join port (8444 by default); use its \
            gRPC port (8443 by default). If it is that port, the hub is of an older release: update it"
        ),
        Code::PermissionDenied => anyhow!("the hub refuses: {message}"),
        _ => anyhow!("{message}"),
    }
}

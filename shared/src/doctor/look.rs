//! Owns: looking at the files of this process's certificate, and at hubs: name, port, handshake, one question. Every step
//! has a time.
//! Never: says what is wrong, tries again, or asks a hub to do anything.

use std::{io, sync::Arc, time::Duration};

use proto::v1::{self, state_client::StateClient};
use tokio::{
    net::{TcpStream, lookup_host},
    time::timeout,
};
use tonic::{Code, Request, Status};
use x509_parser::{
    extensions::GeneralName,
    prelude::{FromDer, X509Certificate},
};

use super::{
    hub::{Answer, HubSeen, NoHandshake, NotVerified, PortProblem, Shown},
    own::{FilesProblem, OwnCertificate, OwnSeen},
};
use crate::{
    identity::{Identity, Role},
    model::{UnixMillis, sync::MESSAGE_BYTES_MAX},
    tls::{
        BoxedIo, Credentials, CredentialsError, Dial, HandshakeSeen, HubAddress, HubConnector, HubDial,
        LiveCredentials, NotTheHub, TlsFiles, TlsMetrics, certificates_in, explain,
    },
};

/// Longest time for one step.
pub const STEP_WAIT: Duration = Duration::from_secs(4);
/// Most hubs that are looked at.
pub const HUBS_MAX: usize = 8;
/// Most addresses of a name that are shown and tried.
const ADDRESSES_MAX: usize = 8;
/// In which header a hub says its time.
pub const TIME_HEADER: &str = "date";

/// Now, by this machine's clock.
pub fn now() -> UnixMillis {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    UnixMillis(since.map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

/// The files, and the credentials if they can be used.
pub fn own(files: &TlsFiles) -> (OwnSeen, Option<Credentials>) {
    let read = files.read().and_then(|pem| {
        let chain = certificates_in("--tls-cert", &pem.cert)?;
        Ok((Credentials::from_pem(&pem)?, chain))
    });
    let key_for_all = files.key_is_world_readable();
    let (credentials, chain) = match read {
        Ok(read) => read,
        Err(error) => {
            let files = Err(problem(&error));
            return (OwnSeen { files, key_for_all }, None);
        }
    };
    let facts = credentials.facts().clone();
    let leads_to_root = match credentials.pin() {
        // A hub's: it says itself which authority it leads to.
        Some(_) => Ok(()),
        None => credentials.judge(&chain),
    };
    let certificate = OwnCertificate {
        identity: facts.identity.to_string(),
        role: facts.identity.role.word().to_owned(),
        name: facts.identity.role.name().to_owned(),
        issuer: facts.issuer.into(),
        not_before: facts.not_before,
        not_after: facts.not_after,
        leads_to_root,
    };
    let files = Ok(certificate);
    (OwnSeen { files, key_for_all }, Some(credentials))
}

fn problem(error: &CredentialsError) -> FilesProblem {
    let said = error.to_string();
    match error {
        CredentialsError::Identity(_) => FilesProblem::NoIdentity(said),
        CredentialsError::Pair(_) => FilesProblem::OtherKey(said),
        CredentialsError::Roots(_) => FilesProblem::Roots(said),
        CredentialsError::Malformed { file: "--tls-ca", .. } => FilesProblem::Roots(said),
        _ => FilesProblem::Unreadable(said),
    }
}

/// A hub at an address. Without credentials nothing is looked at behind its port.
pub async fn hub(address: &HubAddress, credentials: Option<&Credentials>) -> HubSeen {
    let mut seen = HubSeen {
        address: address.to_string(),
        host: address.host.to_string(),
        name: Ok(Vec::new()),
        port: None,
        shown: None,
        answer: None,
    };
    match HubDial::from_environment() {
        Ok(dial) => match dial.proxy_of(address) {
            Some(proxy) => behind_proxy(&mut seen, (dial, proxy), address, credentials).await,
            None => straight(&mut seen, address, credentials).await,
        },
        Err(error) => seen.name = Err(error.to_string()),
    }
    seen
}

/// A hub behind a proxy, which resolves the hub's name.
async fn behind_proxy(
    seen: &mut HubSeen,
    (dial, proxy): (HubDial, String),
    address: &HubAddress,
    credentials: Option<&Credentials>,
) {
    seen.name = Ok(vec![proxy]);
    match timeout(STEP_WAIT, dial.dial(address.clone())).await {
        Ok(Ok(stream)) => behind_port(seen, stream, address, credentials).await,
        Ok(Err(error)) => seen.port = Some(Err(PortProblem::Other(error.to_string()))),
        Err(_) => seen.port = Some(Err(PortProblem::Silent)),
    }
}

async fn straight(seen: &mut HubSeen, address: &HubAddress, credentials: Option<&Credentials>) {
    let resolved = match timeout(STEP_WAIT, lookup_host((&*address.host, address.port))).await {
        Ok(Ok(resolved)) => resolved.take(ADDRESSES_MAX).collect::<Vec<_>>(),
        Ok(Err(error)) => {
            seen.name = Err(error.to_string());
            return;
        }
        Err(_) => {
            seen.name = Err(format!("no answer within {} s", STEP_WAIT.as_secs()));
            return;
        }
    };
    seen.name = Ok(resolved.iter().map(|one| one.ip().to_string()).collect());
    if resolved.is_empty() {
        return;
    }
    let socket = match timeout(STEP_WAIT, TcpStream::connect(&*resolved)).await {
        Ok(Ok(socket)) => socket,
        tried => {
            seen.port = Some(Err(port_problem(tried.ok())));
            return;
        }
    };
    behind_port(seen, Box::new(socket), address, credentials).await;
}

/// The thing behind a port that could be dialled.
async fn behind_port(
    seen: &mut HubSeen,
    socket: BoxedIo,
    address: &HubAddress,
    credentials: Option<&Credentials>,
) {
    seen.port = Some(Ok(()));
    let Some(credentials) = credentials else {
        return;
    };
    let shown = match timeout(STEP_WAIT, credentials.look(address, socket)).await {
        Ok(Ok(handshake)) => Ok(shown(&handshake)),
        Ok(Err(error)) => Err(no_handshake(&error)),
        Err(_) => Err(NoHandshake::Silent),
    };
    let good = shown
        .as_ref()
        .is_ok_and(|shown| shown.http2 && shown.verified.is_ok());
    seen.shown = Some(shown);
    if good {
        seen.answer = Some(ask(address, credentials).await);
    }
}

fn port_problem(tried: Option<io::Result<TcpStream>>) -> PortProblem {
    match tried {
        None => PortProblem::Silent,
        Some(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => PortProblem::Refused,
        Some(Err(error)) if error.kind() == io::ErrorKind::TimedOut => PortProblem::Silent,
        Some(Err(error)) => PortProblem::Other(error.to_string()),
        Some(Ok(_)) => PortProblem::Other("it was taken".to_owned()),
    }
}

fn no_handshake(error: &io::Error) -> NoHandshake {
    use rustls::{AlertDescription as Alert, Error as Tls};
    let said = error.to_string();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Tls>());
    match inner {
        Some(Tls::InvalidMessage(_)) => NoHandshake::NotTls(said),
        Some(Tls::PeerIncompatible(_) | Tls::NoApplicationProtocol) => NoHandshake::NotOurTls(said),
        Some(Tls::AlertReceived(Alert::NoApplicationProtocol | Alert::ProtocolVersion)) => {
            NoHandshake::NotOurTls(said)
        }
        _ => NoHandshake::Other(said),
    }
}

fn shown(seen: &HandshakeSeen) -> Shown {
    let certificate = seen.chain.first();
    let der = certificate.map_or(&[][..], |one| one.as_ref());
    let identity = Identity::from_certificate(der);
    Shown {
        http2: seen.http2,
        identity: identity
            .map(|identity| identity.to_string())
            .map_err(|error| error.to_string()),
        names: names(der),
        verified: seen.verified.as_ref().copied().map_err(not_verified),
    }
}

fn names(der: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else {
        return Vec::new();
    };
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string());
            let six = <[u8; 16]>::try_from(*bytes).map(|bytes| std::net::IpAddr::from(bytes).to_string());
            four.or(six).ok()
        }
        _ => None,
    };
    names.value.general_names.iter().filter_map(name).collect()
}

fn not_verified(error: &rustls::Error) -> NotVerified {
    use rustls::{CertificateError as Bad, Error as Tls};
    match error {
        Tls::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => NotVerified::UnknownIssuer,
        Tls::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => NotVerified::Expired,
        Tls::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => NotVerified::NotYet,
        Tls::InvalidCertificate(Bad::Other(other)) if other.0.is::<NotTheHub>() => {
            NotVerified::Somebody(other.0.to_string())
        }
        // Ours: no authority that we trust certifies such identities.
        Tls::InvalidCertificate(Bad::Other(_)) => NotVerified::UnknownIssuer,
        other => NotVerified::Other(other.to_string()),
    }
}

/// One request, whoever we are: a member reads what concerns it in its clusterset, an operator and a reader all of it.
async fn ask(address: &HubAddress, credentials: &Credentials) -> Result<Answer, String> {
    let asked = now();
    let silent = format!("no answer within {} s", STEP_WAIT.as_secs());
    let channel = match timeout(
        STEP_WAIT,
        connector(vec![address.clone()], credentials).connect_once(),
    )
    .await
    {
        Ok(Ok(channel)) => channel,
        Ok(Err(error)) => return Err(explain(&error).unwrap_or_else(|| error.to_string())),
        Err(_) => return Err(silent),
    };
    // A member reads of itself only.
    let cluster = match &credentials.facts().identity.role {
        Role::Cluster(cluster) => cluster.to_string(),
        _ => String::new(),
    };
    let mut request = Request::new(v1::GetStateRequest {
        cluster,
        parts: vec![v1::StatePart::Members.into()],
        page_size: 1,
        ..Default::default()
    });
    request.set_timeout(STEP_WAIT);
    let mut state = StateClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let answer = match timeout(STEP_WAIT, state.get(request)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(status)) => return Err(refused(&status)),
        Err(_) => return Err(silent),
    };
    let answered = now();
    let clock = answer
        .metadata()
        .get(TIME_HEADER)
        .and_then(|time| clock(time.to_str().ok()?));
    let by = answer.into_inner().answered_by.unwrap_or_default();
    Ok(Answer {
        version: by.hub_version,
        clock,
        asked,
        answered,
    })
}

/// The way to hubs.
pub fn connector(hubs: Vec<HubAddress>, credentials: &Credentials) -> HubConnector {
    let live = LiveCredentials::new(credentials.clone());
    // Faults of the environment are reported where hubs are checked.
    let dial = HubDial::from_environment().unwrap_or_default();
    HubConnector::new(hubs, live, Arc::new(dial), TlsMetrics::default())
}

/// The text of a refusal.
pub fn refused(status: &Status) -> String {
    if let Some(reason) = explain(status) {
        return reason;
    }
    match status.code() {
        Code::Unimplemented => "what answers is no hub of this release".to_owned(),
        _ => status.message().to_owned(),
    }
}

/// A time as a hub says it in a header; nothing if no calendar has it.
pub fn time_header(at: UnixMillis) -> Option<String> {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(at.0).ok()?).ok()?;
    let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
    printer.timestamp_to_rfc9110_string(&time).ok()
}

/// The time in a header, in milliseconds.
fn clock(text: &str) -> Option<UnixMillis> {
    let time = jiff::fmt::rfc2822::parse(text).ok()?;
    u64::try_from(time.timestamp().as_millisecond())
        .ok()
        .map(UnixMillis)
}

#[cfg(test)]
mod tests;

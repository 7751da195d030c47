//! Owns: what is wrong with a hub as somebody sees it who dials it: its name, its port, what it shows in the handshake,
//! what it answers, its clock. Pure.
//! Never: dials.

use super::{
    own::lasting,
    report::{Check, Verdict},
};
use crate::model::{UnixMillis, advice};

/// By how much a clock may differ from the hub's, in milliseconds. Times of certificates are seconds, and what agents and
/// hub agree on does not depend on their clocks; people who compare logs do.
pub const CLOCK_DIFFERENCE_MAX: u64 = 10_000;
/// The least step of the time that a hub says, in milliseconds.
const CLOCK_STEP: u64 = 1_000;

/// The findings at one address. A step behind a failed one is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubSeen {
    /// As it was given.
    pub address: String,
    /// The host in it.
    pub host: String,
    /// The addresses of its name.
    pub name: Result<Vec<String>, String>,
    /// The outcome of connecting to the port.
    pub port: Option<Result<(), PortProblem>>,
    /// The certificates in the handshake.
    pub shown: Option<Result<Shown, NoHandshake>>,
    /// The answer to a request with our certificate.
    pub answer: Option<Result<Answer, String>>,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortProblem {
    /// Nothing listens there.
    Refused,
    /// Nothing answers.
    Silent,
    /// Something else.
    Other(String),
}

/// Why there was no handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoHandshake {
    /// It speaks no TLS.
    NotTls(String),
    /// It speaks no TLS 1.3, or no HTTP/2.
    NotOurTls(String),
    /// It does not answer.
    Silent,
    /// Something else.
    Other(String),
}

/// The certificates in the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// HTTP/2 was agreed on.
    pub http2: bool,
    /// The identity that its certificate states.
    pub identity: Result<String, String>,
    /// The names and addresses that its certificate bears.
    pub names: Vec<String>,
    /// The check that it is our hub.
    pub verified: Result<(), NotVerified>,
}

/// Why it is not taken for our hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotVerified {
    /// No authority in `--tls-ca` has issued its certificate.
    UnknownIssuer,
    /// Its certificate has expired.
    Expired,
    /// Its certificate is not valid yet.
    NotYet,
    /// It is another process; the message about it.
    Somebody(String),
    /// Something else.
    Other(String),
}

/// A hub's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its version.
    pub version: String,
    /// Its clock, in whole seconds; older hubs do not send it.
    pub clock: Option<UnixMillis>,
    /// Time at which it was asked, by our clock.
    pub asked: UnixMillis,
    /// Time at which the answer was there, by our clock.
    pub answered: UnixMillis,
}

impl HubSeen {
    /// Returns true if it accepted our certificate.
    pub fn took_us(&self) -> bool {
        matches!(self.answer, Some(Ok(_)))
    }
}

/// Checks a hub. The consequences of a fault are not reported.
pub fn hub(seen: &HubSeen) -> Vec<Check> {
    let mut checks = vec![name(seen)];
    checks.extend(seen.port.as_ref().map(|tried| port(seen, tried)));
    match &seen.shown {
        Some(Ok(shown)) => checks.extend(certificate(seen, shown)),
        Some(Err(problem)) => checks.push(handshake(seen, problem)),
        None => {}
    }
    match &seen.answer {
        Some(Ok(answer)) => {
            let version = format!("{} answers, version {}", seen.address, answer.version);
            checks.push(Check::fine("hub-answer", version));
            checks.push(clock(seen, answer));
        }
        Some(Err(said)) => checks.push(Check::fault(
            "hub-answer",
            format!("{} does not answer: {said}", seen.address),
            "do what it says; the hub's own log and its doctor there say more",
        )),
        None => {}
    }
    checks
}

fn name(seen: &HubSeen) -> Check {
    let host = &seen.host;
    match &seen.name {
        Ok(addresses) if !addresses.is_empty() => {
            Check::fine("hub-name", format!("{host} is {}", addresses.join(", ")))
        }
        Ok(_) => Check::fault(
            "hub-name",
            format!("{host} has no addresses"),
            "correct the name in --hub, or give it an address in DNS",
        ),
        Err(said) => Check::fault(
            "hub-name",
            format!("{host} cannot be resolved: {said}"),
            "correct the name in --hub, or see that DNS answers here: it is resolved anew at every attempt",
        ),
    }
}

fn port(seen: &HubSeen, tried: &Result<(), PortProblem>) -> Check {
    let (name, address) = ("hub-port", &seen.address);
    match tried {
        Ok(()) => Check::fine(name, format!("{address} takes connections")),
        Err(PortProblem::Refused) => Check::fault(
            name,
            format!("nothing listens at {address}"),
            "start the hub, or correct the port in --hub: it is that of --listen, or of the Service in front of it",
        ),
        Err(PortProblem::Silent) => Check::fault(
            name,
            format!("{address} does not answer a connection"),
            "let TCP to this port through: a firewall, a security group or a NetworkPolicy drops it",
        ),
        Err(PortProblem::Other(said)) => Check::fault(
            name,
            format!("{address} cannot be connected to: {said}"),
            "see to the network between here and the hub",
        ),
    }
}

/// A fault: something ends TLS in front of a hub. Says what to do about it.
fn proxy(what: String) -> Check {
    Check::fault(
        "hub-tls",
        format!("{what}: something in front of the hub ends TLS"),
        "pass TCP through to the hub as it is (a Service of type LoadBalancer, a TCP or TLS passthrough route); a proxy \
         that ends TLS, inspects it or speaks HTTP cannot stand there",
    )
}

fn handshake(seen: &HubSeen, problem: &NoHandshake) -> Check {
    let address = &seen.address;
    match problem {
        NoHandshake::NotTls(said) => proxy(format!("{address} does not speak TLS ({said})")),
        NoHandshake::NotOurTls(said) => proxy(format!("{address} has no TLS 1.3 with HTTP/2 ({said})")),
        NoHandshake::Silent => Check::fault(
            "hub-tls",
            format!("{address} takes connections and says nothing in TLS"),
            "see whether the hub hangs (its admin port, /livez), or a load balancer without a hub behind it answers",
        ),
        NoHandshake::Other(said) => Check::fault(
            "hub-tls",
            format!("{address} breaks the handshake off: {said}"),
            "see whether a hub listens there: its debug log says why it refuses handshakes",
        ),
    }
}

fn certificate(seen: &HubSeen, shown: &Shown) -> Vec<Check> {
    let address = &seen.address;
    let name = "hub-certificate";
    if !shown.http2 {
        return vec![proxy(format!("{address} does not agree on HTTP/2 (ALPN)"))];
    }
    let fault = |what: String, fix: &str| vec![Check::fault(name, what, fix)];
    match (&shown.verified, &shown.identity) {
        (Ok(()), _) => {
            let mut checks = vec![Check::fine(name, shown.identity.clone().unwrap_or_default())];
            if !shown.names.contains(&seen.host) {
                checks.push(Check::note(
                    "hub-certificate-name",
                    format!(
                        "the hub's certificate does not bear the name {}: agents know a hub by its identity and do not mind, \
                         grpcurl and others do; certs hub --dns-name and --ip put names into it",
                        seen.host
                    ),
                ));
            }
            checks
        }
        // Nobody's certificate of ours: what answers is no hub of anybody's.
        (Err(_), Err(said)) => vec![proxy(format!(
            "{address} shows a certificate that is no hub's ({said})"
        ))],
        (Err(NotVerified::UnknownIssuer), Ok(identity)) => fault(
            format!("{address} shows {identity}, of an authority that is not in --tls-ca"),
            "put the certificate of the hub's authority (its ca.crt) into the file of --tls-ca; if it should be the same, \
             another hub answers there",
        ),
        (Err(NotVerified::Expired), Ok(identity)) => fault(
            format!(
                "the certificate of {identity} at {address} has expired, or this machine's clock is ahead"
            ),
            "issue another one for the hub (tributary-hub certs hub); if it has not expired, set this machine's clock",
        ),
        (Err(NotVerified::NotYet), Ok(identity)) => fault(
            format!(
                "the certificate of {identity} at {address} is not valid yet, or this machine's clock is behind"
            ),
            "set this machine's clock (NTP), or that of whoever issued the hub's certificate",
        ),
        (Err(NotVerified::Somebody(said)), Ok(_)) => fault(
            said.clone(),
            "correct the address in --hub, or use a certificate of that clusterset",
        ),
        (Err(NotVerified::Other(said)), Ok(identity)) => fault(
            format!("the certificate of {identity} at {address} is refused: {said}"),
            &format!(
                "issue another one for the hub with `{}`",
                advice::certs_hub("DIR")
            ),
        ),
    }
}

fn clock(seen: &HubSeen, answer: &Answer) -> Check {
    let name = "hub-clock";
    let Some(shown) = answer.clock else {
        return Check::skipped(name, "this hub does not say its time");
    };
    // The hub read its clock between the question and the answer, and cut off what is below a second.
    let ahead = shown.0.saturating_sub(answer.answered.0);
    let behind = answer.asked.0.saturating_sub(shown.0.saturating_add(CLOCK_STEP));
    let (difference, word) = if ahead > 0 {
        (ahead, "behind")
    } else {
        (behind, "ahead of")
    };
    if difference <= CLOCK_DIFFERENCE_MAX {
        return Check::fine(name, "this machine's clock and the hub's are together");
    }
    Check::fault(
        name,
        format!(
            "this machine's clock is {} {word} the hub's at {}",
            lasting(difference),
            seen.address
        ),
        "set the clocks of both by NTP: certificates are judged by them, and their logs are compared",
    )
}

/// Returns true if all of these checks are good.
pub fn all_fine(checks: &[Check]) -> bool {
    let good = |check: &Check| {
        matches!(
            check.verdict,
            Verdict::Fine(_) | Verdict::Note(_) | Verdict::Skipped(_)
        )
    };
    checks.iter().all(good)
}

#[cfg(test)]
mod tests;

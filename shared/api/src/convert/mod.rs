//! Kubernetes objects → the model: what an agent observes in its cluster, judged by the rules that the hub
//! judges by. It reads objects that it is given; it never talks to a cluster and never writes an object.

mod export;
mod health;
mod property;
mod slice;

use model::{Protocol, validate::InvalidValue};

pub use export::{ExportProblem, Exported, NamespaceDenyList, export_from};
pub use health::{ProbeAnswer, probe_answer, shown_name};
pub use property::property_from;
pub use slice::{SliceProblem, service_of_slice, slice_from};

/// A port number of Kubernetes as the model has it.
fn port_number(field: &str, number: i32) -> Result<u16, InvalidValue> {
    match u16::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(InvalidValue::new(field, format!("is {number}; use 1 to 65535"))),
    }
}

/// A protocol of Kubernetes; absent means TCP, as for the API server.
fn protocol(field: &str, protocol: Option<&str>) -> Result<Protocol, InvalidValue> {
    match protocol {
        None | Some("TCP") => Ok(Protocol::Tcp),
        Some("UDP") => Ok(Protocol::Udp),
        Some("SCTP") => Ok(Protocol::Sctp),
        Some(_) => Err(InvalidValue::new(
            field,
            "is none of TCP, UDP and SCTP; use one of them",
        )),
    }
}

/// A text that may be absent; the empty one counts as absent, as in Kubernetes.
fn text(text: Option<&String>) -> Option<Box<str>> {
    text.filter(|text| !text.is_empty())
        .map(|text| text.as_str().into())
}

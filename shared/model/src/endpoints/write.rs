//! Owns: writing endpoints as an encoder of protobuf does.
//! Never: reads.

use std::{
    fmt::{self, Write as _},
    net::IpAddr,
};

use super::{ADDRESS, ENDPOINT, HOSTNAME, READY, SERVING, TERMINATING, ZONE};
use crate::Endpoint;

/// Writes one endpoint behind others.
pub(super) fn endpoint(bytes: &mut Vec<u8>, endpoint: &Endpoint) {
    let mut fields = Vec::new();
    for one in &endpoint.addresses {
        address(&mut fields, one);
    }
    for (tag, flag) in [
        (READY, endpoint.ready),
        (SERVING, endpoint.serving),
        (TERMINATING, endpoint.terminating),
    ] {
        if let Some(flag) = flag {
            fields.extend([tag, u8::from(flag)]);
        }
    }
    for (tag, text) in [(HOSTNAME, &endpoint.hostname), (ZONE, &endpoint.zone)] {
        if let Some(text) = text {
            field(&mut fields, tag, text.as_bytes());
        }
    }
    field(bytes, ENDPOINT, &fields);
}

/// Writes a value with its length behind its tag.
pub(super) fn field(bytes: &mut Vec<u8>, tag: u8, value: &[u8]) {
    bytes.push(tag);
    let mut length = value.len();
    while length > 0x7f {
        bytes.push(0x80 | (length & 0x7f) as u8);
        length >>= 7;
    }
    bytes.push(length as u8);
    bytes.extend_from_slice(value);
}

/// The canonical text.
fn address(bytes: &mut Vec<u8>, address: &IpAddr) {
    bytes.extend([ADDRESS, 0]);
    let start = bytes.len();
    // Writing into bytes cannot fail.
    let _ = write!(Text(bytes), "{address}");
    // No address has more than 39 characters: one byte says how many.
    bytes[start - 1] = (bytes.len() - start) as u8;
}

/// Text behind what was written before.
struct Text<'a>(&'a mut Vec<u8>);

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.extend_from_slice(part.as_bytes());
        Ok(())
    }
}

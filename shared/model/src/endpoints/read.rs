//! Owns: reading endpoints where they are, and the scan that says whether they can be read so.
//! Never: allocates.

use std::{
    fmt::{self, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use super::{ADDRESS, ENDPOINT, HOSTNAME, READY, SERVING, TERMINATING, ZONE};

/// Longest text of an address, in bytes: eight groups of four digits.
const ADDRESS_TEXT_BYTES_MAX: usize = 39;
/// Most bytes that a length takes: no bytes that are scanned are longer than that says.
const LENGTH_BYTES_MAX: usize = 4;
/// In the low bits of a tag: a length and as many bytes follow. Else a flag does, in one byte.
const WITH_LENGTH: u8 = 2;

/// The fields of some bytes that were scanned: each tag with its value. It ends where the bytes do, or where they are
/// none that were.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (length, rest) = if tag & 7 == WITH_LENGTH {
            length(rest)?
        } else {
            (1, rest)
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }
}

/// A length in the fewest bytes that can say it, and what follows.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut length = 0;
    for (place, &byte) in bytes.iter().enumerate().take(LENGTH_BYTES_MAX) {
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            // A last byte that says nothing was not needed.
            return (byte != 0 || place == 0).then(|| (length, &bytes[place + 1..]));
        }
    }
    None
}

/// Number of endpoints in these bytes; `None`: they are not in the form in which endpoints are written.
pub(super) fn scan(bytes: &[u8]) -> Option<u32> {
    let (mut fields, mut count) = (Fields(bytes), 0);
    for (tag, endpoint) in fields.by_ref() {
        if tag != ENDPOINT || !is_endpoint(endpoint) {
            return None;
        }
        count += 1;
    }
    fields.0.is_empty().then_some(count)
}

fn is_endpoint(bytes: &[u8]) -> bool {
    let (mut fields, mut before) = (Fields(bytes), 0);
    for (tag, value) in fields.by_ref() {
        // Only addresses may be there more than once.
        let in_order = tag > before || (tag == ADDRESS && before == ADDRESS);
        let is_value = match tag {
            ADDRESS => address(value).is_some(),
            READY | SERVING | TERMINATING => matches!(value, [0 | 1]),
            HOSTNAME | ZONE => std::str::from_utf8(value).is_ok(),
            _ => false,
        };
        if !in_order || !is_value {
            return false;
        }
        before = tag;
    }
    fields.0.is_empty()
}

/// An address, if this is its canonical text.
pub(super) fn address(text: &[u8]) -> Option<IpAddr> {
    if text.len() > ADDRESS_TEXT_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    // An IPv4 address has one text only: leading zeros are refused.
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(address.into());
    }
    let address: Ipv6Addr = text.parse().ok()?;
    let mut left = Printed(text.as_bytes());
    write!(left, "{address}").ok()?;
    left.0.is_empty().then_some(address.into())
}

/// The rest of a text after the parts printed so far: compares without a copy.
struct Printed<'a>(&'a [u8]);

impl fmt::Write for Printed<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0 = self.0.strip_prefix(part.as_bytes()).ok_or(fmt::Error)?;
        Ok(())
    }
}

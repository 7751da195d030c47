//! Owns: slices ↔ bytes where their endpoints are taken and sent as the bytes that they are, without a look at each.
//! Never: refuses anything: what it does not take as it is, is decoded in the usual way, which has the words for it.

use bytes::{Buf as _, Bytes};
use prost::{
    Message,
    encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint, encoded_len_varint, key_len},
};
use proto::v1;

use super::endpoint;
use model::{EndpointSlice, Endpoints, ImportedSlice};

/// Number of `endpoint_slice_upserted` in `Fact`.
const IN_FACT: u32 = 3;
/// Number of `imported_slice` in `DesiredItem`.
const IN_ITEM: u32 = 4;
/// Number of `revision` in `DesiredItem`.
const ITEM_REVISION: u32 = 1;
/// Number of `endpoints` in both kinds of slices.
const ENDPOINTS: u32 = 4;
/// Number of `import_revision` in `ImportedSlice`, behind its endpoints.
const IMPORT_REVISION: u32 = 5;

/// The slice that a fact is, if it is one and its endpoints are written as we write them. They share the fact's bytes.
pub(super) fn from_fact(fact: &Bytes) -> Option<EndpointSlice> {
    let mut rest = fact.clone();
    let (IN_FACT, WireType::LengthDelimited) = decode_key(&mut rest).ok()? else {
        return None;
    };
    // Nothing may follow: what comes last of several counts.
    if usize::try_from(decode_varint(&mut rest).ok()?).ok()? != rest.len() {
        return None;
    }
    let start = endpoints_start(&rest)?;
    let endpoints = Endpoints::scan(rest.split_off(start))?;
    let slice = v1::EndpointSlice::decode(rest).ok()?;
    let slice = endpoint::slice_from_proto(slice).ok()?;
    Some(EndpointSlice { endpoints, ..slice })
}

/// The start of the endpoints in an encoded slice, if all known fields come before them.
fn endpoints_start(slice: &Bytes) -> Option<usize> {
    let mut rest = slice.clone();
    while rest.has_remaining() {
        let at = slice.len() - rest.len();
        match decode_key(&mut rest).ok()? {
            (ENDPOINTS, _) => return Some(at),
            (number, WireType::LengthDelimited) if number < ENDPOINTS => {
                let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
                if length > rest.len() {
                    return None;
                }
                rest.advance(length);
            }
            (number, WireType::Varint) if number < ENDPOINTS => drop(decode_varint(&mut rest).ok()?),
            _ => return None,
        }
    }
    Some(slice.len())
}

/// A fact of a slice, as `Fact` encodes it.
pub(super) fn to_fact(slice: &EndpointSlice) -> Vec<u8> {
    let head = endpoint::slice_head_to_proto(slice).encode_to_vec();
    let endpoints = slice.endpoints.as_bytes();
    let length = head.len() + endpoints.len();
    let mut fact = Vec::with_capacity(message_len(IN_FACT, length));
    message(&mut fact, IN_FACT, length);
    fact.extend_from_slice(&head);
    fact.extend_from_slice(endpoints);
    fact
}

/// A derived slice, as `DesiredItem` encodes it.
pub(super) fn to_item(slice: &ImportedSlice, revision: u64) -> Vec<u8> {
    let head = endpoint::imported_head_to_proto(slice).encode_to_vec();
    let endpoints = slice.endpoints.as_bytes();
    let import_revision = slice.import_revision.0;
    let length = head.len() + endpoints.len() + number_len(IMPORT_REVISION, import_revision);
    let mut item = Vec::with_capacity(number_len(ITEM_REVISION, revision) + message_len(IN_ITEM, length));
    number(&mut item, ITEM_REVISION, revision);
    message(&mut item, IN_ITEM, length);
    item.extend_from_slice(&head);
    item.extend_from_slice(endpoints);
    number(&mut item, IMPORT_REVISION, import_revision);
    item
}

/// The beginning of a message that is a field.
fn message(bytes: &mut Vec<u8>, field: u32, length: usize) {
    encode_key(field, WireType::LengthDelimited, bytes);
    encode_varint(length as u64, bytes);
}

fn message_len(field: u32, length: usize) -> usize {
    key_len(field) + encoded_len_varint(length as u64) + length
}

/// A number that is a field; zero is encoded by leaving it out.
fn number(bytes: &mut Vec<u8>, field: u32, value: u64) {
    if value != 0 {
        encode_key(field, WireType::Varint, bytes);
        encode_varint(value, bytes);
    }
}

fn number_len(field: u32, value: u64) -> usize {
    if value == 0 {
        0
    } else {
        key_len(field) + encoded_len_varint(value)
    }
}

#[cfg(test)]
mod tests;

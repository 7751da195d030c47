//! Whatever comes, it is taken or refused as in the usual way, which looks at each endpoint.

use proptest::{collection::vec, prelude::*, sample::Index};
use proto::v1::{desired_item::Item, fact::Fact as ProtoFact};

use super::*;
use crate::testing::{
    desired::imported_slice,
    service::{endpoint as any_endpoint, endpoint_slice, ip_family},
};
use crate::{
    decode_recorded_fact, encode_desired, encode_fact,
    fact::{decode_whole, fact_to_proto},
};
use model::{
    Fact, Revision,
    sync::{DesiredChange, DesiredItem},
};

/// A field with a length, in as many bytes as wanted beyond the fewest.
fn field(tag: u8, value: &[u8], longer: bool) -> Vec<u8> {
    let mut bytes = vec![tag];
    encode_varint(value.len() as u64, &mut bytes);
    if longer && let Some(last) = bytes.last_mut() {
        *last |= 0x80;
        bytes.push(0);
    }
    bytes.extend_from_slice(value);
    bytes
}

/// A field of an endpoint: as we write it, as others may, or as nobody may.
fn endpoint_field() -> impl Strategy<Value = Vec<u8>> {
    let texts = [
        "10.1.0.7",
        "10.1.0.07",
        "fd00::7",
        "FD00::7",
        "::ffff:10.0.0.1",
        "",
        "10.1.0.7 ",
        "a",
    ];
    let text = (
        prop::sample::select(vec![0x0a_u8, 0x2a, 0x32, 0x3a]),
        prop::sample::select(texts.to_vec()),
    );
    let flag = (
        prop::sample::select(vec![0x10_u8, 0x18, 0x20, 0x38]),
        prop::sample::select(vec![vec![0_u8], vec![1], vec![2], vec![0x81, 0], vec![0x80]]),
    );
    prop_oneof![
        4 => (text, any::<bool>()).prop_map(|((tag, text), longer)| field(tag, text.as_bytes(), longer)),
        2 => flag.prop_map(|(tag, value)| [vec![tag], value].concat()),
        1 => Just(field(0x2a, &[0xff], false)),
        1 => vec(any::<u8>(), 0..4),
    ]
}

/// A field of a slice; any may be missing, repeated, or anywhere.
fn slice_field() -> impl Strategy<Value = Vec<u8>> {
    let rough = vec(endpoint_field(), 0..4).prop_map(|fields| fields.concat());
    let fair = ip_family().prop_flat_map(any_endpoint);
    let fair = fair.prop_map(|one| Endpoints::from([one]).as_bytes().to_vec());
    prop_oneof![
        4 => fair,
        3 => (rough, any::<bool>()).prop_map(|(fields, longer)| field(0x22, &fields, longer)),
        1 => endpoint_slice().prop_map(|slice| endpoint::slice_head_to_proto(&slice).encode_to_vec()),
        1 => Just(vec![0x10, 1]),
        1 => vec(any::<u8>(), 0..4),
    ]
}

/// The fact is the same either way, or the refusal is.
fn same(fact: &Bytes) -> Result<(), TestCaseError> {
    let read = decode_recorded_fact(fact.clone()).map(|encoded| encoded.fact);
    prop_assert_eq!(read, decode_whole(fact));
    Ok(())
}

proptest! {
    #[test]
    fn a_slice_that_is_written_as_we_write_it_is_not_looked_at_twice(slice in endpoint_slice()) {
        let fact = encode_fact(&Fact::EndpointSliceUpserted(slice.clone().into())).bytes;
        prop_assert_eq!(from_fact(&fact), Some(slice));
        same(&fact)?;
    }

    #[test]
    fn whatever_a_slice_is_made_of_it_is_read_as_in_the_usual_way(
        head in endpoint_slice(), fields in vec(slice_field(), 0..5), longer: bool, behind in vec(any::<u8>(), 0..2),
    ) {
        let slice = [endpoint::slice_head_to_proto(&head).encode_to_vec(), fields.concat()].concat();
        same(&[field(0x1a, &slice, longer), behind].concat().into())?;
    }

    #[test]
    fn a_damaged_slice_is_read_as_in_the_usual_way(
        slice in endpoint_slice(), place in any::<Index>(), put in any::<u8>(), cut in any::<Option<Index>>(),
    ) {
        let mut fact = to_fact(&slice);
        let place = place.index(fact.len());
        fact[place] = put;
        if let Some(cut) = cut {
            fact.truncate(cut.index(fact.len() + 1));
        }
        same(&fact.into())?;
    }

    #[test]
    fn a_fact_of_a_slice_has_the_bytes_that_protobuf_gives_it(slice in endpoint_slice()) {
        let fact = Fact::EndpointSliceUpserted(slice.into());
        prop_assert_eq!(encode_fact(&fact).bytes, fact_to_proto(&fact).encode_to_vec());
    }

    #[test]
    fn a_derived_slice_has_the_bytes_that_protobuf_gives_it(slice in imported_slice(), revision in any::<u64>()) {
        let source = EndpointSlice {
            key: model::SliceKey {
                service: slice.key.service.clone(),
                name: slice.key.source_slice.clone(),
            },
            address_type: slice.address_type,
            ports: slice.ports.clone(),
            endpoints: slice.endpoints.clone(),
        };
        let ProtoFact::EndpointSliceUpserted(endpoints) =
            fact_to_proto(&Fact::EndpointSliceUpserted(source.into())).fact.expect("a fact")
        else {
            unreachable!("it is a slice")
        };
        let message = v1::DesiredItem {
            revision,
            item: Some(Item::ImportedSlice(v1::ImportedSlice {
                endpoints: endpoints.endpoints,
                import_revision: slice.import_revision.0,
                ..endpoint::imported_head_to_proto(&slice)
            })),
        };
        let item = DesiredItem {
            revision: Revision(revision),
            change: DesiredChange::Slice(slice.into()),
        };
        prop_assert_eq!(encode_desired(&item), message.encode_to_vec());
    }
}

#[test]
fn a_fact_holds_no_other_bytes_than_its_own() {
    let fact = encode_fact(&Fact::EndpointSliceUpserted(
        crate::frozen::endpoint_slice().into(),
    ));
    let message = Bytes::from([b"before".as_slice(), &fact.bytes, b"behind"].concat());
    let taken = decode_recorded_fact(message.slice(6..6 + fact.bytes.len())).expect("a fact");
    assert_eq!(taken, fact);
    assert!(taken.bytes.as_ptr() < message.as_ptr() || taken.bytes.as_ptr() > message[6..].as_ptr());
    let Fact::EndpointSliceUpserted(slice) = &taken.fact else {
        unreachable!("it is a slice")
    };
    let endpoints = slice.endpoints.as_bytes();
    assert!(
        taken.bytes.as_ptr_range().contains(&endpoints.as_ptr()),
        "they are the fact's"
    );
}

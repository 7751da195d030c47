//! The way from one version of an object to the next, and everything that is not it.

use std::{net::Ipv4Addr, sync::Arc};

use proptest::prelude::*;

use super::*;
use crate::decode_told;
use crate::testing::desired::desired_item;
use model::{
    ClusterId, Endpoint, ImportedSlice, ImportedSliceKey, IpFamily, Revision, ServiceKey,
    sync::{DesiredKey, Told},
};

/// A slice of so many endpoints, the one at `changed` not ready.
fn slice(revision: u64, endpoints: u32, changed: u32) -> DesiredItem {
    let endpoint = |number: u32| Endpoint {
        addresses: vec![Ipv4Addr::from_bits(0x0a01_0000 + number * 37).into()],
        ready: Some(number != changed),
        serving: Some(number != changed),
        terminating: Some(false),
        hostname: None,
        zone: Some(format!("eu-central-1{}", ["a", "b", "c"][number as usize % 3]).into()),
    };
    let key = ImportedSliceKey {
        service: ServiceKey::new("production", "checkout-backend").expect("valid"),
        source_cluster: ClusterId::new("frankfurt-1").expect("valid"),
        source_slice: "checkout-backend-x7k2p".into(),
    };
    let slice = ImportedSlice {
        key,
        address_type: IpFamily::V4,
        ports: Vec::new(),
        endpoints: (0..endpoints).map(endpoint).collect(),
        import_revision: Revision(17),
    };
    DesiredItem {
        revision: Revision(revision),
        change: DesiredChange::Slice(Arc::new(slice)),
    }
}

/// The message sent on the way from one item to another.
fn sent(base: &DesiredItem, item: &DesiredItem) -> Option<Bytes> {
    encode_difference(&encode_desired(base), &encode_desired(item), item)
}

fn read(bytes: Bytes) -> ItemDifference {
    match decode_told(bytes) {
        Ok(Told::Difference(difference)) => difference,
        other => panic!("{other:?} is no difference"),
    }
}

#[test]
fn one_changed_endpoint_of_a_hundred_takes_below_400_bytes() {
    let (base, item) = (slice(1_000_000, 100, 7), slice(1_000_900, 100, 50));
    let bytes = sent(&base, &item).expect("it pays");
    let whole = encode_desired(&item).len();
    assert!(bytes.len() < 400, "{} bytes of {whole}", bytes.len());
    assert!(whole > 3_000, "{whole} bytes are no hundred endpoints");
    assert_eq!(
        restore(Some(&base), &read(bytes)),
        Ok(Restored::Object(item)),
        "the very object"
    );
}

#[test]
fn a_lost_a_repeated_a_foreign_and_a_newer_base_make_no_object() {
    let (base, item, newer) = (slice(1, 30, 1), slice(2, 30, 2), slice(3, 30, 3));
    let difference = read(sent(&base, &item).expect("it pays"));
    assert_eq!(restore(None, &difference), Err(NotRestored::NoBase));
    assert_eq!(restore(Some(&item), &difference), Ok(Restored::Held), "repeated");
    assert_eq!(restore(Some(&newer), &difference), Err(NotRestored::OtherBase));
    let foreign = slice(1, 31, 1);
    assert_eq!(restore(Some(&foreign), &difference), Err(NotRestored::OtherBase));
    let other_revision = slice(2, 30, 1);
    assert_eq!(
        restore(Some(&other_revision), &difference),
        Err(NotRestored::OtherBase),
        "the same content of another revision"
    );
}

#[test]
fn what_does_not_lead_to_the_object_that_it_says_makes_none() {
    let (base, item) = (slice(1, 30, 1), slice(2, 30, 2));
    let difference = read(sent(&base, &item).expect("it pays"));
    let refused = |change: &dyn Fn(&mut ItemDifference)| {
        let mut changed = difference.clone();
        change(&mut changed);
        assert_eq!(restore(Some(&base), &changed), Err(NotRestored::OtherObject));
    };
    refused(&|changed| changed.hash = ItemHash([7; 16]));
    refused(&|changed| changed.difference = Bytes::from_static(b"no frame"));
    refused(&|changed| changed.revision = Revision(9));
    refused(&|changed| changed.key = DesiredKey::Import(ServiceKey::new("shop", "cart").expect("valid")));
    let (whole, encoded) = (encode_desired(&item), encode_desired(&base));
    let removal = DesiredItem {
        revision: Revision(2),
        change: DesiredChange::Removed(item.change.key()),
    };
    let removed = encode_desired(&removal);
    refused(&|changed| {
        changed.hash = ItemHash::of(&removed);
        changed.difference = zstd::bulk::Compressor::with_dictionary(1, &encoded)
            .and_then(|mut compressor| compressor.compress(&removed))
            .expect("it compresses")
            .into();
    });
    assert_eq!(ItemHash::of(&whole), difference.hash);
}

#[test]
fn what_it_leads_to_and_cannot_be_read_is_passed_over_as_it_is_whole() {
    let base = slice(1, 30, 1);
    let (encoded, unknown) = (
        encode_desired(&base),
        [&[0x08, 0x02, 0x7a, 0x7f][..], &[1; 127]].concat(),
    );
    let made = difference::difference(&encoded, &unknown).expect("it repeats itself");
    let difference = ItemDifference {
        revision: Revision(2),
        key: base.change.key(),
        base: ItemHash::of(&encoded),
        difference: made.into(),
        hash: ItemHash::of(&unknown),
    };
    assert_eq!(restore(Some(&base), &difference), Ok(Restored::Unreadable));
}

#[test]
fn what_is_small_or_shares_little_is_sent_whole() {
    let small = |revision| slice(revision, 0, 0);
    assert_eq!(sent(&small(1), &small(2)), None);
    assert_eq!(encode_difference(&[], &[7; 200], &small(2)), None, "no base");
}

#[test]
fn a_difference_stands_in_no_other_place_than_among_items() {
    let bytes = sent(&slice(1, 30, 1), &slice(2, 30, 2)).expect("it pays");
    let refused = decode_desired(bytes).expect_err("it is not whole");
    assert!(
        refused.to_string().contains("only a whole object can stand"),
        "{refused}"
    );
}

#[test]
fn a_hash_of_another_length_and_a_missing_key_are_refused_with_their_place() {
    let refused = |change: &dyn Fn(&mut v1::ItemDifference), words: &str| {
        let bytes = sent(&slice(1, 30, 1), &slice(2, 30, 2)).expect("it pays");
        let mut item = v1::DesiredItem::decode(bytes).expect("an item");
        if let Some(Item::Difference(difference)) = &mut item.item {
            change(difference);
        }
        let refused = decode_told(item.encode_to_vec().into())
            .expect_err(words)
            .to_string();
        assert!(refused.contains(words), "{refused}");
    };
    refused(&|difference| difference.key = None, "difference.key: is missing");
    refused(
        &|difference| difference.base_hash.truncate(15),
        "difference.baseHash: has 15 bytes",
    );
    refused(
        &|difference| difference.hash.clear(),
        "difference.hash: has 0 bytes",
    );
}

#[test]
fn a_whole_object_of_a_newer_hub_is_known_by_its_key() {
    let item = slice(2, 1, 0);
    let mut newer = v1::DesiredItem::decode(encode_desired(&item)).expect("an item");
    if let Some(Item::ImportedSlice(slice)) = &mut newer.item {
        slice.address_type = 77;
    }
    let told = decode_told(newer.encode_to_vec().into());
    assert!(
        matches!(&told, Ok(Told::Unreadable { key, why }) if *key == item.change.key() && why.contains("addressType")),
        "{told:?}"
    );
}

/// So that the difference's own bytes are known when the wire of a neighbour is looked at. The bytes of `difference`
/// are zstd's affair and may change with its next release; any release reads them.
#[test]
fn the_bytes_around_a_difference_are_frozen() {
    let difference = v1::ItemDifference {
        key: Some(key_to_proto(&DesiredKey::Import(
            ServiceKey::new("shop", "cart").expect("valid"),
        ))),
        base_hash: vec![1; 16],
        difference: vec![2, 3],
        hash: vec![4; 16],
    };
    let item = v1::DesiredItem {
        revision: 42,
        item: Some(Item::Difference(difference)),
    };
    let bytes = data_encoding::HEXLOWER.encode(&item.encode_to_vec());
    let key = "0a0e0a0c0a0473686f70120463617274";
    let (base, hash) = ("01".repeat(16), "04".repeat(16));
    assert_eq!(bytes, format!("082a4238{key}1210{base}1a0202032210{hash}"));
}

proptest! {
    #[test]
    fn every_object_comes_back_or_is_sent_whole(base in desired_item(), item in desired_item()) {
        if let Some(bytes) = sent(&base, &item) {
            let difference = read(bytes);
            let is_whole = !matches!(item.change, DesiredChange::Removed(_));
            match restore(Some(&base), &difference) {
                Ok(restored) => prop_assert!(is_whole && restored == Restored::Object(item)),
                Err(_) => prop_assert!(!is_whole),
            }
        }
    }

    #[test]
    fn over_any_other_object_nothing_or_the_object_itself_comes_of_it(
        (base, item, held) in (0..40_u32, 0..40_u32, desired_item()),
    ) {
        let (base, item) = (slice(1, 40, base), slice(2, 40, item));
        let difference = read(sent(&base, &item).expect("it pays"));
        prop_assert_eq!(restore(Some(&held), &difference), Err(NotRestored::OtherBase));
        prop_assert_eq!(restore(Some(&base), &difference), Ok(Restored::Object(item)));
    }
}

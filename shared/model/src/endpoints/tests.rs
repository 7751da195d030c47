//! Endpoints are the values that were written, and nothing else is taken for some.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::testing::service::{endpoint, ip_family};

fn endpoints() -> impl Strategy<Value = Vec<Endpoint>> {
    ip_family().prop_flat_map(|family| vec(endpoint(family), 0..8))
}

proptest! {
    #[test]
    fn what_was_written_is_read(written in endpoints()) {
        let endpoints = Endpoints::from(written.clone());
        prop_assert_eq!(endpoints.to_vec(), &*written);
        prop_assert_eq!(endpoints.len(), written.len());
        prop_assert_eq!(endpoints.is_empty(), written.is_empty());
        for (view, value) in endpoints.iter().zip(&written) {
            prop_assert_eq!(view.is_ready(), value.is_ready());
        }
        prop_assert_eq!(Endpoints::scan(endpoints.as_bytes().clone()), Some(endpoints));
    }

    #[test]
    fn what_is_taken_of_any_bytes_is_what_would_be_written(
        written in endpoints(), place in any::<prop::sample::Index>(), put in any::<u8>(),
    ) {
        let mut bytes = Endpoints::from(written).as_bytes().to_vec();
        if !bytes.is_empty() {
            let place = place.index(bytes.len());
            bytes[place] = put;
        }
        if let Some(taken) = Endpoints::scan(bytes.into()) {
            prop_assert_eq!(Endpoints::from(taken.to_vec()), taken);
        }
    }

    #[test]
    fn some_of_them_are_those_and_all_of_them_the_same_bytes(written in endpoints()) {
        let endpoints = Endpoints::from(written.clone());
        let ready = endpoints.only(|one| one.is_ready());
        let expected: Endpoints = written.into_iter().filter(Endpoint::is_ready).collect();
        prop_assert_eq!(&ready, &expected);
        prop_assert_eq!(ready.len(), expected.len());
        let all = endpoints.only(|_| true);
        prop_assert_eq!(all.as_bytes().as_ptr(), endpoints.as_bytes().as_ptr());
    }
}

#[test]
fn what_is_written_in_another_way_is_not_taken() {
    let taken = |bytes: &[u8]| Endpoints::scan(Bytes::copy_from_slice(bytes)).is_some();
    assert!(taken(b"") && taken(b"\x22\x00") && taken(b"\x22\x04\x10\x01\x18\x00"));
    assert!(taken(b"\x22\x05\x0a\x03::1") && taken(b"\x22\x02\x2a\x00"));
    for other in [
        &b"\x22"[..],
        b"\x22\x80\x00",
        b"\x22\x04\x18\x01\x10\x00",
        b"\x22\x04\x10\x01\x10\x01",
        b"\x22\x02\x10\x02",
        b"\x22\x03\x10\x81\x00",
        b"\x22\x02\x38\x01",
        b"\x22\x03\x10\x01\x10",
        b"\x22\x03\x0a\x03::1",
        b"\x22\x02\x0a\x00",
        b"\x22\x06\x0a\x04::01",
        b"\x22\x0a\x0a\x0801.1.1.1",
        b"\x22\x03\x2a\x01\xff",
        b"\x2a\x00",
    ] {
        assert!(!taken(other), "{other:x?}");
    }
}

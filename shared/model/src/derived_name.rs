//! Names that follow from other names: the derived Service of an import and an imported EndpointSlice.
//! Pure functions, equal in every cluster and version; it never looks at what exists.

use data_encoding::{BASE32_NOPAD, BASE32HEX_NOPAD};
use sha2::{Digest, Sha256};

/// Prefix of the name of a derived Service.
pub const DERIVED_SERVICE_PREFIX: &str = "derived-";
/// Characters of the hash in the name of a derived Service: 50 bits, as the mcs-api controllers do.
pub const DERIVED_SERVICE_HASH_CHARS: usize = 10;
/// Prefix of the name of an imported EndpointSlice.
pub const IMPORTED_SLICE_PREFIX: &str = "imported-";
/// Characters of the hash in the name of an imported EndpointSlice: 100 bits.
pub const IMPORTED_SLICE_HASH_CHARS: usize = 20;

/// Bytes of the hash in the name of an identity Lease.
const IDENTITY_HASH_BYTES: usize = 16;

/// The name of the Service whose ClusterIP is the clusterset IP of the import `namespace`/`name`.
///
/// It is the name that the mcs-api reference controllers give it. Fifty bits can collide: an existing unmanaged object
/// of this name is an error to report, never an object to adopt.
pub fn derived_service_name(namespace: &str, name: &str) -> String {
    let hash = lowercase_base32hex_sha256(&format!("{namespace}/{name}"));
    format!("{DERIVED_SERVICE_PREFIX}{}", &hash[..DERIVED_SERVICE_HASH_CHARS])
}

/// The name, in an importing cluster, of the slice made from `source_slice` of `cluster`.
///
/// None of the four parts can hold a slash, so that two different slices never hash the same text.
pub fn imported_slice_name(namespace: &str, service: &str, cluster: &str, source_slice: &str) -> String {
    let hash = lowercase_base32hex_sha256(&format!("{namespace}/{service}/{cluster}/{source_slice}"));
    format!("{IMPORTED_SLICE_PREFIX}{}", &hash[..IMPORTED_SLICE_HASH_CHARS])
}

/// The last part of the name of the Lease that a process keeps of itself, after its program and a dash: 26 characters of
/// `a-z2-7` from the id of its place and the program, as kube-apiserver 1.27 and later make them (KEP-1965).
pub fn identity_lease_suffix(id: &str, program: &str) -> String {
    let mut hash = Sha256::new();
    for part in [id, program] {
        let length = u16::try_from(part.len()).unwrap_or(u16::MAX);
        hash.update(length.to_be_bytes());
        hash.update(part.as_bytes());
    }
    let mut encoded = BASE32_NOPAD.encode(&hash.finalize()[..IDENTITY_HASH_BYTES]);
    encoded.make_ascii_lowercase();
    encoded
}

/// RFC 4648 extended-hex base 32 of the SHA-256, lower case, without padding: 52 characters of `0-9a-v`.
fn lowercase_base32hex_sha256(text: &str) -> String {
    let mut encoded = BASE32HEX_NOPAD.encode(&Sha256::digest(text.as_bytes()));
    encoded.make_ascii_lowercase();
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::is_dns_label;

    #[test]
    fn derived_services_are_named_as_the_reference_controllers_name_them() {
        for (namespace, name, want) in [
            ("demo", "serve", "derived-ovtkn0laet"),
            ("default", "hello", "derived-k5cuvo1ge4"),
            ("my-ns", "my-svc", "derived-a2v4k9sqn6"),
            ("test", "myservice", "derived-ugeabue9o3"),
            ("a", "b", "derived-o56drg1jup"),
        ] {
            assert_eq!(derived_service_name(namespace, name), want, "{namespace}/{name}");
        }
    }

    #[test]
    fn identity_leases_are_named_as_kube_apiserver_names_its_own() {
        for (host, want) in [
            ("master-1", "wj467rbl25eeviqacfhvg2yvnm"),
            ("the-kube-apiserver", "4sbc6kunpoemdize26wwvyy5xe"),
            ("kind-control-plane", "c7uylvfxlbqccnk6myfkwetzze"),
            ("vm", "wlv32tlttr4jl3gtroqexyxapa"),
        ] {
            assert_eq!(identity_lease_suffix(host, "kube-apiserver"), want);
        }
    }

    #[test]
    fn imported_slices_keep_their_names_for_ever() {
        for (parts, want) in [
            (
                ["demo", "serve", "east", "serve-abc12"],
                "imported-2rskq98jq1sf15r7gud2",
            ),
            (
                ["shop", "cart", "west", "cart-x.y"],
                "imported-vp2vddnopdrhjlcs8924",
            ),
        ] {
            let [namespace, service, cluster, slice] = parts;
            assert_eq!(
                imported_slice_name(namespace, service, cluster, slice),
                want,
                "{parts:?}"
            );
        }
    }

    #[test]
    fn every_part_counts_in_a_slice_name() {
        let base = imported_slice_name("n", "s", "c", "e");
        for other in [
            ("m", "s", "c", "e"),
            ("n", "t", "c", "e"),
            ("n", "s", "d", "e"),
            ("n", "s", "c", "f"),
        ] {
            assert_ne!(
                imported_slice_name(other.0, other.1, other.2, other.3),
                base,
                "{other:?}"
            );
        }
    }

    #[test]
    fn names_are_dns_labels_whatever_the_length_of_the_parts() {
        let long = "x".repeat(253);
        assert!(is_dns_label(&derived_service_name(&long, &long)));
        assert!(is_dns_label(&imported_slice_name(&long, &long, &long, &long)));
    }
}

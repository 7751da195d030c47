//! Owns: the key of a joining cluster: made here, kept by its caller, and shown to a hub as a signing request.
//! Never: stores or sends it.

use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use rustls_pki_types::CertificateDer;

use crate::model::KeyFingerprint;

/// Why there is no key or no request.
#[derive(Debug, thiserror::Error)]
#[error("the agent's key cannot be used: {0}; remove it, so that another is made")]
pub struct UnusableKey(#[from] rcgen::Error);

/// A new private key (PEM, PKCS#8), ECDSA P-256.
pub fn new_key() -> Result<String, UnusableKey> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?.serialize_pem())
}

/// The request (PKCS #10, DER) for a certificate for this key. It asks for nothing else: the hub decides its content.
pub fn signing_request(key_pem: &str) -> Result<Vec<u8>, UnusableKey> {
    let key = KeyPair::from_pem(key_pem)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(&key)?.der().to_vec())
}

/// The private keys in a text (PEM), each by itself.
pub fn keys_in(text: &str) -> Vec<String> {
    const END: &str = "-----END PRIVATE KEY-----";
    let ends = text.match_indices(END).map(|(at, _)| at + END.len());
    let mut from = 0;
    let mut keys = Vec::new();
    for end in ends {
        keys.push(format!("{}\n", text[from..end].trim_start()));
        from = end;
    }
    keys
}

/// The fingerprint of a private key's (PEM) public half.
pub fn fingerprint_of(key_pem: &str) -> Result<KeyFingerprint, UnusableKey> {
    let key = KeyPair::from_pem(key_pem)?;
    Ok(KeyFingerprint::of(&key.subject_public_key_info()))
}

/// A certificate as PEM.
pub fn pem_of(certificate: &CertificateDer<'_>) -> String {
    let encoded = data_encoding::BASE64.encode(certificate);
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in encoded.as_bytes().chunks(64) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_in_one_text_are_told_apart() {
        let (one, other) = (new_key().expect("made"), new_key().expect("made"));
        assert_eq!(keys_in(&format!("{one}{other}")), [one.clone(), other.clone()]);
        assert!(keys_in("").is_empty());
        let fingerprint = |key| fingerprint_of(key).expect("a key");
        assert_ne!(fingerprint(&one), fingerprint(&other));
    }
}

//! Owns: the key of a cluster that joins: made here, kept by whoever asked, and shown to a hub as a signing request.
//! Never: stores or sends it.

use rcgen::{CertificateParams, DistinguishedName, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls_pki_types::CertificateDer;

/// Why there is no key or no request.
#[derive(Debug, thiserror::Error)]
#[error("the agent's key cannot be used: {0}; remove it, so that another is made")]
pub struct UnusableKey(#[from] rcgen::Error);

/// A new private key (PEM, PKCS#8), ECDSA P-256.
pub fn new_key() -> Result<String, UnusableKey> {
    Ok(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?.serialize_pem())
}

/// The request (PKCS #10, DER) for a certificate for this key. It asks for nothing else: the hub says what stands in it.
pub fn signing_request(key_pem: &str) -> Result<Vec<u8>, UnusableKey> {
    let key = KeyPair::from_pem(key_pem)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    Ok(params.serialize_request(&key)?.der().to_vec())
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

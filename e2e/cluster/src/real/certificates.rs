//! Owns: the certificate authority of one real cluster: serving and client certificates, service account keys.
//! Never: touches Tributary's own certificates; these are the cluster's.

use super::Error;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};

/// Names under which the serving certificate is valid.
const SERVING_NAMES: [&str; 6] = [
    "127.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// A certificate with its key, both in PEM.
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// The authority that one cluster trusts for clients and that its API server's certificate comes from.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one.
    pub fn generate(cluster: &str) -> Result<Self, Error> {
        let mut params = named(&format!("{cluster} cluster authority"), None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Self {
            issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)?,
        })
    }

    /// The authority's certificate in PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// For an API server, under the names that each has, and these.
    pub fn serving(&self, mut names: Vec<String>) -> Result<Pair, Error> {
        names.extend(SERVING_NAMES.map(str::to_owned));
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = subject("kube-apiserver", None);
        self.issue(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client certificate: Kubernetes reads the user from the common name, the group from the organization.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Pair, Error> {
        self.issue(named(user, group), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Pair, Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// The key that signs service account tokens; the first of the pair is the public key.
pub fn service_account_key() -> Result<Pair, Error> {
    let key = KeyPair::generate()?;
    Ok(Pair {
        certificate: key.public_key_pem(),
        key: key.serialize_pem(),
    })
}

fn named(common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(common_name, organization);
    params
}

fn subject(common_name: &str, organization: Option<&str>) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    if let Some(organization) = organization {
        subject.push(DnType::OrganizationName, organization);
    }
    subject.push(DnType::CommonName, common_name);
    subject
}

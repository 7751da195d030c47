//! Owns: whether what a hub gives a member is to be trusted: authorities among which is one that is trusted already, or none
//! and a certificate of those that are.
//! Never: keeps anything. A hub's own key, in the hands of a thief, must not be enough to replace all that a member trusts.

use bytes::Bytes;
use rustls::pki_types::CertificateDer;
use shared::{model::sync::Renewed, tls::Credentials};

/// Why nothing of an answer is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Untrusted {
    /// It names no authorities, and the certificate leads to none that is trusted.
    #[error(
        "the hub gave a certificate of no authority that this agent trusts ({0}): the hub's key may be stolen"
    )]
    Certificate(String),
    /// None of the authorities was trusted before.
    #[error(
        "the agent trusts none of the authorities that the hub sent: an authority was replaced without an overlap, or \
         the hub's key is stolen"
    )]
    Authorities,
}

/// Checks an answer against what was trusted before it. Returns how many of its authorities were not: while an authority
/// is replaced there is one.
pub(super) fn check(trusted: &Credentials, renewed: &Renewed) -> Result<usize, Untrusted> {
    if renewed.authorities.is_empty() {
        let chain = renewed.certificates.iter();
        let chain: Vec<_> = chain.map(|der| CertificateDer::from(der.to_vec())).collect();
        trusted.judge(&chain).map_err(Untrusted::Certificate)?;
    }
    let is_known = |given: &&Bytes| {
        let mut known = trusted.authorities().iter();
        known.any(|known| known.as_ref() == &given[..])
    };
    let known = renewed.authorities.iter().filter(is_known).count();
    if known == 0 && !renewed.authorities.is_empty() {
        return Err(Untrusted::Authorities);
    }
    Ok(renewed.authorities.len() - known)
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
    use shared::tls::Pem;

    use super::*;

    type Authority = CertifiedIssuer<'static, KeyPair>;

    fn authority(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        CertifiedIssuer::self_signed(params, key).expect("an authority")
    }

    fn certificate(authority: &Authority) -> (rcgen::Certificate, KeyPair) {
        let mut params = CertificateParams::default();
        let uri = "spiffe://example.org/clusterset/default/cluster/east";
        params
            .subject_alt_names
            .push(SanType::URI(uri.try_into().expect("ASCII")));
        let key = KeyPair::generate().expect("a key");
        (params.signed_by(&key, authority).expect("signed"), key)
    }

    /// An agent that trusts these, the first of which certified it.
    fn agent(trusted: &[&Authority]) -> Credentials {
        let (certificate, key) = certificate(trusted[0]);
        let ca: String = trusted.iter().map(|one| one.pem()).collect();
        let pem = Pem {
            cert: certificate.pem().into(),
            key: key.serialize_pem().into(),
            ca: ca.into(),
        };
        Credentials::from_pem(&pem).expect("usable")
    }

    /// An answer with a certificate of one authority, and these to trust.
    fn answer(by: &Authority, authorities: &[&Authority]) -> Renewed {
        let der = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
        Renewed {
            certificates: vec![der(certificate(by).0.der())],
            authorities: authorities.iter().map(|one| der(one.der())).collect(),
        }
    }

    #[test]
    fn whoever_has_the_hubs_key_replaces_nothing_that_is_trusted() {
        let (ours, evil) = (authority("ours"), authority("evil"));
        let agent = agent(&[&ours]);
        for by in [&evil, &ours] {
            assert_eq!(check(&agent, &answer(by, &[&evil])), Err(Untrusted::Authorities));
        }
        let checked = check(&agent, &answer(&evil, &[]));
        assert!(matches!(checked, Err(Untrusted::Certificate(_))), "{checked:?}");
    }

    #[test]
    fn an_authority_is_replaced_while_both_are_trusted() {
        let (old, new) = (authority("old"), authority("new"));
        assert_eq!(check(&agent(&[&old]), &answer(&old, &[])), Ok(0));
        assert_eq!(check(&agent(&[&old]), &answer(&old, &[&old])), Ok(0));
        assert_eq!(check(&agent(&[&old]), &answer(&new, &[&old, &new])), Ok(1));
        let both = agent(&[&old, &new]);
        assert_eq!(check(&both, &answer(&new, &[&old, &new])), Ok(0));
        assert_eq!(check(&both, &answer(&new, &[&new])), Ok(0));
    }
}

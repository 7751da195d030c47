//! Owns: whether an answer to a request for a certificate is to be believed: each authority that it names is trusted
//! already, or one that is vouches for it; and the certificate leads to one of them.
//! Never: keeps anything. A hub's own key, in the hands of a thief, must not be enough to replace what a member trusts.

use rustls::pki_types::CertificateDer;
use shared::{
    model::{UnixMillis, sync::Renewed},
    tls::{Credentials, NotVouched, Vouched, vouched},
};

/// Why nothing of an answer is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Untrusted {
    /// The certificate leads to no authority that is trusted.
    #[error(
        "the hub gave a certificate of no authority that this agent trusts ({0}): the hub's key may be stolen"
    )]
    Certificate(String),
    /// None vouches for an authority that it names.
    #[error(transparent)]
    Authorities(#[from] NotVouched),
}

/// The certificates of a list.
fn certificates(list: &[bytes::Bytes]) -> Vec<CertificateDer<'static>> {
    list.iter()
        .map(|der| CertificateDer::from(der.to_vec()))
        .collect()
}

/// The authorities to trust with an answer, as of `now`; `None`: it names none, and those that are trusted stay.
pub(super) fn authorities(
    trusted: &Credentials,
    renewed: &Renewed,
    now: UnixMillis,
) -> Result<Option<Vouched>, Untrusted> {
    if renewed.authorities.is_empty() {
        return Ok(None);
    }
    let named = certificates(&renewed.authorities);
    Ok(Some(vouched(trusted.authorities(), &named, now)?))
}

/// Checks that the certificate of an answer leads to an authority of what is to be used from now on.
pub(super) fn certificate(next: &Credentials, renewed: &Renewed) -> Result<(), Untrusted> {
    let chain = certificates(&renewed.certificates);
    next.judge(&chain).map_err(Untrusted::Certificate)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
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

    fn issued(authority: &Authority) -> (rcgen::Certificate, KeyPair) {
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
        let (certificate, key) = issued(trusted[0]);
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
            certificates: vec![der(issued(by).0.der())],
            authorities: authorities.iter().map(|one| der(one.der())).collect(),
        }
    }

    const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

    #[test]
    fn whoever_has_the_hubs_key_replaces_nothing_that_is_trusted() {
        let (ours, evil) = (authority("ours"), authority("evil"));
        let agent = agent(&[&ours]);
        for by in [&evil, &ours] {
            for named in [&[&evil][..], &[&ours, &evil], &[&evil, &ours]] {
                let judged = authorities(&agent, &answer(by, named), NOW);
                assert!(matches!(judged, Err(Untrusted::Authorities(_))), "{judged:?}");
            }
        }
        for named in [&[][..], &[&ours][..]] {
            let answer = answer(&evil, named);
            assert!(authorities(&agent, &answer, NOW).is_ok());
            let judged = certificate(&agent, &answer);
            assert!(matches!(judged, Err(Untrusted::Certificate(_))), "{judged:?}");
        }
    }

    #[test]
    fn an_authority_for_which_the_trusted_one_vouches_is_taken() {
        let (old, new) = (authority("old"), authority("new"));
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "new");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let voucher = params.signed_by(new.key(), &old).expect("signed");
        let mut given = answer(&new, &[&old, &new]);
        given.authorities.push(Bytes::copy_from_slice(voucher.der()));
        let taken = authorities(&agent(&[&old]), &given, NOW)
            .expect("vouched")
            .expect("some");
        assert_eq!((taken.authorities.len(), taken.new), (2, 1));
        assert_eq!(certificate(&agent(&[&old, &new]), &given), Ok(()));
        let nothing = authorities(&agent(&[&old]), &answer(&old, &[]), NOW);
        assert_eq!(nothing, Ok(None));
    }
}

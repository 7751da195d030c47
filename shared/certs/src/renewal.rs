//! Signs for members that renew: with the authority for joining clusters, for the id of their session, and only what
//! the members' port would accept. It decides nothing about keys and records nothing.

use std::sync::Arc;

use bytes::Bytes;
use rustls::pki_types::{CertificateDer, pem::PemObject};
use shared::{
    identity::CertificateFacts,
    model::{ClusterId, Signed, UnixMillis},
    tls::LiveCredentials,
};

use super::joining::{MemberIssuer, SigningRequest};

/// Signs for members that renew. Clones are the same one.
#[derive(Clone)]
pub struct RenewalIssuer {
    issuer: Arc<MemberIssuer>,
    credentials: Arc<LiveCredentials>,
}

impl RenewalIssuer {
    /// Signs with this authority, beside a members' port with these credentials.
    pub fn new(issuer: Arc<MemberIssuer>, credentials: Arc<LiveCredentials>) -> Self {
        Self { issuer, credentials }
    }

    /// Checks that the authority leads to a root that members are accepted by, as of `at`; an error says what to do.
    pub fn check(&self, at: UnixMillis) -> Result<(), Box<str>> {
        let nobody = ClusterId::new("nobody").map_err(|error| error.to_string())?;
        let key = shared::tls::new_key().map_err(|error| error.to_string())?;
        let request = shared::tls::signing_request(&key).map_err(|error| error.to_string())?;
        self.sign(&request, &nobody, at).map(drop)
    }

    /// A certificate for the key of a signing request (DER) and this id, from `at` on; else why there is none.
    pub fn sign(&self, request: &[u8], cluster: &ClusterId, at: UnixMillis) -> Result<Box<Signed>, Box<str>> {
        let wanted = SigningRequest::read(request)
            .map_err(|error| format!("the signing request cannot be read: {error}"))?;
        let cannot = |error: &dyn std::fmt::Display| format!("the hub cannot sign: {error}");
        let validity = self.issuer.member_validity(at);
        let pem = self
            .issuer
            .sign(&wanted, cluster, validity)
            .map_err(|error| cannot(&error))?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let chain = chain.map_err(|error| cannot(&error))?;
        let current = self.credentials.current();
        current.judge(&chain).map_err(|why| {
            format!(
                "the hub would not accept what its --join-cert signs ({why}): put the authority of --join-cert into \
                 the hub's --tls-ca, beside the others"
            )
        })?;
        let facts = CertificateFacts::read(&chain[0]).map_err(|error| cannot(&error))?;
        // A hub whose own certificate leads to none of its roots is known to its members by others.
        let authorities = current.pin().map(|_| current.authorities()).unwrap_or_default();
        let bytes = |one: &CertificateDer<'_>| Bytes::copy_from_slice(one);
        Ok(Box::new(Signed {
            key: facts.key_fingerprint,
            issuer: facts.issuer,
            not_after: facts.not_after,
            certificates: chain.iter().map(bytes).collect(),
            authorities: authorities.iter().map(bytes).collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use shared::{
        identity::Role,
        model::Clusterset,
        tls::{Credentials, Pem, new_key, signing_request},
    };

    use super::*;
    use crate::{CertificateAuthority, Subject, Validity};

    const AT: UnixMillis = UnixMillis(1_800_000_000_000);

    fn clusterset() -> Clusterset {
        Clusterset::new("example.org", "default").expect("valid")
    }

    fn authority() -> CertificateAuthority {
        CertificateAuthority::generate(&clusterset(), Validity::days_from_now(9)).expect("made")
    }

    /// A hub of the first authority, which trusts these and signs with one under the second.
    fn issuer(
        hub: &CertificateAuthority,
        trusted: &[&CertificateAuthority],
        signs: &CertificateAuthority,
    ) -> RenewalIssuer {
        let joining = signs.members_only(Validity::days_from_now(9)).expect("made");
        let issuer = MemberIssuer::from_pem(&joining.certificate_pem, &joining.key_pem, &clusterset());
        let issued = hub
            .issue(
                &Subject::Hub {
                    name: "hub".into(),
                    dns_names: Vec::new(),
                    ips: Vec::new(),
                },
                Validity::days_from_now(9),
            )
            .expect("issued");
        let roots: String = trusted.iter().map(|one| one.certificate_pem()).collect();
        let credentials = Credentials::from_pem(&Pem {
            cert: issued.certificate_pem.into_bytes(),
            key: issued.key_pem.into_bytes(),
            ca: roots.into_bytes(),
        });
        let credentials = LiveCredentials::new(credentials.expect("usable"));
        RenewalIssuer::new(Arc::new(issuer.expect("usable")), credentials)
    }

    fn now() -> UnixMillis {
        UnixMillis(Validity::days_from_now(1).not_after.0 - 86_400_000)
    }

    #[test]
    fn a_request_gets_the_id_of_its_session_and_every_root() {
        let (old, new) = (authority(), authority());
        let renewals = issuer(&old, &[&old, &new], &new);
        let request = signing_request(&new_key().expect("a key")).expect("a request");
        let east = ClusterId::new("east").expect("valid");
        let signed = renewals.sign(&request, &east, now()).expect("signed");
        let facts = CertificateFacts::read(&CertificateDer::from(signed.certificates[0].to_vec()));
        let facts = facts.expect("a certificate");
        assert_eq!(facts.identity.role, Role::Cluster(east));
        assert_eq!(
            (facts.key_fingerprint, facts.not_after),
            (signed.key, signed.not_after)
        );
        assert_eq!((signed.certificates.len(), signed.authorities.len()), (2, 2));
    }

    /// A joining authority that is replaced on disk signs from then on; one that cannot be used changes nothing.
    #[test]
    fn a_successor_signs_from_then_on() {
        let authority = authority();
        let made = |days| {
            authority
                .members_only(Validity::days_from_now(days))
                .expect("made")
        };
        let (first, next) = (made(3), made(9));
        let issuer = MemberIssuer::from_pem(&first.certificate_pem, &first.key_pem, &clusterset());
        let issuer = issuer
            .expect("usable")
            .lasting(std::time::Duration::from_secs(7 * 86_400));
        let again = issuer.replace(&first.certificate_pem, &first.key_pem);
        assert!(!again.expect("the same"), "nothing is new");
        issuer
            .replace(&next.certificate_pem, &first.key_pem)
            .expect_err("another's key");
        let ends = issuer.validity().not_after;
        assert!(
            issuer
                .replace(&next.certificate_pem, &next.key_pem)
                .expect("usable")
        );
        assert!(issuer.validity().not_after > ends, "it is the successor's");
        let request = signing_request(&new_key().expect("a key")).expect("a request");
        let wanted = SigningRequest::read(&request).expect("a request");
        let east = ClusterId::new("east").expect("valid");
        let pem = issuer
            .sign(&wanted, &east, issuer.member_validity(now()))
            .expect("signed");
        let leaf = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
        let facts = CertificateFacts::read(&leaf).expect("a certificate");
        assert!(facts.not_after > ends, "it outlives the old authority");
        let other = Clusterset::new("example.org", "other").expect("valid");
        let foreign = CertificateAuthority::generate(&other, Validity::days_from_now(9)).expect("made");
        let foreign = foreign.members_only(Validity::days_from_now(9)).expect("made");
        issuer
            .replace(&foreign.certificate_pem, &foreign.key_pem)
            .expect_err("another clusterset's");
    }

    #[test]
    fn what_the_members_port_would_refuse_is_not_signed() {
        let (old, new) = (authority(), authority());
        let why = issuer(&old, &[&old], &new).check(now()).expect_err("no root");
        assert!(why.contains("--tls-ca") && !why.contains('\n'), "{why}");
        issuer(&old, &[&old], &old).check(now()).expect("accepted");
        let renewals = issuer(&old, &[&old], &old);
        let east = ClusterId::new("east").expect("valid");
        let why = renewals.sign(b"hello", &east, AT).expect_err("no request");
        assert!(why.contains("cannot be read"), "{why}");
    }
}

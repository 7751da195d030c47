//! Owns: which of the authorities that a hub names may be trusted from now on: those that are trusted already, and those
//! for which one of them vouches. An authority vouches for another by a certificate with the other's name and key that it
//! signed itself (a cross-certificate, as `certs ca --replaces` makes it).
//! Never: keeps anything. The hub's own key, or the one with which it lets clusters join, signs no such certificate.

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::model::{UnixMillis, advice};

/// Most certificates in a list of authorities that are looked at.
pub const AUTHORITIES_MAX: usize = 64;

/// The authorities to trust from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vouched {
    /// All of them: at first those of the hub's list, then those that stay.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The number that was not trusted before.
    pub new: usize,
    /// The number that the hub does not name and that stay, since they vouched for none that it names.
    pub kept: usize,
}

/// Why no authority of a list is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotVouched {
    /// The list is too long.
    #[error("the hub named {0} authorities, more than {AUTHORITIES_MAX}")]
    TooMany(usize),
    /// One of them is no certificate.
    #[error("the hub named an authority that is no certificate: {0}")]
    Unreadable(String),
    /// Nobody who is trusted vouches for one of them.
    #[error(
        "the hub named an authority for which none vouches that this agent trusts ({0}). If an authority is being replaced, \
         make the new one with `{replace}`; if not, the hub's key may be stolen",
        replace = advice::certs_ca_replaces("OLD")
    )]
    Stranger(String),
}

/// One certificate of a list.
struct Authority<'a> {
    der: &'a CertificateDer<'static>,
    certificate: X509Certificate<'a>,
}

impl<'a> Authority<'a> {
    fn read(der: &'a CertificateDer<'static>) -> Result<Self, NotVouched> {
        let (_, certificate) =
            X509Certificate::from_der(der).map_err(|error| NotVouched::Unreadable(error.to_string()))?;
        Ok(Self { der, certificate })
    }

    /// Has this name and key, in whatever certificate.
    fn is_same(&self, other: &Self) -> bool {
        self.certificate.subject().as_raw() == other.certificate.subject().as_raw()
            && self.certificate.public_key().raw == other.certificate.public_key().raw
    }

    fn is_signed_by(&self, signer: &Self) -> bool {
        let key = signer.certificate.public_key();
        self.certificate.issuer().as_raw() == signer.certificate.subject().as_raw()
            && self.certificate.verify_signature(Some(key)).is_ok()
    }

    fn is_expired(&self, now: i64) -> bool {
        self.certificate.validity().not_after.timestamp() < now
    }

    /// Returns true if this certificate, which the signer made, says that the signer vouches for the other.
    fn vouches(&self, signer: &Self, other: &Self, now: i64) -> bool {
        let times = self.certificate.validity();
        self.der != other.der
            && self.certificate.is_ca()
            && (times.not_before.timestamp()..=times.not_after.timestamp()).contains(&now)
            && self.is_same(other)
            && self.is_signed_by(signer)
    }
}

fn read<'a>(list: &'a [CertificateDer<'static>]) -> Result<Vec<Authority<'a>>, NotVouched> {
    list.iter().map(Authority::read).collect()
}

/// Judges the authorities that a hub names against those that are trusted before, as of `now`.
///
/// Those that it does not name any more are let go only if they expired, or vouched for one that it names: whoever has the
/// hub's key can neither add an authority nor take one away.
pub fn vouched(
    trusted: &[CertificateDer<'static>],
    named: &[CertificateDer<'static>],
    now: UnixMillis,
) -> Result<Vouched, NotVouched> {
    if named.len() > AUTHORITIES_MAX {
        return Err(NotVouched::TooMany(named.len()));
    }
    let now = i64::try_from(now.0 / 1_000).unwrap_or(i64::MAX);
    let (before, named) = (read(trusted)?, read(named)?);
    let vouches = |signer: &Authority<'_>, other: &Authority<'_>| {
        named.iter().any(|voucher| voucher.vouches(signer, other, now))
    };
    // A certificate that only vouches is no authority of its own.
    let is_voucher = |one: &&Authority<'_>| {
        !one.is_signed_by(one)
            && named
                .iter()
                .any(|other| other.der != one.der && other.is_same(one))
    };
    let (mut accepted, mut open): (Vec<&Authority<'_>>, Vec<&Authority<'_>>) =
        named.iter().partition(|one| trusted.contains(one.der));
    open.retain(|one| !is_voucher(one));
    let new = open.len();
    // One after the other: an agent may have missed a replacement.
    while let Some(place) = open.iter().position(|one| {
        let mut signers = before.iter().chain(accepted.iter().copied());
        signers.any(|signer| vouches(signer, one))
    }) {
        accepted.push(open.swap_remove(place));
    }
    if let Some(stranger) = open.first() {
        return Err(NotVouched::Stranger(stranger.certificate.subject().to_string()));
    }
    let stays = |one: &&Authority<'_>| {
        !accepted.iter().any(|other| other.der == one.der)
            && !one.is_expired(now)
            && !accepted.iter().any(|other| vouches(one, other))
    };
    let kept: Vec<&Authority<'_>> = before.iter().filter(stays).collect();
    Ok(Vouched {
        new,
        kept: kept.len(),
        authorities: accepted.iter().chain(&kept).map(|one| one.der.clone()).collect(),
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

    use super::*;

    const NOW: UnixMillis = UnixMillis(1_800_000_000_000);

    type Root = CertifiedIssuer<'static, KeyPair>;

    /// All authorities of ours have one name.
    fn params(path: BasicConstraints) -> CertificateParams {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Tributary CA");
        params.is_ca = IsCa::Ca(path);
        params
    }

    fn root() -> Root {
        let key = KeyPair::generate().expect("a key");
        CertifiedIssuer::self_signed(params(BasicConstraints::Constrained(1)), key).expect("an authority")
    }

    /// By `signer`, for the name and key of `other`.
    fn voucher(signer: &Root, other: &Root) -> CertificateDer<'static> {
        let params = params(BasicConstraints::Constrained(1));
        let signed = params.signed_by(other.key(), signer);
        signed.expect("signed").der().clone()
    }

    fn der(root: &Root) -> CertificateDer<'static> {
        root.der().clone()
    }

    #[test]
    fn one_for_which_a_trusted_one_vouches_is_trusted_and_the_old_one_goes_when_it_is_named_no_more() {
        let (old, new) = (root(), root());
        let voucher = voucher(&old, &new);
        let both = vouched(&[der(&old)], &[der(&old), der(&new), voucher.clone()], NOW).expect("vouched");
        assert_eq!(both.authorities, [der(&old), der(&new)]);
        assert_eq!((both.new, both.kept), (1, 0));
        let after = vouched(&both.authorities, &[der(&new), voucher.clone()], NOW).expect("vouched");
        assert_eq!((after.authorities, after.new), (vec![der(&new)], 0));
        let missed =
            vouched(&[der(&old)], &[der(&new), voucher], NOW).expect("an agent that saw no step between");
        assert_eq!((missed.authorities, missed.new), (vec![der(&new)], 1));
    }

    #[test]
    fn nobody_without_a_trusted_key_adds_an_authority() {
        let (ours, evil) = (root(), root());
        let refused = |named: &[CertificateDer<'static>]| {
            assert!(matches!(
                vouched(&[der(&ours)], named, NOW),
                Err(NotVouched::Stranger(_))
            ));
        };
        refused(&[der(&evil)]);
        refused(&[der(&ours), der(&evil)]);
        refused(&[der(&ours), der(&evil), voucher(&evil, &evil)]);
        // A voucher of ours for somebody else vouches for nobody else.
        refused(&[der(&ours), der(&evil), voucher(&ours, &root())]);
        // An authority below ours, as the one for joining clusters, is not ours.
        let key = KeyPair::generate().expect("a key");
        let joining =
            CertifiedIssuer::signed_by(params(BasicConstraints::Constrained(0)), key, &ours).expect("signed");
        let below = params(BasicConstraints::Constrained(1))
            .signed_by(evil.key(), &joining)
            .expect("signed");
        refused(&[der(&ours), der(&evil), joining.der().clone(), below.der().clone()]);
        refused(&[der(&ours), joining.der().clone()]);
    }

    #[test]
    fn nobody_without_a_trusted_key_takes_an_authority_away() {
        let (old, new) = (root(), root());
        let trusted = [der(&old), der(&new)];
        let judged = vouched(&trusted, &[der(&old)], NOW).expect("nothing new");
        assert_eq!((judged.authorities, judged.kept), (trusted.to_vec(), 1));
        let expired = UnixMillis(u64::MAX / 4);
        let judged = vouched(&trusted, &[der(&old)], expired).expect("nothing new");
        assert_eq!((judged.authorities, judged.kept), (vec![der(&old)], 0));
    }

    #[test]
    fn a_voucher_that_expired_and_a_list_without_end_are_refused() {
        let (old, new) = (root(), root());
        let named = [der(&old), der(&new), voucher(&old, &new)];
        let late = UnixMillis(u64::MAX / 4);
        assert!(matches!(
            vouched(&[der(&old)], &named, late),
            Err(NotVouched::Stranger(_))
        ));
        let many = vec![der(&old); AUTHORITIES_MAX + 1];
        assert_eq!(
            vouched(&[der(&old)], &many, NOW),
            Err(NotVouched::TooMany(AUTHORITIES_MAX + 1))
        );
        let bad = [CertificateDer::from(vec![1, 2, 3])];
        assert!(matches!(
            vouched(&[der(&old)], &bad, NOW),
            Err(NotVouched::Unreadable(_))
        ));
    }
}

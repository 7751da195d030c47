//! Owns: what is wrong with the files of a process's own certificate: what can be read of them, whose it is, how long it
//! lasts, and who vouches for it. Pure.
//! Never: reads a file, or checks a signature.

use super::report::Check;
use crate::model::UnixMillis;

/// A certificate of whose life less than one part in this many is left ends soon.
const ENDS_SOON_PART: u64 = 10;
/// Milliseconds of a second.
const SECOND: u64 = 1_000;

/// The state of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSeen {
    /// Their content, if they can be used.
    pub files: Result<OwnCertificate, FilesProblem>,
    /// Everybody on the machine may read the key.
    pub key_for_all: bool,
}

/// The reason why they cannot be used, and the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilesProblem {
    /// A file cannot be read, or holds something else.
    Unreadable(String),
    /// The certificate states no identity of ours.
    NoIdentity(String),
    /// The key is not that of the certificate.
    OtherKey(String),
    /// The authorities cannot be used.
    Roots(String),
}

/// The content of the certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCertificate {
    /// Its URI.
    pub identity: String,
    /// The role in it: `cluster`, `hub`, `operator`, `reader`.
    pub role: String,
    /// The name in it.
    pub name: String,
    /// Its issuer, as it names it.
    pub issuer: String,
    /// Valid from then on.
    pub not_before: UnixMillis,
    /// Valid until then.
    pub not_after: UnixMillis,
    /// The check that it leads to an authority in `--tls-ca`.
    pub leads_to_root: Result<(), String>,
}

/// The wanted owner of the certificate, and the command that issues it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The role.
    pub role: &'static str,
    /// The name, if it is known.
    pub name: Option<String>,
    /// The command that issues such a certificate.
    pub issue: String,
}

/// Checks our own certificate at a time. `taken` is true if a hub accepted it just now: then its issuer is not checked.
pub fn own(seen: &OwnSeen, wanted: &Wanted, now: UnixMillis, taken: bool) -> Vec<Check> {
    let certificate = match &seen.files {
        Ok(certificate) => certificate,
        Err(problem) => return vec![unusable(problem, wanted)],
    };
    let mut checks = vec![
        Check::fine(
            "certificate-files",
            "certificate, key and authorities fit together",
        ),
        identity(certificate, wanted),
        time(certificate, wanted, now),
    ];
    if seen.key_for_all {
        checks.push(Check::fault(
            "certificate-key",
            "everybody on this machine may read the file of --tls-key",
            "chmod 600 on that file; if others use the machine, issue another certificate with another key",
        ));
    }
    // Outside its validity it leads nowhere, which is reported already.
    if is_in_time(certificate, now) {
        checks.push(issuer(certificate, taken));
    }
    checks
}

/// Returns true if a certificate is within its validity.
fn is_in_time(certificate: &OwnCertificate, now: UnixMillis) -> bool {
    certificate.not_before <= now && now < certificate.not_after
}

fn unusable(problem: &FilesProblem, wanted: &Wanted) -> Check {
    let issue = &wanted.issue;
    match problem {
        FilesProblem::Unreadable(said) => Check::fault(
            "certificate-files",
            said.clone(),
            format!("name the files with --tls-cert, --tls-key and --tls-ca; `{issue}` makes them"),
        ),
        FilesProblem::NoIdentity(said) => Check::fault(
            "certificate-identity",
            said.clone(),
            format!("issue one with `{issue}`"),
        ),
        FilesProblem::OtherKey(said) => Check::fault(
            "certificate-key",
            said.clone(),
            format!("put the key in place that was made with the certificate, or issue both anew: `{issue}`"),
        ),
        FilesProblem::Roots(said) => Check::fault(
            "certificate-authority",
            said.clone(),
            "put the certificates of the clusterset's authorities (ca.crt) into the file of --tls-ca",
        ),
    }
}

fn identity(certificate: &OwnCertificate, wanted: &Wanted) -> Check {
    let OwnCertificate {
        identity, role, name, ..
    } = certificate;
    let other = wanted.name.as_ref().filter(|wanted| *wanted != name);
    if *role != wanted.role {
        return Check::fault(
            "certificate-identity",
            format!("--tls-cert is {identity}, and not of a {}", wanted.role),
            format!("issue one with `{}`", wanted.issue),
        );
    }
    match other {
        Some(other) => Check::fault(
            "certificate-identity",
            format!("--tls-cert is of {name}, and {other} is expected here ({identity})"),
            format!(
                "correct the id that is expected, or issue one with `{}`",
                wanted.issue
            ),
        ),
        None => Check::fine("certificate-identity", identity.clone()),
    }
}

fn time(certificate: &OwnCertificate, wanted: &Wanted, now: UnixMillis) -> Check {
    let name = "certificate-time";
    let OwnCertificate {
        not_before,
        not_after,
        ..
    } = certificate;
    let issue = &wanted.issue;
    if now < *not_before {
        let ahead = lasting(not_before.0 - now.0);
        return Check::fault(
            name,
            format!("--tls-cert is not valid yet: it begins in {ahead} by this machine's clock"),
            "set this machine's clock (NTP); if it is right, that of whoever issued the certificate is ahead",
        );
    }
    if now >= *not_after {
        let ago = lasting(now.0 - not_after.0);
        return Check::fault(
            name,
            format!("--tls-cert has expired, {ago} ago by this machine's clock"),
            format!("issue another one: `{issue}`; a cluster that joined with a token joins with a new one"),
        );
    }
    let (left, whole) = (not_after.0 - now.0, not_after.0 - not_before.0);
    if left < whole / ENDS_SOON_PART {
        return Check::fault(
            name,
            format!("--tls-cert ends in {}, and nothing has renewed it", lasting(left)),
            format!("issue another one: `{issue}`; the files are looked at again by themselves"),
        );
    }
    Check::fine(name, format!("valid for another {}", lasting(left)))
}

fn issuer(certificate: &OwnCertificate, taken: bool) -> Check {
    let name = "certificate-issuer";
    match &certificate.leads_to_root {
        Ok(()) => Check::fine(name, certificate.issuer.clone()),
        Err(_) if taken => Check::note(
            name,
            format!(
                "{}: not in --tls-ca, which is as well: the hub takes it",
                certificate.issuer
            ),
        ),
        Err(why) => Check::fault(
            name,
            format!(
                "--tls-ca does not hold the issuer of --tls-cert, {}: {why}",
                certificate.issuer
            ),
            "put that authority's certificate into the file of --tls-ca, here and at the hub, or issue the certificate \
             with an authority that is in it",
        ),
    }
}

/// A time for people, in its largest unit.
pub fn lasting(millis: u64) -> String {
    let units = [
        ("d", 86_400 * SECOND),
        ("h", 3_600 * SECOND),
        ("min", 60 * SECOND),
    ];
    let unit = units.iter().find(|(_, unit)| millis >= 2 * unit);
    unit.map_or_else(
        || format!("{} s", millis / SECOND),
        |(word, unit)| format!("{} {word}", millis / unit),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;
    const NOW: UnixMillis = UnixMillis(1_000 * DAY);

    fn seen() -> OwnSeen {
        OwnSeen {
            files: Ok(OwnCertificate {
                identity: "spiffe://example.org/clusterset/default/cluster/east".into(),
                role: "cluster".into(),
                name: "east".into(),
                issuer: "CN=example.org".into(),
                not_before: UnixMillis(900 * DAY),
                not_after: UnixMillis(1_265 * DAY),
                leads_to_root: Ok(()),
            }),
            key_for_all: false,
        }
    }

    fn wanted() -> Wanted {
        Wanted {
            role: "cluster",
            name: Some("east".into()),
            issue: "ISSUE".into(),
        }
    }

    fn changed(change: impl FnOnce(&mut OwnCertificate)) -> OwnSeen {
        let mut seen = seen();
        change(seen.files.as_mut().expect("a certificate"));
        seen
    }

    /// The one fault, and what is to be done about it.
    fn fault(checks: &[Check]) -> (&'static str, String, String) {
        let faults: Vec<&Check> = checks.iter().filter(|check| check.is_fault()).collect();
        let [fault] = faults[..] else { panic!("{checks:?}") };
        let (what, fix) = fault.verdict.words();
        (fault.name, what, fix.expect("a fix"))
    }

    #[test]
    fn good_files_have_no_fault() {
        let checks = own(&seen(), &wanted(), NOW, false);
        assert_eq!(checks.len(), 4);
        assert!(
            checks.iter().all(|check| check.verdict.word() == "ok"),
            "{checks:?}"
        );
    }

    #[test]
    fn files_that_cannot_be_used_are_named_with_what_makes_them() {
        for (problem, name) in [
            (FilesProblem::Unreadable("said".into()), "certificate-files"),
            (FilesProblem::NoIdentity("said".into()), "certificate-identity"),
            (FilesProblem::OtherKey("said".into()), "certificate-key"),
            (FilesProblem::Roots("said".into()), "certificate-authority"),
        ] {
            let seen = OwnSeen {
                files: Err(problem),
                key_for_all: false,
            };
            let (found, what, fix) = fault(&own(&seen, &wanted(), NOW, false));
            assert_eq!((found, &*what), (name, "said"));
            assert!(fix.contains("ISSUE") || name == "certificate-authority", "{fix}");
        }
    }

    #[test]
    fn a_certificate_of_another_cluster_or_role_is_named() {
        let west = own(&changed(|own| own.name = "west".into()), &wanted(), NOW, true);
        let (name, what, _) = fault(&west);
        assert_eq!(name, "certificate-identity");
        assert!(what.contains("of west, and east is expected"), "{what}");
        let hub = own(&changed(|own| own.role = "hub".into()), &wanted(), NOW, true);
        assert!(fault(&hub).1.contains("not of a cluster"));
    }

    #[test]
    fn a_certificate_out_of_its_time_is_one_fault() {
        let refused = |own: &mut OwnCertificate| own.leads_to_root = Err("expired".into());
        let expired = changed(|own| {
            own.not_after = NOW;
            refused(own);
        });
        let (name, what, fix) = fault(&own(&expired, &wanted(), NOW, false));
        assert_eq!(name, "certificate-time");
        assert!(
            what.contains("has expired") && fix.contains("ISSUE"),
            "{what} {fix}"
        );
        let early = changed(|own| {
            own.not_before = UnixMillis(NOW.0 + 3 * 3_600_000);
            refused(own);
        });
        let (_, what, fix) = fault(&own(&early, &wanted(), NOW, false));
        assert!(what.contains("begins in 3 h"), "{what}");
        assert!(fix.contains("clock"), "{fix}");
    }

    #[test]
    fn the_last_tenth_of_a_life_is_a_fault_and_no_sooner() {
        let left = |days: u64| {
            let seen = changed(|own| {
                own.not_before = UnixMillis(NOW.0 + days * DAY - 100 * DAY);
                own.not_after = UnixMillis(NOW.0 + days * DAY);
            });
            own(&seen, &wanted(), NOW, false)
        };
        assert!(!left(10).iter().any(Check::is_fault));
        assert!(fault(&left(9)).1.contains("ends in 9 d"));
    }

    #[test]
    fn an_issuer_that_is_not_in_the_file_matters_unless_the_hub_takes_it() {
        let seen = changed(|own| own.leads_to_root = Err("UnknownIssuer".into()));
        let (name, what, _) = fault(&own(&seen, &wanted(), NOW, false));
        assert_eq!(name, "certificate-issuer");
        assert!(what.contains("CN=example.org: UnknownIssuer"), "{what}");
        assert!(!own(&seen, &wanted(), NOW, true).iter().any(Check::is_fault));
    }

    #[test]
    fn a_key_for_everybody_is_a_fault() {
        let seen = OwnSeen {
            key_for_all: true,
            ..seen()
        };
        assert_eq!(fault(&own(&seen, &wanted(), NOW, false)).0, "certificate-key");
    }

    #[test]
    fn times_are_said_in_their_largest_unit() {
        let said = [1_999, 120_000, 7_200_000, 47 * 3_600_000, 2 * DAY].map(lasting);
        assert_eq!(said, ["1 s", "2 min", "2 h", "47 h", "2 d"]);
    }
}

//! The answer of `/readyz?verbose` → the control plane's health. No times, no counters: an unchanged health
//! is an unchanged fact.

use std::collections::BTreeSet;

use crate::model::{ControlPlane, Health, fact::IDENTITY_STRING_BYTES_MAX, health::FAILED_CHECKS_MAX};

/// How a failed check's line begins; a passed one has `[+]`.
const FAILED_CHECK_PREFIX: &str = "[-]";

/// What came of asking `/readyz?verbose`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadyzAnswer<'a> {
    /// The API server answered.
    Answered {
        /// The HTTP status.
        status: u16,
        /// The body: a line for each check.
        body: &'a str,
    },
    /// It did not.
    Unreachable,
}

/// The API server answered, but not the question: its health stays unknown, it is not bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "/readyz was answered with HTTP {status}: the agent's ClusterRole must grant get on the nonResourceURLs \
     /readyz and /version"
)]
pub struct HealthNotReadable {
    /// The HTTP status.
    pub status: u16,
}

/// Judges an answer. `version` is the API server's gitVersion, empty while it has not been read.
pub fn health_from(answer: ReadyzAnswer<'_>, version: &str) -> Result<Health, HealthNotReadable> {
    let (control_plane, failed_checks) = match answer {
        ReadyzAnswer::Unreachable => (ControlPlane::Unreachable, Vec::new()),
        ReadyzAnswer::Answered { status: 200, .. } => (ControlPlane::Ready, Vec::new()),
        ReadyzAnswer::Answered {
            status: 500..=599,
            body,
        } => (ControlPlane::NotReady, failed_checks(body)),
        ReadyzAnswer::Answered { status, .. } => return Err(HealthNotReadable { status }),
    };
    Ok(Health {
        kubernetes_version: identity(version).unwrap_or_default(),
        control_plane,
        failed_checks,
        verdict: None,
        nodes: None,
    })
}

/// Names of the failed checks: sorted, each once, the first ones if there are too many.
fn failed_checks(body: &str) -> Vec<Box<str>> {
    let name = |line: &str| {
        identity(
            line.strip_prefix(FAILED_CHECK_PREFIX)?
                .split_whitespace()
                .next()?,
        )
    };
    let names: BTreeSet<Box<str>> = body.lines().filter_map(name).collect();
    names.into_iter().take(FAILED_CHECKS_MAX).collect()
}

/// A name or version as a fact takes it: what is not visible ASCII is left out, what is too long is cut.
fn identity(text: &str) -> Option<Box<str>> {
    let visible = text
        .chars()
        .filter(char::is_ascii_graphic)
        .take(IDENTITY_STRING_BYTES_MAX);
    let visible: String = visible.collect();
    (!visible.is_empty()).then(|| visible.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::validate;

    const FAILING: &str = "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n\
        [-]poststarthook/start-apiextensions-informers failed: reason withheld\n\
        [-]autoregister-completion failed: reason withheld\n[-]etcd failed: reason withheld\nreadyz check failed\n";

    fn health(status: u16, body: &str) -> Health {
        health_from(ReadyzAnswer::Answered { status, body }, "v1.36.3").unwrap()
    }

    #[test]
    fn failed_checks_are_named_sorted_and_once_each() {
        let health = health(500, FAILING);
        assert_eq!(health.control_plane, ControlPlane::NotReady);
        let want = [
            "autoregister-completion",
            "etcd",
            "poststarthook/start-apiextensions-informers",
        ];
        assert!(health.failed_checks.iter().map(|name| &**name).eq(want));
        assert_eq!(validate::health(&health), Ok(()));
    }

    #[test]
    fn a_ready_control_plane_has_no_failed_checks() {
        let health = health(200, "[+]ping ok\n[+]etcd ok\nreadyz check passed\n");
        assert_eq!(
            (health.control_plane, health.failed_checks.len()),
            (ControlPlane::Ready, 0)
        );
        assert_eq!(&*health.kubernetes_version, "v1.36.3");
    }

    #[test]
    fn no_answer_is_unreachable_and_a_refusal_is_no_answer_about_health() {
        let silent = health_from(ReadyzAnswer::Unreachable, "").unwrap();
        assert_eq!(
            (silent.control_plane, &*silent.kubernetes_version),
            (ControlPlane::Unreachable, "")
        );
        for status in [401, 403, 404, 429, 302] {
            let error = health_from(
                ReadyzAnswer::Answered {
                    status,
                    body: FAILING,
                },
                "",
            )
            .unwrap_err();
            assert!(error.to_string().contains("nonResourceURLs"), "{error}");
        }
    }

    #[test]
    fn whatever_the_body_holds_the_fact_is_valid() {
        let wild: String = (0..200)
            .map(|n| format!("[-]ü{n}{} x\n", "y".repeat(300)))
            .collect();
        for body in ["", "[-]", "[-] \n[-]\u{7}\n", "<html>bad gateway</html>", &wild] {
            let health = health(503, body);
            assert_eq!(validate::health(&health), Ok(()), "{body}");
            assert!(health.failed_checks.len() <= FAILED_CHECKS_MAX);
        }
        let long = health_from(ReadyzAnswer::Unreachable, &"v ".repeat(500)).unwrap();
        assert_eq!(validate::health(&long), Ok(()));
    }
}

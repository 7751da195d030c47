//! The answer of `/readyz?verbose` and `/livez?verbose` → which checks fail. No times, no counters: an unchanged health is
//! an unchanged fact.

use std::collections::BTreeSet;

use model::{fact::IDENTITY_STRING_BYTES_MAX, health::FAILED_CHECKS_MAX};

/// Prefix of a failed check's line; a passed one has `[+]`.
const FAILED_CHECK_PREFIX: &str = "[-]";

/// An API server's answer to a health probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// All is well.
    Passed,
    /// It is not: the checks that fail, sorted, each once; at most [`FAILED_CHECKS_MAX`].
    Failed(Vec<Box<str>>),
    /// It does not say it to us: the agent's ClusterRole must grant get on the path.
    NotReadable,
    /// Something else: its health stays unknown, it is not bad.
    Other,
}

/// Reads an answer: its HTTP status, and the body with a line for each check.
pub fn probe_answer(status: u16, body: &str) -> ProbeAnswer {
    match status {
        200 => ProbeAnswer::Passed,
        500..=599 => ProbeAnswer::Failed(failed_checks(body)),
        401 | 403 | 404 => ProbeAnswer::NotReadable,
        _ => ProbeAnswer::Other,
    }
}

/// Names of the failed checks: sorted, each once, the first ones if there are too many.
fn failed_checks(body: &str) -> Vec<Box<str>> {
    let name = |line: &str| {
        shown_name(
            line.strip_prefix(FAILED_CHECK_PREFIX)?
                .split_whitespace()
                .next()?,
        )
    };
    let names: BTreeSet<Box<str>> = body.lines().filter_map(name).collect();
    names.into_iter().take(FAILED_CHECKS_MAX).collect()
}

/// A name or version as a fact takes it: what is not visible ASCII is left out, what is too long is cut.
pub fn shown_name(text: &str) -> Option<Box<str>> {
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
    use model::{ControlPlane, Health, validate};

    const FAILING: &str = "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n\
        [-]poststarthook/start-apiextensions-informers failed: reason withheld\n\
        [-]autoregister-completion failed: reason withheld\n[-]etcd failed: reason withheld\nreadyz check failed\n";

    #[test]
    fn failed_checks_are_named_sorted_and_once_each() {
        let want = [
            "autoregister-completion",
            "etcd",
            "poststarthook/start-apiextensions-informers",
        ];
        let want = want.into_iter().map(Box::from).collect();
        assert_eq!(probe_answer(500, FAILING), ProbeAnswer::Failed(want));
        let passed = "[+]ping ok\n[+]etcd ok\nreadyz check passed\n";
        assert_eq!(probe_answer(200, passed), ProbeAnswer::Passed);
    }

    #[test]
    fn a_refusal_is_no_answer_about_health() {
        for status in [401, 403, 404] {
            assert_eq!(probe_answer(status, FAILING), ProbeAnswer::NotReadable);
        }
        for status in [429, 302] {
            assert_eq!(probe_answer(status, FAILING), ProbeAnswer::Other);
        }
    }

    #[test]
    fn whatever_the_body_holds_the_fact_is_valid() {
        let wild: String = (0..200)
            .map(|n| format!("[-]ü{n}{} x\n", "y".repeat(300)))
            .collect();
        for body in ["", "[-]", "[-] \n[-]\u{7}\n", "<html>bad gateway</html>", &wild] {
            let ProbeAnswer::Failed(failed_checks) = probe_answer(503, body) else {
                panic!("it fails")
            };
            let health = Health {
                kubernetes_version: shown_name(&"v ".repeat(500)).expect("a name"),
                control_plane: ControlPlane::NotReady,
                failed_checks,
                verdict: None,
                nodes: None,
            };
            assert_eq!(validate::health(&health), Ok(()), "{body}");
        }
    }
}

//! Owns: the meaning of the answers of /readyz and /livez: failures in a row, of the server and of etcd behind it.
//! Never: asks.

/// Failures in a row that count: one late answer is no outage.
pub const FAILURES_IN_A_ROW: u32 = 3;
/// Prefix of the names of etcd's checks.
const ETCD_CHECK: &str = "etcd";

/// The outcome of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// All checks pass.
    Passed,
    /// The server says that it is not ready: the failed checks.
    Failed(Vec<Box<str>>),
    /// It refuses connections.
    Refused,
    /// It did not answer in time.
    Silent,
    /// The agent may not ask.
    NotReadable,
    /// This machine has no way to any network.
    NoNetwork,
    /// It answered something else: nothing is known.
    Other,
}

/// Answers over time.
#[derive(Debug, Clone, Default)]
pub struct Probes {
    last: Option<Answer>,
    failures: u32,
    etcd_failures: u32,
    good: u32,
    failed_checks: Vec<Box<str>>,
}

impl Probes {
    /// Takes what was answered at one time.
    pub fn take(&mut self, readyz: Answer, livez: &Answer) {
        let etcd_failed = etcd_fails(&readyz) || etcd_fails(livez);
        if etcd_failed {
            self.etcd_failures = self.etcd_failures.saturating_add(1);
        } else if answers(&readyz) || answers(livez) {
            self.etcd_failures = 0;
        }
        let passed = readyz == Answer::Passed && !etcd_failed;
        self.good = if passed { self.good.saturating_add(1) } else { 0 };
        match &readyz {
            Answer::Other => return, // nothing is known that was not known before
            Answer::Passed | Answer::NotReadable | Answer::NoNetwork => self.failures = 0,
            Answer::Failed(checks) if only_etcd(checks) => self.failures = 0, // etcd's failure, and counted there
            Answer::Failed(_) | Answer::Refused | Answer::Silent => {
                self.failures = self.failures.saturating_add(1);
            }
        }
        self.failed_checks.clear();
        for answer in [&readyz, livez] {
            if let Answer::Failed(checks) = answer {
                self.failed_checks.extend(checks.iter().cloned());
            }
        }
        self.failed_checks.sort();
        self.failed_checks.dedup();
        self.last = Some(readyz);
    }

    /// The last answer of /readyz.
    pub fn last(&self) -> Option<&Answer> {
        self.last.as_ref()
    }

    /// Returns true if it failed often enough to count.
    pub fn fails(&self) -> bool {
        self.failures >= FAILURES_IN_A_ROW
    }

    /// Returns true if etcd did.
    pub fn etcd_fails(&self) -> bool {
        self.etcd_failures >= FAILURES_IN_A_ROW
    }

    /// Good answers in a row, etcd included.
    pub fn good(&self) -> u32 {
        self.good
    }

    /// Names of the checks that failed last, sorted.
    pub fn failed_checks(&self) -> &[Box<str>] {
        &self.failed_checks
    }
}

fn etcd_fails(answer: &Answer) -> bool {
    matches!(answer, Answer::Failed(checks) if checks.iter().any(|check| check.starts_with(ETCD_CHECK)))
}

fn only_etcd(checks: &[Box<str>]) -> bool {
    !checks.is_empty() && checks.iter().all(|check| check.starts_with(ETCD_CHECK))
}

fn answers(answer: &Answer) -> bool {
    matches!(answer, Answer::Passed | Answer::Failed(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(checks: &[&str]) -> Answer {
        Answer::Failed(checks.iter().map(|check| (*check).into()).collect())
    }

    fn after(answers: &[(Answer, Answer)]) -> Probes {
        let mut probes = Probes::default();
        answers
            .iter()
            .for_each(|(readyz, livez)| probes.take(readyz.clone(), livez));
        probes
    }

    #[test]
    fn three_failures_in_a_row_count_and_two_do_not() {
        let bad = || (failed(&["ping"]), Answer::Passed);
        let good = || (Answer::Passed, Answer::Passed);
        assert!(!after(&[bad(), bad()]).fails());
        assert!(after(&[bad(), bad(), bad()]).fails());
        assert!(!after(&[bad(), bad(), good(), bad(), bad()]).fails());
        assert!(after(&[bad(), (Answer::Other, Answer::Other), bad(), bad()]).fails());
        let refused = (Answer::Refused, Answer::Refused);
        assert!(after(&[bad(), refused, (Answer::Silent, Answer::Silent)]).fails());
    }

    /// Releases differ in whether /readyz has a check of etcd; /livez has.
    #[test]
    fn etcd_fails_by_either_question_and_is_not_the_servers_failure() {
        let by_livez = (Answer::Passed, failed(&["etcd"]));
        let probes = after(&[by_livez.clone(), by_livez.clone(), by_livez.clone()]);
        assert!(probes.etcd_fails() && !probes.fails() && probes.good() == 0);
        let by_readyz = (failed(&["etcd", "etcd-readiness"]), Answer::Silent);
        let probes = after(&[by_readyz.clone(), by_livez, by_readyz.clone()]);
        assert!(probes.etcd_fails() && !probes.fails());
        assert!(
            probes
                .failed_checks()
                .iter()
                .map(|check| &**check)
                .eq(["etcd", "etcd-readiness"])
        );
        let silent = (Answer::Silent, Answer::Silent);
        assert!(after(&[by_readyz.clone(), silent, by_readyz.clone(), by_readyz.clone()]).etcd_fails());
        let both = (failed(&["etcd", "ping"]), Answer::Passed);
        assert!(after(&[both.clone(), both.clone(), both]).fails());
        assert!(
            !after(&[
                by_readyz.clone(),
                by_readyz.clone(),
                (Answer::Passed, Answer::Passed),
                by_readyz
            ])
            .etcd_fails()
        );
    }
}

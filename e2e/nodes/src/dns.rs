//! Owns: asking a name server from a pod, and reading what it said. The reading is pure.
//! Never: knows what the answer should be.

use std::{collections::BTreeSet, net::IpAddr};

use anyhow::Context;

use super::client::{Asking, Pod};

const DIG: &str = "dig +noall +comments +answer +tries=1 +time=2";

/// A name server's answer: its code, and the records, each as its type and data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) status: String,
    pub(super) records: BTreeSet<String>,
}

impl Said {
    /// The answer that there is no such name.
    pub(super) fn no_such_name() -> Self {
        Self {
            status: "NXDOMAIN".into(),
            records: BTreeSet::new(),
        }
    }

    /// These records.
    pub(super) fn records(records: impl IntoIterator<Item = String>) -> Self {
        Self {
            status: "NOERROR".into(),
            records: records.into_iter().collect(),
        }
    }

    /// As people read it.
    pub(super) fn shown(&self) -> String {
        let records: Vec<&str> = self.records.iter().map(String::as_str).collect();
        format!("{} {}", self.status, records.join(", "))
            .trim_end()
            .to_owned()
    }
}

/// Asks from a pod for all records of a type.
pub(super) fn ask(cluster: &Asking<'_>, pod: &Pod, name: &str, kind: &str) -> anyhow::Result<Said> {
    read(&cluster.in_pod(pod, &format!("{DIG} {name} {kind}"))?)
}

/// The same of the name server at an address.
pub(super) fn ask_at(
    cluster: &Asking<'_>,
    pod: &Pod,
    server: IpAddr,
    (name, kind): (&str, &str),
) -> anyhow::Result<Said> {
    read(&cluster.in_pod(pod, &format!("{DIG} @{server} {name} {kind}"))?)
}

/// The name that an address leads back to.
pub(super) fn ask_back(cluster: &Asking<'_>, pod: &Pod, address: &str) -> anyhow::Result<Said> {
    read(&cluster.in_pod(pod, &format!("dig +noall +comments +answer -x {address}"))?)
}

/// Reads what dig prints. Priority and weight of a SRV record are free, and left out.
fn read(text: &str) -> anyhow::Result<Said> {
    let header = text.lines().find_map(|line| line.split_once("status: "));
    let (_, status) = header.context("the name server did not answer")?;
    let status = status.split(',').next().unwrap_or(status).to_owned();
    let answers = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with(';'));
    let records = answers.map(record).collect::<anyhow::Result<_>>()?;
    Ok(Said { status, records })
}

fn record(line: &str) -> anyhow::Result<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (kind, data) = words
        .get(3..)
        .and_then(|rest| rest.split_first())
        .with_context(|| format!("{line} is no record"))?;
    let data = if *kind == "SRV" {
        data.get(2..).unwrap_or_default()
    } else {
        data
    };
    Ok(format!("{kind} {}", data.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dig_prints_is_read() {
        let text = ";; Got answer:\n;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: 7\n\n\
                    ;; ANSWER SECTION:\na.b. 5 IN SRV 0 50 80 c.d.\na.b.\t5\tIN\tA\t10.0.0.1\n";
        let said = read(text).unwrap();
        assert_eq!(said, Said::records(["SRV 80 c.d.".into(), "A 10.0.0.1".into()]));
        assert_eq!(said.shown(), "NOERROR A 10.0.0.1, SRV 80 c.d.");
        let none = read(";; ->>HEADER<<- opcode: QUERY, status: NXDOMAIN, id: 8\n").unwrap();
        assert_eq!(none, Said::no_such_name());
        assert!(read(";; no servers could be reached\n").is_err());
    }
}

//! Owns: a pod that asks one address again and again, and what it says of it.
//! Never: judges how many may fail.

use std::{ops::RangeInclusive, time::Duration};

use anyhow::{Context, ensure};

use crate::{
    lines::{Moment, Telling, moment},
    pair::Asker,
};

/// The Service's port.
const PORT: u16 = 80;
/// Seconds after which a request has failed.
pub(crate) const ANSWER_WAIT: u8 = 2;
/// Failures after which a loop asks no more: five times what may fail beyond the control, so nothing is learnt from
/// more of them, and each may take as long as a request is waited for.
pub(super) const FAILURES_MAX: usize = 50;
/// A loop that does not begin within this time never will.
const BEGIN_WAIT: Duration = Duration::from_secs(30);
/// A file in the pod that ends its loop.
const ENOUGH: &str = "/tmp/enough";
/// Its first word.
const BEGAN: &str = "began";

/// A request without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its number, counted from one.
    pub(crate) number: u32,
    /// Time at which it was given up.
    pub(crate) at: Moment,
}

/// The result of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) requests: u32,
    pub(crate) failures: Vec<Failure>,
    /// Start of the first request, and end of the last one.
    pub(crate) from: Moment,
    pub(crate) to: Moment,
}

impl Asked {
    /// Returns true if it ended before its time, because so many failed.
    pub(super) fn gave_up(&self) -> bool {
        self.failures.len() >= FAILURES_MAX
    }
}

/// One request, as a shell makes it.
pub(crate) fn question(address: &str) -> String {
    format!("nc -w {ANSWER_WAIT} {address} {PORT} </dev/null 2>/dev/null")
}

/// Asks one after the other, at least so often and then until it is told that it is enough, unless too many fail. An
/// answer of another cluster than those of this pattern of the shell is a failure too.
fn script(address: &str, cluster: &str, requests: &RangeInclusive<u32>) -> String {
    let (question, least, most) = (question(address), requests.start(), requests.end());
    format!(
        "asked=0 failed=0 from=$(date +%s.%N)
        rm -f {ENOUGH}
        echo {BEGAN}
        while [ $asked -lt {most} ] && [ $failed -lt {FAILURES_MAX} ] &&
              {{ [ $asked -lt {least} ] || [ ! -e {ENOUGH} ]; }}; do
            asked=$((asked + 1))
            case $({question}) in
            {cluster}' '*) ;;
            *) failed=$((failed + 1)); echo \"failed $asked $(date +%s.%N)\" ;;
            esac
        done
        echo \"asked $asked failed $failed from $from to $(date +%s.%N)\""
    )
}

/// A loop that asks.
pub(crate) struct Loop {
    telling: Telling,
    cluster: String,
}

impl Loop {
    /// Starts it in a pod; `answer`: the cluster whose pods must answer, or a pattern of several; `requests`: how often at least and at most.
    pub(crate) fn start(
        asker: &Asker<'_>,
        address: &str,
        answer: &str,
        requests: &RangeInclusive<u32>,
    ) -> anyhow::Result<Self> {
        let script = script(address, answer, requests);
        let mut command = asker
            .cluster
            .command(&["exec", &asker.client.name, "--", "sh", "-c", &script]);
        Ok(Self {
            telling: Telling::start(&mut command)?,
            cluster: asker.cluster.plane.name.clone(),
        })
    }

    /// Waits for its first request.
    pub(crate) fn began(&self) -> anyhow::Result<()> {
        let first = self.telling.next(BEGIN_WAIT);
        ensure!(
            first.is_some_and(|line| line.text == BEGAN),
            "nobody begins to ask in {}; look at its client pods",
            self.cluster
        );
        Ok(())
    }

    /// Returns true if it still asks.
    pub(crate) fn asks(&mut self) -> anyhow::Result<bool> {
        self.telling.runs()
    }

    /// Lets the loop of this pod end, as soon as it has asked as often as it must.
    pub(crate) fn enough(asker: &Asker<'_>) -> anyhow::Result<()> {
        let file = format!(": >{ENOUGH}");
        asker.cluster.in_pod(&asker.client, &file).map(drop)
    }

    /// Waits for its last request.
    pub(crate) fn finish(self) -> anyhow::Result<Asked> {
        let ended = || format!("the requests of {} did not come to their end", self.cluster);
        let lines = self.telling.rest().with_context(ended)?;
        parse(lines.iter().map(|line| &*line.text)).with_context(ended)
    }
}

fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> anyhow::Result<Asked> {
    let mut failures = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["failed", number, at] => failures.push(Failure {
                number: number.parse()?,
                at: moment(at)?,
            }),
            ["asked", requests, "failed", failed, "from", from, "to", to] => {
                let (requests, failed) = (requests.parse()?, failed.parse::<usize>()?);
                let told = failures.len();
                ensure!(failed == told, "{failed} requests failed, and {told} were told");
                return Ok(Asked {
                    requests,
                    failures,
                    from: moment(from)?,
                    to: moment(to)?,
                });
            }
            _ => anyhow::bail!("{line} is nothing that the loop says"),
        }
    }
    anyhow::bail!("nothing says how many were asked")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Asked> {
        parse(text.lines())
    }

    #[test]
    fn a_loop_says_which_requests_failed_and_when() {
        let last = "asked 100 failed 1 from 5.000000000 to 25.000000000";
        let asked = read(&format!("failed 7 12.500000000\n{last}\n")).unwrap();
        let failure = Failure {
            number: 7,
            at: Duration::from_millis(12_500),
        };
        assert_eq!((asked.requests, asked.failures), (100, vec![failure]));
        assert_eq!((asked.from.as_secs(), asked.to.as_secs()), (5, 25));
        for wrong in [last, "failed 7 12.500000000", "", "sh: 3: nc: not found"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_script_says_what_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let nc = directory.path().join("nc");
        let fake = "#!/bin/sh\n[ -e \"$0.asked\" ] && { echo c1 web-7; exit; }\n: >\"$0.asked\"\n";
        std::fs::write(&nc, fake).unwrap();
        std::fs::set_permissions(&nc, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let path = format!(
            "{}:{}",
            directory.path().display(),
            std::env::var("PATH").unwrap()
        );
        let run = |cluster: &str, requests: u32| {
            let mut shell = std::process::Command::new("sh");
            shell
                .args(["-c", &script("10.0.0.1", cluster, &(1..=requests))])
                .env("PATH", &path);
            let said = cluster::real::command::printed(&mut shell).unwrap();
            let said = said.strip_prefix("began\n").unwrap().to_owned();
            read(&said).unwrap()
        };
        let asked = run("c1", 3);
        let numbers: Vec<u32> = asked.failures.iter().map(|failure| failure.number).collect();
        assert_eq!((asked.requests, numbers), (3, vec![1]));
        assert!(asked.from <= asked.failures[0].at && asked.failures[0].at <= asked.to);
        let of_another = run("c2", 3);
        assert_eq!(of_another.failures.len(), 3, "another cluster's answer is none");
        assert!(!of_another.gave_up());
        let bad = run("c2", 1_000);
        assert_eq!((bad.requests, bad.failures.len()), (50, FAILURES_MAX));
        assert!(bad.gave_up(), "it does not ask to its end");
    }
}

//! Owns: a pod that asks several addresses at once until each has answered, and who answered first when.
//! Never: knows when anybody was ready.

use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::{
    lines::{Moment, Telling, moment},
    pair::Asker,
};

/// The Services' port.
const PORT: u16 = 80;
/// Seconds between two questions while nobody answers.
const ASK_EVERY: &str = "0.02";
/// Seconds after which a connection is not there; then the next one is tried.
const CONNECT_WAIT: u8 = 1;
/// Seconds after which nobody asks any more: a pod starts, and after that has thirty.
const ASK_MAX: u8 = 120;
/// Questions that take that long at least.
const RETRIES: u16 = 6_000;
/// Loops that do not begin within this time never will.
const BEGIN_WAIT: Duration = Duration::from_secs(30);
/// Their first word.
const BEGAN: &str = "began";

/// Addresses of a service.
#[derive(Debug, Clone)]
pub(super) struct Service {
    pub(super) number: u16,
    pub(super) address: String,
}

/// The first answer of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct First {
    pub(super) number: u16,
    pub(super) at: Moment,
    pub(super) pod: String,
}

/// A program for each service asks again and again by itself: as many new processes would take the processors from what
/// is measured.
fn script(services: &[Service]) -> String {
    let asks = services.iter().map(|Service { number, address }| {
        let address = if address.contains(':') {
            format!("[{address}]")
        } else {
            address.clone()
        };
        format!("ask {number} {address}:{PORT} &\n")
    });
    format!(
        "ask() {{
            end=$(($(date +%s) + {ASK_MAX}))
            while [ $(date +%s) -lt $end ]; do
                said=$(timeout {ASK_MAX} socat -u \
TCP:$2,connect-timeout={CONNECT_WAIT},retry={RETRIES},interval={ASK_EVERY} STDOUT 2>/dev/null)
                [ -z \"$said\" ] || {{ echo \"$1 $(date +%s.%N) $said\"; return; }}
                sleep {ASK_EVERY}
            done
        }}
        echo {BEGAN}
        {}wait",
        asks.collect::<String>()
    )
}

/// A pod that asks.
pub(super) struct Waiting {
    telling: Telling,
    cluster: String,
    services: Vec<Service>,
}

impl Waiting {
    /// Starts to ask, and returns when that has begun.
    pub(super) fn start(asker: &Asker<'_>, services: &[Service]) -> anyhow::Result<Self> {
        let cluster = asker.cluster.plane.name.clone();
        let script = script(services);
        let mut command = asker
            .cluster
            .command(&["exec", &asker.client.name, "--", "sh", "-c", &script]);
        let telling = Telling::start(&mut command)?;
        ensure!(
            telling.next(BEGIN_WAIT).is_some_and(|line| line.text == BEGAN),
            "nobody begins to ask in {cluster}; look at its client pods"
        );
        Ok(Self {
            telling,
            cluster,
            services: services.to_vec(),
        })
    }

    /// Waits until all have answered.
    pub(super) fn finish(self) -> anyhow::Result<Vec<First>> {
        let failed = || format!("the questions of {} did not come to their end", self.cluster);
        let lines = self.telling.rest().with_context(failed)?;
        let answers = lines.iter().map(|line| parse(&line.text));
        let answers: Vec<First> = answers.collect::<anyhow::Result<_>>()?;
        for Service { number, address } in &self.services {
            match answers.iter().filter(|first| first.number == *number).count() {
                1 => {}
                0 => bail!(
                    "{address} of one-{number} was not answered in {} within {ASK_MAX} s",
                    self.cluster
                ),
                _ => bail!("{address} of one-{number} was answered twice in {}", self.cluster),
            }
        }
        Ok(answers)
    }
}

/// Returns true if nobody answers at any of these addresses.
pub(super) fn is_silent(asker: &Asker<'_>, services: &[Service]) -> bool {
    let ask = |service: &Service| {
        format!(
            "nc -w {CONNECT_WAIT} {} {PORT} </dev/null 2>/dev/null; ",
            service.address
        )
    };
    let asks: String = services.iter().map(ask).collect();
    let said = asker.cluster.in_pod(&asker.client, &(asks + "true"));
    said.is_ok_and(|said| said.is_empty())
}

/// Reads `3 <time> c1 one-3-<...>`: a pod of another service is none.
fn parse(line: &str) -> anyhow::Result<First> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [number, at, _cluster, pod] = words[..] else {
        bail!("{line} is no first answer");
    };
    ensure!(
        pod.starts_with(&format!("one-{number}-")),
        "{pod} answered for one-{number}"
    );
    Ok(First {
        number: number.parse().with_context(|| format!("{number} is no number"))?,
        at: moment(at)?,
        pod: pod.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_answer_names_its_pod() {
        let first = parse("3 12.500000000 c1 one-3-abc-xyz").unwrap();
        assert_eq!((first.number, &*first.pod), (3, "one-3-abc-xyz"));
        assert_eq!(first.at, Duration::from_millis(12_500));
        for wrong in ["3 12.500000000 c1 one-4-abc-xyz", "3 12.5 c1 one-3-a", "3", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_services_are_asked_at_once() {
        let service = |number, address: &str| Service {
            number,
            address: address.into(),
        };
        let script = script(&[service(0, "10.1.0.1"), service(7, "fd91::1")]);
        assert!(
            script.ends_with("ask 0 10.1.0.1:80 &\nask 7 [fd91::1]:80 &\nwait"),
            "{script}"
        );
    }
}

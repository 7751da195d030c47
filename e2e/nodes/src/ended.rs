//! Owns: what requests see of an eviction while the member's agent runs: the others stop sending anything to it, and it
//! keeps what it holds of them until the Leases of these sources expire. Then it comes back with a new key.
//! Never: removes anything in the ex-member.

use std::{fs, time::Duration};

use anyhow::Context;

use super::{
    client::Asking,
    control::{wait_at_most, wait_for},
    install::{Installer, REPOSITORY},
    installed::{AGENT, Installed, NAMESPACE as SYSTEM},
    layout::Directory,
    row::Wrong,
    running::Running,
    served::{Served, WEB, address, answered_by, is_not_imported, only},
    unbroken::{Asks, unbroken},
};

/// The namespace of what is asked.
const NAMESPACE: &str = "ended";
/// Duration of a source's Lease in the second cluster meanwhile, and how often it is renewed: between an eviction and an
/// expiry is the difference at least.
const LEASE: Duration = Duration::from_secs(60);
const RENEW: Duration = Duration::from_secs(20);
/// Time until an expiry has been seen.
const EXPIRY_WAIT: Duration = Duration::from_secs(150);
/// The agent's settings of both.
const VARIABLES: [&str; 2] = ["TRIBUTARY_SOURCE_LEASE_DURATION", "TRIBUTARY_SOURCE_LEASE_RENEW"];
/// Answers of any of both clusters.
const ANYBODY: &str = "c[12]";
/// Status and reason of an export's readiness.
const READY: &str = ".status.conditions[?(@.type==\"Ready\")]['status','reason']";

/// Evicts the second cluster, asks in both, and lets it join again.
pub(super) fn ended(directory: &Directory) -> anyhow::Result<()> {
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    installed.in_session()?;
    let planes = running.planes();
    let served = Served::start(&planes, NAMESPACE)?;
    let member = Member {
        installed: &installed,
        served: &served,
    };
    member.has_short_leases()?;
    let outcome = member.is_evicted();
    // Whatever came of it: an ex-member is of no use to anybody.
    let back = member.comes_back();
    outcome.and(back)?;
    served.end()?;
    println!("no request failed when a member was evicted, and it is back with another key");
    Ok(())
}

/// The second cluster, which is evicted.
struct Member<'a> {
    installed: &'a Installed<'a>,
    served: &'a Served<'a>,
}

impl Member<'_> {
    fn name(&self) -> &str {
        &self.served.pair.importer.plane.name
    }

    fn other(&self) -> &str {
        &self.served.pair.exporter.plane.name
    }

    /// Its cluster, seen where the agent runs.
    fn system(&self) -> Asking<'_> {
        Asking {
            plane: self.served.pair.importer.plane,
            namespace: SYSTEM,
        }
    }

    /// Gives its agent other settings, and waits for the agent with them.
    fn set(&self, settings: &[String]) -> anyhow::Result<()> {
        let (system, agent) = (self.system(), format!("deployment/{AGENT}"));
        let set = ["set", "env", &agent].into_iter();
        let set: Vec<&str> = set.chain(settings.iter().map(String::as_str)).collect();
        system.kubectl(&set)?;
        system.kubectl(&["rollout", "status", &agent, "--timeout=120s"])?;
        self.installed.in_session()
    }

    /// The documented quarter of an hour is too long to wait for.
    fn has_short_leases(&self) -> anyhow::Result<()> {
        let [lease, renew] = [LEASE, RENEW].map(|time| time.as_secs().to_string());
        self.set(&[
            format!("{}={lease}", VARIABLES[0]),
            format!("{}={renew}", VARIABLES[1]),
        ])?;
        let source = format!("lease/tributary-source-{}", self.other());
        let system = self.system();
        wait_for(&format!("{source} is short"), &system.plane.directory, || {
            let found = system.field(&source, ".spec.leaseDurationSeconds");
            found.is_ok_and(|found| found == [lease.clone()])
        })
    }

    /// Everybody answers where they should.
    fn is_member(&self) -> anyhow::Result<()> {
        let (here, there) = (self.served.pair.here()?, self.served.pair.there()?);
        let [member, other] = [self.name(), self.other()];
        for (asker, service, clusters) in [
            (&here, WEB, &[other, member][..]),
            (&there, WEB, &[other, member]),
            (&here, &*only(member), &[member]),
            (&there, &*only(other), &[other]),
        ] {
            answered_by(asker, service, &address(asker, service)?, clusters)?;
        }
        Ok(())
    }

    /// Ends its membership under requests.
    fn is_evicted(&self) -> anyhow::Result<()> {
        self.is_member()?;
        let (here, there) = (self.served.pair.here()?, self.served.pair.there()?);
        let [web, web_there] = [address(&here, WEB)?, address(&there, WEB)?];
        let asks = [(&here, &web), (&there, &web_there)].map(|(asker, address)| Asks {
            asker,
            service: WEB,
            address,
            by: ANYBODY,
        });
        let [member, other] = [self.name(), self.other()];
        unbroken(&asks, || {
            self.installed.member(&["evict", member, "--now", "--confirm"])?;
            answered_by(&here, WEB, &web, &[other])?;
            is_not_imported(here.cluster, &only(member))?;
            self.tells_it()?;
            // What it holds of others stays until the Leases of these sources expire.
            let alone = only(other);
            let alone_address = address(&there, &alone)?;
            answered_by(&there, &alone, &alone_address, &[other])?;
            answered_by(&there, WEB, &web_there, &[other, member])?;
            self.lets_go()?;
            is_not_imported(there.cluster, &alone)?;
            answered_by(&there, WEB, &web_there, &[member])?;
            answered_by(&here, WEB, &web, &[other])
        })
    }

    /// Its exports, its agent and its properties say that it is no member.
    fn tells_it(&self) -> anyhow::Result<()> {
        let cluster = &self.served.pair.importer;
        let logs = &cluster.plane.directory;
        let system = self.system();
        for export in [WEB, &*only(self.name())] {
            wait_for(
                &format!("the export {export} says that the membership ended"),
                logs,
                || {
                    let said = cluster.field(&format!("serviceexport/{export}"), READY);
                    said.is_ok_and(|said| said == ["False", "MembershipEnded"])
                },
            )?;
        }
        let agent = format!("deployment/{AGENT}");
        wait_for("the agent of an ex-member is not ready", logs, || {
            let ready = system.field(&agent, ".status.readyReplicas");
            ready.is_ok_and(|ready| ready.is_empty())
        })?;
        let property = [
            "get",
            "clusterproperties.about.k8s.io",
            "clusterset.k8s.io",
            "--ignore-not-found",
            "--output=name",
        ];
        wait_for("an ex-member names no clusterset", logs, || {
            let found = system.plane.kubectl(&property);
            found.is_ok_and(|found| found.trim().is_empty())
        })?;
        let log = system.kubectl(&["logs", &agent])?;
        if !log.contains("tributary-agent leave --without-hub") {
            return Err(Wrong("the agent's log names no command that cleans up".to_owned()).into());
        }
        println!("{} says that it is no member any more", self.name());
        Ok(())
    }

    /// Waits until the Lease of the other cluster has expired in it.
    fn lets_go(&self) -> anyhow::Result<()> {
        let cluster = &self.served.pair.importer;
        let source = format!("multicluster.kubernetes.io/source-cluster={}", self.other());
        let get = ["get", "endpointslices", "--selector", &source, "--output=name"];
        wait_at_most(
            EXPIRY_WAIT,
            "an ex-member holds nothing of others",
            &cluster.plane.directory,
            || cluster.kubectl(&get).is_ok_and(|said| said.trim().is_empty()),
        )
    }

    /// Gives it a certificate with a new key, which the hub admits, as docs/guides/leaving.md says.
    fn comes_back(&self) -> anyhow::Result<()> {
        let installer = Installer {
            installed: self.installed,
            repository: REPOSITORY,
        };
        installer.another_key(self.name())?;
        let key = self.installed.keys().join(format!("{}.key", self.name()));
        let key = fs::read_to_string(&key).with_context(|| format!("cannot read {}", key.display()))?;
        let fingerprint = shared::tls::fingerprint_of(&key)?.to_string();
        self.installed.member(&[
            "rekey",
            self.name(),
            "--key-fingerprint",
            &fingerprint,
            "--confirm",
        ])?;
        installer.prepare(self.served.pair.importer.plane)?;
        self.set(&VARIABLES.map(|variable| format!("{variable}-")))?;
        self.is_member()
    }
}

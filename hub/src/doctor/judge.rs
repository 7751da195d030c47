//! Owns: what is wrong at a hub's own place, from what was seen there: data directory, disk, event log, ports, the authority
//! with which clusters join, the inventory. Pure.
//! Never: opens, binds or asks anything.

use std::collections::{BTreeMap, BTreeSet};

use shared::{
    api::names::{LABEL_CLUSTERSET, MULTICLUSTER_GROUP},
    doctor::{own::lasting, report::Check},
    model::{UnixMillis, advice},
};

use crate::writer::STATE_ALARM_PERCENT;

/// An authority of whose life less than one part in this many is left ends soon.
const ENDS_SOON_PART: u64 = 10;

/// The data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSeen {
    /// As it was named.
    pub directory: String,
    /// Proof that the directory is there and writable, or the problem.
    pub writable: Result<(), String>,
    /// Bytes that may be written, and bytes in all, of its disk.
    pub space: Option<(u64, u64)>,
    /// The log in it.
    pub log: LogSeen,
}

/// The event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogSeen {
    /// There is none.
    None,
    /// Another process has it: a hub that runs.
    InUse,
    /// The parts of the log.
    Read(String),
    /// Why it cannot be opened, and what to do.
    Refused(String),
    /// It was written by a later release.
    Later(String),
    /// It was not looked at.
    Unread(String),
}

/// A port that a hub takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortSeen {
    /// The flag that names it.
    pub flag: &'static str,
    /// The address.
    pub address: String,
    /// The outcome of binding it.
    pub taken: Result<(), PortProblem>,
}

/// Why a port cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortProblem {
    /// Somebody has it.
    InUse,
    /// Something else.
    Other(String),
}

/// Checks the data directory and its disk; `(alarm, reserve)` are shares of it in percent.
pub fn data(seen: &DataSeen, (alarm, reserve): (u8, u8)) -> Vec<Check> {
    let directory = &seen.directory;
    let mut checks = vec![match &seen.writable {
        Ok(()) => Check::fine("data-directory", directory.clone()),
        Err(why) => Check::fault(
            "data-directory",
            format!("{directory} cannot be written: {why}"),
            "let the hub's user own it (chown, or fsGroup of the pod), on a volume that is not mounted read-only",
        ),
    }];
    checks.extend(seen.space.map(|space| disk(directory, space, (alarm, reserve))));
    checks.push(log(directory, &seen.log));
    checks
}

fn disk(directory: &str, (free, total): (u64, u64), (alarm, reserve): (u8, u8)) -> Check {
    let name = "disk";
    let below = |percent: u8| u128::from(free) * 100 < u128::from(percent) * u128::from(total);
    let share = u128::from(free) * 100 / u128::from(total.max(1));
    let what = format!("{share}% of the disk under {directory} is free");
    let fix = format!(
        "enlarge the volume, or keep less history (--retention-bytes, --retention-age); of a stopped hub: {}",
        advice::log_compact(directory)
    );
    if below(reserve) {
        return Check::fault(
            name,
            format!("{what}, less than --disk-reserve: new exports are refused"),
            fix,
        );
    }
    if below(alarm) {
        return Check::fault(name, format!("{what}, less than --disk-alarm"), fix);
    }
    Check::fine(name, what)
}

fn log(directory: &str, seen: &LogSeen) -> Check {
    let name = "event-log";
    match seen {
        LogSeen::None => Check::skipped(name, format!("no event log in {directory} yet")),
        LogSeen::InUse => Check::fine(name, "a hub has it open".to_owned()),
        LogSeen::Read(what) => Check::fine(name, what.clone()),
        LogSeen::Later(why) => Check::fault(
            name,
            format!("{directory} was written by a later release: {why}"),
            "run the release that wrote it, or a later one; an older one cannot read it",
        ),
        LogSeen::Refused(why) => Check::fault(name, why.clone(), advice::log_verify(directory)),
        LogSeen::Unread(why) => Check::unseen(name, why.clone(), "run it as the user of the hub"),
    }
}

/// Checks the ports; `hub` says that a running hub holds them.
pub fn ports(seen: &[PortSeen], hub: bool) -> Vec<Check> {
    let name = "port";
    let check = |PortSeen { flag, address, taken }: &PortSeen| match taken {
        Ok(()) if hub => Check::fault(
            name,
            format!("a hub has the data directory, and nothing listens at {flag} {address}"),
            format!("name the same {flag} as the hub's, or wait until it has replayed its log"),
        ),
        Ok(()) => Check::fine(name, format!("{flag} {address} is free")),
        Err(PortProblem::InUse) if hub => {
            Check::fine(name, format!("{flag} {address} is in use, by the hub"))
        }
        Err(PortProblem::InUse) => Check::fault(
            name,
            format!("{flag} {address} is in use, and by no hub with this data directory"),
            format!("stop what listens there (ss -ltnp says who), or choose another {flag}"),
        ),
        Err(PortProblem::Other(why)) => Check::fault(
            name,
            format!("{flag} {address} cannot be taken: {why}"),
            format!(
                "choose another {flag}: an address of this machine, and a port from 1024 on without rights"
            ),
        ),
    };
    seen.iter().map(check).collect()
}

/// Checks the readiness of a running hub: its answer at `/readyz`.
pub fn ready(said: &Result<(u16, String), String>) -> Check {
    let name = "hub-ready";
    match said {
        Ok((200, _)) => Check::fine(name, "ready"),
        Ok((_, body)) => Check::fault(
            name,
            format!("the hub is not ready: {body}"),
            "wait if it replays its log; its own log says what it waits for",
        ),
        Err(why) => Check::fault(
            name,
            format!("the hub does not answer at its admin port: {why}"),
            "see its log; restart it if it hangs, everything acknowledged is kept",
        ),
    }
}

/// Checks that the memory limit of the process, in bytes, leaves room for the state; `most` is what it leaves, if that is
/// too little.
pub fn memory(state: u64, limit: Option<u64>, most: Option<u64>) -> Check {
    let name = "memory";
    let Some(limit) = limit else {
        return Check::fine(name, "the process has no memory limit of its own");
    };
    let mib = |bytes: u64| bytes / (1024 * 1024);
    let what = format!(
        "the memory limit here is {} MiB, --state-memory {} MiB",
        mib(limit),
        mib(state)
    );
    match most {
        None => Check::fine(name, what),
        Some(most) => Check::fault(
            name,
            format!("{what}: members can make the hub run out of memory"),
            format!(
                "raise the memory limit, or start the hub with --state-memory {}MiB",
                mib(most)
            ),
        ),
    }
}

/// Checks how much of what all members together may have is used, as a hub that runs says it at `/metrics`.
pub fn state(said: &Result<(u16, String), String>) -> Check {
    let name = "state";
    let body = match said {
        Ok((200, body)) => body,
        Ok((code, _)) => return Check::unseen(name, format!("/metrics answers {code}"), SEE_ITS_LOG),
        Err(why) => return Check::unseen(name, format!("/metrics: {why}"), SEE_ITS_LOG),
    };
    let used = gauges(body, "tributary_hub_state_used");
    let limits = gauges(body, "tributary_hub_state_limit");
    let shares = limits.iter().filter_map(|(labels, limit)| {
        let percent = (used.get(labels)? * 100.0 / limit.max(1.0)) as u64;
        Some((percent, *labels))
    });
    let Some((percent, labels)) = shares.max() else {
        return Check::skipped(name, "/metrics says nothing of the state yet");
    };
    let what = format!("members have recorded {percent}% of what all may have ({labels})");
    if percent < STATE_ALARM_PERCENT {
        return Check::fine(name, what);
    }
    Check::fault(
        name,
        format!("{what}: a member that has its share waits with what is new"),
        "raise --state-memory, --state-exports or --state-endpoint-slices, and the memory limit with them; or have members \
         export less",
    )
}

/// The advice where a hub that runs cannot be asked.
const SEE_ITS_LOG: &str = "see the log of the hub";

/// The values of a gauge, by their labels.
fn gauges<'a>(metrics: &'a str, name: &str) -> BTreeMap<&'a str, f64> {
    let lines = metrics.lines().filter_map(|line| {
        let (labels, value) = line.strip_prefix(name)?.strip_prefix('{')?.rsplit_once("} ")?;
        Some((labels, value.parse().ok()?))
    });
    lines.collect()
}

/// Checks the authority of joining clusters: its validity, or the reason why it cannot be used.
pub fn joining(seen: &Result<(UnixMillis, UnixMillis), String>, now: UnixMillis) -> Check {
    let name = "joining-authority";
    let fix = format!("make another: `{}`", advice::certs_joining("DIR"));
    let (begins, ends) = match seen {
        Ok(times) => *times,
        Err(why) => return Check::fault(name, why.clone(), fix),
    };
    if now < begins {
        return Check::fault(
            name,
            "--join-cert is not valid yet",
            "set this machine's clock (NTP)",
        );
    }
    let (left, whole) = (ends.0.saturating_sub(now.0), ends.0.saturating_sub(begins.0));
    if left == 0 {
        return Check::fault(
            name,
            "--join-cert has expired: nobody joins, and nobody renews",
            fix,
        );
    }
    if left < whole / ENDS_SOON_PART {
        let what = format!(
            "--join-cert ends in {}, and certificates of members with it",
            lasting(left)
        );
        return Check::fault(name, what, fix);
    }
    Check::fine(name, format!("good for another {}", lasting(left)))
}

/// Checks the definition of ClusterProfile; plural names by `GROUP/VERSION`.
pub fn definition(served: &Result<BTreeMap<String, BTreeSet<String>>, String>) -> Check {
    let name = "inventory-definition";
    let served = match served {
        Ok(served) => served,
        Err(why) => return Check::unseen(name, why.clone(), "see that the API server answers /apis"),
    };
    let prefix = format!("{MULTICLUSTER_GROUP}/");
    let with = |(version, kinds): (&String, &BTreeSet<String>)| {
        (version.starts_with(&prefix) && kinds.contains("clusterprofiles")).then(|| version.clone())
    };
    let versions: Vec<String> = served.iter().filter_map(with).collect();
    let spoken = versions
        .iter()
        .find(|version| version.ends_with("/v1alpha1") || version.ends_with("/v1alpha2"));
    let install = "kubectl apply --server-side -f deploy/manifests/crds (or the chart tributary-crds)";
    match (spoken, versions.is_empty()) {
        (Some(version), _) => Check::fine(name, format!("clusterprofiles in {version}")),
        (None, true) => Check::fault(
            name,
            "there is no definition of clusterprofiles.multicluster.x-k8s.io",
            format!("install it: {install}"),
        ),
        (None, false) => Check::fault(
            name,
            format!("clusterprofiles are served in {} only", versions.join(", ")),
            format!("have v1alpha1 or v1alpha2 served, or install ours: {install}"),
        ),
    }
}

/// Checks the namespace of the inventory; absent if there is none, else its label.
pub fn namespace(seen: &Result<Option<Option<String>>, String>, namespace: &str, clusterset: &str) -> Check {
    let name = "inventory-namespace";
    let label = format!("kubectl label namespace {namespace} {LABEL_CLUSTERSET}={clusterset} --overwrite");
    match seen {
        Ok(Some(Some(labelled))) if labelled == clusterset => Check::fine(name, namespace.to_owned()),
        Ok(Some(_)) => Check::fault(
            name,
            format!("namespace {namespace} lacks the label of the clusterset's inventory"),
            label,
        ),
        Ok(None) => Check::fault(
            name,
            format!("there is no namespace {namespace}: ClusterProfiles have no place"),
            format!("kubectl create namespace {namespace} && {label}"),
        ),
        Err(why) => Check::unseen(name, why.clone(), "see that this account may get that namespace"),
    }
}

#[cfg(test)]
mod tests;

//! Owns: taking Tributary off clusters again, as docs/guides/leaving.md says, and looking at what is left of it.
//! Never: removes by hand what the guide says goes by itself.

use std::{cell::RefCell, fs, io::ErrorKind, path::Path};

use anyhow::{Context, ensure};

use super::{
    control::{ControlPlane, wait_for},
    installed::{HUB, Installed, NAMESPACE, release, restart_coredns},
    layout::Directory,
    running::Running,
};
use cluster::charts;

/// Label of everything that the agent writes, in every cluster.
const OURS: &str = "app.kubernetes.io/managed-by=tributary-agent";
/// Part of the name of everything else of ours.
const NAME: &str = "tributary";
/// The zone that CoreDNS answers for until then.
const ZONE: &str = "clusterset.local";
/// Kinds that say what happened, or nothing.
const UNASKED: [&str; 3] = ["events", "events.events.k8s.io", "componentstatuses"];
/// Helm's and kubectl's wait for deletions.
const END_WAIT: &str = "--timeout=2m";

/// Takes every cluster out of the clusterset, the hub's last, then the hub; or the hub first, as if it were lost. How
/// many objects each cluster had of us. It may be run again after a failure. An error names what is left.
pub(super) fn leave(directory: &Directory, hub_first: bool) -> anyhow::Result<Vec<usize>> {
    let running = Running::of(directory)?;
    let installed = Installed::of(&running)?;
    let planes = running.planes();
    let before = planes.iter().map(left).collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(
        before.iter().any(|there| !there.is_empty()),
        "there is nothing of ours"
    );
    if hub_first {
        hub_ends(&installed, &planes[0])?;
        println!("the hub is gone");
    }
    for (gone, plane) in planes.iter().enumerate().rev() {
        member_leaves(&installed, plane, &planes[..gone])?;
        println!("{} has left", plane.name);
    }
    hub_ends(&installed, &planes[0])?;
    let mut gone = Vec::new();
    for (plane, before) in planes.iter().zip(before) {
        namespace_ends(plane)?;
        let there = left(plane)?;
        ensure!(there.is_empty(), "{} still has {}", plane.name, there.join(", "));
        println!(
            "{}: {} objects of ours are gone, none is left",
            plane.name,
            before.len()
        );
        gone.push(before.len());
    }
    // A hub that finds its log again still refuses the members that were evicted.
    for kept in [installed.volume(), installed.keys()] {
        forgotten(&kept)?;
    }
    Ok(gone)
}

/// The agent first, for what it still writes would come back; then the membership, so that the others let go.
fn member_leaves(
    installed: &Installed<'_>,
    plane: &ControlPlane<'_>,
    others: &[ControlPlane<'_>],
) -> anyhow::Result<()> {
    let hub = hub_is_there(installed)?;
    let held = held(others, &plane.name)?;
    installed.helm(
        plane,
        &[
            "uninstall",
            &release("agent"),
            "--ignore-not-found",
            "--wait",
            END_WAIT,
        ],
    )?;
    if hub {
        evict(installed, &plane.name)?;
        for other in others {
            let what = format!("{} has no slice of {}", other.name, plane.name);
            wait_for(&what, &other.directory, || {
                slices_of(other, &plane.name).is_ok_and(|slices| slices.is_empty())
            })?;
        }
    }
    ends_in(installed, plane)?;
    if !hub {
        still_held(others, &plane.name, &held)?;
    }
    Ok(())
}

/// The slices that each of these clusters holds of a member.
fn held(planes: &[ControlPlane<'_>], member: &str) -> anyhow::Result<Vec<Vec<String>>> {
    planes.iter().map(|plane| slices_of(plane, member)).collect()
}

/// Nobody but a hub may say that a member is gone: without one, what others hold of it stays until they leave too.
fn still_held(others: &[ControlPlane<'_>], member: &str, before: &[Vec<String>]) -> anyhow::Result<()> {
    for ((other, before), after) in others.iter().zip(before).zip(held(others, member)?) {
        ensure!(
            *before == after,
            "{} held {} slices of {member} when the hub was gone, and now {}",
            other.name,
            before.len(),
            after.len()
        );
        println!("{} keeps {} slices of {member}", other.name, after.len());
    }
    Ok(())
}

fn slices_of(plane: &ControlPlane<'_>, member: &str) -> anyhow::Result<Vec<String>> {
    let source = format!("multicluster.kubernetes.io/source-cluster={member}");
    let slices = [
        "get",
        "endpointslices",
        "--all-namespaces",
        "--output=name",
        "--selector",
        &source,
    ];
    Ok(plane.kubectl(&slices)?.lines().map(str::to_owned).collect())
}

/// Removes the rest of a cluster without its agent.
fn ends_in(installed: &Installed<'_>, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
    // An API server forgets an admission policy some time after it is deleted.
    let what = format!("{} lets go of what the agent wrote", plane.name);
    let last = RefCell::new(None);
    let left = || match installed.leave(plane) {
        Ok(()) => true,
        Err(error) => {
            last.replace(Some(error));
            false
        }
    };
    wait_for(&what, &plane.directory, left).map_err(|late| match last.take() {
        Some(why) => why.context(late),
        None => late,
    })?;
    installed.corefile(plane, "remove")?;
    restart_coredns(plane)?;
    let rights = charts::root().join("deploy/coredns");
    plane
        .kubectl(&[
            "delete",
            "--filename",
            &rights.to_string_lossy(),
            "--ignore-not-found",
        ])
        .map(drop)
}

/// A member that an earlier run evicted is none any more.
fn evict(installed: &Installed<'_>, member: &str) -> anyhow::Result<()> {
    match installed.member(&["evict", member, "--now", "--confirm"]) {
        Err(error) if !error.to_string().contains("is not a member") => Err(error),
        _ => Ok(()),
    }
}

/// Not when an earlier run got as far as removing it.
fn hub_is_there(installed: &Installed<'_>) -> anyhow::Result<bool> {
    let planes = installed.running.planes();
    let hub = [
        "get",
        "statefulset",
        HUB,
        "--namespace",
        NAMESPACE,
        "--ignore-not-found",
        "--output=name",
    ];
    Ok(!planes[0].kubectl(&hub)?.trim().is_empty())
}

fn hub_ends(installed: &Installed<'_>, plane: &ControlPlane<'_>) -> anyhow::Result<()> {
    installed.helm(
        plane,
        &[
            "uninstall",
            &release("hub"),
            "--ignore-not-found",
            "--wait",
            END_WAIT,
        ],
    )
}

/// Removes what people made for us: the namespace with its Secrets and the hub's claim, and the volume behind that.
fn namespace_ends(plane: &ControlPlane<'_>) -> anyhow::Result<()> {
    plane.kubectl(&["delete", "namespace", NAMESPACE, "--ignore-not-found", END_WAIT])?;
    volume_ends(plane)
}

/// A provider's storage class would delete it.
pub(super) fn volume_ends(plane: &ControlPlane<'_>) -> anyhow::Result<()> {
    let volume = ["delete", "persistentvolume", HUB, "--ignore-not-found", END_WAIT];
    plane.kubectl(&volume).map(drop)
}

fn forgotten(directory: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Our remaining objects in a cluster, of any kind; the definitions stay, as the chart says.
pub(super) fn left(plane: &ControlPlane<'_>) -> anyhow::Result<Vec<String>> {
    let kinds = plane.kubectl(&["api-resources", "--verbs=list", "--output=name"])?;
    let kinds = kinds.lines().filter(|kind| !UNASKED.contains(kind));
    let kinds = kinds.collect::<Vec<_>>().join(",");
    let all = ["get", &kinds, "--all-namespaces", "--output=name"];
    let named = plane.kubectl(&all)?;
    let marked = plane.kubectl(&[&all[..], &["--selector", OURS]].concat())?;
    let mut left: Vec<String> = named
        .lines()
        .filter(|name| name.contains(NAME))
        .map(str::to_owned)
        .collect();
    left.extend(marked.lines().map(str::to_owned));
    let corefile = [
        "get",
        "configmap/coredns",
        "--namespace=kube-system",
        "--output=jsonpath={.data.Corefile}",
    ];
    let corefile = plane.kubectl(&corefile)?;
    left.extend(
        corefile
            .contains(ZONE)
            .then(|| "the zone in its Corefile".to_owned()),
    );
    left.sort();
    left.dedup();
    Ok(left)
}

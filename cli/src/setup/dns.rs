//! CoreDNS of a cluster: the right to read ServiceImports, and the zone, by the code of `tributary-agent corefile`.

use std::io::{self, BufRead, IsTerminal, Write};

use agent::corefile::{Answering, answering, args::CorefileArgs, configure, edit::Wanted};
use anyhow::{Context, bail};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{
    Api,
    api::{DeleteParams, Patch},
};
use serde::Deserialize;

use super::{
    args::Dns,
    cluster::{Cluster, FIELD_MANAGER, Right, ours},
};

/// The role of CoreDNS and its binding.
const RIGHTS: &str = "tributary-coredns";

/// The rights that a change of CoreDNS takes.
pub(super) const NEEDED: [Right<'static>; 3] = [
    Right("", "configmaps", "patch", Some("kube-system")),
    Right("rbac.authorization.k8s.io", "clusterroles", "create", None),
    Right("rbac.authorization.k8s.io", "clusterrolebindings", "create", None),
];

/// The rights that the removal takes.
pub(super) const NEEDED_TO_REMOVE: [Right<'static>; 3] = [
    Right("", "configmaps", "patch", Some("kube-system")),
    Right("rbac.authorization.k8s.io", "clusterroles", "delete", None),
    Right("rbac.authorization.k8s.io", "clusterrolebindings", "delete", None),
];

/// The DNS of a cluster, and what the user wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// The user does not want a change.
    Unwanted,
    /// CoreDNS answers the zone.
    Answers,
    /// CoreDNS is to be changed, by these lines.
    Change(String),
    /// It cannot be changed, for this reason.
    Cannot(String),
}

/// Looks at CoreDNS. Nothing is changed.
pub(super) async fn look(cluster: &Cluster, wanted: Dns) -> anyhow::Result<Seen> {
    if wanted == Dns::No {
        return Ok(Seen::Unwanted);
    }
    let args = CorefileArgs::usual(false)?;
    Ok(
        match answering(cluster.client.clone(), &args, &cluster.address).await {
            Ok(Answering::Yes) => Seen::Answers,
            Ok(Answering::Not { change }) => Seen::Change(change),
            Ok(Answering::Reverted(label)) => Seen::Cannot(format!(
                "the provider of this cluster reverts edits of CoreDNS' configuration (label {label}): give the zone \
             clusterset.local to the provider, see docs/guides/dns.md, and join with --dns no"
            )),
            Err(error) => Seen::Cannot(format!("{error:#}. Join with --dns no to leave CoreDNS as it is")),
        },
    )
}

/// Decides with the user: true if CoreDNS is to be changed.
///
/// # Errors
///
/// It was asked for and cannot be done.
pub(super) fn decide(
    seen: &Seen,
    wanted: Dns,
    ask: impl FnOnce(&str) -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    match (seen, wanted) {
        (Seen::Unwanted | Seen::Answers, _) | (_, Dns::No) => Ok(false),
        (Seen::Cannot(reason), Dns::Yes) => bail!("nothing was changed: {reason}"),
        (Seen::Cannot(_), Dns::Ask) => Ok(false),
        (Seen::Change(_), Dns::Yes) => Ok(true),
        (Seen::Change(lines), Dns::Ask) => ask(lines),
    }
}

/// Asks the user; without a terminal the answer is no.
pub(super) fn ask(lines: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let shown = lines.lines().filter(|line| line.starts_with("  "));
    eprintln!("CoreDNS of this cluster does not answer clusterset.local. These lines would change:");
    shown.for_each(|line| eprintln!("{line}"));
    eprint!("Change them? [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Lets CoreDNS read ServiceImports, and answer the zone.
pub(super) async fn add(cluster: &Cluster) -> anyhow::Result<()> {
    let mut documents = serde_norway::Deserializer::from_str(charts::coredns_rights());
    let role = documents.next().map(ClusterRole::deserialize);
    let role = role.context("the rights of CoreDNS have a role")??;
    let binding = documents.next().map(ClusterRoleBinding::deserialize);
    let binding = binding.context("the rights of CoreDNS have a binding")??;
    let roles = Api::<ClusterRole>::all(cluster.client.clone());
    let put = roles.patch(RIGHTS, &ours(), &Patch::Apply(&role)).await;
    put.map_err(|error| cluster.failed(error))?;
    let bindings = Api::<ClusterRoleBinding>::all(cluster.client.clone());
    let put = bindings.patch(RIGHTS, &ours(), &Patch::Apply(&binding)).await;
    put.map_err(|error| cluster.failed(error))?;
    let args = CorefileArgs::usual(true)?;
    configure(cluster.client.clone(), Wanted::Zone, &args, &cluster.address)
        .await
        .map(drop)
}

/// Takes both away if this client made them; true if it did. The role goes last: it marks that there is something to remove.
pub(super) async fn remove(cluster: &Cluster) -> anyhow::Result<bool> {
    let roles = Api::<ClusterRole>::all(cluster.client.clone());
    let role = roles
        .get_opt(RIGHTS)
        .await
        .map_err(|error| cluster.failed(error))?;
    if !role.is_some_and(|role| is_of_client(&role)) {
        return Ok(false);
    }
    let args = CorefileArgs::usual(true)?;
    configure(cluster.client.clone(), Wanted::NoZone, &args, &cluster.address)
        .await
        .with_context(|| {
            format!(
                "the zone clusterset.local stays in CoreDNS. Repair the reason and run the same command again, or delete \
                 the ClusterRole {RIGHTS} first to leave CoreDNS as it is"
            )
        })?;
    let bindings = Api::<ClusterRoleBinding>::all(cluster.client.clone());
    let gone = |deleted: Result<(), kube::Error>| match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map_err(|error| cluster.failed(error)),
    };
    gone(bindings.delete(RIGHTS, &DeleteParams::default()).await.map(drop))?;
    gone(roles.delete(RIGHTS, &DeleteParams::default()).await.map(drop))?;
    Ok(true)
}

/// True if this client made the role, and so the zone: a zone that the user configured is not ours to remove.
fn is_of_client(role: &ClusterRole) -> bool {
    let writers = role.metadata.managed_fields.iter().flatten();
    let mut names = writers.filter_map(|entry| entry.manager.as_deref());
    names.any(|name| name == FIELD_MANAGER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_decides_and_a_refusal_is_an_error_only_if_asked_for() {
        fn no(_: &str) -> anyhow::Result<bool> {
            bail!("nobody is asked")
        }
        let change = Seen::Change("  + zone".to_owned());
        let cannot = Seen::Cannot("the provider reverts it".to_owned());
        assert!(decide(&change, Dns::Yes, no).expect("changed"));
        assert!(!decide(&change, Dns::No, no).expect("left"));
        assert!(decide(&change, Dns::Ask, |_| Ok(true)).expect("asked"));
        assert!(!decide(&Seen::Answers, Dns::Ask, no).expect("there"));
        assert!(!decide(&cannot, Dns::Ask, no).expect("left"));
        let error = decide(&cannot, Dns::Yes, no).expect_err("refused").to_string();
        assert!(error.starts_with("nothing was changed: the provider"), "{error}");
    }

    #[test]
    fn only_a_role_of_this_client_marks_a_zone_of_this_client() {
        use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
        let of = |managers: &[&str]| {
            let mut role = ClusterRole::default();
            let entry = |manager: &&str| ManagedFieldsEntry {
                manager: Some((*manager).to_owned()),
                ..ManagedFieldsEntry::default()
            };
            role.metadata.managed_fields = Some(managers.iter().map(entry).collect());
            is_of_client(&role)
        };
        assert!(of(&[FIELD_MANAGER]));
        assert!(of(&["kubectl", FIELD_MANAGER]));
        assert!(!of(&["kubectl"]));
        assert!(!of(&[]));
        assert!(!is_of_client(&ClusterRole::default()));
    }

    #[test]
    fn the_rights_are_a_role_and_its_binding() {
        let mut documents = serde_norway::Deserializer::from_str(charts::coredns_rights());
        let role = ClusterRole::deserialize(documents.next().expect("a role")).expect("a role");
        let binding =
            ClusterRoleBinding::deserialize(documents.next().expect("a binding")).expect("a binding");
        assert_eq!(role.metadata.name.as_deref(), Some(RIGHTS));
        assert_eq!(binding.role_ref.name, RIGHTS);
    }
}

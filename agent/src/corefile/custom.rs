//! Owns: Corefiles that a cloud provider keeps: how one is known, and the server block that goes beside it. Pure.
//! Never: reads or writes anything.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};

use super::edit::{Wanted, Zone};

/// The ConfigMap beside the provider's, from which its Corefile imports.
pub(super) const CONFIGMAP: &str = "coredns-custom";
/// Our key in it: the Corefile imports what ends with `.server`.
pub(super) const KEY: &str = "clusterset.server";
/// Labels of ConfigMaps that something puts back when they are edited.
const KEPT: [(&str, &str); 2] = [
    ("addonmanager.kubernetes.io/mode", "Reconcile"),
    ("eks.amazonaws.com/component", "coredns"),
];
/// The first line of a block that this command wrote.
const OURS: &str = "# Written by tributary-agent corefile add.";

/// The label that says that something puts edits of a ConfigMap back.
pub(super) fn kept_by(labels: &BTreeMap<String, String>) -> Option<String> {
    let kept = |(name, value): &(&str, &str)| labels.get(*name).is_some_and(|found| found == value);
    let (name, value) = KEPT.into_iter().find(kept)?;
    Some(format!("{name}: {value}"))
}

/// Returns true if a Corefile imports server blocks from the ConfigMap beside it.
pub(super) fn imports_servers(corefile: &str) -> bool {
    corefile.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some("import") && words.any(|word| word.ends_with("custom/*.server"))
    })
}

/// Returns true if this command wrote the text of our key.
pub(super) fn is_ours(standing: &str) -> bool {
    standing.starts_with(OURS)
}

/// The change that our key needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// It is as it should be.
    Nothing,
    /// It is written.
    Write(String),
    /// It is removed.
    Remove,
}

/// Decides about our key, which holds `standing`. Another writer's text there is refused.
pub(super) fn decide(standing: Option<&str>, wanted: Wanted, zone: &Zone) -> anyhow::Result<Change> {
    if let Some(standing) = standing {
        ensure!(
            is_ours(standing),
            "its key {KEY} holds a server block that this command did not write: rename that key"
        );
    }
    let block = block(zone);
    Ok(match (wanted, standing) {
        (Wanted::Zone, Some(standing)) if standing == block => Change::Nothing,
        (Wanted::Zone, _) => Change::Write(block),
        (Wanted::NoZone, None) => Change::Nothing,
        (Wanted::NoZone, Some(standing)) => {
            if standing != block {
                bail!("its key {KEY} answers another zone than {zone}: name that one with --zone");
            }
            Change::Remove
        }
    })
}

/// A server block that answers the zone alone.
fn block(zone: &Zone) -> String {
    format!(
        "{OURS}\n{zone}:53 {{\n    errors\n    kubernetes {zone} {{\n        multicluster {zone}\n    }}\n    cache 30\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AKS: the add-on manager puts the ConfigMap back, and the Corefile imports two kinds of files.
    const AKS: &str = ".:53 {\n    errors\n    kubernetes cluster.local in-addr.arpa ip6.arpa {\n      pods insecure\n    }\n    \
         import custom/*.override\n}\nimport custom/*.server\n";

    fn zone() -> Zone {
        Zone::new("clusterset.local").expect("a zone")
    }

    #[test]
    fn a_providers_configmap_is_known_by_its_label() {
        let labels = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let aks = kept_by(&labels("addonmanager.kubernetes.io/mode", "Reconcile"));
        assert_eq!(aks.as_deref(), Some("addonmanager.kubernetes.io/mode: Reconcile"));
        assert!(kept_by(&labels("eks.amazonaws.com/component", "coredns")).is_some());
        assert_eq!(
            kept_by(&labels("addonmanager.kubernetes.io/mode", "EnsureExists")),
            None
        );
        assert_eq!(kept_by(&labels("k8s-app", "kube-dns")), None);
    }

    #[test]
    fn only_an_import_of_servers_can_hold_a_server_block() {
        assert!(imports_servers(AKS));
        assert!(imports_servers("    import /etc/coredns/custom/*.server"));
        assert!(!imports_servers("import custom/*.override"));
        assert!(!imports_servers("# import custom/*.server"));
    }

    #[test]
    fn our_key_is_written_once_and_removed_and_anothers_is_refused() {
        let zone = zone();
        let Change::Write(block) = decide(None, Wanted::Zone, &zone).expect("decided") else {
            panic!("nothing is written");
        };
        assert!(block.contains("\nclusterset.local:53 {\n"), "{block}");
        assert!(
            block.contains("        multicluster clusterset.local\n"),
            "{block}"
        );
        let decided = |standing, wanted| decide(standing, wanted, &zone).map_err(|error| error.to_string());
        assert_eq!(decided(Some(&*block), Wanted::Zone), Ok(Change::Nothing));
        assert_eq!(decided(Some(&*block), Wanted::NoZone), Ok(Change::Remove));
        assert_eq!(decided(None, Wanted::NoZone), Ok(Change::Nothing));
        let refused = decided(Some("example.org:53 {\n}\n"), Wanted::Zone).expect_err("somebody else's");
        assert!(refused.contains("clusterset.server"), "{refused}");
        let other = Zone::new("other.example").expect("a zone");
        let refused = decide(Some(&*block), Wanted::NoZone, &other).expect_err("another zone");
        assert!(refused.to_string().contains("--zone"), "{refused}");
    }
}

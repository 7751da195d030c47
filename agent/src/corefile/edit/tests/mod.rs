//! Corefiles as they are found in clusters, and what becomes of them.

mod laws;
mod refused;

use super::*;

/// The Corefile of kubeadm.
const KUBEADM: &str = "\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
";

/// The Corefile of K3s, a little shorter.
const K3S: &str = ".:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
      pods insecure
    }
    hosts /etc/coredns/NodeHosts {
      fallthrough
    }
    import /etc/coredns/custom/*.override
}
import /etc/coredns/custom/*.server
";

fn zone(name: &str) -> Zone {
    Zone::new(name).expect("a zone")
}

fn decided(text: &str, wanted: Wanted) -> Result<Decision, Refusal> {
    decide(text, wanted, &zone("clusterset.local"))
}

fn added(text: &str) -> String {
    let decision = decided(text, Wanted::Zone).expect("understood");
    decision.text.expect("a change")
}

fn removed(text: &str) -> String {
    let decision = decided(text, Wanted::NoZone).expect("understood");
    decision.text.expect("a change")
}

/// The zone comes, a second time it is there, it goes, a second time it is gone; and everything is as it was.
fn there_and_back(before: &str, after: &str) {
    assert_eq!(added(before), after);
    assert_eq!(decided(after, Wanted::Zone).expect("understood").text, None);
    assert_eq!(removed(after), before);
    assert_eq!(decided(before, Wanted::NoZone).expect("understood").text, None);
}

#[test]
fn kubeadms_corefile_gets_the_zone_and_loses_it_again() {
    let after = KUBEADM.replace(
        "    kubernetes cluster.local in-addr.arpa ip6.arpa {\n",
        "    kubernetes cluster.local clusterset.local in-addr.arpa ip6.arpa {\n       multicluster clusterset.local\n",
    );
    there_and_back(KUBEADM, &after);
    let decision = decided(KUBEADM, Wanted::Zone).expect("understood");
    assert!(decision.reloads && decision.imports.is_empty(), "{decision:?}");
}

#[test]
fn what_is_imported_is_told() {
    let decision = decided(K3S, Wanted::Zone).expect("understood");
    assert!(!decision.reloads && decision.text.is_some(), "{decision:?}");
    assert_eq!(
        decision.imports,
        ["/etc/coredns/custom/*.override", "/etc/coredns/custom/*.server"]
    );
}

#[test]
fn everything_else_stays_as_it_is() {
    for (before, after) in [
        // Braces come where there are none, and go with what they were for.
        (
            ".:53 {\n  kubernetes cluster.local in-addr.arpa\n}\n",
            ".:53 {\n  kubernetes cluster.local clusterset.local in-addr.arpa {\n    multicluster clusterset.local\n  }\n}\n",
        ),
        (
            ". {\n\tkubernetes cluster.local # ours\n\terrors\n}",
            ". {\n\tkubernetes cluster.local clusterset.local { # ours\n\t\tmulticluster clusterset.local\n\t}\n\terrors\n}",
        ),
        (
            ".\n{\nkubernetes cluster.local  \n}",
            ".\n{\nkubernetes cluster.local clusterset.local {  \n    multicluster clusterset.local\n}\n}",
        ),
        // The lines of another system, comments, empty lines, zones behind those of addresses.
        (
            ".:53 {\r\n  kubernetes cluster.local {\r\n    ttl 5\r\n  }\r\n}\r\n",
            ".:53 {\r\n  kubernetes cluster.local clusterset.local {\r\n    multicluster clusterset.local\r\n    ttl 5\r\n  }\r\n}\r\n",
        ),
        (
            ".:53 {\n    kubernetes 10.96.0.0/12 a.b  c.d ip6.arpa { # why\n        # a comment {\n\n    } # end\n}\n",
            ".:53 {\n    kubernetes 10.96.0.0/12 a.b  c.d clusterset.local ip6.arpa { # why\n        multicluster clusterset.local\n        # a comment {\n\n    } # end\n}\n",
        ),
        // If only a comment follows the brace, the braces are a person's.
        (
            ". {\n  kubernetes a.b {\n  } # mine\n}\n",
            ". {\n  kubernetes a.b clusterset.local {\n    multicluster clusterset.local\n  } # mine\n}\n",
        ),
        // An indented block: an option is indented from its directive as the directive is from its block.
        (
            "  . {\n    kubernetes a.b\n  }\n",
            "  . {\n    kubernetes a.b clusterset.local {\n      multicluster clusterset.local\n    }\n  }\n",
        ),
        // Queries for the zone reach the block of that name, whatever others listen to.
        (
            "local:53 {\n  kubernetes a.b\n}\n.:53 clusterset.local:5353 tls://clusterset.local x.clusterset.locale {\n}\n(clusterset.local) {\n}\n",
            "local:53 {\n  kubernetes a.b clusterset.local {\n    multicluster clusterset.local\n  }\n}\n.:53 clusterset.local:5353 tls://clusterset.local x.clusterset.locale {\n}\n(clusterset.local) {\n}\n",
        ),
    ] {
        there_and_back(before, after);
    }
}

#[test]
fn what_a_person_wrote_is_removed_as_well() {
    for (before, after) in [
        (
            ". {\n  kubernetes  clusterset.local   a.b in-addr.arpa {\n    ttl 5\n    multicluster Clusterset.local. # theirs\n    pods insecure\n  }\n}\n",
            ". {\n  kubernetes   a.b in-addr.arpa {\n    ttl 5\n    # theirs\n    pods insecure\n  }\n}\n",
        ),
        (
            ". {\n  kubernetes a.b ClusterSet.local. {\n\n    multicluster clusterset.local\n  }\n}\n",
            ". {\n  kubernetes a.b {\n\n  }\n}\n",
        ),
        (
            ". {\n  kubernetes a.b clusterset.local {\n    multicluster clusterset.local\n    # a comment\n  }\n}\n",
            ". {\n  kubernetes a.b {\n    # a comment\n  }\n}\n",
        ),
    ] {
        assert_eq!(removed(before), after);
        assert_eq!(decided(before, Wanted::Zone).expect("understood").text, None);
        assert_eq!(decided(after, Wanted::NoZone).expect("understood").text, None);
    }
}

#[test]
fn a_corefile_of_the_largest_size_is_read() {
    let comment = "#".repeat(COREFILE_BYTES_MAX - KUBEADM.len());
    assert!(decided(&format!("{KUBEADM}{comment}"), Wanted::Zone).is_ok());
    let refusal = decided(&format!("{KUBEADM}{comment}#"), Wanted::Zone).expect_err("too large");
    let bytes = COREFILE_BYTES_MAX + 1;
    let most = COREFILE_BYTES_MAX;
    assert_eq!(refusal, Refusal::TooLarge { bytes, most });
}

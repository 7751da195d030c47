//! Corefiles that are not changed, and the message about each.

use super::{
    super::{Refusal, Wanted, decide},
    KUBEADM, zone,
};

/// A server block with this inside.
fn block(inside: &str) -> String {
    format!(". {{\n{inside}\n}}\n")
}

/// The one-line refusal that both commands must give of a Corefile; it says what to do.
fn refused(text: &str, name: &str) -> Refusal {
    let refusals =
        [Wanted::Zone, Wanted::NoZone].map(|wanted| decide(text, wanted, &zone(name)).expect_err(text));
    let [refusal, other] = refusals;
    assert_eq!(refusal, other, "{text}");
    let said = refusal.to_string();
    assert!(!said.contains('\n') && said.contains(": "), "{said}");
    refusal
}

fn owned(text: &str) -> String {
    text.to_owned()
}

#[test]
fn a_corefile_without_its_one_directive_is_left_alone() {
    let line = 2;
    for (text, refusal) in [
        (String::new(), Refusal::NoKubernetes),
        (block("# kubernetes cluster.local"), Refusal::NoKubernetes),
        (
            block("import a.conf\nerrors") + "import b/*\n",
            Refusal::Imported {
                imports: owned("a.conf, b/*"),
            },
        ),
        (
            format!("(s) {{\nkubernetes a.b\n}}\n{}", block("import s")),
            Refusal::InSnippet { line },
        ),
        (
            block("kubernetes a.b\nkubernetes c.d"),
            Refusal::SeveralKubernetes { first: 2, second: 3 },
        ),
        (
            block("kubernetes a.b\n") + "c.d {\nkubernetes c.d\n}\n",
            Refusal::SeveralKubernetes { first: 2, second: 6 },
        ),
        (
            block("multicluster clusterset.local\nkubernetes a.b"),
            Refusal::ExternalPlugin { line },
        ),
        (
            owned(". { kubernetes a.b\n}\n"),
            Refusal::NotOnItsOwnLine { line: 1 },
        ),
    ] {
        assert_eq!(refused(&text, "clusterset.local"), refusal, "{text}");
    }
}

#[test]
fn a_directive_that_is_not_understood_is_left_alone() {
    let line = 2;
    for (inside, refusal) in [
        ("kubernetes", Refusal::NoZones { line }),
        ("kubernetes {\n}", Refusal::NoZones { line }),
        (
            "kubernetes in-addr.arpa ip6.arpa",
            Refusal::NoClusterZone { line },
        ),
        ("kubernetes \"a.b\"", Refusal::UnreadZone { line }),
        ("kubernetes {$ZONE} a.b", Refusal::UnreadZone { line }),
        ("kubernetes a.b {%ZONE%}", Refusal::UnreadZone { line }),
        ("kubernetes a.b{\n", Refusal::UnreadZone { line }),
        ("kubernetes a.b {}\n", Refusal::UnreadZone { line }),
        ("kubernetes a.b { }", Refusal::OddBraces { line }),
        ("kubernetes a.b { ttl 5\n}", Refusal::OddBraces { line }),
        ("kubernetes a.b {\nttl 5 }", Refusal::OddBraces { line: 3 }),
        ("kubernetes a.b {\nx {\ny\n}\n}", Refusal::OddBraces { line: 3 }),
        ("kubernetes a.b {\n} c", Refusal::OddBraces { line: 3 }),
        ("kubernetes a.b\n{\nttl 5\n}", Refusal::OddBraces { line: 3 }),
        (
            "kubernetes a.b {\nttl 5\nimport s\n}",
            Refusal::ImportedOptions { line: 4 },
        ),
        (
            "kubernetes a.b {\nmulticluster {$SET}\n}",
            Refusal::UnreadZone { line: 3 },
        ),
        (
            "kubernetes a.b {\nmulticluster \"a\"\n}",
            Refusal::UnreadZone { line: 3 },
        ),
    ] {
        let text = block(inside);
        assert_eq!(refused(&text, "clusterset.local"), refusal, "{text}");
    }
}

#[test]
fn half_a_configuration_and_another_zone_are_told() {
    let set = || owned("set.x");
    let (line, option) = (2, 3);
    for (inside, refusal) in [
        ("kubernetes a.b set.x", Refusal::OnlyListed { line, zone: set() }),
        (
            "kubernetes a.b set.x {\nttl 5\n}",
            Refusal::OnlyListed { line, zone: set() },
        ),
        (
            "kubernetes a.b {\nmulticluster set.x\n}",
            Refusal::OnlyOption {
                line: option,
                kubernetes: line,
                zone: set(),
            },
        ),
        (
            "kubernetes a.b set.x SET.x. {\nmulticluster set.x\n}",
            Refusal::ListedTwice { line, zone: set() },
        ),
        (
            "kubernetes a.b {\nmulticluster\n}",
            Refusal::MulticlusterWithoutZone {
                line: option,
                zone: set(),
            },
        ),
        (
            "kubernetes a.b other.x {\nmulticluster other.x\n}",
            Refusal::OtherZone {
                line: option,
                other: owned("other.x"),
                zone: set(),
            },
        ),
        (
            "kubernetes a.b set.x c.d {\nmulticluster set.x c.d\n}",
            Refusal::SeveralZones {
                line: option,
                zones: owned("set.x, c.d"),
            },
        ),
        (
            "kubernetes a.b set.x {\nmulticluster set.x\nttl 5\nmulticluster other.x\n}",
            Refusal::SeveralZones {
                line: option,
                zones: owned("set.x, other.x"),
            },
        ),
        ("kubernetes set.x", Refusal::OwnZone { line, zone: set() }),
        (
            "kubernetes Set.x in-addr.arpa {\n}",
            Refusal::OwnZone { line, zone: set() },
        ),
        (
            "kubernetes set.x a.b {\nttl 5\n}",
            Refusal::OwnZone { line, zone: set() },
        ),
        (
            "kubernetes set.x {\nmulticluster set.x\n}",
            Refusal::OwnZone { line, zone: set() },
        ),
    ] {
        let text = block(inside);
        assert_eq!(refused(&text, "set.x"), refusal, "{text}");
    }
    let own = refused(KUBEADM, "cluster.local").to_string();
    assert!(
        own.starts_with("line 7: cluster.local is the cluster's own zone"),
        "{own}"
    );
}

/// The zone would be in the Corefile, and nobody would be asked for it.
#[test]
fn a_zone_that_another_block_answers_is_not_added() {
    let zone = || owned("clusterset.local");
    let elsewhere = |line, name| Refusal::AnsweredElsewhere {
        line,
        name: owned(name),
        zone: zone(),
    };
    for (text, refusal) in [
        (
            owned("\ncluster.local:53 in-addr.arpa {\nkubernetes cluster.local\n}\n"),
            Refusal::NotAsked {
                line: 2,
                zone: zone(),
                names: owned("cluster.local:53, in-addr.arpa"),
            },
        ),
        (
            block("kubernetes a.b") + "clusterset.local {\n}\n",
            elsewhere(4, "clusterset.local"),
        ),
        (
            block("kubernetes a.b") + "x, dns://Local.:53 {\n}\n",
            elsewhere(4, "dns://Local.:53"),
        ),
        (
            owned("svc.clusterset.local {\n}\n") + &block("kubernetes a.b"),
            elsewhere(1, "svc.clusterset.local"),
        ),
        (
            owned("clusterset.local {\nkubernetes a.b\n}\nx.clusterset.local {\n}\n"),
            elsewhere(4, "x.clusterset.local"),
        ),
        (
            owned("tls://. {\nkubernetes a.b\n}\ntls://local {\n}\n"),
            elsewhere(4, "tls://local"),
        ),
        (
            block("kubernetes a.b") + "{$NAME}:53 {\n}\n",
            Refusal::UnreadName {
                line: 4,
                name: owned("{$NAME}:53"),
            },
        ),
    ] {
        let said = decide(&text, Wanted::Zone, &super::zone("clusterset.local")).expect_err(&text);
        assert_eq!(said, refusal, "{text}");
        assert!(!said.to_string().contains('\n'), "{said}");
        let absent = decide(&text, Wanted::NoZone, &super::zone("clusterset.local")).expect("nothing to do");
        assert_eq!(absent.text, None);
    }
}

//! Properties of every Corefile, whatever its spaces, comments and neighbours.

use proptest::{prelude::*, sample::select};

use super::{
    super::{Decision, Wanted},
    KUBEADM, decided, there_and_back,
};

/// A Corefile that is understood, without the zone; the braces of its directive hold something, if there are any.
fn corefile() -> impl Strategy<Value = String> {
    let indent = select(vec!["", " ", "  ", "    ", "\t"]);
    let newline = select(vec!["\n", "\r\n"]);
    let zones = select(vec![
        "a.b",
        "a.b in-addr.arpa  ip6.arpa",
        "10.0.0.0/8 a.b c.d",
        "a.b\tc.d. fd00::/64",
    ]);
    let comment = select(vec!["", " # multicluster {", "  ", "\t#}"]);
    let options = vec![
        "ttl 5",
        "pods insecure # why",
        "# multicluster clusterset.local",
        "fallthrough \"x\" {$Y}",
    ];
    let options = proptest::option::of(proptest::collection::vec(select(options), 1..4));
    let neighbours = vec![
        "errors",
        "health {|lameduck 5s|}",
        "reload",
        "",
        "import a/*",
        "# }",
    ];
    let neighbours = proptest::collection::vec(select(neighbours), 0..4);
    let other = select(vec![
        "",
        "import b/*|",
        "x.y:53 {|  forward . 1.1.1.1|}|",
        "(s) {|x {|}|}|",
        "|# end",
    ]);
    (indent, newline, zones, comment, options, neighbours, other).prop_map(
        |(indent, newline, zones, comment, options, neighbours, other)| {
            let mut text = format!(".:53 {{{comment}|");
            for line in &neighbours {
                text.push_str(&format!("{indent}{line}|"));
            }
            let braces = match options {
                Some(options) => {
                    let lines = options.iter().map(|option| format!("{indent}{indent}{option}|"));
                    format!(" {{{comment}|{}{indent}}}{comment}", lines.collect::<String>())
                }
                None => comment.to_owned(),
            };
            text.push_str(&format!("{indent}kubernetes {zones}{braces}|}}|{other}"));
            text.replace('|', newline)
        },
    )
}

/// Words that matter, where nobody expects them.
fn disturbance() -> impl Strategy<Value = &'static str> {
    select(vec![
        "{",
        "}",
        "\n",
        "\r",
        " ",
        "\"",
        "#",
        "\\",
        ",",
        "é",
        "import",
        "kubernetes",
        "multicluster",
        " multicluster x ",
        "cluster.local",
        " clusterset.local ",
        "\nmulticluster clusterset.local\n",
        "{$A}",
        "(s) {",
        "\u{feff}",
        ".",
    ])
}

/// A decision, once applied, leaves nothing to decide.
fn consistent(text: &str, wanted: Wanted) {
    if let Ok(Decision {
        text: Some(changed), ..
    }) = decided(text, wanted)
    {
        assert_ne!(changed, text);
        assert_eq!(
            decided(&changed, wanted).expect("understood").text,
            None,
            "{text}\n->\n{changed}"
        );
        let (back, other) = match wanted {
            Wanted::Zone => (decided(&changed, Wanted::NoZone), Wanted::NoZone),
            Wanted::NoZone => (decided(&changed, Wanted::Zone), Wanted::Zone),
        };
        // Another block may be asked for the zone that a person had configured.
        if let Ok(Decision { text: Some(back), .. }) = back {
            assert_eq!(
                decided(&back, other).expect("understood").text,
                None,
                "{text}\n->\n{back}"
            );
        } else {
            assert_eq!(other, Wanted::Zone, "{text}\n->\n{changed}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_added_is_removed_byte_for_byte(text in corefile()) {
        let after = super::added(&text);
        there_and_back(&text, &after);
        // Two pieces come, and with the lines that they are in nothing else goes.
        let new = after.lines().filter(|line| !text.lines().any(|other| other == *line)).count();
        prop_assert!(new <= 3, "{text}\n->\n{after}");
    }

    #[test]
    fn a_disturbed_corefile_is_refused_or_understood(
        at in 0..KUBEADM.len(),
        length in 0..12_usize,
        piece in disturbance(),
        twice in 0..KUBEADM.len(),
    ) {
        let after = super::added(KUBEADM);
        for text in [KUBEADM, &after] {
            let mut text = text.to_owned();
            text.replace_range(at..(at + length).min(text.len()), piece);
            consistent(&text, Wanted::Zone);
            consistent(&text, Wanted::NoZone);
            if text.is_char_boundary(twice) {
                text.insert_str(twice, piece);
                consistent(&text, Wanted::Zone);
                consistent(&text, Wanted::NoZone);
            }
        }
    }
}

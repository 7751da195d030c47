//! Owns: the law of words: what programs print is written for people, not as Rust writes its values.
//! Never: judges what tests print.

use super::source::{self, Source};
use anyhow::ensure;
use libtest_mimic::Trial;
use regex::Regex;
use tributary_e2e::suite::plain_test;

/// Sources whose messages are read.
const PROGRAMS: [&str; 4] = ["shared/", "hub/", "agent/", "cli/"];

/// Sources whose log fields are read: the programs that people run.
const LOGGING: [&str; 3] = ["shared/", "hub/", "agent/"];

/// A place and a value that may be written as Rust does, with the reason.
struct Allowed {
    /// The beginning of the file's path.
    path: &'static str,
    /// The text between the braces, before the colon; empty: any.
    shown: &'static [&'static str],
    #[expect(dead_code, reason = "it is for whoever reads the list")]
    why: &'static str,
}

const ALLOWED: &[Allowed] = &[
    Allowed {
        path: "",
        shown: &["filter", "line", "name", "named", "room", "text", "unknown"],
        why: "a text that somebody typed or sent, in quotation marks, with what cannot be seen in it",
    },
    Allowed {
        path: "",
        shown: &[
            "RELEASE_WAIT",
            "RENEW_WAIT",
            "REQUEST_WAIT",
            "START_WAIT",
            "STOP_WAIT",
            "needed",
        ],
        why: "a duration: Rust writes it as people do, 1.5s",
    },
    Allowed {
        path: "shared/api-client/src/deadline.rs",
        shown: &["0"],
        why: "a duration",
    },
    Allowed {
        path: "shared/src/process/supervise.rs",
        shown: &["longest"],
        why: "a duration",
    },
    Allowed {
        path: "shared/model/src/name.rs",
        shown: &["value"],
        why: "a text that somebody typed or sent, in quotation marks",
    },
    Allowed {
        path: "shared/model/src/validate/mod.rs",
        shown: &["head"],
        why: "a text that somebody typed or sent, in quotation marks",
    },
    Allowed {
        path: "shared/src/identity.rs",
        shown: &["uri"],
        why: "a text that somebody typed or sent, in quotation marks",
    },
    Allowed {
        path: "shared/src/tls/address.rs",
        shown: &["0"],
        why: "a text that somebody typed or sent, in quotation marks",
    },
    Allowed {
        path: "shared/src/tls/lifetime.rs",
        shown: &[""],
        why: "how a lifetime is written where Rust's form is asked for: as its words",
    },
    Allowed {
        path: "shared/wire/src/frozen.rs",
        shown: &[],
        why: "a suite of tests",
    },
    Allowed {
        path: "shared/wire/src/refusals.rs",
        shown: &[],
        why: "a suite of tests",
    },
    Allowed {
        path: "shared/wire/src/round_trip.rs",
        shown: &[],
        why: "a suite of tests",
    },
    Allowed {
        path: "agent/engine/src/apply/failure.rs",
        shown: &["0"],
        why: "a duration",
    },
    Allowed {
        path: "e2e/sim/src/",
        shown: &[],
        why: "refusals quote what was sent as those of real API servers do",
    },
    Allowed {
        path: "e2e/netsim/src/clusterset.rs",
        shown: &["event"],
        why: "a line of the trace, which is hashed; whoever reads it has the source beside it",
    },
    Allowed {
        path: "e2e/oracle/src/declared.rs",
        shown: &[""],
        why: "a value that is compared and never shown",
    },
    Allowed {
        path: "e2e/variants/src/planted/mod.rs",
        shown: &["depth"],
        why: "a question that is hashed and never shown",
    },
    Allowed {
        path: "e2e/variants/src/mutants/mod.rs",
        shown: &[""],
        why: "a question that is hashed and never shown",
    },
    Allowed {
        path: "agent/src/doctor/gather.rs",
        shown: &[],
        why: "files for a maintainer, who reads objects and messages as they are",
    },
    Allowed {
        path: "cli/src/operate/gather.rs",
        shown: &[],
        why: "files for a maintainer, who reads messages as they are",
    },
    Allowed {
        path: "hub/src/run/layout",
        shown: &[],
        why: "texts that somebody typed, in quotation marks",
    },
    Allowed {
        path: "hub/topology/clusterclass/src/template/functions/urls.rs",
        shown: &[],
        why: "texts in quotation marks, as Go writes them",
    },
    Allowed {
        path: "e2e/netsim/src/script.rs",
        shown: &[],
        why: "the history of a simulation, for who knows its source",
    },
    Allowed {
        path: "shared/wire/src/hostile.rs",
        shown: &["took"],
        why: "a duration",
    },
    Allowed {
        path: "shared/src/tls/look.rs",
        shown: &[],
        why: "an implementation of `Debug`, which shows no key",
    },
    Allowed {
        path: "hub/log/src/",
        shown: &[],
        why: "the store's own words, and suites of tests; no message of the log shows a value of ours",
    },
];

pub(super) fn trials() -> Vec<Trial> {
    vec![
        plain_test("tidy::messages_show_no_raw_structure", messages),
        plain_test("tidy::raw_structures_in_messages_are_seen", check_sees),
        plain_test("tidy::log_fields_show_no_raw_structure", log_fields),
    ]
}

fn messages() -> anyhow::Result<()> {
    let mut found = Vec::new();
    let sources = source::files(&[".rs"])?;
    for Allowed { path, .. } in ALLOWED {
        ensure!(
            sources.iter().any(|source| source.path.starts_with(path)),
            "{path} is allowed to show values, and is not there: correct the path"
        );
    }
    for source in sources {
        let product = PROGRAMS.iter().any(|path| source.path.starts_with(path));
        let program = product || source::is_e2e(&source.path);
        if program && !source.is_test() {
            found.extend(raw(&source)?);
        }
    }
    ensure!(
        found.is_empty(),
        "a value is shown as Rust writes it; say it in words (`Display`), or list why it may be shown so:\n{}",
        found.join("\n")
    );
    Ok(())
}

/// `?field` in a log line shows `Some(…)`, `None` and quotation marks. `%field`, or `option.map(field::display)`, does not.
fn log_fields() -> anyhow::Result<()> {
    let mut found = Vec::new();
    for source in source::files(&[".rs"])? {
        let logs = LOGGING.iter().any(|path| source.path.starts_with(path));
        if logs && !source.is_test() {
            found.extend(raw_fields(&source)?);
        }
    }
    ensure!(
        found.is_empty(),
        "a log field is shown as Rust writes it; use `%field`, or `option.map(tracing::field::display)`:\n{}",
        found.join("\n")
    );
    let judged = |text: &str| {
        raw_fields(&Source {
            path: "hub/src/run.rs".to_owned(),
            text: text.to_owned(),
        })
    };
    for bad in [
        "    info!(?remote, \"came\");\n",
        "    info!(name, version = ?agent.version(), \"came\");\n",
        "            epoch = ?lease.epoch(),\n",
    ] {
        ensure!(judged(bad)?.len() == 1, "not seen: {bad}");
    }
    let good = "    let read = read(path)?;\n    pass(one?, other()?);\n    fn over<T: ?Sized>(of: &T);\n";
    ensure!(judged(good)?.is_empty(), "seen: {good}");
    Ok(())
}

/// The log fields of a file that are shown as Rust writes them.
fn raw_fields(source: &Source) -> anyhow::Result<Vec<String>> {
    let field = Regex::new(r"(?:^|[\s(,=])\?[a-z_][\w.()]*\s*[,)]")?;
    let lines = source.code().into_iter().filter(|(_, line)| field.is_match(line));
    Ok(lines
        .map(|(number, line)| format!("{}:{number}: {}", source.path, line.trim()))
        .collect())
}

/// The values that a file shows as Rust writes them, but for those that may be.
fn raw(source: &Source) -> anyhow::Result<Vec<String>> {
    let shown = Regex::new(r"\{(\w*):#?\?\}")?;
    let mut found = Vec::new();
    // Most lines show nothing; the expression is slow.
    let lines = source.code().into_iter().filter(|(_, line)| line.contains("?}"));
    for (number, line) in lines {
        for captured in shown.captures_iter(line) {
            let what = &captured[1];
            let allowed = |entry: &&Allowed| {
                source.path.starts_with(entry.path) && (entry.shown.is_empty() || entry.shown.contains(&what))
            };
            if !ALLOWED.iter().any(|entry| allowed(&entry)) {
                found.push(format!("{}:{number}: {}", source.path, &captured[0]));
            }
        }
    }
    Ok(found)
}

fn check_sees() -> anyhow::Result<()> {
    let judged = |path: &str, text: &str| {
        raw(&Source {
            path: path.to_owned(),
            text: text.to_owned(),
        })
    };
    for bad in [
        "    println!(\"{:?}\", step);\n",
        "    bail!(\"{lost:#?}\");\n",
        "    context(format!(\"after {step:?}\"))\n",
    ] {
        ensure!(
            judged("e2e/swarm/src/main.rs", bad)?.len() == 1,
            "not seen: {bad}"
        );
    }
    let good = "    println!(\"{step}\");\n#[cfg(test)]\nmod tests {\n    panic!(\"{step:?}\");\n}\n";
    ensure!(judged("hub/src/run.rs", good)?.is_empty(), "seen: {good}");
    let quoted = "    bail!(\"{name:?} is no name\");\n";
    ensure!(judged("hub/src/run.rs", quoted)?.is_empty(), "seen: {quoted}");
    Ok(())
}

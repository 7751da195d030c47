//! Owns: the invariants of the gates, `.ci/run` and `.ci/release`: nothing is left out in silence, and a run of nothing
//! is no success.
//! Never: runs a phase; it runs single functions of the script on samples.

use super::source;
use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use std::{
    io::Write,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Output, Stdio},
};
use tributary_e2e::suite::plain_test;

/// The functions that both gates share, below the workspace.
const GATE: &str = ".ci/gate.sh";
/// Guards a change.
const RUN: &str = ".ci/run";
/// Guards a release.
const RELEASE: &str = ".ci/release";
/// Phases of `.ci/run` that are no checks: builds of what runs beside the tests there.
const BUILDS: [&str; 3] = ["image", "build simulations", "build simulated network"];
/// A `cargo-deny` to which everything is well, but for the database, which it cannot fetch if there is a file `closed`
/// beside it, and for advisories, which it finds if there is a file `vulnerable`.
const CARGO_DENY: &str = r#"#!/bin/sh
case "$*" in
  *fetch\ db*) [ ! -e "$(dirname "$0")/closed" ] ;;
  *advisories*) [ ! -e "$(dirname "$0")/vulnerable" ] ;;
esac
"#;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        plain_test("tidy::the_gate_fails_what_cannot_run", in_ci),
        plain_test(
            "tidy::the_gate_of_a_release_checks_what_that_of_a_change_does",
            release_has_all,
        ),
        plain_test("tidy::every_part_of_a_release_runs", every_part),
        plain_test("tidy::the_gate_waits_for_what_it_begins", joined),
        plain_test("tidy::the_gate_counts_the_tests_that_ran", counts),
        plain_test("tidy::the_gate_adds_processor_seconds", processor_seconds),
        plain_test("tidy::the_gate_can_require_advisories", advisories),
        plain_test("tidy::the_gate_can_require_nodes", nodes),
    ]
}

/// `CI=true` is set where functions are defined, before the first phase of either gate, and nothing unsets it.
fn in_ci() -> anyhow::Result<()> {
    let shared = source::text_of(GATE)?;
    ensure!(
        shared.contains("\nset -euo pipefail\n"),
        "{GATE}: a failure would go on"
    );
    ensure!(
        shared.lines().any(|line| line == "export CI=true"),
        "{GATE}: no `export CI=true`"
    );
    for gate in [RUN, RELEASE] {
        let script = source::text_of(gate)?;
        let place = |wanted: &dyn Fn(&str) -> bool| script.lines().position(wanted);
        let sourced = place(&|line| line == "source \"$(dirname \"$0\")/gate.sh\"");
        let sourced = sourced.with_context(|| format!("{gate} does not source {GATE}"))?;
        let first = place(&|line| line.trim_start().starts_with("phase \"")).context("no phases")?;
        ensure!(sourced < first, "{gate}: a phase runs before CI=true");
        let ran = phases(&script).iter().position(|phase| *phase == "tests");
        let counted = phases(&script)
            .iter()
            .position(|phase| *phase == "tests that ran");
        ensure!(
            ran < counted && script.contains("\"tests that ran\" count_tests\n"),
            "{gate}: nobody counts the tests"
        );
    }
    for file in [GATE, RUN, RELEASE] {
        let script = source::text_of(file)?;
        let unsets = |line: &&str| {
            let code = line.split('#').next().unwrap_or_default();
            (code.contains("CI=") && code.trim() != "export CI=true") || code.contains("unset CI")
        };
        let unset: Vec<_> = script.lines().filter(unsets).collect();
        ensure!(unset.is_empty(), "{file}: CI=true is unset: {unset:?}");
    }
    Ok(())
}

/// The names of the phases of a script.
fn phases(script: &str) -> Vec<&str> {
    script
        .lines()
        .filter_map(|line| {
            let line = line.trim_start();
            let name = line
                .strip_prefix("phase \"")
                .or_else(|| line.strip_prefix("joined \""));
            Some(name?.split_once('"')?.0)
        })
        .collect()
}

/// Phases beside those in front are awaited, in their order: one that nobody waits for could fail in silence.
fn joined() -> anyhow::Result<()> {
    for gate in [RUN, RELEASE] {
        let script = source::text_of(gate)?;
        let names = |word: &str| -> Vec<_> {
            let named = |line: &str| {
                Some(
                    line.trim_start()
                        .strip_prefix(word)?
                        .split_once('"')?
                        .0
                        .to_owned(),
                )
            };
            script.lines().filter_map(named).collect()
        };
        let (mut beside, mut waited) = (names("beside \""), names("joined \""));
        let groups = script
            .lines()
            .filter(|line| line.trim_start().starts_with("begin_beside "))
            .count();
        let ends = script.lines().filter(|line| line.trim() == "joined all").count();
        ensure!(
            groups == ends && groups > 0,
            "{gate}: {groups} groups beside, {ends} ends"
        );
        beside.sort();
        waited.sort();
        ensure!(
            beside == waited,
            "{gate}: beside others {beside:?}, waited for {waited:?}"
        );
    }
    Ok(())
}

fn release_has_all() -> anyhow::Result<()> {
    let [run, release] = [RUN, RELEASE].map(source::text_of);
    let (run, release) = (run?, release?);
    let release = phases(&release);
    let missing: Vec<_> = phases(&run)
        .into_iter()
        .filter(|phase| !BUILDS.contains(phase) && !release.contains(phase))
        .collect();
    ensure!(missing.is_empty(), "{RELEASE} lacks phases of {RUN}: {missing:?}");
    Ok(())
}

/// The parts that `.ci/release` names are those it has, and the workflow of a release runs each; another is refused
/// before anything runs.
fn every_part() -> anyhow::Result<()> {
    let script = source::text_of(RELEASE)?;
    let named = script
        .lines()
        .find_map(|line| line.strip_prefix("readonly PARTS=(")?.strip_suffix(')'))
        .context("no PARTS")?;
    let named: Vec<_> = named.split(' ').collect();
    let has: Vec<_> = script
        .lines()
        .filter_map(|line| line.strip_prefix("part_")?.strip_suffix("() {"))
        .collect();
    ensure!(named == has, "{RELEASE} names {named:?} and has {has:?}");
    let outside: Vec<_> = script
        .lines()
        .filter(|line| line.starts_with("phase \""))
        .collect();
    ensure!(outside.len() == 2, "{RELEASE}: in no part: {outside:?}");
    let workflow = source::text_of(".github/workflows/release.yaml")?;
    let quoted: Vec<_> = named.iter().map(|part| format!("\"{part}\"")).collect();
    let wanted = format!("      parts: '[{}]'\n", quoted.join(", "));
    ensure!(workflow.contains(&wanted), "release.yaml has no {wanted}");
    let (before, _) = script
        .split_once("\n# shellcheck source=")
        .context("the parts are not checked before everything else")?;
    for (part, passes) in [("simulation", false), ("fuzz", true)] {
        let mut bash = Command::new("bash");
        let ran = run(bash.arg("-c").arg(before).arg(RELEASE).arg(part), "")?;
        let said = String::from_utf8_lossy(&ran.stderr);
        ensure!(ran.status.success() == passes, "{part}: {said}");
        ensure!(passes || said.contains("its parts are tests "), "{said}");
    }
    Ok(())
}

fn processor_seconds() -> anyhow::Result<()> {
    let function = function_of(&source::text_of(GATE)?, "cpu_of")?;
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(format!("{function}\ncpu_of /dev/stdin"));
    let ran = run(&mut bash, "0m1.500s 0m0.250s\n1m2.000s 0m3.250s\n")?;
    let text = String::from_utf8_lossy(&ran.stdout);
    ensure!(
        text == "67\n",
        "not 67 s: {text}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    Ok(())
}

/// The last line of Rust's harness for a binary.
fn result(passed: u32, failed: u32, ignored: u32) -> String {
    let word = if failed == 0 { "ok" } else { "FAILED" };
    format!(
        "test result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out; \
         finished in 0.01s\n"
    )
}

fn counts() -> anyhow::Result<()> {
    let function = function_of(&source::text_of(GATE)?, "count_tests")?;
    let (_, program) = function
        .split_once("awk '")
        .context("count_tests has no awk program")?;
    let (program, _) = program.split_once('\'').context("its program does not end")?;
    let skipped = "test fs::a_mount ... ignored, no right to mount\n";
    let nothing = [result(0, 0, 0), result(0, 0, 0)].concat();
    for (sample, passes, said) in [
        (
            result(3, 0, 0) + &result(4, 0, 0),
            true,
            "7 passed, 0 failed, 0 skipped",
        ),
        // A binary that failed is not made good by those after it.
        (
            result(3, 1, 0) + &result(4, 0, 0),
            false,
            "7 passed, 1 failed, 0 skipped",
        ),
        (
            skipped.to_owned() + &result(3, 0, 1),
            false,
            "skipped: test fs::a_mount",
        ),
        (
            result(3, 0, 1) + &result(4, 0, 0),
            false,
            "7 passed, 0 failed, 1 skipped",
        ),
        (nothing, false, "0 passed, 0 failed, 0 skipped"),
        (String::new(), false, "0 passed, 0 failed, 0 skipped"),
    ] {
        let ran = run(Command::new("awk").arg(program), &sample)?;
        let text = String::from_utf8_lossy(&ran.stdout);
        ensure!(ran.status.success() == passes, "{} after:\n{sample}", ran.status);
        ensure!(text.contains(said), "not {said}: {text}");
    }
    Ok(())
}

fn advisories() -> anyhow::Result<()> {
    let script = source::text_of(GATE)?;
    ensure!(
        script.contains("ADVISORIES=${ADVISORIES:-if-reachable}"),
        "who asks for ADVISORIES=required is not heard"
    );
    let function = function_of(&script, "check_dependencies")?;
    let body = format!(
        "set -euo pipefail\nunchecked=()\nADVISORIES_WAIT=60s\n{function}\ncheck_dependencies\necho \"unchecked: ${{#unchecked[@]}}\"\n"
    );
    for (file, asked, passes, said) in [
        ("open", "required", true, "unchecked: 0"),
        ("closed", "required", false, ""),
        ("closed", "if-reachable", true, "unchecked: 1"),
        ("vulnerable", "required", false, ""),
        ("vulnerable", "if-reachable", false, ""),
    ] {
        let kept = tempfile::tempdir()?;
        let binaries = kept.path().join("bin");
        std::fs::create_dir(&binaries)?;
        std::fs::write(binaries.join(file), "")?;
        write_program(&binaries.join("cargo-deny"), CARGO_DENY)?;
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(&body);
        bash.env("KEPT", kept.path()).env("ADVISORIES", asked);
        let ran = run(&mut bash, "")?;
        let text = String::from_utf8_lossy(&ran.stdout);
        ensure!(
            ran.status.success() == passes && text.contains(said),
            "{file}, ADVISORIES={asked}: {}: {text}{}",
            ran.status,
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    Ok(())
}

/// A machine that cannot have nodes is said, and fails where they are required; on any other every step is taken.
fn nodes() -> anyhow::Result<()> {
    let script = source::text_of(GATE)?;
    ensure!(
        script.contains("NODES=${NODES:-if-possible}"),
        "who asks for NODES=required is not heard"
    );
    let [prepare, on_nodes] = ["prepare_nodes", "on_nodes"].map(|name| function_of(&script, name));
    let body = format!(
        "set -euo pipefail\nunchecked=()\nwhy_not=\n{}\n{}\nprepare_nodes\non_nodes echo a step was taken\n\
         echo \"unchecked: ${{unchecked[*]-}}\"\n",
        prepare?, on_nodes?
    );
    for (host, asked, passes, said) in [
        ("echo", "required", true, "a step was taken\nunchecked: \n"),
        (
            "echo a word aside >&2; echo",
            "if-possible",
            true,
            "a step was taken\nunchecked: \n",
        ),
        ("echo Error: no cgroups >&2; exit 1", "required", false, ""),
        (
            "echo Error: no cgroups >&2; exit 1",
            "if-possible",
            true,
            "not here: no cgroups\nunchecked: clusters with nodes: no cgroups\n",
        ),
    ] {
        let tools = tempfile::tempdir()?;
        write_program(&tools.path().join("cargo"), &format!("#!/bin/sh\n{host}\n"))?;
        write_program(&tools.path().join("python3"), "#!/bin/sh\n")?;
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(&body).env("NODES", asked);
        let path = std::env::var("PATH")?;
        bash.env("PATH", format!("{}:{path}", tools.path().display()));
        let ran = run(&mut bash, "")?;
        let text = String::from_utf8_lossy(&ran.stdout);
        ensure!(
            ran.status.success() == passes && (!passes || text == said),
            "{host}, NODES={asked}: {}: {text}{}",
            ran.status,
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    Ok(())
}

fn write_program(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text)?;
    Ok(std::fs::set_permissions(
        path,
        std::fs::Permissions::from_mode(0o755),
    )?)
}

/// A function of the script, from its name to its end.
fn function_of(script: &str, name: &str) -> anyhow::Result<String> {
    let head = format!("\n{name}() {{\n");
    let begin = script
        .find(&head)
        .with_context(|| format!("{GATE} has no {name}"))?;
    let end = script[begin..].find("\n}\n").context("its end is not found")?;
    Ok(script[begin..begin + end + 3].to_owned())
}

fn run(command: &mut Command, input: &str) -> anyhow::Result<Output> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot run {:?}", command.get_program()))?;
    let mut stdin = child.stdin.take().context("no input")?;
    stdin.write_all(input.as_bytes())?;
    drop(stdin);
    Ok(child.wait_with_output()?)
}

//! Owns: the README's transcript of the three commands: that it shows what they print.
//! Never: types them.

use std::fs;

use anyhow::{Context, ensure};
use regex::Regex;

use crate::charts;

/// Between these lines the README shows it.
const BEGIN: &str = "<!-- cargo nodes three-commands --write -->\n```console\n";
const END: &str = "```\n<!-- end -->\n";
/// Somebody's files, of which the README shows no absolute path.
const HOME: (&str, &str) = (r"\S+/\.config/", "~/.config/");
/// Differs from run to run: durations, addresses, the clusterset's own name, the revision, somebody's files.
const VARIES: [(&str, &str); 5] = [
    (r"\d+\.\d s\b", "S s"),
    (r"https://[0-9.]+:\d+(, https://[0-9.]+:\d+)*", "URL"),
    (r"tributary-[0-9a-f]{16}\.internal", "NAME"),
    (r"at revision \d+", "at revision N"),
    HOME,
];

/// An error shows what was printed where the README shows something else.
pub(super) fn compare(shown: &str) -> anyhow::Result<()> {
    let text = read()?;
    let (_, there, _) = parts(&text)?;
    let (there, shown) = (steady(there)?, steady(shown)?);
    ensure!(
        there == shown,
        "README.md shows other words than the commands print; `cargo nodes three-commands --write` puts it right:\n{shown}"
    );
    Ok(())
}

/// Puts what was printed into the README.
pub(super) fn write(shown: &str) -> anyhow::Result<()> {
    let text = read()?;
    let (before, there, after) = parts(&text)?;
    if steady(there)? == steady(shown)? {
        return Ok(());
    }
    let shown = Regex::new(HOME.0)?.replace_all(shown, HOME.1);
    fs::write(path(), [before, BEGIN, &shown, END, after].concat()).context("cannot write README.md")
}

fn path() -> std::path::PathBuf {
    charts::root().join("README.md")
}

fn read() -> anyhow::Result<String> {
    fs::read_to_string(path()).context("cannot read README.md")
}

/// The text before, in and after the transcript.
fn parts(text: &str) -> anyhow::Result<(&str, &str, &str)> {
    let (before, rest) = text.split_once(BEGIN).context("README.md has no transcript")?;
    let (there, after) = rest
        .split_once(END)
        .context("the transcript of README.md has no end")?;
    Ok((before, there, after))
}

/// The same for every run that went well.
fn steady(shown: &str) -> anyhow::Result<String> {
    let mut text = shown.to_owned();
    for (varies, stands) in VARIES {
        text = Regex::new(varies)?.replace_all(&text, stands).into_owned();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_went_well_are_alike_and_other_words_are_not() {
        let run = |seconds, address, words| {
            format!("$ tributary init\n{words} Its hub is at https://{address}.\n  c1  after {seconds} s\n")
        };
        let one = steady(&run(
            "0.5",
            "172.31.0.11:30490, https://172.31.0.12:30490",
            "Ready.",
        ))
        .unwrap();
        assert_eq!(one, steady(&run("12.0", "10.0.0.1:1", "Ready.")).unwrap());
        assert_ne!(one, steady(&run("0.5", "10.0.0.1:1", "Not ready.")).unwrap());
    }

    #[test]
    fn the_readme_has_a_transcript() {
        let text = read().unwrap();
        let (_, there, _) = parts(&text).unwrap();
        for command in ["init", "join", "export", "status"] {
            assert!(there.contains(&format!("$ tributary {command}")), "{command}");
        }
    }
}

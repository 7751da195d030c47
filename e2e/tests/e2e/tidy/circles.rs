//! Owns: the law of circles: no import cycles between the files and directories of one directory of a crate, or between
//! the rooms of a crate. What two of them share is a leaf that both use.
//! Never: judges what a directory's `mod.rs` says to its files, or a crate's `lib.rs` to its rooms.

use super::source::{self, Source};
use anyhow::{Context, ensure};
use libtest_mimic::Trial;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use tributary_e2e::suite::plain_test;

/// A module as its path within its crate: `["sim", "store"]`.
type Module = Vec<String>;
/// Uses between the files of one directory.
type Uses = BTreeMap<String, BTreeSet<String>>;

pub(super) fn trials() -> Vec<Trial> {
    vec![
        plain_test("tidy::files_use_each_other_in_no_circle", no_circles),
        plain_test("tidy::circles_are_seen", check_sees),
    ]
}

fn no_circles() -> anyhow::Result<()> {
    let sources = source::files(&[".rs"])?;
    let product: Vec<Source> = sources.into_iter().filter(|source| !source.is_test()).collect();
    let named: Vec<String> = circles(&product)?
        .into_iter()
        .map(|(directory, circle)| format!("{directory}: {}", Vec::from_iter(circle).join(", ")))
        .collect();
    ensure!(
        named.is_empty(),
        "files that use each other in a circle; move what they share into a file that uses none of them:\n{}",
        named.join("\n")
    );
    Ok(())
}

/// Every circle in the crates, with the directory that it is in.
fn circles(sources: &[Source]) -> anyhow::Result<Vec<(String, BTreeSet<String>)>> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, &Source>> = BTreeMap::new();
    for source in sources {
        if let Some((name, below)) = source.path.split_once("/src/") {
            crates.entry(name).or_default().insert(module(below), source);
        }
    }
    let paths = Paths::new()?;
    let mut uses: BTreeMap<String, Uses> = BTreeMap::new();
    for (name, modules) in &crates {
        let known: BTreeSet<&[String]> = modules.keys().map(Vec::as_slice).collect();
        for (user, source) in modules {
            for path in paths.of(source) {
                let used = resolve(&known, user, &path);
                let common = user
                    .iter()
                    .zip(&used)
                    .take_while(|(one, other)| one == other)
                    .count();
                // A room and its crate, or a file and the directory around it, are no two of one directory.
                if common < user.len().min(used.len()) {
                    let directory = [&[format!("{name}/src")], &user[..common]].concat().join("/");
                    let users = uses.entry(directory).or_default();
                    users
                        .entry(user[common].clone())
                        .or_default()
                        .insert(used[common].clone());
                }
            }
        }
    }
    let circles = |(directory, uses): (String, Uses)| {
        let found = circles_of(&uses).into_iter();
        found
            .map(|circle| (directory.clone(), circle))
            .collect::<Vec<_>>()
    };
    Ok(uses.into_iter().flat_map(circles).collect())
}

fn module(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    let path = path.trim_end_matches("/mod");
    let parts = path.split('/').map(str::to_owned);
    parts.filter(|part| part != "lib" && part != "mod").collect()
}

/// The names of modules in a text.
struct Paths {
    import: Regex,
    inline: Regex,
}

impl Paths {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            import: Regex::new(r"(?m)^ *(?:pub(?:\([a-z ]+\))? )?use ([^;]+);").context("import")?,
            inline: Regex::new(r"\b(?:(?:super::)+|crate::)\w+(?:::\w+)*").context("inline")?,
        })
    }

    /// Everything that the code of a file names by `use`, `super::` or `crate::`.
    fn of(&self, source: &Source) -> Vec<String> {
        let code: Vec<&str> = source.code().into_iter().map(|(_, line)| line).collect();
        let code = code.join("\n");
        let mut paths = Vec::new();
        for captured in self.import.captures_iter(&code) {
            let text: String = captured[1].split_whitespace().collect::<Vec<_>>().join(" ");
            expand("", &text, &mut paths);
        }
        let rest = self.import.replace_all(&code, "");
        paths.extend(
            self.inline
                .find_iter(&rest)
                .map(|found| found.as_str().to_owned()),
        );
        paths
    }
}

/// The single paths of `a::{b, c::{d, e}}`.
fn expand(before: &str, text: &str, paths: &mut Vec<String>) {
    let text = text.trim();
    let Some((head, group)) = text.split_once('{') else {
        if !text.is_empty() {
            let path = text.split(" as ").next().unwrap_or(text);
            paths.push(format!("{before}{path}"));
        }
        return;
    };
    let group = group.strip_suffix('}').unwrap_or(group);
    let before = format!("{before}{head}");
    let (mut depth, mut begin) = (0_u32, 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                expand(&before, &group[begin..at], paths);
                begin = at + 1;
            }
            _ => {}
        }
    }
    expand(&before, &group[begin..], paths);
}

/// The module that a path of `user` leads to; that of `user` itself if it leads out of the crate.
fn resolve(known: &BTreeSet<&[String]>, user: &Module, path: &str) -> Module {
    let mut reached = user.clone();
    let mut parts = path.split("::").map(str::trim).peekable();
    if parts.next_if_eq(&"crate").is_some() {
        reached.clear();
    }
    while let Some(part) = parts.next_if(|part| ["self", "super"].contains(part)) {
        if part == "super" {
            reached.pop();
        }
    }
    for part in parts {
        reached.push(part.to_owned());
        if !known.contains(reached.as_slice()) {
            reached.pop();
            break;
        }
    }
    reached
}

/// The greatest sets of which each member uses every other, be it over others.
fn circles_of(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reached_from = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&String> = uses.get(from).into_iter().flatten().collect();
        while let Some(next) = open.pop() {
            if reached.insert(next.clone()) {
                open.extend(uses.get(next).into_iter().flatten());
            }
        }
        reached
    };
    let reach: BTreeMap<&String, BTreeSet<String>> =
        uses.keys().map(|user| (user, reached_from(user))).collect();
    let mut found: Vec<BTreeSet<String>> = Vec::new();
    for (user, reached) in reach.iter().filter(|(user, reached)| reached.contains(**user)) {
        let back = |other: &&String| reach.get(other).is_some_and(|reached| reached.contains(*user));
        let circle: BTreeSet<String> = reached.iter().filter(back).cloned().collect();
        if !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

fn check_sees() -> anyhow::Result<()> {
    let source = |(path, text): &(&str, &str)| Source {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
    };
    let seen = |files: &[(&str, &str)]| -> anyhow::Result<Vec<String>> {
        let sources: Vec<Source> = files.iter().map(source).collect();
        let found = circles(&sources)?.into_iter();
        Ok(found
            .map(|(directory, circle)| format!("{directory}: {}", Vec::from_iter(circle).join(" ")))
            .collect())
    };
    // Directly; by a path in the code; over a third, in a group, from a file of a directory.
    let direct = [
        ("hub/log/src/lib.rs", "mod rows;\nmod pages;\n"),
        ("hub/log/src/rows.rs", "use super::pages::Page;\n"),
        ("hub/log/src/pages.rs", "fn f() {\n    super::rows::read();\n}\n"),
    ];
    ensure!(
        seen(&direct)? == ["hub/log/src: pages rows"],
        "{:?}",
        seen(&direct)?
    );
    let longer = [
        ("e2e/sim/src/lib.rs", ""),
        (
            "e2e/sim/src/list.rs",
            "use super::{\n    kinds::Kind,\n    store::{Page as Sheet, Store},\n};\n",
        ),
        (
            "e2e/sim/src/store.rs",
            "pub(crate) use crate::validate::text::words;\n",
        ),
        ("e2e/sim/src/kinds.rs", ""),
        ("e2e/sim/src/validate/mod.rs", ""),
        ("e2e/sim/src/validate/text.rs", "use super::super::list::list;\n"),
    ];
    ensure!(
        seen(&longer)? == ["e2e/sim/src: list store validate"],
        "{:?}",
        seen(&longer)?
    );
    // Rooms of a crate: from a file deep in one, over a third.
    let rooms = [
        ("e2e/src/lib.rs", "pub mod advice;\n"),
        ("e2e/src/advice.rs", "use crate::{\n    demo,\n    load,\n};\n"),
        ("e2e/src/demo/mod.rs", ""),
        ("e2e/src/demo/hints.rs", "use crate::real::module::Module;\n"),
        ("e2e/src/real/mod.rs", ""),
        ("e2e/src/real/module.rs", "use crate::advice::BUILD;\n"),
        ("e2e/src/load/mod.rs", ""),
    ];
    ensure!(
        seen(&rooms)? == ["e2e/src: advice demo real"],
        "{:?}",
        seen(&rooms)?
    );
    // Tests may use what uses them, a directory its own files, and a crate its rooms.
    let good = [
        ("hub/fold/src/lib.rs", "mod key;\nuse self::key::Key;\n"),
        (
            "hub/fold/src/key.rs",
            "use super::Fold;\nuse crate::view::View;\n",
        ),
        (
            "hub/fold/src/state.rs",
            "use super::key::Key;\n// use super::gone;\n",
        ),
        (
            "hub/fold/src/keys.rs",
            "use super::state::State;\n#[cfg(test)]\nmod tests {\n    use super::super::merge::merge;\n}\n",
        ),
        ("hub/fold/src/merge.rs", "use super::keys::Keys;\n"),
        ("hub/src/lib.rs", "use crate::view::View;\n"),
        ("hub/core/src/view/mod.rs", "use crate::hub;\n"),
    ];
    ensure!(seen(&good)?.is_empty(), "{:?}", seen(&good)?);
    Ok(())
}

//! Owns: all files of a build with variants in it, and which variants do not fit into one.
//! Never: builds; writes files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;

use super::{
    Number, UNCHANGED, VARIABLE,
    edit::Edit,
    weave::{Woven, unfit, weave},
};

/// File that reads the number, which every crate asks for.
const LIBRARY: &str = "shared/model/src/lib.rs";

/// A wrong variant of the product.
#[derive(Debug, Clone)]
pub struct Variant {
    /// Its number, from one on.
    pub number: Number,
    /// Differences in files below the workspace.
    pub edits: Vec<(PathBuf, Edit)>,
}

impl Variant {
    /// The files that it changes, with nothing but it in them.
    pub(super) fn texts(&self, workspace: &Path) -> anyhow::Result<BTreeMap<PathBuf, String>> {
        let files: BTreeSet<&PathBuf> = self.edits.iter().map(|(file, _)| file).collect();
        let text = |file: &PathBuf| {
            let text = read(workspace, file)?;
            let edits = self.edits.iter().filter(|(known, _)| known == file);
            let text = Edit::apply_all(&text, 0, edits.map(|(_, edit)| edit));
            Ok((file.clone(), text))
        };
        files.into_iter().map(text).collect()
    }
}

/// The files of a build that are not as they are in the working tree.
#[derive(Debug)]
pub struct Plan {
    files: BTreeMap<PathBuf, Woven>,
    /// Why these variants are in no build with others.
    pub unfit: BTreeMap<Number, String>,
}

impl Plan {
    /// A build of these variants.
    pub fn of(workspace: &Path, variants: &[Variant]) -> anyhow::Result<Self> {
        let mut edits: BTreeMap<PathBuf, Vec<(Number, Edit)>> = BTreeMap::new();
        for variant in variants {
            for (file, edit) in &variant.edits {
                let of_file = edits.entry(file.clone()).or_default();
                of_file.push((variant.number, edit.clone()));
            }
        }
        let unfit = unfit_of_all(workspace, &edits)?;
        // Every crate asks this file, whoever changes.
        edits.entry(LIBRARY.into()).or_default();
        let mut files = BTreeMap::new();
        for (file, mut edits) in edits {
            edits.retain(|(number, _)| !unfit.contains_key(number));
            // What is in no crate that can ask stays as it is: its variants are unfit, all of them.
            let Some(chosen) = chosen(&file) else { continue };
            let text = read(workspace, &file)?;
            let mut woven = weave(&text, &edits, chosen).with_context(|| file.display().to_string())?;
            if file == Path::new(LIBRARY) {
                woven.text.push_str(&choice());
            }
            files.insert(file, woven);
        }
        Ok(Self { files, unfit })
    }

    /// The texts of these files.
    pub fn texts(&self) -> BTreeMap<PathBuf, String> {
        let texts = self.files.iter();
        texts
            .map(|(file, woven)| (file.clone(), woven.text.clone()))
            .collect()
    }

    /// Number of the copy that a line belongs to.
    pub fn whose(&self, file: &Path, line: usize) -> Option<Number> {
        let copies = &self.files.get(file)?.copies;
        let copy = copies.iter().find(|(lines, _)| lines.contains(&line));
        copy.map(|(_, number)| *number)
    }
}

fn unfit_of_all(
    workspace: &Path,
    edits: &BTreeMap<PathBuf, Vec<(Number, Edit)>>,
) -> anyhow::Result<BTreeMap<Number, String>> {
    let mut all = BTreeMap::new();
    for (file, edits) in edits {
        if chosen(file).is_none() {
            let why = format!(
                "{} is in no crate that can ask which variant it is",
                file.display()
            );
            all.extend(edits.iter().map(|(number, _)| (*number, why.clone())));
            continue;
        }
        let unfit = unfit(&read(workspace, file)?, edits).with_context(|| file.display().to_string())?;
        all.extend(
            unfit
                .into_iter()
                .map(|(number, why)| (number, format!("{}: {why}", file.display()))),
        );
    }
    Ok(all)
}

fn read(workspace: &Path, file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(workspace.join(file)).with_context(|| format!("cannot read {}", file.display()))
}

/// The expression by which the code of a file asks for its variant. The model is asked: every crate has it, itself or over `shared`.
fn chosen(file: &Path) -> Option<&'static str> {
    const OVER_SHARED: [&str; 5] = [
        "hub/src",
        "hub/tests",
        "hub/topology/controller",
        "agent/src",
        "shared/certs",
    ];
    const THEMSELVES: [&str; 11] = [
        "shared/api",
        "shared/api-client",
        "shared/src",
        "shared/wire",
        "hub/core",
        "hub/fold",
        "hub/log",
        "hub/replication",
        "hub/topology",
        "agent/core",
        "agent/engine",
    ];
    let lies = |places: &[&str]| places.iter().any(|place| file.starts_with(place));
    match () {
        () if lies(&OVER_SHARED) => Some("::shared::model::variant::chosen()"),
        () if lies(&["shared/model"]) => Some("crate::variant::chosen()"),
        () if lies(&THEMSELVES) => Some("::model::variant::chosen()"),
        () => None,
    }
}

fn choice() -> String {
    format!(
        "\n/// Which variant this process is.\npub mod variant {{\n    static CHOSEN: std::sync::LazyLock<u32> = \
         std::sync::LazyLock::new(|| {{\n        std::env::var(\"{VARIABLE}\").map_or({UNCHANGED}, |number| \
         number.parse().expect(\"a number\"))\n    }});\n\n    /// Its number.\n    pub fn chosen() -> u32 {{\n        \
         *CHOSEN\n    }}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::{super::workspace, *};

    #[test]
    fn what_fits_is_woven_and_what_does_not_is_named() {
        let file = PathBuf::from(LIBRARY);
        let text = fs::read_to_string(workspace().join(&file)).unwrap();
        let variant = |number, file: PathBuf, range| Variant {
            number,
            edits: vec![(
                file,
                Edit {
                    range,
                    replacement: String::new(),
                },
            )],
        };
        let variants = [
            variant(1, file.clone(), 0..text.len()),
            variant(2, "proto/src/lib.rs".into(), 0..1),
        ];
        let plan = Plan::of(&workspace(), &variants).unwrap();
        assert!(plan.unfit[&1].contains("body") && plan.unfit[&2].contains("no crate"));
        let texts = plan.texts();
        let unchanged = texts[&file].strip_prefix(&*text).unwrap();
        assert!(unchanged.contains("fn chosen()") && unchanged.contains(VARIABLE));
        assert_eq!(plan.whose(&file, 1), None);
    }
}

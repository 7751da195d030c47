//! Owns: the extensions that a class names: those of its external patches, and the one that plans its upgrades.

use std::collections::BTreeMap;

use super::{
    finding::Report,
    limits::MAX_PATCHES,
    parts::{Placed, Spelling},
    read::Fields,
};

/// The definition's source for variables of the class itself; no patch is called so.
pub const INLINE: &str = "inline";

/// The extensions of an external patch, each by the name of its handler, `HANDLER.EXTENSION`; empty where it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct External {
    /// Its path.
    pub field: String,
    /// Index of the patch, from 0.
    pub index: usize,
    /// The name of the patch.
    pub patch: String,
    /// Makes the patches.
    pub generate: String,
    /// Validates the patched templates.
    pub validate: String,
    /// Defines variables.
    pub discover: String,
    /// Settings for each of them.
    pub settings: BTreeMap<String, String>,
    /// True once the extension has said which variables it defines.
    pub discovered: bool,
}

/// The external patches of a class, by their order.
pub(super) fn externals(spec: &Fields<'_>, spelling: Spelling, report: &mut Report) -> Vec<External> {
    let generate = spelling.name("generateExtension", "generatePatchesExtension");
    let validate = spelling.name("validateExtension", "validateTopologyExtension");
    let known = [generate, validate, "discoverVariablesExtension", "settings"];
    let mut read = Vec::new();
    for (index, (field, value)) in spec.items("patches", MAX_PATCHES, report).into_iter().enumerate() {
        let known_of_patch = ["name", "description", "enabledIf", "definitions", "external"];
        let patch = Fields::open(Some(value), &field, &known_of_patch, report);
        if patch.get("external").is_none() {
            continue;
        }
        let fields = patch.within("external", &known, report);
        read.push(External {
            index,
            patch: patch.text("name", report),
            generate: fields.text(generate, report),
            validate: fields.text(validate, report),
            discover: fields.text("discoverVariablesExtension", report),
            settings: fields.texts("settings", report),
            discovered: false,
            field: patch.at("external"),
        });
    }
    read
}

/// The extension that plans upgrades.
pub(super) fn upgrade_plan(spec: &Fields<'_>, report: &mut Report) -> Option<Placed<String>> {
    let upgrade = spec.within("upgrade", &["external"], report);
    let external = upgrade.within("external", &["generateUpgradePlanExtension"], report);
    let value = external.text("generateUpgradePlanExtension", report);
    (!value.is_empty()).then(|| Placed {
        field: external.at("generateUpgradePlanExtension"),
        value,
    })
}

//! Owns: what people read of a Corefile: what would change or has changed, what goes with it, what to type next.
//! Never: decides or writes anything.

use std::fmt::Write;

use shared::{api::names::KUBE_SYSTEM_NAMESPACE, model::advice};

use super::{
    args::{CONFIGMAP, CorefileArgs, KEY, ZONE},
    custom::{self, Change},
    edit::{Decision, Wanted, difference},
};

/// The decision about a Corefile, its place, and the command typed.
pub(super) struct Report<'a> {
    /// The request: add the zone, or remove it.
    pub(super) wanted: Wanted,
    /// The flags.
    pub(super) args: &'a CorefileArgs,
    /// The Corefile's place, in words.
    pub(super) place: &'a str,
    /// Its text.
    pub(super) before: &'a str,
    /// The decision.
    pub(super) decision: &'a Decision,
}

impl Report<'_> {
    /// All of it.
    pub(super) fn text(&self) -> String {
        let Self { args, place, .. } = self;
        let zone = &args.zone;
        let Some(after) = &self.decision.text else {
            let state = match self.wanted {
                Wanted::Zone => "answers",
                Wanted::NoZone => "does not mention",
            };
            return format!("Nothing to do: {place} {state} {zone}.\n");
        };
        let mut text = match (args.apply, self.wanted) {
            (false, _) => format!("Nothing has changed yet. In {place} these lines would:\n"),
            (true, Wanted::Zone) => format!("{zone} was added to {place}:\n"),
            (true, Wanted::NoZone) => format!("{zone} was removed from {place}:\n"),
        };
        for line in difference(self.before, after) {
            push(&mut text, &format!("  {line}"));
        }
        if !self.decision.imports.is_empty() {
            let imports = self.decision.imports.join(", ");
            push(
                &mut text,
                &format!("What it imports was not looked at: {imports}"),
            );
        }
        if args.apply {
            self.push_afterwards(&mut text);
        } else {
            self.push_next(&mut text);
        }
        text
    }

    /// Adds the command to type after a dry run.
    fn push_next(&self, text: &mut String) {
        if self.wanted == Wanted::Zone {
            let needs = "CoreDNS must be 1.12.2 or later. It must be able to read ServiceImports first; without that it \
                         becomes not ready, and answers nothing:";
            push(text, needs);
            push(text, &format!("  {}", advice::kubectl_coredns_rights()));
        }
        if self.reads_standard_input() {
            return;
        }
        push(text, "To do it:");
        push(text, &format!("  {}", self.command()));
    }

    /// Adds the notes and commands for after a change.
    fn push_afterwards(&self, text: &mut String) {
        let args = self.args;
        if args.file.is_some() {
            push(text, "CoreDNS hears of it when it is given this file.");
        } else if self.decision.reloads {
            push(text, "CoreDNS reads it by itself, within two minutes or so.");
        } else {
            push(
                text,
                "The Corefile has no `reload`, so CoreDNS reads it when it starts:",
            );
            let restart = advice::kubectl_restart_coredns(&args.namespace, &args.configmap);
            push(text, &format!("  {restart}"));
        }
        match self.wanted {
            Wanted::Zone => {
                push(text, "It answers once it can read ServiceImports:");
                push(text, &format!("  {}", advice::kubectl_coredns_rights()));
            }
            Wanted::NoZone => {
                push(
                    text,
                    "Once it has done so, it needs its right to read ServiceImports (deploy/coredns) no more.",
                );
            }
        }
    }

    fn reads_standard_input(&self) -> bool {
        let file = self.args.file.as_ref();
        file.is_some_and(|file| file.as_os_str() == super::args::STANDARD_INPUT)
    }

    /// The command that does what was shown: with the flags that were typed.
    fn command(&self) -> String {
        command(self.wanted, self.args)
    }
}

/// The decision about the ConfigMap beside one that a provider keeps.
pub(super) struct Beside<'a> {
    /// The request: add the zone, or remove it.
    pub(super) wanted: Wanted,
    /// The flags.
    pub(super) args: &'a CorefileArgs,
    /// The ConfigMap.
    pub(super) place: &'a str,
    /// The label of the provider's own, if it has one.
    pub(super) kept_by: Option<&'a str>,
    /// The present text of our key.
    pub(super) standing: Option<&'a str>,
    /// The change to the key.
    pub(super) change: &'a Change,
}

impl Beside<'_> {
    /// All of it.
    pub(super) fn text(&self) -> String {
        let Self {
            wanted,
            args,
            place,
            kept_by,
            standing,
            change,
        } = self;
        let key = custom::KEY;
        let after = match change {
            Change::Nothing => {
                let state = match wanted {
                    Wanted::Zone => "answers",
                    Wanted::NoZone => "does not mention",
                };
                return format!(
                    "Nothing to do: the ConfigMap {place} (key {key}) {state} {}.\n",
                    args.zone
                );
            }
            Change::Write(text) => text.as_str(),
            Change::Remove => "",
        };
        let mut text = String::new();
        let (namespace, configmap) = (&args.namespace, &args.configmap);
        if let Some(kept_by) = kept_by {
            push(
                &mut text,
                &format!(
                    "The ConfigMap {namespace}/{configmap} is put back when it is edited ({kept_by}). It imports \
                     custom/*.server, so the zone has a server block of its own."
                ),
            );
        }
        let does = if args.apply { "changed" } else { "would change" };
        push(
            &mut text,
            &format!("In the ConfigMap {place} (key {key}) these lines {does}:"),
        );
        for line in difference(standing.unwrap_or_default(), after) {
            push(&mut text, &format!("  {line}"));
        }
        if *wanted == Wanted::Zone {
            push(
                &mut text,
                "CoreDNS must be 1.12.2 or later. It must be able to read ServiceImports first; without that it becomes not \
                 ready, and answers nothing:",
            );
            push(&mut text, &format!("  {}", advice::kubectl_coredns_rights()));
        }
        if args.apply {
            push(&mut text, "CoreDNS reads it by itself, within two minutes or so.");
        } else {
            push(&mut text, "To do it:");
            push(&mut text, &format!("  {}", command(*wanted, args)));
        }
        text
    }
}

/// The warning before an edit that does not last.
pub(super) fn edits_are_put_back(map: &str, kept_by: &str) -> String {
    format!(
        "Warning: the ConfigMap {map} is put back when it is edited ({kept_by}), and its Corefile imports no custom/*.server: \
         what is added lasts until then. Give the zone to whoever keeps it, on EKS as `corefile` in the configuration \
         values of the add-on.\n"
    )
}

/// The command that does what was shown: with the flags that were typed.
fn command(wanted: Wanted, args: &CorefileArgs) -> String {
    let path = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    let differs = |value: &str, default: &str| (value != default).then(|| value.to_owned());
    let in_cluster = args.file.is_none();
    let flags = [
        ("--zone", differs(args.zone.as_str(), ZONE)),
        ("--file", args.file.as_ref().map(path)),
        (
            "--kubeconfig",
            args.kubeconfig.as_ref().filter(|_| in_cluster).map(path),
        ),
        ("--namespace", differs(&args.namespace, KUBE_SYSTEM_NAMESPACE)),
        ("--configmap", differs(&args.configmap, CONFIGMAP)),
        ("--key", differs(&args.key, KEY)),
    ];
    let flags = flags
        .iter()
        .filter_map(|(flag, value)| Some((*flag, value.as_deref()?)));
    let flags: Vec<(&str, &str)> = flags.collect();
    match wanted {
        Wanted::Zone => advice::agent_corefile_add(&flags),
        Wanted::NoZone => advice::agent_corefile_remove(&flags),
    }
}

fn push(text: &mut String, line: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{line}");
}

//! Owns: the form in which a report is printed, and the JSON document.
//! Never: says what is wrong.

use serde_json::{Value, json};

use super::report::Report;

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Output {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON document for programs.
    Json,
}

impl Output {
    /// The report in this form.
    pub fn print(self, report: &Report) -> String {
        match self {
            Self::Text => report.text(),
            Self::Json => format!("{:#}\n", document(report)),
        }
    }
}

/// The report as a document.
pub fn document(report: &Report) -> Value {
    let checks: Vec<Value> = report
        .checks
        .iter()
        .map(|check| {
            let (what, fix) = check.verdict.words();
            json!({"name": check.name, "verdict": check.verdict.word(), "what": what, "fix": fix})
        })
        .collect();
    json!({"exitCode": report.exit_code(), "faults": report.faults().count(), "checks": checks})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::report::Check;

    #[test]
    fn the_document_says_what_the_lines_say() {
        let checks = vec![
            Check::fault("hub-port", "closed", "open it"),
            Check::fine("a", "b"),
        ];
        let document = document(&Report { checks });
        assert_eq!(document["exitCode"], 1);
        assert_eq!(document["faults"], 1);
        assert_eq!(document["checks"][0]["fix"], "open it");
        assert_eq!(document["checks"][1]["verdict"], "ok");
        assert!(document["checks"][1]["fix"].is_null());
    }
}

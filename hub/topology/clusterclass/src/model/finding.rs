//! Owns: findings: what is wrong, in which object, at which field, by which rule.

use std::fmt;

use super::limits::{MAX_FINDINGS, MAX_SHOWN};

/// A fault at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file that the object was read from.
    pub origin: String,
    /// Kind, namespace and name; or which document it is.
    pub object: String,
    /// The field's path from the object's root, with indices.
    pub field: String,
    /// The rule's name.
    pub rule: &'static str,
    /// The fault, and the correct form.
    pub message: String,
}

impl Finding {
    /// The finding to who knows which object it is about; one line, whatever the object says.
    pub fn of_field(&self) -> String {
        line(&[&self.field, self.rule, &self.message])
    }
}

impl fmt::Display for Finding {
    /// One line, whatever the object says.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.origin, &self.object, &self.field, self.rule, &self.message];
        out.write_str(&line(&parts))
    }
}

/// Parts in one line, each without what would end it, and not longer than is shown.
fn line(parts: &[&str]) -> String {
    let mut line = String::new();
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            line.push_str(": ");
        }
        line.extend(
            part.chars()
                .take(MAX_SHOWN)
                .map(|character| if character.is_control() { ' ' } else { character }),
        );
        if part.chars().nth(MAX_SHOWN).is_some() {
            line.push('…');
        }
    }
    line
}

/// The findings of one object, at most [`MAX_FINDINGS`] of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The file that the object was read from.
    pub origin: String,
    /// The object.
    pub object: String,
    findings: Vec<Finding>,
}

impl Report {
    /// Nothing found yet.
    pub fn new(origin: &str, object: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            object: object.to_owned(),
            findings: Vec::new(),
        }
    }

    /// Adds a finding; one more than the bound says that there are more.
    pub fn say(&mut self, rule: &'static str, field: impl Into<String>, message: impl Into<String>) {
        let (field, rule, message) = match self.findings.len() {
            known if known < MAX_FINDINGS => (field.into(), rule, message.into()),
            MAX_FINDINGS => (
                String::from("."),
                "bound",
                format!("has more than {MAX_FINDINGS} findings: mend these first"),
            ),
            _ => return,
        };
        self.findings.push(Finding {
            origin: self.origin.clone(),
            object: self.object.clone(),
            field,
            rule,
            message,
        });
    }

    /// Number of findings.
    pub fn count(&self) -> usize {
        self.findings.len()
    }

    /// Returns the findings.
    pub fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_one_line_and_short() {
        let mut report = Report::new("f.yaml", "ClusterClass a/b");
        report.say("type", "spec.x\ny", "m".repeat(MAX_SHOWN + 9));
        let finding = report.into_findings().remove(0);
        let line = finding.to_string();
        assert!(line.starts_with("f.yaml: ClusterClass a/b: spec.x y: type: mmm"));
        assert!(line.ends_with("m…") && !line.contains('\n'));
        assert_eq!(line, format!("f.yaml: ClusterClass a/b: {}", finding.of_field()));
    }

    #[test]
    fn more_findings_than_the_bound_are_told_and_not_kept() {
        let mut report = Report::new("f", "o");
        for _ in 0..MAX_FINDINGS + 50 {
            report.say("type", "x", "bad");
        }
        let findings = report.into_findings();
        assert_eq!(findings.len(), MAX_FINDINGS + 1);
        assert_eq!(findings[MAX_FINDINGS].rule, "bound");
    }
}

//! The rules of a class's patches, told as those of the rest of it.

use crate::{
    model::{Class, Report},
    patch::{
        check::check,
        finding::{Finding, Rule},
        read::patches as patches_of,
    },
};

/// Patches are what they should be, and fit the class: each rule under its own name. Mere doubts are not reported.
pub(super) fn patches(class: &Class, report: &mut Report) {
    let (patches, form) = patches_of(class.spec.get("patches"));
    let findings = form.into_iter().chain(check(class, &patches));
    for finding in findings.filter(|finding| finding.rule.is_error() && !is_told(finding)) {
        let place = finding.place.to_string();
        let field = match &*finding.field {
            "" => place,
            field => format!("{place}.{field}"),
        };
        report.say(finding.rule.name(), field, finding.why);
    }
}

/// The reader of the class has said it: fields of a patch that nobody knows.
fn is_told(finding: &Finding) -> bool {
    finding.rule == Rule::UnknownField && finding.place.definition.is_none()
}

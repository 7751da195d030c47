//! The verdict for people and programs. Pure.

use serde_json::json;
use shared::model::{advice, visible};

use super::judge::{Finding, Row, State, Verdict, Weight};
use crate::output::{Output, table};

/// Prints a verdict; `left_out` services were not verified because of the bound.
pub(super) fn printed(verdict: &Verdict, left_out: usize, output: Output) -> String {
    if output.is_document() {
        return output.document(&json!({
            "result": result(verdict),
            "rows": verdict.rows,
            "findings": verdict.findings,
            "servicesLeftOut": left_out,
        }));
    }
    let mut text = String::new();
    if !verdict.rows.is_empty() {
        let columns = [
            "SERVICE",
            "FROM",
            "TO",
            "FAMILY",
            "NAME",
            "IP",
            "ENDPOINTS",
            "LATENCY",
        ];
        let header = columns.map(str::to_owned).to_vec();
        let rows: Vec<Vec<String>> = std::iter::once(header)
            .chain(verdict.rows.iter().map(cells))
            .collect();
        text += &table(&rows, output);
        text.push('\n');
    }
    for (weight, title) in [
        (Weight::Fault, "Broken"),
        (Weight::Unseen, "Not checked"),
        (Weight::Note, "Notes"),
    ] {
        text += &section(&verdict.findings, weight, title);
    }
    if left_out > 0 {
        text += &format!(
            "{left_out} more services are exported; name one to verify it: {}\n\n",
            advice::verify("my-namespace/my-service")
        );
    }
    let sentence = match result(verdict) {
        "ok" => "Everything that was checked works.",
        "broken" => "Something is broken.",
        _ if verdict.rows.is_empty() => "Nothing was checked.",
        _ => "What was checked works, and something could not be checked.",
    };
    text + sentence + "\n"
}

fn result(verdict: &Verdict) -> &'static str {
    match verdict.exit_code() {
        0 => "ok",
        1 => "broken",
        _ => "incomplete",
    }
}

fn section(findings: &[Finding], weight: Weight, title: &str) -> String {
    let lines: String = findings
        .iter()
        .filter(|finding| finding.weight == weight)
        .map(|finding| {
            let Finding {
                about, what, next, ..
            } = finding;
            format!("  {about}: {}\n    next: {}\n", visible(what), visible(next))
        })
        .collect();
    if lines.is_empty() {
        return lines;
    }
    format!("{title}\n{lines}\n")
}

fn cells(row: &Row) -> Vec<String> {
    let word = |state| {
        match state {
            State::Ok => "ok",
            State::Failed => "FAILED",
            State::None => "-",
        }
        .to_owned()
    };
    let latency = row.latency_micros.map(|micros| {
        let tenths = micros.div_ceil(100);
        format!("{}.{} ms", tenths / 10, tenths % 10)
    });
    vec![
        row.service.clone(),
        row.from.clone(),
        row.to.clone(),
        row.family.to_owned(),
        word(row.name),
        word(row.ip),
        word(row.endpoints),
        latency.unwrap_or_else(|| "-".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ip: State) -> Row {
        Row {
            service: "shop/cart".to_owned(),
            from: "east".to_owned(),
            to: "west".to_owned(),
            family: "IPv4",
            name: State::Ok,
            ip,
            endpoints: State::Ok,
            latency_micros: Some(1_230),
        }
    }

    #[test]
    fn people_see_a_table_and_what_to_do() {
        let fine = Verdict {
            rows: vec![row(State::Ok)],
            findings: Vec::new(),
        };
        let expected = "\
SERVICE    FROM  TO    FAMILY  NAME  IP  ENDPOINTS  LATENCY
shop/cart  east  west  IPv4    ok    ok  ok         1.3 ms

Everything that was checked works.
";
        assert_eq!(printed(&fine, 0, Output::Wide), expected);
        let broken = Verdict {
            rows: Vec::new(),
            findings: vec![Finding {
                weight: Weight::Fault,
                about: "shop/cart".to_owned(),
                what: "nobody\nanswers".to_owned(),
                next: "look".to_owned(),
            }],
        };
        let text = printed(&broken, 3, Output::Text);
        assert!(text.starts_with("Broken\n  shop/cart: nobody"), "{text}");
        assert!(!text.contains("nobody\nanswers"), "{text}");
        assert!(text.contains("3 more services are exported"), "{text}");
        assert!(text.ends_with("Something is broken.\n"), "{text}");
        assert!(printed(&Verdict::default(), 0, Output::Text).ends_with("Nothing was checked.\n"));
    }

    #[test]
    fn programs_read_rows_and_findings() {
        let verdict = Verdict {
            rows: vec![row(State::None)],
            findings: Vec::new(),
        };
        let text = printed(&verdict, 0, Output::Json);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["result"], "ok");
        assert_eq!(value["rows"][0]["ip"], "none");
        assert_eq!(value["rows"][0]["latencyMicros"], 1_230);
    }
}

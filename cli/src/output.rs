//! Output: tables that fit the terminal, and JSON and YAML for programs. A message of the hub is printed with the names
//! of the protocol, as grpcurl prints it.

use anyhow::Context as _;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde::Serialize;
use serde_json::Value;

/// Fewest columns of a table, however narrow the terminal is.
const COLUMNS_MIN: usize = 2;
/// Spaces between two columns.
const GAP: usize = 2;

/// Form of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Output {
    /// Columns for people, as many as fit the terminal
    Text,
    /// All columns, however wide they are
    Wide,
    /// JSON for programs
    Json,
    /// The same as YAML
    Yaml,
}

impl Output {
    /// True for JSON and YAML.
    pub(crate) fn is_document(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }

    /// Prints a document as JSON, or as YAML after its separator.
    pub(crate) fn document(self, document: &Value) -> String {
        // A JSON value can always be written.
        self.serialized(document).unwrap_or_default()
    }

    /// Prints a message of the protocol; `name` is its name in `tributary.v1`.
    pub(crate) fn message(self, name: &str, message: &impl Message) -> anyhow::Result<String> {
        self.serialized(&dynamic(name, message)?)
    }

    fn serialized(self, document: &impl Serialize) -> anyhow::Result<String> {
        Ok(match self {
            Self::Yaml => format!("---\n{}", serde_norway::to_string(document)?),
            _ => format!("{}\n", serde_json::to_string_pretty(document)?),
        })
    }
}

/// A message of the protocol as a JSON value, with the names of the protocol.
pub(crate) fn value(name: &str, message: &impl Message) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(dynamic(name, message)?)?)
}

fn dynamic(name: &str, message: &impl Message) -> anyhow::Result<DynamicMessage> {
    let pool = DescriptorPool::decode(proto::FILE_DESCRIPTOR_SET)?;
    let descriptor = pool.get_message_by_name(&format!("tributary.v1.{name}"));
    let mut dynamic = DynamicMessage::new(descriptor.with_context(|| format!("no message is named {name}"))?);
    dynamic.transcode_from(message)?;
    Ok(dynamic)
}

/// Rows, the first of which names the columns, as lines. As text on a terminal it leaves out the last columns that do not
/// fit, and names them.
pub(crate) fn table(rows: &[Vec<String>], output: Output) -> String {
    let width = match output {
        Output::Text => terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)),
        _ => None,
    };
    fitted(rows, width)
}

fn fitted(rows: &[Vec<String>], width: Option<usize>) -> String {
    let lines = |rows: &[Vec<String>]| {
        let lines = shared::columns::columns(rows).into_iter();
        lines.map(|line| line + "\n").collect::<String>()
    };
    let header = rows.first().map(Vec::as_slice).unwrap_or_default();
    let shown = width.map_or(header.len(), |width| fitting(rows, width));
    if shown >= header.len() {
        return lines(rows);
    }
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().take(shown).cloned().collect())
        .collect();
    let hidden = header.iter().skip(shown).map(String::as_str).collect::<Vec<_>>();
    format!("{}-o wide also shows {}\n", lines(&rows), hidden.join(", "))
}

/// Number of columns that fit, counted from the left.
fn fitting(rows: &[Vec<String>], width: usize) -> usize {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let mut taken = 0;
    for column in 0..columns {
        let widest = cells(column)
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default();
        taken += widest + if column > 0 { GAP } else { 0 };
        if taken > width {
            return column.max(COLUMNS_MIN.min(columns));
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use proto::v1;
    use serde_json::json;

    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        vec![
            row(["CLUSTER", "STATE", "AGENT", "KEYS"]),
            row(["east", "live", "0.1.0", "abcdef"]),
        ]
    }

    #[test]
    fn a_table_shows_the_columns_that_fit_and_names_the_others() {
        let all = "CLUSTER  STATE  AGENT  KEYS\neast     live   0.1.0  abcdef\n";
        assert_eq!(fitted(&rows(), None), all);
        assert_eq!(fitted(&rows(), Some(29)), all);
        let fewer = "CLUSTER  STATE  AGENT\neast     live   0.1.0\n-o wide also shows KEYS\n";
        assert_eq!(fitted(&rows(), Some(28)), fewer);
        let least = "CLUSTER  STATE\neast     live\n-o wide also shows AGENT, KEYS\n";
        assert_eq!(fitted(&rows(), Some(1)), least);
        assert_eq!(fitted(&[], Some(80)), "");
    }

    #[test]
    fn a_message_has_the_names_and_forms_of_the_protocol() {
        let member = v1::MemberState {
            cluster: "east".into(),
            incarnation: 7,
            state: v1::SourceState::SourceLive.into(),
            state_since: Some(prost_types::Timestamp {
                seconds: 1_700_000_000,
                nanos: 0,
            }),
            ..Default::default()
        };
        let expected = json!({
            "cluster": "east",
            "incarnation": "7",
            "state": "SOURCE_LIVE",
            "stateSince": "2023-11-14T22:13:20Z",
        });
        assert_eq!(value("MemberState", &member).expect("a value"), expected);
        let yaml = Output::Yaml.message("MemberState", &member).expect("YAML");
        assert_eq!(
            yaml,
            "---\ncluster: east\nincarnation: '7'\nstate: SOURCE_LIVE\nstateSince: 2023-11-14T22:13:20Z\n"
        );
        let text = Output::Json.message("MemberState", &member).expect("JSON");
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), expected);
        assert!(value("Nothing", &member).is_err());
    }
}

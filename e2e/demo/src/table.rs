//! The table and every other text in columns.
//! Pure: text from a picture; it neither reads nor prints.

use std::time::Duration;

use shared::columns::columns;

use super::picture::{Cell, Picture, Row};
use advice::DEMO_EXPORTS;

/// Rows that are shown; the others are counted.
const ROWS_MAX: usize = 12;
/// Suffix of the reasons of conflicts, which the table leaves out.
const CONFLICT_SUFFIX: &str = "Conflict";

/// The whole table: a line each.
pub(super) fn table(picture: &Picture) -> Vec<String> {
    let mut header = vec!["SERVICE".to_owned(), "EXPORTED BY".to_owned()];
    header.extend(picture.clusters().map(|cluster| format!("IN {cluster}")));
    header.push("CONFLICT".to_owned());
    let rows = picture.rows();
    let mut cells = vec![header];
    let mut previous = None;
    for row in rows.iter().take(ROWS_MAX) {
        let again = previous == Some(&row.service);
        previous = Some(&row.service);
        let mut line = vec![
            if again {
                String::new()
            } else {
                row.service.to_string()
            },
            exporter(row),
        ];
        line.extend(row.cells.values().map(|cell| self::cell(row, *cell)));
        line.push(verdict(row));
        cells.push(line);
    }
    let mut lines = columns(&cells);
    match rows.len().checked_sub(ROWS_MAX) {
        Some(more @ 1..) => lines.push(format!("and {more} more: {DEMO_EXPORTS}")),
        _ if rows.is_empty() => lines.push("nothing is exported yet".to_owned()),
        _ => {}
    }
    lines
}

fn exporter(row: &Row) -> String {
    let won = row
        .conflict
        .as_ref()
        .is_some_and(|conflict| conflict.winner == row.source);
    format!("{}{}", row.source, if won { " (wins)" } else { "" })
}

fn cell(row: &Row, cell: Cell) -> String {
    match cell {
        _ if row.refused.is_some() => "-".to_owned(),
        Cell::NoNamespace => "no namespace".to_owned(),
        Cell::Waiting => "...".to_owned(),
        Cell::Arrived { after, endpoints } => format!("{}, {endpoints} ep", duration(after)),
    }
}

fn verdict(row: &Row) -> String {
    match (&row.refused, &row.conflict) {
        (Some((reason, _)), _) => format!("refused: {reason}"),
        (None, Some(conflict)) => reasons(&conflict.reason),
        (None, None) => String::new(),
    }
}

/// `PortConflict,TypeConflict` as `Port, Type`.
pub(super) fn reasons(joined: &str) -> String {
    let short = joined
        .split(',')
        .map(|reason| reason.strip_suffix(CONFLICT_SUFFIX).unwrap_or(reason));
    short.collect::<Vec<_>>().join(", ")
}

/// A time as a person reads it.
pub(super) fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        milliseconds @ 0..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_and_times_are_short() {
        assert_eq!(
            reasons("PortConflict,SessionAffinityConflict"),
            "Port, SessionAffinity"
        );
        assert_eq!(duration(Duration::from_micros(41_900)), "41 ms");
        assert_eq!(duration(Duration::from_millis(2350)), "2.4 s");
    }
}

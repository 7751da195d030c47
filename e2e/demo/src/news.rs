//! Changes between two looks at the table, in sentences. Pure; a picture is compared, never a cluster.

use super::{
    picture::{Cell, Row},
    table::{duration, reasons},
};

/// News of the later rows for a reader of the earlier ones.
pub(super) fn news(before: &[Row], after: &[Row]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in after {
        let old = same(before, row);
        if old.is_none() {
            lines.push(format!("{} is exported by {}", row.service, row.source));
        }
        verdicts(old, row, &mut lines);
        arrivals(old, row, &mut lines);
    }
    for row in before.iter().filter(|row| same(after, row).is_none()) {
        lines.push(format!("{} is no longer exported by {}", row.service, row.source));
    }
    lines
}

fn same<'a>(rows: &'a [Row], row: &Row) -> Option<&'a Row> {
    rows.iter()
        .find(|other| other.service == row.service && other.source == row.source)
}

fn verdicts(old: Option<&Row>, row: &Row, lines: &mut Vec<String>) {
    let (service, source) = (&row.service, &row.source);
    if old.and_then(|old| old.refused.as_ref()) != row.refused.as_ref() {
        match &row.refused {
            Some((reason, message)) => {
                lines.push(format!("{service} of {source} is refused: {reason}: {message}"))
            }
            None => lines.push(format!("{service} of {source} is valid now")),
        }
    }
    if old.and_then(|old| old.conflict.as_ref()) != row.conflict.as_ref() {
        match &row.conflict {
            Some(conflict) => lines.push(format!(
                "{service}: {source} is told of a conflict ({}); {} is the oldest and wins",
                reasons(&conflict.reason),
                conflict.winner
            )),
            None => lines.push(format!(
                "{service}: {source} is told that there is no conflict any more"
            )),
        }
    }
}

fn arrivals(old: Option<&Row>, row: &Row, lines: &mut Vec<String>) {
    let (service, source) = (&row.service, &row.source);
    for (cluster, cell) in &row.cells {
        match (old.and_then(|old| old.cells.get(cluster)), cell) {
            (
                Some(Cell::Arrived {
                    endpoints: before, ..
                }),
                Cell::Arrived { endpoints, .. },
            ) => {
                let line = format!("{service} of {source} has {endpoints} endpoints in {cluster}");
                lines.extend((before != endpoints).then_some(line));
            }
            (_, Cell::Arrived { after, endpoints }) => lines.push(format!(
                "{service} of {source} is in {cluster} after {}, endpoints: {endpoints}",
                duration(*after)
            )),
            (Some(Cell::Arrived { .. }), Cell::Waiting | Cell::NoNamespace) => {
                lines.push(format!("{service} of {source} is gone from {cluster}"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::kept::Name, *};

    fn row(cell: Cell) -> Row {
        Row {
            service: Name::new("shop", "cart"),
            source: "east".into(),
            refused: None,
            conflict: None,
            cells: [("west".to_owned(), cell)].into_iter().collect(),
        }
    }

    #[test]
    fn the_life_of_an_export_is_told_once() {
        let arrived = |endpoints| {
            row(Cell::Arrived {
                after: Duration::from_millis(7),
                endpoints,
            })
        };
        let (waiting, one, two) = (row(Cell::Waiting), arrived(1), arrived(2));
        let steps = [
            (vec![], vec![waiting.clone()], "shop/cart is exported by east"),
            (
                vec![waiting],
                vec![one.clone()],
                "shop/cart of east is in west after 7 ms, endpoints: 1",
            ),
            (
                vec![one],
                vec![two.clone()],
                "shop/cart of east has 2 endpoints in west",
            ),
            (vec![two], vec![], "shop/cart is no longer exported by east"),
        ];
        for (before, after, told) in steps {
            assert_eq!(news(&before, &after), [told]);
            assert!(news(&after, &after).is_empty());
        }
    }
}

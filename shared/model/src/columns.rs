//! Owns: rows of text as columns, for output to people.

/// Cells in columns that align; no space at the end of a line.
pub fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let mut widths = Vec::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(column) {
                Some(widest) => *widest = width.max(*widest),
                None => widths.push(width),
            }
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_end_without_spaces() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let lines = columns(&[row(["A", "BB", "C"]), row(["aaaa", "b", ""])]);
        assert_eq!(lines, ["A     BB  C", "aaaa  b"]);
    }
}

//! Tables of text, as a terminal shows them.

use core::fmt;

/// What stands between two columns.
const SEPARATOR: &str = "  ";

/// Rows of text under column heads; the first column names the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the table is of.
    pub title: String,
    /// Column heads.
    pub columns: Vec<String>,
    /// One cell per column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { title: title.to_owned(), columns, rows: Vec::new() }
    }

    /// Adds a row; its cells stand under the columns in order.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        let rows: Vec<&[String]> =
            core::iter::once(&self.columns).chain(&self.rows).map(Vec::as_slice).collect();
        aligned(&rows, 1).iter().try_for_each(|line| writeln!(f, "{SEPARATOR}{line}"))
    }
}

/// Rows as lines; the first `left` columns are aligned to the left, the others to the right.
pub fn aligned<R: AsRef<[String]>>(rows: &[R], left: usize) -> Vec<String> {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &R| {
        let cells = row.as_ref().iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join(SEPARATOR)
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned() {
        let mut table = Table::new("Shares", &["class", "published", "ours"]);
        table.row(["a".into(), "421,211".into(), "1".into()]);
        table.row(["long name".into(), "2".into(), "42,922".into()]);
        let expected = "Shares\n  class      published    ours\n  a            421,211       1\n  \
                        long name          2  42,922\n";
        assert_eq!(table.to_string(), expected);
    }
}

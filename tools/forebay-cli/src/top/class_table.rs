//! Classes as a table, of the columns that there is room for.

use super::columns::padded;

/// The width of lines that go to no terminal. All columns have room from 89 on.
pub(super) const COLUMNS_WITHOUT_TERMINAL: usize = 80;
/// Columns of a class's name, at the least.
const NAME: usize = 14;

/// What a column is called, how wide it is, and how soon it is left out where room is short.
struct Column {
    head: &'static str,
    width: usize,
    left_out: usize,
}

const fn column(head: &'static str, width: usize, left_out: usize) -> Column {
    Column { head, width, left_out }
}

const COLUMNS: [Column; 10] = [
    column("iops", 7, 8),
    column("MB/s", 8, 7),
    column("asked", 5, 2),
    column("got", 5, 5),
    column("wait", 5, 6),
    column("disk", 5, 3),
    column("p99 q", 8, 9),
    column("max q", 8, 1),
    column("p99 disk", 8, 10),
    column("why", 6, 4),
];

/// A class's cells, in the order of the columns.
pub(super) type Cells = [String; COLUMNS.len()];

/// Lines of at most this many columns.
pub(super) struct ClassTable {
    name: usize,
    /// Columns that are left out sooner are left out.
    from: usize,
}

impl ClassTable {
    pub(super) fn new(columns: usize) -> Self {
        let taken = |from: usize| {
            let shown = COLUMNS.iter().filter(|column| column.left_out >= from);
            shown.map(|column| column.width + 1).sum::<usize>()
        };
        let fits = |from: &usize| NAME + taken(*from) <= columns;
        let from = (1..=COLUMNS.len()).find(fits).unwrap_or(COLUMNS.len() + 1);
        Self { name: columns.saturating_sub(taken(from)), from }
    }

    pub(super) fn head(&self) -> String {
        self.line("class", &COLUMNS.map(|column| column.head.to_owned()))
    }

    /// A name of printable characters, and figures.
    pub(super) fn line(&self, name: &str, cells: &Cells) -> String {
        let mut line = padded(name, self.name);
        let shown = COLUMNS.iter().zip(cells).filter(|(column, _)| column.left_out >= self.from);
        for (column, cell) in shown {
            match column.head {
                "why" => line.push_str(&format!(" {cell}")),
                _ => line.push_str(&format!(" {cell:>width$}", width = column.width)),
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::width;
    use super::*;

    #[test]
    fn a_column_without_room_is_left_out_and_none_is_cut() {
        let cells = COLUMNS.map(|column| "9".repeat(column.width));
        let mut before = 0;
        for columns in NAME..120 {
            let table = ClassTable::new(columns);
            let (head, line) = (table.head(), table.line("a class of a long name", &cells));
            assert!(width(&line) <= columns && width(&head) <= columns, "{line}");
            let figures: Vec<_> = line.split(' ').filter(|word| word.starts_with('9')).collect();
            let shown = COLUMNS.iter().filter(|column| column.left_out >= table.from);
            let whole: Vec<_> = shown.map(|column| "9".repeat(column.width)).collect();
            assert_eq!(figures, whole, "{head}");
            assert!(whole.len() >= before, "{columns}");
            before = whole.len();
        }
        assert_eq!(before, COLUMNS.len());
        assert_eq!(ClassTable::new(60).head().split_whitespace().last(), Some("disk"));
        assert!(ClassTable::new(80).head().ends_with("why"));
    }
}

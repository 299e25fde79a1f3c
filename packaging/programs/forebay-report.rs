use forebay_report::{Table, percent_of_change, scaled};

fn main() {
    let mut table = Table::new("disk", &["IOPS", "change"]);
    table.row(["nvme".to_owned(), scaled(410_000.0), percent_of_change(0.1)]);
    print!("{table}");
}

//! The program of the README.
//!
//! `cargo run --release -p forebay --example readme` reads two pages of the file `table` by the
//! figures in `forebay.yaml`, both in the current directory.

use std::{error::Error, fs::File, os::unix::fs::FileExt};

use forebay::{Op, Scheduler};

fn main() -> Result<(), Box<dyn Error>> {
    let scheduler = Scheduler::from_file("forebay.yaml".as_ref())?;
    let queries = scheduler.add_class("queries", 1000)?;
    let compaction = scheduler.add_class("compaction", 100)?;
    let (table, mut page) = (File::open("table")?, [0; 4096]);

    // Wait until the disk has room and the class is next; then do the I/O.
    let permit = queries.admit(Op::Read, 4096)?;
    let result = table.read_exact_at(&mut page, 0);
    permit.complete(&result);
    result?;

    // Background work gets a tenth of what queries get while both want the disk.
    let permit = compaction.admit(Op::Read, 4096)?;
    permit.complete(&table.read_exact_at(&mut page, 4096));
    Ok(())
}

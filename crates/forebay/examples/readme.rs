//! The program of the README.
//!
//! `cargo run --release -p forebay --example readme` reads two pages of the file `table` by the
//! figures in `forebay.yaml`, both in the current directory.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;

use forebay::{Op, Scheduler};

fn main() -> Result<(), Box<dyn Error>> {
    let scheduler = Scheduler::from_file("forebay.yaml".as_ref())?;
    let queries = scheduler.add_class("queries", 1000)?;
    let compaction = scheduler.add_class("compaction", 100)?;
    let (file, mut page) = (File::open("table")?, [0; 4096]);

    // around I/O that the disk does at once, from any thread: waits for the class's turn
    let permit = queries.admit(Op::Read, 4096)?;
    let result = file.read_exact_at(&mut page, 0);
    permit.complete(&result);
    result?;

    // the same for work that can wait: a tenth of the disk while queries want the rest
    let permit = compaction.admit(Op::Read, 4096)?;
    permit.complete(&file.read_exact_at(&mut page, 4096));
    Ok(())
}

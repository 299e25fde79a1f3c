//! Deletes files at a rate, and says once a second how far it is.
//!
//! `cargo run --release -p forebay --example paced_delete -- 50 FILE…`: at 50 MB/s.

use std::env;
use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use forebay::{Deleter, DeleterOptions, DeletionState, Scheduler};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let rate: u64 = arguments.next().ok_or("give a rate in MB/s, and files")?.parse()?;
    let scheduler = Scheduler::builder().build()?;
    let class = scheduler.add_class("deletes", 100)?;
    let options = DeleterOptions::new().rate(rate * 1_000_000);
    let deleter = Deleter::new(&class, options)?;
    let begin = Instant::now();
    let deletions = deleter.delete_all(arguments);
    while deletions.iter().any(|deletion| deletion.progress().state < DeletionState::Ended) {
        thread::sleep(Duration::from_secs(1));
        let counted = deleter.snapshot();
        let seconds = begin.elapsed().as_secs_f64();
        println!("{seconds:5.1} s: {} bytes in {} steps", counted.bytes, counted.steps);
    }
    for deletion in &deletions {
        match deletion.wait() {
            Ok(deleted) => println!("{}: {:?}", deletion.path().display(), deleted.how),
            Err(error) => eprintln!("{error}"),
        }
    }
    deleter.drain().wait()?;
    Ok(())
}

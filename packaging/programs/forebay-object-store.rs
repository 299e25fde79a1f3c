use forebay::Scheduler;
use forebay_object_store::ScheduledStore;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let class = Scheduler::builder().build()?.add_class("queries", 1000)?;
    println!("{}", ScheduledStore::new(std::env::temp_dir(), &class)?.with_fsync(true));
    Ok(())
}

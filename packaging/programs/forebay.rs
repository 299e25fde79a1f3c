use forebay::{Op, Scheduler};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scheduler = Scheduler::builder().build()?;
    let queries = scheduler.add_class("queries", 1000)?;
    let permit = queries.admit(Op::Read, 4096)?;
    permit.complete(&std::io::Result::Ok(4096_usize));
    Ok(())
}

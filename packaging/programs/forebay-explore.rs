use forebay_explore::{Goal, SimulatedDisk};
use forebay_sim::spec::DiskSpec;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let goal: Goal = "p95=1ms".parse()?;
    let disk = SimulatedDisk::new(DiskSpec::resolve("nvme-2022")?);
    println!("{goal}: {:?}", disk.rates());
    Ok(())
}

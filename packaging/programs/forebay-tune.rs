use forebay_sim::spec::DiskSpec;
use forebay_tune::{Budget, SimTarget};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec = DiskSpec::resolve("nvme-2022")?;
    let _target = SimTarget::new(spec.build(1), spec.name(), spec.capacity(), 4096);
    println!("{} s", Budget::named("quick").ok_or("no such budget")?.seconds());
    Ok(())
}

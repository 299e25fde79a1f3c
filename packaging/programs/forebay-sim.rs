use forebay_sim::spec::DiskSpec;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let disk = DiskSpec::resolve("samsung-850-pro")?;
    println!("{}: {} bytes", disk.name(), disk.capacity());
    forebay_sim::swarm::run(0, 10, |_| {})?;
    Ok(())
}

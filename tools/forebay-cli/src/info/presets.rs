//! Disks whose figures are known, as io-properties.

use std::fmt::Write;
use std::path::Path;

use forebay::properties::Properties;
use forebay_sim::spec::DiskSpec;

use super::disk::DescribedDisk;
use crate::disk::properties_of;
use crate::failure::Failure;

/// What is random about a simulated disk, its figures do not depend on.
const SEED: u64 = 1;

/// The disk called `name`, or described in a disk file, mounted at `mountpoint`.
pub(super) fn known(name: &str, mountpoint: &Path) -> Result<DescribedDisk, Failure> {
    let spec = DiskSpec::resolve(name)?;
    let disk = spec.build(SEED);
    let base_latency = Some(disk.base_latency());
    let source = spec.source().trim().to_owned();
    let properties = properties_of(&*disk, vec![mountpoint.to_owned()]);
    DescribedDisk::new(name.to_owned(), source, properties, base_latency)
}

/// What machines and volumes of clouds do, by size, and how that is known.
pub(super) fn list() -> Result<String, Failure> {
    let mut text = format!(
        "{:<20}{:>12}{:>11}{:>12}{:>11}  {}\n",
        "size", "reads/s", "MB/s", "writes/s", "MB/s", "source"
    );
    for name in DiskSpec::sizes()? {
        let disk = DiskSpec::of_table(&name)?;
        let rates = disk.build(SEED).rates();
        let known = disk.source().split([':', ',']).next().unwrap_or_default();
        let _ = writeln!(
            text,
            "{name:<20}{:>12}{:>11.1}{:>12}{:>11.1}  {known}",
            rates.read_iops,
            rates.read_bandwidth as f64 / 1e6,
            rates.write_iops,
            rates.write_bandwidth as f64 / 1e6,
        );
    }
    text += "\nEBS volumes may have any size, such as gp2-1TiB, and provisioned \
             operations:\ngp3-500GiB-16000. `forebay info --disk NAME` shows sources, dates and \
             assumptions.\n";
    Ok(text)
}

/// An io-properties file of these disks, which names where the figures come from.
pub(super) fn properties_file(disks: &[DescribedDisk]) -> Result<String, Failure> {
    let mut header = String::new();
    let mut described = Vec::new();
    for disk in disks {
        let Some(figures) = &disk.figures else {
            return Err(Failure::Input(
                "no figures to write; name a --disk or --properties".into(),
            ));
        };
        header += &format!("# {}: {}\n", disk.name, disk.source);
        described.push(figures.properties.clone());
    }
    Ok(header + &Properties { disks: described }.to_yaml_alone())
}

//! A simulated disk that was tuned, and its truth.

use forebay_config::Source;
use forebay_core::DiskRates;
use forebay_sim::spec::DiskSpec;
use forebay_tune::{Budget, Fit, Run, SimTarget, Target, fit, measure};

pub(crate) const FOUR: &str = "
kind: ideal
channels: 4
read_latency: 500us
write_latency: 250us
bandwidth: 300000000
";

/// Tunes the disk of this file; its run, its fit, and its true figures.
pub(crate) fn tune(
    yaml: &str,
    budget: &Budget,
    seed: u64,
) -> (Run, Fit, DiskRates, std::time::Duration) {
    let spec = DiskSpec::parse(&Source::new("disk.yaml", yaml)).unwrap();
    let disk = spec.build(seed);
    let (rates, base) = (disk.rates(), disk.base_latency());
    let mut target = SimTarget::new(disk, "disk", spec.capacity(), spec.sector() as u32);
    let mut run = Run::new(budget, target.info().clone());
    measure(&mut target, budget, &mut run, &mut |_, _| Ok(())).unwrap();
    let fit = fit(&run).unwrap();
    (run, fit, rates, base)
}

pub(crate) fn assert_near(what: &str, found: f64, truth: f64, within: f64) {
    let off = found / truth - 1.0;
    assert!(off.abs() <= within, "{what}: {found:.0}, not {truth:.0} ({:+.1} %)", off * 100.0);
}

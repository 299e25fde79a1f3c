//! The disks of the table.

use std::time::Duration;

use forebay_config::Source;
use forebay_sim::spec::DiskSpec;

/// A disk, and for how long it must be busy until it does what lasts.
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) spec: DiskSpec,
    pub(crate) bursts_for: Duration,
    /// Whether less than a minute at its rate shows what lasts.
    pub(crate) shows: bool,
}

impl Known {
    fn new(name: &str, spec: DiskSpec) -> Self {
        Self { name: name.to_owned(), spec, bursts_for: Duration::ZERO, shows: true }
    }
}

/// All disks of the table.
pub(crate) fn all() -> Vec<Known> {
    presets()
        .into_iter()
        .chain(measured())
        .chain(buffered())
        .chain(raids())
        .chain(volumes())
        .collect()
}

pub(crate) fn presets() -> Vec<Known> {
    let preset = |name| {
        let known = Known::new(name, DiskSpec::resolve(name).unwrap());
        match name {
            // 5.4 million credits at 3000 per second, earned back at 300
            "gp2" => Known { bursts_for: Duration::from_secs(2100), shows: false, ..known },
            _ => known,
        }
    };
    DiskSpec::presets().map(preset).collect()
}

/// The surfaces in the directory that FOREBAY_DISKS names.
fn measured() -> Vec<Known> {
    let Ok(dir) = std::env::var("FOREBAY_DISKS") else { return Vec::new() };
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    let known = |path: &std::path::PathBuf| {
        let spec = DiskSpec::resolve(&path.display().to_string()).unwrap();
        Known::new(&path.file_name().unwrap().to_string_lossy(), spec)
    };
    files.iter().map(known).collect()
}

/// Flash that writes `sustained` MB/s behind a buffer of `buffer` MiB.
pub(crate) fn buffer(buffer: u64, sustained: u64) -> Known {
    let yaml = format!(
        "kind: flash\ncapacity: 512GB\nread_command: 1430ns\nwrite_command: 2730ns\n\
         bandwidth: 3468000000\nread_latency: 21500ns\nwrite_latency: 4us\ndies: 64\n\
         page: 32kB\npage_read: 42us\nprogram_bandwidth: {sustained}000000\nsuspend: 100us\n\
         write_buffer: {buffer}MB\n"
    );
    let name = format!("970-pro, {sustained} MB/s behind {buffer} MiB");
    // Small writes of 4 KiB fill it at 1.5 GB/s; what they do not fill is never full.
    let filling = 1500_u64.saturating_sub(sustained).max(100);
    let seconds = (buffer * 11 / 10 / filling).max(1);
    let spec = parse(&name, &yaml);
    let stream = 3437 - sustained;
    let shows = buffer as f64 * 1.05 / stream as f64 <= 60.0;
    Known { name, spec, bursts_for: Duration::from_secs(seconds), shows }
}

fn buffered() -> Vec<Known> {
    let sizes = [4, 64, 256, 1024, 4096, 16_384];
    let of = |size| [2209, 800, 80].map(|sustained| buffer(size, sustained));
    sizes.into_iter().flat_map(of).collect()
}

fn raids() -> Vec<Known> {
    let of = |(member, chunk): (&str, &str)| {
        [2, 4, 8].map(|count| {
            let members = vec![member; count].join(", ");
            let name = format!("RAID0 of {count} {member}, {chunk}");
            let yaml = format!("kind: raid0\nchunk: {chunk}\nmembers: [{members}]\n");
            let yaml = if member == "nvme-2025" { yaml + "sector: 4096\n" } else { yaml };
            Known::new(&name, parse(&name, &yaml))
        })
    };
    [("samsung-850-pro", "64kB"), ("samsung-970-pro", "512kB"), ("hdd-7200rpm", "1MB")]
        .into_iter()
        .flat_map(of)
        .collect()
}

fn volumes() -> Vec<Known> {
    let volume = |iops: u64, burst: u64, credits: u64, bandwidth: u64| {
        let name = format!("volume of {iops} per s, {credits} credits at {burst}");
        let mut yaml = format!(
            "kind: cloud\ncapacity: 200GB\niops: {iops}\nbandwidth: {bandwidth}000000\n\
             latency: 600us\njitter: 150us\n"
        );
        if credits > 0 {
            yaml += &format!("burst_iops: {burst}\nburst_credits: {credits}\n");
        }
        let seconds = if credits > 0 { credits / (burst - iops) + 10 } else { 0 };
        let shows = seconds < 60;
        let spec = parse(&name, &yaml);
        Known { name, spec, bursts_for: Duration::from_secs(seconds), shows }
    };
    vec![
        volume(500, 500, 0, 100),
        volume(16_000, 16_000, 0, 500),
        volume(300, 3000, 40_000, 125),
        volume(300, 3000, 120_000, 125),
        volume(1000, 10_000, 2_000_000, 500),
        volume(300, 3000, 5_400_000, 125),
    ]
}

fn parse(name: &str, yaml: &str) -> DiskSpec {
    DiskSpec::parse(&Source::new(name, yaml)).unwrap()
}

//! The disks of the table.

use forebay_config::Source;
use forebay_sim::spec::DiskSpec;

/// A disk, and what it is once its buffers are full and its credits used up.
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) spec: DiskSpec,
    pub(crate) lasting: DiskSpec,
    /// Whether a minute at its rate shows what lasts.
    pub(crate) shows: bool,
    /// Seconds in which writes fill a buffer.
    pub(crate) fills: Option<f64>,
}

impl Known {
    fn new(name: &str, spec: DiskSpec) -> Self {
        Self { name: name.to_owned(), lasting: spec.clone(), spec, shows: true, fills: None }
    }
}

/// Some of each kind that take a moment.
pub(crate) fn some() -> Vec<Known> {
    let names = ["samsung-850-pro", "nvme-2018", "i4i.2xlarge", "hdd-7200rpm", "gp2", "azure-p30"];
    let buffers = [(4, 800), (1024, 80), (4096, 800), (16_384, 2209)];
    presets()
        .into_iter()
        .filter(|known| names.contains(&known.name.as_str()))
        .chain(buffers.map(|(size, sustained)| buffer(size, sustained)))
        .chain([buffer_of(300, 16_384, 100)])
        .collect()
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

/// Volumes of clouds may have credits for half an hour, whether they have or not.
const VOLUMES: [&str; 4] = ["azure-p30", "gcp-pd-SSD-2TB", "gp2", "gp3"];

pub(crate) fn presets() -> Vec<Known> {
    let preset = |name| {
        let known = Known::new(name, DiskSpec::resolve(name).unwrap());
        let shows = !VOLUMES.contains(&name);
        match name {
            "gp2" => Known { shows, lasting: volume(name, 300, None, 134_217_728).spec, ..known },
            _ => Known { shows, ..known },
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
        let name = path.file_name().unwrap().to_string_lossy();
        let shows = !VOLUMES.iter().any(|volume| name.starts_with(volume));
        Known { shows, ..Known::new(&name, spec) }
    };
    files.iter().map(known).collect()
}

/// Flash that takes 3437 MB/s, and writes `sustained` MB/s behind a buffer of `buffer` MiB.
pub(crate) fn buffer(buffer: u64, sustained: u64) -> Known {
    buffer_of(3437, buffer, sustained)
}

/// The same that takes `first` MB/s.
pub(crate) fn buffer_of(first: u64, buffer: u64, sustained: u64) -> Known {
    let name = format!("flash of {first}, {sustained} MB/s behind {buffer} MiB");
    // with the command of a MiB
    let bandwidth = first + first / 110;
    let of = |buffer: u64| {
        let yaml = format!(
            "kind: flash\ncapacity: 512GB\nread_command: 1430ns\nwrite_command: 2730ns\n\
             bandwidth: {bandwidth}000000\nread_latency: 21500ns\nwrite_latency: 4us\ndies: 64\n\
             page: 32kB\npage_read: 42us\nprogram_bandwidth: {sustained}000000\nsuspend: 100us\n\
             write_buffer: {buffer}MB\n"
        );
        parse(&name, &yaml)
    };
    let fills = buffer as f64 * 1.048_576 / (first - sustained) as f64;
    let shows = fills <= 60.0;
    Known { spec: of(buffer), lasting: of(BUFFER_MIN), shows, fills: Some(fills), name }
}

/// So little is full at once, in MiB.
const BUFFER_MIN: u64 = 4;

/// As fast as flash behind an older link, or slower, with a buffer that takes minutes to fill.
const SLOW: [(u64, u64, u64); 4] =
    [(300, 16_384, 100), (300, 16_384, 10), (300, 4096, 100), (550, 16_384, 366)];

fn buffered() -> Vec<Known> {
    let sizes = [4, 64, 256, 1024, 4096, 16_384];
    let of = |size| [2209, 800, 80].map(|sustained| buffer(size, sustained));
    let slow = SLOW.map(|(first, size, sustained)| buffer_of(first, size, sustained));
    sizes.into_iter().flat_map(of).chain(slow).collect()
}

/// A RAID0 of this many.
pub(crate) fn raid(count: usize, member: &str, chunk: &str) -> Known {
    let members = vec![member; count].join(", ");
    let name = format!("RAID0 of {count} {member}, {chunk}");
    let yaml = format!("kind: raid0\nchunk: {chunk}\nmembers: [{members}]\n");
    Known::new(&name, parse(&name, &yaml))
}

pub(crate) fn raids() -> Vec<Known> {
    let of = |(member, chunk): (&str, &str)| [2, 4, 8].map(|count| raid(count, member, chunk));
    [("samsung-850-pro", "64kB"), ("samsung-970-pro", "512kB"), ("hdd-7200rpm", "1MB")]
        .into_iter()
        .flat_map(of)
        .collect()
}

/// A volume of `iops` operations and `bandwidth` bytes per second, faster while it has credits: how
/// fast, and how many.
fn volume(name: &str, iops: u64, burst: Option<(u64, u64)>, bandwidth: u64) -> Known {
    let of = |burst: Option<(u64, u64)>| {
        let mut yaml = format!(
            "kind: cloud\ncapacity: 200GB\niops: {iops}\nbandwidth: {bandwidth}\n\
             latency: 600us\njitter: 150us\n"
        );
        if let Some((burst, credits)) = burst {
            yaml += &format!("burst_iops: {burst}\nburst_credits: {credits}\n");
        }
        parse(name, &yaml)
    };
    Known { name: name.to_owned(), spec: of(burst), lasting: of(None), shows: false, fills: None }
}

fn volumes() -> Vec<Known> {
    [
        (500, None, 100),
        (16_000, None, 500),
        (300, Some((3000, 40_000)), 125),
        (300, Some((3000, 120_000)), 125),
        (1000, Some((10_000, 2_000_000)), 500),
        (300, Some((3000, 5_400_000)), 125),
    ]
    .into_iter()
    .map(|(iops, burst, mb)| {
        let name = match burst {
            Some((burst, credits)) => format!("volume of {iops} per s, {credits} at {burst}"),
            None => format!("volume of {iops} per s"),
        };
        volume(&name, iops, burst, mb * 1_000_000)
    })
    .collect()
}

pub(crate) fn parse(name: &str, yaml: &str) -> DiskSpec {
    DiskSpec::parse(&Source::new(name, yaml)).unwrap()
}

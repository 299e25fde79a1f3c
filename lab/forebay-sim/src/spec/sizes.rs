//! Sizes of machines and volumes that clouds rent out: one table, and the rules that make disks of its rows.
//!
//! - The disks of a machine are an array, in chunks of 1 MiB, which does what they do together.
//! - Such a disk has as many channels as serve its reads at their latency on the idle disk, and a write keeps a
//!   channel as long as the rate of writes says.
//! - A volume has what the vendor's rule gives it for its size.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_config::{ByteSize, ConfigError, Span, parse};
use serde::Deserialize;

use super::cloud::OPERATION_BYTES_DEFAULT;
use super::{DiskSpec, Model, raid0};
use crate::disk::{Cloud, Ideal};

const TABLE: &str = include_str!("../../sizes.yaml");
/// Chunks of arrays, in which ScyllaDB's images make them.
const CHUNK: u64 = 1 << 20;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// How long a burst of Azure's volumes lasts from full credits.
const BURST_SECONDS: u64 = 1800;

/// The table.
#[derive(Deserialize)]
struct Sizes {
    sources: BTreeMap<String, String>,
    machines: Vec<Family<Machine>>,
    volumes: Vec<Volume>,
    tiers: Vec<Family<Tier>>,
}

/// Sizes that answer alike.
#[derive(Deserialize)]
struct Family<T> {
    #[serde(default)]
    figures: Figures,
    latency: Span,
    #[serde(default)]
    jitter: Span,
    latency_of: String,
    sizes: Vec<T>,
}

/// What the figures of machines are of.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Figures {
    /// Each disk.
    #[default]
    Each,
    /// The array.
    Whole,
}

#[derive(Deserialize)]
struct Machine {
    name: String,
    disks: u64,
    gb: u64,
    /// Of 4 KiB per second, and bytes per second of large ones; none where they are another row's.
    reads: Option<[u64; 2]>,
    writes: Option<[u64; 2]>,
    basis: String,
    source: String,
    date: String,
}

/// Volumes of a size that is asked for.
#[derive(Deserialize)]
struct Volume {
    name: String,
    gib: [u64; 2],
    iops_per_gib: u64,
    iops: [u64; 2],
    provisioned: Provisioned,
    burst: Option<[u64; 2]>,
    mib: [u64; 2],
    mib_per_kilo_iops: Option<u64>,
    #[serde(default)]
    mib_most_from_gib: u64,
    latency: Span,
    jitter: Span,
    latency_of: String,
    basis: String,
    source: String,
    date: String,
}

/// Which operations per second are asked for.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Provisioned {
    None,
    /// Those beyond the least.
    Beyond,
    All,
}

/// Volumes of a size that has a name.
#[derive(Deserialize)]
struct Tier {
    name: String,
    gib: u64,
    iops: u64,
    mb: u64,
    burst: Option<u64>,
    basis: String,
    source: String,
    date: String,
}

/// The names of all sizes, as the table has them; of volumes of any size an example each.
pub(super) fn names() -> Result<Vec<String>, ConfigError> {
    let sizes: Sizes = parse("sizes.yaml", TABLE)?;
    let machines = sizes.machines.into_iter().flat_map(|family| family.sizes);
    let tiers = sizes.tiers.into_iter().flat_map(|family| family.sizes);
    let volumes = sizes.volumes.into_iter().map(|volume| format!("{}-500GiB", volume.name));
    Ok(machines.map(|size| size.name).chain(volumes).chain(tiers.map(|size| size.name)).collect())
}

/// The disk of the size called `name`, if there is one.
pub(super) fn resolve(name: &str) -> Result<Option<DiskSpec>, ConfigError> {
    let sizes: Sizes = parse("sizes.yaml", TABLE)?;
    for family in &sizes.machines {
        if let Some(machine) = family.sizes.iter().find(|machine| machine.name == name) {
            return machine.disk(family, &sizes.sources).map(Some);
        }
    }
    for family in &sizes.tiers {
        if let Some(tier) = family.sizes.iter().find(|tier| tier.name == name) {
            return Ok(Some(tier.disk(family, &sizes.sources)));
        }
    }
    let mut parts = name.split('-');
    let (family, size, iops) = (parts.next(), parts.next(), parts.next());
    let volume = sizes.volumes.iter().find(|volume| Some(volume.name.as_str()) == family);
    match (volume, size, parts.next()) {
        (Some(volume), Some(size), None) => volume.disk(name, size, iops, &sizes.sources).map(Some),
        _ => Ok(None),
    }
}

/// Where a row comes from.
fn source(basis: &str, of: &str, date: &str, sources: &BTreeMap<String, String>) -> String {
    let source = sources.get(of).map_or(of, String::as_str);
    format!("{basis}: {source}, {date}")
}

impl Machine {
    fn disk(
        &self,
        family: &Family<Self>,
        sources: &BTreeMap<String, String>,
    ) -> Result<DiskSpec, ConfigError> {
        let found = family.sizes.iter().find(|other| other.name == self.source).unwrap_or(self);
        let (Some(reads), Some(writes)) = (found.reads, found.writes) else {
            let message = format!("{} has no figures, and no row that has some", self.name);
            return Err(ConfigError::whole_file("sizes.yaml", message));
        };
        let part = if family.figures == Figures::Whole { self.disks } else { 1 };
        let [reads, writes] = [reads, writes].map(|rates| rates.map(|rate| rate / part));
        let channels = (reads[0] as f64 * family.latency.0.as_secs_f64()).round().max(1.0);
        let held = |rates: [u64; 2]| Duration::from_secs_f64(channels / rates[0] as f64);
        let disk = Ideal {
            channels: channels as u32,
            read_latency: held(reads),
            write_latency: held(writes),
            read_bandwidth: reads[1],
            write_bandwidth: writes[1],
        };
        let measured = source(&found.basis, &found.source, &found.date, sources);
        let mut about = match found.name == self.name {
            true => measured,
            false => format!("derived: {} times a disk of {}, {measured}", self.disks, found.name),
        };
        if self.disks > 1 && family.figures == Figures::Each && found.name == self.name {
            about = format!("derived: {} times one of its disks, {about}", self.disks);
        }
        about += &format!("; latency derived from {}", family.latency_of);
        let bytes = self.gb * 1_000_000_000 / CHUNK * CHUNK;
        let one = DiskSpec::of_size(&self.name, &about, bytes, Model::Ideal(disk));
        if self.disks == 1 {
            return Ok(one);
        }
        let members = vec![one; self.disks as usize];
        let all = raid0::capacity(CHUNK, &members);
        Ok(DiskSpec::of_size(&self.name, &about, all, Model::Raid0 { chunk: CHUNK, members }))
    }
}

impl Tier {
    fn disk(&self, family: &Family<Self>, sources: &BTreeMap<String, String>) -> DiskSpec {
        let burst_iops = self.burst.unwrap_or(self.iops);
        let credits = (burst_iops - self.iops) * BURST_SECONDS;
        let disk = Cloud {
            iops: self.iops,
            burst_iops,
            burst_credits: credits,
            burst_credits_left: credits,
            bandwidth: self.mb * 1_000_000,
            operation_bytes: OPERATION_BYTES_DEFAULT,
            latency: family.latency.0,
            jitter: family.jitter.0,
        };
        let about = source(&self.basis, &self.source, &self.date, sources);
        let about = format!("{about}; latency assumed, from {}", family.latency_of);
        DiskSpec::of_size(&self.name, &about, self.gib * GIB, Model::Cloud(disk))
    }
}

impl Volume {
    fn disk(
        &self,
        name: &str,
        size: &str,
        iops: Option<&str>,
        sources: &BTreeMap<String, String>,
    ) -> Result<DiskSpec, ConfigError> {
        let wrong = |message: String| ConfigError::whole_file(name, message);
        let bytes = size.parse::<ByteSize>().map_err(|error| wrong(error.to_string()))?.0;
        let [least, most] = self.gib;
        if !bytes.is_multiple_of(GIB) || !(least * GIB..=most * GIB).contains(&bytes) {
            return Err(wrong(format!("{} has whole GiB, {least} to {most}", self.name)));
        }
        let gib = bytes / GIB;
        let [first, last] = self.iops;
        let of_size = (gib * self.iops_per_gib).clamp(first, last);
        let iops = match (iops, self.provisioned) {
            (None, Provisioned::Beyond) => None,
            (None, Provisioned::None | Provisioned::All) => Some(of_size),
            (Some(_), Provisioned::None) => {
                return Err(wrong(format!("operations of {} follow from its size", self.name)));
            }
            (Some(iops), _) => {
                let fits = |&iops: &u64| (first..=of_size).contains(&iops);
                Some(iops.parse().ok().filter(fits).ok_or_else(|| {
                    wrong(format!("{iops} operations per second; expected {first} to {of_size}"))
                })?)
            }
        };
        let [slow, fast] = self.mib.map(|mib| mib * MIB);
        let bandwidth = match (iops, self.mib_per_kilo_iops) {
            (None, _) => slow,
            (Some(iops), Some(mib)) => (iops * mib * MIB / 1000).clamp(slow, fast),
            (Some(_), None) if gib >= self.mib_most_from_gib => fast,
            (Some(_), None) => slow,
        };
        let iops = iops.unwrap_or(first);
        let burst = self.burst.filter(|&[burst, _]| burst > iops).unwrap_or([iops, 0]);
        let disk = Cloud {
            iops,
            burst_iops: burst[0],
            burst_credits: burst[1],
            burst_credits_left: burst[1],
            bandwidth,
            operation_bytes: OPERATION_BYTES_DEFAULT,
            latency: self.latency.0,
            jitter: self.jitter.0,
        };
        let about = source(&self.basis, &self.source, &self.date, sources);
        let about = format!("{about}; latency derived from {}", self.latency_of);
        Ok(DiskSpec::of_size(name, &about, bytes, Model::Cloud(disk)))
    }
}

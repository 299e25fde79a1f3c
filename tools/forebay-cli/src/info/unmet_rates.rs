//! Which of the stated rates no load reaches, and why.

use forebay_core::{IOPS_SIZE_DEFAULT, Op};

use super::budget::Budget;
use super::costs::CostFigures;
use super::disk::{DescribedDisk, DiskFigures};

/// The smallest request of a disk, in bytes.
const SECTOR: u64 = 512;
/// A rate is reached by what comes so close to it.
const REACHED: f64 = 0.95;

/// Sentences about a disk with figures.
pub(super) fn explained(disk: &DescribedDisk, budget: &Budget) -> Vec<String> {
    let Some(figures) = &disk.figures else { return Vec::new() };
    let mut said = disk.figure_warnings.clone();
    for (direction, largest) in directions(figures).iter().zip(budget.largest_request_bytes) {
        said.extend(direction.contradictions(figures));
        said.extend(direction.split(disk, largest));
        said.extend(direction.between(disk, figures));
        said.push(direction.under_the_sum(figures));
    }
    said.extend(of_the_disk(figures));
    said
}

/// Reads and writes, as one where their figures are the same.
fn directions(figures: &DiskFigures) -> Vec<Direction> {
    let (read, write) = (Direction::read(figures), Direction::write(figures));
    let of =
        |each: &Direction| (each.iops, each.bandwidth, each.saturation, each.is_measured(figures));
    if of(&read) == of(&write) {
        return vec![Direction { name: "reads and writes", ..read }];
    }
    vec![read, write]
}

/// The figures of one direction.
#[derive(Debug)]
struct Direction {
    op: Op,
    name: &'static str,
    iops: u64,
    bandwidth: u64,
    saturation: u64,
}

impl Direction {
    fn read(figures: &DiskFigures) -> Self {
        Self {
            op: Op::Read,
            name: "reads",
            iops: figures.rates.read_iops,
            bandwidth: figures.rates.read_bandwidth,
            saturation: figures.saturation()[0],
        }
    }

    fn write(figures: &DiskFigures) -> Self {
        Self {
            op: Op::Write,
            name: "writes",
            iops: figures.rates.write_iops,
            bandwidth: figures.rates.write_bandwidth,
            saturation: figures.saturation()[1],
        }
    }

    /// Which parts of the stated operations and bytes `price` reaches.
    fn parts(&self, price: &CostFigures) -> (f64, f64) {
        (price.iops / self.iops as f64, price.bytes_per_second / self.bandwidth as f64)
    }

    /// Whether sizes were measured, and not only two of them.
    fn is_measured(&self, figures: &DiskFigures) -> bool {
        let measured = &figures.properties.measured;
        let direction = if self.op == Op::Read { &measured.read } else { &measured.write };
        !direction.cost.is_empty()
    }

    /// Where the two figures cannot both be true.
    fn contradictions(&self, figures: &DiskFigures) -> Option<String> {
        if figures.is_summed() || self.is_measured(figures) {
            return None;
        }
        let Self { name, iops, bandwidth, saturation, .. } = self;
        let small = iops.saturating_mul(IOPS_SIZE_DEFAULT);
        if small > *bandwidth {
            // With less than a sector for each, the bandwidth is the one that is wrong.
            let is_of_sectors = iops.saturating_mul(SECTOR) <= *bandwidth;
            return is_of_sectors.then(|| format!(
                "{name}: {iops} operations of 4 KiB are {}, more than the {} stated. One of the \
                 figures is of another size (operations of 512 bytes, perhaps); small requests \
                 get the operations",
                bytes_per_second(small as f64),
                bytes_per_second(*bandwidth as f64)
            ));
        }
        let large = iops.saturating_mul(*saturation);
        (large < *bandwidth).then(|| {
            format!(
                "{name}: {iops} operations of {} are {}, {} of the bandwidth stated: each costs \
                 an operation, whatever its size, and only requests from {} on reach the bandwidth",
                size(*saturation),
                bytes_per_second(large as f64),
                percent(large as f64 / *bandwidth as f64),
                size(bandwidth / iops)
            )
        })
    }

    /// Where requests are cut too short to reach the bandwidth.
    fn split(&self, disk: &DescribedDisk, largest: u64) -> Option<String> {
        let (_, bytes) = self.parts(&CostFigures::of(&disk.model, self.op, largest));
        (bytes < REACHED).then(|| {
            format!(
                "{}: requests longer than {} are sent in parts of that size, which fits into the \
                 effective goal, and parts of that size reach {} of the bandwidth. A longer \
                 --latency-goal has larger ones",
                self.name,
                size(largest),
                percent(bytes)
            )
        })
    }

    /// What sizes between the two measured ones reach.
    fn between(&self, disk: &DescribedDisk, figures: &DiskFigures) -> Option<String> {
        if figures.is_summed() || self.is_measured(figures) {
            return None;
        }
        let middle = [16 << 10, 32 << 10, 64 << 10].map(|bytes| {
            let (iops, bandwidth) = self.parts(&CostFigures::of(&disk.model, self.op, bytes));
            (bytes, iops, bandwidth)
        });
        let worst = middle
            .into_iter()
            .min_by(|one, other| f64::total_cmp(&one.1.max(one.2), &other.1.max(other.2)));
        let (bytes, iops, bandwidth) = worst?;
        (iops.max(bandwidth) < REACHED).then(|| {
            format!(
                "{}: between 4 KiB and {} neither figure is reached: at {}, {} of the operations \
                 and {} of the bandwidth. The figures do not say what the disk does there; \
                 a measured ladder of sizes does",
                self.name,
                size(self.saturation),
                size(bytes),
                percent(iops),
                percent(bandwidth)
            )
        })
    }

    fn under_the_sum(&self, figures: &DiskFigures) -> String {
        let small = self.parts(&CostFigures::of(&figures.summed, self.op, IOPS_SIZE_DEFAULT)).0;
        let large = self.parts(&CostFigures::of(&figures.summed, self.op, self.saturation)).1;
        format!(
            "{}: under Seastar's sum no stream reaches either figure: it charges 4 KiB for the \
             operation and for the bytes that were in it when operations were counted ({} of \
             them are left), and {} for its bytes and for the operation ({} of the bandwidth)",
            self.name,
            percent(small),
            size(self.saturation),
            percent(large)
        )
    }
}

/// What holds for both directions.
fn of_the_disk(figures: &DiskFigures) -> Vec<String> {
    let mut said = vec![String::from(if figures.properties.duplex {
        "the file says duplex: reads have a budget, and all other requests another, each as if it \
         were alone; the goal, the window and the waits above are those of each"
    } else {
        "reads and writes share the disk's time: half of one leaves half of the other"
    })];
    let bursts: Vec<&str> = figures.properties.not_sustained().collect();
    if !bursts.is_empty() {
        said.push(format!(
            "{} may be burst rates: the measurement was too short for the disk's buffers or \
             credits. `forebay tune --budget thorough DIR` measures longer",
            bursts.join(", ")
        ));
    }
    if figures.is_summed() {
        said.push(
            "the file asks for Seastar's sum (max_cost_function: false), so it is in force".into(),
        );
    }
    said
}

fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A size for people.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..=1023 => format!("{bytes} B"),
        1024..=1_048_575 => format!("{} KiB", bytes >> 10),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
    }
}

/// A bandwidth for people.
pub(super) fn bytes_per_second(rate: f64) -> String {
    if rate >= 1e9 { format!("{:.2} GB/s", rate / 1e9) } else { format!("{:.1} MB/s", rate / 1e6) }
}

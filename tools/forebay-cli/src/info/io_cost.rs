//! The settings of the kernel's `io.cost` for a disk: its model, its quality of service, and the files
//! in which a system keeps both.
//!
//! `Documentation/admin-guide/cgroup-v2.rst` of Linux defines the keys. By `calc_lcoefs` in
//! `block/blk-iocost.c` a request costs `1 / bps` for each byte of its pages, and for the first page what
//! is left of `1 / seqiops` or of `1 / randiops`. So the keys are the rates of whole requests of 4 KiB.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use forebay::properties::MeasuredDirection;
use forebay_block::{BlockDevice, Machine, Stack};
use forebay_govern::DiskCosts;

use super::disk::{DescribedDisk, DiskFigures};
use crate::failure::Failure;

const MODEL_FILE: &str = "/sys/fs/cgroup/io.cost.model";
const QOS_FILE: &str = "/sys/fs/cgroup/io.cost.qos";
/// The page of the kernel's model, in bytes.
const PAGE: u64 = 4096;
/// A request of a class that works in the background, in bytes.
const LARGE: u64 = 128 << 10;
/// This many of them make half a period.
const LARGE_REQUESTS: u64 = 16;
/// Half of the shortest and of the longest period that the kernel has, in microseconds.
const HALF_PERIOD_US: RangeInclusive<u64> = 500..=500_000;
/// How fast the kernel hands out disk time, in percent of the model.
const RATE_PERCENT: u32 = 80;

/// The settings of one disk.
struct KernelDisk<'a> {
    disk: &'a DescribedDisk,
    /// `MAJ:MIN` of the whole disk, or `$DEV`.
    number: String,
    /// What it calls itself, or `MODEL`.
    name: String,
    /// What to know of both; empty where both are known.
    remark: String,
    /// The keys of `io.cost.model` behind `ctrl` and `model`.
    model: String,
    /// The keys of `io.cost.qos` behind `enable` and `ctrl`.
    qos: String,
}

/// What io.cost costs of one direction: rates per second.
struct Rates {
    bytes: u64,
    in_sequence: u64,
    at_random: u64,
}

/// The lines and files for all of these disks.
pub(super) fn text(disks: &[DescribedDisk], machine: &Machine) -> Result<String, Failure> {
    let disks = disks.iter().map(|disk| KernelDisk::of(disk, machine));
    let disks = disks.collect::<Option<Vec<_>>>().ok_or_else(|| {
        Failure::Input("no figures for io.cost; name a --disk or --properties".into())
    })?;
    let mut text = each(&disks, |disk| {
        let DescribedDisk { name, source, .. } = disk.disk;
        format!("# io.cost of {name} ({source}).{}\n", disk.remark)
    });
    text.push_str(
        "# The model is measured. The qos line is a start: lower values of min and max mean a \
         lower latency and\n# less work, and higher values the reverse. io.weight has an effect \
         once the qos line is written.\n",
    );
    let mut section = |path: &str, lines: &[&str]| {
        let _ = write!(text, "\n## {path}\n{}", lines.concat());
    };
    section(MODEL_FILE, &[&each(&disks, KernelDisk::model_line)]);
    section(QOS_FILE, &[&each(&disks, KernelDisk::qos_line)]);
    let applied = "# systemd 254 and newer apply it: systemd-hwdb update && udevadm trigger DISK\n";
    let hwdb = "/etc/udev/hwdb.d/90-forebay-io-cost.hwdb";
    section(hwdb, &[applied, &each(&disks, KernelDisk::hwdb_entry)]);
    let begin = "# for an older systemd, and disks without a model name\n\
                 [Unit]\nDescription=io.cost as forebay has measured it\n\n\
                 [Service]\nType=oneshot\nRemainAfterExit=yes\n";
    let end = "\n[Install]\nWantedBy=multi-user.target\n";
    let service = "/etc/systemd/system/forebay-io-cost.service";
    section(service, &[begin, &each(&disks, KernelDisk::commands), end]);
    for (name, what, weight) in [
        ("foreground", "interactive services: Slice=foreground.slice in their units", 1000),
        ("background", "background services", 100),
    ] {
        let slice = format!("# {what}\n[Slice]\nIOWeight={weight}\n");
        section(&format!("/etc/systemd/system/{name}.slice"), &[&slice]);
    }
    Ok(text)
}

fn each<'a>(disks: &[KernelDisk<'a>], part: impl Fn(&KernelDisk<'a>) -> String) -> String {
    disks.iter().map(part).collect()
}

/// The rates of reads, and of writes.
fn rates(figures: &DiskFigures) -> [Rates; 2] {
    let (rates, measured) = (&figures.rates, &figures.properties.measured);
    let of = |direction: &MeasuredDirection, at_random: u64, bytes: u64| {
        // published figures are of random requests; without a head to move, a disk does no more in
        // sequence
        let assumed = if measured.seeks { (bytes / PAGE).max(1) } else { at_random };
        Rates { bytes, in_sequence: direction.sequential_iops.unwrap_or(assumed), at_random }
    };
    [
        of(&measured.read, rates.read_iops, rates.read_bandwidth),
        of(&measured.write, rates.write_iops, rates.write_bandwidth),
    ]
}

impl Rates {
    /// What a large request at a random place costs under the kernel's model, in microseconds.
    fn large_us(&self) -> u64 {
        let bytes = (LARGE - PAGE).saturating_mul(1_000_000) / self.bytes.max(1);
        bytes.saturating_add(1_000_000 / self.at_random.max(1))
    }
}

/// The keys of `io.cost.model`.
fn model([read, write]: &[Rates; 2]) -> String {
    let of = |Rates { bytes, in_sequence, at_random }: &Rates, d: char| {
        format!("{d}bps={bytes} {d}seqiops={in_sequence} {d}randiops={at_random}")
    };
    format!("{} {}", of(read, 'r'), of(write, 'w'))
}

/// The keys of `io.cost.qos`.
///
/// Percentiles of 0 turn the latency signal of the kernel off, which swings. It then hands out disk
/// time at one rate, and the latencies only set its period, which is twice as long
/// (`ioc_refresh_period_us`). In a shorter period a class with a small share cannot send even one
/// large request.
fn qos(rates: &[Rates; 2]) -> String {
    let us = half_period_us(rates);
    format!("rpct=0.00 rlat={us} wpct=0.00 wlat={us} min={RATE_PERCENT}.00 max={RATE_PERCENT}.00")
}

fn half_period_us(rates: &[Rates; 2]) -> u64 {
    let large = rates.iter().map(Rates::large_us).max().unwrap_or(0);
    let us = large.saturating_mul(LARGE_REQUESTS);
    us.clamp(*HALF_PERIOD_US.start(), *HALF_PERIOD_US.end())
}

/// The same figures for what chooses the rate by itself.
pub(super) fn disk_costs(disk: &DescribedDisk) -> Result<DiskCosts, Failure> {
    let figures = disk.figures.as_ref().ok_or_else(|| {
        Failure::Input("there are no figures for io.cost in the file; run `forebay tune`".into())
    })?;
    let rates = rates(figures);
    Ok(DiskCosts {
        model: model(&rates),
        half_period: Duration::from_micros(half_period_us(&rates)),
        bandwidth: rates.each_ref().map(|rates| rates.bytes),
        iops: rates.each_ref().map(|rates| rates.at_random),
    })
}

impl<'a> KernelDisk<'a> {
    /// What is known of the disk; `None` without figures.
    fn of(disk: &'a DescribedDisk, machine: &Machine) -> Option<Self> {
        let figures = disk.figures.as_ref()?;
        let rates = rates(figures);
        let (model, qos) = (model(&rates), qos(&rates));
        let mountpoints = figures.properties.mountpoints.iter();
        let devices: Vec<BlockDevice> =
            mountpoints.filter_map(|path| device(machine, path)).collect();
        let mut below: Vec<&BlockDevice> = devices.iter().flat_map(BlockDevice::leaves).collect();
        below.dedup_by_key(|disk| disk.disk_number);
        let number = match below.as_slice() {
            [one] => Some(one.disk_number.to_string()),
            _ => None,
        };
        let name = number.as_ref().and_then(|number| {
            let name = machine.text(format!("sys/dev/block/{number}/device/model"))?;
            Some(without_wildcards(name.trim())).filter(|name| !name.is_empty())
        });
        let remark = remark(&below, name.is_some());
        let number = number.unwrap_or_else(|| "$DEV".into());
        let name = name.unwrap_or_else(|| "MODEL".into());
        Some(Self { disk, number, name, remark, model, qos })
    }

    fn model_line(&self) -> String {
        format!("{} ctrl=user model=linear {}\n", self.number, self.model)
    }

    fn qos_line(&self) -> String {
        format!("{} enable=1 ctrl=user {}\n", self.number, self.qos)
    }

    fn hwdb_entry(&self) -> String {
        let Self { name, model, qos, .. } = self;
        format!(
            "block:*:name:{name}:fwrev:*:\n  IOCOST_SOLUTIONS=forebay\n  \
             IOCOST_MODEL_FOREBAY={model}\n  IOCOST_QOS_FOREBAY={qos}\n\n"
        )
    }

    fn commands(&self) -> String {
        let command = |key: &str, line: &str, file: &str| {
            format!("{key}=/bin/sh -c 'echo \"{}\" >{file}'\n", line.trim_end())
        };
        let off = format!("{} enable=0", self.number);
        [
            command("ExecStart", &self.model_line(), MODEL_FILE),
            command("ExecStart", &self.qos_line(), QOS_FILE),
            command("ExecStop", &off, QOS_FILE),
        ]
        .concat()
    }
}

/// What to know of a disk that lies on these, and whose model name is known or not.
fn remark(below: &[&BlockDevice], has_name: bool) -> String {
    let names: Vec<&str> = below.iter().map(|disk| disk.disk.as_str()).collect();
    match names.as_slice() {
        [] => "\n# $DEV is MAJ:MIN of the disk (lsblk -dno MAJ:MIN DISK), MODEL what is in \
               /sys/block/DISK/device/model."
            .into(),
        [_] if has_name => String::new(),
        [_] => " It has no model name, so the hardware database cannot know it.".into(),
        several => format!(
            "\n# It is on several disks ({}), but io.cost works on one: tune and set each of them.",
            several.join(", ")
        ),
    }
}

fn device(machine: &Machine, path: &Path) -> Option<BlockDevice> {
    let number = Stack::of_path(machine, path).ok()?.block_device()?;
    BlockDevice::find(machine, number)
}

/// `model` in a pattern of the hardware database, where what else means something matches anything.
fn without_wildcards(model: &str) -> String {
    model.replace(['*', '?', '[', ']', '\\'], "?")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::info::presets;

    fn preset(name: &str) -> DescribedDisk {
        presets::known(name, Path::new("/no/such/place")).unwrap()
    }

    fn model_of(disk: &DescribedDisk) -> String {
        model(&rates(disk.figures.as_ref().unwrap()))
    }

    #[test]
    fn published_figures_are_printed_unchanged() {
        let text = text(&[preset("gp3"), preset("azure-p30")], &Machine::this()).unwrap();
        let model = "rbps=131072000 rseqiops=3000 rrandiops=3000 wbps=131072000 wseqiops=3000 \
                     wrandiops=3000";
        for line in [
            format!("$DEV ctrl=user model=linear {model}"),
            format!("  IOCOST_MODEL_FOREBAY={model}"),
            "## /etc/systemd/system/forebay-io-cost.service".into(),
        ] {
            assert_eq!(text.lines().filter(|is| **is == line).count(), 1, "{line}: {text}");
        }
        assert!(text.contains("$DEV is MAJ:MIN"), "{text}");
    }

    #[test]
    fn a_disk_with_a_head_streams_at_its_bandwidth() {
        let disk = preset("hdd-7200rpm");
        let rates = &disk.figures.as_ref().unwrap().rates;
        let in_sequence = rates.read_bandwidth / PAGE;
        assert!(in_sequence > 10 * rates.read_iops);
        assert!(model_of(&disk).contains(&format!("rseqiops={in_sequence} ")));
    }

    #[test]
    fn measured_rates_in_sequence_are_printed() {
        let mut disk = preset("gp3");
        disk.figures.as_mut().unwrap().properties.measured.write.sequential_iops = Some(9000);
        assert!(model_of(&disk).contains("wseqiops=9000 "));
        assert!(model_of(&disk).contains("rseqiops=3000 "));
    }

    #[test]
    fn periods_have_room_for_large_requests_and_are_those_of_the_kernel() {
        let qos = |bytes, at_random| {
            let rates = || Rates { bytes, in_sequence: at_random, at_random };
            qos(&[rates(), rates()])
        };
        // 126,976 bytes take 1,269 us, and a page at a random place 125
        assert!(qos(100_000_000, 8000).contains("rlat=22304 wpct=0.00 wlat=22304 "));
        assert!(qos(20_000_000_000, 2_000_000).contains("rlat=500 "));
        assert!(qos(1, 1).contains("rlat=500000 "));
    }

    #[test]
    fn a_disk_of_this_machine_has_its_number_and_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let disk = root.join("sys/devices/nvme0n1");
        for path in [&disk.join("nvme0n1p1"), &disk.join("device"), &root.join("sys/dev/block")] {
            fs::create_dir_all(path).unwrap();
        }
        fs::create_dir_all(root.join("proc/self")).unwrap();
        fs::create_dir_all(root.join("data")).unwrap();
        for (path, text) in [
            ("proc/self/mountinfo", "22 1 259:1 / /data rw - ext4 /dev/nvme0n1p1 rw\n"),
            ("sys/devices/nvme0n1/dev", "259:0\n"),
            ("sys/devices/nvme0n1/device/model", "Fast [1]   \n"),
            ("sys/devices/nvme0n1/nvme0n1p1/dev", "259:1\n"),
            ("sys/devices/nvme0n1/nvme0n1p1/partition", "1\n"),
        ] {
            fs::write(root.join(path), text).unwrap();
        }
        for (link, to) in [("259:0", "nvme0n1"), ("259:1", "nvme0n1/nvme0n1p1")] {
            let to = format!("../../devices/{to}");
            std::os::unix::fs::symlink(to, root.join("sys/dev/block").join(link)).unwrap();
        }
        let disk = presets::known("gp3", Path::new("/data")).unwrap();
        let text = text(&[disk], &Machine::new(&root)).unwrap();
        assert!(text.contains("\n259:0 ctrl=user model=linear rbps="), "{text}");
        assert!(text.contains("\n259:0 enable=1 ctrl=user rpct="), "{text}");
        assert!(text.contains("\nblock:*:name:Fast ?1?:fwrev:*:\n"), "{text}");
        assert!(!text.contains("$DEV"), "{text}");
    }

    #[test]
    fn names_match_themselves_in_the_hardware_database() {
        assert_eq!(without_wildcards("Disk [a]*\\"), "Disk ?a???");
    }
}

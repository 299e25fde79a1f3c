//! Machines and volumes that clouds rent out: what their rows and rules give, alongside what was
//! measured of others.

use forebay_core::Op;
use forebay_sim::spec::DiskSpec;

use crate::closed_loop::{Load, run};

/// Reads, bytes read, writes and bytes written per second.
fn rates(name: &str) -> [f64; 4] {
    let rates = DiskSpec::of_table(name).unwrap().build(1).rates();
    [rates.read_iops, rates.read_bandwidth, rates.write_iops, rates.write_bandwidth]
        .map(|rate| rate as f64)
}

/// By what part each rate of `name` is above `measured`.
fn above(predicted: [f64; 4], measured: [f64; 4]) -> [f64; 4] {
    std::array::from_fn(|place| predicted[place] / measured[place] - 1.0)
}

/// The rule by which sizes are derived, for sizes that were measured too: this many times the disk
/// of another one.
#[test]
fn an_array_of_equal_disks_is_predicted_within_5_percent() {
    for (one, disks, whole) in [
        ("Standard_L8as_v3", 2.0, "Standard_L16as_v3"),
        ("Standard_L8as_v3", 4.0, "Standard_L32as_v3"),
        ("Standard_L8s_v3", 4.0, "Standard_L32s_v3"),
        ("Standard_L8s_v3", 6.0, "Standard_L48s_v3"),
    ] {
        let above = above(rates(one).map(|rate| rate * disks), rates(whole));
        assert!(above.iter().all(|part| part.abs() < 0.05), "{whole}: {above:?}");
    }
    // "15GB/s read storage throughput and over 3 million read IOPS": techblog.cloudperf.net, 4
    // April 2017
    let [reads, read_bytes, ..] = rates("i3.16xlarge");
    assert!((3e6..3.3e6).contains(&reads) && (15e9..16.5e9).contains(&read_bytes));
}

#[test]
fn each_size_says_where_its_figures_come_from_and_does_what_they_say() {
    let names = DiskSpec::sizes().unwrap();
    for name in &names {
        let disk = DiskSpec::of_table(name).unwrap();
        let words = ["measured: ", "published: ", "derived: "];
        let (source, of) = (disk.source(), |word: &&str| disk.source().starts_with(*word));
        assert!(words.iter().any(of) && source.contains(", 20"), "{name}: {source}");
        assert!(source.contains("latency "), "{name}: {source}");
    }
    for family in ["i2.", "i3.", "i3en.", "i4i.", "im4gn.", "_v2", "_v3", "gcp-", "azure-p"] {
        assert!(names.iter().filter(|name| name.contains(family)).count() >= 4, "{family}");
    }
    // channels are whole numbers
    for (name, micros) in [("im4gn.4xlarge", 101), ("i3en.2xlarge", 140)] {
        let alone = Load { op: Op::Read, len: 4096, depth: 1 };
        let found = run(&DiskSpec::of_table(name).unwrap(), alone).mean_micros;
        assert!(found.abs_diff(micros) <= micros / 20, "{name}: {found}");
    }
    // alone, and as an array
    for name in ["im4gn.4xlarge", "i3en.2xlarge", "gcp-local-ssd-4", "azure-p60", "io2-500GiB"] {
        let (disk, [reads, read_bytes, writes, _]) =
            (DiskSpec::of_table(name).unwrap(), rates(name));
        for (op, len, stated) in
            [(Op::Read, 4096, reads), (Op::Write, 4096, writes), (Op::Read, 128 << 10, read_bytes)]
        {
            let done = run(&disk, Load { op, len, depth: 1024 }).iops as f64;
            let stated = if len > 4096 { stated / len as f64 } else { stated };
            assert!((done / stated - 1.0).abs() < 0.08, "{name} {op:?} {len}: {stated}, {done}");
        }
    }
}

#[test]
fn presets_of_files_agree_with_their_rows() {
    for (preset, row) in [
        ("gp2", "gp2-100GiB"),
        ("gp3", "gp3-500GiB"),
        ("azure-p30", "azure-p30"),
        ("i4i.2xlarge", "i4i.2xlarge"),
    ] {
        let disk = DiskSpec::resolve(preset).unwrap().build(1);
        let of_row = DiskSpec::of_table(row).unwrap().build(1);
        assert_eq!(format!("{:?}", disk.rates()), format!("{:?}", of_row.rates()), "{preset}");
        let (latency, of_row) = (disk.base_latency().as_nanos(), of_row.base_latency().as_nanos());
        assert!(latency.abs_diff(of_row) <= 2, "{preset}: {latency}, {of_row}");
    }
    let derived = DiskSpec::resolve("i3en.24xlarge").unwrap();
    assert!(derived.source().starts_with("derived: 8 times a disk of i3en.3xlarge, measured: "));
    assert_eq!(derived.capacity() / 1_000_000_000, 59_999);
}

/// Sizes of the vendor's own examples: operations per second, and MiB per second in large requests.
#[test]
fn volumes_have_what_their_size_gives_them() {
    for (name, iops, mib) in [
        ("gp2-33GiB", 100, 12),
        ("gp2-100GiB", 300, 37),
        ("gp2-334GiB", 1002, 125),
        ("gp2-5334GiB", 16_000, 250),
        ("gp3-1TiB", 3000, 125),
        ("gp3-32GiB-16000", 16_000, 1000),
        ("io2-256GiB", 256_000, 4000),
        ("io2-1TiB-16000", 16_000, 2000),
    ] {
        let [reads, bytes, ..] = rates(name);
        let found = (reads as u64, (bytes / f64::from(1 << 20)) as u64);
        assert_eq!(found, (iops, mib), "{name}");
    }
    for (name, words) in [
        ("gp2-17TiB", "1 to 16384"),
        ("gp2-x", "gp2-x"),
        ("gp2-100GiB-3000", "follow from its size"),
        ("gp3-4GiB-4000", "expected 3000 to 3000"),
        ("io2-4GiB-4001", "expected 100 to 4000"),
        ("gp3-1GiB-3000-1", "no such disk"),
    ] {
        let error = DiskSpec::of_table(name).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

//! Conversion of properties to the text of an io-properties file, or of a `forebay.yaml`.

use std::fmt::Write;
use std::time::Duration;

use forebay_core::Ceiling;

use super::{
    CostAt, DiskProperties, Lasting, Measured, MixRegion, RegionGoal, Sharing, Steadiness,
};

/// The text of a file for Seastar.
pub(super) fn io_properties(disks: &[DiskProperties]) -> String {
    let mut text = String::from("disks:\n");
    disks.iter().for_each(|disk| entry(&mut text, &remarked(disk)));
    text
}

/// The text of a file for forebay. `io_properties` is the name of the file for Seastar, if there is
/// one.
pub(super) fn forebay(disks: &[DiskProperties], io_properties: Option<&str>) -> String {
    let companion = io_properties.map(|name| format!("io_properties: {}\n", scalar(name)));
    let mut text = companion.unwrap_or_default() + "disks:\n";
    for disk in disks {
        let mut lines = rates(disk);
        lines.extend(disk.latency_target.map(|target| format!("latency_target: {target}")));
        lines.extend(sharing(&disk.sharing));
        measured(&mut lines, &disk.measured);
        entry(&mut text, &lines);
    }
    text
}

fn entry(text: &mut String, lines: &[String]) {
    for (index, line) in lines.iter().enumerate() {
        text.push_str(if index == 0 { "  - " } else { "    " });
        text.push_str(line);
        text.push('\n');
    }
}

fn rates(disk: &DiskProperties) -> Vec<String> {
    let mut lines = mountpoints(disk);
    lines.push(format!("read_iops: {}", disk.read_iops));
    lines.push(format!("read_bandwidth: {}", disk.read_bandwidth));
    lines.push(format!("write_iops: {}", disk.write_iops));
    lines.push(format!("write_bandwidth: {}", disk.write_bandwidth));
    let mut optional = |key: &str, value: Option<u64>| {
        lines.extend(value.map(|value| format!("{key}: {value}")));
    };
    optional("read_saturation_length", disk.read_saturation_length);
    optional("write_saturation_length", disk.write_saturation_length);
    optional("physical_block_size", disk.physical_block_size);
    if disk.duplex {
        lines.push(String::from("duplex: true"));
    }
    lines.extend(disk.max_cost_function.map(|max| format!("max_cost_function: {max}")));
    lines
}

fn sharing(sharing: &Sharing) -> Option<String> {
    match sharing {
        Sharing::Alone => None,
        Sharing::Segment { path: None } => Some(String::from("shared: true")),
        Sharing::Segment { path: Some(path) } => {
            Some(format!("shared: {{path: {}}}", scalar(&path.to_string_lossy())))
        }
        Sharing::Part(millionths) => {
            Some(format!("share_of_disk: {:?}", f64::from(*millionths) / 1e6))
        }
    }
}

fn measured(lines: &mut Vec<String>, measured: &Measured) {
    let mut time = |key: &str, time: Option<Duration>| {
        lines.extend(time.map(|time| format!("{key}: {}", micros(time))));
    };
    time("base_latency_us", measured.base_latency);
    time("flush_us", measured.flush);
    time("discard_us", measured.discard.map(|discard| discard.command));
    time("discard_gib_us", measured.discard.map(|discard| discard.gib));
    if measured.seeks {
        lines.push(String::from("seeks: true"));
    }
    match measured.ceiling {
        Ceiling::Always => lines.push(String::from("ceiling: true")),
        Ceiling::AfterBurst => lines.push(String::from("burst: true")),
        _ => {}
    }
    for (name, direction) in [("read", &measured.read), ("write", &measured.write)] {
        if !direction.cost.is_empty() {
            let point = |at: &CostAt| format!("[{}, {}]", at.bytes, at.cost.as_nanos());
            let points: Vec<String> = direction.cost.iter().map(point).collect();
            lines.push(format!("{name}_cost_ns: [{}]", points.join(", ")));
        }
        lines.extend(direction.knee.map(|knee| format!("{name}_knee: {knee:?}")));
        let in_sequence = direction.sequential_iops;
        lines.extend(in_sequence.map(|rate| format!("{name}_sequential_iops: {rate}")));
        if let Some(Steadiness { steady, burst_excess, observed }) = direction.steadiness {
            lines.push(format!("{name}_steady: {steady}"));
            lines.push(format!("{name}_burst_excess: {burst_excess:?}"));
            lines.push(format!("{name}_observed_s: {}", observed.as_secs()));
        }
        for (rate, lasting) in
            [("iops", direction.iops_sustained), ("bandwidth", direction.bandwidth_sustained)]
        {
            let word = |lasting| if lasting == Lasting::Yes { "true" } else { "unknown" };
            lines.extend(lasting.map(|seen| format!("{name}_{rate}_sustained: {}", word(seen))));
        }
    }
    if let Some(RegionGoal { read_percentile, latency }) = measured.region_goal {
        let latency = micros(latency);
        lines.push(format!(
            "region_goal: {{read_percentile: {read_percentile:?}, latency_us: {latency}}}"
        ));
    }
    if !measured.regions.is_empty() {
        lines.push(String::from("regions:"));
        lines.extend(measured.regions.iter().map(|of| format!("  - {}", region(of))));
    }
}

/// A region as an entry of a list.
pub(super) fn region(region: &MixRegion) -> String {
    let MixRegion { read_percentile, latency, write_bandwidth, read_iops, radii } = region;
    let radii: Vec<String> = radii.iter().map(u32::to_string).collect();
    format!(
        "{{read_percentile: {read_percentile:?}, latency_us: {}, write_bandwidth: \
         {write_bandwidth}, read_iops: {read_iops}, radii: [{}]}}",
        micros(*latency),
        radii.join(", ")
    )
}

/// A time in microseconds, exact to the nanosecond.
fn micros(time: Duration) -> String {
    format!("{}.{:03}", time.as_micros(), time.subsec_nanos() % 1000)
}

/// Lines that Seastar ignores, because they are behind a `#`.
fn remarked(disk: &DiskProperties) -> Vec<String> {
    let mut lines = rates(disk);
    for name in disk.not_sustained() {
        let key = format!("{name}:");
        if let Some(line) = lines.iter_mut().find(|line| line.starts_with(&key)) {
            line.push_str("  # may be a burst: not sustained");
        }
    }
    lines
}

fn mountpoints(disk: &DiskProperties) -> Vec<String> {
    let mut paths = disk.mountpoints.iter().map(|path| scalar(&path.to_string_lossy()));
    match (paths.len(), paths.next()) {
        (1, Some(path)) => vec![format!("mountpoint: {path}")],
        (_, first) => {
            let mut lines = vec![String::from("mountpoints:")];
            lines.extend(first.into_iter().chain(paths).map(|path| format!("  - {path}")));
            lines
        }
    }
}

/// `text` as a YAML scalar: plain if it is a common path, else quoted and escaped.
fn scalar(text: &str) -> String {
    let common = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    if text.starts_with('/') && text.chars().all(common) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' ' => quoted.push(c),
            c if c.is_ascii_graphic() || c.is_alphanumeric() => quoted.push(c),
            c => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\U{:08X}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

//! From properties to the text of an io-properties file.

use std::fmt::Write;

use super::DiskProperties;

pub(super) fn write(disks: &[DiskProperties]) -> String {
    let mut text = String::from("disks:\n");
    for disk in disks {
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
        for (index, line) in lines.iter().enumerate() {
            let lead = if index == 0 { "  - " } else { "    " };
            text.push_str(lead);
            text.push_str(line);
            text.push('\n');
        }
    }
    text
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

/// `text` as a YAML scalar: plain where it is a common path, else quoted and escaped.
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

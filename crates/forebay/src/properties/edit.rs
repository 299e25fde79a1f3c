//! Changes of a file's text that keep everything else that people wrote.

use std::fmt::Write;

use super::region::MixRegion;
use super::{Properties, yaml};

/// The `text` of a `forebay.yaml` in which `regions` replace the present ones. Comments and all
/// other lines stay. `None` if it does not describe one disk in the usual form, with a line for
/// each key.
pub(super) fn with_regions(text: &str, regions: &[MixRegion]) -> Option<String> {
    let mut wanted = Properties::parse("", text).ok()?;
    let [disk] = wanted.disks.as_mut_slice() else { return None };
    disk.measured.regions = regions.to_vec();
    // The keys of the disk have the same indentation as this one, which every disk has.
    let is_key = |line: &&str, key: &str| line.trim_start_matches([' ', '-']).starts_with(key);
    let line = text.lines().find(|line| is_key(line, "read_iops:"))?;
    let indent = line.len() - line.trim_start_matches([' ', '-']).len();
    let depth = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut kept = String::new();
    let mut inside = false;
    for line in text.lines() {
        let starts = depth(line) == indent && line.trim_start().starts_with("regions:");
        let goes_on = inside && (depth(line) > indent || is_item(line, indent));
        inside = starts || goes_on;
        if !inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    if !regions.is_empty() {
        let margin = " ".repeat(indent);
        let _ = writeln!(kept, "{margin}regions:");
        for region in regions {
            let _ = writeln!(kept, "{margin}  - {}", yaml::region(region));
        }
    }
    (Properties::parse("", &kept).ok()? == wanted).then_some(kept)
}

/// Whether the line is an entry of a list with this indentation.
fn is_item(line: &str, indent: usize) -> bool {
    line.get(indent..).is_some_and(|rest| rest.starts_with("- "))
        && line.trim_start().starts_with('-')
}

//! Results as text, JSON or YAML.

use std::fmt::Write;

use forebay_load::results::model::{Report, RunResult};
use forebay_load::results::table::{comparison_table, run_table};
use forebay_load::results::verdict::verdict;

use crate::failure::Failure;
use crate::load_options::Format;

/// `report` as it is printed.
pub(crate) fn render(report: &Report, format: Format) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::Run(format!("cannot write the results down: {error}"))
    };
    match format {
        Format::Text => Ok(text(report)),
        Format::Json => serde_json::to_string_pretty(report)
            .map(|json| json + "\n")
            .map_err(|error| failed(&error)),
        Format::Yaml => serde_saphyr::to_string(report).map_err(|error| failed(&error)),
    }
}

fn text(report: &Report) -> String {
    match report {
        Report::Run(run) => format!("{}\n{}", run_table(run), disk_line(run)),
        Report::Comparison(comparison) => {
            let [_, scheduled] = &comparison.runs;
            format!(
                "{}\n{}\n{}",
                comparison_table(comparison),
                disk_line(scheduled),
                verdict(comparison)
            )
        }
    }
}

/// What the scheduler saw of the disk.
fn disk_line(run: &RunResult) -> String {
    let mut text = String::new();
    if let Some(disk) = &run.disk {
        let _ = writeln!(
            text,
            "Disk time dispatched: {:.0}% on average, {:.0}% in the busiest second. \
             At most {} requests in the disk at once.",
            disk.consumption_mean * 100.0,
            disk.consumption_max * 100.0,
            disk.in_flight_max
        );
    }
    text
}

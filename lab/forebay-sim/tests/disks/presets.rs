//! The presets are what the fit makes of the surfaces alongside them.

use std::fmt::Write;

use forebay_sim::disk::Surface;
use forebay_sim::surface::{Grid, errors, percentiles};

use crate::SURFACES;

/// `FOREBAY_BLESS=1` writes them.
#[test]
fn every_surface_and_its_preset_belong_together() {
    for (name, csv) in SURFACES {
        let path = format!("{}/presets/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        let text = disk_file(name, csv);
        if std::env::var_os("FOREBAY_BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let preset = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, preset, "if this is right, run once with FOREBAY_BLESS=1");
    }
}

fn disk_file(name: &str, csv: &str) -> String {
    let grid = Grid::parse(name, csv).unwrap();
    let surface = Surface::fitted(&grid);
    let model = surface.model;
    let cells = grid.cells().iter();
    let errors =
        errors(cells.map(|cell| (cell, percentiles(&model, cell.write_bandwidth, cell.read_iops))));
    let mut text = format!(
        "# Fitted to {name}.csv, all of it: the median error is {:.1} % of medians, {:.1} % of\n\
         # 95th percentiles. The write latency is assumed.\n\
         source: diskplorer's surface of {name} (scylladb/diskplorer, Apache-2.0), fitted\n\
         kind: surface\n",
        errors.p50 * 100.0,
        errors.p95 * 100.0,
    );
    let region = model.region;
    writeln!(text, "read_iops: {:.0}", region.read_iops).unwrap();
    writeln!(text, "write_bandwidth: {:.0}", region.write_bandwidth).unwrap();
    writeln!(text, "exponent: {:.4}", region.exponent).unwrap();
    writeln!(text, "write_latency: {}ns", surface.write_latency.as_nanos()).unwrap();
    writeln!(text, "dies: {}", model.dies).unwrap();
    writeln!(text, "program_share: {:.4}", model.program_share).unwrap();
    let spans = [
        ("read_latency", model.latency_us),
        ("jitter", model.jitter_us),
        ("die_read", model.die_read_us),
        ("turn", model.turn_us),
        ("program", model.program_us),
        ("slack", model.slack_us),
        ("lull", model.lull_us),
        ("lull_extra", model.lull_extra_us),
    ];
    for (key, us) in spans {
        writeln!(text, "{key}: {:.0}ns", us * 1e3).unwrap();
    }
    text
}

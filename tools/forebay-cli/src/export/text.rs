//! Figures and findings as OpenMetrics text.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use forebay::properties::DiskProperties;
use forebay_check::{Level, Report};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What a scrape says.
pub(super) struct Exported<'a> {
    /// The figures of each disk.
    pub(super) disks: &'a [DiskProperties],
    /// Whether these are what the file says now.
    pub(super) is_read: bool,
    /// The last check of the directories.
    pub(super) report: &'a Report,
    /// The time of that check, since 1970.
    pub(super) checked_at: Duration,
}

type Number = Gauge<f64, AtomicU64>;
type Labels = Vec<(&'static str, String)>;

/// A metric of a disk: its name, its help text, and its value if it is known.
type Figure = (&'static str, &'static str, fn(&DiskProperties) -> Option<f64>);

const FIGURES: &[Figure] = &[
    ("read_iops", "Small reads per second", |disk| Some(disk.read_iops as f64)),
    ("write_iops", "Small writes per second", |disk| Some(disk.write_iops as f64)),
    ("read_bandwidth_bytes", "Bytes read per second", |disk| Some(disk.read_bandwidth as f64)),
    ("write_bandwidth_bytes", "Bytes written per second", |disk| Some(disk.write_bandwidth as f64)),
    ("base_latency_seconds", "Latency of one small read at a time", |disk| {
        disk.measured.base_latency.map(|latency| latency.as_secs_f64())
    }),
    ("figures_not_sustained", "Number of the four rates that may be burst rates", |disk| {
        Some(disk.not_sustained().count() as f64)
    }),
];

/// The levels of findings that are exported, with their labels. They are counted where there are none
/// too.
const LEVELS: [(Level, &str); 4] = [
    (Level::Unknown, "unknown"),
    (Level::Note, "note"),
    (Level::Warning, "warning"),
    (Level::Error, "error"),
];

impl Exported<'_> {
    /// The text of a scrape.
    pub(super) fn text(&self) -> String {
        let mut registry = Registry::with_prefix("forebay");
        self.add_figures(registry.sub_registry_with_prefix("disk"));
        self.add_findings(registry.sub_registry_with_prefix("check"));
        let mut text = String::new();
        // writing into a string does not fail
        let _ = encode(&mut text, &registry);
        text
    }

    fn add_figures(&self, registry: &mut Registry) {
        for (name, help, figure) in FIGURES {
            let family = Family::<Labels, Number>::default();
            for disk in self.disks {
                let mountpoint = disk.mountpoints.first().map(|path| path.display().to_string());
                let labels = vec![("mountpoint", mountpoint.unwrap_or_default())];
                if let Some(value) = figure(disk) {
                    family.get_or_create(&labels).set(value);
                }
            }
            registry.register(*name, *help, family);
        }
        let readable = Number::default();
        readable.set(f64::from(u8::from(self.is_read)));
        let help = "Whether the properties file could be read the last time; 1 is healthy";
        registry.register("properties_readable", help, readable);
    }

    fn add_findings(&self, registry: &mut Registry) {
        let (counts, each) =
            (Family::<Labels, Number>::default(), Family::<Labels, Number>::default());
        for directory in &self.report.directories {
            for (level, name) in LEVELS {
                let labels = vec![("dir", directory.dir.clone()), ("level", name.to_owned())];
                let found = || directory.findings.iter().filter(|found| found.level == level);
                counts.get_or_create(&labels).set(found().count() as f64);
                for finding in found() {
                    let probe = ("probe", finding.probe.to_owned());
                    let labels = labels.iter().cloned().chain([probe]).collect();
                    each.get_or_create(&labels).set(1.0);
                }
            }
        }
        registry.register("findings", "Findings of the last check; 0 errors is healthy", counts);
        registry.register("finding", "1 for each finding of the last check", each);
        let time = Number::default();
        time.set(self.checked_at.as_secs_f64());
        registry.register(
            "last_timestamp_seconds",
            "When the last check was, as seconds since \
                                                     1970",
            time,
        );
    }
}

//! What came of a run, as a line of JSON.

use std::time::Duration;

use forebay::Scheduler;
use forebay::metrics::{Distribution, Snapshot};
use serde_json::{Value, json};

use crate::mode::Mode;

pub(crate) struct Outcome {
    /// Of reads, from the shortest on.
    pub(crate) latencies: Vec<Duration>,
    /// Bytes per second that writers wrote.
    pub(crate) rate: f64,
}

impl Outcome {
    pub(crate) fn json(&self, engine: &str, mode: &Mode, writers: u64, space: f64) -> Value {
        json!({
            "engine": engine,
            "mode": mode.name,
            "writers": writers,
            "reads": self.latencies.len(),
            "p50_ms": self.percentile(500),
            "p99_ms": self.percentile(990),
            "p999_ms": self.percentile(999),
            "load_mb_s": self.rate / 1e6,
            "space_amplification": space,
            "scheduler": mode.classes.as_ref().map(|classes| seen(&classes.scheduler)),
        })
    }

    fn percentile(&self, permille: usize) -> f64 {
        let rank = (self.latencies.len() * permille).div_ceil(1000).max(1);
        self.latencies.get(rank - 1).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// What the scheduler saw since it was made.
fn seen(scheduler: &Scheduler) -> Value {
    let Snapshot { disks, page_cache, .. } = scheduler.snapshot();
    let Some(disk) = disks.first() else { return Value::Null };
    let classes: Vec<_> = disk
        .classes
        .iter()
        .map(|class| {
            let ms = |distribution: &Distribution| {
                [500, 990].map(|permille| {
                    distribution.percentile_nanos(permille).map(|nanos| nanos as f64 / 1e6)
                })
            };
            json!({
                "name": class.name,
                "queue_ms": ms(&class.in_queue),
                "disk_ms": ms(&class.in_disk),
                "counters": format!("{:?}", class.counters),
            })
        })
        .collect();
    json!({
        "classes": classes,
        "page_cache": format!("{page_cache:?}"),
        "read": format!("{:?}", disk.traffic.read),
        "written": format!("{:?}", disk.traffic.written),
        "load": format!("{:?}", disk.load),
    })
}

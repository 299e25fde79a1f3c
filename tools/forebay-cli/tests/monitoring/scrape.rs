//! A Prometheus that scrapes a run of `forebay bench`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::files::{ALERTS, alerts, panels, path};
use crate::has_prometheus;
use crate::server::{NEVER, Running, prometheus, query};

const JOBS: &str = "
- {name: query, type: randread, shards: all, data_size: 8MB, shard_info: {parallelism: 4, rps: 20}}
- {name: bulk, type: overwrite, shards: all, data_size: 8MB, shard_info: {parallelism: 32}}
";

/// Panels that a run of `bench` shows nothing in: it has no reads through the page cache and deletes
/// nothing, and what is below its directory may be hidden: see [`crate::provoked`].
const EMPTY: [&str; 5] =
    ["Page cache hits", "Unscheduled", "Deletes", "Pending deletes", "Oldest delete"];

/// Alerts that do not depend on how fast the machine is just now.
const STEADY: &str = "ForebayBug|ForebayDiskErrors|ForebayPermitsHeldLong|\
                      ForebayMisalignedWrites|ForebayClassHeldByItsLimit";

/// A load that goes on, and where its metrics are. Any disk does what it asks for.
fn bench(dir: &Path) -> (Running, String) {
    let properties = format!(
        "disks:\n  - mountpoint: \"{}\"\n    read_iops: 400\n    write_iops: 400\n    \
         read_bandwidth: 4000000\n    write_bandwidth: 4000000\n",
        dir.display()
    );
    std::fs::write(dir.join("io.yaml"), properties).unwrap();
    std::fs::write(dir.join("jobs.yaml"), JOBS).unwrap();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_forebay"));
    bench.arg("bench").arg(dir.join("jobs.yaml")).args(["--shards", "2", "--duration", "1h"]);
    bench.args(["--format", "json", "--metrics", "127.0.0.1:0", "--dir"]).arg(dir);
    bench.arg("--properties").arg(dir.join("io.yaml")).args(["--latency-target", "p95=100ms"]);
    let mut child = bench.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let running = Running(child);
    let address = lines.find_map(|line| {
        let line = line.unwrap();
        Some(line.split_once("http://")?.1.strip_suffix("/metrics")?.to_owned())
    });
    // nobody else reads what it says later
    std::thread::spawn(move || lines.for_each(drop));
    (running, address.unwrap())
}

#[test]
fn a_prometheus_scrapes_a_run_and_knows_each_query() {
    if !has_prometheus() {
        return;
    }
    let (load, server) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (_bench, target) = bench(load.path());
    let (_prometheus, url) = prometheus(server.path(), &target, &path(ALERTS), "1s");
    let began = Instant::now();
    for panel in panels("10s") {
        // of what a disk may not have yet, such as a base latency, a panel shows the rest
        let has_data = |expression: &String| !query(&url, expression).unwrap().is_empty();
        while panel.queries.iter().filter(|query| has_data(query)).count() == 0
            && !EMPTY.contains(&&*panel.title)
        {
            assert!(began.elapsed() < NEVER, "{} has no data", panel.title);
            std::thread::sleep(Duration::from_millis(500));
        }
    }
    for (alert, expression) in alerts() {
        let found = query(&url, &expression);
        assert!(found.is_ok(), "{alert}: {found:?}");
    }
    let firing = format!("ALERTS{{alertstate=\"firing\",alertname=~\"{STEADY}\"}}");
    assert_eq!(query(&url, &firing), Ok(Vec::new()));
}

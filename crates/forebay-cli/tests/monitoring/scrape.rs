//! A Prometheus that scrapes a run of `forebay bench`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::files::{ALERTS, alerts, panels, path};
use crate::has_prometheus;

/// Only tells that something never comes.
const NEVER: Duration = Duration::from_secs(180);

const JOBS: &str = "
- {name: query, type: randread, shards: all, data_size: 8MB, shard_info: {parallelism: 4, rps: 20}}
- {name: bulk, type: overwrite, shards: all, data_size: 8MB, shard_info: {parallelism: 4}}
";

/// Panels that a run of `bench` shows nothing in: it has no reads through the page cache and deletes
/// nothing, and what is below its directory may be hidden.
const EMPTY: [&str; 5] =
    ["Page cache hits", "Passed no class", "Deletes", "Deletes that wait", "Oldest delete"];

/// Alerts that do not depend on how fast the machine is just now.
const STEADY: &str = "ForebayBug|ForebayDiskErrors|ForebayPermitsHeldLong|\
                      ForebayMisalignedWrites|ForebayClassHeldByItsLimit";

/// A program that is ended with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

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
    bench.arg("--properties").arg(dir.join("io.yaml"));
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

/// A Prometheus in `dir`, and where it is; `None` where its port was taken meanwhile.
fn prometheus(dir: &Path, target: &str) -> Option<(Running, String)> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = format!(
        "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
         rule_files: ['{}']\n\
         scrape_configs: [{{job_name: forebay, static_configs: [{{targets: ['{target}']}}]}}]\n",
        path(ALERTS).canonicalize().unwrap().display()
    );
    let file = dir.join("prometheus.yml");
    std::fs::write(&file, config).unwrap();
    let log = File::create(dir.join("prometheus.log")).unwrap();
    let mut prometheus = Command::new("prometheus");
    prometheus.arg(format!("--config.file={}", file.display()));
    prometheus.arg(format!("--storage.tsdb.path={}", dir.join("data").display()));
    prometheus.arg(format!("--web.listen-address=127.0.0.1:{port}"));
    prometheus.stdout(Stdio::null()).stderr(log).current_dir(dir);
    let mut running = Running(prometheus.spawn().unwrap());
    let url = format!("http://127.0.0.1:{port}");
    let began = Instant::now();
    while !query(&url, "up == 1").is_ok_and(|found| !found.is_empty()) {
        if running.0.try_wait().unwrap().is_some() {
            return None;
        }
        let log = || std::fs::read_to_string(dir.join("prometheus.log")).unwrap();
        assert!(began.elapsed() < NEVER, "it scrapes nothing: {}", log());
        std::thread::sleep(Duration::from_millis(200));
    }
    Some((running, url))
}

/// What an expression says now, or what is wrong with it.
fn query(url: &str, expression: &str) -> Result<Vec<Value>, String> {
    let mut promtool = Command::new("promtool");
    promtool.args(["query", "instant", "-o", "json", url, expression]);
    let output = promtool.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn a_prometheus_scrapes_a_run_and_knows_each_query() {
    if !has_prometheus() {
        return;
    }
    let (load, server) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (_bench, target) = bench(load.path());
    let started = (0..5).find_map(|_| prometheus(server.path(), &target));
    let (_prometheus, url) = started.unwrap();
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

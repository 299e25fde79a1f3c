//! A Prometheus that scrapes, and what it knows.

use std::fs::File;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Only tells that something never comes.
pub(crate) const NEVER: Duration = Duration::from_secs(180);

/// A program that is ended with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Prometheus in `dir` that scrapes `target` and judges it by these rules once a `period`, and where
/// it is.
pub(crate) fn prometheus(
    dir: &Path,
    target: &str,
    rules: &Path,
    period: &str,
) -> (Running, String) {
    let config = format!(
        "global: {{scrape_interval: {period}, evaluation_interval: {period}}}\n\
         rule_files: ['{}']\n\
         scrape_configs: [{{job_name: forebay, static_configs: [{{targets: ['{target}']}}]}}]\n",
        rules.canonicalize().unwrap().display()
    );
    let file = dir.join("prometheus.yml");
    std::fs::write(&file, config).unwrap();
    (0..5).find_map(|_| started(dir, &file)).unwrap()
}

/// Starts it; `None` if another process has taken its port.
fn started(dir: &Path, file: &Path) -> Option<(Running, String)> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
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
pub(crate) fn query(url: &str, expression: &str) -> Result<Vec<Value>, String> {
    let mut promtool = Command::new("promtool");
    promtool.args(["query", "instant", "-o", "json", url, expression]);
    let output = promtool.output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap())
}

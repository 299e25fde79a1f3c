//! How many requests the simulator does in a second of real time, on one core.

#![allow(clippy::unwrap_used, reason = "an example that cannot go on should stop")]

use std::time::Instant;

use forebay_config::Source;
use forebay_load::job_file::JobFile;
use forebay_sim::simulation::{Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;

const DISK: &str = "
kind: ideal
channels: 32
read_latency: 80us
write_latency: 80us
read_bandwidth: 4G
write_bandwidth: 4G
";

fn main() {
    for (shards, depth) in [(1, 64), (2, 32), (8, 64)] {
        let text = format!(
            "
- {{name: a, type: randread, shards: all, shard_info: {{parallelism: {depth}, shares: 100}}}}
- {{name: b, type: randread, shards: all, shard_info: {{parallelism: {depth}, shares: 500}}}}
"
        );
        let jobs = JobFile::parse(&Source::new("speed.yaml", &text), None, shards).unwrap();
        let config = SimulationConfig::new(
            jobs,
            DiskSpec::parse(&Source::new("disk.yaml", DISK)).unwrap().build(1),
        );
        let begin = Instant::now();
        let outcome = Simulation::new(config).unwrap().run().unwrap();
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{shards} shards: {} requests in {seconds:.2} s: {:.2} million per second",
            outcome.requests,
            outcome.requests as f64 / seconds / 1e6
        );
    }
}

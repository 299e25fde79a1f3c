//! Files that are deleted in steps, on the file system of a disk that matches published tables.

use std::time::Duration;

use forebay_config::Source;
use forebay_core::{Control, Policy};
use forebay_load::job_file::JobFile;
use forebay_load::results::model::ClassResult;
use forebay_sim::simulation::{Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;

/// Reads and a discard job with these options: 512 MiB per second in steps of 32 MiB.
fn run(options: &str, seed: u64) -> [ClassResult; 2] {
    let jobs = format!(
        "- {{name: reads, type: randread, shards: [0], data_size: 1GB, \
         options: {{pause_distribution: poisson}}, \
         shard_info: {{parallelism: 100, rps: 40, reqsize: 512, shares: 1000}}}}\n\
         - {{name: deletes, type: discard, shards: [0], data_size: 16GB, files_count: 16, \
         options: {options}, shard_info: {{parallelism: 1, rps: 16, reqsize: 32MB, shares: 100}}}}\n"
    );
    let jobs = JobFile::parse(&Source::new("jobs", &jobs), None, 1).unwrap();
    let disk = include_str!("../../../../examples/i3-xfs.yaml");
    let disk = DiskSpec::parse(&Source::new("disk", disk)).unwrap();
    let mut config = SimulationConfig::new(jobs, disk.build(seed));
    config.seed = seed;
    config.duration = Duration::from_secs(4);
    config.file_system = disk.file_system();
    config.check_invariants = true;
    let base_latency = None;
    let latency_goal = Duration::from_micros(100);
    config.scheduler.policy = Some(Policy::PaceWindow { latency_goal, base_latency });
    config.scheduler.control = Control::Rates;
    let outcome = Simulation::new(config).and_then(Simulation::run).unwrap();
    let of = |name| outcome.result.classes.iter().find(|class| class.name == name).unwrap();
    ["reads", "deletes"].map(|name| of(name).clone())
}

/// `paced` changed nothing here: jobs were not cut.
#[test]
fn reads_wait_less_during_paced_deletes_than_during_whole_steps() {
    for seed in 1..4 {
        // 32 discards for each request, or one
        for (extents, times) in [("1MB", 2.0), ("32MB", 0.8)] {
            let [whole, paced] = [false, true]
                .map(|paced| run(&format!("{{extent_size: {extents}, paced: {paced}}}"), seed));
            let p999 = |all: &[ClassResult; 2]| all[0].latency_us.p999;
            let steps = |all: &[ClassResult; 2]| all[1].requests;
            println!(
                "{extents}, seed {seed}: {:.0} and {:.0} us alongside {} and {} steps",
                p999(&whole),
                p999(&paced),
                steps(&whole),
                steps(&paced)
            );
            assert!(p999(&whole) >= times * p999(&paced), "{extents}, seed {seed}");
            assert!(steps(&paced) >= 2 * steps(&whole), "{extents}, seed {seed}");
            assert_eq!((paced[1].errors, whole[1].errors), (0, 0));
        }
    }
}

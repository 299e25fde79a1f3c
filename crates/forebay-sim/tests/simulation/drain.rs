//! A burst that has entered a busy disk does not stay there.

use std::time::Duration;

use forebay_config::Source;
use forebay_core::{Control, LATENCY_GOAL_DEFAULT, LatencyTarget, Policy};
use forebay_sim::simulation::SimulationConfig;
use forebay_sim::spec::DiskSpec;

use crate::bed::{jobs, reads, run};

/// Channels, and the latency of reads and writes in microseconds.
const DISKS: [(u32, u64, u64); 4] = [(2, 100, 50), (4, 500, 250), (8, 100, 50), (24, 110, 200)];

/// Three seconds of demand above what the disk does, after it stood still for 10 ms and
/// a second to get over that: all that waited then has come at once.
fn set_up(disk: (u32, u64, u64), jobs_text: &str, shards: u32) -> SimulationConfig {
    let (channels, read_us, write_us) = disk;
    let text = format!(
        "kind: ideal\nchannels: {channels}\nread_latency: {read_us}us\n\
         write_latency: {write_us}us\nbandwidth: 4G\n\
         faults:\n- {{kind: hang, from: 500ms, to: 510ms}}\n"
    );
    let disk = DiskSpec::parse(&Source::new("disk.yaml", &text)).unwrap().build(1);
    let base_latency = Some(disk.base_latency());
    let mut config = SimulationConfig::new(jobs(jobs_text, shards), disk);
    config.warmup = Duration::from_millis(1500);
    config.duration = Duration::from_secs(3);
    config.scheduler.latency_target = Some(LatencyTarget::OF_WINDOW);
    config.scheduler.control = Control::Figures;
    config.scheduler.policy =
        Some(Policy::PaceWindow { latency_goal: LATENCY_GOAL_DEFAULT, base_latency });
    config
}

#[test]
fn what_a_burst_left_in_a_busy_disk_drains_and_the_disk_stays_busy() {
    let both = reads("a", "all", 64, "4kB", 100) + &reads("b", "all", 16, "16kB", 300);
    let many = reads("a", "all", 64, "4kB", 100);
    // and the median in the disk at most, in latencies of the idle one: a lone shard sends
    // what waits several at a time
    let loads = [
        (&many, 1, 2.0),
        (&many, 2, 1.3),
        (&reads("a", "all", 16, "4kB", 100), 8, 2.0),
        (&both, 2, 2.0),
    ];
    for disk in DISKS {
        for (text, shards, most) in loads {
            let outcome = run(set_up(disk, text, shards));
            let median = outcome.result.classes[0].disk_us.p50 / disk.1 as f64;
            let seen = format!("{disk:?}, {shards} shards: {median}, {}", outcome.utilisation);
            assert!(median <= most + 0.01 && outcome.utilisation >= 0.999, "{seen}");
        }
    }
}

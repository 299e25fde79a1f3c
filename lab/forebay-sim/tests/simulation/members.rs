//! Members of an array with more than their part of the requests in flight are reported.

use core::time::Duration;

use forebay_load::results::model::Report;
use forebay_load::results::{MembersResult, text};
use forebay_sim::simulation::{Simulation, SimulationConfig};
use forebay_sim::spec::DiskSpec;

use crate::fixture::jobs;

/// Appends of 128 KiB to files of this size, which lie one after the other.
fn appends(file_bytes: &str) -> (MembersResult, String) {
    let text_of = format!(
        "- {{name: bulk, type: seqwrite, shards: all, data_size: {file_bytes}, shard_info: {{parallelism: \
         1, reqsize: 128kB}}}}\n"
    );
    let spec = DiskSpec::resolve("raid0-4-nvme").unwrap();
    let config = SimulationConfig {
        warmup: Duration::from_millis(20),
        duration: Duration::from_millis(100),
        ..SimulationConfig::new(jobs(&text_of, 16), spec.build(1))
    };
    let result = Simulation::new(config).and_then(Simulation::run).unwrap().result;
    let members = result.disk.clone().unwrap().members.unwrap();
    (members, text(&Report::Run(Box::new(result))))
}

#[test]
fn files_that_grow_over_the_same_member_at_a_time_are_reported() {
    // a multiple of all members' chunks, and one chunk more
    for (file_bytes, is_even) in [("64MiB", false), ("65MiB", true)] {
        let (members, said) = appends(file_bytes);
        println!("{file_bytes}: {members:?}");
        assert_eq!(members.parts.len(), 4);
        assert_eq!(said.contains("the requests in flight"), !is_even, "{said}");
    }
}

//! The ways in which the threads of a load share the scheduler.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;

use crate::loop_mount::{Lab, MIXED};
use crate::process::{run, run_and_at_text};

const TOPOLOGIES: [(&str, &[&str], u64); 4] = [
    ("per-thread", &[], 2),
    ("shared", &[], 1),
    ("coordinators", &[], 1),
    ("coordinators", &["--io-queues", "2"], 2),
];

/// Requests by shard; every job did something, and nothing failed.
fn requests_by_shard(run: &Value) -> Vec<u64> {
    let classes = |of: &Value| of["classes"].as_array().unwrap().clone();
    let requests = |class: &Value| {
        assert_eq!(class["errors"], 0, "{class}");
        let requests = class["requests"].as_u64().unwrap();
        assert!(requests > 0, "{class}");
        requests
    };
    let shards = run["shards"].as_array().unwrap().iter();
    let by_shard: Vec<u64> =
        shards.map(|shard| classes(shard).iter().map(requests).sum()).collect();
    let all: u64 = classes(run).iter().map(requests).sum();
    assert_eq!(by_shard.iter().sum::<u64>(), all);
    by_shard
}

#[test]
fn each_topology_does_the_load_on_each_backend() {
    let lab = Lab::new();
    for (topology, arguments, io_queues) in TOPOLOGIES {
        for backend in ["auto", "threads"] {
            let mut command = lab.bench(MIXED);
            command.args(["--shards", "2", "--format", "json", "--backend", backend]);
            // long enough for each class of each shard to have its turn alongside other tests
            command.args(["--duration", "1s"]);
            let run = run(command.args(["--topology", topology]).args(arguments)).results();
            assert_eq!(run["topology"], topology);
            assert_eq!(run["io_queues"], io_queues);
            assert_eq!(requests_by_shard(&run).len(), 2);
            assert!(run["disk"]["consumption_mean"].as_f64().unwrap() > 0.0);
        }
    }
    lab.assert_nothing_left();
}

const EQUAL: &str = "
- {name: reads, type: randread, data_size: 2MB, shards: all,
   shard_info: {parallelism: 8, reqsize: 4kB, shares: 100}}
";

/// On a disk that limits the load, and whose answers take no time: what one queue divides. A thread
/// that does not run cannot ask, and then has less, so one of several runs must be equal.
#[test]
fn one_queue_serves_shards_equally() {
    const RUNS: usize = 6;
    let lab = Lab::new();
    // by how many percent the least may be below the most; 6.0 and 0.5 at most were seen
    for (topology, apart) in [("shared", 7), ("coordinators", 1)] {
        let requests = || {
            let mut command = lab.bare_bench(EQUAL);
            command.args(["--dir", "/dev/null", "--shards", "4", "--format", "json"]);
            command.args(["--control", "rates", "--topology", topology, "--properties"]);
            command.arg(lab.properties());
            requests_by_shard(&run(&mut command).results())
        };
        let is_equal = |by_shard: &Vec<u64>| {
            let (least, most) = (by_shard.iter().min().unwrap(), by_shard.iter().max().unwrap());
            most - least <= most * apart / 100
        };
        let unequal: Vec<_> =
            (0..RUNS).map(|_| requests()).take_while(|run| !is_equal(run)).collect();
        assert!(unequal.len() < RUNS, "{topology}: {unequal:?}");
    }
}

#[test]
fn every_topology_ends_with_its_load_and_compares() {
    let lab = Lab::new();
    let jobs = MIXED.replace("parallelism: 2", "parallelism: 2, limit: 10");
    for (topology, _, _) in TOPOLOGIES {
        let mut command = lab.bench(&jobs);
        command.args(["--format", "json", "--shards", "1", "--compare", "none"]);
        command.args(["--duration", "1h", "--warmup", "0s", "--topology", topology]);
        let comparison = run(&mut command).results();
        for run in comparison["runs"].as_array().unwrap() {
            assert_eq!(run["classes"][0]["requests"], 10, "{topology}");
        }
    }
}

#[test]
fn io_queues_are_for_coordinators_and_as_many_as_the_disk_keeps_busy() {
    let lab = Lab::new();
    let bench = |arguments: &[&str]| run(lab.bench(MIXED).args(arguments));
    bench(&["--io-queues", "2"]).complains(2, &["--topology coordinators", "--shards"]);
    bench(&["--topology", "shared", "--io-queues", "2"]).complains(2, &["one queue for all"]);
    bench(&["--topology", "coordinators", "--io-queues", "0"]).complains(2, &["0"]);
    bench(&["--topology", "ring"]).complains(2, &["per-thread", "shared", "coordinators"]);
    // 8 requests of 200 us in a window of 1.5 ms
    let many = ["--topology", "coordinators", "--io-queues", "16", "--shards", "2"];
    let ended = bench(&[&many[..], &["--format", "json"]].concat());
    assert_eq!(ended.results()["io_queues"], 2);
    assert!(ended.stderr.contains("2 I/O queues instead of 16"), "{}", ended.stderr);
}

#[test]
fn text_names_the_topology() {
    let lab = Lab::new();
    let mut command = lab.bench(MIXED);
    let ended = run(command.args(["--shards", "1", "--topology", "shared", "--compare", "off"]));
    assert!(ended.stdout.contains("Topology: shared, 1 I/O queue."), "{}", ended.stdout);
}

pub(crate) fn scrape(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: forebay\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_are_served_while_the_load_runs() {
    let lab = Lab::new();
    let mut command = lab.bench(MIXED);
    command.args(["--shards", "2", "--format", "json", "--compare", "none", "--duration", "1s"]);
    command.args(["--metrics", "127.0.0.1:0"]);
    let ended = run_and_at_text(&mut command, "running with the scheduler", |said| {
        let address = said.split("http://").nth(1).unwrap().split('/').next().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        let text = scrape(address);
        for words in ["class=\"reads\"", "class=\"bulk\"", "# EOF"] {
            assert!(text.contains(words), "`{words}` is not in: {text}");
        }
        assert!(!text.contains("class=\"untagged\""), "it asks for nothing: {text}");
    });
    ended.results();
}

#[test]
fn an_address_that_cannot_be_served_is_named() {
    let lab = Lab::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let bench = |address: &str| run(lab.bench(MIXED).args(["--metrics", address]));
    bench(&address).complains(2, &[&address, "in use", "port 0"]);
    bench("nowhere").complains(2, &["nowhere", "--metrics", "such as 127.0.0.1:9180"]);
    lab.assert_nothing_left();
}

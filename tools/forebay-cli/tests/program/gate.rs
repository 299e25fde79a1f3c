//! `forebay bench --diff`: results compared, and what that ends with.

use std::path::PathBuf;
use std::process::Command;

use crate::loop_mount::Lab;
use crate::process::{Ended, run};

const JOBS: &str = "
- name: reads
  type: randread
  shards: all
  data_size: 64MB
  shard_info: {parallelism: 4, rps: 200, reqsize: 4kB, shares: 1000}
  options: {pause_distribution: poisson}
- name: bulk
  type: overwrite
  shards: all
  data_size: 64MB
  shard_info: {parallelism: 8, reqsize: 128kB, shares: 100}
";

fn forebay() -> Command {
    Command::new(env!("CARGO_BIN_EXE_forebay"))
}

/// The results of some seconds on a simulated disk of this many bytes per second.
fn results(lab: &Lab, name: &str, bandwidth: u64, seed: &str) -> PathBuf {
    results_of(lab, name, bandwidth, seed, "", JOBS)
}

/// The same of a disk with such faults and such jobs.
fn results_of(
    lab: &Lab,
    name: &str,
    bandwidth: u64,
    seed: &str,
    fault: &str,
    jobs: &str,
) -> PathBuf {
    run_with_control(lab, name, bandwidth, seed, fault, jobs, "off")
}

/// The same alongside a run with another scheduler, or `off`.
fn run_with_control(
    lab: &Lab,
    name: &str,
    bandwidth: u64,
    seed: &str,
    fault: &str,
    jobs: &str,
    compare: &str,
) -> PathBuf {
    let disk = format!(
        "kind: ideal\nchannels: 4\nread_latency: 500us\nwrite_latency: 250us\nbandwidth: {bandwidth}\n"
    );
    let faults = if fault.is_empty() { String::new() } else { format!("faults: [{fault}]\n") };
    let disk = lab.file("disk.yaml", &(disk + &faults));
    let mut command = forebay();
    command.args(["sim", "run"]).arg(lab.file("jobs.yaml", jobs)).arg("--disk").arg(disk);
    command.args(["--duration", "4s", "--format", "json", "--compare", compare, "--seed", seed]);
    // without trials, so that runs differ by chance alone
    command.args(["--control", "rates"]);
    let Ended { code, stdout, stderr } = run(&mut command);
    assert_eq!(code, Some(0), "{stderr}");
    lab.file(name, &stdout)
}

fn diff(files: &[&PathBuf], more: &[&str]) -> Ended {
    run(forebay().args(["bench", "--diff"]).args(files).args(more))
}

#[test]
fn results_of_simulated_runs_are_compared() {
    let lab = Lab::new();
    let old = results(&lab, "old.json", 300_000_000, "1");
    let same = diff(&[&old, &results(&lab, "same.json", 300_000_000, "2")], &[]);
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    assert!(same.stdout.contains("Nothing changed by more than chance."), "{}", same.stdout);
    let slower = results(&lab, "slower.json", 260_000_000, "3");
    let lost = diff(&[&old, &slower], &[]);
    assert_eq!(lost.code, Some(1), "{}{}", lost.stdout, lost.stderr);
    assert!(lost.stderr.contains("error: lost: bulk MB/s -1"), "{}", lost.stderr);
    for text in [&same.stdout, &lost.stdout] {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let allowed = diff(&[&old, &slower], &["--fail-below", "60%"]);
    assert_eq!(allowed.code, Some(0), "{}{}", allowed.stdout, allowed.stderr);
    assert!(allowed.stdout.contains("LOST"), "{}", allowed.stdout);
}

#[test]
fn a_disk_that_lost_as_much_without_the_scheduler_is_said_to_have_lost_it() {
    let lab = Lab::new();
    let of = |name: &str, bandwidth: u64, seed: &str| {
        run_with_control(&lab, name, bandwidth, seed, "", JOBS, "none")
    };
    let old = of("old.json", 300_000_000, "1");
    let ended = diff(&[&old, &of("slower.json", 270_000_000, "2")], &[]);
    ended.complains(1, &["lost: by the disk itself: bulk MB/s -1", " without the scheduler"]);
    assert!(ended.stdout.contains("LOST The disk itself lost speed: bulk MB/s -1"), "{ended:?}");
    let same = diff(&[&old, &of("same.json", 300_000_000, "3")], &[]);
    assert_eq!(same.code, Some(0), "{}{}", same.stdout, same.stderr);
    // at other times in each run
    for run in 1..=3 {
        let [before, after] =
            [(300_000_000, 2 * run), (270_000_000, 2 * run + 1)].map(|(rate, run)| {
                let (name, seed) = (format!("uneven-{run}.json"), run.to_string());
                run_with_control(&lab, &name, rate, &seed, &uneven(run), JOBS, "none")
            });
        diff(&[&before, &after], &[])
            .complains(2, &["not comparable: ", "varied too much to detect"]);
    }
}

/// A disk that is slow now and then.
fn uneven(run: u64) -> String {
    let slow = |at: u64| {
        let from = 1000 + at * 700 + (run * 37 + at * at * 53) % 400;
        let (until, percent) = (from + 500, 20 + (run * 13 + at * 29) % 60);
        format!("{{kind: slow, from: {from}ms, to: {until}ms, percent: {percent}}}")
    };
    (0..6).map(slow).collect::<Vec<_>>().join(", ")
}

#[test]
fn runs_that_cannot_be_compared_end_with_code_two() {
    let lab = Lab::new();
    let old = results(&lab, "old.json", 300_000_000, "1");
    let text = std::fs::read_to_string(&old).unwrap();
    let other = lab.file("other.json", &text.replace("\"name\": \"bulk\"", "\"name\": \"log\""));
    let ended = diff(&[&old, &other], &[]);
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("not comparable: the jobs were"), "{}", ended.stderr);
    let none = lab.file("none.json", "{}");
    for (files, words) in
        [(vec![&none, &old], "none.json: these are no results"), (vec![&old], "name a job file")]
    {
        let ended = diff(&files, &[]);
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

#[test]
fn a_run_on_a_machine_that_was_too_busy_is_no_answer_whichever_way_it_went() {
    let lab = Lab::new();
    let [old, slower] = [("old.json", 300_000_000, "1"), ("slower.json", 150_000_000, "2")]
        .map(|(name, bandwidth, seed)| results(&lab, name, bandwidth, seed));
    let busy = |path: &PathBuf, part: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        let with = format!("\"cpu_seconds\": null, \"processor_wait\": {part}");
        assert!(text.contains("\"cpu_seconds\": null"));
        lab.file(&format!("{part}.json"), &text.replace("\"cpu_seconds\": null", &with))
    };
    let quiet = busy(&old, "0.02");
    let ended = diff(&[&quiet, &busy(&slower, "0.4")], &[]);
    ended.complains(2, &["not comparable: ", "bulk MB/s -50", "too busy"]);
    let said = "The machine was busy: threads waited for a processor 2 % of the time before, 40 %";
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&ended.stdout).contains(said), "{}", ended.stdout);
    assert!(ended.stdout.contains("LOST"), "{}", ended.stdout);
    assert_eq!(diff(&[&quiet, &busy(&slower, "0.03")], &[]).code, Some(1));
    for files in [[&old, &busy(&old, "0.5")], [&busy(&slower, "0.41"), &quiet]] {
        diff(&files, &[]).complains(2, &["not comparable: ", "too busy"]);
    }
    // the run without the scheduler counts too, and the same number is said as of the run itself
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let runs = [busy(&old, "0.43"), busy(&old, "0.13")].map(|path| text(&path)).join(",");
    let both = lab.file("both.json", &format!("{{\"version\": 1, \"runs\": [{runs}]}}"));
    let ended = diff(&[&quiet, &both], &[]);
    ended.complains(2, &["2 % of the time before, 43 % now"]);
}

#[test]
fn another_load_in_a_job_file_is_neither_a_loss_nor_a_gain() {
    let lab = Lab::new();
    let of = |name, jobs: &str| results_of(&lab, name, 300_000_000, "1", "", jobs);
    let old = of("old.json", JOBS);
    for (from, to, said) in [
        ("rps: 200", "rps: 160", "the load of reads: rps 200 before, rps 160 now"),
        ("128kB", "64kB", "the load of bulk: reqsize 131072 before, reqsize 65536 now"),
        ("parallelism: 8", "parallelism: 12", "parallelism 8 before, parallelism 12 now"),
        ("type: overwrite", "type: randwrite", "overwrite before, randwrite now"),
    ] {
        let ended = diff(&[&old, &of("new.json", &JOBS.replace(from, to))], &[]);
        ended.complains(2, &["not comparable: ", said, "run the same load again"]);
        assert!(ended.stdout.contains("Not the same: the load of "), "{}", ended.stdout);
    }
    // shares may be what was changed, and older files do not say their load
    let shares = of("shares.json", &JOBS.replace("shares: 100}", "shares: 99}"));
    assert!(diff(&[&old, &shares], &[]).stdout.contains("Not the same: shares: "));
    let text = std::fs::read_to_string(&old).unwrap();
    let lines = text.lines().filter(|line| !line.contains("\"load\": "));
    let older = lab.file("older.json", &lines.collect::<Vec<_>>().join("\n"));
    assert!(std::fs::read_to_string(&older).unwrap().len() < text.len());
    let ended = diff(&[&older, &old], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

const BULK: &str = "
- name: bulk
  type: seqwrite
  shards: all
  data_size: 64MB
  shard_info: {parallelism: 8, reqsize: 128kB, shares: 100}
";

#[test]
fn a_disk_that_died_or_stood_still_in_a_run_is_a_loss() {
    let lab = Lab::new();
    for jobs in [JOBS, BULK] {
        let old = results_of(&lab, "old.json", 300_000_000, "1", "", jobs);
        for (fault, words) in [
            ("{kind: hang, from: 3s, to: 1h}", "bulk did nothing for 2.00s"),
            ("{kind: hang, from: 3s, to: 4s}", "bulk did nothing for 1.00s"),
            ("{kind: hang, from: 3050ms, to: 3290ms}", "bulk: a request took 2"),
            ("{kind: hang, from: 2s, to: 1h, offset: 0, length: 16MB}", ": a request took"),
        ] {
            let new = results_of(&lab, "new.json", 300_000_000, "2", fault, jobs);
            let ended = diff(&[&old, &new], &["--fail-below", "90%"]);
            ended.complains(1, &["lost: ", words]);
            assert!(ended.stdout.contains("\nLOST ") || ended.stdout.starts_with("LOST "));
            assert!(!ended.stdout.contains("Nothing changed"), "{}", ended.stdout);
            // one that stood still before stands still no more
            let back = diff(&[&new, &old], &[]);
            let still = ["did nothing", "a request took"].iter().any(|it| back.stderr.contains(it));
            assert!(!still, "{fault}: {}", back.stderr);
        }
    }
}

#[test]
fn requests_that_fail_are_told_first_and_are_a_loss() {
    let lab = Lab::new();
    let fault = |length| format!("{{kind: error, offset: 0, length: {length}}}");
    let old = results(&lab, "old.json", 300_000_000, "1");
    let new = |name, length| results_of(&lab, name, 300_000_000, "2", &fault(length), JOBS);
    let (some, all) = (new("some.json", "1MB"), new("all.json", "64GiB"));
    for (new, words) in [(&some, " before"), (&all, "reads: of the requests all ")] {
        let ended = diff(&[&old, new], &["--fail-below", "50%"]);
        ended.complains(1, &["error: lost: reads: of the requests ", "failed, none", words]);
        assert!(ended.stdout.starts_with("FAILED reads: "), "{}", ended.stdout);
    }
    let ended = diff(&[&old, &all], &[]);
    assert!(ended.stdout.contains("not judged: no bytes moved now"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("of 1 needed"), "{}", ended.stdout);
    for files in [[&all, &all], [&all, &old]] {
        let why = ["not comparable: reads: of the requests ", "failed, all ", " before"];
        diff(&files, &[]).complains(2, &why);
    }
    // where as many failed before, nothing is lost, but told
    let ended = diff(&[&some, &some], &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stdout.starts_with("Failed too: reads"), "{}", ended.stdout);
}

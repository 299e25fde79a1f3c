//! What waits in the disk when the scheduler is wrong about it, and what stalls cost.

use core::time::Duration;

use forebay_core::{LATENCY_GOAL_DEFAULT, Policy};
use forebay_report::{Chart, Mark, Table};
use forebay_sim::simulation::{Outcome, Polling, Sample, SchedulerConfig, Stalls, Trace};

use crate::experiment::{Experiment, Scale, Seed, Setting};
use crate::report::Report;
use crate::scenario::{jobs, millis, model, off_by, percent, run as simulate};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "design-window",
    alias: "D4-window",
    title: "Pace and window: what waits in the disk when the model is wrong",
    source: "docs/decisions/0005-pace-and-window.md",
    about: include_str!("about.txt"),
    known: "",
    run,
};

const DISK: &str = include_str!("disk.yaml");
const SLOW: &str = include_str!("disk-slow.yaml");
const SERVICE_US: f64 = 500.0;
const LOAD: &str = include_str!("load.yaml");
const SHARDS: u32 = 8;
const TICK_NANOS: u64 = 500_000;
const GOAL_US: f64 = LATENCY_GOAL_DEFAULT.as_micros() as f64;
/// The width of a slice, whatever the length of a run.
const SLICE_MS: u64 = 10;
/// Half of the requests of a slice wait in the disk for longer than any bounded policy lets them.
const ABOVE_US: f64 = 5_000.0;
const SHOWN_MAX_MS: f64 = 20.0;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Nothing,
    Stalls(Stalling),
    Slow,
    TooFast(i64),
}

const TROUBLES: [(Trouble, &str, [&str; 4]); 6] = [
    (
        Trouble::Nothing,
        "none",
        ["1.08 ms, 100 %", "1.05 ms, 100 %", "1.08 ms, 100 %", "1.08 ms, 100 %"],
    ),
    (
        Trouble::Stalls(Stalling::OneShard),
        "10 ms stalls in 1 % of polls, one shard of 8",
        ["1.08 ms, 100 %", "1.05 ms, 97.1 %", "1.08 ms, 100 %", "1.08 ms, 99.9 %"],
    ),
    (
        Trouble::Stalls(Stalling::AllOnATick),
        "the same of all shards, dispatch on a 0.5 ms tick alone",
        ["-", "-", "-", "-"],
    ),
    (Trouble::Slow, "disk at 30 % for 200 ms", ["141 ms, stays", "3.3 ms", "141 ms", "6.6 ms"]),
    (
        Trouble::TooFast(5),
        "model 5 % too fast",
        ["151 ms, grows", "1.1 ms", "151 ms, grows", "2.1 ms"],
    ),
    (
        Trouble::TooFast(20),
        "model 20 % too fast",
        ["601 ms, grows", "1.3 ms", "448 ms, grows", "2.5 ms"],
    ),
];

const fn policies() -> [Policy; 4] {
    let latency_goal = LATENCY_GOAL_DEFAULT;
    [
        Policy::TokenBucket { latency_goal },
        Policy::TwoLevelBucket { latency_goal },
        Policy::FlowRatio { latency_goal },
        Policy::PaceWindow { latency_goal, base_latency: Some(Duration::from_micros(500)) },
    ]
}

/// Which shards stall, and when they look for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stalling {
    OneShard,
    AllOnATick,
}

/// What came of one policy in one trouble.
#[derive(Debug)]
struct WaitFigures {
    /// Waiting in the disk beyond the service of the request itself, in microseconds.
    wait_p50_us: f64,
    wait_max_us: f64,
    /// At the end of the run.
    wait_last_us: f64,
    /// For how many seconds half of what was in the disk waited for more than [`ABOVE_US`].
    seconds_above: f64,
    /// The part of what the disk could do that it did.
    utilisation: f64,
}

fn outcome(seed: Seed, trouble: Trouble, policy: Policy, seconds: u64) -> Result<Outcome, String> {
    let disk = seed.disk(if trouble == Trouble::Slow { SLOW } else { DISK })?;
    let model = match trouble {
        Trouble::TooFast(percent) => Some(model(&off_by(&disk.rates(), percent))?),
        _ => None,
    };
    let mut config = seed.config(jobs(LOAD, SHARDS)?, disk, seconds * 1000);
    config.scheduler =
        SchedulerConfig { policy: Some(policy), model, ..SchedulerConfig::by_figures() };
    if let Trouble::Stalls(stalling) = trouble {
        let (polling, shards) = match stalling {
            Stalling::OneShard => (Polling::Events, vec![0]),
            Stalling::AllOnATick => (Polling::Tick(TICK_NANOS), (0..SHARDS).collect()),
        };
        config.polling = polling;
        config.stalls = Some(Stalls { one_in: 100, length: Duration::from_millis(10), shards });
    }
    config.trace_buckets = Some(((100 + seconds * 1000) / SLICE_MS) as usize);
    simulate(config)
}

fn samples(outcome: &Outcome) -> Result<(&Trace, &[Sample]), String> {
    let trace = outcome.trace.as_ref().ok_or("the run was not traced")?;
    let class = trace.classes.first().ok_or("there is no class")?;
    Ok((trace, &class.samples))
}

fn figures(trouble: Trouble, outcome: &Outcome, seconds: u64) -> Result<WaitFigures, String> {
    let disk = outcome.trace.as_ref().and_then(|trace| trace.classes.first());
    let disk = &disk.ok_or("the run was not traced")?.disk;
    let (trace, samples) = samples(outcome)?;
    let last = samples.last().map_or(0.0, |sample| sample.disk.p50 as f64 / 1e3);
    let possible = match trouble {
        Trouble::Slow => 1.0 - 0.7 * 0.2 / seconds as f64,
        _ => 1.0,
    };
    let wait = |latency_us: f64| (latency_us - SERVICE_US).max(0.0);
    let is_above = |sample: &&Sample| wait(sample.disk.p50 as f64 / 1e3) > ABOVE_US;
    let above = samples.iter().filter(is_above).count();
    Ok(WaitFigures {
        seconds_above: above as f64 * trace.slice_nanos as f64 / 1e9,
        wait_p50_us: wait(disk.quantile_ns(0.5) as f64 / 1e3),
        wait_max_us: wait(disk.max_ns() as f64 / 1e3),
        wait_last_us: wait(last),
        utilisation: outcome.utilisation / possible,
    })
}

/// Runs all policies in all troubles.
fn run(Setting { scale, seed, .. }: Setting) -> Result<Report, String> {
    let mut report = Report::default();
    report.parameter("disk", "25 requests at a time, 500 us each: 50,000/s");
    report
        .parameter("load", "4 KiB reads, 8 shards, 4,000 in flight each: never short of requests");
    report.parameter("latency goal", "0.75 ms (window 1.5 ms)");
    let measured = TROUBLES.map(|(trouble, ..)| seconds(trouble, scale));
    let (least, most) = (measured.iter().min().unwrap_or(&0), measured.iter().max().unwrap_or(&0));
    report.parameter(
        "measured",
        format!(
            "{least} s after 0.1 s; {most} s where the disk is slow, for the flow ratio to act"
        ),
    );
    let mut table = Table::new(
        "Waiting in the disk (beyond the request's own service)",
        &["trouble", "policy", "prototype", "p50", "max", "at the end", "above 5 ms", "disk used"],
    );
    for (trouble, name, prototype) in TROUBLES {
        let seconds = seconds(trouble, scale);
        let mut chart = charted(trouble).map(|title| Chart::new(title, "s", "ms"));
        for (index, policy) in policies().into_iter().enumerate() {
            let outcome = outcome(seed, trouble, policy, seconds)?;
            let figures = figures(trouble, &outcome, seconds)?;
            table.row([
                if index == 0 { name.to_owned() } else { String::new() },
                policy.name().to_owned(),
                prototype[index].to_owned(),
                millis(figures.wait_p50_us),
                millis(figures.wait_max_us),
                millis(figures.wait_last_us),
                format!("{:.2} s", figures.seconds_above),
                percent(figures.utilisation),
            ]);
            let points = longest_waits(&outcome)?;
            chart = chart.map(|chart| chart.with(policy.name(), Mark::Line, points));
        }
        let goal = |at: f64| (at, GOAL_US / 1e3);
        let goal = vec![goal(0.0), goal(seconds as f64 + 0.1)];
        report.charts.extend(chart.map(|chart| chart.with("latency goal", Mark::Dashed, goal)));
    }
    report.tables.push(table);
    Ok(report)
}

/// How long a run is measured: the flow ratio takes seconds to act.
const fn seconds(trouble: Trouble, scale: Scale) -> u64 {
    match trouble {
        Trouble::Slow => scale.seconds(5, 20),
        _ => scale.seconds(1, 3),
    }
}

/// The title of a chart of this trouble, if there is one.
fn charted(trouble: Trouble) -> Option<&'static str> {
    match trouble {
        Trouble::Slow => Some("Disk at 30 % for 200 ms: longest wait in it (cut at 20 ms)"),
        Trouble::TooFast(5) => Some("Model 5 % too fast: longest wait in the disk (cut at 20 ms)"),
        _ => None,
    }
}

/// The longest wait of each slice in milliseconds, cut where the bounded ones are still told apart.
fn longest_waits(outcome: &Outcome) -> Result<Vec<(f64, f64)>, String> {
    let (trace, samples) = samples(outcome)?;
    let point = |(index, sample): (usize, &Sample)| {
        let wait_ms = sample.disk.max as f64 / 1e6 - SERVICE_US / 1e3;
        (index as f64 * trace.slice_nanos as f64 / 1e9, wait_ms.clamp(0.0, SHOWN_MAX_MS))
    };
    Ok(samples.iter().enumerate().map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Seed;
    use crate::tests::seeds;

    fn waits(seed: Seed, trouble: Trouble, policy: usize) -> WaitFigures {
        let seconds = seconds(trouble, Scale::Short);
        figures(trouble, &outcome(seed, trouble, policies()[policy], seconds).unwrap(), seconds)
            .unwrap()
    }

    const OURS: usize = 3;

    #[test]
    fn pace_and_window_bound_the_wait_and_use_the_disk() {
        for seed in seeds() {
            for (trouble, goals) in
                [(Trouble::TooFast(5), 2.1), (Trouble::TooFast(20), 2.1), (Trouble::Slow, 6.3)]
            {
                let WaitFigures { wait_max_us, utilisation, .. } = waits(seed, trouble, OURS);
                assert!(wait_max_us < goals * GOAL_US, "{trouble:?}: {wait_max_us}");
                assert!(utilisation >= 0.999, "{trouble:?}: {utilisation}");
            }
        }
    }

    #[test]
    fn stalls_of_one_shard_cost_nothing() {
        for seed in seeds() {
            let stalled = waits(seed, Trouble::Stalls(Stalling::OneShard), OURS);
            assert!(stalled.utilisation >= 0.995, "{}", stalled.utilisation);
        }
    }

    #[test]
    fn a_rate_alone_has_no_bound_and_the_flow_ratio_takes_seconds() {
        for seed in seeds() {
            let [rate, two_level, flow, window] =
                [0, 1, 2, 3].map(|at| waits(seed, Trouble::Slow, at));
            // until the end of the run: 4.6 s after the 0.2
            assert!(rate.wait_last_us > 100_000.0 && rate.seconds_above > 4.5, "{rate:?}");
            // it takes a part back, and stops once the ratio is below its limit
            assert!((35_000.0..40_000.0).contains(&flow.wait_last_us), "{flow:?}");
            assert!(two_level.seconds_above == 0.0 && window.seconds_above == 0.0, "{window:?}");
        }
    }

    #[test]
    fn the_two_level_bucket_loses_to_stalls_of_all_shards() {
        for seed in seeds() {
            let trouble = Trouble::Stalls(Stalling::AllOnATick);
            assert!(waits(seed, trouble, 1).utilisation < waits(seed, trouble, OURS).utilisation);
        }
    }
}

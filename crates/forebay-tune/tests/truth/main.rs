//! What `tune` says of simulated disks, beside what they do in the long run.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "also outside of test functions")]

mod disks;
mod long_run;

use std::sync::Mutex;

use disks::Known;
use forebay_tune::{Budget, Fit, Run, SimTarget, Target, fit, measure};

const NAMES: [&str; 4] = ["read iops", "write iops", "read MB/s", "write MB/s"];

/// What a budget found of a disk.
struct Found {
    value: [f64; 4],
    margin: [f64; 4],
    lasts: [bool; 4],
    written: u64,
    seconds: f64,
}

fn tune(known: &Known, budget: &Budget, seed: u64) -> Found {
    let spec = &known.spec;
    let sector = spec.sector() as u32;
    let mut target = SimTarget::new(spec.build(seed), &known.name, spec.capacity(), sector);
    let mut run = Run::new(budget, target.info().clone());
    measure(&mut target, budget, &mut run, &mut |_, _| Ok(())).unwrap();
    let last = &run.phases.last().unwrap().samples;
    let Ok(fit) = fit(&run) else {
        let [value, margin] = [[1.0; 4]; 2];
        return Found { value, margin, lasts: [false; 4], written: run.written(), seconds: 0.0 };
    };
    let figures = figures(&fit);
    Found {
        value: figures.map(|figure| figure.value),
        margin: figures.map(|figure| figure.margin),
        lasts: lasts(&fit),
        written: run.written(),
        seconds: last.began + last.seconds,
    }
}

fn figures(fit: &Fit) -> [forebay_tune::Figure; 4] {
    [fit.read_iops, fit.write_iops, fit.read_bandwidth, fit.write_bandwidth]
}

fn lasts(fit: &Fit) -> [bool; 4] {
    let lasting = fit.lasting;
    [lasting.read_iops, lasting.write_iops, lasting.read_bandwidth, lasting.write_bandwidth]
}

/// A line of the table for each figure.
fn table(known: &Known, budget: &Budget, seed: u64) -> (String, Vec<String>) {
    use std::fmt::Write;
    let truth = long_run::figures(&known.spec, known.bursts_for);
    let found = tune(known, budget, seed);
    let within = if budget.name == "quick" { 0.10 } else { 0.05 };
    let mut text = format!("| {} | {} |", known.name, budget.name);
    let mut wrong = Vec::new();
    for (place, name) in NAMES.into_iter().enumerate() {
        let off = found.value[place] / truth[place] - 1.0;
        let margin = found.margin[place] / found.value[place];
        let unit = if place < 2 { 1.0 } else { 1e6 };
        let mark = if found.lasts[place] { "" } else { " ?" };
        let _ = write!(
            text,
            " {:.0}: {:+.1} ±{:.1} %{mark} |",
            truth[place] / unit,
            off * 100.0,
            margin * 100.0
        );
        if found.lasts[place] && off.abs() > within {
            wrong.push(format!("{}, {}: {name} {:+.1} %", known.name, budget.name, off * 100.0));
        }
        if !found.lasts[place] && known.shows {
            wrong.push(format!("{}, {}: {name} not known", known.name, budget.name));
        }
    }
    let _ = write!(text, " {:.0} s, {} GiB |", found.seconds, found.written >> 30);
    (text, wrong)
}

/// The whole table: `cargo test --release -p forebay-tune --test truth -- --ignored --nocapture`.
#[test]
#[ignore = "takes many minutes"]
fn all_disks() {
    let all = disks::all();
    let only = std::env::var("ONLY").unwrap_or_default();
    let budgets: Vec<Budget> = match std::env::var("BUDGET").ok() {
        Some(name) => vec![Budget::named(&name).unwrap()],
        None => vec![Budget::QUICK, Budget::STANDARD],
    };
    let work: Vec<(&Known, Budget)> = all
        .iter()
        .filter(|known| known.name.contains(&only))
        .flat_map(|known| budgets.iter().map(move |budget| (known, *budget)))
        .collect();
    let next = Mutex::new(work.iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some((known, budget)) = next.lock().unwrap().next() else { break };
                    let (text, more) = table(known, budget, 1);
                    println!("{text}");
                    wrong.lock().unwrap().extend(more);
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    println!("{} of {} figures are not as they should be", wrong.len(), work.len() * 4);
    wrong.iter().for_each(|line| println!("  {line}"));
}

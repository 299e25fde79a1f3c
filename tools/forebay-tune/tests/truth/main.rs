//! What `tune` says of simulated disks, alongside what they do in the long run.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "also outside of test functions")]

mod disks;
mod long_run;
mod random;
mod saturation;
mod seeks;
mod uneven;
mod watch;

use std::sync::Mutex;

use disks::Known;
use forebay_sim::disk::SimDisk;
use forebay_tune::{Budget, Fit, Run, SimTarget, Target, fit, measure};
use uneven::Uneven;

const NAMES: [&str; 4] = ["read iops", "write iops", "read MB/s", "write MB/s"];

/// To such a part the truth is known.
const TRUTH_KNOWN: f64 = 0.002;

/// What a budget found of a disk.
struct Found {
    value: [f64; 4],
    margin: [f64; 4],
    lasts: [bool; 4],
    /// Bytes of large reads and writes.
    request_bytes: [u32; 2],
    /// From which size on reads and writes reach their bandwidth.
    saturation: [Option<u64>; 2],
    /// Whether it has a head that seeks.
    seeks: Option<bool>,
    written: u64,
    seconds: f64,
}

fn tune(known: &Known, disk: Box<dyn SimDisk>, budget: &Budget) -> Found {
    let spec = &known.spec;
    let sector = spec.sector() as u32;
    let mut target = SimTarget::new(disk, &known.name, spec.capacity(), sector);
    let mut run = Run::new(budget, target.info().clone());
    measure(&mut target, budget, &mut run, &mut |_, _| Ok(())).unwrap();
    let last = &run.phases.last().unwrap().samples;
    let Ok(fit) = fit(&run) else {
        let [value, margin] = [[1.0; 4]; 2];
        let (lasts, request_bytes) = ([false; 4], [1 << 20; 2]);
        return Found {
            value,
            margin,
            lasts,
            request_bytes,
            saturation: [None; 2],
            seeks: None,
            written: run.written(),
            seconds: 0.0,
        };
    };
    let figures = figures(&fit);
    Found {
        value: figures.map(|figure| figure.value),
        margin: figures.map(|figure| figure.margin),
        lasts: lasts(&fit),
        request_bytes: [fit.read_bandwidth.request_bytes, fit.write_bandwidth.request_bytes],
        saturation: [fit.read.saturation.bytes, fit.write.saturation.bytes],
        seeks: fit.seeks.and_then(|seeks| seeks.known()),
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

/// A line of the table, and what of it is not as it should be.
struct Line {
    text: String,
    wrong: Vec<String>,
    /// Of the figures that are called lasting, how many there are and how many are inside of their
    /// margins.
    lasting: usize,
    inside: usize,
}

/// Whether a budget is long enough to know that writes last, of which the disk does this many bytes
/// per second in the long run: `quick` is where a disk has a head, where it fills a buffer that is
/// seen, or where there is time for the bytes that no buffer holds.
fn writes_show(known: &Known, budget: &Budget, bytes: f64) -> bool {
    const SEEN: std::ops::Range<f64> = 0.05..20.0;
    const BOUND: f64 = 48.0 * 1_073_741_824.0;
    budget.name != "quick"
        || known.spec.build(1).seeks()
        || known.name.starts_with("hdd")
        || known.fills.is_some_and(|seconds| SEEN.contains(&seconds))
        || bytes * budget.watch_longest >= BOUND
}

/// What a budget says of a disk, alongside what it does in the long run.
fn line(known: &Known, budget: &Budget, found: &Found, truth: [f64; 4]) -> Line {
    use std::fmt::Write;
    let within = if budget.name == "quick" { 0.10 } else { 0.05 };
    let mut text = format!("| {} | {} |", known.name, budget.name);
    let (mut wrong, mut lasting, mut inside) = (Vec::new(), 0, 0);
    for (place, name) in NAMES.into_iter().enumerate() {
        let off = found.value[place] / truth[place] - 1.0;
        let margin = found.margin[place] / found.value[place];
        let unit = if place < 2 { 1.0 } else { 1e6 };
        let lasts = found.lasts[place];
        let outside = off.abs() > margin + TRUTH_KNOWN;
        let mark = match (lasts, outside) {
            (false, _) => " ?",
            (true, true) => " !",
            (true, false) => "",
        };
        let _ = write!(
            text,
            " {:.0}: {:+.1} ±{:.1} %{mark} |",
            truth[place] / unit,
            off * 100.0,
            margin * 100.0
        );
        lasting += usize::from(lasts);
        inside += usize::from(lasts && !outside);
        if lasts && off.abs() > within {
            wrong.push(format!("{}, {}: {name} {:+.1} %", known.name, budget.name, off * 100.0));
        }
        let is_write = place % 2 == 1;
        if !lasts && known.shows && (!is_write || writes_show(known, budget, truth[3])) {
            wrong.push(format!("{}, {}: {name} not known", known.name, budget.name));
        }
    }
    let _ = write!(text, " {:.0} s, {} GiB |", found.seconds, found.written >> 30);
    Line { text, wrong, lasting, inside }
}

/// Does all `work` on two threads and prints it; the sum of the lines.
fn table<Work: Sync>(work: &[Work], of: impl Fn(&Work) -> Line + Sync) -> Line {
    let next = Mutex::new(work.iter());
    let sum = Line { text: String::new(), wrong: Vec::new(), lasting: 0, inside: 0 };
    let sum = Mutex::new(sum);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(work) = next.lock().unwrap().next() else { break };
                    let line = of(work);
                    println!("{}", line.text);
                    let mut sum = sum.lock().unwrap();
                    sum.wrong.extend(line.wrong);
                    sum.lasting += line.lasting;
                    sum.inside += line.inside;
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap();
    sum.wrong.iter().for_each(|line| println!("  {line}"));
    println!(
        "{} figures, {} called lasting, {} of these inside of their margins, {} not as they should be",
        work.len() * 4,
        sum.lasting,
        sum.inside,
        sum.wrong.len()
    );
    sum
}

fn budgets() -> Vec<Budget> {
    match std::env::var("BUDGET").ok() {
        Some(name) => vec![Budget::named(&name).unwrap()],
        None => vec![Budget::QUICK, Budget::STANDARD],
    }
}

/// The table of these disks.
fn known_disks(disks: &[Known], budgets: &[Budget]) -> Line {
    let with_budgets = |known| budgets.iter().map(move |budget| (known, budget));
    let work: Vec<(&Known, &Budget)> = disks.iter().flat_map(with_budgets).collect();
    table(&work, |(known, budget)| {
        let found = tune(known, known.spec.build(1), budget);
        line(known, budget, &found, long_run::figures(&known.lasting, found.request_bytes))
    })
}

#[test]
fn sustained_rates_are_sustained_and_unknown_rates_are_not_called_so() {
    let Line { wrong, lasting, inside, .. } = known_disks(&disks::some(), &[Budget::QUICK]);
    assert!(wrong.is_empty(), "{wrong:?}");
    // no volume is among them, and no writes to a buffer that a longer stream fills
    assert_eq!((lasting, inside), (26, 26));
}

#[test]
fn a_disk_with_a_head_is_not_slowed_by_what_waits_in_it() {
    let mut disks = disks::some();
    disks.retain(|known| known.name == "hdd-7200rpm");
    let Line { wrong, lasting, .. } = known_disks(&disks, &[Budget::STANDARD]);
    assert!(wrong.is_empty() && lasting == 4, "{wrong:?}");
}

/// Keys of disks that stand still now and then, and which part of their reads and writes that
/// leaves.
fn standing_still() -> [(String, [f64; 2]); 4] {
    let hangs = |every: u64, hang: u64| {
        let at = (0..95).map(|time| 3000 + time * every).map(|from| {
            let until = from + hang;
            format!("- {{kind: hang, from: {from}ms, to: {until}ms, offset: 0, length: 512GB}}\n")
        });
        let left = 1.0 - hang as f64 / every as f64;
        (format!("faults:\n{}", at.collect::<String>()), [left; 2])
    };
    let collects = |gb: u64, pause: f64| {
        let writes = gb as f64 * 1.073_741_824 / 0.5;
        let keys = format!("collect_every: {gb}GB\ncollect_pause: {}ms\n", pause * 1e3);
        (keys, [1.0, writes / (writes + pause)])
    };
    [hangs(2000, 500), hangs(3000, 1000), collects(1, 0.3), collects(10, 5.0)]
}

#[test]
fn a_disk_that_stands_still_now_and_then_is_not_said_to_do_what_it_does_between() {
    const FLASH: &str = "kind: flash\ncapacity: 512GB\nread_command: 1us\nwrite_command: 2us\n\
        bandwidth: 4000000000\nread_latency: 20us\nwrite_latency: 8us\ndies: 64\npage: 16kB\n\
        page_read: 50us\nprogram_bandwidth: 500000000\nsuspend: 100us\nwrite_buffer: 4MB\n";
    let between = disks::parse("between", FLASH);
    for (keys, [reads, writes]) in standing_still() {
        let spec = disks::parse("stands still", &format!("{FLASH}{keys}"));
        let known =
            Known { name: keys.clone(), lasting: spec.clone(), spec, shows: true, fills: None };
        let found = tune(&known, known.spec.build(1), &Budget::QUICK);
        let between = long_run::figures(&between, found.request_bytes);
        let truth = [reads, writes, reads, writes];
        for (place, part) in truth.into_iter().enumerate() {
            let off = found.value[place] / between[place] / part - 1.0;
            let margin = found.margin[place] / found.value[place];
            assert!(off <= margin + 0.01, "{}: {off} +- {margin}\n{keys}", NAMES[place]);
            assert!(
                !found.lasts[place] || off.abs() <= 0.1,
                "{}: {off} lasts\n{keys}",
                NAMES[place]
            );
        }
    }
}

/// The whole table: `cargo test --release -p forebay-tune --test truth -- --ignored --nocapture`.
#[test]
#[ignore = "takes many minutes"]
fn all_disks() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut all = disks::all();
    all.retain(|known| known.name.contains(&only));
    known_disks(&all, &budgets());
}

/// What `budget` says of uneven disks with these seeds.
fn random_disks(seeds: std::ops::Range<u64>, budget: &Budget) -> Line {
    let seeds: Vec<u64> = seeds.collect();
    table(&seeds, |&seed| {
        let (known, deviation) = random::disk(seed);
        let (disk, speed) = Uneven::new(known.spec.build(seed), deviation, seed);
        let found = tune(&known, Box::new(disk), budget);
        let truth =
            long_run::figures(&known.lasting, found.request_bytes).map(|figure| figure * speed);
        line(&known, budget, &found, truth)
    })
}

#[test]
fn margins_hold_what_they_say_of_some_random_disks() {
    let Line { lasting, inside, .. } = random_disks(0..12, &Budget::QUICK);
    // 95 of 100 are, and of so few sometimes two fewer
    assert!(lasting >= 30 && inside * 100 >= lasting * 88, "{inside} of {lasting}");
}

#[test]
fn a_buffer_that_fills_while_writes_are_shifted_makes_no_large_sector() {
    let Line { wrong, lasting, inside, .. } = random_disks(197..198, &Budget::QUICK);
    assert!(wrong.is_empty() && lasting == inside, "{wrong:?}, {inside} of {lasting}");
}

/// `SEEDS=200 cargo test --release -p forebay-tune --test truth random -- --ignored --nocapture`.
#[test]
#[ignore = "takes many minutes"]
fn margins_hold_what_they_say_of_random_disks() {
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(200);
    for budget in budgets() {
        let Line { lasting, inside, .. } = random_disks(0..seeds, &budget);
        let share = inside as f64 / lasting as f64;
        println!("{}: {:.1} % inside", budget.name, share * 100.0);
    }
}

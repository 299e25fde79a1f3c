//! The watch for burst credits, compared with the credits that simulated volumes really have.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use forebay_core::{DiskRates, Op, Time};
use forebay_load::Rng;
use forebay_sim::disk::{Command, Completion, SimDisk};
use forebay_sim::spec::DiskSpec;
use forebay_tune::{
    Budget, DiskCounters, Error, Fit, Phase, Run, Samples, SimTarget, Target, TargetInfo, fit,
    measure,
};

use crate::disks::parse;

/// The id of requests of other programs.
const OTHER: u64 = u64::MAX;
const SECOND: u64 = 1_000_000_000;
/// How often per second the true credits are recorded.
const STEPS: f64 = 100.0;

/// A volume: its operations per second without and with credits, its most credits, and its credits at
/// first.
#[derive(Clone, Copy, Debug)]
struct Volume {
    iops: u64,
    burst: u64,
    credits: u64,
    left: u64,
}

impl Volume {
    fn spec(&self) -> DiskSpec {
        let Self { iops, burst, credits, left } = self;
        let yaml = format!(
            "kind: cloud\ncapacity: 200GB\niops: {iops}\nburst_iops: {burst}\nburst_credits: {credits}\n\
             burst_credits_left: {left}\nbandwidth: 134217728\nlatency: 353us\njitter: 120us\n"
        );
        parse("volume", &yaml)
    }
}

/// The load of other programs: one read at a time, at this mean distance, and only in the first seconds of
/// each period.
#[derive(Clone, Copy, Debug)]
struct Load {
    think: Duration,
    active: u64,
    period: u64,
}

impl Load {
    fn all_the_time(think_us: u64) -> Self {
        Self { think: Duration::from_micros(think_us), active: 1, period: 1 }
    }
}

/// The true state of a simulated volume.
#[derive(Default)]
struct Truth {
    /// The number of completed reads of other programs.
    others: u64,
    /// The credits at each step of `1 / STEPS` seconds.
    credits: Vec<f64>,
}

/// A volume that other programs use too.
struct Shared {
    disk: Box<dyn SimDisk>,
    volume: Volume,
    load: Option<Load>,
    chance: Rng,
    next: Option<Time>,
    truth: Arc<Mutex<Truth>>,
    credits: f64,
    at: f64,
}

impl Shared {
    fn new(volume: Volume, load: Option<Load>, seed: u64) -> (Self, Arc<Mutex<Truth>>) {
        let truth = Arc::new(Mutex::new(Truth::default()));
        let shared = Self {
            disk: volume.spec().build(seed),
            volume,
            load,
            chance: Rng::new(seed, &[3]),
            next: load.map(|_| Time::ZERO),
            truth: Arc::clone(&truth),
            credits: volume.left as f64,
            at: 0.0,
        };
        (shared, truth)
    }

    fn send(&mut self, now: Time, id: u64, command: Command) {
        let at = now.as_nanos() as f64 / SECOND as f64;
        let Volume { iops, credits, .. } = self.volume;
        let earned = |at: f64| (self.credits + (at - self.at) * iops as f64).min(credits as f64);
        let known = &mut self.truth.lock().unwrap().credits;
        (known.len()..=(at * STEPS) as usize)
            .for_each(|step| known.push(earned(step as f64 / STEPS)));
        let moves = matches!(command.op, Op::Read | Op::Write);
        let parts = if moves { command.len.div_ceil(256 << 10) } else { 1 };
        self.credits = earned(at) - parts as f64;
        self.at = at;
        self.disk.submit(now, id, command);
    }

    /// Schedules the next read of other programs after one that ended at `now`.
    fn think(&mut self, now: Time) {
        let Some(load) = self.load else { return };
        let rate = u32::try_from(SECOND / load.think.as_nanos() as u64).unwrap().max(1);
        let at = now.plus_nanos(self.chance.gap_ns(rate));
        let period = load.period * SECOND;
        let inside = at.as_nanos() % period;
        let waits = if inside < load.active * SECOND { 0 } else { period - inside };
        self.next = Some(at.plus_nanos(waits));
    }
}

impl SimDisk for Shared {
    fn submit(&mut self, now: Time, id: u64, command: Command) {
        self.send(now, id, command);
    }

    fn poll_completion(&mut self, now: Time) -> Option<Completion> {
        if self.next.is_some_and(|at| at <= now) {
            self.next = None;
            let offset = self.chance.below(1 << 20) << 12;
            self.send(now, OTHER, Command { op: Op::Read, offset, len: 4096 });
        }
        let done = self.disk.poll_completion(now)?;
        if done.id == OTHER {
            self.truth.lock().unwrap().others += 1;
            self.think(now);
        }
        Some(done)
    }

    fn next_event(&self) -> Option<Time> {
        self.disk.next_event().into_iter().chain(self.next).min()
    }

    fn rates(&self) -> DiskRates {
        self.disk.rates()
    }

    fn base_latency(&self) -> Duration {
        self.disk.base_latency()
    }
}

/// A target that counts the operations of other programs.
struct Watched {
    sim: SimTarget,
    truth: Arc<Mutex<Truth>>,
}

impl Watched {
    fn new(volume: Volume, load: Option<Load>, seed: u64) -> Self {
        let (disk, truth) = Shared::new(volume, load, seed);
        Self { sim: SimTarget::new(Box::new(disk), "volume", 200 << 30, 512), truth }
    }

    fn others(&self) -> u64 {
        self.truth.lock().unwrap().others
    }

    /// The true credits at this moment, in seconds.
    fn credits(&self, at: f64) -> f64 {
        let known = &self.truth.lock().unwrap().credits;
        known[(at * STEPS) as usize]
    }
}

impl Target for Watched {
    fn info(&self) -> &TargetInfo {
        self.sim.info()
    }

    fn run(&mut self, phase: &Phase) -> Result<Samples, Error> {
        self.sim.run(phase)
    }

    fn run_concurrently(
        &mut self,
        background: &Phase,
        phase: &Phase,
    ) -> Result<(Samples, Samples), Error> {
        self.sim.run_concurrently(background, phase)
    }

    fn counters(&self) -> Result<DiskCounters, Error> {
        let DiskCounters { at, operations, bytes } = self.sim.counters()?;
        let others = self.others();
        Ok(DiskCounters { at, operations: operations + others, bytes: bytes + others * 4096 })
    }

    fn wait(&mut self, seconds: f64) -> Result<(), Error> {
        self.sim.wait(seconds)
    }
}

/// Measures the target, and watches for credits for this many hours.
fn watch(target: &mut dyn Target, hours: u32) -> (Run, Fit) {
    let mut run = Run::new(&Budget::QUICK, target.info().clone());
    run.watch_hours = hours;
    measure(target, &Budget::QUICK, &mut run, &mut |_, _| Ok(())).unwrap();
    let fit = fit(&run).unwrap();
    (run, fit)
}

/// Watches a volume whose credits run out. Returns the figures if any of them is wrong.
fn wrong_figures(volume: Volume, load: Option<Load>, hours: u32, seed: u64) -> Option<String> {
    let mut target = Watched::new(volume, load, seed);
    let (_, fit) = watch(&mut target, hours);
    let Some(spent) = fit.spent() else {
        return Some(format!("{volume:?}, {load:?}, {seed}: not run out, {:?}", fit.credits));
    };
    let left = target.credits(spent.left_at);
    let off = spent.left / left - 1.0;
    let rate = spent.lasting.mean / volume.iops as f64 - 1.0;
    let bytes = (volume.iops << 18).min(134_217_728) as f64;
    let quiet = load.is_none();
    let bandwidth = [fit.read_bandwidth, fit.write_bandwidth].map(|at| at.value / bytes - 1.0);
    let figures = format!(
        "{volume:?}, {load:?}, {seed}: {left:.0} left at {:.0} s: {:+.1} %, sustained {:+.1} %, \
         bandwidth {:+.1} %, {:+.1} %",
        spent.left_at,
        off * 100.0,
        rate * 100.0,
        bandwidth[0] * 100.0,
        bandwidth[1] * 100.0
    );
    println!("{figures}");
    // The credits of one second are too few to be measured.
    let near = off.abs() <= 0.1 || (spent.left - left).abs() <= volume.burst as f64;
    let lasting = fit.lasting;
    let seen = lasting.read_iops && lasting.write_iops;
    let bytes_right = bandwidth.iter().all(|off| off.abs() <= 0.05)
        && lasting.read_bandwidth
        && lasting.write_bandwidth;
    let right = near && rate.abs() <= 0.05 && seen && (bytes_right || !quiet);
    (!right).then_some(figures)
}

/// A volume that has `percent` of its credits at first.
fn volume(iops: u64, burst: u64, credits: u64, percent: u64) -> Volume {
    Volume { iops, burst, credits, left: credits * percent / 100 }
}

/// The credits at first, in percent of the most.
const STATES: [u64; 4] = [100, 50, 5, 0];

#[test]
fn credits_and_sustained_rate_are_found_on_volumes_without_other_load() {
    for (iops, burst, credits) in [(300, 3000, 900_000), (1500, 3000, 600_000)] {
        for percent in STATES {
            assert_eq!(
                wrong_figures(volume(iops, burst, credits, percent), None, 1, percent + 1),
                None
            );
        }
    }
}

#[test]
fn credits_spent_by_other_programs_count() {
    // This load always spends more credits than the volume earns.
    let load = Some(Load::all_the_time(4000));
    assert_eq!(wrong_figures(volume(100, 1000, 400_000, 100), load, 2, 1), None);
    // This load spends fewer, so that the credits do not run out.
    let load = Some(Load::all_the_time(20_000));
    let mut target = Watched::new(volume(100, 1000, 400_000, 100), load, 1);
    let (_, fit) = watch(&mut target, 2);
    assert_eq!(fit.spent(), None);
    assert!(!fit.lasting.read_iops && !fit.lasting.write_iops);
}

/// Watches for credits for `hours` alongside `load`. Returns the fraction of the load's operations that is
/// lost, and whether the credits were seen to run out.
fn lost(volume: Volume, load: Load, hours: u32) -> (f64, bool) {
    let mut alone = Watched::new(volume, Some(load), 1);
    let mut target = Watched::new(volume, Some(load), 1);
    // Both targets are disturbed by the measurement before the watch.
    watch(&mut alone, 0);
    let (_, fit) = watch(&mut target, hours);
    let before = alone.others();
    for at in [&mut alone, &mut target] {
        at.wait(f64::from(hours) * 3600.0 - at.counters().unwrap().at).unwrap();
    }
    let [with, without] = [&target, &alone].map(|at| at.others() - before);
    let lost = 1.0 - with as f64 / without as f64;
    println!("{load:?}, {hours} h: {:.2} % lost, {:?}", lost * 100.0, fit.spent());
    (lost, fit.spent().is_some())
}

/// A load for `active` seconds of each minute.
fn for_seconds(active: u64, think_us: u64) -> Load {
    Load { active, period: 60, ..Load::all_the_time(think_us) }
}

#[test]
fn other_programs_lose_no_more_than_the_duty() {
    let volume = volume(100, 1000, 400_000, 100);
    // Loads that use up the credits, that do not, that are tiny, and that need credits in bursts.
    for (load, runs_out) in [
        (Load::all_the_time(4000), true),
        (Load::all_the_time(20_000), false),
        (Load::all_the_time(500_000), true),
        (for_seconds(5, 20_000), false),
        (for_seconds(10, 2000), false),
    ] {
        let (lost, spent) = lost(volume, load, 2);
        assert!(lost <= 0.02 && spent == runs_out, "{load:?}: {lost}, {spent}");
    }
}

#[test]
fn no_credits_are_invented() {
    // The rate of this volume never falls: only a lower bound of its credits is reported.
    let even = parse(
        "even",
        "kind: cloud\ncapacity: 200GB\niops: 3000\nbandwidth: 134217728\nlatency: 353us\njitter: 120us\n",
    );
    let mut target = SimTarget::new(even.build(1), "even", even.capacity(), 512);
    let budget = Budget::QUICK.with_write_limit(8 << 30);
    let mut run = Run::new(&budget, target.info().clone());
    run.watch_hours = 4;
    measure(&mut target, &budget, &mut run, &mut |_, _| Ok(())).unwrap();
    let credits = fit(&run).unwrap().credits.unwrap();
    assert!(credits.spent.is_none() && credits.held_seconds > 100.0, "{credits:?}");
    assert!(!fit(&run).unwrap().lasting.write_iops);
    assert!(run.written() <= 8 << 30, "{}", run.written());
    // These disks cannot have credits, so they are not watched.
    for name in ["nvme-2018", "samsung-850-pro", "hdd-7200rpm", "i3en.3xlarge"] {
        let spec = DiskSpec::resolve(name).unwrap();
        let mut target = SimTarget::new(spec.build(1), name, spec.capacity(), spec.sector() as u32);
        let (run, fit) = watch(&mut target, 24);
        assert!(run.probes.is_empty() && fit.credits.is_none(), "{name}: {:?}", fit.credits);
    }
}

#[test]
fn an_interrupted_watch_is_resumed() {
    let volume = volume(300, 3000, 900_000, 100);
    let mut run = Run::new(&Budget::QUICK, TargetInfo::default());
    run.watch_hours = 1;
    // Each measurement begins with all credits.
    for probes in [40, usize::MAX] {
        let mut target = Watched::new(volume, None, 1);
        run.target = target.info().clone();
        let ended = measure(&mut target, &Budget::QUICK, &mut run, &mut |run, _| {
            if run.probes.len() < probes { Ok(()) } else { Err(Error::Interrupted) }
        });
        assert_eq!(ended.is_err(), probes == 40);
        let fit = fit(&run).unwrap();
        let spent = fit.spent();
        assert_eq!(spent.is_some(), probes != 40, "{spent:?}");
        if let Some(spent) = spent {
            let left = target.credits(spent.left_at);
            assert!((spent.left / left - 1.0).abs() < 0.1, "{left}: {spent:?}");
        }
    }
}

/// `cargo test --release -p forebay-tune --test truth watched -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn volumes_of_all_sizes_watched() {
    let gp2 = [33, 100, 200, 334, 500].map(|gib: u64| ((gib * 3).max(100), 3000, 5_400_000));
    let azure = [120, 240, 500, 1100, 2300].map(|iops| (iops, 3500, (3500 - iops) * 1800));
    let (mut all, mut bad) = (0, Vec::new());
    for (iops, burst, credits) in gp2.into_iter().chain(azure) {
        for percent in STATES {
            for seed in 1..=3 {
                all += 1;
                bad.extend(wrong_figures(volume(iops, burst, credits, percent), None, 2, seed));
            }
        }
    }
    let volume = volume(300, 3000, 5_400_000, 100);
    for think_us in [300, 700, 1500, 3000, 9000, 100_000] {
        for load in
            [Load::all_the_time(think_us), for_seconds(5, think_us), for_seconds(30, think_us)]
        {
            let (lost, _) = lost(volume, load, 6);
            all += 1;
            bad.extend((lost > 0.02).then(|| format!("{load:?}: {lost}")));
        }
    }
    println!("{} of {all} right", all - bad.len());
    assert!(bad.is_empty(), "{bad:#?}");
}

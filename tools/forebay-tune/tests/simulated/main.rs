//! Tuning simulated disks, whose truth is known.
#![expect(clippy::unwrap_used, reason = "also outside of test functions")]

mod curves;
mod tuned;

use forebay::properties::{Measured, Properties};
use forebay_config::Source;
use forebay_core::{DiskModel, DiskRates, GroupConfig, IoGroup, Op, Outcome, Policy, Time};
use forebay_sim::disk::{Command, SimDisk};
use forebay_sim::spec::DiskSpec;
use forebay_tune::verdicts::verdicts;
use forebay_tune::{Budget, Error, Fit, Run, SimTarget, Target, TargetInfo, files, fit, measure};
use tuned::{FOUR, assert_near, tune};

fn assert_figures(fit: &Fit, truth: &DiskRates, within: f64) {
    let pairs = [
        ("read iops", fit.read_iops.value, truth.read_iops),
        ("write iops", fit.write_iops.value, truth.write_iops),
        ("read bandwidth", fit.read_bandwidth.value, truth.read_bandwidth),
        ("write bandwidth", fit.write_bandwidth.value, truth.write_bandwidth),
    ];
    for (what, found, truth) in pairs {
        assert_near(what, found, truth as f64, within);
    }
}

#[test]
fn the_figures_of_an_ideal_disk() {
    for (budget, within) in [(Budget::QUICK, 0.10), (Budget::STANDARD, 0.05)] {
        let (run, fit, truth, base) = tune(FOUR, &budget, 1);
        assert_figures(&fit, &truth, within);
        assert_eq!(fit.read_knee.requests, Some(4));
        // it has no head, so requests in sequence are no faster
        let Measured { read, write, .. } = &files::properties(&[(&run, &fit)]).disks[0].measured;
        for (direction, truth) in [(read, truth.read_iops), (write, truth.write_iops)] {
            let found = direction.sequential_iops.unwrap() as f64;
            assert_near("iops in sequence", found, truth as f64, within);
        }
        assert_near("base latency", fit.base_latency_us * 1e3, base.as_nanos() as f64, 0.02);
        assert!(run.written() <= budget.written_max, "{}", run.written());
    }
}

#[test]
fn a_rate_that_was_not_seen_is_an_error_and_not_a_rate_of_zero() {
    let spec = DiskSpec::parse(&Source::new("disk.yaml", FOUR)).unwrap();
    for limit in [34 << 20, 36 << 20] {
        let budget = Budget::QUICK.with_write_limit(limit);
        let mut target = SimTarget::new(spec.build(1), "disk", spec.capacity(), 512);
        let mut run = Run::new(&budget, target.info().clone());
        measure(&mut target, &budget, &mut run, &mut |_, _| Ok(())).unwrap();
        let error = fit(&run).unwrap_err().to_string();
        assert!(error.contains(&format!("the write limit of {limit} bytes")), "{error}");
    }
}

#[test]
fn an_end_on_the_way_to_where_a_run_was_loses_nothing_of_it() {
    let spec = DiskSpec::parse(&Source::new("disk.yaml", FOUR)).unwrap();
    let measure_phases = |run: &mut Run, count: usize| {
        let mut target = SimTarget::new(spec.build(1), "disk", spec.capacity(), 512);
        let (known, mut begun) = (run.phases.len(), 0);
        let ended = measure(&mut target, &Budget::QUICK, run, &mut |run, _| {
            // what is written down at such a moment, and found after a power cut
            assert!(run.phases.is_empty() || run.phases.len() >= known, "{}", run.phases.len());
            begun += 1;
            if begun > count { Err(Error::Interrupted) } else { Ok(()) }
        });
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    };
    let mut run = Run::new(&Budget::QUICK, TargetInfo::default());
    measure_phases(&mut run, 40);
    let mut again = run.clone();
    measure_phases(&mut again, 0);
    assert_eq!(again, run);
    measure_phases(&mut again, 1);
    assert_eq!(again.phases[1..], run.phases[1..]);
    measure_phases(&mut again, 3);
    assert!(again.phases.len() > run.phases.len(), "{}", again.phases.len());
    // as one whose credits are looked for now: it can be gone on with
    again.complete = true;
    measure_phases(&mut again, 1);
    assert!(!again.complete);
}

/// A solid state disk that states sectors of 512 bytes.
fn flash(physical_sector: u32) -> String {
    format!(
        "
kind: flash
read_command: 5us
write_command: 8us
bandwidth: 2000000000
read_latency: 20us
write_latency: 10us
dies: 32
page: 16kB
page_read: 60us
program_bandwidth: 1500000000
suspend: 50us
write_buffer: 4MB
physical_sector: {physical_sector}
"
    )
}

#[test]
fn the_sector_of_disks_that_state_512() {
    for physical_sector in [512, 4096, 16384] {
        for budget in [Budget::QUICK, Budget::STANDARD] {
            let (_, fit, ..) = tune(&flash(physical_sector), &budget, 3);
            let sector = fit.sector;
            assert_eq!(sector.measured(), physical_sector, "{sector:?} {:?}", fit.write.random);
            assert_eq!(sector.disagrees(), physical_sector != 512);
        }
    }
}

#[test]
fn the_saturation_length_with_parallelism_enough() {
    for (bandwidth, saturation) in [(500e6, 64 << 10), (1e9, 128 << 10), (8e9, 1 << 20)] {
        let disk = FOUR.replace("bandwidth: 300000000", &format!("bandwidth: {bandwidth:.0}"));
        let disk = disk.replace("write_latency: 250us", "write_latency: 500us");
        for budget in [Budget::QUICK, Budget::STANDARD] {
            let (_, fit, ..) = tune(&disk, &budget, 1);
            let found = [fit.read.saturation.bytes, fit.write.saturation.bytes];
            assert_eq!(found, [Some(saturation); 2], "{:?}", fit.read.stream);
        }
    }
}

#[test]
fn figures_and_knee_of_disks_of_many_kinds() {
    for preset in ["four-channels", "gp3", "samsung-850-pro"] {
        let spec = DiskSpec::resolve(preset).unwrap();
        let disk = spec.build(7);
        let truth = disk.rates();
        let mut target = SimTarget::new(disk, preset, spec.capacity(), spec.sector() as u32);
        let mut run = Run::new(&Budget::QUICK, target.info().clone());
        measure(&mut target, &Budget::QUICK, &mut run, &mut |_, _| Ok(())).unwrap();
        let fit = fit(&run).unwrap();
        eprintln!(
            "{preset}: {:?} {:?} {:?} {:?} truth {truth:?}",
            fit.read_iops, fit.write_iops, fit.read_bandwidth, fit.write_bandwidth
        );
        let known = fit.read_knee.requests.unwrap();
        let does = |depth: u32| {
            let step = fit.read_knee.steps.iter().find(|step| step.depth == depth);
            step.map_or(0.0, |step| step.rate) / truth.read_iops as f64
        };
        assert!(does(known) >= 0.95 && does(known / 2) < 0.95, "{preset}: {known}");
        assert_figures(&fit, &truth, 0.10);
    }
}

#[test]
fn five_runs_agree() {
    let runs: Vec<Fit> =
        (1..=5).map(|seed| tune(&flash(4096), &Budget::STANDARD, seed).1).collect();
    let figures: [fn(&Fit) -> f64; 4] = [
        |fit| fit.read_iops.value,
        |fit| fit.write_iops.value,
        |fit| fit.read_bandwidth.value,
        |fit| fit.write_bandwidth.value,
    ];
    for figure in figures {
        let values: Vec<f64> = runs.iter().map(figure).collect();
        let mean = values.iter().sum::<f64>() / 5.0;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 4.0;
        assert!(variance.sqrt() <= mean * 0.03, "{values:?}");
    }
}

/// Slow, so that an hour of it is soon simulated.
const SLOW_CLOUD: &str = "
kind: cloud
iops: 500
bandwidth: 50000000
latency: 10ms
";

#[test]
fn a_disk_that_slows_down_after_half_an_hour_is_not_called_steady_before() {
    let disk = format!("{SLOW_CLOUD}faults: [{{kind: slow, from: 30m, percent: 93}}]\n");
    for budget in [Budget::QUICK, Budget::STANDARD] {
        let (_, fit, ..) = tune(&disk, &budget, 1);
        assert!(!fit.read_steadiness.is_known() && !fit.write_steadiness.is_known());
    }
    let (run, fit, truth, _) = tune(&disk, &Budget::THOROUGH, 1);
    assert!(fit.read_steadiness.is_known(), "{:?}", fit.read_steadiness);
    assert!(run.phases.last().unwrap().samples.began > 35.0 * 60.0);
    assert_near("what lasts", fit.read_iops.value, truth.read_iops as f64 * 0.93, 0.02);
    assert_near("excess at first", fit.read_steadiness.burst_excess, 0.075, 0.2);
}

#[test]
fn burst_credits_are_recognised() {
    for credits in [40_000, 100_000, 180_000] {
        let disk = format!(
            "
kind: cloud
iops: 300
burst_iops: 3000
burst_credits: {credits}
bandwidth: 134217728
latency: 353us
"
        );
        let (_, fit, truth, _) = tune(&disk, &Budget::STANDARD, 1);
        let burst = fit.read_steadiness.burst.or(fit.write_steadiness.burst);
        let burst = burst.unwrap_or_else(|| panic!("{credits}: {:?}", fit.read_steadiness.trace));
        assert_near("burst", burst.high, 3000.0, 0.1);
        assert_near("after it", burst.low, 300.0, 0.1);
        assert_near("read iops", fit.read_iops.value, truth.read_iops as f64, 0.05);
    }
    let (_, fit, ..) = tune(SLOW_CLOUD, &Budget::STANDARD, 1);
    assert_eq!((fit.read_steadiness.burst, fit.write_steadiness.burst), (None, None));
}

#[test]
fn either_file_alone_describes_the_disk() {
    let (run, fit, truth, _) = tune(&flash(4096), &Budget::QUICK, 1);
    let disks = [(&run, &fit)];
    let written = files::properties(&disks);
    let seastar = Properties::parse("io-properties.yaml", &written.to_yaml()).unwrap();
    assert_near("read iops", seastar.disks[0].read_iops as f64, truth.read_iops as f64, 0.1);
    assert_eq!(seastar.disks[0].physical_block_size, Some(4096));
    let text = files::forebay_yaml(&written, "io-properties.yaml");
    let known = Properties::parse("forebay.yaml", &text).unwrap();
    assert_eq!(known, written, "what is written is read");
    let disk = &known.disks[0];
    assert!(disk.measured.read.cost.len() > 8, "{text}");
    assert_near(
        "base",
        disk.measured.base_latency.unwrap().as_secs_f64() * 1e6,
        fit.base_latency_us,
        0.01,
    );
    let model = disk.model().unwrap();
    let rate = |op, bytes| 1e9 / model.cost(op, bytes).as_nanos_ceil() as f64;
    assert_near("small reads", rate(Op::Read, 4096), disk.read_iops as f64, 0.01);
    let bulk = rate(Op::Write, 1 << 20) * f64::from(1 << 20);
    assert_near("large writes", bulk, disk.write_bandwidth as f64, 0.02);
    let between = fit.read.random.iter().find(|point| point.bytes == 16384).unwrap().rate;
    assert_near("reads of 16 KiB", rate(Op::Read, 16384), between, 0.1);
}

#[test]
fn a_run_can_be_gone_on_with_and_fitted_again() {
    let (whole, fit_of_whole, ..) = tune(FOUR, &Budget::QUICK, 1);
    let text = Run::to_json(std::slice::from_ref(&whole)).unwrap();
    let again = Run::parse("run.json", &text).unwrap().remove(0);
    assert_eq!(fit(&again).unwrap(), fit_of_whole);

    let mut half = Run { complete: false, ..whole.clone() };
    half.phases.truncate(30);
    assert!(fit(&half).is_err());
    let spec = DiskSpec::parse(&Source::new("disk.yaml", FOUR)).unwrap();
    let mut target = SimTarget::new(spec.build(1), "disk", spec.capacity(), 512);
    measure(&mut target, &Budget::QUICK, &mut half, &mut |_, _| Ok(())).unwrap();
    assert!(half.complete);
    assert_eq!(half.phases.len(), whole.phases.len());
    assert_eq!(half.phases[1..30], whole.phases[1..30], "taken over");
    assert!(half.written() <= Budget::QUICK.written_max);
}

#[test]
fn the_verdicts_say_what_was_found() {
    let (run, fit, ..) = tune(&flash(4096), &Budget::QUICK, 1);
    let texts: Vec<String> = verdicts(&run, &fit).into_iter().map(|verdict| verdict.text).collect();
    let said = |words: &str| texts.iter().any(|text| text.contains(words));
    assert!(said("states sectors of 512 bytes, but behaves as if they had 4096"), "{texts:?}");
    assert!(said("in flight it reaches 95 % of its highest rate"), "{texts:?}");
    assert!(said("A write buffer of more than 17"), "{texts:?}");
}

#[test]
fn that_discards_were_not_measured_is_said() {
    let (run, fit, ..) = tune(FOUR, &Budget::QUICK, 1);
    let says = |fit: &Fit| {
        let texts = verdicts(&run, fit).into_iter().map(|verdict| verdict.text);
        texts.into_iter().any(|text| text.starts_with("The cost of discards is unknown"))
    };
    assert!(!says(&fit) && says(&Fit { discard: None, ..fit.clone() }), "{:?}", fit.discard);
}

#[test]
fn a_p99_that_is_higher_with_fewer_requests_in_flight_is_doubted() {
    let (run, mut fit, ..) = tune(FOUR, &Budget::QUICK, 1);
    let doubts = |fit: &Fit| {
        let all = verdicts(&run, fit).into_iter();
        all.filter(|verdict| verdict.warns && verdict.text.contains("is doubtful")).count()
    };
    assert_eq!(doubts(&fit), 0, "{:?}", fit.below_knee);
    let [fewer, more] = &mut fit.below_knee[..] else { panic!("{:?}", fit.below_knee) };
    assert_eq!((fewer.percent, more.percent), (70, 90));
    fewer.p99_us = more.p99_us * 1.2;
    assert_eq!(doubts(&fit), 1);
}

#[test]
fn a_program_that_answers_for_the_disk_is_the_first_verdict() {
    let (mut run, fit, ..) = tune(FOUR, &Budget::QUICK, 1);
    let mut first = |kind: &str| {
        run.target.filesystem = kind.into();
        verdicts(&run, &fit).remove(0)
    };
    let said = first("fuse.bindfs");
    assert!(said.warns && said.text.contains("(fuse.bindfs)"), "{said:?}");
    assert!(said.text.contains("Measure the underlying directory"), "{said:?}");
    assert!(!first("xfs").text.contains("program"));
    assert!(first("overlay").text.contains("in memory"));
}

#[test]
fn the_disk_time_of_flushes_is_what_they_take_from_others() {
    for budget in [Budget::QUICK, Budget::STANDARD] {
        // one of four channels for 250 us
        let (_, fit, ..) = tune(FOUR, &budget, 1);
        assert_near("flush of an ideal disk", fit.flush_us.unwrap(), 62.5, 0.1);
        assert_near("the same alone", fit.flush.unwrap().mean, 250.0, 0.02);
        // the controller is busy as for a write without bytes
        let disk = flash(4096).replace("write_command: 8us", "write_command: 40us");
        let (_, fit, ..) = tune(&disk, &budget, 1);
        assert_near("flush of a flash disk", fit.flush_us.unwrap(), 40.0, 0.1);
    }
}

#[test]
fn the_disk_time_of_discards_by_command_and_by_bytes() {
    for (command_us, bandwidth) in [(20.0, 20e9), (100.0, 50e9), (1000.0, 5e9)] {
        let disk = flash(4096);
        let disk =
            format!("{disk}discard_command: {command_us}us\ndiscard_bandwidth: {bandwidth:.0}\n");
        for (budget, within) in [(Budget::QUICK, 0.25), (Budget::STANDARD, 0.1)] {
            let (_, fit, ..) = tune(&disk, &budget, 1);
            let found = fit.discard.unwrap();
            assert_near("command", found.command_us, command_us, within);
            assert_near("GiB", found.gib_us, f64::from(1 << 30) / bandwidth * 1e6, within);
        }
    }
}

/// The base latency that was measured is what the scheduler needs to use a slow disk.
#[test]
fn the_scheduler_uses_a_slow_disk() {
    let (_, fit, truth, _) = tune(SLOW_CLOUD, &Budget::QUICK, 1);
    assert_near("base latency", fit.base_latency_us, 10_000.0, 0.05);
    let rates = DiskRates {
        read_iops: fit.read_iops.value as u64,
        write_iops: fit.write_iops.value as u64,
        read_bandwidth: fit.read_bandwidth.value as u64,
        write_bandwidth: fit.write_bandwidth.value as u64,
    };
    let Policy::PaceWindow { latency_goal, .. } = Policy::pace_window() else {
        panic!("the default policy is pace and window");
    };
    let base_latency = Some(std::time::Duration::from_secs_f64(fit.base_latency_us / 1e6));
    let model = DiskModel::from_rates(&rates).unwrap();
    let group =
        IoGroup::new(GroupConfig::new(model, Policy::PaceWindow { latency_goal, base_latency }));
    let spec = DiskSpec::parse(&Source::new("disk.yaml", SLOW_CLOUD)).unwrap();
    let done = reads_through(&group, &mut *spec.build(1), 20);
    assert!(done as f64 >= 0.95 * 20.0 * truth.read_iops as f64, "{done} in 20 s");
}

/// Small reads done in this many seconds, with 64 asked for at any time.
fn reads_through(group: &IoGroup, disk: &mut dyn SimDisk, seconds: u64) -> u64 {
    let mut queue = group.join().unwrap();
    let class = group.add_class(None, 100).unwrap();
    let (mut now, mut id, mut done) = (Time::ZERO, 0, 0);
    let mut running = std::collections::HashMap::new();
    for _ in 0..64 {
        queue.enqueue(now, class, Op::Read, 4096).unwrap();
    }
    while now < Time::from_nanos(seconds * 1_000_000_000) {
        while let Some(ticket) = queue.poll_dispatch(now) {
            id += 1;
            running.insert(id, ticket);
            disk.submit(now, id, Command { op: Op::Read, offset: id * 4096, len: 4096 });
        }
        let next = [disk.next_event(), queue.poll_timeout(now)].into_iter().flatten().min();
        now = next.unwrap().max(now.plus_nanos(1));
        while let Some(finished) = disk.poll_completion(now) {
            let ticket = running.remove(&finished.id).unwrap();
            queue.complete(now, ticket, Outcome::Done).unwrap();
            queue.enqueue(now, class, Op::Read, 4096).unwrap();
            done += 1;
        }
    }
    done
}

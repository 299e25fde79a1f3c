//! Disks with faults.

use forebay_core::{Op, Time};
use forebay_sim::disk::{Command, Completion, SimDisk, Status};

use crate::closed_loop::{Load, disk, next, run};

/// One read at a time, 100 us each, and no bus to speak of.
const DISK: &str = "kind: ideal\nchannels: 1\nread_latency: 100us\nwrite_latency: 100us\n\
                    bandwidth: 100000000000\nfaults:\n";

fn with(fault: &str) -> Box<dyn SimDisk> {
    disk(&format!("{DISK}- {fault}\n")).build(1)
}

fn micros(at: u64) -> Time {
    Time::from_nanos(at * 1000)
}

fn read(disk: &mut dyn SimDisk, at: u64, id: u64, offset: u64) {
    disk.submit(micros(at), id, Command { op: Op::Read, offset, len: 4096 });
}

fn done(disk: &mut dyn SimDisk) -> (u64, u64) {
    let Completion { id, at, .. } = next(disk);
    (id, at.as_nanos() / 1000)
}

#[test]
fn a_slow_disk_takes_longer_for_what_is_under_way_too() {
    let mut disk = with("{kind: slow, from: 50us, to: 150us, percent: 30}");
    read(&mut *disk, 0, 0, 0);
    read(&mut *disk, 0, 1, 0);
    // 50 us at full speed, 100 us for 30 us of work, and 20 us at full speed.
    assert_eq!(done(&mut *disk), (0, 170));
    assert_eq!(done(&mut *disk), (1, 270));
}

#[test]
fn a_disk_below_its_model_states_the_rates_of_the_model() {
    let text = include_str!("../../presets/four-channels.yaml");
    let slower = disk(&format!("{text}faults:\n- {{kind: slow, percent: 80}}\n"));
    assert_eq!(slower.build(1).rates().read_iops, 8000);
    let seen = run(&slower, Load { op: Op::Read, len: 4096, depth: 16 });
    assert!(seen.iops.abs_diff(6400) <= 1, "{seen:?}");
    assert!(seen.mean_micros.abs_diff(2500) <= 1, "{seen:?}");
    let twice = "faults:\n- {kind: slow, percent: 80}\n- {kind: slow, percent: 50}\n";
    let seen = run(&disk(&format!("{text}{twice}")), Load { op: Op::Read, len: 4096, depth: 16 });
    assert!(seen.iops.abs_diff(3200) <= 1, "{seen:?}");
}

#[test]
fn a_bad_range_fails_and_takes_its_time() {
    let mut disk = with("{kind: error, offset: 8kB, length: 4kB}");
    for (id, offset) in [(0, 4096), (1, 8192), (2, 12288), (3, 10240)] {
        read(&mut *disk, 0, id, offset);
    }
    disk.submit(Time::ZERO, 4, Command { op: Op::Flush, offset: 8192, len: 0 });
    let answers: Vec<Completion> = (0..5).map(|_| next(&mut *disk)).collect();
    let failed: Vec<bool> = answers.iter().map(|a| a.status == Status::Failed).collect();
    assert_eq!(failed, [false, true, false, true, false]);
    assert_eq!(answers[1].at, micros(200));
}

#[test]
fn a_disk_stands_still_and_goes_on() {
    let mut disk = with("{kind: hang, from: 50us, to: 1ms}");
    read(&mut *disk, 0, 0, 0);
    read(&mut *disk, 500, 1, 0);
    assert_eq!(disk.poll_completion(micros(900)), None);
    assert_eq!(done(&mut *disk), (0, 1050));
    assert_eq!(done(&mut *disk), (1, 1150));
}

#[test]
fn a_disk_that_hangs_for_ever_has_no_next_event() {
    let mut disk = with("{kind: hang, from: 150us}");
    read(&mut *disk, 0, 0, 0);
    read(&mut *disk, 0, 1, 0);
    assert_eq!(done(&mut *disk), (0, 100));
    assert_eq!(disk.next_event(), None);
    assert_eq!(disk.poll_completion(micros(1 << 40)), None);
}

#[test]
fn a_range_hangs_and_the_rest_does_not() {
    let mut disk = with("{kind: hang, from: 0, to: 1ms, offset: 0, length: 4kB}");
    read(&mut *disk, 0, 0, 0);
    read(&mut *disk, 0, 1, 4096);
    read(&mut *disk, 950, 2, 4096);
    assert_eq!(done(&mut *disk), (1, 100));
    assert_eq!(done(&mut *disk), (2, 1050));
    assert_eq!(done(&mut *disk), (0, 1150));
    let mut disk = with("{kind: hang, length: 4kB}");
    read(&mut *disk, 0, 0, 0);
    assert_eq!(disk.next_event(), None);
}

#[test]
fn late_polls_see_what_timely_ones_do() {
    let faults = "{kind: hang, from: 0, to: 1ms, offset: 0, length: 4kB}\n\
                  - {kind: slow, from: 200us, percent: 50}";
    let answers = |polls_on_time: bool| {
        let mut disk = with(faults);
        (0..5).for_each(|id| read(&mut *disk, 0, id, id * 4096));
        let mut seen = Vec::new();
        if polls_on_time {
            (0..5).for_each(|_| seen.push(next(&mut *disk)));
        } else {
            while let Some(finished) = disk.poll_completion(micros(1_000_000)) {
                seen.push(finished);
            }
        }
        seen
    };
    assert_eq!(answers(true).len(), 5);
    assert_eq!(answers(true), answers(false));
}

#[test]
fn answers_come_out_of_order_and_none_is_lost() {
    let mut disk = with("{kind: reorder, spread: 1ms}");
    (0..100).for_each(|id| read(&mut *disk, 0, id, 0));
    let answers: Vec<(u64, u64)> = (0..100).map(|_| done(&mut *disk)).collect();
    assert!(answers.is_sorted_by_key(|&(_, at)| at), "{answers:?}");
    assert!(answers.iter().all(|&(id, at)| (100 * (id + 1)..100 * (id + 11)).contains(&at)));
    assert!(!answers.is_sorted(), "{answers:?}");
    let mut ids: Vec<u64> = answers.iter().map(|&(id, _)| id).collect();
    ids.sort_unstable();
    assert!(ids.into_iter().eq(0..100));
    assert_eq!(disk.next_event(), None);
}

#[test]
fn a_command_fails_if_a_part_of_it_does() {
    let folder = std::env::temp_dir().join(format!("forebay-raid0-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let member = format!("{DISK}- {{kind: error, offset: 64kB, length: 4kB}}\n");
    std::fs::write(folder.join("bad.yaml"), member).unwrap();
    let whole = "kind: raid0\nchunk: 64kB\nmembers: [four-channels, bad.yaml]\n";
    std::fs::write(folder.join("whole.yaml"), whole).unwrap();
    let path = folder.join("whole.yaml").display().to_string();
    let spec = forebay_sim::spec::DiskSpec::resolve(&path).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(spec.capacity(), 128 << 30);
    let mut disk = spec.build(1);
    // Chunks 0 and 2 are on the first member, 1 and 3 on the second, whose second chunk is bad.
    let len = 128 << 10;
    disk.submit(Time::ZERO, 7, Command { op: Op::Read, offset: 0, len });
    disk.submit(Time::ZERO, 8, Command { op: Op::Read, offset: len, len });
    let answers = [next(&mut *disk), next(&mut *disk)].map(|done| (done.id, done.status));
    assert_eq!(answers, [(7, Status::Done), (8, Status::Failed)]);
    disk.submit(micros(10_000), 9, Command { op: Op::Flush, offset: 0, len: 0 });
    assert_eq!(next(&mut *disk).id, 9);
    assert_eq!(disk.next_event(), None);
}

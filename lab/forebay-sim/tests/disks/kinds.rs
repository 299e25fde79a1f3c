//! What each kind of disk does under a closed loop, against what its parameters say.

use forebay_core::{Op, Time};
use forebay_sim::disk::Command;
use forebay_sim::spec::DiskSpec;

use crate::closed_loop::{Load, disk, next, run};

#[test]
fn four_channels_do_what_littles_law_says() {
    let disk = DiskSpec::resolve("four-channels").unwrap();
    for (depth, iops, micros) in
        [(1, 2000, 500), (2, 4000, 500), (4, 8000, 500), (8, 8000, 1000), (64, 8000, 8000)]
    {
        let seen = run(&disk, Load { op: Op::Read, len: 4096, depth });
        assert!(seen.iops.abs_diff(iops) <= 1, "depth {depth}: {seen:?}");
        assert!(seen.mean_micros.abs_diff(micros) <= 1, "depth {depth}: {seen:?}");
    }
    let writes = run(&disk, Load { op: Op::Write, len: 4096, depth: 16 });
    assert!(writes.iops.abs_diff(16_000) <= 1, "{writes:?}");
    let large = run(&disk, Load { op: Op::Read, len: 128 << 10, depth: 16 });
    assert!((large.iops * (128 << 10)).abs_diff(300_000_000) < 300_000, "{large:?}");
}

#[test]
fn the_rates_of_four_channels_are_what_it_does() {
    let rates = DiskSpec::resolve("four-channels").unwrap().build(1).rates();
    assert_eq!((rates.read_iops, rates.write_iops), (8000, 16_000));
    assert_eq!((rates.read_bandwidth, rates.write_bandwidth), (300_000_000, 300_000_000));
}

/// Runs 4 KiB reads, and gives their rate alongside the one that the disk states.
fn reads(name: &str, depth: u64) -> (u64, u64) {
    let disk = DiskSpec::resolve(name).unwrap();
    let seen = run(&disk, Load { op: Op::Read, len: 4096, depth });
    (seen.iops, disk.build(1).rates().read_iops)
}

#[test]
fn every_preset_does_about_what_its_rates_say() {
    for name in DiskSpec::presets() {
        let disk = DiskSpec::resolve(name).unwrap();
        assert!(disk.source().len() > 10, "{name}");
        if name == "gp2" {
            continue; // Its rates are those without credits, see below.
        }
        let rates = disk.build(1).rates();
        for (op, len, stated) in [
            (Op::Read, 4096, rates.read_iops),
            (Op::Write, 4096, rates.write_iops),
            (Op::Read, 128 << 10, rates.read_bandwidth >> 17),
        ] {
            let depth = if name == "hdd-7200rpm" { 32 } else { 1024 };
            let seen = run(&disk, Load { op, len, depth });
            let random_transfers = name == "hdd-7200rpm" && len > 4096;
            let near = seen.iops.abs_diff(stated) * 100 <= stated * 8;
            assert!(near || random_transfers, "{name} {op:?} {len}: {stated} stated, {seen:?}");
        }
    }
}

#[test]
fn small_reads_of_2018_are_not_saturated_at_140_and_large_writes_are_below_20() {
    let (at_140, most) = reads("nvme-2018", 140);
    assert!((70..95).contains(&(at_140 * 100 / most)), "{at_140} of {most}");
    let disk = DiskSpec::resolve("nvme-2018").unwrap();
    let write = |depth| run(&disk, Load { op: Op::Write, len: 128 << 10, depth }).iops;
    assert!((3940..3960).contains(&write(20)), "{}", write(20));
    assert_eq!(write(20), write(40));
}

#[test]
fn a_stripe_of_four_writes_four_times_as_fast() {
    let write = |name| {
        let disk = DiskSpec::resolve(name).unwrap();
        run(&disk, Load { op: Op::Write, len: 128 << 10, depth: 512 }).iops << 17
    };
    let (one, four) = (write("nvme-2025"), write("raid0-4-nvme"));
    assert!(one.abs_diff(3_220_000_000) < 100_000_000, "{one}");
    assert!((11_500_000_000..13_000_000_000).contains(&four), "{four}");
}

#[test]
fn a_volume_is_fast_while_credits_last() {
    let volume = |credits| {
        disk(&format!(
            "kind: cloud\niops: 300\nburst_iops: 3000\nburst_credits: {credits}\n\
             bandwidth: 134217728\nlatency: 500us\n"
        ))
    };
    let read = Load { op: Op::Read, len: 4096, depth: 32 };
    // The second half of the commands counts.
    assert!(run(&volume(1_000_000), read).iops.abs_diff(3000) <= 3);
    assert!(run(&volume(100), read).iops.abs_diff(300) <= 1);
}

#[test]
fn a_deep_queue_shortens_the_seeks() {
    let (deep, stated) = reads("hdd-7200rpm", 32);
    let (shallow, _) = reads("hdd-7200rpm", 1);
    assert!(deep > shallow * 3 / 2, "{shallow} and {deep}");
    assert!((110..250).contains(&deep) && deep.abs_diff(stated) < 20, "{deep}, {stated} stated");
}

/// Each command begins when the one before it has ended; how long each takes, in microseconds.
fn one_by_one(name: &str, commands: &[(Op, u64, u64)]) -> Vec<u64> {
    let mut disk = DiskSpec::resolve(name).unwrap().build(1);
    let mut now = Time::ZERO;
    let take = |(id, &(op, offset, len)): (usize, &(Op, u64, u64))| {
        disk.submit(now, id as u64, Command { op, offset, len });
        let began = std::mem::replace(&mut now, next(&mut *disk).at);
        now.nanos_since(began) / 1000
    };
    commands.iter().enumerate().map(take).collect()
}

const FLUSH: (Op, u64, u64) = (Op::Flush, 0, 0);
/// At 7200 turns per minute, in microseconds.
const TURN: u64 = 8333;

#[test]
fn a_flush_waits_for_one_turn_of_the_platter_however_much_the_cache_holds() {
    let mut commands: Vec<_> = (0..20).map(|n| (Op::Write, n * 4096, 4096)).collect();
    commands.extend([FLUSH, FLUSH, (Op::Write, 20 * 4096, 4096), FLUSH]);
    let took = one_by_one("hdd-7200rpm", &commands);
    assert!(took[..20].iter().all(|&us| us < 30), "{took:?}");
    assert_eq!([took[20], took[21], took[23]], [TURN, 0, TURN], "nothing was written between two");
    assert_eq!(one_by_one("hdd-7200rpm", &[(Op::Read, 0, 4096), FLUSH])[1], 0);
}

#[test]
fn a_flush_seeks_where_the_head_has_moved_since_the_write() {
    let far = 900 << 30;
    let took = one_by_one("hdd-7200rpm", &[(Op::Write, 0, 4096), (Op::Read, far, 4096), FLUSH]);
    assert!(took[2] > 10_000 && took[2] < 18_000 + TURN, "{took:?}");
}

#[test]
fn a_flush_of_a_stripe_is_as_long_as_that_of_the_slowest_member() {
    let path = std::env::temp_dir().join(format!("forebay-stripe-{}.yaml", std::process::id()));
    std::fs::write(&path, "kind: raid0\nchunk: 1MB\nmembers: [hdd-7200rpm, hdd-7200rpm]\n")
        .unwrap();
    let took = one_by_one(path.to_str().unwrap(), &[(Op::Write, 0, 2 << 20), FLUSH, FLUSH]);
    std::fs::remove_file(&path).unwrap();
    assert!(took[1] > TURN / 2 && took[1] <= TURN && took[2] == 0, "{took:?}");
}

const FLASH: &str = "kind: flash\nread_command: 1us\nwrite_command: 1us\nbandwidth: 4000000000\n\
                     dies: 16\npage: 16kB\npage_read: 50us\nprogram_bandwidth: 500000000\n\
                     write_buffer: 1MB\n";

#[test]
fn a_write_buffer_hides_programming_until_it_is_full() {
    let mut flash = disk(FLASH).build(1);
    let write = |n: u64| Command { op: Op::Write, offset: n << 17, len: 128 << 10 };
    for n in 0..12 {
        flash.submit(Time::ZERO, n, write(n));
    }
    let took: Vec<u64> = (0..12).map(|_| next(&mut *flash).at.as_nanos() / 1000).collect();
    // 1 us and 128 KiB at 4 GB/s each; then 128 KiB at 500 MB/s.
    assert_eq!(took[0], 33);
    assert!(took[7] < 300, "{took:?}");
    assert!((260..265).contains(&(took[11] - took[10])), "{took:?}");
}

#[test]
fn a_part_of_a_sector_is_read_before_it_is_written() {
    let write = |offset, len| {
        let mut flash = disk(FLASH).build(1);
        flash.submit(Time::ZERO, 0, Command { op: Op::Write, offset, len });
        next(&mut *flash).at.as_nanos() / 1000
    };
    assert!(write(4096, 4096) < 3);
    assert!((50..60).contains(&write(4096, 1024)));
    assert!((50..120).contains(&write(1024, 8192)));
}

/// The last of 400 writes of 4 KiB, 1 KiB off the sectors and so far apart, in microseconds.
fn last_of_400(apart: u64, keys: &str) -> u64 {
    let mut flash = disk(&format!("{FLASH}{keys}")).build(1);
    for n in 0..400 {
        let offset = 1024 + n * apart;
        flash.submit(Time::ZERO, n, Command { op: Op::Write, offset, len: 4096 });
    }
    (0..400).map(|_| next(&mut *flash).at.as_nanos() / 1000).max().unwrap()
}

#[test]
fn a_part_of_a_sector_waits_for_the_rest_of_it_where_the_disk_lets_it() {
    const KEPT: &str = "partial_kept: 64kB\npartial_cost: 100us\n";
    // of each pair one part comes with the next write: nothing is read
    assert!(last_of_400(4096, KEPT) < 3_000, "{}", last_of_400(4096, KEPT));
    // or not at all: 768 parts and more waited for in vain, 100 us each
    let in_vain = last_of_400(1 << 20, KEPT);
    assert!((70_000..90_000).contains(&in_vain), "{in_vain}");
    // where nothing waits both parts are read at once
    assert!(last_of_400(4096, "") > last_of_400(4096, KEPT));
}

#[test]
fn a_read_waits_for_what_its_die_programs_where_that_is_not_suspended() {
    let wait = |keys: &str| {
        let mut flash = disk(&FLASH.replace("dies: 16", &format!("dies: 1\n{keys}"))).build(1);
        flash.submit(Time::ZERO, 0, Command { op: Op::Write, offset: 0, len: 64 << 10 });
        flash.submit(Time::ZERO, 1, Command { op: Op::Read, offset: 1 << 30, len: 4096 });
        let done = [next(&mut *flash), next(&mut *flash)];
        done.iter().find(|done| done.id == 1).unwrap().at.as_nanos() / 1000
    };
    // 18 us in the controller and 50 on the die, or behind 64 KiB at 500 MB/s as well
    assert!((65..75).contains(&wait("")), "{}", wait(""));
    let behind = wait("program: 64kB");
    assert!((195..202).contains(&behind), "{behind}");
}

#[test]
fn garbage_collection_and_discards_hold_reads_up() {
    let wait = |keys: &str, first: Command| {
        let mut flash = disk(&format!("{FLASH}{keys}")).build(1);
        flash.submit(Time::ZERO, 0, first);
        flash.submit(Time::ZERO, 1, Command { op: Op::Read, offset: 1 << 30, len: 4096 });
        let done = [next(&mut *flash), next(&mut *flash)];
        done.iter().find(|done| done.id == 1).unwrap().at.as_nanos() / 1000
    };
    let write = Command { op: Op::Write, offset: 0, len: 4096 };
    assert!(wait("", write) < 60);
    let pause = wait("collect_every: 4kB\ncollect_pause: 10ms\n", write);
    assert!((5000..15_100).contains(&pause), "{pause}");
    let discard = Command { op: Op::Discard, offset: 0, len: 32 << 20 };
    let keys = "discard_command: 100us\ndiscard_bandwidth: 1G\n";
    assert!((31_300..31_500).contains(&wait(keys, discard)), "{}", wait(keys, discard));
}

#[test]
fn one_seed_gives_one_run() {
    for name in ["gp3", "samsung-970-pro", "raid0-4-nvme"] {
        let disk = DiskSpec::resolve(name).unwrap();
        let load = Load { op: Op::Write, len: 8192, depth: 33 };
        assert_eq!(format!("{:?}", run(&disk, load)), format!("{:?}", run(&disk, load)));
    }
}

//! Permits for requests that are larger than the disk takes at a time.

use forebay::forebay_core::{DiskModel, DiskTime};
use forebay::{AdmitError, Disk, DiskConfig, DiskRates, Op, Policy, Scheduler};

use crate::executor::block_on;

/// Of which 128 KiB fit into the goal.
const SERVED: DiskRates = DiskRates {
    read_iops: 8_000,
    write_iops: 8_000,
    read_bandwidth: 100_000_000,
    write_bandwidth: 100_000_000,
};

fn lens(part: u64) -> [u64; 8] {
    [1, 4096, part - 1, part, part + 1, 3 * part, 1_250_000, 2_000_000]
}

/// What costs no more than the effective goal, and twice that does.
fn part_of(disk: &Disk) -> u64 {
    let goal = DiskTime::from_nanos(disk.effective_goal().unwrap().as_nanos() as u64);
    let model = DiskModel::from_rates(&SERVED).unwrap();
    let fits = |len: &u64| model.cost(Op::Read, *len) <= goal;
    (9..24).map(|power| 1 << power).take_while(fits).last().unwrap()
}

fn scheduler() -> Scheduler {
    let config = DiskConfig::new("disk", SERVED).policy(Policy::pace_window());
    Scheduler::builder().disk(config).build().unwrap()
}

#[test]
fn a_large_request_has_a_permit_for_each_part_that_the_disk_takes_at_a_time() {
    let scheduler = scheduler();
    let disk = scheduler.disk("disk").unwrap();
    let part_max = part_of(&disk);
    for op in [Op::Read, Op::Write] {
        for len in lens(part_max) {
            let class = scheduler.add_class(&format!("{op:?} {len}"), 100).unwrap();
            let parts = class.admit_for(&disk, op.at(4096), len).in_parts().unwrap();
            let count = len.div_ceil(part_max);
            assert_eq!(parts.size_hint().0 as u64, count, "{len}");
            let mut end = 0;
            for (number, (part, admit)) in parts.enumerate() {
                assert_eq!(part.start, end, "without a gap");
                assert_eq!(part.end - part.start, part_max.min(len - end));
                end = part.end;
                // by threads and by tasks
                if number % 2 == 0 {
                    drop(admit.wait().unwrap());
                } else {
                    drop(block_on(async { admit.await.unwrap() }));
                }
            }
            assert_eq!(end, len);
            let counters = class.permit_counters();
            let index = op.index();
            assert_eq!((counters.operations[index], counters.bytes[index]), (count, len));
            scheduler.remove_class(&class).unwrap();
        }
    }
}

#[test]
fn a_large_request_is_refused_where_it_has_no_parts() {
    let scheduler = scheduler();
    let disk = scheduler.disk("disk").unwrap();
    let part_max = part_of(&disk);
    let class = scheduler.add_class("class", 100).unwrap();
    for len in lens(part_max) {
        match class.admit_for(&disk, Op::Read, len).in_one_part() {
            Ok(admit) => {
                assert!(len <= part_max, "{len}");
                drop(admit.wait().unwrap());
            }
            Err(AdmitError::SeveralParts { most, len: told, .. }) => {
                assert!(told == len && len > part_max && most == part_max, "{len}");
            }
            Err(error) => panic!("{len}: {error}"),
        }
    }
    assert_eq!(class.permit_counters().operations[Op::Read.index()], 4, "none for those refused");
    let none = class.admit_for(&disk, Op::Read, 0).in_parts();
    assert!(matches!(none, Err(AdmitError::ZeroLength { op: Op::Read })));
    let mut flush = class.admit_for(&disk, Op::Flush, 0).in_parts().unwrap();
    assert_eq!(flush.next().map(|(part, _)| part), Some(0..0));
    assert!(flush.next().is_none());
    assert!(class.admit_for(&disk, Op::Flush, 0).in_one_part().is_ok());
}

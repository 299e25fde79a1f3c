//! Runs a loop of the scheduler's hot path, whose instructions `.ci/instructions/run` counts:
//! `counted LOOP THOUSANDS`. Without arguments it names the loops.

#[path = "../../benches/path/mod.rs"]
mod path;
#[path = "../../benches/program/mod.rs"]
mod program;
#[path = "../../benches/turns/mod.rs"]
mod turns;

use std::error::Error;
use std::hint::black_box;

use forebay::{Class, DiskConfig, DiskRates, Op, Policy, Scheduler};
use forebay_capi::admit::{FOREBAY_FOREVER, FOREBAY_READ, forebay_admit, forebay_complete};
use forebay_capi::class::forebay_class_add;
use forebay_capi::code::FOREBAY_OK;
use forebay_capi::scheduler::{forebay_disk, forebay_scheduler_from_rates};
use forebay_core::internals::FairQueueAlone;

use crate::path::{Path, classes, group};
use crate::program::Program;
use crate::turns::Turns;

/// Requests each time.
const REQUESTS: usize = 1_000;

/// A loop that is ready to run. It takes the number of requests.
type Loop = Box<dyn FnMut(usize)>;

/// Makes one; `None` where the scheduler refuses.
type Make = fn() -> Option<Loop>;

const LOOPS: [(&str, Make); 9] = [
    ("fair_queue_alone", fair_queue_alone),
    ("whole_path_1", || whole_path(1)),
    ("whole_path_8", || whole_path(8)),
    ("whole_path_1000", || whole_path(1_000)),
    ("shards_in_turns_2", shards_in_turns),
    ("admit_and_drop_pace_window", admit_and_drop),
    ("admit_and_complete_in_c", admit_and_complete_in_c),
    ("shard_of_a_program_1", || shard_of_a_program(1)),
    ("shard_of_a_program_32", || shard_of_a_program(32)),
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, thousands] = &arguments[..] else {
        LOOPS.iter().for_each(|(name, _)| println!("{name}"));
        return Ok(());
    };
    let (_, make) = LOOPS.iter().find(|(known, _)| known == name).ok_or("no loop of that name")?;
    let mut run = make().ok_or("the loop cannot be made")?;
    for _ in 0..thousands.parse()? {
        run(REQUESTS);
    }
    Ok(())
}

fn fair_queue_alone() -> Option<Loop> {
    let mut queue = FairQueueAlone::new()?;
    Some(Box::new(move |count| {
        black_box(queue.queue_and_drain(count));
    }))
}

fn whole_path(count: usize) -> Option<Loop> {
    let group = group(1)?;
    let mut path = Path::new(&group, classes(&group, count))?;
    Some(Box::new(move |count| {
        black_box(path.run(count));
    }))
}

fn shards_in_turns() -> Option<Loop> {
    let mut turns = Turns::new(2, 8)?;
    Some(Box::new(move |count| {
        black_box(turns.run(count));
    }))
}

fn admit_and_drop() -> Option<Loop> {
    let class = class_of_an_open_disk()?;
    Some(Box::new(move |count| {
        for _ in 0..count {
            assert!(black_box(class.admit(Op::Read, 4096)).is_ok(), "the budget is open");
        }
    }))
}

/// [`admit_and_drop`] through the C API.
fn admit_and_complete_in_c() -> Option<Loop> {
    let disk = forebay_disk {
        size: size_of::<forebay_disk>(),
        name: c"disk".as_ptr(),
        name_len: 4,
        mountpoint: std::ptr::null(),
        mountpoint_len: 0,
        read_iops: 100_000_000,
        write_iops: 100_000_000,
        read_bandwidth: 1_000_000_000_000,
        write_bandwidth: 1_000_000_000_000,
    };
    let (mut scheduler, mut class) = (0, 0);
    // SAFETY: the strings and places are valid during each call.
    let codes = unsafe {
        [
            forebay_scheduler_from_rates(&disk, 1, 0, &mut scheduler),
            forebay_class_add(scheduler, c"class".as_ptr(), 5, 100, &mut class),
        ]
    };
    let is_made = codes == [FOREBAY_OK; 2];
    is_made.then(|| -> Loop {
        Box::new(move |count| {
            for _ in 0..count {
                let mut permit = 0;
                // SAFETY: as above.
                let code = unsafe {
                    forebay_admit(class, FOREBAY_READ, 4096, FOREBAY_FOREVER, &mut permit)
                };
                assert_eq!(code, FOREBAY_OK, "the budget is open");
                assert_eq!(forebay_complete(black_box(permit), 4096), FOREBAY_OK);
            }
        })
    })
}

/// Pace and window hold nobody back.
fn class_of_an_open_disk() -> Option<Class> {
    let rates = DiskRates {
        read_iops: 100_000_000,
        write_iops: 100_000_000,
        read_bandwidth: 1_000_000_000_000,
        write_bandwidth: 1_000_000_000_000,
    };
    let disk = DiskConfig::new("disk", rates).policy(Policy::pace_window());
    Scheduler::builder().disk(disk).build().ok()?.add_class("class", 100).ok()
}

fn shard_of_a_program(depth: usize) -> Option<Loop> {
    let mut program = Program::new(depth);
    Some(Box::new(move |count| program.run(count, || ())))
}

//! What each kind of disk does under a closed loop, against what its parameters say.

mod closed_loop;

use closed_loop::{Load, run};
use forebay_core::Op;
use forebay_sim::spec::DiskSpec;

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

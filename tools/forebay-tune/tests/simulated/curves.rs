//! Large requests and mixes by requests in flight.

use forebay_sim::spec::DiskSpec;
use forebay_tune::{Budget, Mix, Run, SimTarget, Target, fit, measure};

use crate::tuned::{FOUR, assert_near, tune};

#[test]
fn large_requests_and_mixes_are_measured_by_requests_in_flight() {
    for seed in 1..=3 {
        let (run, fit, truth, _) = tune(FOUR, &Budget::QUICK, seed);
        for (steps, bandwidth) in
            [(&fit.large_reads, truth.read_bandwidth), (&fit.large_writes, truth.write_bandwidth)]
        {
            let best = steps.iter().map(|step| step.rate).fold(0.0, f64::max);
            assert_near("large requests", best * 131_072.0, bandwidth as f64, 0.05);
            assert!(steps[1].rate > best * 0.95, "{steps:?}");
        }
        // a read of 500 us leaves the bandwidth idle, a write of 250 us does not
        let ([read, ..], [write, ..]) = (&*fit.large_reads, &*fit.large_writes) else { panic!() };
        assert!(read.rate < write.rate * 0.9, "{read:?} {write:?}");
        let sizes: Vec<u32> = fit.mixes.iter().map(|mix| mix.write_bytes).collect();
        assert!(sizes.contains(&4096) && sizes.contains(&131_072), "{sizes:?}");
        for mix in &fit.mixes {
            assert_eq!(mix.writes.depth * 4, mix.depth);
            assert!(mix.reads.rate > 0.0 && mix.writes.rate > 0.0, "{mix:?}");
        }
        // as many in flight cost a read more alongside large writes than alongside small ones
        let p99 = |bytes: u32| {
            let mut of = fit.mixes.iter().filter(|mix| mix.write_bytes == bytes && mix.depth == 16);
            of.next().unwrap().reads.p99_us
        };
        assert!(p99(131_072) > p99(4096), "{:?}", fit.mixes);
        assert!(run.written() <= Budget::QUICK.written_max);
    }
}

#[test]
fn a_mix_reads_during_writes_to_its_end() {
    let mix = |limit: u64| {
        let spec = DiskSpec::resolve("samsung-970-pro").unwrap();
        let budget = Budget::QUICK.with_write_limit(limit);
        let mut target = SimTarget::new(spec.build(1), "disk", spec.capacity(), 512);
        let mut run = Run::new(&budget, target.info().clone());
        measure(&mut target, &budget, &mut run, &mut |_, _| Ok(())).unwrap();
        fit(&run).unwrap().mixes
    };
    let all = mix(Budget::QUICK.written_max);
    let large: Vec<&Mix> = all.iter().filter(|mix| mix.write_bytes > 4096).collect();
    assert!(large.len() >= 3, "{all:?}");
    // a GB of writes lasts for a moment only
    let few = mix(1 << 30);
    assert!(few.len() < all.len(), "{few:?}");
    for (few, all) in few.iter().zip(&all) {
        assert_near("reads", few.reads.rate, all.reads.rate, 0.1);
    }
}

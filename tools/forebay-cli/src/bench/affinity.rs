//! Which processor a shard runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps the calling thread on one of the processors it may use, the one for thread `index`
/// of `threads`. Where there are not enough, or it is not allowed, the thread stays free.
pub(super) fn pin(index: usize, threads: usize) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    if threads > processors.len() {
        return;
    }
    if let Some(&processor) = processors.get(index) {
        let mut one = CpuSet::new();
        one.set(processor);
        let _ = sched_setaffinity(None, &one);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_kept_on_one_processor_while_there_are_enough() {
        let count = || sched_getaffinity(None).unwrap().count();
        std::thread::spawn(move || {
            let before = count();
            pin(0, before as usize + 1);
            assert_eq!(count(), before);
            pin(0, 1);
            assert_eq!(count(), 1);
        })
        .join()
        .unwrap();
    }
}

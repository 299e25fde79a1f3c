//! Random writes, parts and dropped waiters of a few files. No write may wait for ever.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

use forebay_load::Rng;

use super::dirt::{Dirt, PartRange};
use crate::dirty_limits::{CLASS_MAX, DirtyLimits, HandOver};
use crate::page_cache::page_size;
use crate::sys::lock::Lock;
use crate::wait_list::WaiterId;

fn pick(random: &mut Rng, len: usize) -> usize {
    random.below(len as u64) as usize
}

/// A file whose parts the test has to end.
struct TestFile {
    dirt: Dirt,
    part_len: u64,
    asked: Lock<Vec<PartRange>>,
}

impl TestFile {
    fn ask(&self) {
        while let Some((part, _)) = self.dirt.next_part() {
            self.asked.lock().push(part);
        }
    }

    fn mark(self: &Arc<Self>, range: &Range<u64>, reserved: u64) {
        let listed = || {
            let file: Weak<Self> = Arc::downgrade(self);
            file as Weak<dyn HandOver>
        };
        if self.dirt.mark(range, reserved, listed) {
            self.ask();
        }
    }

    fn end_any(&self, random: &mut Rng) -> bool {
        let mut asked = self.asked.lock();
        if asked.is_empty() {
            return false;
        }
        let at = pick(random, asked.len());
        let part = asked.swap_remove(at);
        drop(asked);
        self.dirt.end_part(&part, None);
        self.ask();
        true
    }
}

impl HandOver for TestFile {
    fn hand_over(self: Arc<Self>) {
        self.dirt.hand_over_for_room(self.part_len);
        self.ask();
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// A write in progress.
struct Write {
    file: Arc<TestFile>,
    range: Range<u64>,
    id: WaiterId,
    woken: Arc<Woken>,
    /// Whether it has reserved room and has not marked its range yet.
    is_reserved: bool,
}

impl Write {
    fn reserved(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Polls like `BufferedWriter::reserve`.
    fn poll(&mut self) {
        self.woken.0.store(false, SeqCst);
        let waker = Waker::from(Arc::clone(&self.woken));
        let dirt = &self.file.dirt;
        if dirt.poll_reserve(self.reserved(), self.id, &waker).is_ready() {
            self.is_reserved = true;
            dirt.leave(self.id);
        } else {
            dirt.hand_over_all(self.file.part_len);
            self.file.ask();
        }
    }

    fn finish(self) {
        self.file.mark(&self.range, self.reserved());
    }
}

fn files(random: &mut Rng) -> Vec<Arc<TestFile>> {
    let limits = Arc::new(DirtyLimits::default());
    let file = |random: &mut Rng| {
        let page = page_size();
        let (part_len, dirty_max) = [
            (16 * page, page),
            (16 * page, 3 * page),
            (16 * page, 16 * page),
            // In this case the limit of the class applies.
            (16 << 20, 2 * CLASS_MAX),
        ][pick(random, 4)];
        let class = limits.class(["one", "two", "three"][pick(random, 3)]);
        let dirt = Dirt::new(class, part_len);
        dirt.set_dirty_max(dirty_max);
        dirt.set_write_back_after([0, 0, page, u64::MAX][pick(random, 4)]);
        Arc::new(TestFile { dirt, part_len, asked: Lock::default() })
    };
    (0..=random.below(4)).map(|_| file(random)).collect()
}

fn begin(random: &mut Rng, files: &[Arc<TestFile>]) -> Write {
    let file = Arc::clone(&files[pick(random, files.len())]);
    let page = page_size();
    let part = file.dirt.part_len() / page;
    let start = random.below(64 * part) * page;
    let most = file.dirt.len_at_once(start, usize::MAX) as u64 / page;
    let len = (1 + random.below(most.max(1))) * page;
    let (range, id, woken) = (start..start + len, WaiterId::new(), Arc::default());
    let is_reserved = file.dirt.try_reserve(len);
    Write { file, range, id, woken, is_reserved }
}

/// The number of writes that still wait after everything else has ended.
fn stuck_after(seed: u64) -> usize {
    let mut random = Rng::new(seed, &[]);
    let files = files(&mut random);
    let (mut writes, mut forgotten) = (Vec::<Write>::new(), Vec::new());
    for _ in 0..10 + random.below(110) {
        let any = (!writes.is_empty()).then(|| pick(&mut random, writes.len()));
        match (random.below(10), any) {
            (0..3, _) => {
                let mut write = begin(&mut random, &files);
                if !write.is_reserved {
                    write.poll();
                }
                writes.push(write);
            }
            (3..6, Some(at)) if writes[at].is_reserved => writes.swap_remove(at).finish(),
            (3..6, Some(at)) => writes[at].poll(),
            (6, Some(at)) if !writes[at].is_reserved && random.below(3) == 0 => {
                forgotten.push(writes.swap_remove(at));
            }
            (7, Some(at)) if !writes[at].is_reserved => {
                let write = writes.swap_remove(at);
                write.file.dirt.leave(write.id);
            }
            _ => {
                let file = &files[pick(&mut random, files.len())];
                file.end_any(&mut random);
                assert!(file.dirt.dirty() <= file.dirt.dirty_max().max(16 * page_size()));
            }
        }
    }
    // Ends every part that can end, and polls every write that was woken.
    loop {
        let ended = files.iter().filter(|file| file.end_any(&mut random)).count();
        let (reserved, waiting): (Vec<_>, _) =
            writes.into_iter().partition(|write| write.is_reserved);
        let finished = reserved.len();
        reserved.into_iter().for_each(Write::finish);
        writes = waiting;
        let mut polled = 0;
        for write in &mut writes {
            if write.woken.0.load(SeqCst) {
                polled += 1;
                write.poll();
            }
        }
        if ended + finished + polled == 0 {
            break;
        }
    }
    writes.len()
}

#[test]
fn no_write_waits_for_ever_whatever_is_dropped_or_forgotten() {
    for seed in 0..20_000 {
        assert_eq!(stuck_after(seed), 0, "seed {seed}");
    }
}
